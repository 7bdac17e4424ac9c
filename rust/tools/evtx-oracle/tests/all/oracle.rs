//! The oracle: what XPath gives on the XML that the `evtx` crate renders, compared with the columns.
//!
//! Where the rules of the table say otherwise than the XML (`param1`, `_1`, arrays as one entry),
//! [`check_event_data`] states the rule.

use std::collections::HashMap;

use crate::common::xml::{Element, Node, is_called};
use crate::common::{cell, entries, every_column, read};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use evtx::{EvtxParser, ParserSettings};
use evtx_arrow::{Options, reference};

impl Element {
    /// The rules of `fields`: the values of the element, called `name`, and of those in it. Which `param` it is that has
    /// no name does not count: XML does not show which elements are the items of one array.
    fn values(&self, name: &str, values: &mut Vec<(String, String)>) {
        for (key, value) in &self.attributes {
            let is_name = key == "Name" && is_called(self) || key == "xmlns" || key.starts_with("xmlns:");
            if !is_name && !value.is_empty() {
                values.push((format!("{name}.{key}"), value.clone()));
            }
        }
        let is_text = |node: &Node| matches!(node, Node::Text(_));
        for run in self.content.chunk_by(|a, b| is_text(a) && is_text(b)) {
            if let [Node::Element(child)] = run {
                let called = child.xpath("@Name").filter(|name| is_called(child) && !name.is_empty());
                let own = if child.name == "Data" { "param" } else { &child.name };
                child.values(called.as_deref().unwrap_or(own), values);
                continue;
            }
            let text: String = run
                .iter()
                .map(|node| match node {
                    Node::Text(text) => text.as_str(),
                    Node::Element(_) => "",
                })
                .collect();
            if !text.is_empty() {
                values.push((name.to_owned(), text));
            }
        }
    }
}

/// Compares `fields` with the values in the XML, and `text` with `fields`.
fn check_values(fields: Option<&str>, text: Option<&str>, event: &Element) -> Result<usize, String> {
    let mut expected = Vec::new();
    event.values(&event.name, &mut expected);
    let found: Vec<(String, String)> = serde_json::from_str(fields.ok_or("no fields")?).expect("fields");
    let lines: Vec<String> = found.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    if text != Some(&*lines.join("\n")) {
        return Err(format!("{text:?} for {found:?}"));
    }
    let without_number = |name: &str| {
        let rest = name.strip_prefix("param")?;
        Some(rest.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned())
    };
    let is_same = |(found, expected): (&(String, String), &(String, String))| {
        let is_param = without_number(&found.0).is_some_and(|rest| Some(&*rest) == expected.0.strip_prefix("param"));
        (is_param || found.0 == expected.0) && found.1 == expected.1
    };
    if found.len() == expected.len() && found.iter().zip(&expected).all(is_same) {
        Ok(found.len())
    } else {
        Err(format!("{found:?} in place of {expected:?}"))
    }
}

/// Columns that are read from one place in the XML.
const FIELDS: &[(&str, &str)] = &[
    ("time_created", "System/TimeCreated/@SystemTime"),
    ("event_id", "System/EventID"),
    ("level", "System/Level"),
    ("provider", "System/Provider/@Name"),
    ("channel", "System/Channel"),
    ("computer", "System/Computer"),
    ("message", "RenderingInfo/Message"),
    ("task", "System/Task"),
    ("opcode", "System/Opcode"),
    ("keywords", "System/Keywords"),
    ("version", "System/Version"),
    ("qualifiers", "System/EventID/@Qualifiers"),
    ("provider_guid", "System/Provider/@Guid"),
    ("event_source_name", "System/Provider/@EventSourceName"),
    ("process_id", "System/Execution/@ProcessID"),
    ("thread_id", "System/Execution/@ThreadID"),
    ("activity_id", "System/Correlation/@ActivityID"),
    ("related_activity_id", "System/Correlation/@RelatedActivityID"),
    ("user_sid", "System/Security/@UserID"),
    ("event_record_id", "System/EventRecordID"),
];

#[test]
fn every_column_with_a_path_is_compared() {
    let fields = FIELDS.iter().map(|&(name, path)| (name.to_owned(), path.to_owned()));
    let columns = reference().into_iter().filter(|column| column.path.contains('/'));
    let columns: Vec<_> = columns
        .map(|column| (column.field.name().clone(), column.path))
        .collect();
    assert_eq!(fields.collect::<Vec<_>>(), columns);
}

/// What a column of a type makes of the XML's text.
fn expected(column_type: &DataType, text: &str) -> Option<String> {
    match column_type {
        DataType::Timestamp(..) => {
            let time: jiff::Timestamp = text.trim().parse().ok()?;
            i64::try_from(time.as_nanosecond()).ok().map(|nanos| nanos.to_string())
        }
        DataType::FixedSizeBinary(_) => uuid::Uuid::try_parse(text.trim())
            .ok()
            .map(|uuid| uuid.simple().to_string()),
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
            // Neither form has a sign.
            let text = Some(text.trim()).filter(|text| !text.contains('+'))?;
            let number = match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok()?,
                None => text.parse::<u64>().ok()?,
            };
            let bits = 8 * column_type.primitive_width()? as u32;
            (number <= u64::MAX >> (64 - bits)).then(|| number.to_string())
        }
        _ => Some(text.to_owned()),
    }
}

/// Whether the oracle's XML is ours. It has `_` for characters that XML 1.0 does not allow, and for lone surrogates, where
/// Windows writes the characters. Its JSON has them, too.
fn is_same_xml(oracle: &str, found: &str) -> bool {
    let is_replaced = |c: char| c < ' ' || matches!(c, '\u{fffd}'..='\u{ffff}');
    let is_same = |(expected, found): (char, char)| expected == found || expected == '_' && is_replaced(found);
    oracle.chars().count() == found.chars().count() && oracle.chars().zip(found.chars()).all(is_same)
}

/// The rules of `event_data`: a leaf is an entry by the name that it carries, or its element's; `Data`
/// without a name is `param1`, `param2`, …; a name that comes back is `name_1`, `name_2`, …; the elements
/// with a name that one array value makes are one entry, the JSON array of their texts.
fn check_event_data(found: Option<&[(String, Option<String>)]>, event: &Element) -> Result<usize, String> {
    let Some(element) = event.event_data() else {
        return if found.is_none() {
            Ok(0)
        } else {
            Err("entries without EventData".to_owned())
        };
    };
    let found = found.ok_or("no entries for EventData")?;
    let mut leaves = Vec::new();
    element.leaves(&mut leaves);
    if leaves.is_empty() && !element.text().is_empty() {
        leaves.push((Some(&*element.name), element.text()));
    }
    let mut leaves = &leaves[..];
    let numbered = element.numbered();
    let mut numbers = numbered.iter().filter(|leaf| leaf.0.is_none()).map(|leaf| leaf.1);
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (key, value) in found {
        let value = value.as_deref().ok_or("a NULL value")?;
        let Some((name, text)) = leaves.first() else {
            return Err(format!("no element for entry {key}"));
        };
        let base = name.map_or_else(|| format!("param{}", numbers.next().unwrap_or_default()), str::to_owned);
        let count = seen.entry(base.clone()).or_insert(0);
        let expected = if *count == 0 { base } else { format!("{base}_{count}") };
        *count += 1;
        if *key != expected {
            return Err(format!("entry {key} in place of {expected}"));
        }
        let items: Option<Vec<serde_json::Value>> = (value != text).then(|| serde_json::from_str(value).ok()).flatten();
        let items = items.filter(|_| name.is_some()).unwrap_or_else(|| vec![value.into()]);
        let texts: Vec<String> = items
            .iter()
            .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
            .collect();
        let (head, tail) = leaves.split_at_checked(texts.len()).ok_or("too many items")?;
        if !head
            .iter()
            .zip(&texts)
            .all(|(leaf, text)| leaf.0 == *name && leaf.1 == *text)
        {
            return Err(format!("entry {key} is {value:?} in place of {head:?}"));
        }
        leaves = tail;
    }
    match leaves {
        [] => Ok(found.len()),
        [leaf, ..] => Err(format!("no entry for {leaf:?}")),
    }
}

/// What the oracle makes of a log: each record's ID with its XML and JSON, or its error.
fn oracle(file: &[u8]) -> Vec<Result<(u64, String, String), String>> {
    let parser = || {
        let settings = ParserSettings::new().num_threads(1).indent(false);
        EvtxParser::from_buffer(file.to_vec())
            .expect("a log")
            .with_configuration(settings)
    };
    let (mut xml, mut json) = (parser(), parser());
    let pairs: Vec<_> = xml.records().zip(json.records_json()).collect();
    pairs
        .into_iter()
        .map(|(xml, json)| match (xml, json) {
            (Ok(xml), Ok(json)) => Ok((xml.event_record_id, xml.data, json.data)),
            (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
        })
        .collect()
}

/// Where a difference is: file, record ID or `*` for the log, column.
pub(crate) type Place = (String, String, String);

/// What was compared, and what differs.
#[derive(Default)]
pub(crate) struct Comparison {
    pub(crate) records: usize,
    pub(crate) values: usize,
    pub(crate) differences: Vec<(Place, String)>,
}

impl Comparison {
    fn differ(&mut self, file: &str, record: impl ToString, column: &str, what: String) {
        self.differences
            .push(((file.to_owned(), record.to_string(), column.to_owned()), what));
    }

    /// Compares every default column of every record of a log.
    pub(crate) fn log(&mut self, file: &str, bytes: &[u8]) {
        let options = Options {
            xml: true,
            json: true,
            text: true,
            fields: true,
            ..Options::default()
        };
        let batches = read(bytes, file, options, &every_column(&options)).expect("a log");
        let rows: Vec<(&RecordBatch, usize)> = batches
            .iter()
            .flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)))
            .collect();
        let oracle = oracle(bytes);
        let expected: Vec<_> = oracle.iter().flatten().collect();
        let sound: Vec<_> = rows
            .iter()
            .filter(|(batch, row)| cell(batch, "error", *row).is_none())
            .collect();
        let damaged = rows.len() - sound.len();
        let errors = oracle.len() - expected.len();
        if (damaged == 0) != (errors == 0) {
            self.differ(
                file,
                "*",
                "error",
                format!("{damaged} damaged rows, {errors} errors of the oracle"),
            );
        }
        let ids: Vec<String> = sound
            .iter()
            .map(|(batch, row)| cell(batch, "record_id", *row).expect("an ID"))
            .collect();
        let expected_ids: Vec<String> = expected.iter().map(|(id, ..)| id.to_string()).collect();
        if ids != expected_ids {
            let at = ids
                .iter()
                .zip(&expected_ids)
                .position(|(a, b)| a != b)
                .unwrap_or(ids.len().min(expected_ids.len()));
            let what = format!(
                "{} rows, {} records of the oracle, first other at {at}: {:?} in place of {:?}",
                ids.len(),
                expected_ids.len(),
                ids.get(at),
                expected_ids.get(at)
            );
            self.differ(file, "*", "record_id", what);
        }
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for id in &ids {
            *counts.entry(id).or_default() += 1;
        }
        // Records that only one of the two has must not hide the others.
        let mut expected = expected.into_iter();
        for ((batch, row), id) in sound.into_iter().zip(&ids) {
            let id = id.clone();
            let xml = cell(batch, "xml", *row).unwrap_or_default();
            let mut ahead = expected.clone();
            // Of records that share an ID, one that was hidden and one that got its ID, the oracle has one.
            let is_it = |(expected, text, _): &&(u64, String, String)| {
                expected.to_string() == id && (counts[&*id] == 1 || is_same_xml(text, &xml))
            };
            if let Some((_, expected_xml, json)) = ahead.find(is_it) {
                expected = ahead;
                if !is_same_xml(expected_xml, &xml) {
                    self.differ(file, &id, "xml", format!("{xml:?}\n  in place of\n {expected_xml:?}"));
                }
                self.record(file, &id, batch, *row, &xml, json);
            }
        }
    }

    /// Compares a record with its XML, which is as the oracle's, and with the oracle's JSON.
    fn record(&mut self, file: &str, id: &str, batch: &RecordBatch, row: usize, xml: &str, json: &str) {
        self.records += 1;
        self.values += 2;
        let found = cell(batch, "json", row);
        if found.as_deref() != Some(json) {
            self.differ(file, id, "json", format!("{found:?}\n  in place of\n {json:?}"));
        }
        let event = Element::parse(xml);
        for (column, path) in FIELDS {
            let array = batch.column_by_name(column).expect("a column");
            let expected = event.xpath(path).and_then(|text| expected(array.data_type(), &text));
            let found = cell(batch, column, row);
            self.values += 1;
            if found != expected {
                self.differ(file, id, column, format!("{found:?} in place of {expected:?}"));
            }
        }
        match check_event_data(entries(batch, row).as_deref(), &event) {
            Ok(_) => self.values += 1,
            Err(what) => self.differ(file, id, "event_data", what),
        }
        let [fields, text] = ["fields", "text"].map(|column| cell(batch, column, row));
        match check_values(fields.as_deref(), text.as_deref(), &event) {
            Ok(count) => self.values += count,
            Err(what) => self.differ(file, id, "text", what),
        }
        let json: HashMap<String, HashMap<String, Box<serde_json::value::RawValue>>> = match serde_json::from_str(json)
        {
            Ok(json) => json,
            Err(error) => panic!("{file} {id}: {error}: {json}"),
        };
        let expected = json["Event"]
            .get("UserData")
            .map(|json| json.get())
            .filter(|json| *json != "null");
        let found = cell(batch, "user_data", row);
        self.values += 1;
        if found.as_deref() != expected {
            self.differ(file, id, "user_data", format!("{found:?} in place of {expected:?}"));
        }
        if cell(batch, "filename", row).as_deref() != Some(file) {
            self.differ(file, id, "filename", "another".to_owned());
        }
    }
}

/// The values of an event by the names that Sigma rules have for them, from the oracle's XML: those of `System`, the
/// leaves of `EventData` and `UserData`, and then what else the event has.
pub(crate) fn sigma_values(xml: &str) -> Vec<(String, Option<String>)> {
    let event = Element::parse(xml);
    let mut values = Vec::new();
    let children = |name: &'static str| event.children().filter(move |child| child.name == name).take(1);
    for element in children("System").flat_map(Element::children) {
        let is_text = !["Provider", "TimeCreated", "Correlation", "Execution", "Security"].contains(&&*element.name);
        if is_text {
            values.push((element.name.clone(), Some(element.text())));
        }
        for (key, value) in &element.attributes {
            values.push((format!("{}_{key}", element.name), Some(value.clone())));
        }
    }
    for element in event.event_data().into_iter().chain(children("UserData")) {
        let mut leaves = Vec::new();
        element.leaves(&mut leaves);
        if leaves.is_empty() && !element.text().is_empty() {
            leaves.push((Some(&element.name), element.text()));
        }
        let named = leaves
            .into_iter()
            .map(|(name, text)| (name.unwrap_or("Data").replace(' ', ""), Some(text)));
        values.extend(named);
    }
    for child in event.children().filter(|child| child.name != "System") {
        let has_leaves = child.name == "UserData" || event.event_data().is_some_and(|data| std::ptr::eq(data, child));
        child.other_values(has_leaves, "", &mut values);
    }
    // The event log says so which log was cleared.
    let is = |name: &str, text: &str| values.contains(&(name.to_owned(), Some(text.to_owned())));
    let is_cleared =
        is("Provider_Name", "Microsoft-Windows-Eventlog") && (is("EventID", "104") || is("EventID", "1102"));
    let mut channels = values.iter_mut().filter(|(name, _)| name == "Channel");
    if let (Some((of_system, _)), Some(_), true) = (channels.next(), channels.next(), is_cleared) {
        *of_system = evtx_sigma::SYSTEM_CHANNEL.to_owned();
    }
    values
}

impl Element {
    /// The values of an element but for its text if that is a leaf: attributes, and text between elements. The names of
    /// those outside of `EventData` and `UserData` begin with `RenderingInfo.` or whatever child of `Event` it is.
    fn other_values(&self, has_leaves: bool, prefix: &str, values: &mut Vec<(String, Option<String>)>) {
        let called = self.xpath("@Name").filter(|name| is_called(self) && !name.is_empty());
        let name = format!("{prefix}{}", called.as_ref().unwrap_or(&self.name)).replace(' ', "");
        for (key, value) in &self.attributes {
            let is_name = key == "Name" && is_called(self) || key == "xmlns" || key.starts_with("xmlns:");
            if !is_name && !value.is_empty() {
                values.push((format!("{name}.{key}"), Some(value.clone())));
            }
        }
        let is_leaf = self.children().next().is_none();
        let inner = match (has_leaves, prefix) {
            (false, "") => format!("{}.", self.name),
            _ => prefix.to_owned(),
        };
        let is_text = |node: &Node| matches!(node, Node::Text(_));
        for run in self.content.chunk_by(|a, b| is_text(a) && is_text(b)) {
            let mut text = String::new();
            for node in run {
                match node {
                    Node::Element(child) => child.other_values(has_leaves, &inner, values),
                    Node::Text(piece) => text.push_str(piece),
                }
            }
            let is_entry = is_leaf && has_leaves;
            if !is_entry && !text.is_empty() {
                values.push((name.clone(), Some(text)));
            }
        }
    }
}
