//! Each kind of value, and records that are no good.

use evtx_arrow::Options;
use evtx_format::container::record::Record;
use evtx_writer::{
    Content, Cutter, Element, Event, Fragment, LogWriter, Redactor, Stream, Substitution, Template, Value, WriteError,
};
use serde_json::json;

use super::{HEADER, Random, log_of, options, rows};
use crate::common::{cell, every_column, read, samples};

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn sid() -> Vec<u8> {
    let mut sid = vec![1, 5, 0, 0, 0, 0, 0, 5];
    sid.extend([21_u32, 1, 2, 3, 1001].iter().flat_map(|sub| sub.to_le_bytes()));
    sid
}

/// The records of a log, also damaged ones.
fn records(file: &[u8]) -> Vec<Vec<u8>> {
    let chunk = &file[HEADER..];
    let record = |at| Record::read(chunk, at).ok();
    let all = std::iter::successors(record(512), |last| record((last.offset + last.size) as usize));
    let mut cutter = Cutter::default();
    all.map(|record| {
        cutter
            .cut(chunk, record.id, record.written, record.binxml())
            .expect("a record")
            .to_vec()
    })
    .collect()
}

fn log(stream: &Stream) -> Vec<u8> {
    let mut log = LogWriter::new(1);
    log.write_stream(132_223_104_000_000_000, stream).expect("a record");
    log.finish()
}

fn redacted(stream: &Stream, rules: Result<Redactor, String>) -> Result<Vec<u8>, WriteError> {
    let record = records(&log(stream)).remove(0);
    let mut redactor = rules.expect("rules");
    redactor.redact(&record).map(<[u8]>::to_vec)
}

/// The members of `EventData` after redaction. The log contains the secret in no form.
fn event_data(event: &Event, rules: Result<Redactor, String>) -> Result<serde_json::Value, String> {
    let record = redacted(&event.clone().into(), rules).map_err(|error| error.to_string())?;
    let file = log_of([record.as_slice()]);
    let lower = file[HEADER..].to_ascii_lowercase();
    for secret in [wide("alice"), b"alice".to_vec(), sid()[2..].to_vec()] {
        assert!(!lower.windows(secret.len()).any(|bytes| bytes == secret), "{secret:?}");
    }
    Ok(rows(&file).remove(0).json["Event"]["EventData"].clone())
}

/// An event with one value, in the field `Field`.
fn of(value: Value) -> Event {
    let data = Element::new("Data").attribute("Name", "Field");
    let data = data.substitution(Substitution::new(0, value.value_type()));
    let root = Element::new("Event").child(Element::new("EventData").child(data));
    Event::new(&Template::new([7; 16], root), vec![value])
}

fn by_field(value: Value, new: Option<&str>) -> Result<serde_json::Value, String> {
    event_data(&of(value), Redactor::new(&[("field", new)])).map(|data| data["Field"].clone())
}

fn sid_value() -> Value {
    Value::Sid(5, vec![21, 1, 2, 3, 1001])
}

#[test]
fn a_field_is_replaced_in_its_type() {
    let time = "2018-03-20T00:00:00.1234567Z";
    for (value, new, expected) in [
        (Value::string("Alice\0"), "u1", json!("u1")),
        (Value::AnsiString(b"alice".to_vec()), "\u{20ac}", json!("\u{20ac}")),
        (Value::UInt16(5), "7", json!(7)),
        (Value::Bool(true), "false", json!(false)),
        (Value::FileTime(1), time, json!(time)),
        (sid_value(), "S-1-5-7", json!("S-1-5-7")),
        (Value::HexInt64(5), "0x7", json!("0x7")),
        (Value::Binary(vec![1, 2, 3]), "00ff", json!("00FF")),
        (
            Value::StringArray(vec!["Alice".into(), "b".into()]),
            "u",
            json!(["u", "u"]),
        ),
        (Value::UInt32Array(vec![1, 2]), "3", json!([3, 3])),
        // Without a value, nothing tells who was there.
        (Value::Null, "u1", json!("")),
        (Value::string(""), "u1", json!("")),
        (Value::string("\0alice"), "u1", json!("u1")),
    ] {
        let shown = format!("{value:?}");
        assert_eq!(by_field(value, Some(new)), Ok(expected), "{shown}");
    }
    for value in [
        Value::string("Alice"),
        Value::UInt16(5),
        sid_value(),
        Value::Binary(vec![1]),
    ] {
        assert_eq!(by_field(value.clone(), None), Ok(json!("")));
        // Readers such as libevtx fail on a NULL where a template has no optional value, so it becomes optional.
        let data = Element::new("Data").attribute("Name", "Field");
        let data = data.substitution(Substitution::new(0, value.value_type()).required());
        let root = Element::new("Event").child(Element::new("EventData").child(data));
        let event = Event::new(&Template::new([7; 16], root), vec![value]);
        let data = event_data(&event, Redactor::new(&[("field", None)]));
        assert_eq!(data, Ok(json!({"Field": ""})));
    }
    assert_eq!(
        by_field(Value::HexInt64(5), Some("x")),
        Err("the field field (HexInt64) cannot be redacted: 'x' is not of this type, or too long".to_owned())
    );
    let stream = Value::BinXml(Stream::new(vec![Fragment::Element(Element::new("a").text("b"))]));
    assert!(
        by_field(stream, Some("x"))
            .expect_err("elements")
            .contains("it contains elements")
    );
}

/// A definition with texts in each place, and an instance of another one as a value.
fn nested() -> Event {
    let data = |name: &str| Element::new("Data").attribute("Name", name);
    let root = Element::new("EventData")
        .child(data("Alice").text("x"))
        .child(data("Literal").text("by Alice"))
        .child(data("CData").content(Content::CData("alice".into())))
        .child(data("Mixed").text("alice ").substitution(Substitution::new(0, 1)))
        .child(data("Twice").substitution(Substitution::new(1, 1)))
        .child(data("Again").substitution(Substitution::new(1, 1)))
        .child(data("Twice").text("second"))
        .child(Element::new("IsAlice").attribute("Of", "alice").text("y"));
    let values = [
        Value::string("Bob"),
        Value::string("Alice"),
        Value::string("alice, unused"),
    ];
    let inner = Event::new(&Template::new([8; 16], root), values.into());
    let root = Element::new("Event").substitution(Substitution::new(0, 33));
    Event::new(&Template::new([7; 16], root), vec![Value::BinXml(inner.into())])
}

#[test]
fn an_element_with_attributes_alone_is_no_field() {
    let security = Element::new("Security").attribute("UserID", "S-1-5-7");
    let root = Element::new("Event").child(Element::new("EventData").child(security));
    let event = Event::new(&Template::new([7; 16], root), vec![]);
    let refused = event_data(&event, Redactor::new(&[("security", Some("x"))])).expect_err("no value");
    assert_eq!(
        refused,
        "the field security cannot be redacted: it would have only attributes. Name those"
    );
}

#[test]
fn a_field_is_replaced_wherever_it_is_in_a_definition() {
    let pairs: &[(&str, Option<&str>)] = &[
        ("LITERAL", Some("l")),
        ("cdata", Some("c")),
        ("Mixed", Some("m")),
        ("Again", Some("a")),
        ("twice_1", Some("t")),
        ("Of", Some("o")),
        ("IsAlice", Some("i")),
    ];
    // The last value is not shown, so it is no field.
    let record = redacted(&nested().into(), Redactor::new(pairs)).expect("redacted");
    let file = log_of([record.as_slice()]);
    let expected = json!({"Alice": "x", "Literal": "l", "CData": "c", "Mixed": "m", "Twice": "a", "Again": "a",
        "Twice_1": "t", "IsAlice": {"#attributes": {"Of": "o"}, "#text": "i"}});
    assert_eq!(rows(&file)[0].json["Event"]["EventData"], expected);
    let both = [("Twice", Some("x")), ("Again", Some("y"))];
    let refused = redacted(&nested().into(), Redactor::new(&both)).expect_err("two texts");
    assert!(refused.to_string().contains("shows the same value"), "{refused}");
}

#[test]
fn data_without_names_are_numbered_as_in_event_data() {
    let data = |index, of| Element::new("Data").substitution(Substitution::new(index, of));
    let root = Element::new("EventData")
        .child(data(0, 0x81))
        .child(data(1, 1))
        .child(Element::new("Data").text("z"));
    let template = Template::new([7; 16], Element::new("Event").child(root));
    let values = vec![Value::StringArray(vec!["a".into(), "alice".into()]), Value::string("b")];
    let event = Event::new(&template, values);
    let pairs = [("param2", Some("u1")), ("Param3", Some("u2"))];
    let data = event_data(&event, Redactor::new(&pairs)).expect("redacted");
    assert_eq!(data, json!({"Data": {"#text": ["a", "u1", "u2", "z"]}}));
    let data = event_data(&event, Redactor::new(&[("Data", Some("d"))])).expect("redacted");
    assert_eq!(data, json!({"Data": {"#text": ["d", "d", "d", "d"]}}));
    let data = |index, of| Element::new("Data").substitution(Substitution::new(index, of));
    let root = Element::new("EventData")
        .child(Element::new("Data").text("z"))
        .child(data(0, 0x81))
        .child(data(1, 1));
    let template = Template::new([9; 16], Element::new("Event").child(root));
    let values = vec![Value::StringArray(vec!["a".into(), "alice".into()]), Value::string("b")];
    let pairs = [("param1", None), ("param3", Some("u1")), ("Param4", Some("u2"))];
    let data = event_data(&Event::new(&template, values), Redactor::new(&pairs)).expect("redacted");
    assert_eq!(data, json!({"Data": {"#text": ["", "a", "u1", "u2"]}}));
}

/// The fields of several elements are numbered together, as in `event_data`.
#[test]
fn numbers_count_the_fields_of_all_elements() {
    let element = |text: &str| {
        let data = Element::new("EventData").child(Element::new("Data").attribute("Name", "Field").text(text));
        data.child(Element::new("Data").text(text))
    };
    let inner = Template::new([8; 16], element("alice"));
    let in_stream = |fragment| {
        let root = Element::new("Event").child(element("alice"));
        let root = root.content(Content::Substitution(Substitution::new(0, 0x21)));
        let values = vec![Value::BinXml(Stream::new(vec![fragment]))];
        Event::new(&Template::new([7; 16], root), values)
    };
    let root = Element::new("Event").child(element("alice")).child(element("alice"));
    let pairs = [("Field", "u1"), ("Field_1", "u2"), ("param1", "u3"), ("param2", "u4")];
    for event in [
        Event::new(&Template::new([7; 16], root), vec![]),
        in_stream(Fragment::Element(element("alice"))),
        in_stream(Fragment::Instance(Event::new(&inner, vec![]))),
    ] {
        let rules = Redactor::new(&pairs.map(|(name, new)| (name, Some(new))));
        let record = redacted(&event.into(), rules).expect("redacted");
        let options = Options::default();
        let batches = read(&log_of([record.as_slice()]), "log", options, &every_column(&options)).expect("a log");
        let data = cell(&batches[0], "event_data", 0).expect("fields");
        for (name, new) in pairs {
            assert!(data.contains(&format!("{name}=Some({new:?})")), "{data}");
        }
    }
}

#[test]
fn a_definition_that_changes_gets_a_guid_of_its_own() {
    let guid = |record: &[u8]| {
        let id: [u8; 4] = record[30..34].try_into().expect("four bytes");
        let definition = u32::from_le_bytes(record[34..38].try_into().expect("four bytes")) as usize;
        let guid: [u8; 16] = record[definition + 4..definition + 20].try_into().expect("a GUID");
        assert_eq!(id, guid[..4]);
        guid
    };
    let text = Element::new("Event").child(Element::new("EventData").child(Element::new("Data").text("Alice")));
    let stream = Event::new(&Template::new([7; 16], text), vec![]).into();
    let by = |field: &str, new: &str| guid(&redacted(&stream, Redactor::new(&[(field, Some(new))])).expect("redacted"));
    assert_eq!(by("Other", "u1"), [7; 16]);
    assert_ne!(by("Data", "u1"), [7; 16]);
    assert_eq!(by("Data", "u1"), by("dAta", "u1"));
    assert_ne!(by("Data", "u1"), by("Data", "u2"));
}

#[test]
fn rules_that_contradict_each_other_are_refused() {
    let two = Redactor::new(&[("a", Some("x")), ("A", Some("y"))]).expect_err("two");
    assert!(two.contains("are the same field"), "{two}");
    for (name, why) in [("", "a field to redact is empty"), ("a\0", "contains a NUL")] {
        assert!(Redactor::new(&[(name, Some("x"))]).expect_err("no rules").contains(why));
    }
}

/// Crafted records give errors, or records that can be written and read.
#[test]
fn crafted_records_cost_an_error() {
    let mut all = Vec::new();
    for log in samples().iter().take(5) {
        all.extend(
            rows(&std::fs::read(log).expect("the log"))
                .into_iter()
                .step_by(7)
                .map(|row| row.record),
        );
    }
    all.extend(records(&log(&nested().into())));
    let fields = [
        ("targetusername", Some("u1")),
        ("Computer", Some("c")),
        ("param1", None),
        ("LogonType", Some("3")),
        ("Name", Some("n")),
    ];
    let mut redactor = Redactor::new(&fields).expect("rules");
    let (mut random, mut written, mut refused) = (Random(3), 0, 0);
    for round in 0..20_000 {
        let mut record = random.of(&all).expect("a record").clone();
        for _ in 0..random.below(4) {
            let place = 8 + random.below(record.len() - 8);
            record[place] = random.below(256) as u8;
        }
        let Ok(redacted) = redactor.redact(&record) else {
            refused += 1;
            continue;
        };
        if round % 50 < 2 {
            let mut copy = LogWriter::new(1);
            if evtx_writer::CutRecord::new(redacted)
                .and_then(|record| copy.write_cut(record))
                .is_ok()
            {
                read(&copy.finish(), "log", options(), &every_column(&options())).expect("a log");
            }
        }
        written += 1;
    }
    assert!(written > 3000 && refused > 3000, "{written} {refused}");
}
