//! Trees of elements, as the walk over BinXML builds them.
//!
//! A tree lives in an arena and borrows text and values from the chunk.

use crate::value::text::{self, Form};
use crate::value::{Value, ValueType};

/// An element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Element<'a> {
    /// Name.
    pub name: &'a str,
    /// Attributes that have content, in order.
    pub attributes: &'a [Attribute<'a>],
    /// What it holds, in order.
    pub content: &'a [Node<'a>],
    /// In a definition, the substitution whose NULL leaves the element out.
    pub dependency: Option<u16>,
    /// Whether BinXML closed it as empty, so that it is shown as `<x/>`.
    pub self_closing: bool,
}

/// An attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attribute<'a> {
    /// Name.
    pub name: &'a str,
    /// Its value's pieces. No elements.
    pub content: &'a [Node<'a>],
}

/// A piece of an element's or attribute's content.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Node<'a> {
    /// An element.
    Element(&'a Element<'a>),
    /// The copies of one element that an array made, two or more.
    Repeated(&'a [Element<'a>]),
    /// A value. Literal text is a value of type [`Scalar::String`](crate::value::Scalar::String).
    Value(Value<'a>),
    /// A CDATA section, UTF-16LE.
    CData(&'a [u8]),
    /// An entity reference by name, as `amp`.
    EntityRef(&'a str),
    /// A character reference.
    CharRef(u16),
    /// In a definition, a substitution.
    Substitution(Substitution),
}

/// A substitution in a template definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Substitution {
    /// Index in the value table.
    pub index: u16,
    /// The type that the template declares. The value's own type decides what is read.
    pub declared: ValueType,
    /// Whether an empty value leaves nothing.
    pub optional: bool,
}

impl<'a> Element<'a> {
    /// The child elements, those of arrays one by one.
    pub fn elements(&self) -> impl Iterator<Item = &'a Element<'a>> + use<'a> {
        self.content.iter().flat_map(Node::elements)
    }

    /// The content of an attribute; `None` where there is none of the name.
    pub fn attribute(&self, name: &str) -> Option<&'a [Node<'a>]> {
        let attribute = self.attributes.iter().find(|attribute| attribute.name == name)?;
        Some(attribute.content)
    }

    /// Appends the text of the element and all it holds, as XPath's `string()` gives it. Stops once `out` is longer
    /// than `limit`.
    ///
    /// Recurses once per level of the tree, which [`MAX_OPEN_ELEMENTS`](crate::limits::MAX_OPEN_ELEMENTS) bounds.
    pub fn push_text(&self, out: &mut Vec<u8>, form: Form, limit: usize) {
        for node in self.content {
            node.elements().for_each(|child| child.push_text(out, form, limit));
            if out.len() > limit {
                return;
            }
            node.push_text(out, form);
        }
    }
}

impl<'a> Node<'a> {
    /// The elements that the node stands for.
    pub fn elements(&self) -> impl Iterator<Item = &'a Element<'a>> + use<'a> {
        let elements = match *self {
            Node::Element(element) => std::slice::from_ref(element),
            Node::Repeated(elements) => elements,
            _ => &[],
        };
        elements.iter()
    }

    /// Whether it is text that is not empty. An element is none.
    pub fn is_text(&self) -> bool {
        match self {
            Node::Value(value) => !value.is_empty(),
            Node::CData(text) => !text::utf16_is_empty(text),
            Node::EntityRef(_) | Node::CharRef(_) | Node::Substitution(_) => true,
            Node::Element(_) | Node::Repeated(_) => false,
        }
    }

    /// Appends its text, references resolved. Elements and open substitutions have none.
    pub fn push_text(&self, out: &mut Vec<u8>, form: Form) {
        match *self {
            Node::Value(value) => value.push_text(out, form),
            Node::CData(text) => text::push_utf16(out, text, form),
            Node::EntityRef(name) => match name {
                "quot" => text::push_char(out, '"', form),
                "apos" => text::push_char(out, '\'', form),
                "amp" => text::push_char(out, '&', form),
                "lt" => text::push_char(out, '<', form),
                "gt" => text::push_char(out, '>', form),
                _ => push_reference(out, name),
            },
            Node::CharRef(number) => match char::from_u32(u32::from(number)) {
                Some(c) => text::push_char(out, c, form),
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

/// Appends the text of pieces of content. Stops once `out` is longer than `limit`.
pub fn push_nodes(out: &mut Vec<u8>, nodes: &[Node<'_>], form: Form, limit: usize) {
    for node in nodes {
        if out.len() > limit {
            return;
        }
        node.push_text(out, form);
    }
}
