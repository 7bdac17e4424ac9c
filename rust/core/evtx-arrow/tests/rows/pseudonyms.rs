//! Records with pseudonyms: each type of value, and records that are no good.

use std::collections::HashSet;

use evtx_writer::{Check, CutRecord, Element, Event, LogWriter, Pseudonymizer, Substitution, Template, Value};
use serde_json::{Value as Json, json};

use crate::common::samples;
use crate::redacted::{HEADER, Random, log_of, rows};

fn pseudonymizer() -> Pseudonymizer {
    Pseudonymizer::new(&[], Some("a key of 16 bytes")).expect("a key")
}

/// A check for the marks of a record.
fn check_of(record: &[u8]) -> Check {
    let marks = CutRecord::new(record)
        .expect("a record")
        .marks
        .expect("it has pseudonyms");
    Check::new([marks.entries], marks.pseudonyms().collect::<HashSet<_>>()).expect("entries")
}

/// The field `Field` with pseudonyms, after the check of the log.
fn replaced(value: Value) -> Json {
    let data = Element::new("Data").attribute("Name", "Path");
    let data = data.substitution(Substitution::new(0, value.value_type()));
    let root = Element::new("Event").child(Element::new("EventData").child(data));
    let mut log = LogWriter::new(1);
    log.write(
        132_223_104_000_000_000,
        &Event::new(&Template::new([7; 16], root), vec![value]),
    )
    .expect("a record");
    let record = rows(&log.finish()).remove(0).record;
    let record = pseudonymizer().pseudonymize(&record).expect("pseudonyms");
    let file = log_of([record.as_slice()]);
    assert_eq!(check_of(&record).find(&file[HEADER..]), None);
    rows(&file).remove(0).json["Event"]["EventData"]["Path"].clone()
}

#[test]
fn a_value_of_each_type_is_replaced_by_one_of_its_type() {
    let number = |value| replaced(value).as_i64().expect("a number");
    for (value, range) in [
        (Value::Int8(-8), -128..0),
        (Value::UInt8(200), 128..256),
        (Value::Int16(-300), -32_768..0),
        (Value::UInt16(4_000), 256..32_768),
        (Value::Int32(70_000), 65_536..1 << 31),
        (Value::UInt32(3_405_803_785), 1 << 31..1 << 32),
        (Value::Int64(1 << 40), 1 << 32..i64::MAX),
    ] {
        let new = number(value.clone());
        assert!(range.contains(&new), "{value:?} {new}");
        assert_ne!(json!(new), json!(format!("{value:?}")));
    }
    let text = |value| replaced(value).as_str().unwrap_or_default().to_owned();
    assert_eq!(text(Value::HexInt64(0x3e7)), "0x3e7");
    assert_ne!(text(Value::HexInt64(0x1234)), "0x1234");
    assert_eq!(text(Value::string(r"C:\Users\x\cmd.exe\0")).split('\\').count(), 5);
    assert!(text(Value::AnsiString(b"caf\xe9".to_vec())).starts_with("t-"));
    assert!(text(Value::Sid(5, vec![21, 1, 2, 3, 1001])).starts_with("S-1-5-21-"));
    assert_eq!(text(Value::Sid(5, vec![18])), "S-1-5-18");
    assert_eq!(text(Value::Binary(vec![1, 2, 3])).len(), 6);
    assert_ne!(text(Value::Binary(vec![1, 2, 3])), "010203");
    assert_ne!(text(Value::Guid([9; 16])), "{09090909-0909-0909-0909-090909090909}");
    assert_eq!(
        text(Value::FileTime(132_223_140_000_000_000)),
        "2020-01-01T01:00:00.0000000Z"
    );
    // A midnight may be a date of birth.
    assert_eq!(
        text(Value::FileTime(132_223_104_000_000_000)),
        "1601-01-01T00:00:00.0000000Z"
    );
    assert_eq!(text(Value::FileTime(0x0971_00cb)), "1601-01-01T00:00:00.0000000Z");
    assert_eq!(text(Value::Real64(48.137)), "0.0");
    assert_eq!(replaced(Value::Bool(true)), json!(true));
    let arrays = [
        Value::StringArray(vec!["anna".to_owned(), "ben".to_owned()]),
        Value::UInt32Array(vec![3_405_803_785, 7]),
    ];
    for array in arrays {
        assert_eq!(replaced(array).as_array().map(Vec::len), Some(2));
    }
}

/// The copy and the check agree on what may stay, and a record gets no pseudonyms if it cannot be read.
#[test]
fn crafted_records_pass_the_check_or_cannot_be_read() {
    let (mut all, mut random) = (Vec::new(), Random(5));
    for log in samples() {
        let rows = rows(&std::fs::read(log).expect("the log"));
        all.extend(rows.into_iter().step_by(5).map(|row| row.record));
    }
    let (mut pseudonymizer, mut valid, mut unreadable) = (pseudonymizer(), 0, 0);
    for _ in 0..10_000 {
        let mut record = random.of(&all).expect("a record").clone();
        for _ in 0..random.below(4) {
            let at = 8 + random.below(record.len() - 8);
            record[at] = random.below(256) as u8;
        }
        let Ok(new) = pseudonymizer.pseudonymize(&record) else {
            unreadable += 1;
            continue;
        };
        let mut log = LogWriter::new(1);
        if log.write_cut(CutRecord::new(&new).expect("a record")).is_err() {
            continue;
        }
        assert_eq!(check_of(&new).find(&log.finish()[HEADER..]), None);
        valid += 1;
    }
    assert!(valid > 3_000 && unreadable > 100, "{valid} {unreadable}");
}
