//! Tables of certain events: their fields as columns of their own.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;

use crate::common::recovered::Recovering;
use crate::common::xml::user_leaves;
use crate::common::{self, AsTable, cell, corpus, entries, every_column, read, samples, scan, slots};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_schema::DataType;
use evtx_arrow::{Comparison, Events, Expression, Literal, OnError, Options, Predicate, Scan, Table};
use evtx_events::EventCollector;
use evtx_format::Interrupt;
use evtx_writer::{Element, Event, Fragment, LogWriter, Stream, Substitution, Template, Value};
use proptest::collection::vec;
use proptest::prelude::*;

fn of(ids: &[u32]) -> Events {
    Events::of_ids(ids.iter().copied())
}

/// The table of events as a collector makes it from files.
fn table(files: &[&[u8]], events: Events, options: Options) -> Table {
    let mut collector = EventCollector::new(Some(events.clone()));
    for file in files {
        collector.push(slots(file), Interrupt::NEVER).expect("few events");
    }
    Table::of_events(options, events, &collector.fields(), &[])
}

/// All of a table's columns of a file.
fn rows(file: &[u8], table: &Table) -> Vec<RecordBatch> {
    let every: Vec<usize> = (0..table.schema().fields().len()).collect();
    let mut batches = Vec::new();
    scan(file, "x.evtx", Scan::new(table.clone(), &every), |batch| {
        batches.push(batch)
    })
    .expect("a log");
    batches
}

/// The events of a file, by ID.
fn ids(file: &[u8]) -> BTreeSet<u32> {
    let options = Options::default();
    let batches = read(file, "x.evtx", options, &[common::column(&options, "event_id")]).expect("a log");
    let ids = batches
        .iter()
        .flat_map(|batch| batch.column(0).as_primitive::<UInt32Type>().iter().flatten());
    ids.collect()
}

/// The texts of the items of a JSON array. In a column of texts, numbers are texts, too.
fn texts_in(json: &str) -> Option<Vec<String>> {
    let items: Vec<serde_json::Value> = serde_json::from_str(json).ok()?;
    let text = |item: serde_json::Value| item.as_str().map_or_else(|| item.to_string(), str::to_owned);
    Some(items.into_iter().map(text).collect())
}

/// Whether a column holds what `event_data` has as text.
fn agrees(data_type: &DataType, value: Option<&str>, text: Option<&str>) -> bool {
    let Some(text) = text else { return value.is_none() };
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    match data_type {
        DataType::Utf8View => value == Some(text),
        DataType::Boolean => value == Some(text).filter(|text| ["true", "false"].contains(text)),
        DataType::Timestamp(..) => {
            let nanos = text
                .parse::<jiff::Timestamp>()
                .ok()
                .and_then(|time| i64::try_from(time.as_nanosecond()).ok());
            value == nanos.map(|nanos| nanos.to_string()).as_deref()
        }
        DataType::FixedSizeBinary(_) => {
            let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
            let digits = digits.to_lowercase();
            value == Some(&digits).filter(|digits| digits.len() == 32).map(String::as_str)
        }
        DataType::Binary => value.map(str::to_uppercase).as_deref() == Some(text),
        DataType::Float32 | DataType::Float64 => value.map(str::parse::<f64>) == Some(text.parse()),
        // A single item is shown as such, several as JSON.
        DataType::List(_) => match value {
            Some("[]") => text.is_empty(),
            Some(value) => {
                let items = texts_in(value);
                value == format!("[{text}]") || items == texts_in(text) || items == Some(vec![text.to_owned()])
            }
            None => false,
        },
        _ => value.and_then(number) == number(text),
    }
}

/// Names the fields of an event as their columns are named, in small letters. The first with a name in any case has the column
/// of this name, with a prefix if all events have that column. Others, and those whose prefix makes the name of a field, have
/// the next number with which no event has a field.
fn name_as_columns(texts: &mut [(String, Option<String>)], every: &BTreeSet<String>) {
    let schema = Recovering(Options::ALL).table().schema();
    let mut taken = BTreeSet::new();
    for (name, _) in texts {
        let field = name.to_lowercase();
        let is_prefixed = schema.fields().iter().any(|column| *column.name() == field);
        let column = if is_prefixed { format!("data_{field}") } else { field };
        let numbered = (1..).map(|number| format!("{column}_{number}"));
        let mut free = numbered.filter(|name| !every.contains(name));
        *name = column.clone();
        while is_prefixed && every.contains(&*name) || !taken.insert(name.clone()) {
            *name = free.next().expect("a number");
        }
    }
}

/// The names of all fields of a row, and whether they are those of `UserData`.
fn texts_of(batch: &RecordBatch, row: usize) -> (Vec<(String, Option<String>)>, bool) {
    let mut texts = entries(batch, row).unwrap_or_default();
    let is_user_data = cell(batch, "user_data", row).is_some();
    if is_user_data {
        // No event has both.
        assert!(texts.is_empty());
        let xml = cell(batch, "xml", row).expect("it can be read");
        texts.extend(user_leaves(&xml).into_iter().map(|(key, text)| (key, Some(text))));
    }
    (texts, is_user_data)
}

/// Every typed value of every event, against the text that `event_data` or the XML of `UserData` has of it.
fn compare(logs: &[PathBuf]) {
    let (mut values, mut user_data, mut columns) = (0, 0, BTreeSet::new());
    for log in logs {
        let file = std::fs::read(log).expect("a file");
        let of_log = compare_file(&log.display().to_string(), &file, &mut columns);
        (values, user_data) = (values + of_log.0, user_data + of_log.1);
    }
    println!(
        "{values} values of {} logs, {user_data} in UserData, of the types {columns:?}",
        logs.len()
    );
    assert!(logs.is_empty() || user_data > 5);
    assert!(logs.is_empty() || columns.len() > 5);
}

/// Compares one log. Returns how many values it has, and how many leaves of `UserData`.
fn compare_file(log: &str, file: &[u8], columns: &mut BTreeSet<String>) -> (usize, usize) {
    let (mut values, mut user_data) = (0, 0);
    for id in ids(file) {
        let options = Options {
            xml: true,
            ..Options::default()
        };
        let table = table(&[file], of(&[id]), options);
        let schema = table.schema();
        let system = common::column(&options, "event_data");
        let fields = schema.fields().len() - every_column(&options).len();
        let every: Vec<usize> = (0..schema.fields().len()).collect();
        let mut trees = Vec::new();
        scan(
            file,
            "x.evtx",
            Scan::new(table.clone(), &every).force_tree_path(),
            |batch| trees.push(batch),
        )
        .expect("a log");
        let batches = rows(file, &table);
        assert_eq!(batches.len(), trees.len());
        let readable = |batch: &RecordBatch, row: &usize| cell(batch, "event_id", *row).is_some();
        let every_name: BTreeSet<String> = batches
            .iter()
            .flat_map(|batch| {
                (0..batch.num_rows())
                    .filter(|row| readable(batch, row))
                    .flat_map(|row| texts_of(batch, row).0)
            })
            .map(|(name, _)| name.to_lowercase())
            .collect();
        for (batch, tree) in batches.iter().zip(&trees) {
            for row in 0..batch.num_rows() {
                let event = cell(batch, "event_id", row);
                if event.is_none() && cell(batch, "error", row).is_some() {
                    // Damage that may have cost one of the events.
                    continue;
                }
                assert_eq!(event, Some(id.to_string()));
                let (mut texts, is_user_data) = texts_of(batch, row);
                user_data += if is_user_data { texts.len() } else { 0 };
                name_as_columns(&mut texts, &every_name);
                for column in system..system + fields {
                    let field = schema.field(column);
                    let name = field.name();
                    let key = &*name.to_lowercase();
                    let items = texts.iter().filter(|(known, _)| {
                        known.strip_prefix(key).is_some_and(|rest| {
                            let rest = rest.strip_prefix('_').unwrap_or(rest);
                            rest.chars().all(|c| c.is_ascii_digit())
                        })
                    });
                    if field.data_type().is_nested() && is_user_data && items.count() > 1 {
                        // XML does not show which elements are the items of an array.
                        continue;
                    }
                    let text = texts
                        .iter()
                        .find(|(known, _)| known == key)
                        .and_then(|(_, text)| text.as_deref());
                    let value = cell(batch, name, row);
                    assert!(
                        agrees(field.data_type(), value.as_deref(), text),
                        "{log}, event {id}, {field:?}: {value:?} for {text:?}"
                    );
                    assert_eq!(value, cell(tree, name, row), "{log}, event {id}, {field:?}: tree");
                    values += 1;
                    columns.insert(field.data_type().to_string());
                }
                let every = schema.fields().iter().map(|field| field.name().to_lowercase());
                let every: BTreeSet<_> = every.collect();
                let has_column = |key: &str| every.contains(key);
                assert!(
                    is_user_data || texts.iter().all(|(key, _)| has_column(key)),
                    "{log}, event {id}: {texts:?} have other columns than {every:?}"
                );
            }
        }
    }
    (values, user_data)
}

#[test]
fn every_field_of_the_samples_is_what_event_data_says() {
    compare(&samples());
}

#[test]
fn every_field_of_the_corpus_is_what_event_data_says() {
    compare(&corpus());
}

/// A field with a name, or without one if it is empty: its declared type, and its value.
fn any_field() -> impl Strategy<Value = (&'static str, u8, Value)> {
    let names = prop_oneof![
        6 => Just(""),
        3 => prop::sample::select(&["a", "A", "Binary", "task", "a_1", "A_1", "a_2", "data_task", "data_a"][..]),
        1 => prop::sample::select(&["param1", "Param2", "parameter", "param2_1"][..]),
    ];
    let texts = || prop::sample::select(&["x", "y z", "7", ""][..]).prop_map(str::to_owned);
    let values = prop_oneof![
        4 => vec(texts(), 0..5).prop_map(|texts| (0x81, Value::StringArray(texts))),
        2 => vec(0..9_u32, 0..4).prop_map(|numbers| (0x88, Value::UInt32Array(numbers))),
        2 => texts().prop_map(|text| (1, Value::string(text))),
        1 => Just((0x81, Value::Null)),
    ];
    (names, values).prop_map(|(name, (declared, value))| (name, declared, value))
}

proptest! {
    #![proptest_config(crate::common::generated(200))]

    /// Also if records of one template have arrays of different lengths, and other templates have other names.
    #[test]
    fn items_of_arrays_are_called_alike_in_event_data_and_columns(
        events in vec((vec(any_field(), 0..5), 0..3_usize), 1..12),
    ) {
        let mut records = Vec::new();
        for (at, (fields, of)) in events.iter().enumerate() {
            let shape: Vec<_> = fields.iter().map(|(name, declared, _)| (*name, *declared)).collect();
            let template = template(2 * at as u8, 7, &shape);
            records.push(event(&template, fields.iter().map(|(.., value)| value.clone()).collect()));
            // The values of another event, as far as they are there.
            let others = &events[at % (of + 1)].0;
            let values = fields.iter().zip(others).map(|((_, declared, value), (_, other, instead))| {
                if declared == other { instead } else { value }.clone()
            });
            records.push(event(&template, values.collect()));
        }
        compare_file("generated", &log(&records), &mut BTreeSet::new());
    }
}

/// A template of an event with an ID and fields: name, and the byte of the type that is declared.
fn template(guid: u8, id: u32, fields: &[(&str, u8)]) -> (std::sync::Arc<Template>, std::sync::Arc<Template>) {
    let mut data = Element::new("EventData");
    for (index, (name, value_type)) in fields.iter().enumerate() {
        let leaf = Element::new("Data").attribute("Name", *name);
        data = data.child(leaf.substitution(Substitution::new(index as u16, *value_type)));
    }
    let system = Element::new("System").child(Element::new("EventID").text(id.to_string()));
    let event = Element::new("Event")
        .child(system)
        .substitution(Substitution::new(0, 33));
    (Template::new([guid; 16], event), Template::new([guid + 1; 16], data))
}

fn event((outer, inner): &(std::sync::Arc<Template>, std::sync::Arc<Template>), values: Vec<Value>) -> Event {
    let data = Stream::new(vec![Fragment::Instance(Event::new(inner, values))]);
    Event::new(outer, vec![Value::BinXml(data)])
}

fn log(events: &[Event]) -> Vec<u8> {
    let mut log = LogWriter::new(1);
    for event in events {
        log.write(0, event).expect("a record that fits");
    }
    log.finish()
}

/// Where a text is that the file has once, in a definition.
fn range_of(file: &[u8], text: &str) -> Range<usize> {
    let text: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let at = file.windows(text.len()).position(|window| window == text);
    let at = at.expect("the text");
    at..at + text.len()
}

/// Writes an invalid token after a text that the file has once, in a definition.
fn damage_behind(file: &mut [u8], text: &str) {
    let end = range_of(file, text).end;
    file[end..][..2].copy_from_slice(&[0xee, 0xee]);
}

/// The values of a column, of all batches.
fn column(batches: &[RecordBatch], name: &str) -> Vec<Option<String>> {
    let cells = batches
        .iter()
        .flat_map(|batch| (0..batch.num_rows()).map(move |row| cell(batch, name, row)));
    cells.collect()
}

fn names(table: &Table) -> Vec<String> {
    table
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect()
}

#[test]
fn an_event_that_no_file_holds_has_the_system_columns_and_no_rows() {
    let file = log(&[event(&template(1, 7, &[("a", 1)]), vec![Value::string("x")])]);
    let table = table(&[&file], of(&[64_000]), Options::default());
    assert_eq!(names(&table).len(), every_column(&Options::default()).len());
    assert!(rows(&file, &table).is_empty());
}

/// An event of a provider, with all of its fields spelled out or declared by its template.
fn of_provider(guid: u8, provider: &str, id: u32, data: Element, values: Vec<Value>) -> Event {
    let system = Element::new("System")
        .child(Element::new("Provider").attribute("Name", provider))
        .child(Element::new("EventID").text(id.to_string()));
    let root = Element::new("Event").child(system).child(data);
    Event::new(&Template::new([guid; 16], root), values)
}

fn field(name: &str, index: u16, value_type: u8) -> Element {
    let data = Element::new("Data").attribute("Name", name);
    data.substitution(Substitution::new(index, value_type))
}

/// The names and types of the fields' columns.
fn fields(table: &Table) -> Vec<(String, DataType)> {
    let schema = table.schema();
    let all = schema.fields().iter();
    let fields = all
        .skip(7)
        .take(schema.fields().len() - every_column(&Options::default()).len());
    fields
        .map(|field| (field.name().clone(), field.data_type().clone()))
        .collect()
}

/// The columns of Sysmon's event 5, as its schema declares them.
const PROCESS_ENDED: [&str; 6] = ["RuleName", "UtcTime", "ProcessGuid", "ProcessId", "Image", "User"];

#[test]
fn an_event_that_no_file_holds_has_the_columns_that_are_declared() {
    let file = log(&[event(&template(1, 7, &[("a", 1)]), vec![Value::string("x")])]);
    let of_sysmon = Events {
        providers: Some(["no such".into(), "MICROSOFT-Windows-Sysmon".into()].into()),
        ..of(&[5])
    };
    let sysmon = table(&[&file], of_sysmon, Options::default());
    let found: Vec<_> = fields(&sysmon).into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, PROCESS_ENDED);
    assert_eq!(fields(&sysmon)[3].1, DataType::UInt32);
    assert!(rows(&file, &sysmon).is_empty());
    // Without a provider, the classic ones count.
    let classic = table(&[], of(&[5]), Options::default());
    let found = fields(&classic).into_iter().map(|(name, _)| name.to_lowercase());
    let found: BTreeSet<_> = found.collect();
    let has = |name: &&str| found.contains(&name.to_lowercase());
    assert!(PROCESS_ENDED.iter().all(has), "{found:?}");
    assert!(found.len() > PROCESS_ENDED.len());
    // An empty list of IDs selects no event.
    assert!(fields(&table(&[], of(&[]), Options::default())).is_empty());
}

#[test]
fn what_is_declared_stands_beside_what_logs_have() {
    let data = Element::new("EventData")
        .child(field("Own", 0, 1))
        .child(field("PROCESSID", 1, 1))
        .child(field("Image", 2, 8));
    let values = vec![Value::string("o"), Value::string("x"), Value::UInt32(9)];
    let file = log(&[of_provider(
        1,
        "microsoft-windows-SYSMON",
        5,
        data.clone(),
        values.clone(),
    )]);
    let with_declared = table(&[&file], of(&[5]), Options::default());
    // The type and the spelling in the log's template count. Fields that only the catalog has follow their neighbour.
    let found: Vec<_> = fields(&with_declared).into_iter().map(|(name, _)| name).collect();
    let expected = [
        "RuleName",
        "UtcTime",
        "ProcessGuid",
        "Own",
        "PROCESSID",
        "Image",
        "User",
    ];
    assert_eq!(found, expected);
    let types: Vec<_> = fields(&with_declared)
        .into_iter()
        .map(|(_, data_type)| data_type)
        .collect();
    assert_eq!(types[4..6], [DataType::Utf8View, DataType::UInt32]);
    let batches = rows(&file, &with_declared);
    assert_eq!(column(&batches, "PROCESSID"), [Some("x".to_owned())]);
    assert_eq!(column(&batches, "User"), [None]);
    // A log's provider that declares nothing keeps the classic ones out, for this ID.
    let other = log(&[of_provider(1, "Other", 5, data, values)]);
    let found: Vec<_> = fields(&table(&[&other], of(&[5]), Options::default()))
        .into_iter()
        .collect();
    assert_eq!(found.len(), 3, "{found:?}");
    let found = fields(&table(&[&other], of(&[5, 4740]), Options::default()));
    assert!(found.iter().any(|(name, _)| name == "TargetDomainName"), "{found:?}");
    assert!(!found.iter().any(|(name, _)| name == "UtcTime"), "{found:?}");
}

/// An event without a template.
fn spelled_out(id: u32, fields: &[(&str, &str)]) -> Stream {
    let data = fields.iter().fold(Element::new("EventData"), |data, (name, text)| {
        data.child(Element::new("Data").attribute("Name", *name).text(*text))
    });
    let system = Element::new("System")
        .child(Element::new("Provider").attribute("Name", "Microsoft-Windows-Sysmon"))
        .child(Element::new("EventID").text(id.to_string()));
    Stream::new(vec![Fragment::Element(Element::new("Event").child(system).child(data))])
}

#[test]
fn text_without_a_template_has_the_type_that_others_give() {
    let guid = "{54849625-5478-4994-A5BA-3E3B0328C30D}";
    let texts = |number, own, process, guid| {
        let fields = [
            ("number", number),
            ("own", own),
            ("ProcessId", process),
            ("ProcessGuid", guid),
        ];
        spelled_out(5, &fields)
    };
    let of_template = of_provider(
        1,
        "Microsoft-Windows-Sysmon",
        5,
        Element::new("EventData").child(field("number", 0, 7)),
        vec![Value::Int32(-3)],
    );
    let mut log = LogWriter::new(1);
    log.write(0, &of_template).expect("a record that fits");
    for stream in [
        texts("11", "a", "4294967295", guid),
        texts("2", "5", "0x10", "no GUID"),
        texts("x", "", "4294967296", ""),
    ] {
        log.write_stream(0, &stream).expect("a record that fits");
    }
    let file = log.finish();
    let table = table(&[&file], of(&[5]), Options::default());
    let batches = rows(&file, &table);
    let text = |values: [Option<&str>; 4]| values.map(|value| value.map(str::to_owned)).to_vec();
    // From another template, from none, and from the catalog.
    assert_eq!(
        column(&batches, "number"),
        text([Some("-3"), Some("11"), Some("2"), None])
    );
    assert_eq!(column(&batches, "own"), text([None, Some("a"), Some("5"), Some("")]));
    assert_eq!(
        column(&batches, "ProcessId"),
        text([None, Some("4294967295"), Some("16"), None])
    );
    let digits = "5484962554784994a5ba3e3b0328c30d";
    assert_eq!(column(&batches, "ProcessGuid"), text([None, Some(digits), None, None]));
    let schema = table.schema();
    let data_type = |name: &str| schema.field_with_name(name).expect("a column").data_type().clone();
    assert_eq!(
        [data_type("number"), data_type("own")],
        [DataType::Int32, DataType::Utf8View]
    );
    assert_eq!(data_type("ProcessId"), DataType::UInt32);
    let last = entries(&batches[0], 3).expect("a map");
    assert_eq!(
        last[0],
        ("number".to_owned(), Some("x".to_owned())),
        "the text is there"
    );
    // A predicate sees what the column has.
    let index_of = |name: &str| schema.index_of(name).expect("a column");
    let kept = |column: &str, condition: Expression| {
        let predicate = Predicate::implied(&table, &condition).expect("decided here");
        let mut kept = Vec::new();
        let scan_of = Scan::filtered(table.clone(), &[index_of(column)], &[predicate]);
        scan(&file, "x.evtx", scan_of, |batch| kept.push(batch)).expect("a log");
        self::column(&kept, column)
    };
    let less = Expression::compare(index_of("number"), Comparison::Less, Literal::Integer(11));
    assert_eq!(
        kept("number", less).into_iter().flatten().collect::<Vec<_>>(),
        ["-3", "2"]
    );
    let equal = Expression::compare(index_of("ProcessId"), Comparison::Equal, Literal::Number(16));
    assert_eq!(kept("ProcessId", equal), [Some("16".to_owned())]);
    let null = Expression::IsNull(Box::new(Expression::Column(index_of("ProcessId"))));
    assert_eq!(kept("ProcessId", null).len(), 2);
}

/// A template's `UserData`: a number, a pair of leaves of one name, and a leaf within.
fn user_data() -> Element {
    let leaf = |name: &str, index, value_type| {
        Element::new(name).substitution(Substitution::new(index, value_type).required())
    };
    let inner = Element::new("Inner").child(leaf("Deep", 3, 15));
    let own = Element::new("Own").attribute("xmlns", "urn:x");
    let own = own
        .child(leaf("Number", 0, 8))
        .child(leaf("Name", 1, 1))
        .child(leaf("Name", 2, 1));
    Element::new("UserData").child(own.child(inner))
}

#[test]
fn the_leaves_of_user_data_are_columns() {
    let values = |number| {
        vec![
            Value::UInt32(number),
            Value::string("first"),
            Value::string("second"),
            Value::Guid([7; 16]),
        ]
    };
    let other = Element::new("EventData")
        .child(field("Name", 0, 1))
        .child(field("Other", 1, 1));
    let file = log(&[
        of_provider(1, "One", 7, user_data(), values(5)),
        of_provider(1, "One", 7, user_data(), values(6)),
        of_provider(
            2,
            "One",
            7,
            other,
            vec![Value::string("of EventData"), Value::string("o")],
        ),
    ]);
    let table = table(&[&file], of(&[7]), Options::default());
    let uuid = DataType::FixedSizeBinary(16);
    let types = [
        ("Number", DataType::UInt32),
        ("Name", DataType::Utf8View),
        ("Other", DataType::Utf8View),
        ("Name_1", DataType::Utf8View),
        ("Deep", uuid),
    ];
    assert_eq!(
        fields(&table),
        types.map(|(name, data_type)| (name.to_owned(), data_type))
    );
    let every: Vec<usize> = (0..table.schema().fields().len()).collect();
    for is_tree in [false, true] {
        let mut batches = Vec::new();
        let new = Scan::new(table.clone(), &every);
        let new = if is_tree { new.force_tree_path() } else { new };
        scan(&file, "x.evtx", new, |batch| batches.push(batch)).expect("a log");
        let text = |values: [Option<&str>; 3]| values.map(|value| value.map(str::to_owned)).to_vec();
        assert_eq!(column(&batches, "Number"), text([Some("5"), Some("6"), None]));
        assert_eq!(
            column(&batches, "Name"),
            text([Some("first"), Some("first"), Some("of EventData")])
        );
        assert_eq!(column(&batches, "Name_1"), text([Some("second"), Some("second"), None]));
        let deep = "07".repeat(16);
        assert_eq!(column(&batches, "Deep"), text([Some(&deep), Some(&deep), None]));
        assert_eq!(column(&batches, "event_data").iter().flatten().count(), 1);
        assert_eq!(column(&batches, "user_data").iter().flatten().count(), 2);
    }
    let schema = table.schema();
    let condition = Expression::compare(
        schema.index_of("Number").expect("a column"),
        Comparison::Greater,
        Literal::Number(5),
    );
    let predicate = Predicate::implied(&table, &condition).expect("decided here");
    let mut kept = Vec::new();
    let scan_of = Scan::filtered(table.clone(), &[0], &[predicate]);
    scan(&file, "x.evtx", scan_of, |batch| kept.push(batch)).expect("a log");
    assert_eq!(kept.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
}

/// Windows writes the content of `UserData` as a stream in a substitution. One instance in it is read by its template,
/// anything else as a tree.
#[test]
fn a_stream_in_user_data_is_read_as_its_elements_are() {
    let leaf = |name: &str, index, value_type| Element::new(name).substitution(Substitution::new(index, value_type));
    let system = Element::new("System").child(Element::new("EventID").text("7"));
    let content = Element::new("UserData")
        .substitution(Substitution::new(0, 33))
        .depends_on(0);
    let outer = Template::new([1; 16], Element::new("Event").child(system).child(content));
    let own = Element::new("Own")
        .child(leaf("Number", 0, 8))
        .child(leaf("Name", 1, 1))
        .child(leaf("Name", 2, 1));
    let own = Template::new([2; 16], own);
    let of = |number, name: &str| {
        Event::new(
            &own,
            vec![Value::UInt32(number), Value::string(name), Value::string("second")],
        )
    };
    let alone = Template::new([3; 16], leaf("Number", 0, 8));
    let written = Element::new("Own")
        .child(Element::new("Number").text("8"))
        .child(Element::new("Name").text("written"));
    let two = Stream::new(vec![
        Fragment::Instance(of(5, "first")),
        Fragment::Instance(of(6, "third")),
    ]);
    let contents = [
        Value::BinXml(Stream::from(of(1, "one"))),
        Value::BinXml(two),
        Value::Null,
        Value::string("text"),
        Value::BinXml(Stream::new(Vec::new())),
        Value::BinXml(Stream::new(vec![Fragment::Element(written)])),
        Value::BinXml(Stream::from(Event::new(&alone, vec![Value::UInt32(9)]))),
        // An array makes more than one name.
        Value::BinXml(Stream::from(Event::new(
            &own,
            vec![
                Value::UInt32(2),
                Value::StringArray(vec!["a".into(), "b".into()]),
                Value::string("c"),
            ],
        ))),
    ];
    let file = log(&contents.map(|content| Event::new(&outer, vec![content])));
    let table = table(&[&file], self::of(&[7]), Options::default());
    assert_eq!(
        fields(&table)
            .into_iter()
            .map(|(name, data_type)| format!("{name} {data_type}"))
            .collect::<Vec<_>>(),
        [
            "UserData Utf8View",
            "Number UInt32",
            "Name Utf8View",
            "Name_1 Utf8View",
            "Number_1 UInt32",
            "Name_2 Utf8View",
            "Name_3 Utf8View"
        ]
    );
    let every: Vec<usize> = (0..table.schema().fields().len()).collect();
    for is_tree in [false, true] {
        let new = Scan::new(table.clone(), &every);
        let new = if is_tree { new.force_tree_path() } else { new };
        let mut batches = Vec::new();
        scan(&file, "x.evtx", new, |batch| batches.push(batch)).expect("a log");
        let of = |name: &str| {
            let column = column(&batches, name).into_iter();
            column
                .map(|value| value.unwrap_or_else(|| "-".into()))
                .collect::<Vec<_>>()
        };
        assert_eq!(of("Number"), ["1", "5", "-", "-", "-", "8", "9", "2"], "{is_tree}");
        assert_eq!(of("Name")[..6], ["one", "first", "-", "-", "-", "written"], "{is_tree}");
        assert_eq!(of("Name_1")[..6], ["second", "second", "-", "-", "-", "-"], "{is_tree}");
        assert_eq!(of("Number_1")[..3], ["-", "6", "-"], "{is_tree}");
        assert_eq!(of("Name_2")[..3], ["-", "third", "-"], "{is_tree}");
        assert_eq!(of("UserData")[2..5], ["-", "text", "-"], "{is_tree}");
        assert_eq!(of("error"), ["-"; 8], "{is_tree}");
    }
}

#[test]
fn a_name_in_both_elements_is_first_that_of_event_data() {
    let system = Element::new("System").child(Element::new("EventID").text("7"));
    let data = Element::new("EventData")
        .child(field("Name", 4, 1))
        .child(field("Name_1", 5, 1));
    let values = |name: &str| {
        let mut values = vec![
            Value::UInt32(5),
            Value::string("u"),
            Value::string("v"),
            Value::Guid([7; 16]),
        ];
        values.extend([Value::string(name), Value::string("e1")]);
        values
    };
    // In one tree, and in a tree each, as an event's substitutions have them.
    let root = Element::new("Event")
        .child(system.clone())
        .child(user_data())
        .child(data.clone());
    let one = Event::new(&Template::new([1; 16], root), values("e"));
    let outer = Element::new("Event")
        .child(system)
        .substitution(Substitution::new(0, 33))
        .substitution(Substitution::new(1, 33));
    let of = |guid: u8, element: Element| {
        let event = Event::new(&Template::new([guid; 16], element), values("e"));
        Value::BinXml(Stream::from(event))
    };
    let two = Event::new(&Template::new([2; 16], outer), vec![of(3, user_data()), of(4, data)]);
    for event in [one, two] {
        let file = log(&[event]);
        let table = table(&[&file], self::of(&[7]), Options::default());
        let found: Vec<_> = fields(&table).into_iter().map(|(name, _)| name).collect();
        assert_eq!(found, ["Name", "Name_1", "Number", "Name_2", "Name_1_1", "Deep"]);
        let batches = rows(&file, &table);
        let first = |name: &str| column(&batches, name)[0].clone().expect("a value");
        assert_eq!(
            ["Name", "Name_1", "Name_2", "Name_1_1", "Number"].map(first),
            ["e", "e1", "u", "v", "5"]
        );
    }
}

/// Names of columns do not differ only by case: the fields of several events share a column. The second of
/// such fields of one event has a number.
#[test]
fn names_that_differ_only_by_case_share_a_column() {
    let first = template(1, 7, &[("ProcessID", 8), ("Name", 1)]);
    let second = template(3, 8, &[("processId", 8), ("ProcessID", 8), ("NAME", 1)]);
    let events = [
        event(&first, vec![Value::UInt32(1), Value::string("a")]),
        event(&second, vec![Value::UInt32(2), Value::UInt32(3), Value::string("b")]),
    ];
    let file = log(&events);
    let data = Element::new("EventData").child(field("Name", 0, 1));
    let user_data = Element::new("UserData")
        .child(Element::new("X").child(Element::new("name").substitution(Substitution::new(1, 1))));
    let both = of_provider(5, "One", 7, data, vec![Value::string("d")]);
    let of_user = of_provider(6, "One", 8, user_data, vec![Value::Null, Value::string("u")]);
    let other = log(&[both, of_user]);
    for ids in [[7, 8], [8, 7]] {
        for files in [[&file[..], &other], [&other, &file]] {
            let table = table(&files, of(&ids), Options::default());
            let fields: Vec<_> = fields(&table)
                .into_iter()
                .map(|(name, _)| name.to_lowercase())
                .collect();
            assert_eq!(fields.len(), 3, "{fields:?}");
            let name = |name: &str| {
                let schema = table.schema();
                let found = schema
                    .fields()
                    .iter()
                    .find(|field| field.name().eq_ignore_ascii_case(name));
                found.expect(name).name().clone()
            };
            let batches = rows(&file, &table);
            let values = |key: &str| column(&batches, &name(key));
            let text = |values: [Option<&str>; 2]| values.map(|value| value.map(str::to_owned)).to_vec();
            assert_eq!(values("processid"), text([Some("1"), Some("2")]));
            assert_eq!(values("processid_1"), text([None, Some("3")]));
            assert_eq!(values("name"), text([Some("a"), Some("b")]));
            let batches = rows(&other, &table);
            assert_eq!(column(&batches, &name("name")), text([Some("d"), Some("u")]));
        }
    }
}

#[test]
fn types_that_disagree_are_united() {
    let narrow = template(1, 7, &[("n", 6), ("t", 8), ("wide", 10), ("only", 1)]);
    let signed = template(3, 7, &[("n", 7), ("between", 13), ("t", 13), ("wide", 9)]);
    let file = log(&[
        event(
            &narrow,
            vec![
                Value::UInt16(65_535),
                Value::UInt32(1),
                Value::UInt64(u64::MAX),
                Value::string("o"),
            ],
        ),
        event(
            &signed,
            vec![
                Value::Int32(-2),
                Value::Bool(true),
                Value::Bool(false),
                Value::Int64(-1),
            ],
        ),
    ]);
    let table = table(&[&file], of(&[7]), Options::default());
    let batches = rows(&file, &table);
    let schema = table.schema();
    let of = |name: &str| schema.field_with_name(name).expect("a column").data_type().clone();
    assert_eq!(names(&table)[7..12], ["n", "between", "t", "wide", "only"]);
    assert_eq!(
        [of("n"), of("between"), of("t")],
        [DataType::Int32, DataType::Boolean, DataType::Utf8View]
    );
    let text = |values: [Option<&str>; 2]| values.map(|value| value.map(str::to_owned)).to_vec();
    assert_eq!(column(&batches, "n"), text([Some("65535"), Some("-2")]));
    assert_eq!(column(&batches, "t"), text([Some("1"), Some("false")]));
    assert_eq!(column(&batches, "between"), text([None, Some("true")]));
    assert_eq!(column(&batches, "only"), text([Some("o"), None]));
    let wide = batches[0]
        .column_by_name("wide")
        .expect("a column")
        .as_fixed_size_binary();
    let wide: Vec<_> = (0..2)
        .map(|row| i128::from_le_bytes(wide.value(row).try_into().expect("16 bytes")))
        .collect();
    assert_eq!(wide, [i128::from(u64::MAX), -1]);
}

#[test]
fn names_that_come_twice_or_are_taken_get_others() {
    let odd = template(
        1,
        7,
        &[
            ("a", 1),
            ("a", 8),
            ("Computer", 1),
            ("no identifier; DROP TABLE", 1),
            ("", 1),
        ],
    );
    let values = vec![
        Value::string("first"),
        Value::UInt32(2),
        Value::string("third"),
        Value::string("fourth"),
        Value::string("fifth"),
    ];
    let file = log(&[event(&odd, values)]);
    let table = table(&[&file], of(&[7]), Options::default());
    assert_eq!(
        names(&table)[7..12],
        ["a", "a_1", "data_Computer", "no identifier; DROP TABLE", "param1"]
    );
    let batches = rows(&file, &table);
    let values: Vec<_> = names(&table)[7..12]
        .iter()
        .map(|name| column(&batches, name)[0].clone())
        .collect();
    let expected = ["first", "2", "third", "fourth", "fifth"].map(|value| Some(value.to_owned()));
    assert_eq!(values, expected);
}

#[test]
fn a_definition_that_is_damaged_loses_nothing_else() {
    let (broken, valid) = (template(1, 7, &[("broken", 1)]), template(3, 7, &[("valid", 8)]));
    let mut file = log(&[
        event(&broken, vec![Value::string("x")]),
        event(&valid, vec![Value::UInt32(5)]),
    ]);
    damage_behind(&mut file, "broken");
    let table = table(&[&file], of(&[7]), Options::default());
    assert_eq!(names(&table)[7], "valid");
    let batches = rows(&file, &table);
    assert_eq!(column(&batches, "valid"), [None, Some("5".to_owned())]);
    let errors = column(&batches, "error");
    assert!(
        errors[0]
            .as_deref()
            .is_some_and(|error| error.starts_with("x.evtx: chunk 0, offset 0x")),
        "{errors:?}"
    );
    assert_eq!(errors[1], None);
}

/// A name in a definition was overwritten, and so was a token after it. The columns of events read the definition in
/// another way, which finds the name first.
#[test]
fn damage_has_the_same_error_with_the_columns_of_events() {
    let leaf = |name: &str, index| Element::new(name).substitution(Substitution::new(index, 1));
    let own = Element::new("Own").child(leaf("Number", 0)).child(leaf("Deep", 1));
    let system = Element::new("System").child(Element::new("EventID").text("7"));
    let user_data = Element::new("UserData").substitution(Substitution::new(0, 33));
    let outer = Template::new([1; 16], Element::new("Event").child(system).child(user_data));
    let values = vec![Value::string("a"), Value::string("b")];
    let valid = log(&[event(&(outer, Template::new([2; 16], own)), values)]);
    let mut file = valid.clone();
    damage_behind(&mut file, "Deep\0");
    let name = range_of(&file, "Number").start;
    file[name] ^= 1;
    let of_events = rows(&file, &table(&[&valid], of(&[7]), Options::default()));
    let options = Options::default();
    let all = read(&file, "x.evtx", options, &every_column(&options)).expect("a log");
    let errors = column(&all, "error");
    assert!(
        errors[0]
            .as_deref()
            .is_some_and(|error| error.ends_with("is no BinXML token")),
        "{errors:?}"
    );
    assert_eq!(column(&of_events, "error"), errors);
}

#[test]
fn what_the_sample_missed_is_in_event_data() {
    let (known, missed) = (template(1, 7, &[("known", 1)]), template(3, 7, &[("missed", 1)]));
    let sample = log(&[event(&known, vec![Value::string("a")])]);
    let file = log(&[event(&missed, vec![Value::string("b")])]);
    let table = table(&[&sample], of(&[7]), Options::default());
    assert!(!names(&table).iter().any(|name| name == "missed"));
    let batches = rows(&file, &table);
    assert_eq!(
        entries(&batches[0], 0),
        Some(vec![("missed".to_owned(), Some("b".to_owned()))])
    );
}

#[test]
fn predicates_on_fields_are_decided_here() {
    let numbers = template(1, 7, &[("n", 7), ("word", 1)]);
    let one = |number, text: &str| event(&numbers, vec![Value::Int32(number), Value::string(text)]);
    let file = log(&[one(-5, "a"), one(3, "b"), one(9, "ab")]);
    let table = table(&[&file], of(&[7]), Options::default());
    let index_of = |name: &str| {
        names(&table)
            .iter()
            .position(|column| column == name)
            .expect("a column")
    };
    let kept = |column: &str, comparison, literal| {
        let condition = Expression::compare(index_of(column), comparison, literal);
        let predicate = Predicate::implied(&table, &condition).expect("decided here");
        let mut kept = Vec::new();
        let scan_of = Scan::filtered(table.clone(), &[index_of("n")], &[predicate]);
        scan(&file, "x.evtx", scan_of, |batch| kept.push(batch)).expect("a log");
        self::column(&kept, "n").into_iter().flatten().collect::<Vec<_>>()
    };
    assert_eq!(kept("n", Comparison::Less, Literal::Integer(3)), ["-5"]);
    assert_eq!(kept("n", Comparison::GreaterOrEqual, Literal::Integer(3)), ["3", "9"]);
    assert_eq!(kept("word", Comparison::Prefix, Literal::Text("a".into())), ["-5", "9"]);
    let unsigned = Expression::compare(index_of("n"), Comparison::Less, Literal::Number(3));
    assert!(
        Predicate::implied(&table, &unsigned).is_none(),
        "a constant of another type is not for the core"
    );
}

#[test]
fn damage_ends_a_scan_that_fails_at_it_whatever_its_event() {
    let (other, wanted) = (template(1, 8, &[("broken", 1)]), template(3, 7, &[("b", 1)]));
    let mut file = log(&[
        event(&other, vec![Value::string("x")]),
        event(&wanted, vec![Value::string("y")]),
    ]);
    damage_behind(&mut file, "broken");
    let fail = Options {
        on_error: OnError::Fail,
        ..Options::default()
    };
    let table = table(&[&file], of(&[7]), fail);
    let outcome = scan(&file, "x.evtx", Scan::new(table, &[0]), drop);
    assert!(outcome.is_err(), "{outcome:?}");
}

#[test]
fn a_provider_tells_events_of_one_number_apart() {
    let of_provider = |guid: u8, provider: &str, field: &str| {
        let system = Element::new("System")
            .child(Element::new("Provider").attribute("Name", provider))
            .child(Element::new("EventID").text("7"));
        let data = Element::new("EventData").child(Element::new("Data").attribute("Name", field).text("v"));
        Event::new(
            &Template::new([guid; 16], Element::new("Event").child(system).child(data)),
            Vec::new(),
        )
    };
    let file = log(&[of_provider(1, "One", "a"), of_provider(2, "Two", "b")]);
    let events = Events {
        providers: Some(["TWO".into()].into()),
        ..of(&[7])
    };
    let table = table(&[&file], events, Options::default());
    assert_eq!(names(&table)[7..9], ["b", "user_data"]);
    let batches = rows(&file, &table);
    assert_eq!(column(&batches, "provider"), [Some("Two".to_owned())]);
    assert_eq!(column(&batches, "b"), [Some("v".to_owned())]);
}
