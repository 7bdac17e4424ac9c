//! The implicit template of an element that a record spells out: its tokens and names, without its texts.
//!
//! Records spell out the same elements over and over, with other texts. Such elements are read as instances of one
//! template that no log stores, whose substitutions are the texts. One walk over the tokens yields this template, and
//! the texts as a value table. [`Reader::open_texts`] builds the tree of the template, to be compiled.
//!
//! Some texts are part of the implicit template:
//! - An empty text, because it decides whether an attribute is present.
//! - The text of an attribute `Name`, because it names a field.
//! - References to characters and entities, because XML shows them as references.
//!
//! An element with a CDATA section, a value that is not a string, or a text too long for a value descriptor has none.

use bumpalo::Bump;

use super::builder::{GIVEN_NAME, Substitutions, TreeBuilder, string};
use super::instance::ValueTable;
use super::names::Name;
use super::sink::{NOT_PLAIN, Outcome, Sink};
use super::tree::{Element, Node};
use super::walk::{Extent, Reader};
use crate::bytes::{Cursor, u32_at};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::MAX_NAMES;
use crate::value::Scalar;

/// The most bytes of UTF-16 of a text in an implicit template. Field names have about ten characters.
const MAX_GIVEN: usize = 1024;

// The kinds of tokens, in the highest byte. The other bytes are an operand: the chunk offset of the name for START,
// ATTRIBUTE and ENTITY, the number for CHARACTER, and for GIVEN the length in bytes of the text in the next tokens.
const START: u32 = 1 << 24;
const ATTRIBUTE: u32 = 2 << 24;
const GIVEN: u32 = 3 << 24;
const ENTITY: u32 = 4 << 24;
const CHARACTER: u32 = 5 << 24;
/// An empty text.
const EMPTY: u32 = 6 << 24;
/// A text that is a value.
const TEXT: u32 = 7 << 24;
/// The end of a start tag.
const END_START: u32 = 8 << 24;
/// The end of an element that closes as empty, and of any other.
const CLOSE: u32 = 9 << 24;
const END: u32 = 10 << 24;

/// The bits of the operand.
const OPERAND: u32 = (1 << 24) - 1;

/// The implicit template of an element. [`Reader::read_implicit`] fills it, and can reuse it for the next element.
#[derive(Debug, Default)]
pub struct ImplicitTemplate {
    tokens: Vec<u32>,
    /// The value descriptors of the texts, as a value table stores them, and the chunk offset of each.
    descriptors: Vec<[u8; 4]>,
    offsets: Vec<u32>,
}

impl ImplicitTemplate {
    /// The tokens and names. Elements of one chunk with equal tokens differ only in their texts.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The texts as a value table, in the order of the substitutions that stand for them.
    pub fn values<'a>(&self, chunk: &'a [u8], arena: &'a Bump) -> ValueTable<'a> {
        ValueTable::scattered(
            chunk,
            arena.alloc_slice_copy(&self.descriptors),
            arena.alloc_slice_copy(&self.offsets),
            arena,
        )
    }
}

impl<'a, 'c: 'a> Reader<'a, 'c> {
    /// Moves past the next element of a stream and reads its implicit template. If it is damaged or has none, returns
    /// false.
    pub fn read_implicit(&self, fragments: &mut Cursor<'a>, implicit: &mut ImplicitTemplate) -> bool {
        implicit.tokens.clear();
        implicit.descriptors.clear();
        implicit.offsets.clear();
        // Chunk offsets must fit an operand.
        if self.chunk.len() > OPERAND as usize {
            return false;
        }
        let mut sink = TemplateSink {
            chunk: self.chunk,
            implicit,
            is_given: false,
            name_at: 0,
        };
        self.pass(fragments, &mut sink)
    }

    /// An implicit template of this chunk with its names as text, which is comparable across chunks. Elements with
    /// equal content have equal trees of [`open_texts`](Self::open_texts).
    ///
    /// # Errors
    /// [`ErrorKind::Names`] if it has more than [`MAX_NAMES`] bytes.
    pub fn content_of(&self, implicit: &ImplicitTemplate) -> Result<Box<[u8]>> {
        let mut content = Vec::with_capacity(8 * implicit.tokens.len());
        let mut tokens = implicit.tokens.iter().copied();
        while let Some(token) = tokens.next() {
            if content.len() > MAX_NAMES {
                return Err(Error::new(0, ErrorKind::Names));
            }
            let (kind, operand) = (token & !OPERAND, token & OPERAND);
            content.push((kind >> 24) as u8);
            match kind {
                START | ATTRIBUTE | ENTITY => {
                    let name = self.names.get(operand, self.arena, &self.names_left)?.text;
                    content.extend_from_slice(&(name.len() as u32).to_le_bytes());
                    content.extend_from_slice(name.as_bytes());
                }
                GIVEN => {
                    content.extend_from_slice(&operand.to_le_bytes());
                    let text = tokens.by_ref().take((operand as usize).div_ceil(4));
                    text.for_each(|units| content.extend_from_slice(&units.to_le_bytes()));
                }
                CHARACTER => content.extend_from_slice(&operand.to_le_bytes()),
                // The other kinds have no operand.
                _ => {}
            }
        }
        Ok(content.into())
    }

    /// The tree of the implicit template of a stream's next element: substitutions replace its texts.
    ///
    /// # Errors
    /// If the element is damaged.
    pub fn open_texts(&self, fragments: &Cursor<'a>) -> Result<Option<&'a Element<'a>>> {
        let mut tree = TreeBuilder::new(self, Substitutions::ForTexts(0), 0, 0);
        let mut cursor = *fragments;
        if self.at_element(&mut cursor) {
            self.walk(&mut cursor, &mut tree, Extent::Element, 0)?;
        }
        match tree.into_roots() {
            &[Node::Element(root)] => Ok(Some(root)),
            _ => Ok(None),
        }
    }
}

/// The sink that fills an implicit template.
struct TemplateSink<'o, 'a> {
    chunk: &'a [u8],
    implicit: &'o mut ImplicitTemplate,
    /// Whether the text of the attribute is part of the implicit template.
    is_given: bool,
    /// The chunk offset of the last name reference.
    name_at: usize,
}

impl TemplateSink<'_, '_> {
    /// Adds a node whose text is a value.
    #[inline(always)]
    fn node(&mut self, node: Node<'_>) -> Outcome {
        if let Some(units) = string(node) {
            return self.text(units);
        }
        match node {
            Node::EntityRef(_) => {
                let name = u32_at(self.chunk, self.name_at).ok_or(NOT_PLAIN)?;
                self.implicit.tokens.push(ENTITY | name);
                Ok(())
            }
            Node::CharRef(number) => {
                self.implicit.tokens.push(CHARACTER | u32::from(number));
                Ok(())
            }
            _ => Err(NOT_PLAIN),
        }
    }

    /// Adds a text that is a value: the bytes of a string.
    #[inline(always)]
    fn text(&mut self, units: &[u8]) -> Outcome {
        let implicit = &mut *self.implicit;
        if units.is_empty() {
            implicit.tokens.push(EMPTY);
            return Ok(());
        }
        // A string that starts with a NUL can count as empty, but has bytes.
        if units.starts_with(&[0, 0]) {
            return Err(NOT_PLAIN);
        }
        let size = u16::try_from(units.len()).map_err(|_| NOT_PLAIN)?;
        let [low, high] = size.to_le_bytes();
        implicit.tokens.push(TEXT);
        implicit.descriptors.push([low, high, Scalar::String as u8, 0]);
        // The text lies in the chunk.
        let offset = units.as_ptr().addr() - self.chunk.as_ptr().addr();
        implicit.offsets.push(offset as u32);
        Ok(())
    }

    /// Adds a text that is part of the implicit template.
    fn given(&mut self, units: &[u8]) -> Outcome {
        if units.len() > MAX_GIVEN || units.starts_with(&[0, 0]) {
            return Err(NOT_PLAIN);
        }
        let tokens = &mut self.implicit.tokens;
        tokens.push(GIVEN | units.len() as u32);
        let (words, rest) = units.as_chunks::<4>();
        tokens.extend(words.iter().map(|word| u32::from_le_bytes(*word)));
        if let &[low, high] = rest {
            tokens.push(u32::from_le_bytes([low, high, 0, 0]));
        }
        Ok(())
    }
}

impl<'a> Sink<'a> for TemplateSink<'_, 'a> {
    #[inline(always)]
    fn name_ref(&mut self, at: usize) {
        self.name_at = at;
    }

    #[inline(always)]
    fn start(&mut self, name: &'a Name<'a>, _: Option<u16>) -> Outcome {
        self.implicit.tokens.push(START | name.offset);
        Ok(())
    }

    #[inline(always)]
    fn attribute(&mut self, name: &'a Name<'a>) {
        self.implicit.tokens.push(ATTRIBUTE | name.offset);
        self.is_given = name.text == GIVEN_NAME;
    }

    #[inline(always)]
    fn attribute_content(&mut self, node: Node<'a>) -> Outcome {
        match string(node) {
            Some(units) if self.is_given => self.given(units),
            _ => self.node(node),
        }
    }

    #[inline(always)]
    fn end_start(&mut self) {
        self.implicit.tokens.push(END_START);
    }

    #[inline(always)]
    fn content(&mut self, node: Node<'a>) -> Outcome {
        self.node(node)
    }

    #[inline(always)]
    fn end(&mut self, self_closing: bool) -> Outcome {
        self.implicit.tokens.push(if self_closing { CLOSE } else { END });
        Ok(())
    }
}
