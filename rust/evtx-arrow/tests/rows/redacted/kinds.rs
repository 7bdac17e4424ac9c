//! Each kind of value, and records that are no good.

use std::sync::Arc;

use evtx_format::container::record::Record;
use evtx_writer::{
    Content, Cutter, Element, Event, Fragment, LogWriter, Redactor, Rules, Stream, Substitution, Template, Value,
    WriteError,
};
use serde_json::json;

use super::{HEADER, Random, log_of, options, rows};
use crate::common::{every_column, read, samples};

const SECRET: &str = "Alice";
const SID: &str = "S-1-5-21-1-2-3-1001";

type Pairs<'p> = &'p [(&'p str, Option<&'p str>)];

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

fn redacted(stream: &Stream, rules: Result<Rules, String>) -> Result<Vec<u8>, WriteError> {
    let record = records(&log(stream)).remove(0);
    let mut redactor = Redactor::new(Arc::new(rules.expect("rules")));
    redactor.redact(&record).map(<[u8]>::to_vec)
}

/// The members of `EventData` after redaction. The log contains the secret in no form.
fn event_data(event: &Event, rules: Result<Rules, String>) -> Result<serde_json::Value, String> {
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

fn by_value(value: Value, new: &str) -> Result<serde_json::Value, String> {
    let pairs = [(SECRET, Some(new)), (SID, Some("S-1-5-7"))];
    event_data(&of(value), Rules::values(&pairs)).map(|data| data["Field"].clone())
}

fn by_field(value: Value, new: Option<&str>) -> Result<serde_json::Value, String> {
    event_data(&of(value), Rules::fields(&[("field", new)])).map(|data| data["Field"].clone())
}

fn sid_value() -> Value {
    Value::Sid(5, vec![21, 1, 2, 3, 1001])
}

#[test]
fn a_value_is_replaced_in_each_type() {
    let hex = |bytes: &[u8]| json!(bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>());
    for (value, expected) in [
        (Value::string("C:\\Users\\ALICE\\x"), json!("C:\\Users\\u1\\x")),
        (Value::string("x\0alice"), json!("xu1")),
        (Value::AnsiString(b"caf\xe9 alice".to_vec()), json!("caf\u{e9} u1")),
        (Value::StringArray(vec!["a".into(), "alice".into()]), json!(["a", "u1"])),
        (Value::Raw(0x82, b"a\0alice\0".to_vec()), json!(["a", "u1"])),
        (sid_value(), json!("S-1-5-7")),
        (Value::string(SID), json!("S-1-5-7")),
        (Value::Raw(0x93, [sid(), sid()].concat()), json!(["S-1-5-7", "S-1-5-7"])),
        (
            Value::Binary([&[1], &wide("aLice")[..], &[2]].concat()),
            hex(&[&[1], &wide("u1")[..], &[2]].concat()),
        ),
        (
            Value::Binary([&[1, 2], &wide("aLice")[..]].concat()),
            hex(&[&[1, 2], &wide("u1")[..]].concat()),
        ),
        (Value::Binary(b"\xffalice\xff".to_vec()), hex(b"\xffu1\xff")),
        (
            Value::Binary([&[9], &sid()[..], &[9]].concat()),
            hex(&[9, 1, 1, 0, 0, 0, 0, 0, 5, 7, 0, 0, 0, 9]),
        ),
    ] {
        let shown = format!("{value:?}");
        assert_eq!(by_value(value, "u1"), Ok(expected), "{shown}");
    }
}

#[test]
fn a_whole_number_is_replaced_by_one_of_its_type() {
    let by = |value: Value, text: &str, new: &str| {
        event_data(&of(value), Rules::values(&[(text, Some(new))])).map(|data| data["Field"].clone())
    };
    assert_eq!(by(Value::UInt32(4711), "4711", "1"), Ok(json!(1)));
    assert_eq!(by(Value::Int64(-4711), "-4711", "1"), Ok(json!(1)));
    assert_eq!(by(Value::UInt32(47_110), "4711", "1"), Ok(json!(47_110)));
    assert_eq!(by(Value::UInt32Array(vec![1, 4711]), "4711", "2"), Ok(json!([1, 2])));
    assert_eq!(by(Value::HexInt64(0x51_0031), "0X510031", "0x0"), Ok(json!("0x0")));
    assert_eq!(
        by(
            Value::Guid([0xab; 16]),
            "ABABABAB-abab-abab-abab-abababababab",
            "00000000-0000-0000-0000-000000000001"
        ),
        Ok(json!("{00000000-0000-0000-0000-000000000001}"))
    );
    let time = Value::FileTime(131_659_776_001_234_567);
    assert_eq!(
        by(time, "2018-03-20T00:00:00.1234567Z", "2000-01-01T00:00:00Z"),
        Ok(json!("2000-01-01T00:00:00.0000000Z"))
    );
    let refused = by(Value::UInt32(4711), "4711", "x").expect_err("not a number");
    assert_eq!(
        refused,
        "the value '4711' in a value of type UInt32 cannot be redacted: 'x' is not of this type"
    );
    let refused =
        by_value(sid_value(), "u1").and_then(|_| event_data(&of(sid_value()), Rules::values(&[("1001", Some("x"))])));
    assert!(
        refused
            .expect_err("not a SID")
            .ends_with("cannot be redacted: the result is not a SID")
    );
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
        // Readers such as libevtx fail on a NULL where a template has no optional value.
        let data = Element::new("Data").attribute("Name", "Field");
        let data = data.substitution(Substitution::new(0, value.value_type()).required());
        let root = Element::new("Event").child(Element::new("EventData").child(data));
        let is_text = matches!(value, Value::String(_));
        let event = Event::new(&Template::new([7; 16], root), vec![value]);
        match event_data(&event, Rules::fields(&[("field", None)])) {
            Ok(data) => assert!(is_text && data == json!({"Field": ""}), "{data}"),
            Err(why) => assert!(!is_text && why.contains("field cannot be NULL here"), "{why}"),
        }
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
fn a_value_is_replaced_in_definitions_and_values_that_nobody_shows() {
    let data = event_data(&nested(), Rules::values(&[(SECRET, Some("u1"))])).expect("redacted");
    let expected = json!({"u1": "x", "Literal": "by u1", "CData": "u1", "Mixed": "u1 Bob", "Twice": "u1", "Again": "u1",
        "Twice_1": "second", "Isu1": {"#attributes": {"Of": "u1"}, "#text": "y"}});
    assert_eq!(data, expected);
    let data = event_data(&nested(), Rules::values(&[(SECRET, None), ("unused", None)])).expect("redacted");
    assert_eq!(data["Literal"], "by ");
}

/// A field that readers show as one text can be stored as several texts and references.
#[test]
fn a_value_is_replaced_in_texts_that_follow_each_other() {
    let event = |contents: Vec<Content>| {
        let data = contents
            .into_iter()
            .fold(Element::new("Data").attribute("Name", "Field"), Element::content);
        Stream::new(vec![Fragment::Element(
            Element::new("Event").child(Element::new("EventData").child(data)),
        )])
    };
    let text = |text: &str| Content::Text(text.into());
    for (contents, key) in [
        (
            vec![text("R"), Content::EntityRef("amp".into()), text("D of Alice")],
            "R&D of alice",
        ),
        (
            vec![
                text("x Al"),
                Content::CData("ic".into()),
                Content::CharRef(101),
                text(" y"),
            ],
            SECRET,
        ),
        ("Alice".chars().map(|c| Content::CharRef(c as u16)).collect(), SECRET),
    ] {
        let rules = Rules::values(&[(key, Some("u1"))]);
        let record = redacted(&event(contents), rules).expect("redacted");
        let file = log_of([record.as_slice()]);
        let shown = rows(&file)[0].json["Event"]["EventData"]["Field"].to_string();
        assert!(
            shown.contains("u1") && !shown.to_lowercase().contains("alice"),
            "{key}: {shown}"
        );
    }
}

#[test]
fn the_digits_after_a_sid_belong_to_another_one() {
    let pairs: Pairs<'_> = &[("S-1-5-21-1-2-3-100", Some("S-1-5-21-0-1")), ("00ff", Some("aa"))];
    let by = |value: Value| event_data(&of(value), Rules::values(pairs)).map(|data| data["Field"].clone());
    // The log holds the SID that `event_data` searches for, so this one differs.
    assert_eq!(
        by(Value::Sid(5, vec![21, 1, 2, 3, 1009])),
        Ok(json!("S-1-5-21-1-2-3-1009"))
    );
    assert_eq!(
        by(Value::Sid(5, vec![21, 1, 2, 3, 100, 7])),
        Ok(json!("S-1-5-21-0-1-7"))
    );
    assert_eq!(
        by(Value::string("S-1-5-21-1-2-3-1009")),
        Ok(json!("S-1-5-21-1-2-3-1009"))
    );
    assert_eq!(by(Value::string("S-1-5-21-1-2-3-100 1")), Ok(json!("S-1-5-21-0-1 1")));
    assert_eq!(by(Value::Binary(vec![0, 0xff])), Ok(json!("AA")));
}

#[test]
fn a_name_stays_a_name() {
    let event = |name: &str| {
        let data = Element::new(name).text("x");
        Event::new(
            &Template::new(
                [7; 16],
                Element::new("Event").child(Element::new("EventData").child(data)),
            ),
            vec![],
        )
    };
    for new in ["user 1", "7", "a><b", ""] {
        let refused = event_data(&event("Alice"), Rules::values(&[(SECRET, Some(new))])).expect_err(new);
        assert!(refused.contains("is not a name in XML"), "{refused}");
    }
    assert_eq!(
        event_data(&event("OfAlice"), Rules::values(&[(SECRET, Some("7"))])),
        Ok(json!({"Of7": "x"}))
    );
}

#[test]
fn an_element_with_attributes_alone_is_no_field() {
    let security = Element::new("Security").attribute("UserID", "S-1-5-7");
    let root = Element::new("Event").child(Element::new("EventData").child(security));
    let event = Event::new(&Template::new([7; 16], root), vec![]);
    let refused = event_data(&event, Rules::fields(&[("security", Some("x"))])).expect_err("no value");
    assert_eq!(
        refused,
        "the field security cannot be redacted: it has attributes in place of a value. Name those"
    );
}

#[test]
fn a_field_is_replaced_wherever_it_is_in_a_definition() {
    let pairs: Pairs<'_> = &[
        ("LITERAL", Some("l")),
        ("cdata", Some("c")),
        ("Mixed", Some("m")),
        ("Again", Some("a")),
        ("twice_1", Some("t")),
        ("Of", Some("o")),
        ("IsAlice", Some("i")),
    ];
    // The last value is not shown, so it is no field.
    let record = redacted(&nested().into(), Rules::fields(pairs)).expect("redacted");
    let file = log_of([record.as_slice()]);
    let expected = json!({"Alice": "x", "Literal": "l", "CData": "c", "Mixed": "m", "Twice": "a", "Again": "a",
        "Twice_1": "t", "IsAlice": {"#attributes": {"Of": "o"}, "#text": "i"}});
    assert_eq!(rows(&file)[0].json["Event"]["EventData"], expected);
    let both = [("Twice", Some("x")), ("Again", Some("y"))];
    let refused = redacted(&nested().into(), Rules::fields(&both)).expect_err("two texts");
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
    let params = || Rules::fields(&[("param2", Some("u1")), ("Param3", Some("u2"))]);
    let refused = event_data(&event, params()).expect_err("the text has another number");
    assert!(refused.starts_with("the number of a field without a name depends on the record"));
    let data = event_data(&event, Rules::fields(&[("Data", Some("d"))])).expect("redacted");
    assert_eq!(data, json!({"Data": {"#text": ["d", "d", "d", "d"]}}));
    let data = |index, of| Element::new("Data").substitution(Substitution::new(index, of));
    let root = Element::new("EventData")
        .child(Element::new("Data").text("z"))
        .child(data(0, 0x81))
        .child(data(1, 1));
    let template = Template::new([9; 16], Element::new("Event").child(root));
    let values = vec![Value::StringArray(vec!["a".into(), "alice".into()]), Value::string("b")];
    let pairs = [("param1", None), ("param3", Some("u1")), ("Param4", Some("u2"))];
    let data = event_data(&Event::new(&template, values), Rules::fields(&pairs)).expect("redacted");
    assert_eq!(data, json!({"Data": {"#text": ["", "a", "u1", "u2"]}}));
}

/// The fields of all are numbered together, but each definition and each stream is redacted alone.
#[test]
fn no_number_means_a_field_of_several_elements() {
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
    for event in [
        Event::new(&Template::new([7; 16], root), vec![]),
        in_stream(Fragment::Element(element("alice"))),
        in_stream(Fragment::Instance(Event::new(&inner, vec![]))),
    ] {
        for name in ["Field_1", "param2", "Other_2"] {
            let refused = event_data(&event, Rules::fields(&[(name, Some("u1"))])).expect_err("a number");
            assert!(refused.contains("numbered together"), "{refused}");
        }
        let both = [("Field", Some("u1")), ("Data", Some("u2"))];
        event_data(&event, Rules::fields(&both)).expect("redacted");
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
    let by = |text: &str, new: &str| guid(&redacted(&stream, Rules::values(&[(text, Some(new))])).expect("redacted"));
    assert_eq!(by("Bobby", "u1"), [7; 16]);
    assert_ne!(by("Alice", "u1"), [7; 16]);
    assert_eq!(by("Alice", "u1"), by("alicE", "u1"));
    assert_ne!(by("Alice", "u1"), by("Alice", "u2"));
}

#[test]
fn bytes_after_an_end_token_are_redacted() {
    let slack = |text: &[u8]| {
        let nested = [&[0x0f, 1, 1, 0, 0][..], text].concat();
        Event::new(
            &Template::new([7; 16], Element::new("Event").substitution(Substitution::new(0, 33))),
            vec![Value::Raw(33, nested)],
        )
    };
    for text in [wide("Alice"), b"xalice".to_vec()] {
        let record = redacted(&slack(&text).into(), Rules::values(&[(SECRET, Some("u1"))])).expect("redacted");
        let lower = record.to_ascii_lowercase();
        assert!(
            !lower.windows(5).any(|bytes| bytes == b"alice") && !lower.windows(10).any(|bytes| bytes == wide("alice"))
        );
    }
}

#[test]
fn what_cannot_be_redacted_is_an_error() {
    let value = |text: &str, pairs: Pairs<'_>| by_pairs(text, Rules::values(pairs)).expect_err("refused");
    assert!(value("x", &[("event", Some("u1"))]).starts_with("the name Event cannot be redacted: readers need it"));
    assert_eq!(
        value("alALICEice", &[(SECRET, None)]),
        "the value 'Alice' in a text cannot be redacted: what is around the new text makes it again"
    );
    let long = "x".repeat(20_000);
    assert!(value("alice alice", &[(SECRET, Some(&long))]).contains("it is longer than 65,535 bytes"));
    // Numbers that happen to be the secret.
    let number = Value::UInt64(u64::from_le_bytes(*b"alice123"));
    let refused = by_value(number, "u1").expect_err("it remains");
    assert!(
        refused.contains("the value 'Alice' in the bytes at") && refused.contains("it remains there as a text"),
        "{refused}"
    );
    for (pairs, why) in [
        (&[("", Some("x"))][..], "a value to redact is empty"),
        (
            &[("alice", Some("Alice-2"))],
            "'alice' would become 'Alice-2', which contains 'alice' again: choose another text",
        ),
        (
            &[("a\0", Some("x"))],
            "the value 'a\0', or what replaces it, contains a NUL",
        ),
        (
            &[(&"xy".repeat(513), Some("q"))],
            "a value to redact has more than 1024 characters",
        ),
    ] {
        assert_eq!(Rules::values(pairs).expect_err("no rules"), why);
    }
    assert!(
        Rules::fields(&[("a", Some("x")), ("A", Some("y"))])
            .expect_err("two")
            .contains("are the same field")
    );
    let mut redactor = Redactor::new(Arc::new(Rules::values(&[]).expect("rules")));
    assert!(matches!(
        redactor.redact(b"not a record"),
        Err(WriteError::Damaged { .. })
    ));
}

fn by_pairs(text: &str, rules: Result<Rules, String>) -> Result<serde_json::Value, String> {
    event_data(&of(Value::string(text)), rules)
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
    let values = [
        ("a", Some("xyz")),
        ("S-1-5-18", Some("S-1-5-7")),
        ("0x0", Some("0x1")),
        ("4624", Some("1")),
        ("northwind", None),
    ];
    let mut redactors =
        [Rules::fields(&fields), Rules::values(&values)].map(|rules| Redactor::new(Arc::new(rules.expect("rules"))));
    let (mut random, mut written, mut refused) = (Random(3), 0, 0);
    for round in 0..20_000 {
        let mut record = random.of(&all).expect("a record").clone();
        for _ in 0..random.below(4) {
            let place = 8 + random.below(record.len() - 8);
            record[place] = random.below(256) as u8;
        }
        let Ok(redacted) = redactors[round % 2].redact(&record) else {
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
