//! Elements that records spell out: they read as trees do, whether their implicit template or a tree gives
//! the row.

use std::path::PathBuf;

use crate::common::{self, cell, corpus, every_column, samples, scan, slots};
use evtx_arrow::{Comparison, Events, Expression, Literal, Options, Predicate, Scan, Table};
use evtx_events::{CollectedEvent, EventCollector};
use evtx_format::Interrupt;
use evtx_writer::{Content, Element, Event, Fragment, LogWriter, Stream, Substitution, Template, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

const FILE_HEADER: usize = 4096;

const TEXTS: [&str; 14] = [
    "text",
    "",
    "7",
    "0x10",
    "[1,2]",
    "[\"a\",\"b\"]",
    " <&>\"' \t\n",
    "\u{1}ünïcödé 日本 😀",
    "2024-02-29T00:00:00.001Z",
    "{54849625-5478-4994-A5BA-3E3B0328C30D}",
    "\0hidden",
    "ends\0here",
    "true",
    "a text that takes more than a few blocks of sixteen units each",
];

/// A text that is other in other records: which of [`TEXTS`] it is in the first.
#[derive(Debug, Clone, Copy)]
struct Text(usize);

impl Text {
    fn of(self, record: usize) -> &'static str {
        // Most records have as few empty texts as the first.
        let shift = if self.0 == 1 { 0 } else { record * 3 };
        TEXTS[(self.0 + shift) % TEXTS.len()]
    }
}

#[derive(Debug, Clone)]
enum Piece {
    Text(Text),
    Long(u16),
    CData(Text),
    Entity(&'static str),
    Char(u16),
    Value(u8, Vec<u8>),
    Element(Box<Skeleton>),
}

/// An element whose texts are other in each record.
#[derive(Debug, Clone)]
struct Skeleton {
    name: &'static str,
    attributes: Vec<(&'static str, Vec<Piece>)>,
    content: Vec<Piece>,
}

impl Piece {
    fn of(&self, record: usize) -> Content {
        match self {
            Piece::Text(text) => Content::Text(text.of(record).to_owned()),
            Piece::Long(units) => Content::Text("x".repeat(usize::from(*units))),
            Piece::CData(text) => Content::CData(text.of(record).to_owned()),
            Piece::Entity(name) => Content::EntityRef((*name).to_owned()),
            Piece::Char(number) => Content::CharRef(*number),
            Piece::Value(value_type, bytes) => Content::Value(*value_type, bytes.clone()),
            Piece::Element(element) => Content::Element(element.of(record)),
        }
    }
}

impl Skeleton {
    fn of(&self, record: usize) -> Element {
        let element = Element::new(self.name);
        let element = self.attributes.iter().fold(element, |element, (name, value)| {
            element.attribute_of(name, value.iter().map(|piece| piece.of(record)).collect())
        });
        self.content
            .iter()
            .fold(element, |element, piece| element.content(piece.of(record)))
    }
}

fn text() -> impl Strategy<Value = Piece> {
    (0..TEXTS.len()).prop_map(|text| Piece::Text(Text(text)))
}

/// A piece of text, of any kind.
fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        60 => text(),
        1 => (0..TEXTS.len()).prop_map(|text| Piece::CData(Text(text))),
        1 => prop::sample::select(vec!["lt", "amp", "quot", "custom"]).prop_map(Piece::Entity),
        1 => prop_oneof![0x20_u16..0xd800, Just(9)].prop_map(Piece::Char),
        1 => any::<u32>().prop_map(|number| Piece::Value(8, number.to_le_bytes().into())),
        1 => any::<f32>().prop_map(|number| Piece::Value(11, number.to_le_bytes().into())),
        1 => any::<bool>().prop_map(|truth| Piece::Value(13, u32::from(truth).to_le_bytes().into())),
        1 => Just(Piece::Value(0, vec![])),
        1 => Just(Piece::Value(0x20, vec![])),
        1 => Just(Piece::Value(0x21, vec![0, 0])),
        1 => prop::sample::select(vec![400_u16, 5000, 20_000]).prop_map(Piece::Long),
    ]
}

/// Content of text: mostly one piece.
fn texts() -> impl Strategy<Value = Vec<Piece>> {
    let references = prop_oneof![
        2 => text(),
        1 => prop::sample::select(vec!["lt", "amp", "quot", "custom"]).prop_map(Piece::Entity),
        1 => prop_oneof![0x20_u16..0xd800, Just(9), Just(0)].prop_map(Piece::Char),
    ];
    prop_oneof![20 => vec(piece(), 1), 3 => vec(piece(), 0), 1 => vec(piece(), 2..4), 2 => vec(references, 1..4)]
}

fn attributes() -> impl Strategy<Value = Vec<(&'static str, Vec<Piece>)>> {
    let name = prop_oneof![4 => Just("Name"), 2 => Just("Id"), 1 => Just("xmlns"), 1 => Just("q\"")];
    vec((name, texts()), 0..3)
}

fn element() -> impl Strategy<Value = Skeleton> {
    let name = prop_oneof![6 => Just("Data"), 2 => Just("Other"), 1 => Just("Name"), 1 => Just("ComplexData"), 1 => Just("UserData")];
    let head = (name, attributes()).boxed();
    let leaf = (head.clone(), texts()).prop_map(|((name, attributes), content)| Skeleton {
        name,
        attributes,
        content,
    });
    leaf.prop_recursive(3, 12, 4, move |inner| {
        let child = inner.prop_map(|element| Piece::Element(element.into()));
        let children = prop_oneof![12 => vec(child.clone(), 1..5), 1 => vec(prop_oneof![child, piece()], 1..5)];
        (head.clone(), children).prop_map(|((name, attributes), content)| Skeleton {
            name,
            attributes,
            content,
        })
    })
}

/// `EventData`, `UserData`, or another child of `Event`.
fn data() -> impl Strategy<Value = Skeleton> {
    let name = prop_oneof![6 => Just("EventData"), 4 => Just("UserData"), 1 => Just("RenderingInfo")];
    let content = prop_oneof![
        12 => vec(element().prop_map(|element| Piece::Element(element.into())), 0..6),
        1 => texts(),
    ];
    (name, attributes(), content).prop_map(|(name, attributes, content)| Skeleton {
        name,
        attributes,
        content,
    })
}

fn system() -> impl Strategy<Value = Skeleton> {
    let names = vec![
        "EventID",
        "Level",
        "Keywords",
        "Channel",
        "Computer",
        "EventRecordID",
        "Version",
    ];
    let field = (prop::sample::select(names), texts()).prop_map(|(name, content)| Skeleton {
        name,
        attributes: vec![],
        content,
    });
    let places = vec![
        ("Provider", "Name"),
        ("Provider", "Guid"),
        ("TimeCreated", "SystemTime"),
        ("Execution", "ProcessID"),
        ("Correlation", "ActivityID"),
        ("Security", "UserID"),
    ];
    let position = (prop::sample::select(places), texts()).prop_map(|((name, attribute), value)| Skeleton {
        name,
        attributes: vec![(attribute, value)],
        content: vec![],
    });
    vec(prop_oneof![field, position], 0..8).prop_map(|fields| {
        let id = Skeleton {
            name: "EventID",
            attributes: vec![],
            content: vec![Piece::Value(6, vec![7, 0])],
        };
        // Fields are looked up by this ID, unless there is one already.
        let content = fields.into_iter().chain([id]).map(|field| Piece::Element(field.into()));
        Skeleton {
            name: "System",
            attributes: vec![],
            content: content.collect(),
        }
    })
}

/// What of the events their records spell out.
#[derive(Debug, Clone, Copy)]
enum SpelledOut {
    /// All of it.
    Event,
    /// The stream in a substitution of `Event`.
    Children,
    /// The stream in a substitution of `UserData`.
    InUserData,
}

/// Events of some skeletons, several of each in turn.
#[derive(Debug, Clone)]
struct Log {
    events: Vec<(SpelledOut, Skeleton, Vec<Skeleton>)>,
    records: usize,
}

fn log() -> impl Strategy<Value = Log> {
    let how = prop_oneof![
        3 => Just(SpelledOut::Event),
        2 => Just(SpelledOut::Children),
        2 => Just(SpelledOut::InUserData),
    ];
    let event = (how, system(), prop_oneof![8 => vec(data(), 1), 1 => vec(data(), 0..3)]);
    (vec(event, 1..4), 2..8_usize).prop_map(|(events, records)| Log { events, records })
}

impl Log {
    fn write(&self) -> Vec<u8> {
        let mut log = LogWriter::new(100);
        let spelled_out = |parts: &[Skeleton], record| {
            let parts = parts.iter().map(|part| Fragment::Element(part.of(record)));
            Value::BinXml(Stream::new(parts.collect()))
        };
        let stream = Substitution::new(0, 33);
        for record in 0..self.records {
            if record == 5 {
                log.end_chunk();
            }
            for (i, (how, system, data)) in self.events.iter().enumerate() {
                let event = Element::new("Event").child(system.of(record));
                let (guid, values) = ([i as u8; 16], vec![spelled_out(data, record)]);
                // One that does not fit is not there.
                let _ = match how {
                    SpelledOut::Event => {
                        let event = data.iter().fold(event, |event, data| event.child(data.of(record)));
                        log.write_stream(0, &Stream::new(vec![Fragment::Element(event)]))
                    }
                    SpelledOut::Children => {
                        let template = Template::new(guid, event.substitution(stream));
                        log.write(0, &Event::new(&template, values))
                    }
                    SpelledOut::InUserData => {
                        let user_data = Element::new("UserData").substitution(stream);
                        log.write(0, &Event::new(&Template::new(guid, event.child(user_data)), values))
                    }
                };
            }
        }
        log.finish()
    }
}

const ALL: Options = Options {
    verify: false,
    ..Options::ALL
};

/// How records are read.
#[derive(Debug, Clone, Copy)]
enum Way {
    ImplicitTemplates,
    /// What records spell out is read as trees, and instances by the plans of their templates.
    TreesOfElements,
    /// All is read as trees.
    Trees,
}

type Rows = Vec<Vec<Option<String>>>;

/// The rows of a table's columns, on a path.
fn rows_of(file: &[u8], table: &Table, columns: &[usize], predicates: &[Predicate], by: Way) -> Rows {
    let scanned = Scan::filtered(table.clone(), columns, predicates);
    let scanned = match by {
        Way::ImplicitTemplates => scanned,
        Way::TreesOfElements => scanned.without_implicit_templates(),
        Way::Trees => scanned.force_tree_path(),
    };
    let mut rows = Vec::new();
    scan(file, "spelled out", scanned, |batch| {
        let schema = batch.schema();
        rows.extend((0..batch.num_rows()).map(|row| {
            let names = schema.fields().iter().map(|field| cell(&batch, field.name(), row));
            names.collect::<Vec<_>>()
        }));
    })
    .expect("a log");
    rows
}

/// The events that a collector finds.
fn events_of(file: &[u8], mut collector: EventCollector) -> Vec<CollectedEvent> {
    collector.push(slots(file), Interrupt::NEVER).expect("few events");
    collector.take().into_sorted()
}

/// Compares both paths: all columns, single ones, the fields of an event, predicates on them, and the events.
fn compare(file: &[u8], name: &str) {
    let (table, every) = (Table::from(ALL), every_column(&ALL));
    let [plans, of_elements, trees] =
        [Way::ImplicitTemplates, Way::TreesOfElements, Way::Trees].map(|path| rows_of(file, &table, &every, &[], path));
    assert_eq!(plans, of_elements, "{name}: all columns");
    // What can be read of a damaged instance depends on how far each path gets.
    let is_damaged = |row: &Vec<Option<String>>| row[common::column(&ALL, "error")].is_some();
    assert_eq!(plans.len(), trees.len(), "{name}");
    for (plan, tree) in plans.iter().zip(&trees) {
        assert!(
            is_damaged(plan) && is_damaged(tree) || plan == tree,
            "{name}: {plan:?} and {tree:?}"
        );
    }
    for column in ["event_data", "user_data", "xml", "json", "text", "fields", "event_id"] {
        let columns = [common::column(&ALL, column)];
        let rows = |path| rows_of(file, &table, &columns, &[], path);
        assert_eq!(
            rows(Way::ImplicitTemplates),
            rows(Way::TreesOfElements),
            "{name}: {column} alone"
        );
    }
    let events = Events::of_ids([7, 1116, 1117, 1149, 800]);
    for collector in [None, Some(events.clone())].map(EventCollector::new) {
        let trees = collector.without_implicit_templates();
        assert_eq!(events_of(file, collector), events_of(file, trees), "{name}: events");
    }
    let mut collector = EventCollector::new(Some(events.clone()));
    collector.push(slots(file), Interrupt::NEVER).expect("few events");
    let table = Table::of_events(ALL, events, &collector.fields(), &[]);
    let every: Vec<usize> = (0..table.schema().fields().len()).collect();
    let rows = |columns: &[usize], predicates: &[Predicate], path| rows_of(file, &table, columns, predicates, path);
    assert_eq!(
        rows(&every, &[], Way::ImplicitTemplates),
        rows(&every, &[], Way::TreesOfElements),
        "{name}: fields"
    );
    let system = every_column(&ALL).len();
    for column in every.iter().copied().skip(system - 8).take(12) {
        for text in ["7", "text"] {
            let condition = Expression::compare(column, Comparison::Contains, Literal::Text(text.into()));
            if let Some(predicate) = Predicate::implied(&table, &condition) {
                let predicates = std::slice::from_ref(&predicate);
                assert_eq!(
                    rows(&[0], predicates, Way::ImplicitTemplates),
                    rows(&[0], predicates, Way::TreesOfElements),
                    "{name}: {condition:?}"
                );
            }
        }
    }
}

fn compare_all(logs: &[PathBuf]) {
    for log in logs {
        let file = std::fs::read(log).expect("a log");
        compare(&file, &log.display().to_string());
    }
}

#[test]
fn both_paths_agree_on_the_samples_in_all_projections() {
    compare_all(&samples());
}

#[test]
fn both_paths_agree_on_the_corpus_in_all_projections() {
    compare_all(&corpus());
}

/// A log of events of one kind whose fields have other texts, and one with an empty text and one with an attribute more.
#[test]
fn texts_that_are_empty_make_another_implicit_template() {
    let event = |texts: &[&str]| {
        let data = texts
            .iter()
            .enumerate()
            .fold(Element::new("EventData"), |data, (i, text)| {
                data.child(Element::new("Data").attribute("Name", format!("f{i}")).text(*text))
            });
        let system = Element::new("System")
            .child(
                Element::new("Provider")
                    .attribute("Name", "P")
                    .attribute("Guid", texts[0]),
            )
            .child(Element::new("EventID").text("7"));
        Stream::new(vec![Fragment::Element(Element::new("Event").child(system).child(data))])
    };
    let mut log = LogWriter::new(1);
    for texts in [["a", "b"], ["c", "d"], ["", "d"], ["e", ""], ["\0", "x"], ["f", "g"]] {
        log.write_stream(0, &event(&texts)).expect("it fits");
    }
    let file = log.finish();
    compare(&file, "empty texts");
    let table = Table::from(Options::NONE);
    let columns = ["event_id", "event_data"].map(|name| common::column(&Options::NONE, name));
    let rows = rows_of(&file, &table, &columns, &[], Way::ImplicitTemplates);
    let data = |a: &str, b: &str| vec![Some("7".to_owned()), Some(format!("f0=Some({a:?});f1=Some({b:?});"))];
    let expected = [("a", "b"), ("c", "d"), ("", "d"), ("e", ""), ("", "x"), ("f", "g")];
    assert_eq!(rows, expected.map(|(a, b)| data(a, b)));
}

/// A text of an element can have 65,535 units, which is more than a value of a substitution.
#[test]
fn long_texts_are_read() {
    for units in [255, 256, 16_383, 32_767, 32_768] {
        let mut log = LogWriter::new(1);
        for _ in 0..3 {
            let data = Element::new("Data").attribute("Name", "x").text("y".repeat(units));
            let system = Element::new("System").child(Element::new("EventID").text("7"));
            let event = Element::new("Event")
                .child(system)
                .child(Element::new("EventData").child(data));
            let _ = log.write_stream(0, &Stream::new(vec![Fragment::Element(event)]));
            log.end_chunk();
        }
        let file = log.finish();
        compare(&file, &format!("{units} units"));
    }
}

/// Every record has its own implicit template; the scan keeps only some.
#[test]
#[ignore = "slow"]
fn a_flood_of_implicit_templates_reads_as_trees_do() {
    let mut log = LogWriter::new(1);
    for record in 0..600 {
        let data = Element::new("Data")
            .attribute("Name", format!("name{record}"))
            .text("x");
        let known = Element::new("Data").attribute("Name", "known").text(record.to_string());
        let system = Element::new("System").child(Element::new("EventID").text("7"));
        for data in [data, known] {
            let event = Element::new("Event")
                .child(system.clone())
                .child(Element::new("EventData").child(data));
            log.write_stream(0, &Stream::new(vec![Fragment::Element(event)]))
                .expect("it fits");
        }
    }
    compare(&log.finish(), "a flood");
}

proptest! {
    #![proptest_config(crate::common::generated(150))]

    #[test]
    #[ignore = "slow"]
    fn random_elements_read_as_their_trees_do(log in log()) {
        compare(&log.write(), "random");
    }

    #[test]
    fn damaged_elements_read_as_their_trees_do(
        log in log(),
        flips in vec((any::<Index>(), any::<u8>()), 1..6),
    ) {
                let mut file = log.write();
        prop_assume!(file.len() > FILE_HEADER);
        let used = file.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        let records = FILE_HEADER + 512..used.max(FILE_HEADER + 513);
        for (position, byte) in flips {
            let at = records.start + position.index(records.len());
            file[at] = byte;
        }
        compare(&file, "damaged");
    }
}
