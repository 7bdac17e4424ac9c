//! Tables of certain events: their fields as columns of their own.

mod common;

use std::collections::BTreeSet;
use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_schema::DataType;
use common::{cell, corpus, entries, every_column, read, samples, scan};
use evtx_arrow::{Catalog, Comparison, Events, Expression, Literal, OnError, Options, Predicate, Scan, Table};
use evtx_format::Interrupt;
use evtx_writer::{Element, Event, Fragment, LogWriter, Stream, Substitution, Template, Value};

const FILE_HEADER: usize = 4096;

fn of(ids: &[u32]) -> Events {
    Events {
        ids: Some(ids.into()),
        providers: None,
    }
}

/// The table of events as the catalogs of files make it.
fn table(files: &[&[u8]], events: Events, options: Options) -> Table {
    let mut catalog = Catalog::new(Some(events.clone()));
    for file in files {
        catalog
            .push(&file[FILE_HEADER.min(file.len())..], Interrupt::NEVER)
            .expect("few events");
    }
    Table::of_events(options, events, &catalog.fields())
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
            value == Some(&digits).filter(|digits| digits.len() == 32).map(String::as_str)
        }
        DataType::Binary => value.map(str::to_uppercase).as_deref() == Some(text),
        DataType::Float32 | DataType::Float64 => value.map(str::parse::<f64>) == Some(text.parse()),
        // A single item is shown as such, several as JSON.
        DataType::List(_) => match value {
            Some("[]") => text.is_empty(),
            Some(value) => value == format!("[{text}]") || value == text || value == format!("[{text:?}]"),
            None => false,
        },
        _ => value.and_then(number) == number(text),
    }
}

/// Every typed value of every event, against the text that `event_data` has of it.
fn compare(logs: &[PathBuf]) {
    let (mut values, mut columns) = (0, BTreeSet::new());
    for log in logs {
        let file = std::fs::read(log).expect("a file");
        for id in ids(&file) {
            let table = table(&[&file], of(&[id]), Options::default());
            let schema = table.schema();
            let system = common::column(&Options::default(), "event_data");
            let fields = schema.fields().len() - every_column(&Options::default()).len();
            let every: Vec<usize> = (0..schema.fields().len()).collect();
            let mut trees = Vec::new();
            scan(
                &file,
                "x.evtx",
                Scan::new(table.clone(), &every).force_tree_path(),
                |batch| trees.push(batch),
            )
            .expect("a log");
            let batches = rows(&file, &table);
            assert_eq!(batches.len(), trees.len());
            for (batch, tree) in batches.iter().zip(&trees) {
                for row in 0..batch.num_rows() {
                    let event = cell(batch, "event_id", row);
                    if event.is_none() && cell(batch, "error", row).is_some() {
                        // Damage that may have cost one of the events.
                        continue;
                    }
                    assert_eq!(event, Some(id.to_string()));
                    let texts = entries(batch, row).unwrap_or_default();
                    for column in system..system + fields {
                        let field = schema.field(column);
                        let name = field.name();
                        let key = if texts.iter().any(|(key, _)| key == name) {
                            name
                        } else {
                            name.strip_prefix("data_").unwrap_or(name)
                        };
                        let text = texts
                            .iter()
                            .find(|(known, _)| known == key)
                            .and_then(|(_, text)| text.as_deref());
                        let value = cell(batch, name, row);
                        let log = log.display();
                        assert!(
                            agrees(field.data_type(), value.as_deref(), text),
                            "{log}, event {id}, {field:?}: {value:?} for {text:?}"
                        );
                        assert_eq!(value, cell(tree, name, row), "{log}, event {id}, {field:?}: tree");
                        values += 1;
                        columns.insert(field.data_type().to_string());
                    }
                }
            }
        }
    }
    println!("{values} values of {} logs, of the types {columns:?}", logs.len());
    assert!(logs.is_empty() || columns.len() > 5);
}

#[test]
fn every_field_of_the_samples_is_what_event_data_says() {
    compare(&samples());
}

#[test]
fn every_field_of_the_corpus_is_what_event_data_says() {
    compare(&corpus());
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

/// Puts what is no token behind a text that the file holds once, in a definition.
fn damage_behind(file: &mut [u8], text: &str) {
    let text: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let at = file
        .windows(text.len())
        .position(|window| window == text)
        .expect("the text");
    file[at + text.len()..][..2].copy_from_slice(&[0xee, 0xee]);
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
    let table = table(&[&file], of(&[8]), Options::default());
    assert_eq!(names(&table).len(), every_column(&Options::default()).len());
    assert!(rows(&file, &table).is_empty());
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
    let (broken, sound) = (template(1, 7, &[("broken", 1)]), template(3, 7, &[("sound", 8)]));
    let mut file = log(&[
        event(&broken, vec![Value::string("x")]),
        event(&sound, vec![Value::UInt32(5)]),
    ]);
    damage_behind(&mut file, "broken");
    let table = table(&[&file], of(&[7]), Options::default());
    assert_eq!(names(&table)[7], "sound");
    let batches = rows(&file, &table);
    assert_eq!(column(&batches, "sound"), [None, Some("5".to_owned())]);
    let errors = column(&batches, "error");
    assert!(
        errors[0]
            .as_deref()
            .is_some_and(|error| error.starts_with("x.evtx: chunk 0, offset 0x")),
        "{errors:?}"
    );
    assert_eq!(errors[1], None);
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
    let place = |name: &str| {
        names(&table)
            .iter()
            .position(|column| column == name)
            .expect("a column")
    };
    let kept = |column: &str, comparison, literal| {
        let condition = Expression::compare(place(column), comparison, literal);
        let predicate = Predicate::implied(&table, &condition).expect("decided here");
        let mut kept = Vec::new();
        let scan_of = Scan::filtered(table.clone(), &[place("n")], &[predicate]);
        scan(&file, "x.evtx", scan_of, |batch| kept.push(batch)).expect("a log");
        self::column(&kept, "n").into_iter().flatten().collect::<Vec<_>>()
    };
    assert_eq!(kept("n", Comparison::Less, Literal::Integer(3)), ["-5"]);
    assert_eq!(kept("n", Comparison::GreaterOrEqual, Literal::Integer(3)), ["3", "9"]);
    assert_eq!(kept("word", Comparison::Prefix, Literal::Text("a".into())), ["-5", "9"]);
    let unsigned = Expression::compare(place("n"), Comparison::Less, Literal::Number(3));
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
        ids: Some([7].into()),
        providers: Some(["TWO".into()].into()),
    };
    let table = table(&[&file], events, Options::default());
    assert_eq!(names(&table)[7..9], ["b", "user_data"]);
    let batches = rows(&file, &table);
    assert_eq!(column(&batches, "provider"), [Some("Two".to_owned())]);
    assert_eq!(column(&batches, "b"), [Some("v".to_owned())]);
}
