//! An element as JSON, in the shape that `evtx_dump -o json` made common.
//!
//! A leaf is its value: a bare number or boolean for integers and booleans, else a string, `null` where it is empty. Other elements are objects:
//! `#attributes`, `#text`, then a member per child, named as the child, a name that comes back numbered `_1`, `_2`. In `EventData` and
//! `UserData`, `Data` children that have names are members by those; if none has, they are one member `Data`.

use std::hash::Hash;

use hashbrown::HashMap;

use crate::text::{self, Form};
use crate::tree::{Element, Node, push_nodes};
use crate::value::Items;

/// Appends the value of an element, as the member of its parent has it.
///
/// Recurses once per level of the tree, which [`MAX_OPEN_ELEMENTS`](crate::MAX_OPEN_ELEMENTS) bounds.
pub fn push_element(out: &mut Vec<u8>, element: &Element<'_>) {
    let has_text = element.content.iter().any(Node::is_text);
    let has_attributes = element.attributes.iter().any(|a| a.content.iter().any(Node::is_text));
    if element.elements().next().is_some() || has_attributes {
        push_object(out, element, is_container(element.name), has_attributes, has_text);
    } else if has_text {
        push_content(out, element.content, false);
    } else {
        out.extend_from_slice(b"null");
    }
}

/// The elements whose `Data` children are members by the names they carry.
fn is_container(name: &str) -> bool {
    matches!(name, "EventData" | "UserData")
}

fn push_object(out: &mut Vec<u8>, element: &Element<'_>, container: bool, attributes: bool, text: bool) {
    let mut object = Object::open(out);
    if attributes {
        object.key(out, "#attributes", 0);
        push_attributes(out, element);
    }
    if text {
        object.key(out, "#text", 0);
        push_content(out, element.content, true);
    }
    let children: Vec<&Element<'_>> = element.elements().collect();
    let is_data = |child: &Element<'_>| container && child.name == "Data";
    let names: Vec<Option<Vec<u8>>> = children
        .iter()
        .map(|child| if is_data(child) { data_name(child) } else { None })
        .collect();
    let named = names.iter().any(Option::is_some);
    let mut counts = HashMap::new();
    let mut data_counts = HashMap::new();
    let mut positional_done = false;
    let mut at = 0;
    while at < children.len() {
        let child = children[at];
        let first = at;
        at += 1;
        if !is_data(child) {
            object.key(out, child.name, count(&mut counts, child.name));
            push_element(out, child);
        } else if let Some(name) = &names[first] {
            // Those of one name in a row are an array: what an array value made.
            while at < children.len() && is_data(children[at]) && names[at].as_ref() == Some(name) {
                at += 1;
            }
            object.escaped_key(out, name, count(&mut data_counts, name.as_slice()));
            push_data(out, &children[first..at]);
        } else if !named && !positional_done {
            positional_done = true;
            object.key(out, "Data", 0);
            out.extend_from_slice(b"{\"#text\":");
            let data: Vec<&Element<'_>> = children.iter().copied().filter(|child| is_data(child)).collect();
            push_data(out, &data);
            out.push(b'}');
        }
    }
    out.push(b'}');
}

/// An object that is being written.
struct Object {
    empty: bool,
}

impl Object {
    fn open(out: &mut Vec<u8>) -> Self {
        out.push(b'{');
        Object { empty: true }
    }

    /// Writes the next member's key, numbered if `number` is not 0.
    fn key(&mut self, out: &mut Vec<u8>, name: &str, number: usize) {
        let mut escaped = Vec::new();
        text::push_str(&mut escaped, name, Form::Json);
        self.escaped_key(out, &escaped, number);
    }

    fn escaped_key(&mut self, out: &mut Vec<u8>, name: &[u8], number: usize) {
        out.extend_from_slice(if self.empty { b"\"" } else { b",\"" });
        self.empty = false;
        out.extend_from_slice(name);
        if number > 0 {
            out.extend_from_slice(format!("_{number}").as_bytes());
        }
        out.extend_from_slice(b"\":");
    }
}

/// How often a name was there before.
fn count<'n, N: Hash + Eq + ?Sized>(counts: &mut HashMap<&'n N, usize>, name: &'n N) -> usize {
    let count = counts.entry(name).or_insert(0);
    *count += 1;
    *count - 1
}

/// A `Data` element's name, escaped; `None` where it has none or it is empty.
fn data_name(element: &Element<'_>) -> Option<Vec<u8>> {
    let name = element
        .attribute("Name")
        .filter(|name| name.iter().any(Node::is_text))?;
    let mut text = Vec::new();
    push_nodes(&mut text, name, Form::Json);
    Some(text)
}

/// The value of one `Data` element, or the array of several.
fn push_data(out: &mut Vec<u8>, data: &[&Element<'_>]) {
    if data.len() > 1 {
        out.push(b'[');
    }
    for (i, element) in data.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        let has_text = element.content.iter().any(Node::is_text);
        if element.elements().next().is_some() {
            // Its attributes are left out: the name is that of the member.
            push_object(out, element, false, false, has_text);
        } else if has_text {
            push_content(out, element.content, false);
        } else {
            out.extend_from_slice(b"\"\"");
        }
    }
    if data.len() > 1 {
        out.push(b']');
    }
}

fn push_attributes(out: &mut Vec<u8>, element: &Element<'_>) {
    let mut object = Object::open(out);
    for attribute in element.attributes {
        if attribute.content.iter().any(Node::is_text) {
            object.key(out, attribute.name, 0);
            push_content(out, attribute.content, false);
        }
    }
    out.push(b'}');
}

/// Text content: a bare literal where it is one value that JSON shows so, else a string. `mixed` content has elements, which are not looked at,
/// and neither are values that are empty.
fn push_content(out: &mut Vec<u8>, content: &[Node<'_>], mixed: bool) {
    let mut pieces = content.iter().filter(|node| !mixed || node.is_text());
    if let (Some(Node::Value(value)), None) = (pieces.next(), pieces.next())
        && value.is_json_literal()
    {
        value.push_text(out, Form::Json);
        return;
    }
    out.push(b'"');
    push_nodes(out, content, Form::Json);
    out.push(b'"');
}

/// Appends the value of content without elements: a bare literal where it is one value that JSON shows so, else a string.
pub fn push_text_value(out: &mut Vec<u8>, content: &[Node<'_>]) {
    push_content(out, content, false);
}

/// Appends the JSON array of the items of an array value.
pub fn push_array(out: &mut Vec<u8>, items: Items<'_>) {
    out.push(b'[');
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_text_value(out, &[Node::Value(item)]);
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Attribute;
    use crate::value::{Scalar, Value};

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    fn json(element: &Element<'_>) -> String {
        let mut out = Vec::new();
        push_element(&mut out, element);
        String::from_utf8(out).unwrap()
    }

    const EMPTY: Element<'_> = Element {
        name: "x",
        attributes: &[],
        content: &[],
        dependency: None,
        self_closing: false,
    };

    #[test]
    fn leaves_are_values() {
        let text = utf16("a\"b");
        let string = [Node::Value(Value::new(Scalar::String, &text))];
        let number = [Node::Value(Value::new(Scalar::UInt16, &[7, 0]))];
        let hex = [Node::Value(Value::new(Scalar::HexInt32, &[7, 0, 0, 0]))];
        assert_eq!(json(&EMPTY), "null");
        assert_eq!(
            json(&Element {
                content: &string,
                ..EMPTY
            }),
            "\"a\\\"b\""
        );
        assert_eq!(
            json(&Element {
                content: &number,
                ..EMPTY
            }),
            "7"
        );
        assert_eq!(json(&Element { content: &hex, ..EMPTY }), "\"0x7\"");
        let attributes = [Attribute {
            name: "n",
            content: &number,
        }];
        let both = Element {
            attributes: &attributes,
            content: &string,
            ..EMPTY
        };
        assert_eq!(json(&both), r##"{"#attributes":{"n":7},"#text":"a\"b"}"##);
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
        let unnamed = Element {
            name: "Data",
            content: &value,
            ..EMPTY
        };
        let named = Element {
            attributes: &attributes,
            ..unnamed
        };
        let other = Element { name: "Other", ..EMPTY };
        let list = |children: &[Element<'_>]| {
            let nodes: Vec<Node<'_>> = children.iter().map(Node::Element).collect();
            json(&Element {
                name: "EventData",
                content: &nodes,
                ..EMPTY
            })
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
}
