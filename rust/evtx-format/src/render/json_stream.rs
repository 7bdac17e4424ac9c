//! The sink that writes an element as JSON while the walk reads it, without a tree.
//!
//! Most elements that records spell out are plain: they have attributes, and text or children, but not both. The sink
//! refuses any other element, which is then rendered from its tree. Both ways give the same bytes; a property test
//! (`tests/json_stream.rs`) checks that.

use bumpalo::Bump;
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

/// Writes the JSON value of an element.
struct JsonStream<'o, 'a> {
    out: &'o mut Vec<u8>,
    /// The most bytes that `out` may have.
    limit: usize,
    /// The elements that are open.
    open: BumpVec<'a, Open>,
    /// The names of their children so far, and how often each came.
    names: BumpVec<'a, (&'a str, usize)>,
    /// The attribute that is open.
    attribute: Option<&'a Name<'a>>,
    /// What was written of the current text, which is the value of an attribute or the content of an element.
    text: Text,
}

/// An element that is open.
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
    /// Attributes. Their object stays open until the start tag ends.
    Attributes,
    /// Text without attributes. The text is the value of the element.
    Text,
    /// Text after attributes, as the member `#text`.
    TextMember,
    /// One or more children.
    Children,
}

/// What was written of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    Nothing,
    /// A number or boolean without quotes.
    Bare,
    /// A string without its closing quote.
    Quoted,
}

impl<'a, 'c: 'a> Reader<'a, 'c> {
    /// Appends the JSON value of the next element of a stream, and moves behind the element. Returns false, appends
    /// nothing and does not move if the element is damaged or needs a tree, or if `out` would be longer than `limit`
    /// bytes.
    pub fn push_json(&self, parts: &mut StreamCursor<'a>, out: &mut Vec<u8>, limit: usize) -> bool {
        let start = out.len();
        let passed = self.pass(parts, &mut JsonStream::new(out, limit, self.arena));
        if !passed {
            out.truncate(start);
        }
        passed
    }
}

impl<'o, 'a> JsonStream<'o, 'a> {
    /// A sink that appends to `out` up to `limit` bytes, and keeps its own state in `arena`.
    fn new(out: &'o mut Vec<u8>, limit: usize, arena: &'a Bump) -> Self {
        JsonStream {
            limit,
            out,
            open: BumpVec::with_capacity_in(8, arena),
            names: BumpVec::with_capacity_in(32, arena),
            attribute: None,
            text: Text::Nothing,
        }
    }

    fn push(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
    }

    /// The innermost open element. The walk only calls for content while there is one.
    fn innermost(&mut self) -> Result<&mut Open, ErrorKind> {
        self.open.last_mut().ok_or(NOT_PLAIN)
    }

    /// Counts a child of the innermost element, whose names start at index `from`. Returns how often the name came
    /// before.
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

    /// Writes a piece of text. Before the first piece, `begin` writes what comes before the text; its argument tells
    /// whether that ends with a quote.
    #[inline(always)]
    fn piece(&mut self, node: Node<'a>, begin: impl FnOnce(&mut Self, bool)) -> Outcome {
        let string = match node {
            Node::Value(value) if value.scalar() == Some(Scalar::String) => Some(value.bytes),
            _ => None,
        };
        match self.text {
            Text::Nothing => {
                // Whether an empty piece counts depends on the pieces after it, which are not known yet.
                if string.map_or_else(|| !node.is_text(), text::utf16_is_empty) {
                    return Err(NOT_PLAIN);
                }
                let literal = matches!(node, Node::Value(value) if value.is_json_literal());
                begin(self, !literal);
                self.text = if literal { Text::Bare } else { Text::Quoted };
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
        if let Some(parent) = self.open.last_mut() {
            let lead = match parent.written {
                Written::Nothing => b'{',
                Written::Attributes | Written::Children => b',',
                Written::Text | Written::TextMember => return Err(NOT_PLAIN),
            };
            if parent.container && name.text == "Data" || self.out.len() > self.limit {
                return Err(NOT_PLAIN);
            }
            parent.written = Written::Children;
            let names = parent.names;
            let number = self.count(name.text, names)?;
            name.push_member(self.out, lead, number, false);
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
        self.piece(node, |direct, quoted| {
            let lead = if first { b'{' } else { b',' };
            if first {
                direct.push(b"{\"#attributes\":");
            }
            name.push_member(direct.out, lead, 0, quoted);
        })
    }

    fn end_start(&mut self) {
        self.end_text();
        self.attribute = None;
        if self
            .open
            .last()
            .is_some_and(|element| element.written == Written::Attributes)
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
                b"\""
            }
            Written::Attributes => {
                element.written = Written::TextMember;
                b",\"#text\":\""
            }
            Written::Text | Written::TextMember => b"",
            Written::Children => return Err(NOT_PLAIN),
        };
        self.piece(node, |direct, quoted| {
            direct.push(&begin[..begin.len() - usize::from(!quoted)])
        })
    }

    fn end(&mut self, _: bool) -> Outcome {
        self.end_text();
        let Some(element) = self.open.pop() else { return Ok(()) };
        self.names.truncate(element.names);
        match element.written {
            Written::Nothing => self.push(b"null"),
            Written::Text => {}
            Written::Attributes | Written::TextMember | Written::Children => self.out.push(b'}'),
        }
        Ok(())
    }
}
