//! An event of a source as a row: the values at the paths that `sources.tsv` lists.

use crate::fields::Declarations;
use crate::json::Json;
use crate::rows::{COLUMNS, Cell, Row, column};
use crate::sources::{ALWAYS, Entry, Form, Source, named};
use crate::types::Type;
use crate::values::{Times, hex};
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

impl Source {
    /// The form of a row, and the part of it that is the event.
    pub(crate) fn form_of<'j, 't>(&self, json: &'j Json<'t>) -> Option<(&Form, &'j Json<'t>)> {
        self.forms.iter().find_map(|form| Some((form, form.event(json)?)))
    }

    /// Reads an event.
    pub(crate) fn read(&self, json: &Json<'_>, times: &Times, declarations: &mut Declarations) -> Event {
        match self.form_of(json) {
            Some((form, event)) => form.row(event, times, declarations),
            None => Event::none(Some(format!("expected {}", self.expected))),
        }
    }
}

/// An event, and the JSON that a text in it has.
#[derive(Clone, Copy)]
pub(crate) struct Places<'j, 't> {
    pub(crate) event: &'j Json<'t>,
    pub(crate) inner: Option<&'j Json<'t>>,
}

impl Form {
    /// The part of a row that is the event, if the row has this form.
    fn event<'j, 't>(&self, json: &'j Json<'t>) -> Option<&'j Json<'t>> {
        let event = self.within.map_or(Some(json), |path| {
            let within = json.at(path.trim_end_matches('?'));
            within.or(path.ends_with('?').then_some(json))
        })?;
        let has = |path: &&str| event.at(path).is_some_and(|value| *value != Json::EMPTY);
        let text = |path| event.at(path).and_then(Json::as_text);
        let is_xml = |path| text(path).is_some_and(|text| text.contains("<Event"));
        let has_all = self.has.iter().all(|any| any.iter().any(has)) && self.xml.is_none_or(is_xml);
        has_all.then_some(event)
    }

    fn row(&self, event: &Json<'_>, times: &Times, declarations: &mut Declarations) -> Event {
        let Event { mut row, .. } = Event::none(None);
        // Some texts have JSON if they look like it.
        let is_optional = self.fields.as_ref().is_some_and(|fields| fields.are("text"));
        let member = self.json.and_then(|member| event.at(member));
        let text = member
            .filter(|json| !matches!(json, Json::Object(_)))
            .and_then(Json::text);
        let text = text.filter(|text| !is_optional || text.starts_with('{'));
        let inner = text.as_deref().map(Json::read);
        let of_inner = match &inner {
            Some(Err(why)) => Some(why.clone()),
            Some(Ok(json)) if !is_optional => json.problem(),
            _ => None,
        };
        let of_inner = of_inner.map(|why| format!("{}: {why}", self.json.unwrap_or_default()));
        let inner = inner.as_ref().and_then(|inner| inner.as_ref().ok());
        let places = Places { event, inner };

        let of_entries = self.read_entries(places, times, &mut row);
        let fields = self.fields.as_ref().map_or(Ok(None), |fields| {
            let json = self.find(places, fields.path)?;
            // Without fields, but not without any place for them.
            let is_event = (self.json.is_none() || inner.is_some()) && row[column("event_id")] != Cell::Null;
            if fields.have_place() && is_event && row[column("user_data")] == Cell::Null {
                row[column("event_data")] = Cell::Fields(Vec::new());
            }
            fields.read(json, &mut row, declarations)
        });
        let (of_fields, xml) = match fields {
            Ok(xml) => (None, xml),
            Err(why) => (Some(why), None),
        };
        let event_text = self.xml.and_then(|path| event.at(path)?.as_text());
        let why = event.problem().or(of_entries).or(of_fields).or(of_inner);
        Event {
            row,
            why: why.or_else(|| self.other_member(places)),
            xml: event_text.map(|text| Xml::Event(text.to_owned())).or(xml),
        }
    }

    /// The value at a path; `None` if it is missing or null, or if a value on the way to it has a line of its own.
    ///
    /// # Errors
    /// What is wrong on the way to it.
    pub(crate) fn find<'j, 't>(
        &self,
        places: Places<'j, 't>,
        path: &'static str,
    ) -> Result<Option<&'j Json<'t>>, String> {
        let (mut json, mut len) = (places.event, 0);
        for step in path.split('.').filter(|step| !step.is_empty()) {
            let before = &path[..len];
            let Json::Object(members) = json else {
                let has_line = self.entries.iter().any(|entry| entry.path == before);
                return has_line
                    .then_some(None)
                    .ok_or_else(|| format!("{} is not an object", named(before)));
            };
            len += step.len() + usize::from(len > 0);
            let wrong = |why| Err(format!("{} is {why}", named(path[..len].trim_end_matches("{}"))));
            let name = step.trim_end_matches("{}").trim_end_matches('!');
            let (is_always, is_last) = (step.contains('!'), len == path.len());
            json = match members.iter().find(|(known, _)| known == name) {
                None | Some((_, Json::Null)) if !is_always => return Ok(None),
                None => return wrong("missing"),
                Some((_, Json::Null)) if !is_last => return wrong("null"),
                Some((_, value)) if !is_last && !is_always && *value == Json::EMPTY => return Ok(None),
                Some((_, value)) => value,
            };
            if step.ends_with("{}") {
                json = match (json, places.inner) {
                    (Json::Object(_), _) => json,
                    (_, Some(inner)) => inner,
                    (Json::List(_), None) => return wrong("not a text"),
                    (_, None) => return Ok(None),
                };
            }
        }
        Ok(Some(json))
    }

    /// Reads the values of the columns into a row. Returns what is wrong with the first of them, or which is missing.
    fn read_entries(&self, places: Places<'_, '_>, times: &Times, row: &mut Row) -> Option<String> {
        let (mut wrong, mut found) = (None, Vec::new());
        // The first value that is there counts, even if it cannot be read. An empty text is worse than any value.
        for entry in self.entries.iter().rev() {
            let json = match self.find(places, entry.path) {
                Ok(Some(json)) => json,
                Ok(None) => continue,
                Err(why) => {
                    wrong = Some(why);
                    continue;
                }
            };
            let cell = self.cell(entry, json, times).unwrap_or_else(|why| {
                wrong = Some(why);
                Some(Cell::Null)
            });
            let Some(cell) = cell else { continue };
            found.push(entry.column);
            if row[entry.column] == Cell::Null || cell != Cell::Text(String::new()) {
                row[entry.column] = cell;
            }
        }
        wrong.or_else(|| ALWAYS.into_iter().find_map(|name| self.missing(name, &found, row)))
    }

    /// What a row without a column should have.
    fn missing(&self, name: &str, found: &[usize], row: &Row) -> Option<String> {
        let entries = || self.entries.iter().filter(|entry| entry.column == column(name));
        let is_there = match (name, &row[column(name)]) {
            ("provider", _) if found.contains(&column("provider_guid")) => true,
            ("event_id", cell) => *cell != Cell::Null,
            (_, Cell::Text(text)) => !text.is_empty(),
            _ => found.contains(&column(name)),
        };
        let can_be_null = entries().any(|entry| entry.types.contains(&Type::Null));
        let paths: Vec<String> = entries().map(|entry| named(entry.path)).collect();
        let is_missing = !is_there && !can_be_null && !paths.is_empty();
        is_missing.then(|| format!("there is no {name}: expected {}", paths.join(" or ")))
    }

    /// The value of a column; `None` if it stands for none.
    ///
    /// # Errors
    /// What it is that it should not be.
    fn cell(&self, entry: &Entry, json: &Json<'_>, times: &Times) -> Result<Option<Cell>, String> {
        if let Some(cell) = entry.named(json) {
            return Ok(Some(cell));
        }
        let is_always = entry.path.ends_with('!');
        if *json == Json::EMPTY && !is_always && !entry.types.contains(&Type::Text) {
            return Ok(None);
        }
        let mut read = entry.types.iter().map(|one| one.read(json, times));
        let first = read.next().unwrap_or(Ok(Cell::Null));
        let cell = match first.or_else(|why| read.find_map(Result::ok).ok_or(why)) {
            Ok(Cell::Null) if entry.is_strict => Err("is not a known name".to_owned()),
            // A name that stands for nothing.
            Ok(Cell::Text(_)) if COLUMNS[entry.column].data_type().is_integer() => Ok(Cell::Null),
            // Its members have lines of their own.
            Err(_) if matches!(json, Json::Object(_)) && self.has_members(entry.path) => return Ok(None),
            read => read,
        };
        cell.map(Some).map_err(|why| format!("{} {why}", named(entry.path)))
    }

    fn has_members(&self, path: &str) -> bool {
        let is_member = |other: &Entry| other.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        self.entries.iter().any(is_member)
    }

    /// What the object has that may only have some members.
    fn other_member(&self, places: Places<'_, '_>) -> Option<String> {
        let (path, is_one, names) = self.members.as_ref()?;
        let members = self.find(places, path).ok()??.members();
        let path = path.trim_end_matches("{}");
        let mut others = members.iter().filter(|(name, _)| !names.contains(&&**name));
        match others.next() {
            Some((name, _)) if !is_one => Some(format!("{path}.{name} has no column")),
            None if !is_one || members.len() == 1 => None,
            _ => Some(format!("{path}: expected {}", names.join(" or "))),
        }
    }
}

impl Entry {
    /// What stands for a text, or for the first that a list contains.
    fn named(&self, json: &Json<'_>) -> Option<Cell> {
        let is_one = |name: &str| match json {
            Json::List(items) => items.iter().any(|item| item.text().is_some_and(|item| item == name)),
            json => json.text().is_some_and(|text| text.eq_ignore_ascii_case(name)),
        };
        let (_, value) = self.names.iter().find(|(name, _)| is_one(name))?;
        Some(match value.as_str() {
            Some(text) => hex(text).map_or_else(|| Cell::Text(text.to_owned()), Cell::Number),
            None => value.as_u64().map_or(Cell::Null, Cell::Number),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a text, if it has values of these columns, with these paths and types.
    fn wrong(lines: &[&str], text: &str) -> Option<String> {
        let form = Form::read(lines.join("\n").leak());
        let json = Json::read(text).expect("JSON");
        let why = form.row(&json, &Times::default(), &mut Declarations::default()).why;
        why.filter(|why| !why.starts_with("there is no "))
    }

    /// Checks lines of JSON, each with what is wrong with it after an arrow.
    fn check(types: &[&str], cases: &str) {
        for line in cases.trim().lines() {
            let (text, expected) = line.split_once(" =>").expect("an arrow");
            assert_eq!(wrong(types, text).unwrap_or_default(), expected.trim_start(), "{text}");
        }
    }

    #[test]
    fn values_have_their_types() {
        let types = [
            "level\to.n",
            "provider_guid\to.g",
            "channel\to.t",
            "user_data\to.UserData",
            "keywords\to.j\tJSON",
            "time_created\tt",
            "time_created\ts\tSECONDS TIMESTAMP_NS",
            "keywords\th\tHEX",
            "level\tm\tUTINYINT NAME",
            "process_id\tp",
            "level\tp.a",
        ];
        let cases = r#"
{"o":null} =>
{"o":""} =>
{"o":5} => o is not an object
{"o":[]} => o is not an object
{"o":{"n":255,"g":"{00000000-0000-0000-0000-00000000000F}","t":1.5,"UserData":{"n":{}},"j":[{}],"x":{}}} =>
{"o":{"n":"7.0","g":null,"t":false,"UserData":""}} =>
{"o":{"n":256}} => o.n is larger than 255
{"o":{"n":1e40}} => o.n is larger than 255
{"o":{"n":-1}} => o.n is not a whole number
{"o":{"n":0.5}} => o.n is not a whole number
{"o":{"n":true}} => o.n is not a whole number
{"o":{"n":[1]}} => o.n is not a whole number
{"o":{"g":"00000000-0000-0000-0000-0000000000"}} => o.g is not a GUID
{"o":{"g":0}} => o.g is not a GUID
{"o":{"t":{}}} => o.t is not a text
{"o":{"UserData":5}} => o.UserData is not an object
{"x":1e400} => a number is too large
{"t":"2024-02-29 23:59:59.123456789123\u002B01:00"} =>
{"t":"1601-01-01T00:00:00.0000000Z"} =>
{"t":"2023-02-29T00:00:00Z"} => t is not a time
{"t":"1900-02-29T00:00:00Z"} => t is not a time
{"t":"2024-03-05T24:00:00Z"} => t is not a time
{"t":"2024-03-05T08:58:00.Z"} => t is not a time
{"t":"2024-03-05T08:58:00+0100"} => t is not a time
{"t":"2024-03-05T08:58:00-25:59"} =>
{"t":"2024-03-05T08:58:00+26:00"} => t is not a time
{"t":"2024-03-05T08:58:00+01:60"} => t is not a time
{"t":"2024-03-05"} => t is not a time
{"t":"infinity"} => t is not a time
{"t":"1677-12-31T23:59:59Z"} => t is not a time
{"t":"2262-01-01T00:00:00Z"} => t is not a time
{"t":1709629080} => t is not a time
{"s":1709629080.4417,"h":"0x8020000000000000","m":"Info","p":{"a":7}} =>
{"s":-11644473600,"h":18446744073709551615,"m":7,"p":7} =>
{"s":9.3e9} => s is not a time
{"s":true} => s is not a time
{"h":"0x1ffffffffffffffff"} => h is not a whole number
{"h":18446744073709551616} => h is larger than 18446744073709551615
{"m":"300"} => m is larger than 255
{"m":"-4.5"} => m is not a whole number
{"p":[]} => p is not a whole number
{"p":{"a":256}} => p.a is larger than 255
"#;
        check(&types, cases);
    }

    #[test]
    fn members_that_are_never_missing() {
        let types = [
            "channel\to.a!",
            "level\to.b!\tUTINYINT null",
            "level\to.c!.d!",
            "keywords\te!\tJSON",
        ];
        let cases = r#"
{"o":{"a":"","b":null,"\u0063":{"d":1}},"e":[]} =>
{"e":0} =>
{} => e is missing
{"o":{"b":1,"c":{"d":1}},"e":0} => o.a is missing
{"o":{"a":null}} => o.a is null
{"o":{"a":"x","b":""}} => o.b is not a whole number
{"o":{"a":"x","b":1,"c":{}},"e":0} => o.c.d is missing
{"o":{"a":"x","b":1,"c":""},"e":0} => o.c is not an object
"#;
        check(&types, cases);
    }
}
