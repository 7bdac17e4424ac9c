//! Reads the BinXML of a chunk: the fragments of a record's stream, template definitions, instances, and BinXML values.

use std::ops::Range;

use super::builder::{Substitutions, TreeBuilder};
use super::instance::{Definition, Instance};
use super::sink::{Check, Pass, Sink};
use super::tree::{Element, Node};
use super::walk::{Extent, Reader, stream_end};
use crate::bytes::Cursor;
use crate::error::{Error, ErrorKind, Result};

/// The tree of a template definition, with open substitutions.
#[derive(Debug)]
pub struct Template<'a> {
    /// The root element.
    pub root: &'a Element<'a>,
    /// Chunk offsets of the u32 name references in the body, in order.
    pub name_refs: Vec<u32>,
    /// Whether the tree depends only on the body and its names. A BinXML value in it can refer to other templates.
    pub self_contained: bool,
}

/// A fragment of a stream.
#[derive(Debug, Clone, Copy)]
pub enum Fragment<'a> {
    /// A template instance.
    Instance(Instance<'a>),
    /// An element that the record spells out, without a template.
    Element(&'a Element<'a>),
}

impl<'a, 'c: 'a> Reader<'a, 'c> {
    /// The instance at the start of the stream in a range of the chunk, and the chunk offset of its end. `None` if it
    /// is damaged, its definition is inline, or the stream is another: [`fragments`](Self::fragments) reads any.
    #[inline(always)]
    pub fn leading_instance(&self, stream: Range<usize>) -> Option<(Instance<'a>, usize)> {
        Instance::leading(self.chunk, stream, self.arena)
    }

    /// Whether a nested stream, whose bytes end at `until`, ends at a chunk offset: its end token follows, or no byte.
    #[inline(always)]
    pub fn is_stream_end(&self, at: usize, until: usize) -> bool {
        at >= until || at + 1 == until && self.chunk[at] == 0
    }

    /// Checks that an event which ends at one chunk offset fills its record, whose BinXML ends at another. Up to seven
    /// bytes of padding with any content follow the end token (seen in all of 152,700 real records but two damaged
    /// ones).
    ///
    /// # Errors
    /// [`ErrorKind::UnreadBytes`].
    pub fn check_event_end(&self, at: usize, until: usize) -> Result<()> {
        let rest = self.chunk.get(at..until).unwrap_or_default();
        let (at, unread) = match rest.split_first() {
            Some((0, padding)) if padding.len() < 8 => return Ok(()),
            Some((0, padding)) => (at + 1, padding.len()),
            Some(_) => (at, rest.len()),
            None => return Ok(()),
        };
        let what = "event";
        Err(Error::new(at, ErrorKind::UnreadBytes { what, unread }))
    }

    /// The position before the first fragment of the stream in a range of the chunk.
    pub fn fragments(&self, stream: Range<usize>) -> Cursor<'a> {
        Cursor::new(self.chunk, stream.start, stream.end)
    }

    /// The next fragment of a stream; `None` at its end.
    ///
    /// # Errors
    /// If the stream is damaged. The next call then returns `None`.
    #[inline]
    pub fn next_fragment(&self, fragments: &mut Cursor<'a>) -> Option<Result<Fragment<'a>>> {
        let fragment = self.read_fragment(fragments);
        if !matches!(fragment, Ok(Some(_))) {
            *fragments = Cursor::new(self.chunk, 0, 0);
        }
        fragment.transpose()
    }

    #[inline]
    fn read_fragment(&self, cursor: &mut Cursor<'a>) -> Result<Option<Fragment<'a>>> {
        while !cursor.at_end() {
            match cursor.u8("a token")? {
                0x00 => {
                    stream_end(cursor)?;
                    break;
                }
                0x0f => cursor.skip(3, "a fragment header")?,
                0x0c => {
                    let instance = Instance::read(self.chunk, cursor, self.arena)?;
                    return Ok(Some(Fragment::Instance(instance)));
                }
                _ => {
                    cursor.step_back();
                    let mut tree = TreeBuilder::new(self, Substitutions::Forbidden, 0, 0);
                    self.walk(cursor, &mut tree, Extent::Element, 0)?;
                    let Some(&Node::Element(element)) = tree.into_roots().first() else {
                        break;
                    };
                    return Ok(Some(Fragment::Element(element)));
                }
            }
        }
        Ok(None)
    }

    /// Chunk offset of the end token of the stream in a range, or of the end of the range. `None` if it is damaged.
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

    /// Moves after the next element and returns true, if it is valid and contains no stream, instance or substitution.
    pub fn pass_element(&self, fragments: &mut Cursor<'a>) -> bool {
        self.pass(fragments, &mut Check)
    }

    /// Passes the next element to a sink, and moves after it. If it is damaged or refused, returns false and does not
    /// move.
    pub(crate) fn pass(&self, fragments: &mut Cursor<'a>, sink: &mut impl Sink<'a>) -> bool {
        let (mut cursor, left) = (*fragments, self.left());
        let passed = self.at_element(&mut cursor) && self.walk(&mut cursor, sink, Extent::Element, 0).is_ok();
        if passed {
            *fragments = cursor;
        } else {
            self.restore(left);
        }
        passed
    }

    /// Whether an element comes next. Most streams hold an instance, for which a sink or an implicit template would be
    /// in vain.
    #[inline]
    pub fn is_at_element(&self, fragments: &Cursor<'a>) -> bool {
        let mut cursor = *fragments;
        self.at_element(&mut cursor)
    }

    /// Moves after fragment headers, and returns whether an element comes next.
    pub(super) fn at_element(&self, cursor: &mut Cursor<'a>) -> bool {
        loop {
            match cursor.peek() {
                Some(0x0f) if cursor.skip(4, "a fragment header").is_ok() => {}
                token => return matches!(token, Some(0x01 | 0x41)),
            }
        }
    }

    /// The tree of a template definition, with open substitutions.
    ///
    /// # Errors
    /// If the definition is damaged, or does not have exactly one root element.
    pub fn template(&self, definition: &Definition) -> Result<Template<'a>> {
        self.name_refs.borrow_mut().clear();
        let root = self.definition_root(definition, Substitutions::Open, 0, 0)?;
        Ok(Template {
            root,
            name_refs: self.name_refs.take(),
            self_contained: !self.embeds_binxml.get(),
        })
    }

    /// The tree of an instance, with its substitutions filled.
    ///
    /// # Errors
    /// If its definition or one of its values is damaged.
    pub fn instance(&self, instance: &Instance<'a>) -> Result<&'a Element<'a>> {
        self.fill(instance, 0, 0)
    }

    /// The elements of the BinXML value in a range of the chunk.
    ///
    /// # Errors
    /// If the value is damaged.
    pub fn nodes(&self, stream: Range<usize>) -> Result<&'a [Node<'a>]> {
        self.nested(stream, 0, 0)
    }
}
