//! The values of a row, by the names that rules have for them.

use std::borrow::Cow;
use std::collections::HashSet;

use arrow_schema::{DataType, Field, Fields};
use evtx_arrow::{ColumnReference, reference};
use evtx_format::binxml::fields::FieldNamer;
use evtx_format::value::text::Escaping;
use evtx_format::value::time::push_instant;
use evtx_format::value::{Scalar, Value};
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json};

use crate::classes::base;

/// The column of the leaves of `EventData`.
const EVENT_DATA: &str = "event_data";

/// The start of the paths in `System`.
const SYSTEM: &str = "System/";

/// The most bytes of a JSON text whose parts count as values.
const MAX_JSON: usize = 16 << 20;

/// The element whose leaves are in `user_data`.
const USER_DATA: &str = "UserData";

/// A value of a column of [`event_fields`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventValue<'a> {
    /// A text.
    Text(&'a str),
    /// A number.
    Number(u64),
    /// A time in ns since 1970-01-01 UTC.
    Time(i64),
    /// A UUID, most significant byte first.
    Uuid([u8; 16]),
}

/// A row of a table with the columns of `read_evtx`.
#[derive(Debug, Clone, Copy)]
pub struct EventRow<'a> {
    /// The values of [`event_fields`] in their order, without the last, which is `event_data`.
    pub values: &'a [Option<EventValue<'a>>],
    /// The names and texts of `event_data`.
    pub event_data: &'a [(&'a str, Option<&'a str>)],
}

impl<'a> EventRow<'a> {
    /// The text in a column.
    pub(super) fn text(&self, column: usize) -> Option<&'a str> {
        match self.values[column] {
            Some(EventValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The number in a column.
    pub(super) fn number(&self, column: usize) -> Option<u64> {
        match self.values[column] {
            Some(EventValue::Number(number)) => Some(number),
            _ => None,
        }
    }
}

/// The columns of a table that rules, or reports about their matches, need. The last is `event_data`.
pub fn event_fields() -> Fields {
    let field = |column: ColumnReference| match column.field.data_type() {
        DataType::Dictionary(..) | DataType::Utf8View => Field::new(column.field.name(), DataType::Utf8, true),
        _ => column.field,
    };
    columns().map(field).collect()
}

fn columns() -> impl Iterator<Item = ColumnReference> {
    let is_needed = |column: &ColumnReference| {
        let others = ["record_id", "filename", "user_data", "error", EVENT_DATA];
        column.path.starts_with(SYSTEM) || others.contains(&column.field.name().as_str())
    };
    let (of_data, others): (Vec<_>, Vec<_>) = reference()
        .into_iter()
        .filter(is_needed)
        .partition(|column| column.field.name() == EVENT_DATA);
    others.into_iter().chain(of_data)
}

/// The indexes of the columns that are not in `event_data`.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) record_id: usize,
    pub(super) filename: usize,
    pub(super) error: usize,
    pub(super) time: usize,
    pub(super) channel: usize,
    pub(super) provider: usize,
    pub(super) event_id: usize,
    pub(super) qualifiers: usize,
    pub(super) user_data: usize,
    /// The columns of `System` with their names in rules, and whether rules see their number in hexadecimal digits.
    pub(super) system: Vec<(usize, String, bool)>,
}

impl Columns {
    pub(super) fn new() -> Self {
        let at = |name: &str| {
            columns()
                .position(|column| column.field.name() == name)
                .expect("a column")
        };
        let path = |(index, column): (usize, ColumnReference)| {
            let name = column.path.strip_prefix(SYSTEM)?.replace("/@", "_");
            let is_hexadecimal = name == "Keywords";
            Some((index, name, is_hexadecimal))
        };
        Columns {
            record_id: at("record_id"),
            filename: at("filename"),
            error: at("error"),
            time: at("time_created"),
            channel: at("channel"),
            provider: at("provider"),
            event_id: at("event_id"),
            qualifiers: at("qualifiers"),
            user_data: at("user_data"),
            system: columns().enumerate().filter_map(path).collect(),
        }
    }
}

impl EventValue<'_> {
    /// Appends the text that a record has for the value.
    pub(super) fn push_text(&self, is_hexadecimal: bool, out: &mut String) {
        let (scalar, bytes) = match *self {
            EventValue::Text(text) => return out.push_str(text),
            EventValue::Number(number) if is_hexadecimal => (Scalar::HexInt64, number.to_le_bytes().to_vec()),
            EventValue::Number(number) => return out.push_str(itoa::Buffer::new().format(number)),
            EventValue::Time(nanos) => {
                let mut text = Vec::new();
                push_instant(&mut text, nanos);
                return out.push_str(&String::from_utf8_lossy(&text));
            }
            EventValue::Uuid(mut bytes) => {
                // A GUID has its first three numbers in little-endian order.
                bytes[..4].reverse();
                bytes[4..6].reverse();
                bytes[6..8].reverse();
                (Scalar::Guid, bytes.to_vec())
            }
        };
        let mut text = Vec::new();
        Value::new(scalar, &bytes).push_text(&mut text, Escaping::Plain);
        out.push_str(&String::from_utf8_lossy(&text));
    }
}

/// The leaves of `EventData` and `UserData`: names, and texts or NULL.
#[derive(Debug, Default)]
pub(super) struct RowFields<'a> {
    pub(super) all: Vec<(Cow<'a, str>, Option<Cow<'a, str>>)>,
    /// How many of them are from `event_data`. These names are keys, the others are as in the event.
    pub(super) keys: usize,
}

impl<'a> RowFields<'a> {
    /// Takes the fields of a row in place of those of the row before.
    pub(super) fn take(&mut self, event_data: &[(&'a str, Option<&'a str>)], user_data: Option<&'a str>) {
        self.all.clear();
        for &(key, value) in event_data {
            match value.and_then(items) {
                Some(items) => self.all.extend(items.into_iter().map(|item| (key.into(), Some(item)))),
                None => self.all.push((key.into(), value.map(Cow::Borrowed))),
            }
        }
        self.keys = self.all.len();
        let json = user_data.filter(|text| text.len() <= MAX_JSON);
        match json.map(serde_json::from_str) {
            Some(Ok(Json::Object(children))) => self.add_children(USER_DATA, children),
            // It is searched as a whole.
            Some(_) => self
                .all
                .extend(user_data.map(|text| (USER_DATA.into(), Some(text.into())))),
            None => {}
        }
    }

    fn add(&mut self, name: String, text: String) {
        self.all.push((name.into(), Some(text.into())));
    }

    /// Adds the values of an element. Each level of the JSON text is a recursion, and `serde_json` accepts 128 levels.
    fn add_children(&mut self, element: &str, children: Map<String, Json>) {
        let keys: HashSet<String> = children.keys().cloned().collect();
        for (key, value) in children {
            match (key.as_str(), value) {
                ("#attributes", Json::Object(attributes)) => {
                    let is_namespace = |name: &str| name == "xmlns" || name.starts_with("xmlns:");
                    let keys: HashSet<String> = attributes.keys().cloned().collect();
                    for (name, value) in attributes.into_iter().filter(|(name, _)| !is_namespace(name)) {
                        let name = base(&name, |name| keys.contains(name));
                        self.add(format!("{element}.{name}"), text(value));
                    }
                }
                ("#text", value) => self.add_element(element, value),
                (key, value) => self.add_element(base(key, |name| keys.contains(name)), value),
            }
        }
    }

    fn add_element(&mut self, name: &str, value: Json) {
        match value {
            Json::Object(mut children) => {
                // `Data` is called by its attribute, as in `EventData`.
                let given = children
                    .get_mut("#attributes")
                    .and_then(Json::as_object_mut)
                    .filter(|_| FieldNamer::is_called(name))
                    .and_then(|attributes| attributes.shift_remove("Name"))
                    .map(text);
                let name = given.as_deref().unwrap_or(name);
                if children.keys().all(|key| key == "#attributes") {
                    self.add(name.to_owned(), String::new());
                }
                self.add_children(name, children);
            }
            Json::Array(items) => items.into_iter().for_each(|item| self.add_element(name, item)),
            leaf => self.add(name.to_owned(), text(leaf)),
        }
    }
}

/// The text of a leaf. An element without text is null.
fn text(leaf: Json) -> String {
    match leaf {
        Json::Null => String::new(),
        Json::String(text) => text,
        other => other.to_string(),
    }
}

/// The items of an array, which `event_data` has as a JSON text if there are several.
fn items(text: &str) -> Option<Vec<Cow<'_, str>>> {
    if !text.starts_with('[') || !text.ends_with(']') || text.len() > MAX_JSON {
        return None;
    }
    let raw: Vec<&RawValue> = serde_json::from_str(text).ok().filter(|raw: &Vec<_>| raw.len() > 1)?;
    let item = |raw: &'_ RawValue| match raw.get().as_bytes()[0] {
        b'"' => serde_json::from_str(raw.get()).ok().map(Cow::Owned),
        b'[' | b'{' => None,
        _ => Some(Cow::Owned(raw.get().to_owned())),
    };
    raw.into_iter().map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(event_data: &[(&str, Option<&str>)], user_data: Option<&str>) -> Vec<(String, Option<String>)> {
        let mut fields = RowFields::default();
        fields.take(event_data, user_data);
        let owned = |(name, value): &(Cow<'_, str>, Option<Cow<'_, str>>)| {
            (name.to_string(), value.as_deref().map(str::to_owned))
        };
        fields.all.iter().map(owned).collect()
    }

    fn pair(name: &str, value: &str) -> (String, Option<String>) {
        (name.to_owned(), Some(value.to_owned()))
    }

    #[test]
    fn arrays_are_several_values() {
        let event_data = [
            ("A", Some(r#"["x, \"y\"",2]"#)),
            ("B", Some("[1]")),
            ("C", Some("[x]")),
            ("D", None),
        ];
        let expected = [
            pair("A", r#"x, "y""#),
            pair("A", "2"),
            pair("B", "[1]"),
            pair("C", "[x]"),
            ("D".to_owned(), None),
        ];
        assert_eq!(fields(&event_data, None), expected);
        assert_eq!(
            fields(&[("A", Some("[[1],2]"))], None),
            [pair("A", "[[1],2]")],
            "no value is an array"
        );
    }

    #[test]
    fn elements_and_attributes_have_their_names() {
        let json = r##"{"Outer": {"#attributes": {"xmlns": "n", "Id": 7}, "Leaf": null, "Leaf_1": "b", "Leaf_x": "c",
            "Data": {"#attributes": {"Name": "Given"}, "#text": "d"}, "Empty": {"#attributes": {"a": true}}, "Many": [1, 2]}}"##;
        let expected = [
            pair("Outer.Id", "7"),
            pair("Leaf", ""),
            pair("Leaf", "b"),
            pair("Leaf_x", "c"),
            pair("Given", "d"),
            pair("Empty", ""),
            pair("Empty.a", "true"),
            pair("Many", "1"),
            pair("Many", "2"),
        ];
        assert_eq!(fields(&[], Some(json)), expected);
        for other in ["", "{", "[1]", "null", "3"] {
            assert_eq!(fields(&[], Some(other)), [pair("UserData", other)]);
        }
    }

    #[test]
    fn values_have_the_texts_of_records() {
        let text = |value: EventValue<'_>, is_hexadecimal| {
            let mut text = String::new();
            value.push_text(is_hexadecimal, &mut text);
            text
        };
        assert_eq!(
            text(EventValue::Number(0x8020_0000_0000_0000), true),
            "0x8020000000000000"
        );
        assert_eq!(text(EventValue::Time(-1), false), "1969-12-31T23:59:59.9999999Z");
        let uuid = *b"\x54\x84\x96\x25\x54\x78\x49\x94\xa5\xba\x3e\x3b\x03\x28\xc3\x0d";
        assert_eq!(
            text(EventValue::Uuid(uuid), false),
            "{54849625-5478-4994-a5ba-3e3b0328c30d}"
        );
    }
}
