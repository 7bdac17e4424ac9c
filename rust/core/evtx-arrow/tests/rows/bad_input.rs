//! Input that is crafted or broken, each kind with the row that it gives. A valid record follows in every
//! log, and always comes.

use std::sync::Arc;

use crate::common::{self, cell, entries, every_column, read};
use evtx_arrow::{Expression, OnError, Options, Predicate, Scan};
use evtx_writer::{Element, Event, Fragment, LogWriter, Stream, Substitution, Template, Value};

const ALL: Options = Options {
    verify: false,
    location: false,
    ..Options::ALL
};

/// Where the BinXML of the first record starts in a file.
const BINXML: usize = 4096 + 512 + 24;

/// What a test looks at of a row.
#[derive(Debug)]
struct Row {
    record_id: Option<String>,
    event_id: Option<String>,
    time_created: Option<String>,
    event_data: Vec<(String, Option<String>)>,
    xml: Option<String>,
    json: Option<String>,
    text: Option<String>,
    error: Option<String>,
}

impl Row {
    fn value(&self, name: &str) -> &str {
        let entry = self.event_data.iter().find(|(key, _)| key == name);
        entry
            .and_then(|(_, value)| value.as_deref())
            .unwrap_or_else(|| panic!("{name} in {self:?}"))
    }

    fn assert_error(&self, part: &str) {
        let error = self
            .error
            .as_deref()
            .unwrap_or_else(|| panic!("{part:?} in place of {self:?}"));
        assert!(
            error.starts_with("bad.evtx: chunk 0, offset 0x") && error.contains(part),
            "{part:?} in {error:?}"
        );
        assert_eq!((&self.xml, &self.json, &self.text), (&None, &None, &None));
    }
}

fn rows(file: &[u8], options: Options) -> Vec<Row> {
    let batches = read(file, "bad.evtx", options, &every_column(&options)).expect("a log");
    let row = |(batch, row)| Row {
        record_id: cell(batch, "record_id", row),
        event_id: cell(batch, "event_id", row),
        time_created: cell(batch, "time_created", row),
        event_data: entries(batch, row).unwrap_or_default(),
        xml: cell(batch, "xml", row),
        json: cell(batch, "json", row),
        text: cell(batch, "text", row),
        error: cell(batch, "error", row),
    };
    batches
        .iter()
        .flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)))
        .map(row)
        .collect()
}

/// The file of a record and a valid one.
fn log(stream: &Stream) -> Vec<u8> {
    let mut log = LogWriter::new(1);
    log.write_stream(0, stream).expect("a record that fits");
    let valid = Element::new("Event").child(Element::new("System").child(Element::new("EventID").text("7")));
    log.write_stream(0, &Stream::new(vec![Fragment::Element(valid)]))
        .expect("a record that fits");
    log.finish()
}

/// The row of the first record, once the second one was found valid.
fn first_row(file: &[u8]) -> Row {
    let mut rows = rows(file, ALL);
    let valid = rows.pop().expect("two rows");
    assert_eq!((valid.event_id.as_deref(), valid.error), (Some("7"), None));
    assert!(valid.xml.is_some() && valid.json.is_some() && valid.text.is_some());
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

fn template(tag: u8, root: Element) -> Arc<Template> {
    Template::new([tag; 16], root)
}

/// An event with an ID of 1 and data that is an instance of its own.
fn event(data: Element, values: Vec<Value>) -> Stream {
    let id = Element::new("System").child(Element::new("EventID").text("1"));
    let event = template(
        1,
        Element::new("Event").child(id).substitution(Substitution::new(0, 33)),
    );
    Event::new(
        &event,
        vec![Value::BinXml(Event::new(&template(2, data), values).into())],
    )
    .into()
}

/// An event with one named value.
fn value(value: Value) -> Row {
    let data = Element::new("EventData").child(
        Element::new("Data")
            .attribute("Name", "V")
            .substitution(Substitution::new(0, 1)),
    );
    first_row(&log(&event(data, vec![value])))
}

fn find(file: &[u8], bytes: &[u8]) -> usize {
    BINXML
        + file[BINXML..]
            .windows(bytes.len())
            .position(|window| window == bytes)
            .expect("the bytes")
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn recursion_by_nested_instances_ends() {
    let nest = template(3, Element::new("N").substitution(Substitution::new(0, 33)));
    let nested = |levels| {
        (0..levels).fold(Value::string("x"), |value, _| {
            Value::BinXml(Event::new(&nest, vec![value]).into())
        })
    };
    let data = || Element::new("EventData").child(Element::new("Data").substitution(Substitution::new(0, 33)));
    let row = first_row(&log(&event(data(), vec![nested(10)])));
    assert_eq!((row.error.as_deref(), row.value("N")), (None, "x"));
    assert_eq!(row.xml.expect("a text").matches("<N>").count(), 10);
    let row = first_row(&log(&event(data(), vec![nested(80)])));
    row.assert_error("BinXML is nested more than 16 levels deep");
    // Everything before it is there.
    assert_eq!(row.event_id.as_deref(), Some("1"));
}

#[test]
fn a_template_that_holds_an_instance_of_itself_ends() {
    let definition = 512 + 24 + 4 + 10;
    let mut binxml = vec![0x0f, 1, 1, 0, 0x0c, 1, 9, 9, 9, 9];
    binxml.extend((definition as u32).to_le_bytes());
    let instance = |binxml: &mut Vec<u8>| {
        binxml.extend([0x0c, 1, 9, 9, 9, 9]);
        binxml.extend((definition as u32).to_le_bytes());
        binxml.extend([0; 4]);
    };
    // Next definition, GUID, size of the body.
    binxml.extend([0; 20]);
    let size = binxml.len();
    binxml.extend([0; 4]);
    let element = |binxml: &mut Vec<u8>, name: &str| {
        binxml.extend([0x01, 0xff, 0xff, 0, 0, 0, 0]);
        let offset = 512 + 24 + binxml.len() as u32 + 4;
        binxml.extend(offset.to_le_bytes());
        binxml.extend([0; 6]);
        binxml.extend((name.len() as u16).to_le_bytes());
        binxml.extend(utf16(name));
        binxml.extend([0, 0, 0x02]);
    };
    element(&mut binxml, "Event");
    element(&mut binxml, "EventData");
    // A BinXML value that is spelled out in the definition: an instance of the definition.
    let mut value = Vec::new();
    instance(&mut value);
    binxml.extend([0x05, 0x21]);
    binxml.extend((value.len() as u16).to_le_bytes());
    binxml.extend(value);
    binxml.extend([0x04, 0x04, 0x00]);
    let body = (binxml.len() - size - 4) as u32;
    binxml[size..size + 4].copy_from_slice(&body.to_le_bytes());
    // No values.
    binxml.extend([0; 5]);

    // Put in place of the text of a record that is long enough.
    let text = "x".repeat(200);
    let mut file = log(&Stream::new(vec![Fragment::Element(Element::new("Event").text(text))]));
    file[BINXML..BINXML + binxml.len()].copy_from_slice(&binxml);
    // The names of the second record stood where the definition is now.
    rows(&file, ALL)[0].assert_error("BinXML is nested more than 16 levels deep");
}

#[test]
fn tables_of_names_and_templates_that_loop_are_not_needed() {
    let data = Element::new("EventData").child(
        Element::new("Data")
            .attribute("Name", "V")
            .substitution(Substitution::new(0, 1)),
    );
    let mut file = log(&event(data, vec![Value::string("v")]));
    let name = find(&file, &utf16("Event")) - 8 - 4096;
    for slot in file[4096 + 128..4096 + 512].chunks_exact_mut(4) {
        slot.copy_from_slice(&(name as u32).to_le_bytes());
    }
    // The name is the next one of its own chain.
    file[4096 + name..][..4].copy_from_slice(&(name as u32).to_le_bytes());
    let row = first_row(&file);
    assert_eq!((row.error.as_deref(), row.value("V")), (None, "v"));
}

#[test]
fn names_that_overlap_are_read_as_they_stand() {
    let data = Element::new("EventData")
        .child(
            Element::new("Data")
                .attribute("Name", "V")
                .substitution(Substitution::new(0, 1)),
        )
        .child(Element::new("Other").substitution(Substitution::new(0, 1)));
    let file = log(&event(data, vec![Value::string("v")]));
    // A name that starts two bytes into `Other`: its length is the letter `O`, and runs over what follows.
    let name = find(&file, &utf16("Other")) - 8;
    let reference = find(&file, &((name - 4096) as u32).to_le_bytes());
    let mut overlapping = file.clone();
    overlapping[reference..reference + 4].copy_from_slice(&((name - 4096 + 2) as u32).to_le_bytes());
    let row = first_row(&overlapping);
    // No longer inline, the name is read as tokens; the high byte of its length is an end token.
    row.assert_error("the BinXML tokens do not form a tree");
    assert_eq!(row.event_id.as_deref(), Some("1"));
    // A name that runs past the chunk.
    let mut beyond = file;
    beyond[reference..reference + 4].copy_from_slice(&65_530_u32.to_le_bytes());
    let error = first_row(&beyond).error.expect("an error");
    assert!(error.contains("a name needs 8 bytes, but only 6 are left"), "{error}");
}

#[test]
fn a_value_table_that_claims_more_than_the_record_holds_is_damage() {
    let data = Element::new("EventData").child(
        Element::new("Data")
            .attribute("Name", "V")
            .substitution(Substitution::new(0, 1)),
    );
    let file = log(&event(data, vec![Value::string("marker")]));
    let at = find(&file, &utf16("marker")) - 4;
    let mut size = file.clone();
    size[at..at + 2].copy_from_slice(&0xfff0_u16.to_le_bytes());
    first_row(&size).assert_error("the value table claims 65520 bytes of values, but the record has room for");
    let mut count = file.clone();
    count[at - 4..at].copy_from_slice(&u32::MAX.to_le_bytes());
    first_row(&count).assert_error("the value descriptors needs");
    let mut kind = file;
    kind[at + 2] = 0x7c;
    first_row(&kind).assert_error("0x7c is no BinXML value type");
}

#[test]
fn text_is_shown_as_it_is_stored() {
    let row = value(Value::Raw(1, vec![0x00, 0xd8, b'A', 0, 0x00, 0xdc]));
    assert_eq!((row.error.as_deref(), row.value("V")), (None, "\u{fffd}A\u{fffd}"));
    assert!(
        row.xml
            .expect("a text")
            .contains("<Data Name=\"V\">\u{fffd}A\u{fffd}</Data>")
    );
    assert!(row.json.expect("a text").contains("\"V\":\"\u{fffd}A\u{fffd}\""));
    let row = value(Value::string("a\u{1}\u{fffe}<"));
    assert_eq!(row.value("V"), "a\u{1}\u{fffe}<");
    assert!(
        row.xml
            .expect("a text")
            .contains("<Data Name=\"V\">a\u{1}\u{fffe}&lt;</Data>")
    );
    assert!(row.json.expect("a text").contains("\"V\":\"a\\u0001\u{fffe}<\""));
    value(Value::Raw(1, vec![b'A', 0, b'B'])).assert_error("a value of type 0x01 does not fit its size of 3 bytes");
}

#[test]
fn times_out_of_range_are_null_and_keep_their_text() {
    let time = |value: Value, shown: &str| {
        let time =
            Element::new("TimeCreated").attribute_substitution("SystemTime", Substitution::new(0, value.value_type()));
        let event = template(1, Element::new("Event").child(Element::new("System").child(time)));
        let row = first_row(&log(&Event::new(&event, vec![value]).into()));
        assert_eq!((row.error, row.time_created), (None, None));
        assert!(
            row.xml.expect("a text").contains(&format!("SystemTime=\"{shown}\"")),
            "{shown}"
        );
    };
    time(Value::FileTime(u64::MAX), "0000-00-00T00:00:00.0000000Z");
    time(Value::FileTime(i64::MAX as u64), "0828-09-14T02:48:05.4775807Z");
    time(Value::FileTime(0), "1601-01-01T00:00:00.0000000Z");
    time(
        Value::SystemTime([2024, 13, 0, 1, 0, 0, 0, 0]),
        "1601-01-01T00:00:00.0000000Z",
    );
    time(
        Value::SystemTime([30_000, 1, 0, 1, 0, 0, 0, 0]),
        "0000-01-01T00:00:00.0000000Z",
    );
}

#[test]
fn a_sid_with_more_sub_authorities_than_it_has_space_for_is_damage() {
    let mut sid = vec![1, 200, 0, 0, 0, 0, 0, 5];
    sid.extend([7; 40]);
    value(Value::Raw(19, sid)).assert_error("a value of type 0x13 does not fit its size of 48 bytes");
    // All that fit the format are shown.
    let row = value(Value::Sid(5, (0..255).collect()));
    assert!(row.value("V").starts_with("S-1-5-0-1-2-") && row.value("V").ends_with("-253-254"));
}

#[test]
fn arrays_of_every_type_are_lists() {
    let sid = [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
    let twice = |bytes: &[u8]| [bytes, bytes].concat();
    for (value_type, bytes, list) in [
        (1_u8, twice(b"a\0\"\0\0\0"), r#"["a\"","a\""]"#),
        (2, twice(b"x\xe9\0"), r#"["xé","xé"]"#),
        (3, vec![0xff, 1], "[-1,1]"),
        (4, vec![0xff, 1], "[255,1]"),
        (5, twice(&[0xff; 2]), "[-1,-1]"),
        (6, twice(&[0xff; 2]), "[65535,65535]"),
        (7, twice(&[0xff; 4]), "[-1,-1]"),
        (8, twice(&[0xff; 4]), "[4294967295,4294967295]"),
        (9, twice(&[0xff; 8]), "[-1,-1]"),
        (10, twice(&[0xff; 8]), "[18446744073709551615,18446744073709551615]"),
        (11, twice(&1.5_f32.to_le_bytes()), r#"["1.5","1.5"]"#),
        (12, twice(&(-2.5_f64).to_le_bytes()), r#"["-2.5","-2.5"]"#),
        (13, vec![1, 0, 0, 0, 0, 0, 0, 0], "[true,false]"),
        (13, vec![1, 0, 0, 0, 5, 0, 0, 0], "[1,5]"),
        (
            15,
            twice(&[0x11; 16]),
            r#"["{11111111-1111-1111-1111-111111111111}","{11111111-1111-1111-1111-111111111111}"]"#,
        ),
        (
            17,
            twice(&[0; 8]),
            r#"["1601-01-01T00:00:00.0000000Z","1601-01-01T00:00:00.0000000Z"]"#,
        ),
        (
            18,
            twice(&[0; 16]),
            r#"["1601-01-01T00:00:00.0000000Z","1601-01-01T00:00:00.0000000Z"]"#,
        ),
        (19, twice(&sid), r#"["S-1-5-18","S-1-5-18"]"#),
        (20, twice(&[0x1f, 0, 0, 0]), r#"["0x1f","0x1f"]"#),
        (21, twice(&[0x1f, 0, 0, 0, 0, 0, 0, 0]), r#"["0x1f","0x1f"]"#),
    ] {
        let row = value(Value::Raw(0x80 | value_type, bytes));
        assert_eq!(
            (row.error.as_deref(), row.value("V")),
            (None, list),
            "type {value_type}"
        );
        assert_eq!(
            row.xml.expect("a text").matches("<Data Name=\"V\">").count(),
            2,
            "type {value_type}"
        );
        assert!(
            row.json.expect("a text").contains(&format!("\"V\":{list}")),
            "type {value_type}"
        );
    }
    // Types without arrays, and items that do not add up.
    value(Value::Raw(0x8e, vec![1, 2])).assert_error("values of type 0x8e cannot be rendered");
    value(Value::Raw(0x90, vec![1, 2])).assert_error("values of type 0x90 cannot be rendered");
    value(Value::Raw(0x88, vec![0; 6])).assert_error("a value of type 0x88 does not fit its size of 6 bytes");
    value(Value::Raw(0x81, b"a\0".to_vec())).assert_error("a value of type 0x81 does not fit its size of 2 bytes");
    value(Value::Raw(0x93, vec![1, 9, 0, 0])).assert_error("a value of type 0x93 does not fit its size of 4 bytes");
}

#[test]
fn the_highest_substitution_that_there_is_has_no_value() {
    let data = Element::new("EventData").child(
        Element::new("Data")
            .attribute("Name", "V")
            .substitution(Substitution::new(u16::MAX, 1)),
    );
    let row = first_row(&log(&event(data, vec![Value::string("x")])));
    assert_eq!(row.error, None);
    assert_eq!(row.event_id.as_deref(), Some("1"));
}

/// A few entries of many values each: the third is cut off, for predicates as for the map.
#[test]
fn a_map_that_is_cut_off_is_so_for_predicates() {
    let entry = |name: &str| {
        (0..300).fold(Element::new("Data").attribute("Name", name), |data, _| {
            data.substitution(Substitution::new(0, 1))
        })
    };
    let data = Element::new("EventData")
        .child(entry("a"))
        .child(entry("b"))
        .child(entry("c"));
    let file = log(&event(data, vec![Value::string("x".repeat(29_000))]));
    let row = first_row(&file);
    row.assert_error("the record's text exceeds 16 MiB");
    assert_eq!(row.event_data.len(), 2);
    let options = Options::default();
    let entry = Expression::Entry(common::column(&options, "event_data"), "c".into());
    let condition = Expression::IsNull(Box::new(entry));
    let predicate = Predicate::implied(&options.into(), &condition).expect("decided here");
    let mut kept = 0;
    let scan = Scan::filtered(options, &[0], &[predicate]);
    common::scan(&file, "log", scan, |batch| kept += batch.num_rows()).expect("a log");
    assert_eq!(kept, 2);
}

/// The type of a stream was damaged, so that it is a text.
#[test]
fn a_text_where_elements_were_is_in_every_text() {
    let event = Element::new("Event").child(Element::new("System").child(Element::new("EventID").text("1")));
    let template = Template::new([1; 16], event.substitution(Substitution::new(0, 33)));
    let first = |value| first_row(&log(&Event::new(&template, vec![value]).into()));
    let row = first(Value::string("a"));
    let expected = r##"{"Event":{"#text":"a","System":{"EventID":"1"}}}"##;
    assert_eq!((row.json.as_deref(), row.error), (Some(expected), None));
    assert_eq!(row.text.as_deref(), Some("EventID: 1\nEvent: a"));
    assert!(row.xml.is_some_and(|xml| xml.ends_with("</System>a</Event>")));
    for empty in [Value::Null, Value::string("")] {
        let expected = r#"{"Event":{"System":{"EventID":"1"}}}"#;
        assert_eq!(first(empty).json.as_deref(), Some(expected));
    }
}

/// A child of the event is left out, and a stream has one of its name.
#[test]
fn a_name_is_numbered_after_the_children_that_are_there() {
    let system = Element::new("System").child(Element::new("EventID").text("1"));
    let event = Element::new("Event").child(system);
    let event = event.child(Element::new("EventData").text("x").depends_on(1));
    let template = Template::new([1; 16], event.substitution(Substitution::new(0, 33)));
    let data = || Stream::new(vec![Fragment::Element(Element::new("EventData").text("y"))]);
    for (first, expected) in [
        (Value::Null, r#""EventData":"y"}}"#),
        (Value::UInt8(1), r#""EventData":"x","EventData_1":"y"}}"#),
    ] {
        let row = first_row(&log(&Event::new(&template, vec![Value::BinXml(data()), first]).into()));
        assert_eq!(
            row.json,
            Some(format!(r#"{{"Event":{{"System":{{"EventID":"1"}},{expected}"#))
        );
    }
}

/// The template refers to a value that the record does not have, and the record has one that no template refers to.
#[test]
fn a_damaged_stream_that_no_template_refers_to_is_reported() {
    let event = Element::new("Event").child(Element::new("System").child(Element::new("EventID").text("1")));
    for index in [0, 1, 31, 32, 64, 256] {
        let template = Template::new([1; 16], event.clone().substitution(Substitution::new(index, 33)));
        let damaged = Value::Raw(0x21, vec![0x0f, 1, 1, 0, 0x70, 0]);
        let row = first_row(&log(&Event::new(&template, vec![damaged]).into()));
        row.assert_error("0x70 is no BinXML token");
    }
}

/// A stream that ends before its bytes do has lost what they held.
#[test]
fn a_stream_that_ends_early_is_reported() {
    let outer = Element::new("Event").child(Element::new("System").child(Element::new("EventID").text("1")));
    let template = template(3, outer.substitution(Substitution::new(0, 33)));
    let zeroed = Value::Raw(0x21, vec![0, 1, 1, 0, 0x0c, 0, 0]);
    let row = first_row(&log(&Event::new(&template, vec![zeroed]).into()));
    row.assert_error("6 bytes come after the end of the nested stream, and nothing reads them");
    assert_eq!(row.event_id.as_deref(), Some("1"));
}

/// A record that was hidden: the size of the one before it covers it, and its magic is gone.
#[test]
fn bytes_after_an_event_are_reported() {
    let mut log = LogWriter::new(1);
    let valid = Element::new("Event").child(Element::new("System").child(Element::new("EventID").text("7")));
    for _ in 0..3 {
        log.write_stream(0, &Stream::new(vec![Fragment::Element(valid.clone())]))
            .expect("a record that fits");
    }
    let mut file = log.finish();
    let first = 4096 + 512;
    let size = |at: usize| u32::from_le_bytes(file[at + 4..at + 8].try_into().expect("4 bytes")) as usize;
    let second = first + size(first);
    let (hidden, both) = (size(second), size(first) + size(second));
    for at in [first + 4, first + both - 4] {
        file[at..at + 4].copy_from_slice(&(both as u32).to_le_bytes());
    }
    file[second] = 0;
    let rows = rows(&file, ALL);
    let [first, third] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((third.record_id.as_deref(), &third.error), (Some("3"), &None));
    // The event itself is valid, and has all of its columns.
    assert_eq!(
        (first.event_id.as_deref(), first.xml.as_ref()),
        (Some("7"), third.xml.as_ref())
    );
    let error = first.error.as_deref().expect("an error");
    let bytes = error.strip_suffix(" bytes come after the end of the event, and nothing reads them");
    let bytes: usize = bytes
        .and_then(|bytes| bytes.rsplit(' ').next()?.parse().ok())
        .expect("a number");
    assert!((hidden..hidden + 16).contains(&bytes), "{error}");
}

#[test]
fn text_past_the_limit_is_null_and_says_so() {
    let leaf = || Element::new("Data").substitution(Substitution::new(0, 1));
    let data = (0..300).fold(Element::new("EventData"), |data, _| data.child(leaf()));
    let file = log(&event(data, vec![Value::string("日".repeat(20_000))]));
    let row = first_row(&file);
    row.assert_error("the record's text exceeds 16 MiB");
    assert_eq!(
        (row.record_id.as_deref(), row.event_id.as_deref()),
        (Some("1"), Some("1"))
    );
    let skip = rows(
        &file,
        Options {
            on_error: OnError::Skip,
            ..ALL
        },
    );
    assert_eq!(
        skip.iter().map(|row| row.record_id.as_deref()).collect::<Vec<_>>(),
        [Some("2")]
    );
    // Where only a text is too long, and not the data, the row does not depend on whether it is asked for.
    let data = (0..200).fold(Element::new("EventData"), |data, _| {
        data.substitution(Substitution::new(0, 1)).child(Element::new("X"))
    });
    let file = log(&event(data, vec![Value::string("\u{1}".repeat(28_000))]));
    let rows = rows(
        &file,
        Options {
            on_error: OnError::Skip,
            ..ALL
        },
    );
    assert_eq!(
        rows.iter().map(|row| row.record_id.as_deref()).collect::<Vec<_>>(),
        [Some("1"), Some("2")]
    );
    let row = first_row(&file);
    assert!(
        row.error
            .expect("an error")
            .ends_with("the record's text exceeds 16 MiB")
    );
    assert_eq!((row.xml.map(|xml| xml.len() > 5 << 20), row.json), (Some(true), None));
}

/// The longest `text` that there is, and one that is longer.
#[test]
fn a_text_of_16_mib_is_there_and_a_longer_one_is_an_error() {
    let row = |leaves: usize| {
        let leaf = || {
            Element::new("Data")
                .attribute("Name", "V")
                .substitution(Substitution::new(0, 1))
        };
        let data = (0..leaves).fold(Element::new("EventData"), |data, _| data.child(leaf()));
        // 32 KiB of UTF-16 are 48 KiB of text.
        first_row(&log(&event(data, vec![Value::string("\u{65e5}".repeat(16_384))])))
    };
    let line = 16_384 * 3 + "V: \n".len();
    let row_of_most = row((16 << 20) / line);
    let text = row_of_most.text.expect("a text");
    assert_eq!(row_of_most.error, None);
    assert!(text.starts_with("EventID: 1\nV: \u{65e5}") && text.ends_with('\u{65e5}'));
    assert_eq!(text.len(), "EventID: 1\n".len() + (16 << 20) / line * line - 1);
    row((16 << 20) / line + 1).assert_error("the record's text exceeds 16 MiB");
}

#[test]
fn a_value_with_line_breaks_is_one_field() {
    let file = log(&event(
        Element::new("EventData").child(
            Element::new("Data")
                .attribute("Name", "V")
                .substitution(Substitution::new(0, 1)),
        ),
        vec![Value::string("a\r\nW: b\n\0c")],
    ));
    let batches = read(&file, "bad.evtx", ALL, &every_column(&ALL)).expect("a log");
    let cell = |column| cell(&batches[0], column, 0);
    assert_eq!(cell("text").as_deref(), Some("EventID: 1\nV: a\r\nW: b\nc"));
    assert_eq!(
        cell("fields").as_deref(),
        Some(r#"[["EventID","1"],["V","a\r\nW: b\nc"]]"#)
    );
}
