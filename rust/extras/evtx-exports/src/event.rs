//! An event of a source as a row: the values at the paths that `sources.tsv` lists.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use arrow_schema::DataType;
use evtx_catalog::events_of;
use evtx_format::value::{Scalar, ValueType};
use evtx_format::{Interrupt, Interrupted};
use evtx_reports::{JsonCheck, check_json, members, without_nuls};
use serde_json::Value;

use crate::rows::{Cell, Pair, Row};
use crate::sources::{ALWAYS, COLUMNS, Entry, Fields, Form, Node, Reads, Source, column};
use crate::values::{Times, bits, compact, guid, of_seconds, text_of, whole};
use crate::xml::Xml;

/// The most providers whose declared fields a thread keeps.
const MAX_DECLARED: usize = 1 << 8;

/// What PowerShell writes for a field that is deeper than its `-Depth`.
const NO_FIELDS: &str = "System.Diagnostics.Eventing.Reader.EventProperty";

/// The columns that others depend on.
static PROVIDER: LazyLock<usize> = LazyLock::new(|| column("provider").unwrap_or_default());
static PROVIDER_GUID: LazyLock<usize> = LazyLock::new(|| column("provider_guid").unwrap_or_default());
static EVENT_ID: LazyLock<usize> = LazyLock::new(|| column("event_id").unwrap_or_default());
static USER_DATA: LazyLock<usize> = LazyLock::new(|| column("user_data").unwrap_or_default());
static VERSION: LazyLock<usize> = LazyLock::new(|| column("version").unwrap_or_default());
static EVENT_DATA: LazyLock<usize> = LazyLock::new(|| column("event_data").unwrap_or_default());

/// The fields that the provider of an event declares for it.
#[derive(Debug, Default)]
struct Declared {
    /// Those that are hexadecimal numbers, in any version.
    hex: HashSet<Arc<str>>,
    /// The names of all, in any version.
    all: HashSet<Arc<str>>,
    /// The names of all in `EventData`, by version.
    names: HashMap<u64, Vec<Arc<str>>>,
}

/// Reads events, for one thread.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// By the provider's name in lower case, then by ID.
    declared: HashMap<String, HashMap<u64, Arc<Declared>>>,
}

/// An event that is read.
struct Reading<'e> {
    form: &'e Form,
    times: &'e Times,
    interrupt: Interrupt<'e>,
    /// The value of each entry, and whether the row has it.
    found: Vec<(Cell, bool)>,
    /// The fields, as JSON.
    fields: Option<String>,
    /// Whether the text with the fields was read, if they are in one.
    has_text: bool,
    why: Option<String>,
}

/// The value at a path of the members of an object; `None` if there is none, or if it is null.
fn at<'t>(json: &'t str, path: &str) -> Option<&'t str> {
    path.split('.').try_fold(json, |json, name| {
        let found = members(json).into_iter().find(|(known, _)| known == name)?.1;
        (found != "null").then_some(found)
    })
}

impl Form {
    /// The part of a row that is the event, if the row has this form.
    fn event<'t>(&self, json: &'t str) -> Option<&'t str> {
        let event = match self.within.map(|within| (within.trim_end_matches('?'), within)) {
            None => json,
            Some((path, within)) => match at(json, path) {
                Some(event) => event,
                None if within.ends_with('?') => json,
                None => return None,
            },
        };
        let has = |path: &&str| at(event, path).is_some_and(|value| value != "\"\"");
        let is_xml = |path| at(event, path).is_some_and(|text| text.contains("<Event"));
        let has_all = self.has.iter().all(|any| any.iter().any(has)) && self.xml.is_none_or(is_xml);
        has_all.then_some(event)
    }
}

impl Source {
    /// The form of a row, and the part of it that is the event.
    pub(crate) fn form_of<'t>(&self, json: &'t str) -> Option<(&Form, &'t str)> {
        self.forms.iter().find_map(|form| Some((form, form.event(json)?)))
    }

    /// What its rows have: `an event of Winlogbeat, which has winlog`.
    pub(crate) fn expected(&self) -> String {
        let has = |form: &Form| {
            let within = form
                .within
                .filter(|path| !path.ends_with('?'))
                .map(|path| format!("{path}."));
            let within = within.unwrap_or_default();
            let names = form.has.iter().map(|any| format!("{within}{}", any.join(" or ")));
            let names = names.collect::<Vec<_>>().join(", ");
            form.is.map_or(names, str::to_owned)
        };
        let mut forms: Vec<String> = self.forms.iter().map(has).collect();
        // A form with more than another one has.
        let all = forms.clone();
        let has_more =
            |form: &String, other: &String| form.starts_with(other) && form[other.len()..].starts_with([',', '.']);
        forms.retain(|form| !all.iter().any(|other| has_more(form, other)));
        forms.dedup();
        format!("an event of {}, which has {}", self.title, forms.join("; or "))
    }
}

impl Events {
    /// The row of an event in JSON, without its error, and why it cannot be read, or not as a whole.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub(crate) fn row(
        &mut self,
        source: &Source,
        times: &Times,
        json: &str,
        interrupt: Interrupt<'_>,
    ) -> Result<(Row, Option<String>, Option<Xml>), Interrupted> {
        let mut row = vec![Cell::Null; COLUMNS.len()];
        let Some((form, event)) = source.form_of(json) else {
            return Ok(match check_json(json, None, interrupt)? {
                JsonCheck::NotJson(why) => (row, Some(why), None),
                _ => (row, Some(format!("expected {}", source.expected())), None),
            });
        };
        let odd = match check_json(event, Some(&form.types), interrupt)? {
            JsonCheck::NotJson(why) => return Ok((row, Some(why), None)),
            JsonCheck::Odd(why) => Some(why),
            JsonCheck::Valid => None,
        };
        let mut reading = Reading {
            form,
            times,
            interrupt,
            found: form.entries.iter().map(|_| (Cell::Null, false)).collect(),
            fields: None,
            has_text: form.root.members.iter().all(|(_, node)| node.inner.is_none()),
            why: None,
        };
        reading.object("", &form.root, event)?;
        // The first value that is there counts, even if it cannot be read.
        for (entry, (cell, is_found)) in form.entries.iter().zip(&mut reading.found).rev() {
            // An empty text is worse than any value.
            let is_empty = *cell == Cell::Text(String::new());
            if *is_found && (!is_empty || row[entry.column] == Cell::Null) {
                row[entry.column] = std::mem::take(cell);
            }
        }
        let why = odd.or(reading.missing(&row)).or(reading.why.take());
        let text = |json: &str| text_of(json).map(Cow::into_owned);
        let mut xml = form.xml.and_then(|path| at(event, path)).and_then(text).map(Xml::Event);
        match (&form.fields, reading.fields) {
            (Some(fields), Some(json)) if fields.are("xml") => xml = text(&json).map(Xml::Fields),
            (Some(fields), Some(json)) => {
                let needs = ["decimal", "values", "flat"].iter().any(|word| fields.are(word));
                let declared = if needs { self.declared(&row) } else { Arc::default() };
                row[*EVENT_DATA] = Cell::Fields(pairs(fields, &json, &declared, &row[*VERSION]));
            }
            // Without fields, but not without any place for them.
            (Some(fields), None)
                if !["text", "xml", "values"].iter().any(|word| fields.are(word))
                    && row[*USER_DATA] == Cell::Null
                    && reading.has_text
                    && row[*EVENT_ID] != Cell::Null =>
            {
                row[*EVENT_DATA] = Cell::Fields(Vec::new());
            }
            _ => {}
        }
        Ok((row, why, xml))
    }

    /// What the provider of a row declares for its event.
    fn declared(&mut self, row: &Row) -> Arc<Declared> {
        let (Cell::Text(provider), Cell::Number(id)) = (&row[*PROVIDER], &row[*EVENT_ID]) else {
            return Arc::default();
        };
        let provider = provider.to_ascii_lowercase();
        if self.declared.len() >= MAX_DECLARED && !self.declared.contains_key(&provider) {
            self.declared.clear();
        }
        let by_id = self.declared.entry(provider).or_insert_with_key(|provider| {
            let mut by_id: HashMap<u64, Declared> = HashMap::new();
            for event in events_of(&HashSet::from([provider.clone()]), &[]) {
                let found = by_id.entry(event.id.into()).or_default();
                let is_hex = |of: ValueType| {
                    !of.array && matches!(of.scalar, Scalar::HexInt32 | Scalar::HexInt64 | Scalar::SizeT)
                };
                let hex = event.fields.iter().filter(|(_, of)| is_hex(*of));
                found.hex.extend(hex.map(|(name, _)| Arc::clone(name)));
                found.all.extend(event.fields.iter().map(|(name, _)| Arc::clone(name)));
                if !event.in_user_data {
                    let names = event.fields.iter().map(|(name, _)| Arc::clone(name));
                    found.names.insert(event.version.into(), names.collect());
                }
            }
            by_id.into_iter().map(|(id, found)| (id, Arc::new(found))).collect()
        });
        by_id.get(id).cloned().unwrap_or_default()
    }
}

impl Reading<'_> {
    /// Keeps why a value cannot be read, if it is the first.
    fn fail(&mut self, why: impl FnOnce() -> String) {
        self.why.get_or_insert_with(why);
    }

    /// Reads the members of an object.
    fn object(&mut self, path: &str, node: &Node, json: &str) -> Result<(), Interrupted> {
        let found = members(json);
        if let Some((object, is_one, names)) = &self.form.members
            && *object == path
        {
            let mut others = found.iter().filter(|(name, _)| !names.contains(&&**name));
            if let Some((name, _)) = others.next().filter(|_| !is_one) {
                self.fail(|| format!("{path}.{name} has no column"));
            } else if *is_one && (found.len() != 1 || !names.contains(&&*found[0].0)) {
                self.fail(|| format!("{path}: expected {}", names.join(" or ")));
            }
        }
        let mut seen = vec![false; node.members.len()];
        for (name, value) in &found {
            let known = node.members.iter().position(|(known, _)| known == name);
            let Some(at) = known.filter(|&at| !std::mem::replace(&mut seen[at], true)) else {
                continue;
            };
            let (name, node) = &node.members[at];
            for &entry in &node.entries {
                self.value(entry, value);
            }
            match &node.inner {
                Some(types) => {
                    let text = text_of(value).unwrap_or_default();
                    let text = without_nuls(&text);
                    let check = check_json(&text, Some(types), self.interrupt)?;
                    if let (JsonCheck::NotJson(why) | JsonCheck::Odd(why), true) = (&check, *value != "null") {
                        self.fail(|| format!("{name}: {why}"));
                    }
                    if !matches!(check, JsonCheck::NotJson(_)) {
                        self.has_text = true;
                        self.object(name, node, &text)?;
                    }
                }
                None if !node.members.is_empty() => self.object(name, node, value)?,
                None => {}
            }
        }
        let fields = self.form.fields.as_ref();
        if path.is_empty() && fields.is_some_and(|fields| fields.not_fields.is_some()) {
            self.fields = Some(json.to_owned());
        }
        Ok(())
    }

    /// Reads the value of an entry.
    fn value(&mut self, index: usize, json: &str) {
        let entry = &self.form.entries[index];
        let Some(text) = text_of(json) else { return };
        let cell = match entry.reads {
            Reads::Fields => {
                let are = |word| self.form.fields.as_ref().is_some_and(|fields| fields.are(word));
                let is_json = || serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
                let is_xml = || {
                    ["<EventData", "<UserData", "<DataItem"]
                        .iter()
                        .any(|tag| text.contains(tag))
                };
                if are("values") && text.trim_start_matches(['[', '"']).starts_with(NO_FIELDS) {
                    self.fail(|| format!("{} has no values: pass -Depth 3 to ConvertTo-Json", entry.path));
                } else if are("xml") && !text.is_empty() && !is_xml() {
                    self.fail(|| format!("{} is not XML with EventData", entry.path));
                } else if are("text") && text.starts_with('{') && !is_json() {
                    self.fail(|| format!("{}: it is not JSON", entry.path));
                } else if json.starts_with(['{', '[']) || are("xml") && !text.is_empty() {
                    self.fields = Some(json.to_owned());
                } else if are("text") && text.starts_with('{') {
                    self.fields = Some(text.into_owned());
                }
                Cell::Null
            }
            Reads::Element => element(json).map_or(Cell::Null, Cell::Text),
            _ => match self.named(entry, json, &text) {
                Some(cell) => cell,
                None => self.cell(entry, json, &text),
            },
        };
        self.found[index] = (cell, true);
    }

    /// What stands for a text, or for the first that a list contains.
    fn named(&self, entry: &Entry, json: &str, text: &str) -> Option<Cell> {
        if entry.names.is_empty() {
            return None;
        }
        let is_one = |name: &str| match json.starts_with('[') {
            true => list(json)
                .into_iter()
                .any(|item| text_of(item).is_some_and(|item| item == name)),
            false => text.eq_ignore_ascii_case(name),
        };
        let value = entry.names.iter().find(|(name, _)| is_one(name))?.1;
        Some(match value {
            Value::String(text) => bits(text, false).map_or_else(|| Cell::Text(text.clone()), Cell::Number),
            Value::Number(number) => number.as_u64().map_or(Cell::Null, Cell::Number),
            _ => Cell::Null,
        })
    }

    fn cell(&mut self, entry: &Entry, json: &str, text: &str) -> Cell {
        let number = |exact: Option<u64>| {
            // A number with an exponent.
            let is_whole = |number: &f64| number.fract() == 0.0 && (0.0..1e19).contains(number);
            exact.or_else(|| json.parse().ok().filter(is_whole).map(|number| number as u64))
        };
        let column = &COLUMNS[entry.column];
        let cell = match (column.data_type(), entry.reads) {
            (_, Reads::Signed) => number(bits(text, true)).map(Cell::Number),
            (_, Reads::Hex) => number(bits(text, false)).map(Cell::Number),
            (DataType::Timestamp(..), reads) if json.starts_with('"') => {
                let read = self.times.read(text, reads != Reads::Local);
                if let Err(why) = &read
                    && (!text.is_empty() || reads != Reads::Column)
                {
                    self.fail(|| format!("{} {why}", entry.path.replace('!', "")));
                }
                read.ok().flatten().map(Cell::Time)
            }
            (DataType::Timestamp(..), Reads::Seconds) => json.parse().ok().and_then(of_seconds).map(Cell::Time),
            (DataType::Timestamp(..), _) => None,
            (_, Reads::Names) => None,
            (DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64, _) => {
                number(whole(text)).map(Cell::Number)
            }
            (DataType::FixedSizeBinary(_), _) => guid(text).map(Cell::Guid),
            _ if column.extension_type_name() == Some("arrow.json") && json.starts_with('"') => Some(Cell::Null),
            _ => Some(Cell::Text(text.to_owned())),
        };
        if cell.is_none() && (entry.is_strict || entry.reads == Reads::Signed) && !text.is_empty() {
            let what = if entry.is_strict { "known name" } else { "number" };
            self.fail(|| format!("{} is not a {what}", entry.path));
        }
        cell.unwrap_or_default()
    }

    /// What the row lacks that each event of the source has.
    fn missing(&self, row: &Row) -> Option<String> {
        let has = |column: usize| {
            let mut entries = self
                .form
                .entries
                .iter()
                .zip(&self.found)
                .filter(|(entry, _)| entry.column == column);
            let is_empty = row[column] == Cell::Text(String::new());
            entries.any(|(entry, (_, is_found))| *is_found && !is_empty || entry.is_nullable)
        };
        let lacks = |column: usize| match column {
            _ if column == *EVENT_ID => row[column] == Cell::Null,
            _ if column == *PROVIDER => !has(column) && !has(*PROVIDER_GUID),
            _ => !has(column),
        };
        let paths = |column: usize| {
            let entries = self.form.entries.iter().filter(move |entry| entry.column == column);
            let paths: Vec<_> = entries.map(|entry| entry.path.replace(['!', '{', '}'], "")).collect();
            (!paths.is_empty()).then(|| {
                format!(
                    "there is no {}: expected {}",
                    COLUMNS[column].name(),
                    paths.join(" or ")
                )
            })
        };
        ALWAYS
            .iter()
            .filter(|&&column| lacks(column))
            .find_map(|&column| paths(column))
    }
}

/// The items of a list.
fn list(json: &str) -> Vec<&str> {
    let items: Vec<&serde_json::value::RawValue> = serde_json::from_str(json).unwrap_or_default();
    items.into_iter().map(|item| item.get()).collect()
}

/// An object whose member `xml_name` names the element that it stands for.
fn element(json: &str) -> Option<String> {
    let all = members(json);
    let name = all
        .iter()
        .find(|(name, _)| name == "xml_name")
        .and_then(|(_, name)| text_of(name));
    let others = all.iter().filter(|(name, _)| name != "xml_name");
    let others = others.map(|(name, value)| format!("{}:{}", Value::from(&**name), compact(value)));
    let others: Vec<_> = others.collect();
    json.starts_with('{').then(|| {
        format!(
            "{{{}:{{{}}}}}",
            Value::from(&*name.unwrap_or_default()),
            others.join(",")
        )
    })
}

/// The fields of an event.
fn pairs(fields: &Fields, json: &str, declared: &Declared, version: &Cell) -> Vec<Pair> {
    let text = |value: &str| text_of(value).map(Cow::into_owned);
    let (mut first, mut named, mut last) = (Vec::new(), Vec::new(), Vec::new());
    if fields.are("values") {
        let names = if let Cell::Number(version) = version {
            declared.names.get(version)
        } else {
            None
        };
        let values = list(json);
        // Another version of the event has other fields.
        let names = names.filter(|names| names.len() == values.len());
        let name = |at: usize| names.map(|names| names[at].to_string());
        first.extend(
            values
                .iter()
                .enumerate()
                .map(|(at, value)| (name(at), Some(inner_text(value)))),
        );
    }
    let not_fields = fields.not_fields.as_deref().unwrap_or_default();
    for (name, value) in members(json) {
        let texts = (name == "Data" && fields.are("unnamed"))
            .then(|| at(value, "#text"))
            .flatten();
        match &*name {
            _ if texts.is_some() => {
                let texts = texts.unwrap_or_default();
                let all = if texts.starts_with('[') {
                    list(texts)
                } else {
                    vec![texts]
                };
                first.extend(all.into_iter().filter_map(text).map(|text| (None, Some(text))));
            }
            "Data" if fields.are("listed") => {
                let all = match value.as_bytes().first() {
                    Some(b'[') => list(value),
                    Some(b'n') | None => Vec::new(),
                    Some(_) => vec![value],
                };
                first.extend(all.into_iter().map(item));
            }
            "Binary" if fields.are("binary") => {
                last.extend(
                    text(value)
                        .filter(|text| !text.is_empty())
                        .map(|text| (Some(name.into_owned()), Some(text.replace('-', "")))),
                );
            }
            "#attributes" => {}
            // An event can have a field of this name.
            known if not_fields.contains(&known) && !declared.all.contains(known) => {}
            attribute if attribute.starts_with('@') => {}
            _ => match text(value) {
                None if fields.are("nulls") => named.push((Some(name.into_owned()), None)),
                None if fields.are("empty") => named.push((Some(name.into_owned()), Some(String::new()))),
                None => {}
                Some(text) if text.is_empty() && fields.are("filled") => {}
                text => named.push((Some(name.into_owned()), text)),
            },
        }
    }
    first.extend(named);
    first.extend(last);
    for (name, value) in &mut first {
        if let Some(text) = value {
            restore(fields, name.as_deref().unwrap_or_default(), text, &declared.hex);
        }
    }
    first
}

/// A value in objects with nothing but it: `{"Value": {"Value": "S-1-5-18"}}`.
fn inner_text(json: &str) -> String {
    let inner = at(json, "Value").map(|inner| at(inner, "Value").unwrap_or(inner));
    let is_empty = inner.is_none() && json.starts_with('{');
    let text = if is_empty { None } else { text_of(inner.unwrap_or(json)) };
    text.unwrap_or_default().into_owned()
}

/// An item of `Data`: a text, or an object with a name and a value.
fn item(json: &str) -> Pair {
    if !json.starts_with('{') {
        return (None, Some(text_of(json).unwrap_or_default().into_owned()));
    }
    let all = members(json);
    let of = |name: &str| all.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
    let is_xml = of("@Name").or(of("#text")).is_some();
    let names = if is_xml { ["@Name", "#text"] } else { ["Name", "Value"] };
    let [name, value] = names.map(|name| of(name).and_then(text_of));
    let others = all.iter().filter(|(name, _)| !names.contains(&&**name));
    let others: Vec<_> = others
        .map(|(name, value)| format!("{}:{}", Value::from(&**name), compact(value)))
        .collect();
    let value = match value {
        Some(value) => value.into_owned(),
        None if others.is_empty() => String::new(),
        None => format!("{{{}}}", others.join(",")),
    };
    (name.map(Cow::into_owned), Some(value))
}

/// Writes a value as logs have it.
fn restore(fields: &Fields, name: &str, text: &mut String, hex: &HashSet<Arc<str>>) {
    let is_case = |letter: u8, is_upper: bool| {
        letter.is_ascii_digit() || letter == b'-' || letter.is_ascii_uppercase() == is_upper
    };
    let is_guid =
        |is_upper| text.len() == 36 && text.bytes().all(|letter| is_case(letter, is_upper)) && guid(text).is_some();
    if fields.are("GUIDS") && is_guid(true) || fields.are("guids") && is_guid(false) {
        *text = format!("{{{}}}", text.to_ascii_lowercase());
    } else if fields.are("hex")
        && let Some(digits) = text.strip_prefix("0x")
        && (1..=16).contains(&digits.len())
        && digits
            .bytes()
            .all(|digit| digit.is_ascii_digit() || (b'A'..=b'F').contains(&digit))
    {
        text.make_ascii_lowercase();
    } else if fields.are("decimal")
        && hex.contains(name)
        && let Ok(number) = text.parse::<u64>()
    {
        *text = format!("{number:#x}");
    }
}
