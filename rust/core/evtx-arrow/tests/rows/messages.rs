//! Messages: of an `.MTA` file that is damaged, and of catalogs.

use std::sync::Arc;

use crate::common::{cell, column, messages, sample_folder, scan_with_messages};
use evtx_arrow::{Options, Scan, Table};
use evtx_extras::{Extras, MessageCatalog};
use evtx_format::Interrupt;
use evtx_messages::mta::SavedMessages;
use evtx_messages::{Catalog, CatalogWriter, Field, MessageKind, MessageRow};
use evtx_writer::{Content, Element, Event, Fragment, LogWriter, Stream, Substitution, Template, Value};

#[test]
fn damaged_messages_are_none_and_cost_nothing_else() {
    let folder = sample_folder();
    let mta = std::fs::read(folder.join("LocaleMetaData/DC01-System_1033.MTA")).expect("the messages");
    let log = std::fs::read(folder.join("DC01-System.evtx")).expect("the log");
    assert_eq!(messages(&log, Some(b"no messages".to_vec())), vec![None; 10]);
    let mut state = 7_u64;
    for case in 0..20_000 {
        let mut damaged = mta.clone();
        for _ in 0..=case % 3 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // The tables and page headers more often than the text.
            let at = (state >> 33) as usize % if case % 2 == 0 { damaged.len() } else { 160 };
            damaged[at] = (state >> 20) as u8;
        }
        if case % 7 == 0 {
            damaged.truncate((state >> 30) as usize % damaged.len());
        }
        // Whatever it says, it ends and does not panic.
        if let Ok(read) = SavedMessages::read(damaged, Interrupt::NEVER) {
            let mut out = Vec::new();
            for record in 14_000..14_012 {
                read.push("EventLog", record, record, &mut out);
            }
        }
    }
}

/// An event, ID 1 and version 5, with an `EventData`.
fn event(data: Content) -> Element {
    let system = Element::new("System")
        .child(Element::new("Provider").attribute("Name", "P"))
        .child(Element::new("EventID").text("1"))
        .child(Element::new("Version").text("5"));
    Element::new("Event").child(system).content(data)
}

fn event_data<'n>(fields: impl Iterator<Item = (&'n str, Content)>) -> Element {
    let field = |(name, content)| Element::new("Data").attribute("Name", name).content(content);
    fields.map(field).fold(Element::new("EventData"), Element::child)
}

/// The `EventData` of a template that declares fields: their names and types.
fn declared(fields: &[(&str, u8)]) -> Element {
    let substitution = |(index, field): (u16, &(_, u8))| Content::Substitution(Substitution::new(index, field.1));
    let names = fields.iter().map(|(name, _)| *name);
    event_data(names.zip((0..).zip(fields).map(substitution)))
}

/// A log of an event with an `EventData` of a template.
fn log_with_template(data: Element, values: Vec<Value>) -> Vec<u8> {
    let inner = Event::new(&Template::new([2; 16], data), values);
    let outer = Template::new([1; 16], event(Content::Substitution(Substitution::new(0, 33))));
    let mut log = LogWriter::new(1);
    log.write(0, &Event::new(&outer, vec![Value::BinXml(inner.into())]))
        .expect("an event that fits");
    log.finish()
}

/// A log of an event that spells out its fields.
fn log_without_template(fields: &[(&str, String)]) -> Vec<u8> {
    let texts = fields.iter().map(|(name, text)| (*name, Content::Text(text.clone())));
    let event = event(Content::Element(event_data(texts)));
    let mut log = LogWriter::new(1);
    log.write_stream(0, &Stream::new(vec![Fragment::Element(event)]))
        .expect("an event that fits");
    log.finish()
}

/// The message of the event in a log and its source, with a catalog of one text for fields with these names.
fn shown(log: &[u8], text: &str, names: &[&str], is_tree: bool) -> Vec<[Option<String>; 2]> {
    let field = |name: &&str| Field {
        name: (*name).into(),
        in_type: 1,
        ..Field::default()
    };
    let row = MessageRow {
        provider: Some("P".into()),
        event_id: Some(1),
        version: Some(5),
        text: Some(text.into()),
        fields: names.iter().map(field).collect(),
        file: "p.dll".into(),
        ..MessageRow::new(MessageKind::Event)
    };
    let mut writer = CatalogWriter::new(u64::MAX);
    writer.push(&row).expect("a row");
    let catalog = Catalog::open(writer.finish(Interrupt::NEVER).expect("a catalog")).expect("a catalog");
    let extras = Extras {
        message_source: true,
        ..Extras::default()
    };
    let options = (Options::default(), extras);
    let catalog = MessageCatalog {
        path: "p.messages".into(),
        messages: Arc::new(catalog),
    };
    let table = extras.of(Table::from(Options::default()), Some(catalog));
    let columns = ["message", "message_source"];
    let mut scan = Scan::new(table, &columns.map(|name| column(&options, name)));
    if is_tree {
        scan = scan.force_tree_path();
    }
    let mut rows = Vec::new();
    scan_with_messages(log, "log", scan, None, |batch| {
        rows.extend((0..batch.num_rows()).map(|row| columns.map(|column| cell(&batch, column, row))));
    })
    .expect("a log");
    rows
}

/// Of OTRF's Security-Datasets, 97,970 of 97,970 pointers with a letter have lower-case digits in the message of Windows, and
/// 92,996 of 92,996 hexadecimal numbers have upper-case ones. A log stores both alike: only the template tells them apart.
#[test]
fn pointers_have_lower_case_digits_and_hexadecimal_numbers_upper_case_ones() {
    let fields = [
        ("SubjectLogonId", 21),
        ("NewProcessId", 16),
        ("ProcessId", 16),
        ("Status", 20),
    ];
    let values = [
        Value::HexInt64(0x27_49b2),
        Value::HexInt64(0x1b50),
        Value::HexInt32(0xabc),
        Value::HexInt32(0xc000_006d),
    ];
    // An array in an attribute, for which the record needs a tree.
    let array = Element::new("Data").attribute_substitution("Type", Substitution::new(4, 0x88));
    let with_array = [&values[..], &[Value::UInt32Array(vec![1, 2])]].concat();
    for log in [
        log_with_template(declared(&fields), values.to_vec()),
        log_with_template(declared(&fields).child(array), with_array),
    ] {
        let expected = "0x2749B2 0x1b50 0xabc 0xC000006D".to_owned();
        assert_eq!(shown(&log, "%1 %2 %3 %4", &[], false)[0][0], Some(expected));
    }
}

/// Sysmon 9 and later versions declare version 5 of event 1 with other fields.
#[test]
fn the_names_of_fields_decide_which_value_a_text_has() {
    let logs = |names: &[&'static str]| {
        let texts: Vec<_> = names.iter().map(|name| (*name, format!("<{name}>"))).collect();
        let fields: Vec<_> = names.iter().map(|name| (*name, 1)).collect();
        let values = texts.iter().map(|(_, text)| Value::string(text)).collect();
        [
            log_with_template(declared(&fields), values),
            log_without_template(&texts),
        ]
    };
    let newer = ["RuleName", "Image", "OriginalFileName", "CommandLine"];
    let source = Some("catalog: p.dll".to_owned());
    for (names, text, expected) in [
        (
            &newer[..],
            "%2 is %3, ran %4",
            Some("<Image> is <OriginalFileName>, ran <CommandLine>"),
        ),
        (&["Image", "CommandLine"], "%2 is %3, ran %4", None),
        (
            &["Image", "CommandLine"],
            "%2 ran %4",
            Some("<Image> ran <CommandLine>"),
        ),
        (
            &["Image", "Company", "Hashes", "CommandLine"],
            "%2 ran %4",
            Some("<Image> ran <CommandLine>"),
        ),
    ] {
        let expected = expected.map(str::to_owned);
        let expected = [expected.clone(), expected.and(source.clone())];
        for (log, is_tree) in logs(names).iter().flat_map(|log| [(log, false), (log, true)]) {
            assert_eq!(
                shown(log, text, &newer, is_tree),
                std::slice::from_ref(&expected),
                "{names:?} {is_tree}"
            );
        }
    }
}
