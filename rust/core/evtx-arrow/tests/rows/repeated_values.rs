//! Records that are alike but for a byte, a size or a type somewhere: what a row takes over from one before is what it
//! would have been read as.

use std::sync::Arc;

use crate::common::cells;
use evtx_arrow::Options;
use evtx_writer::{Content, Element, Event, Fragment, LogWriter, Stream, Substitution, Template, Value};
use proptest::collection::vec;
use proptest::prelude::*;

/// Substitutions of a template: four of `System`, then those of `EventData`.
const SUBSTITUTIONS: usize = 10;

/// Values that are often the same, and otherwise differ in one byte.
fn value() -> impl Strategy<Value = Value> {
    let text = |text: &str| Just(Value::string(text));
    prop_oneof![
        4 => text("AAAAAAAA-1-BBBBBBBB"),
        4 => text("AAAAAAAA-2-BBBBBBBB"),
        4 => text("1"),
        4 => text("2"),
        4 => text(""),
        8 => Just(Value::Null),
        4 => Just(Value::UInt32(1)),
        4 => Just(Value::UInt32(2)),
        4 => Just(Value::HexInt32(1)),
        1 => Just(Value::StringArray(vec!["1".to_owned(), "2".to_owned()])),
        1 => Just(Value::StringArray(vec!["1".to_owned()])),
        1 => stream("1"),
        1 => stream("2"),
    ]
}

/// A stream with an element whose name is at another offset in each chunk.
fn stream(name: &str) -> impl Strategy<Value = Value> + use<> {
    let element = Element::new(format!("Element{name}")).text(name);
    Just(Value::BinXml(Stream::new(vec![Fragment::Element(element)])))
}

fn options() -> Options {
    Options {
        xml: true,
        json: true,
        text: true,
        fields: true,
        ..Options::default()
    }
}

fn template(id: u8) -> Arc<Template> {
    let substitution = |index: usize| Substitution::new(index as u16, 1);
    let leaf = |name: &str, index| Element::new(name).substitution(substitution(index));
    let attribute =
        |name: &str, attribute: &str, index| Element::new(name).attribute_substitution(attribute, substitution(index));
    // Elements that vary are between elements that do not, and share values with them.
    let mut children = vec![
        attribute("Provider", "Name", 0),
        leaf("EventID", 1),
        attribute("TimeCreated", "SystemTime", 4),
        leaf("EventRecordID", 1),
        leaf("Computer", 2),
        attribute("Execution", "ProcessID", 5),
        attribute("Security", "UserID", 3),
        Element::new("Channel").text(format!("Channel {id}")),
    ];
    match id {
        1 => {}
        // Elements that are left out, and a text around a value.
        2 => {
            children[4] = leaf("Computer", 2).depends_on(3);
            children[6] = Element::new("Keywords")
                .text("from ")
                .content(Content::Substitution(substitution(3)))
                .depends_on(3);
        }
        // What is the first element depends on what varies.
        _ => {
            children.drain(..2);
            children[0] = attribute("TimeCreated", "SystemTime", 4).depends_on(4);
            children.remove(1);
        }
    }
    let system = children.into_iter().fold(Element::new("System"), Element::child);
    let data = (4..SUBSTITUTIONS).map(|index| leaf("Data", index).attribute("Name", format!("Field {index}")));
    let data = data.fold(Element::new("EventData"), Element::child);
    Template::new([id; 16], Element::new("Event").child(system).child(data))
}

proptest! {
    #![proptest_config(crate::common::generated(100))]

    #[test]
    fn records_that_are_alike_read_as_each_would_alone(
        start in vec(value(), SUBSTITUTIONS),
        changes in vec(
            (
                0..3_usize,
                prop::option::of((0..SUBSTITUTIONS, value())),
                // How many values a record has, if not all.
                prop::option::weighted(0.2, 0..=SUBSTITUTIONS),
                any::<bool>(),
                // Whether later records have the new value too.
                any::<bool>(),
            ),
            1..80,
        ),
    ) {
        let templates = [template(1), template(2), template(3)];
        let mut log = LogWriter::new(1);
        let mut values = start;
        for (which, change, count, ends_chunk, stays) in changes {
            let before = values.clone();
            if let Some((substitution, value)) = change {
                values[substitution] = value;
            }
            let there = values[..count.unwrap_or(SUBSTITUTIONS)].to_vec();
            log.write(132_223_104_000_000_000, &Event::new(&templates[which], there)).expect("it fits");
            if ends_chunk && values[0] == Value::Null {
                log.end_chunk();
            }
            if !stays {
                values = before;
            }
        }
        let file = log.finish();
        let rows = |force_tree_path| cells(&file, "alike", options(), force_tree_path);
        prop_assert_eq!(rows(false), rows(true));
    }
}

#[test]
fn rows_of_system_are_kept_from_batch_to_batch() {
    let templates = [template(1), template(2)];
    let mut log = LogWriter::new(1);
    // Few rows, then more than are kept, then some of these again; a few have long texts.
    for i in 0..9000_usize {
        let kind = match i / 3000 {
            0 => i % 40,
            1 => i % 1500,
            _ => i * i % 300,
        };
        let name = |substitution: usize| match kind % (7 + substitution) {
            0 => Value::Null,
            1 => Value::string("a long name ".repeat(40) + &kind.to_string()),
            _ => Value::string(format!("{substitution} of {kind}")),
        };
        let values = (0..SUBSTITUTIONS).map(|substitution| {
            if substitution < 4 {
                name(substitution)
            } else {
                Value::Null
            }
        });
        let event = Event::new(&templates[kind % 2], values.collect());
        log.write(132_223_104_000_000_000, &event).expect("it fits");
    }
    let file = log.finish();
    let (rows, trees) = (
        cells(&file, "kept", options(), false),
        cells(&file, "kept", options(), true),
    );
    assert_eq!(rows.len(), 9000);
    for (row, (kept, tree)) in rows.iter().zip(&trees).enumerate() {
        assert_eq!(kept, tree, "row {row}");
    }
}

/// The text of `System` can be the end of a text that is too long only with it.
#[test]
fn a_text_is_too_long_with_the_system_of_an_event_before_too() {
    const ITEMS: usize = 32_767;
    let named = |name: usize| Element::new("Data").attribute("Name", "n".repeat(name));
    for (column, data) in [
        ("text", named(508)),
        ("fields", named(509)),
        ("xml", Element::new("D".repeat(253))),
    ] {
        let leaf = |name: &str, index| Element::new(name).substitution(Substitution::new(index, 1));
        let system = Element::new("System")
            .child(leaf("EventID", 1))
            .child(leaf("Computer", 2));
        let data = Element::new("EventData").child(data.substitution(Substitution::new(0, 1)));
        let template = Template::new([7; 16], Element::new("Event").child(data).child(system));
        let mut log = LogWriter::new(1);
        for items in [3, ITEMS] {
            let values = vec![
                Value::Raw(0x84, vec![5; items]),
                Value::UInt16(42),
                Value::string("€".repeat(480)),
            ];
            log.write(132_223_104_000_000_000, &Event::new(&template, values))
                .expect("it fits");
            log.end_chunk();
        }
        let file = log.finish();
        let options = Options {
            text: column == "text",
            fields: column == "fields",
            xml: column == "xml",
            ..Options::default()
        };
        let rows = cells(&file, "long", options, false);
        let is_too_long = |row: &Vec<Option<String>>| row.iter().flatten().any(|cell| cell.contains("exceeds 16 MiB"));
        assert_eq!(
            rows.iter().map(is_too_long).collect::<Vec<_>>(),
            [false, true],
            "{column}"
        );
    }
}
