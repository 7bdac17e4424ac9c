//! Writes an element as JSON while the walk reads it, without a tree.
//!
//! Most elements that records spell out are plain: they have attributes, and text or children, but not both. The sink
//! refuses others, which are rendered from trees. A property test compares both ways (`tests/elements.rs`).

use bumpalo::collections::Vec as BumpVec;

use super::json::is_container;
use crate::binxml::names::Name;
use crate::binxml::sink::{NOT_PLAIN, Outcome, Sink};
use crate::binxml::tree::Node;
use crate::binxml::{Reader, StreamCursor};
use crate::error::ErrorKind;
use crate::value::Scalar;
use crate::value::text::{self, Form};

/// The most different names that the children of an element may have. They are searched one by one.
const MAX_NAMES: usize = 32;

struct JsonStream<'o, 'a> {
    out: &'o mut Vec<u8>,
    /// The most bytes that `out` may have.
    limit: usize,
    root: Option<&'a str>,
    open: BumpVec<'a, Open>,
    /// The names of the children of open elements so far, and how often each occurred.
    names: BumpVec<'a, (&'a str, usize)>,
    /// The attribute that is open.
    attribute: Option<&'a Name<'a>>,
    text: Text,
}

struct Open {
    /// The index in `names` of its children's first name.
    names: usize,
    /// Whether it is `EventData` or `UserData`, where `Data` children have other rules.
    container: bool,
    written: Written,
}

/// What was written of an element.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Nothing,
    /// Their object stays open until the start tag ends.
    Attributes,
    /// The text is the value of the element.
    Text,
    /// The text is the member `#text` after attributes.
    TextMember,
    Children,
}

/// What was written of a text: the value of an attribute, or the content of an element.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    Nothing,
    /// A number or boolean without quotes.
    Bare,
    /// A string without its closing quote.
    Quoted,
}

impl<'a, 'c: 'a> Reader<'a, 'c> {
    /// Appends the JSON value of the next element of a stream, moves after it, and returns its name. `None`, without a
    /// change, if it is damaged or needs a tree, or if `out` would be longer than `limit` bytes.
    pub fn push_json(&self, fragments: &mut StreamCursor<'a>, out: &mut Vec<u8>, limit: usize) -> Option<&'a str> {
        if !self.is_at_element(fragments) {
            return None;
        }
        let start = out.len();
        let mut sink = JsonStream {
            out,
            limit,
            root: None,
            open: BumpVec::with_capacity_in(8, self.arena),
            names: BumpVec::with_capacity_in(32, self.arena),
            attribute: None,
            text: Text::Nothing,
        };
        let root = self.pass(fragments, &mut sink).then_some(sink.root).flatten();
        if root.is_none() {
            out.truncate(start);
        }
        root
    }
}

impl<'a> JsonStream<'_, 'a> {
    /// The innermost open element. The walk only calls for content while there is one.
    fn innermost(&mut self) -> Result<&mut Open, ErrorKind> {
        self.open.last_mut().ok_or(NOT_PLAIN)
    }

    /// Counts a child, among the names from index `from` on. Returns how often the name occurred before.
    fn count(&mut self, name: &'a str, from: usize) -> Result<usize, ErrorKind> {
        let names = &mut self.names[from..];
        if let Some((_, count)) = names.iter_mut().find(|(known, _)| *known == name) {
            *count += 1;
            return Ok(*count - 1);
        }
        if names.len() == MAX_NAMES {
            return Err(NOT_PLAIN);
        }
        self.names.push((name, 1));
        Ok(0)
    }

    fn key(&mut self, name: &Name<'_>, number: usize) {
        if number > 0 || !name.is_bare {
            text::push_json_key(self.out, name.text, number);
            return;
        }
        self.out.reserve(name.text.len() + 3);
        self.out.push(b'"');
        self.out.extend_from_slice(name.text.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    /// Writes a node of a text. Before the first, `begin` writes what comes before the text.
    #[inline(always)]
    fn text(&mut self, node: Node<'a>, begin: impl FnOnce(&mut Self)) -> Outcome {
        let string = match node {
            Node::Value(value) if value.scalar() == Some(Scalar::String) => Some(value.bytes),
            _ => None,
        };
        match self.text {
            Text::Nothing => {
                // Whether an empty node counts depends on the nodes after it, which are not known yet.
                if string.map_or_else(|| !node.is_text(), text::utf16_is_empty) {
                    return Err(NOT_PLAIN);
                }
                begin(self);
                self.text = if matches!(node, Node::Value(value) if value.is_json_literal()) {
                    Text::Bare
                } else {
                    self.out.push(b'"');
                    Text::Quoted
                };
            }
            Text::Bare => return Err(NOT_PLAIN),
            Text::Quoted => {}
        }
        match string {
            Some(units) => text::push_utf16(self.out, units, Form::Json),
            None => node.push_text(self.out, Form::Json),
        }
        if self.out.len() > self.limit {
            return Err(NOT_PLAIN);
        }
        Ok(())
    }

    fn end_text(&mut self) {
        if self.text == Text::Quoted {
            self.out.push(b'"');
        }
        self.text = Text::Nothing;
    }
}

impl<'a> Sink<'a> for JsonStream<'_, 'a> {
    fn start(&mut self, name: &'a Name<'a>, _: Option<u16>) -> Outcome {
        match self.open.last_mut() {
            None => self.root = Some(name.text),
            Some(parent) => {
                self.out.push(match parent.written {
                    Written::Nothing => b'{',
                    Written::Attributes | Written::Children => b',',
                    Written::Text | Written::TextMember => return Err(NOT_PLAIN),
                });
                if parent.container && name.text == "Data" || self.out.len() > self.limit {
                    return Err(NOT_PLAIN);
                }
                parent.written = Written::Children;
                let names = parent.names;
                let number = self.count(name.text, names)?;
                self.key(name, number);
            }
        }
        self.open.push(Open {
            names: self.names.len(),
            container: is_container(name.text),
            written: Written::Nothing,
        });
        Ok(())
    }

    fn attribute(&mut self, name: &'a Name<'a>) {
        self.end_text();
        self.attribute = Some(name);
    }

    #[inline(always)]
    fn attribute_content(&mut self, node: Node<'a>) -> Outcome {
        let Some(name) = self.attribute else { return Ok(()) };
        let element = self.innermost()?;
        let first = element.written == Written::Nothing;
        element.written = Written::Attributes;
        self.text(node, |stream| {
            let lead: &[u8] = if first { b"{\"#attributes\":{" } else { b"," };
            stream.out.extend_from_slice(lead);
            stream.key(name, 0);
        })
    }

    fn end_start(&mut self) {
        self.end_text();
        self.attribute = None;
        if let Some(Open {
            written: Written::Attributes,
            ..
        }) = self.open.last()
        {
            self.out.push(b'}');
        }
    }

    #[inline(always)]
    fn content(&mut self, node: Node<'a>) -> Outcome {
        let element = self.innermost()?;
        let begin: &[u8] = match element.written {
            Written::Nothing => {
                element.written = Written::Text;
                b""
            }
            Written::Attributes => {
                element.written = Written::TextMember;
                b",\"#text\":"
            }
            Written::Text | Written::TextMember => b"",
            Written::Children => return Err(NOT_PLAIN),
        };
        self.text(node, |stream| stream.out.extend_from_slice(begin))
    }

    fn end(&mut self, _: bool) -> Outcome {
        self.end_text();
        let Some(element) = self.open.pop() else { return Ok(()) };
        self.names.truncate(element.names);
        match element.written {
            Written::Nothing => self.out.extend_from_slice(b"null"),
            Written::Text => {}
            Written::Attributes | Written::TextMember | Written::Children => self.out.push(b'}'),
        }
        Ok(())
    }
}
