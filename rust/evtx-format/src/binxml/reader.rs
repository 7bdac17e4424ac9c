//! What is read of a chunk's BinXML: the parts of a record's stream, templates, instances, and streams in values.

use std::ops::Range;

use super::builder::{Substitutions, TreeBuilder};
use super::instance::{Definition, Instance};
use super::sink::{Check, Pass, Sink};
use super::tree::{Element, Node};
use super::walk::{Extent, Reader};
use crate::bytes::Cursor;
use crate::error::Result;

/// A definition's tree, its substitutions open.
#[derive(Debug)]
pub struct Template<'a> {
    /// The root element.
    pub root: &'a Element<'a>,
    /// Chunk offsets of the u32 name references in the body, in order.
    pub name_refs: Vec<u32>,
    /// Whether the body depends on nothing but its bytes and names. One that embeds a BinXML value can refer
    /// to other templates.
    pub self_contained: bool,
}

/// What stands at the top of a stream.
#[derive(Debug, Clone, Copy)]
pub enum TopLevel<'a> {
    /// A template instance.
    Instance(Instance<'a>),
    /// An element that the record spells out.
    Element(&'a Element<'a>),
}

/// A place in a stream, between its top parts. Made by [`Reader::parts`].
#[derive(Clone, Copy)]
pub struct StreamCursor<'a> {
    cursor: Cursor<'a>,
}

impl PartialEq for StreamCursor<'_> {
    /// Places in streams of one chunk are the same if they stand there at the same offset.
    fn eq(&self, other: &Self) -> bool {
        self.cursor.pos() == other.cursor.pos() && self.cursor.end() == other.cursor.end()
    }
}

impl<'a, 'c: 'a> Reader<'a, 'c> {
    /// The template instance that a stream in a range of the chunk begins with, and whether there is nothing behind it.
    /// `None` where it begins otherwise, or is damaged: its [parts](Self::parts) tell.
    #[inline(always)]
    pub fn leading_instance(&self, stream: Range<usize>) -> Option<(Instance<'a>, bool)> {
        let until = stream.end;
        let (instance, end) = Instance::leading(self.chunk, stream, self.arena)?;
        let is_all = end >= until || self.chunk[end] == 0;
        Some((instance, is_all))
    }

    /// The parts at the top of the stream in a range of the chunk.
    pub fn parts(&self, stream: Range<usize>) -> StreamCursor<'a> {
        StreamCursor {
            cursor: Cursor::new(self.chunk, stream.start, stream.end),
        }
    }

    /// The next part of a stream; `None` at its end.
    ///
    /// # Errors
    /// Where the stream is damaged. Nothing of it comes after an error.
    #[inline]
    pub fn next_part(&self, parts: &mut StreamCursor<'a>) -> Option<Result<TopLevel<'a>>> {
        let part = self.read_part(&mut parts.cursor).transpose()?;
        if part.is_err() {
            parts.cursor = Cursor::new(self.chunk, 0, 0);
        }
        Some(part)
    }

    #[inline]
    fn read_part(&self, cursor: &mut Cursor<'a>) -> Result<Option<TopLevel<'a>>> {
        while !cursor.at_end() {
            match cursor.u8("a token")? {
                0x00 => break,
                0x0f => cursor.skip(3, "a fragment header")?,
                0x0c => {
                    let instance = Instance::read(self.chunk, cursor, self.arena)?;
                    return Ok(Some(TopLevel::Instance(instance)));
                }
                _ => {
                    cursor.step_back();
                    let mut tree = TreeBuilder::new(self, Substitutions::Forbidden, 0, 0);
                    self.walk(cursor, &mut tree, Extent::Element, 0)?;
                    let Some(&Node::Element(element)) = tree.into_roots().first() else {
                        break;
                    };
                    return Ok(Some(TopLevel::Element(element)));
                }
            }
        }
        *cursor = Cursor::new(self.chunk, 0, 0);
        Ok(None)
    }

    /// Chunk offset of where a stream in a range of the chunk ends: that of its end token, or the range's end. `None`
    /// where it is damaged before.
    pub(crate) fn stream_end(&self, stream: Range<usize>) -> Option<usize> {
        let mut cursor = Cursor::new(self.chunk, stream.start, stream.end);
        loop {
            match cursor.peek() {
                None | Some(0x00) => return Some(cursor.pos()),
                Some(0x0f) => cursor.skip(4, "a fragment header").ok()?,
                Some(0x0c) => {
                    cursor.skip(1, "a token").ok()?;
                    Instance::read(self.chunk, &mut cursor, self.arena).ok()?;
                }
                Some(_) => self.walk(&mut cursor, &mut Pass, Extent::Element, 0).ok()?,
            }
        }
    }

    /// The name of the element that comes next in a stream; `None` where something else does, or where it cannot be
    /// read.
    pub fn next_name(&self, parts: &StreamCursor<'a>) -> Option<&'a str> {
        let mut cursor = parts.cursor;
        self.at_element(&mut cursor).then(|| {
            cursor.skip(1 + 4, "an element start").ok()?;
            self.name(&mut cursor, &mut Check).ok().map(|name| name.text)
        })?
    }

    /// Passes the element that comes next in a stream, if it is sound as far as can be told without its tree.
    pub fn pass_element(&self, parts: &mut StreamCursor<'a>) -> bool {
        self.pass(parts, &mut Check)
    }

    /// Gives the element that comes next in a stream to a sink, if it takes it.
    pub(crate) fn pass(&self, parts: &mut StreamCursor<'a>, sink: &mut impl Sink<'a>) -> bool {
        let (mut cursor, nodes_left) = (parts.cursor, self.nodes_left.get());
        let passed = self.at_element(&mut cursor) && self.walk(&mut cursor, sink, Extent::Element, 0).is_ok();
        if passed {
            parts.cursor = cursor;
        } else {
            self.nodes_left.set(nodes_left);
        }
        passed
    }

    /// Whether an element comes next, behind the headers of fragments.
    fn at_element(&self, cursor: &mut Cursor<'a>) -> bool {
        loop {
            match cursor.peek() {
                Some(0x0f) if cursor.skip(4, "a fragment header").is_ok() => {}
                token => return matches!(token, Some(0x01 | 0x41)),
            }
        }
    }

    /// A definition's tree, its substitutions open.
    ///
    /// # Errors
    /// Where the definition is damaged, or has not exactly one root element.
    pub fn template(&self, definition: &Definition) -> Result<Template<'a>> {
        self.name_refs.borrow_mut().clear();
        let root = self.definition_root(definition, Substitutions::Open, 0, 0)?;
        Ok(Template {
            root,
            name_refs: self.name_refs.take(),
            self_contained: !self.embeds_binxml.get(),
        })
    }

    /// An instance's tree, its substitutions filled.
    ///
    /// # Errors
    /// Where its definition or a value that it holds is damaged.
    pub fn instance(&self, instance: &Instance<'a>) -> Result<&'a Element<'a>> {
        self.fill(instance, 0, 0)
    }

    /// The elements of the stream that a BinXML value holds.
    ///
    /// # Errors
    /// Where it is damaged.
    pub fn fragment(&self, stream: Range<usize>) -> Result<&'a [Node<'a>]> {
        self.nested(stream, 0, 0)
    }
}
