//! The JSON of trees.

use super::program::{Language, push_tree};
use crate::binxml::tree::{Attribute, Element, Node};
use crate::limits::MAX_TEXT;
use crate::value::{Scalar, Value};

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn json(element: Element<'_>) -> String {
    let mut out = Vec::new();
    push_tree(Language::Json, &element, &mut out, MAX_TEXT).expect("a short text");
    String::from_utf8(out).unwrap()
}

#[test]
fn leaves_are_values() {
    let text = utf16("a\"b");
    let string = [Node::Value(Value::new(Scalar::String, &text))];
    let number = [Node::Value(Value::new(Scalar::UInt16, &[7, 0]))];
    let hex = [Node::Value(Value::new(Scalar::HexInt32, &[7, 0, 0, 0]))];
    assert_eq!(json(Element::new("x", &[], &[])), "null");
    assert_eq!(json(Element::new("x", &[], &string)), "\"a\\\"b\"");
    assert_eq!(json(Element::new("x", &[], &number)), "7");
    assert_eq!(json(Element::new("x", &[], &hex)), "\"0x7\"");
    let attributes = [Attribute {
        name: "n",
        content: &number,
    }];
    let both = Element::new("x", &attributes, &string);
    assert_eq!(json(both), r##"{"#attributes":{"n":7},"#text":"a\"b"}"##);
}

#[test]
fn data_is_by_name_where_it_has_names() {
    let (a, b) = (utf16("a"), utf16("b"));
    let name = [Node::Value(Value::new(Scalar::String, &a))];
    let value = [Node::Value(Value::new(Scalar::String, &b))];
    let attributes = [Attribute {
        name: "Name",
        content: &name,
    }];
    let unnamed = &Element::new("Data", &[], &value);
    let named = &Element::new("Data", &attributes, &value);
    let other = &Element::new("Other", &[], &[]);
    let list = |children: &[&Element<'_>]| {
        let nodes: Vec<_> = children.iter().copied().map(Node::Element).collect();
        json(Element::new("EventData", &[], &nodes))
    };
    assert_eq!(list(&[named, other, named]), r#"{"a":"b","Other":null,"a_1":"b"}"#);
    assert_eq!(list(&[named, named]), r#"{"a":["b","b"]}"#);
    assert_eq!(list(&[unnamed]), r##"{"Data":{"#text":"b"}}"##);
    assert_eq!(
        list(&[unnamed, other, unnamed]),
        r##"{"Data":{"#text":["b","b"]},"Other":null}"##
    );
    assert_eq!(list(&[other, other]), r#"{"Other":null,"Other_1":null}"#);
}
