//! An event of a source as a row: the values at the paths that `sources.tsv` lists.

use arrow_schema::DataType;
use evtx_format::{Interrupt, Interrupted};
use serde_json::Value;

use crate::fields::Declarations;
use crate::json::Json;
use crate::rows::{Cell, Row};
use crate::sources::{ALWAYS, COLUMNS, Entry, Form, Source, column};
use crate::types::Type;
use crate::values::{Times, guid, hex, number, of_seconds, whole};
use crate::xml::Xml;

/// What is read of a row.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) row: Row,
    /// Why it cannot be read, or not as a whole.
    pub(crate) why: Option<String>,
    /// What it has as XML.
    pub(crate) xml: Option<Xml>,
}

impl Event {
    /// A row without values.
    pub(crate) fn none(why: Option<String>) -> Self {
        let (row, xml) = (vec![Cell::Null; COLUMNS.len()], None);
        Event { row, why, xml }
    }
}

/// Where the values of an event are: in an object, and in the JSON that a text in it has.
struct Places<'j, 't> {
    event: &'j Json<'t>,
    inner: Option<&'j Json<'t>>,
}

impl<'j, 't> Places<'j, 't> {
    fn at(&self, path: &str) -> Option<&'j Json<'t>> {
        match path.split_once("{}.") {
            Some((_, path)) => self.inner?.at(path),
            None => self.event.at(path),
        }
    }
}

impl Form {
    /// The part of a row that is the event, if the row has this form.
    fn event<'j, 't>(&self, json: &'j Json<'t>) -> Option<&'j Json<'t>> {
        let event = self.within.map_or(Some(json), |path| {
            let within = json.at(path.trim_end_matches('?'));
            within.or(path.ends_with('?').then_some(json))
        })?;
        let has = |path: &&str| event.at(path).is_some_and(|value| *value != Json::Text("".into()));
        let is_xml = |path| {
            event
                .at(path)
                .and_then(Json::as_text)
                .is_some_and(|text| text.contains("<Event"))
        };
        let has_all = self.has.iter().all(|any| any.iter().any(has)) && self.xml.is_none_or(is_xml);
        has_all.then_some(event)
    }

    /// What the row lacks that each event of the source has.
    fn missing(&self, row: &Row, places: &Places<'_, '_>) -> Option<String> {
        let entries = |column| self.entries.iter().filter(move |entry| entry.column == column);
        let has = |name: &str| {
            let is_empty = row[column(name)] == Cell::Text(String::new());
            entries(column(name))
                .any(|entry| entry.types.contains(&Type::Null) || !is_empty && places.at(&entry.path).is_some())
        };
        let lacks = |name: &str| match name {
            "event_id" => row[column(name)] == Cell::Null,
            "provider" => !has(name) && !has("provider_guid"),
            _ => !has(name),
        };
        ALWAYS.into_iter().filter(|name| lacks(name)).find_map(|name| {
            let paths: Vec<&str> = entries(column(name)).map(|entry| &*entry.path).collect();
            (!paths.is_empty()).then(|| format!("there is no {name}: expected {}", paths.join(" or ")))
        })
    }

    /// What the object has that may only have some members.
    fn other_member(&self, places: &Places<'_, '_>) -> Option<String> {
        let (path, is_one, names) = self.members.as_ref()?;
        let is_inner = self.inner.as_ref().is_some_and(|(inner, _)| inner == path);
        let members = if is_inner { places.inner } else { places.event.at(path) }?.members();
        let mut others = members.iter().filter(|(name, _)| !names.contains(&&**name));
        match others.next() {
            Some((name, _)) if !is_one => Some(format!("{path}.{name} has no column")),
            None if !is_one || members.len() == 1 => None,
            _ => Some(format!("{path}: expected {}", names.join(" or "))),
        }
    }
}

impl Source {
    /// The form of a row, and the part of it that is the event.
    pub(crate) fn form_of<'j, 't>(&self, json: &'j Json<'t>) -> Option<(&Form, &'j Json<'t>)> {
        self.forms.iter().find_map(|form| Some((form, form.event(json)?)))
    }

    /// Reads an event.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub(crate) fn read(
        &self,
        json: &Json<'_>,
        times: &Times,
        declarations: &mut Declarations,
        interrupt: Interrupt<'_>,
    ) -> Result<Event, Interrupted> {
        let Some((form, event)) = self.form_of(json) else {
            return Ok(Event::none(Some(format!("expected {}", self.expected))));
        };
        let text = form.inner.as_ref().and_then(|(path, _)| event.at(path)?.text());
        let read = text.as_deref().map(|text| Json::read(text, interrupt)).transpose()?;
        let places = Places {
            event,
            inner: read.as_ref().and_then(|read| read.as_ref().ok()),
        };
        let Event { mut row, .. } = Event::none(None);
        let mut unread = None;
        // The first value that is there counts, even if it cannot be read. An empty text is worse than any value.
        for entry in form.entries.iter().rev() {
            let Some(json) = places.at(&entry.path) else { continue };
            let cell = entry.cell(json, times).unwrap_or_else(|why| {
                unread = Some(why);
                Cell::Null
            });
            if row[entry.column] == Cell::Null || cell != Cell::Text(String::new()) {
                row[entry.column] = cell;
            }
        }
        let missing = form.missing(&row, &places);
        let text = form.xml.and_then(|path| event.at(path)?.as_text());
        let mut xml = text.map(|text| Xml::Event(text.to_owned()));
        let mut odd = None;
        if let Some(fields) = &form.fields {
            let of_row = fields.path.is_empty().then_some(event);
            let json = of_row.or_else(|| places.at(&fields.path));
            match fields.read(json, &mut row, declarations, interrupt)? {
                Ok(found) => xml = xml.or(found),
                Err(why) => odd = Some(why),
            }
            // Without fields, but not without any place for them.
            let has_place = !["text", "xml", "values"].iter().any(|word| fields.are(word));
            let is_read = form.inner.is_none() || places.inner.is_some();
            let is_empty = |name| row[column(name)] == Cell::Null;
            if has_place && is_read && is_empty("event_data") && is_empty("user_data") && !is_empty("event_id") {
                row[column("event_data")] = Cell::Fields(Vec::new());
            }
        }
        let of_inner = || {
            let (path, types) = form.inner.as_ref()?;
            let why = match read.as_ref()? {
                Ok(json) => types.check(json),
                Err(why) => Some(why.clone()),
            };
            Some(format!("{path}: {}", why?))
        };
        let why = form.types.check(event).or(missing).or(unread).or(odd).or_else(of_inner);
        let why = why.or_else(|| form.other_member(&places));
        Ok(Event { row, why, xml })
    }
}

impl Entry {
    /// The value of the column.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn cell(&self, json: &Json<'_>, times: &Times) -> Result<Cell, String> {
        let text = json.text().unwrap_or_default();
        if let Some(cell) = self.named(json, &text) {
            return Ok(cell);
        }
        let (column, first) = (&COLUMNS[self.column], self.types[0]);
        let is_text = matches!(json, Json::Text(_));
        let whole = || whole(json).and_then(|number| number.try_into().ok());
        let cell = match column.data_type() {
            _ if first == Type::Element => return Ok(element(json)),
            _ if first == Type::Signed || first == Type::Hex => {
                let signed = text
                    .parse()
                    .ok()
                    .filter(|_| first == Type::Signed)
                    .map(i64::cast_unsigned);
                signed.or_else(|| hex(&text)).or_else(whole).map(Cell::Number)
            }
            DataType::Timestamp(..) if is_text => {
                let is_local = matches!(first, Type::Local | Type::Utc);
                match times.read(&text, first != Type::Local) {
                    Err(why) if is_local || !text.is_empty() => return Err(format!("{} {why}", self.path)),
                    read => read.ok().flatten().map(Cell::Time),
                }
            }
            DataType::Timestamp(..) if first == Type::Seconds => number(json).and_then(of_seconds).map(Cell::Time),
            DataType::Timestamp(..) => None,
            // There is nothing but names.
            kind if kind.is_integer() && first == Type::Text && !self.names.is_empty() => None,
            kind if kind.is_integer() => whole().map(Cell::Number),
            DataType::FixedSizeBinary(_) => guid(&text).map(Cell::Guid),
            _ if column.extension_type_name() == Some("arrow.json") && is_text => None,
            _ => Some(Cell::Text(text.to_string())),
        };
        match cell {
            None if self.is_strict && !text.is_empty() => Err(format!("{} is not a known name", self.path)),
            None if first == Type::Signed && !text.is_empty() => Err(format!("{} is not a number", self.path)),
            cell => Ok(cell.unwrap_or_default()),
        }
    }

    /// What stands for a text, or for the first that a list contains.
    fn named(&self, json: &Json<'_>, text: &str) -> Option<Cell> {
        let is_one = |name: &str| match json {
            Json::List(items) => items.iter().any(|item| item.text().is_some_and(|item| item == name)),
            _ => text.eq_ignore_ascii_case(name),
        };
        let (_, value) = self.names.iter().find(|(name, _)| is_one(name))?;
        Some(match value {
            Value::String(text) => hex(text).map_or_else(|| Cell::Text(text.clone()), Cell::Number),
            value => value.as_u64().map_or(Cell::Null, Cell::Number),
        })
    }
}

/// An object whose member `xml_name` names the element that it stands for.
fn element(json: &Json<'_>) -> Cell {
    let Json::Object(members) = json else { return Cell::Null };
    let others = members.iter().filter(|(name, _)| name != "xml_name").cloned().collect();
    let name = json.at("xml_name").and_then(Json::text).unwrap_or_default();
    Cell::Text(Json::Object(vec![(name, Json::Object(others))]).to_string())
}
