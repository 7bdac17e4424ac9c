//! Trees of elements, which the walk over BinXML builds.
//!
//! A tree lives in an arena. It borrows text and values from the chunk.

use super::fields::FieldNamer;
use crate::value::text::{self, Escaping};
use crate::value::{Value, ValueType};

/// An element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Element<'a> {
    /// The name.
    pub name: &'a str,
    /// The attributes that have content, in order.
    pub attributes: &'a [Attribute<'a>],
    /// The content, in order.
    pub content: &'a [Node<'a>],
    /// In a definition: the index of the substitution on which it depends. A NULL value leaves the element out.
    pub dependency: Option<u16>,
    /// Whether BinXML closes the element as empty, so that it is shown as `<x/>`.
    pub self_closing: bool,
}

/// An attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attribute<'a> {
    /// The name.
    pub name: &'a str,
    /// The value. None of its nodes is an element.
    pub content: &'a [Node<'a>],
}

impl Attribute<'_> {
    /// Whether it declares a namespace.
    pub fn is_namespace(&self) -> bool {
        self.name == "xmlns" || self.name.starts_with("xmlns:")
    }
}

/// A node of an element's or attribute's content.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Node<'a> {
    /// An element.
    Element(&'a Element<'a>),
    /// Copies of one element, which an array has repeated.
    Repeated(&'a [Element<'a>]),
    /// A value. Literal text is a value of type [`Scalar::String`](crate::value::Scalar::String).
    Value(Value<'a>),
    /// A CDATA section: its text in UTF-16LE.
    CData(&'a [u8]),
    /// An entity reference: its name, as `amp`.
    EntityRef(&'a str),
    /// A character reference: a UTF-16 unit.
    CharRef(u16),
    /// In a template definition: a substitution.
    Substitution(Substitution),
}

/// A substitution in a template definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Substitution {
    /// The index of its value in the value table.
    pub index: u16,
    /// The type that the template declares. A value is read by its own type, from its value descriptor.
    pub declared: ValueType,
    /// Whether the substitution leaves nothing if its value is empty.
    pub optional: bool,
}

impl<'a> Element<'a> {
    /// An element that is in every record.
    pub const fn new(name: &'a str, attributes: &'a [Attribute<'a>], content: &'a [Node<'a>]) -> Self {
        Element {
            name,
            attributes,
            content,
            dependency: None,
            self_closing: false,
        }
    }

    /// The child elements. Copies that an array has made are separate elements.
    pub fn elements(&self) -> impl Iterator<Item = &'a Element<'a>> + use<'a> {
        self.content.iter().flat_map(Node::elements)
    }

    /// The content of the attribute with a name; `None` if there is no such attribute.
    pub fn attribute(&self, name: &str) -> Option<&'a [Node<'a>]> {
        let attribute = self.attributes.iter().find(|attribute| attribute.name == name)?;
        Some(attribute.content)
    }

    /// Whether its attribute `Name` names its values.
    pub fn is_called(&self) -> bool {
        FieldNamer::is_called(self.name)
    }

    /// Whether one of its attributes is a value: it neither declares a namespace nor names the values of the element.
    pub fn is_value(&self, attribute: &Attribute<'_>) -> bool {
        !(attribute.is_namespace() || attribute.name == "Name" && self.is_called())
    }

    /// Whether its value may be the payload of an event that Windows could not render: the values as they were logged, or
    /// data of a kind that Windows does not know. Source: the types `ProcessingErrorDataType` and `EventType` of Windows'
    /// schema of events.
    pub fn is_payload(&self) -> bool {
        matches!(self.name, "EventPayload" | "BinaryEventData")
    }

    /// The texts of its payload, joined by line breaks; `None` if its value is not such a payload.
    pub fn payload_text(&self) -> Option<String> {
        match self.content {
            [Node::Value(value)] if self.is_payload() => value.payload_text(),
            _ => None,
        }
    }

    /// Appends the text of the element and of all in it, as XPath's `string()`. Stops once `out` exceeds `limit` bytes.
    ///
    /// Recurses once per level of the tree; [`MAX_OPEN_ELEMENTS`](crate::limits::MAX_OPEN_ELEMENTS) bounds the levels.
    pub fn push_text(&self, out: &mut Vec<u8>, escaping: Escaping, limit: usize) {
        for node in self.content {
            node.elements().for_each(|child| child.push_text(out, escaping, limit));
            if out.len() > limit {
                return;
            }
            node.push_text(out, escaping);
        }
    }
}

impl<'a> Node<'a> {
    /// The element or the repeated elements that the node is; none for other nodes.
    pub fn elements(&self) -> impl Iterator<Item = &'a Element<'a>> + use<'a> {
        let elements = match *self {
            Node::Element(element) => std::slice::from_ref(element),
            Node::Repeated(elements) => elements,
            _ => &[],
        };
        elements.iter()
    }

    /// Whether the node is text that is not empty. A substitution counts as such; an element does not.
    pub fn is_text(&self) -> bool {
        match self {
            Node::Value(value) => !value.is_empty(),
            Node::CData(text) => !text::utf16_is_empty(text),
            Node::EntityRef(_) | Node::CharRef(_) | Node::Substitution(_) => true,
            Node::Element(_) | Node::Repeated(_) => false,
        }
    }

    /// Appends the text of the node, if it has one. A reference that cannot be resolved stays a reference.
    pub fn push_text(&self, out: &mut Vec<u8>, escaping: Escaping) {
        match *self {
            Node::Value(value) => value.push_text(out, escaping),
            Node::CData(text) => text::push_utf16(out, text, escaping),
            Node::EntityRef(name) => {
                let known = [("quot", '"'), ("apos", '\''), ("amp", '&'), ("lt", '<'), ("gt", '>')];
                match known.iter().find(|(known, _)| *known == name) {
                    Some(&(_, character)) => text::push_char(out, character, escaping),
                    None => push_reference(out, name),
                }
            }
            Node::CharRef(number) => match char::from_u32(u32::from(number)) {
                Some(c) => text::push_char(out, c, escaping),
                None => push_reference(out, &format!("#{number}")),
            },
            Node::Element(_) | Node::Repeated(_) | Node::Substitution(_) => {}
        }
    }
}

/// Appends `&name;`.
pub fn push_reference(out: &mut Vec<u8>, name: &str) {
    out.push(b'&');
    out.extend_from_slice(name.as_bytes());
    out.push(b';');
}

/// Appends the text of nodes. Stops once `out` is longer than `limit` bytes.
pub fn push_nodes(out: &mut Vec<u8>, nodes: &[Node<'_>], escaping: Escaping, limit: usize) {
    for node in nodes {
        if out.len() > limit {
            return;
        }
        node.push_text(out, escaping);
    }
}
