//! A log of everything that BinXML can hold and that the story does not.

use evtx_writer::{Content, Element, Event, Fragment, Stream, Substitution, Template, Value};

use crate::machine::{Machine, at, data, text};

pub(crate) fn logs() -> Vec<(&'static str, Vec<u8>)> {
    vec![("oddities.evtx", oddities())]
}

fn time(event_id: u64) -> u64 {
    at(10, 0, event_id, 1)
}

/// Writes an event whose data is an element with values.
fn odd(log: &mut Machine, event_id: u64, key: &str, data: Element, values: Vec<Value>) {
    let id = event_id.to_string();
    log.event_of("oddity", time(event_id), &[("EventID", &id)], key, data, values);
}

fn oddities() -> Vec<u8> {
    let mut log = Machine::new("ODD01", 1);
    // 1: every type of value.
    log.fields("oddity", time(1), &[("EventID", "1")], every_type());

    // 2: names that come back, are missing or empty, and elements with names of their own.
    let leaf = Element::new("Leaf")
        .attribute("Name", "Inner")
        .substitution(Substitution::new(0, 1));
    let names = Element::new("EventData")
        .child(data("Twice", 0, 1))
        .child(data("Twice", 1, 1))
        .child(Element::new("Data").substitution(Substitution::new(2, 1)))
        .child(Element::new("Data").attribute("Name", "").text("literal"))
        .child(Element::new("Own").substitution(Substitution::new(3, 8)))
        .child(Element::new("Deep").child(leaf).text("beside"));
    let values = vec![text("a"), text("b"), text("c"), Value::UInt32(7)];
    odd(&mut log, 2, "names", names, values);

    // 3: arrays. One of strings repeats its element; one of a single item does not; one of numbers does.
    let arrays = Element::new("EventData")
        .child(data("Strings", 0, 0x81))
        .child(data("One", 1, 0x81))
        .child(data("Numbers", 2, 0x88))
        .child(data("None", 3, 0x81))
        .child(data("After", 4, 1));
    let strings = |items: &[&str]| Value::StringArray(items.iter().map(|&item| item.to_owned()).collect());
    let values = vec![
        strings(&["first \"quoted\"", "", "third"]),
        strings(&["only"]),
        Value::UInt32Array(vec![1, 2, 3]),
        strings(&[]),
        text("end"),
    ];
    odd(&mut log, 3, "arrays", arrays, values);

    // 4: an array in an attribute repeats the element under other names.
    let repeated = Element::new("Data")
        .attribute_substitution("Name", Substitution::new(0, 0x81))
        .substitution(Substitution::new(1, 1));
    let array_names = Element::new("EventData").child(repeated).child(data("After", 1, 1));
    let values = vec![strings(&["x", "y"]), text("same")];
    odd(&mut log, 4, "array names", array_names, values);

    // 5: text that has to be escaped, in every way that BinXML has for it.
    let entity = |name: &str| Content::EntityRef(name.into());
    let name = vec![Content::Text("A".into()), entity("amp"), Content::Text("B".into())];
    let mixed = Element::new("Data")
        .attribute_of("Name", name)
        .text("1 ")
        .content(entity("lt"))
        .text(" 2 ")
        .content(Content::CharRef(0xe9))
        .content(Content::CData(" <raw> & ]]> ".into()))
        .substitution(Substitution::new(0, 1))
        .content(entity("custom"));
    let escapes = Element::new("EventData").child(mixed).child(data("Controls", 1, 1));
    let values = vec![text("<&>\"'\t日本 😀"), text("a\u{1}b\u{fffe}c\r\nd")];
    odd(&mut log, 5, "escapes", escapes, values);

    // 6: elements and attributes that their values leave out.
    let left_out = Element::new("EventData")
        .child(data("Gone", 0, 1).depends_on(0))
        .child(data("Kept", 1, 1).depends_on(1))
        .child(data("Empty", 0, 1));
    for value in [Value::Null, text("there")] {
        let values = vec![value, text("always")];
        odd(&mut log, 6, "left out", left_out.clone(), values);
    }

    // 7: no data at all, and data without elements.
    log.event_with("oddity", time(7), &[("EventID", "7")], Value::Null);
    for (key, element) in [
        ("bare", Element::new("EventData")),
        ("text", Element::new("EventData").text("only text")),
    ] {
        odd(&mut log, 7, key, element, vec![]);
    }

    // 8: user data of several shapes: attributes, mixed text, numbers, names that come back.
    let of = |name: &str, index, value_type| Element::new(name).substitution(Substitution::new(index, value_type));
    let mixed = Element::new("Mixed")
        .text("before ")
        .child(of("Inner", 2, 13))
        .text("after");
    let xml = Element::new("EventXML")
        .attribute("xmlns:auto-ns2", "http://schemas.microsoft.com/win/2004/08/events")
        .attribute_substitution("Id", Substitution::new(0, 8))
        .child(of("Param", 1, 1))
        .child(of("Param", 0, 8))
        .child(mixed)
        .child(Element::new("Items").child(of("Item", 3, 0x81)))
        .child(Element::new("Nothing"));
    let values = vec![Value::UInt32(7), text("\"x\""), Value::Bool(true), strings(&["p", "q"])];
    odd(&mut log, 8, "user data", Element::new("UserData").child(xml), values);

    // 9: a value that holds elements where no column expects them: entries of EventData.
    let inner = Element::new("Data").attribute("Name", "Nested").text("deep");
    let inner = Stream::new(vec![Fragment::Element(inner)]);
    let nested = Element::new("EventData")
        .child(data("Flat", 0, 1))
        .substitution(Substitution::new(1, 33));
    let values = vec![text("flat"), Value::BinXml(inner)];
    odd(&mut log, 9, "nested", nested, values);

    // 10: a record that is an instance of an event without substitutions, and one that is spelled out.
    let event = Element::new("Event").child(Element::new("System").child(Element::new("EventID").text("10")));
    let template = Template::new(*b"event of no hole", event.clone());
    log.write(at(10, 0, 10, 0), &Event::new(&template, vec![]).into());
    log.write(at(10, 0, 10, 1), &Stream::new(vec![Fragment::Element(event)]));

    // 11: values of System that its columns cannot hold.
    let system = Element::new("System")
        .child(of("EventID", 0, 1))
        .child(of("Level", 1, 7))
        .child(Element::new("TimeCreated").attribute_substitution("SystemTime", Substitution::new(2, 17)))
        .child(of("Channel", 3, 1));
    let template = Template::new(*b"values too large", Element::new("Event").child(system));
    let values = vec![text("eleven"), Value::Int32(-1), Value::FileTime(u64::MAX), text("")];
    log.write(at(10, 0, 11, 0), &Event::new(&template, values).into());

    log.log.finish()
}

fn every_type() -> Vec<(&'static str, Value)> {
    vec![
        ("Null", Value::Null),
        ("String", text("snow ☃")),
        ("AnsiString", Value::AnsiString(b"caf\xe9".to_vec())),
        ("Int8", Value::Int8(-8)),
        ("UInt8", Value::UInt8(200)),
        ("Int16", Value::Int16(-1600)),
        ("UInt16", Value::UInt16(65_535)),
        ("Int32", Value::Int32(i32::MIN)),
        ("UInt32", Value::UInt32(u32::MAX)),
        ("Int64", Value::Int64(i64::MIN)),
        ("UInt64", Value::UInt64(u64::MAX)),
        ("Real32", Value::Real32(0.1)),
        ("Real64", Value::Real64(-1.5e300)),
        ("True", Value::Bool(true)),
        ("False", Value::Bool(false)),
        ("Mask", Value::Raw(13, vec![4, 0, 0, 0])),
        ("Binary", Value::Binary(vec![0, 1, 0xfe, 0xff])),
        (
            "Guid",
            Value::Guid(*b"\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef"),
        ),
        ("SizeT32", Value::Raw(16, vec![0x10, 0, 0, 0])),
        ("SizeT64", Value::Raw(16, vec![0, 0, 0, 0, 1, 0, 0, 0])),
        ("FileTime", Value::FileTime(at(10, 0, 0, 1_234_567))),
        ("SystemTime", Value::SystemTime([2024, 3, 2, 5, 10, 0, 0, 7])),
        ("Sid", Value::Sid(5, vec![32, 544])),
        ("HexInt32", Value::HexInt32(0xbeef)),
        ("HexInt64", Value::HexInt64(0)),
    ]
}
