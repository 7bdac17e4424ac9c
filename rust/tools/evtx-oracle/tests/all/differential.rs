//! Events of random templates and values, written by `evtx-writer`, read the same here, on both paths, and by
//! the oracle.

use crate::common::{cells, column};
use crate::oracle::Comparison;
use evtx_arrow::Options;
use evtx_writer::{Content, Element, Event, Fragment, LogWriter, Stream, Substitution, Template, Value};
use proptest::collection::vec;
use proptest::prelude::*;

/// Substitutions of a random template.
const SUBSTITUTIONS: u16 = 6;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ -~]{0,20}",
        1 => "[\u{1}-\u{1f}éß日本😀\u{fffe}<>&\"']{0,12}",
        // XML reads these as something else.
        1 => Just("  ]]> &amp; \t".to_owned()),
    ]
}

/// The substitutions below this one never hold an array.
const SINGLE: u16 = 2;

/// The FILETIME of the year 10000. Texts show later years without their first digit, and the oracle has only the text.
const AFTER_9999: u64 = 2_650_467_744_000_000_000;

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        25 => single_value(),
        2 => vec("[a-z<\"]{0,4}", 0..4).prop_map(Value::StringArray),
        1 => vec(any::<u32>(), 0..4).prop_map(Value::UInt32Array),
        1 => vec(prop_oneof![Just(0_u32), Just(1), Just(2)], 0..3).prop_map(|bools| {
            Value::Raw(0x8d, bools.iter().flat_map(|bool| bool.to_le_bytes()).collect())
        }),
    ]
}

fn single_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => Just(Value::Null),
        4 => text().prop_map(Value::String),
        1 => vec(1_u8.., 0..12).prop_map(Value::AnsiString),
        1 => any::<i8>().prop_map(Value::Int8),
        1 => any::<u8>().prop_map(Value::UInt8),
        1 => any::<i16>().prop_map(Value::Int16),
        1 => any::<u16>().prop_map(Value::UInt16),
        1 => any::<i32>().prop_map(Value::Int32),
        1 => any::<u32>().prop_map(Value::UInt32),
        1 => any::<i64>().prop_map(Value::Int64),
        1 => any::<u64>().prop_map(Value::UInt64),
        1 => any::<f32>().prop_map(Value::Real32),
        1 => any::<f64>().prop_map(Value::Real64),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => vec(any::<u8>(), 0..12).prop_map(Value::Binary),
        1 => any::<[u8; 16]>().prop_map(Value::Guid),
        1 => (i64::MAX as u64 + 1..).prop_map(Value::FileTime),
        1 => (0..AFTER_9999).prop_map(Value::FileTime),
        1 => any::<[u16; 8]>().prop_map(Value::SystemTime),
        1 => (0..1_u64 << 48, vec(any::<u32>(), 0..6)).prop_map(|(authority, subs)| Value::Sid(authority, subs)),
        1 => any::<u32>().prop_map(Value::HexInt32),
        1 => any::<u64>().prop_map(Value::HexInt64),
        1 => vec(element(false), 1..3).prop_map(|elements| Value::BinXml(Stream::new(elements.into_iter().map(Fragment::Element).collect()))),
    ]
}

fn content(substitutions: bool) -> BoxedStrategy<Content> {
    content_of(substitutions.then_some(SUBSTITUTIONS + 1))
}

/// Literal content, and substitutions below a limit.
fn content_of(substitutions: Option<u16>) -> BoxedStrategy<Content> {
    let substitution = (0..substitutions.unwrap_or(1), any::<bool>()).prop_map(|(index, optional)| {
        let substitution = Substitution::new(index, 1);
        Content::Substitution(if optional {
            substitution
        } else {
            substitution.required()
        })
    });
    let literal = prop_oneof![
        4 => text().prop_map(Content::Text),
        1 => "[a-z<& ]{0,6}".prop_map(Content::CData),
        1 => prop_oneof![Just("lt"), Just("amp"), Just("quot"), Just("apos"), Just("gt")].prop_map(|name| Content::EntityRef(name.to_owned())),
        1 => prop_oneof![0x20_u16..0xd800, Just(9)].prop_map(Content::CharRef),
    ];
    if substitutions.is_some() {
        prop_oneof![3 => substitution, 2 => literal].boxed()
    } else {
        literal.boxed()
    }
}

/// An element's name, attributes and dependency.
type Head = (&'static str, Vec<(&'static str, Vec<Content>)>, Option<u16>);

/// A leaf, or an element with some.
fn element(substitutions: bool) -> BoxedStrategy<Element> {
    let name = || prop_oneof![4 => Just("Data"), 1 => Just("Other"), 1 => Just("Name")];
    let attribute = (
        prop_oneof![3 => Just("Name"), 1 => Just("Id")],
        vec(content(false), 1..3),
    );
    // If an array is in an attribute other than a name, the oracle's JSON and XML do not agree on how
    // often it repeats the element.
    let attribute_with_substitutions = prop_oneof![
        3 => (Just("Name"), vec(content(substitutions), 1..3)),
        1 => (Just("Id"), vec(content_of(substitutions.then_some(SINGLE)), 1..3)),
    ];
    let attributes = prop_oneof![
        2 => Just(Vec::new()),
        4 => vec(attribute, 1..=1),
        1 => vec(attribute_with_substitutions, 1..=1),
    ];
    let dependency = prop_oneof![4 => Just(None), 1 => (0..SUBSTITUTIONS).prop_map(Some)];
    let build = move |(name, attributes, dependency): Head, content: Vec<Content>| {
        let mut element = Element::new(name);
        for (name, content) in attributes {
            element = element.attribute_of(name, content);
        }
        for piece in content {
            element = element.content(piece);
        }
        match dependency {
            Some(substitution) if substitutions => element.depends_on(substitution),
            _ => element,
        }
    };
    let leaf = ((name(), attributes, dependency), vec(content(substitutions), 0..3))
        .prop_map(move |(head, content)| build(head, content));
    leaf.prop_recursive(2, 8, 3, move |inner| {
        let id = vec(content_of(substitutions.then_some(SINGLE)), 1..3);
        let ids = prop_oneof![3 => Just(None), 1 => id.prop_map(Some)];
        (ids, vec(inner.prop_map(Content::Element), 1..4)).prop_map(|(id, children)| {
            let group = match id {
                Some(id) => Element::new("Group").attribute_of("Id", id),
                None => Element::new("Group"),
            };
            children.into_iter().fold(group, Element::content)
        })
    })
    .boxed()
}

fn system() -> impl Strategy<Value = Element> {
    let field = prop_oneof![
        Just("EventID"),
        Just("Level"),
        Just("Task"),
        Just("Keywords"),
        Just("Channel"),
        Just("Computer"),
        Just("EventRecordID"),
        Just("Version"),
    ];
    let text_field = (field, vec(content(true), 0..2))
        .prop_map(|(name, content)| content.into_iter().fold(Element::new(name), Element::content));
    let place = prop_oneof![
        Just(("Provider", "Name")),
        Just(("Provider", "Guid")),
        Just(("TimeCreated", "SystemTime")),
        Just(("Execution", "ProcessID")),
        Just(("Correlation", "ActivityID")),
        Just(("Security", "UserID")),
        Just(("EventID", "Qualifiers")),
    ];
    let attribute_field = (place, vec(content(true), 1..3))
        .prop_map(|((element, name), content)| Element::new(element).attribute_of(name, content));
    let field = prop_oneof![text_field, attribute_field];
    let dependency = prop_oneof![3 => Just(None), 1 => (0..SUBSTITUTIONS).prop_map(Some)];
    vec((field, dependency), 0..8).prop_map(|fields| {
        fields
            .into_iter()
            .fold(Element::new("System"), |system, (field, dependency)| {
                system.child(match dependency {
                    Some(substitution) => field.depends_on(substitution),
                    None => field,
                })
            })
    })
}

#[derive(Debug, Clone)]
struct RandomLog {
    events: Vec<(Element, Element, Vec<Vec<Value>>)>,
}

fn log() -> impl Strategy<Value = RandomLog> {
    let data = (
        prop_oneof![3 => Just("EventData"), 1 => Just("UserData")],
        vec(element(true).prop_map(Content::Element), 0..6),
    )
        .prop_map(|(name, children)| children.into_iter().fold(Element::new(name), Element::content));
    let single = vec(single_value(), usize::from(SINGLE)..=usize::from(SINGLE));
    let others = vec(
        value(),
        usize::from(SUBSTITUTIONS - SINGLE)..=usize::from(SUBSTITUTIONS - SINGLE),
    );
    let values = (single, others).prop_map(|(single, others)| [single, others].concat());
    let records = vec(values, 1..5);
    vec((system(), data, records), 1..3).prop_map(|events| RandomLog { events })
}

impl RandomLog {
    /// The log, with the data of events in a template of its own, or in that of the event.
    fn write(&self) -> Vec<u8> {
        let mut log = LogWriter::new(100);
        for (i, (system, data, records)) in self.events.iter().enumerate() {
            let outer = Element::new("Event").child(system.clone());
            let nested = Template::new(
                [i as u8; 16],
                outer.clone().substitution(Substitution::new(SUBSTITUTIONS, 33)),
            );
            let inner = Template::new([0x40 + i as u8; 16], data.clone());
            let flat = Template::new([0x80 + i as u8; 16], outer.child(data.clone()));
            for (n, values) in records.iter().enumerate() {
                let event = if n % 2 == 0 {
                    let data = Value::BinXml(Event::new(&inner, values.clone()).into());
                    Event::new(&nested, values.iter().cloned().chain([data]).collect())
                } else {
                    Event::new(&flat, values.clone())
                };
                // One that does not fit is not there.
                let _ = log.write(0, &event);
            }
        }
        log.finish()
    }
}

fn rows(file: &[u8], force_tree_path: bool) -> Vec<Vec<Option<String>>> {
    let options = Options {
        xml: true,
        json: true,
        text: true,
        fields: true,
        ..Options::default()
    };
    cells(file, "random", options, force_tree_path)
}

proptest! {
    #![proptest_config(crate::common::generated(2000))]

    #[test]
    fn random_events_read_as_the_oracle_reads_them(log in log()) {
        let file = log.write();
        let (plans, trees) = (rows(&file, false), rows(&file, true));
        let error = column(&Options::default(), "error");
        prop_assert_eq!(plans.len(), trees.len());
        for (plan, tree) in plans.iter().zip(&trees) {
            // What can be read of a damaged record depends on how far each path gets.
            prop_assert_eq!(plan[error].is_some(), tree[error].is_some(), "{:?} and {:?}", plan[error], tree[error]);
            prop_assert!(plan[error].is_some() || plan == tree, "{plan:?} on the compiled path, {tree:?} on the fallback");
        }
        let mut comparison = Comparison::default();
        comparison.log("random", &file);
        prop_assert!(comparison.differences.is_empty(), "{:#?}", comparison.differences);
    }
}

#[test]
fn a_time_after_the_year_9999_is_not_what_its_text_shows() {
    let created = Element::new("TimeCreated").attribute_substitution("SystemTime", Substitution::new(0, 17));
    let template = Template::new(
        [1; 16],
        Element::new("Event").child(Element::new("System").child(created)),
    );
    let mut log = LogWriter::new(1);
    let event = Event::new(&template, vec![Value::FileTime(3_179_906_215_631_452_242)]);
    log.write(132_223_104_000_000_000, &event).expect("it fits");
    let file = log.finish();
    for force_tree_path in [false, true] {
        let rows = rows(&file, force_tree_path);
        assert_eq!(rows.len(), 1);
        let text = "TimeCreated.SystemTime: 1677-09-21T00:12:43.1452242Z";
        assert!(rows[0].contains(&Some(text.to_owned())), "{rows:?}");
        assert_eq!(rows[0][column(&Options::default(), "time_created")], None, "{rows:?}");
    }
}
