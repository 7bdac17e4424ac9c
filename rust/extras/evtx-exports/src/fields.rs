//! The fields of an event, as its provider wrote them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use evtx_catalog::{DeclaredEvent, events_of};
use evtx_format::value::{Scalar, ValueType};

use crate::json::Json;
use crate::rows::{Cell, Pair, Row, column};
use crate::sources::{Fields, named};
use crate::values::guid;
use crate::xml::Xml;

/// The most providers whose declared events a thread keeps.
const MAX_DECLARED: usize = 1 << 8;

/// What PowerShell writes for a field that is deeper than its `-Depth`.
const NO_FIELDS: &str = "System.Diagnostics.Eventing.Reader.EventProperty";

/// What XML with the fields of an event has.
const FIELDS_OF_XML: [&str; 3] = ["<EventData", "<UserData", "<DataItem"];

/// The events that providers declare, by the provider's name in lower case, sorted by ID.
pub(crate) type Declarations = HashMap<String, Vec<DeclaredEvent>>;

/// All versions of the event of a row.
fn declared<'d>(declarations: &'d mut Declarations, row: &Row) -> &'d [DeclaredEvent] {
    let (Some(provider), Some(id)) = (row[column("provider")].text(), row[column("event_id")].number()) else {
        return &[];
    };
    let provider = provider.to_ascii_lowercase();
    if declarations.len() >= MAX_DECLARED && !declarations.contains_key(&provider) {
        declarations.clear();
    }
    let all = declarations
        .entry(provider)
        .or_insert_with_key(|provider| events_of(&HashSet::from([provider.clone()]), &[]).collect());
    let start = all.partition_point(|event| u64::from(event.id) < id);
    let end = all.partition_point(|event| u64::from(event.id) <= id);
    &all[start..end]
}

/// Whether a version of an event has a field with a name, of some type.
fn declares(declared: &[DeclaredEvent], name: &str, is_type: impl Fn(&ValueType) -> bool) -> bool {
    let mut fields = declared.iter().flat_map(|event| &*event.fields);
    fields.any(|(known, of)| **known == *name && is_type(of))
}

impl Fields {
    /// Reads the fields of an event from their value into its row. Returns what the value has as XML.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub(crate) fn read(
        &self,
        json: Option<&Json<'_>>,
        row: &mut Row,
        declarations: &mut Declarations,
    ) -> Result<Option<Xml>, String> {
        let Some(json) = json.filter(|json| **json != Json::EMPTY) else {
            return Ok(None);
        };
        let first = json.items().first().and_then(Json::as_text).unwrap_or_default();
        let wrong = |why: &str| Err(format!("{}{why}", named(self.path)));
        match json {
            Json::Text(text) if self.are("xml") && FIELDS_OF_XML.iter().any(|tag| text.contains(tag)) => {
                return Ok(Some(Xml::Fields(text.to_string())));
            }
            _ if self.are("xml") => return wrong(" is not XML with EventData"),
            Json::List(_) if self.are("values") && first.starts_with(NO_FIELDS) => {
                return wrong(" has no values: pass -Depth 3 to ConvertTo-Json");
            }
            Json::Object(_) => {}
            Json::List(_) if self.are("values") => {}
            // CSV has no fields.
            _ if self.are("values") => return Ok(None),
            _ => return wrong(" is not an object"),
        }
        let needs = ["decimal", "values", "flat"].iter().any(|word| self.are(word));
        let declared = if needs { declared(declarations, row) } else { &[] };
        let pairs = self.pairs(json, declared, row[column("version")].number());
        row[column("event_data")] = Cell::Fields(pairs);
        Ok(None)
    }

    fn pairs(&self, json: &Json<'_>, declared: &[DeclaredEvent], version: Option<u64>) -> Vec<Pair> {
        let owned = |json: &Json<'_>| json.text().map(Cow::into_owned);
        let (mut first, mut named, mut last) = (Vec::new(), Vec::new(), Vec::new());
        if let (true, Json::List(values)) = (self.are("values"), json) {
            let is_version = |event: &&DeclaredEvent| version == Some(event.version.into()) && !event.in_user_data;
            // Another version of the event has other fields.
            let names = declared.iter().rfind(is_version).map(|event| &event.fields);
            let names = names.filter(|names| names.len() == values.len());
            let name = |at: usize| names.map(|names| names[at].0.to_string());
            let values = values.iter().map(|value| Some(innermost(value)));
            first.extend(values.enumerate().map(|(at, value)| (name(at), value)));
        }
        for (name, value) in json.members() {
            let own = |text| (Some(name.to_string()), Some(text));
            match &**name {
                "Data" if self.are("unnamed") && value.at("#text").is_some() => {
                    let texts = value.at("#text").map_or(&[][..], Json::items);
                    first.extend(texts.iter().filter_map(owned).map(|text| (None, Some(text))));
                }
                "Data" if self.are("listed") => {
                    if *value != Json::Null {
                        first.extend(value.items().iter().map(item));
                    }
                }
                "Binary" if self.are("binary") => {
                    let text = owned(value).filter(|text| !text.is_empty());
                    last.extend(text.map(|text| own(text.replace('-', ""))));
                }
                "#attributes" => {}
                // An event can have a field of this name.
                known if self.others.contains(&known) && !declares(declared, known, |_| true) => {}
                attribute if attribute.starts_with('@') => {}
                _ => match owned(value) {
                    None if self.are("nulls") => named.push((Some(name.to_string()), None)),
                    None if self.are("empty") => named.push(own(String::new())),
                    None => {}
                    Some(text) if text.is_empty() && self.are("filled") => {}
                    Some(text) => named.push(own(text)),
                },
            }
        }
        first.extend(named);
        first.extend(last);
        for (name, value) in &mut first {
            if let Some(text) = value {
                self.restore(name.as_deref().unwrap_or_default(), text, declared);
            }
        }
        first
    }

    /// Writes a value as logs have it.
    fn restore(&self, name: &str, text: &mut String, declared: &[DeclaredEvent]) {
        let has_case = |is_upper: bool| {
            let mut letters = text.bytes().filter(u8::is_ascii_alphabetic);
            letters.all(|letter| letter.is_ascii_uppercase() == is_upper)
        };
        let is_guid = |is_upper| text.len() == 36 && has_case(is_upper) && guid(text).is_some();
        if self.are("GUIDS") && is_guid(true) || self.are("guids") && is_guid(false) {
            *text = format!("{{{}}}", text.to_ascii_lowercase());
        } else if self.are("hex")
            && let Some(digits) = text.strip_prefix("0x")
            && (1..=16).contains(&digits.len())
            && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'A'..=b'F'))
        {
            text.make_ascii_lowercase();
        } else if self.are("decimal")
            && let Ok(number) = text.parse::<u64>()
            && declares(declared, name, |of| {
                !of.array && matches!(of.scalar, Scalar::HexInt32 | Scalar::HexInt64 | Scalar::SizeT)
            })
        {
            *text = format!("{number:#x}");
        }
    }
}

/// A value in objects with nothing but it: `{"Value": {"Value": "S-1-5-18"}}`.
fn innermost(json: &Json<'_>) -> String {
    let inner = json.at("Value").map(|inner| inner.at("Value").unwrap_or(inner));
    let value = inner.or(Some(json).filter(|json| !matches!(json, Json::Object(_))));
    value.and_then(Json::text).unwrap_or_default().into_owned()
}

/// An item of `Data`: a text, or an object with a name and a value.
fn item(json: &Json<'_>) -> Pair {
    let text = |json: Option<&Json<'_>>| json.and_then(Json::text).map(Cow::into_owned);
    let Json::Object(members) = json else {
        return (None, Some(text(Some(json)).unwrap_or_default()));
    };
    let is_xml = json.at("@Name").or(json.at("#text")).is_some();
    let names = if is_xml { ["@Name", "#text"] } else { ["Name", "Value"] };
    let [name, value] = names.map(|name| text(json.at(name)));
    let others: Vec<_> = members
        .iter()
        .filter(|(name, _)| !names.contains(&&**name))
        .cloned()
        .collect();
    let more = if others.is_empty() {
        String::new()
    } else {
        Json::Object(others).to_string()
    };
    (name, Some(value.unwrap_or(more)))
}
