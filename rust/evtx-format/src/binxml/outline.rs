//! The outline of an element that a record spells out: its tokens and names, without its texts.
//!
//! Records spell out the same elements over and over, with other texts. An outline tells whether two of them are alike:
//! then they are instances of one template, whose substitutions are the texts. So one walk over the tokens gives the
//! outline, and the texts as a value table. [`Reader::open_texts`] gives the tree of the template, to be compiled.
//!
//! Only plain elements have an outline: attributes, and a text or children. Not every text is a value:
//! - An empty text is a part of the outline, since it decides whether an attribute is there.
//! - The text of an attribute `Name` is a part of the outline, since it is the name of a field.
//! - References to characters and entities are parts of the outline, since XML shows them as references.
//!
//! Elements with a text that is too long for a value descriptor, with CDATA sections, or with values of other types
//! than strings have no outline.

use bumpalo::Bump;

use super::builder::{Substitutions, TreeBuilder};
use super::instance::ValueTable;
use super::names::Name;
use super::reader::StreamCursor;
use super::sink::{NOT_PLAIN, Outcome, Sink};
use super::tree::{Element, Node, Substitution};
use super::walk::{Extent, Left, Reader};
use crate::bytes::{Cursor, bytes_equal, u16_at, u32_at};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::MAX_NAMES;
use crate::value::{Scalar, ValueType};

/// The attribute whose text is a part of the outline.
const GIVEN_NAME: &str = "Name";

/// The most bytes of UTF-16 that a text of an outline may have. Names of fields have some ten.
const MAX_GIVEN: usize = 1024;

const STRING: ValueType = ValueType {
    scalar: Scalar::String,
    array: false,
};

// The kinds of tokens, in the highest byte. START, ATTRIBUTE and ENTITY have the chunk offset of their name in the
// other bytes, CHARACTER its number, and GIVEN the length of its text in bytes, which follows in as many tokens as it fills.
const START: u32 = 1 << 24;
const ATTRIBUTE: u32 = 2 << 24;
const GIVEN: u32 = 3 << 24;
const ENTITY: u32 = 4 << 24;
const CHARACTER: u32 = 5 << 24;
/// A text that is empty.
const EMPTY: u32 = 6 << 24;
/// A text that is a value.
const TEXT: u32 = 7 << 24;
/// The end of a start tag: what is behind it is content.
const END_START: u32 = 8 << 24;
/// The end of an element that is closed as empty, and of another.
const CLOSE: u32 = 9 << 24;
const END: u32 = 10 << 24;

/// The bits of what a token has beside its kind.
const OPERAND: u32 = (1 << 24) - 1;

/// The outline of an element. It is filled by [`Reader::pass_outline`], and can be used again for the next element.
#[derive(Debug, Default)]
pub struct Outline {
    tokens: Vec<u32>,
    /// The value descriptors of the texts, as a value table stores them, and the chunk offset of each.
    descriptors: Vec<[u8; 4]>,
    offsets: Vec<u32>,
    /// What each open element holds so far.
    open: Vec<Holds>,
}

/// The bytes of an element, but for its texts and the sizes that depend on them. An element of the same chunk that has
/// these bytes has the same outline, so that it need not be walked over.
#[derive(Debug)]
pub struct Trace {
    steps: Vec<Step>,
    /// How many nodes the element has.
    nodes: usize,
}

/// Bytes of an element that are the same as those at a chunk offset, and what stands behind them.
#[derive(Debug, Clone, Copy)]
struct Step {
    at: u32,
    len: u16,
    then: Then,
}

#[derive(Debug, Clone, Copy)]
enum Then {
    /// A u32, the size of an element or of its attributes, which no reader needs.
    Size,
    /// A u16, the count of units of a text, and the text.
    Text,
    End,
}

impl Trace {
    /// Adds the bytes from `from` to `until`. `None` if they are too many.
    fn push(&mut self, from: usize, until: usize, then: Then) -> Option<()> {
        let len = u16::try_from(until.checked_sub(from)?).ok()?;
        let at = from as u32;
        self.steps.push(Step { at, len, then });
        Some(())
    }
}

/// What an open element holds so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Nothing,
    Text,
    Children,
}

impl Outline {
    /// The tokens and names. Elements of one chunk with equal tokens differ in nothing but their texts.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The texts as a value table: the value of a substitution is the text in its place.
    pub fn values<'a>(&self, chunk: &'a [u8], arena: &'a Bump) -> ValueTable<'a> {
        ValueTable::scattered(
            chunk,
            arena.alloc_slice_copy(&self.descriptors),
            arena.alloc_slice_copy(&self.offsets),
            arena,
        )
    }

    /// Begins an element.
    fn clear(&mut self) {
        self.tokens.clear();
        self.descriptors.clear();
        self.offsets.clear();
        self.open.clear();
    }
}

impl<'a, 'c: 'a> Reader<'a, 'c> {
    /// Moves behind the next element of a stream, and fills its outline. Returns false and does not move if the element
    /// is damaged or has no outline.
    pub fn pass_outline(&self, parts: &mut StreamCursor<'a>, outline: &mut Outline) -> bool {
        outline.clear();
        // Offsets have to fit a token. Chunks are much smaller.
        if self.chunk.len() > OPERAND as usize {
            return false;
        }
        let mut sink = Outliner {
            chunk: self.chunk,
            outline,
            attribute: Attribute::None,
            name_at: 0,
        };
        self.pass(parts, &mut sink)
    }

    /// As [`pass_outline`](Self::pass_outline), for an element whose bytes are those of a trace but for its texts.
    /// Fills only the texts of the outline. Returns false and does not move if a byte differs.
    pub fn pass_trace(&self, parts: &mut StreamCursor<'a>, trace: &Trace, outline: &mut Outline) -> bool {
        let mut at = parts.offset();
        let end = parts.cursor().end();
        let Some(bytes) = self.chunk.get(..end) else {
            return false;
        };
        outline.clear();
        let Some(nodes_left) = self.nodes_left.get().checked_sub(trace.nodes) else {
            return false;
        };
        for step in &trace.steps {
            let (same, len) = (step.at as usize, usize::from(step.len));
            let behind = at + len;
            let (Some(next), Some(known)) = (bytes.get(at..behind), bytes.get(same..same + len)) else {
                return false;
            };
            if !bytes_equal(next, known) {
                return false;
            }
            at = behind;
            match step.then {
                Then::Size => at += 4,
                Then::Text => {
                    let size = 2 * usize::from(u16_at(self.chunk, at).unwrap_or_default());
                    at += 2;
                    let (Some(units), Ok(size)) = (self.chunk.get(at..at + size), u16::try_from(size)) else {
                        return false;
                    };
                    if units.is_empty() || units.starts_with(&[0, 0]) {
                        return false;
                    }
                    let [low, high] = size.to_le_bytes();
                    outline.descriptors.push([low, high, Scalar::String as u8, 0]);
                    outline.offsets.push(at as u32);
                    at += units.len();
                }
                Then::End => {}
            }
        }
        if at > end {
            return false;
        }
        self.nodes_left.set(nodes_left);
        *parts = self.parts(at..end);
        true
    }

    /// The trace of an element whose outline was just filled: from `start` to `end`, chunk offsets. `None` if an
    /// element with the same outline cannot have the same bytes, or if what the walk found depends on more than its bytes.
    pub fn trace(&self, outline: &Outline, start: usize, end: usize, before: Left) -> Option<Trace> {
        let left = self.left();
        if self.unsound_name().is_some() || left.names != before.names {
            return None;
        }
        let mut trace = Trace {
            steps: Vec::with_capacity(2 * outline.tokens.len() / 3),
            nodes: before.nodes - left.nodes,
        };
        let mut texts = outline.offsets.iter().map(|&text| text as usize).peekable();
        let (mut at, mut same) = (start, start);
        // A name that stands inline is at its first use, where no other element has it.
        let name = |at: usize| {
            u32_at(self.chunk, at)
                .filter(|&name| name as usize != at + 4)
                .map(|_| at + 4)
        };
        while at < end {
            let token = *self.chunk.get(at)?;
            at += 1;
            match token {
                0x01 | 0x41 => {
                    trace.push(same, at, Then::Size)?;
                    same = at + 4;
                    at = name(same)?;
                    if token == 0x41 {
                        trace.push(same, at, Then::Size)?;
                        at += 4;
                        same = at;
                    }
                }
                0x02..=0x04 => {}
                0x05 | 0x45 => {
                    // The type, and the count of units.
                    let text = at + 3;
                    let units = usize::from(u16_at(self.chunk, at + 1)?);
                    at = text + 2 * units;
                    if texts.next_if_eq(&text).is_some() {
                        trace.push(same, text - 2, Then::Text)?;
                        same = at;
                    }
                }
                0x06 | 0x46 | 0x09 | 0x49 => at = name(at)?,
                0x08 | 0x48 => at += 2,
                0x0f => at += 3,
                _ => return None,
            }
        }
        trace.push(same, at, Then::End)?;
        (at == end && texts.next().is_none()).then_some(trace)
    }

    /// The outline of an element of this chunk with its names as text, so that it is the same in all chunks. Two
    /// elements with the same content have the same tree of [`open_texts`](Self::open_texts).
    ///
    /// # Errors
    /// [`ErrorKind::Names`] if it has more than [`MAX_NAMES`] bytes.
    pub fn content_of(&self, outline: &Outline) -> Result<Box<[u8]>> {
        let mut content = Vec::with_capacity(8 * outline.tokens.len());
        let mut tokens = outline.tokens.iter().copied();
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
                // The other kinds stand alone.
                _ => {}
            }
        }
        Ok(content.into())
    }

    /// The tree of the next element of a stream, which has an outline: the template of all elements with this outline.
    /// The substitutions stand in place of its texts, in order.
    ///
    /// # Errors
    /// If the element is damaged.
    pub fn open_texts(&self, parts: &StreamCursor<'a>) -> Result<Option<&'a Element<'a>>> {
        let mut sink = OpenTexts {
            tree: TreeBuilder::new(self, Substitutions::Forbidden, 0, 0),
            next: 0,
            is_given: false,
        };
        let mut cursor: Cursor<'a> = parts.cursor();
        if self.at_element(&mut cursor) {
            self.walk(&mut cursor, &mut sink, Extent::Element, 0)?;
        }
        match sink.tree.into_roots() {
            &[Node::Element(root)] => Ok(Some(root)),
            _ => Ok(None),
        }
    }
}

/// The sink that fills an outline.
struct Outliner<'o, 'a> {
    chunk: &'a [u8],
    outline: &'o mut Outline,
    attribute: Attribute,
    /// The chunk offset of the last reference to a name.
    name_at: usize,
}

/// The attribute whose value is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attribute {
    None,
    /// Its texts are values.
    Value,
    /// Its text is a part of the outline.
    Given,
}

impl Outliner<'_, '_> {
    /// Adds a piece of text.
    #[inline(always)]
    fn piece(&mut self, node: Node<'_>) -> Outcome {
        match node {
            Node::Value(value) if value.value_type == STRING => self.text(value.bytes),
            Node::EntityRef(_) => {
                let name = u32_at(self.chunk, self.name_at).ok_or(NOT_PLAIN)?;
                self.outline.tokens.push(ENTITY | name);
                Ok(())
            }
            Node::CharRef(number) => {
                self.outline.tokens.push(CHARACTER | u32::from(number));
                Ok(())
            }
            _ => Err(NOT_PLAIN),
        }
    }

    /// Adds a text that is a value: the bytes of a string.
    #[inline(always)]
    fn text(&mut self, units: &[u8]) -> Outcome {
        let outline = &mut *self.outline;
        if units.is_empty() {
            outline.tokens.push(EMPTY);
            return Ok(());
        }
        // A string that starts with a NUL is empty, but not of no bytes.
        if units.starts_with(&[0, 0]) {
            return Err(NOT_PLAIN);
        }
        let size = u16::try_from(units.len()).map_err(|_| NOT_PLAIN)?;
        let [low, high] = size.to_le_bytes();
        outline.tokens.push(TEXT);
        outline.descriptors.push([low, high, Scalar::String as u8, 0]);
        // The text is a part of the chunk.
        let offset = units.as_ptr().addr() - self.chunk.as_ptr().addr();
        outline.offsets.push(offset as u32);
        Ok(())
    }

    /// Adds the text of an attribute that is a part of the outline.
    fn given(&mut self, node: Node<'_>) -> Outcome {
        let Some(units) = string(node) else {
            return self.piece(node);
        };
        if units.len() > MAX_GIVEN || units.starts_with(&[0, 0]) {
            return Err(NOT_PLAIN);
        }
        let tokens = &mut self.outline.tokens;
        tokens.push(GIVEN | units.len() as u32);
        let (words, rest) = units.as_chunks::<4>();
        tokens.extend(words.iter().map(|word| u32::from_le_bytes(*word)));
        if let &[low, high] = rest {
            tokens.push(u32::from_le_bytes([low, high, 0, 0]));
        }
        Ok(())
    }
}

/// The bytes of a string; `None` for other nodes.
#[inline(always)]
fn string(node: Node<'_>) -> Option<&[u8]> {
    match node {
        Node::Value(value) if value.value_type == STRING => Some(value.bytes),
        _ => None,
    }
}

impl<'a> Sink<'a> for Outliner<'_, 'a> {
    #[inline(always)]
    fn name_ref(&mut self, at: usize) {
        self.name_at = at;
    }

    #[inline(always)]
    fn start(&mut self, name: &'a Name<'a>, _: Option<u16>) -> Outcome {
        let outline = &mut *self.outline;
        if let Some(parent) = outline.open.last_mut() {
            if *parent == Holds::Text {
                return Err(NOT_PLAIN);
            }
            *parent = Holds::Children;
        }
        outline.open.push(Holds::Nothing);
        outline.tokens.push(START | name.offset);
        Ok(())
    }

    #[inline(always)]
    fn attribute(&mut self, name: &'a Name<'a>) {
        self.outline.tokens.push(ATTRIBUTE | name.offset);
        self.attribute = match name.text == GIVEN_NAME {
            true => Attribute::Given,
            false => Attribute::Value,
        };
    }

    #[inline(always)]
    fn attribute_content(&mut self, node: Node<'a>) -> Outcome {
        match self.attribute {
            Attribute::None => Err(NOT_PLAIN),
            Attribute::Value => self.piece(node),
            Attribute::Given => self.given(node),
        }
    }

    #[inline(always)]
    fn end_start(&mut self) {
        self.attribute = Attribute::None;
        self.outline.tokens.push(END_START);
    }

    #[inline(always)]
    fn content(&mut self, node: Node<'a>) -> Outcome {
        match self.outline.open.last_mut() {
            Some(Holds::Children) | None => return Err(NOT_PLAIN),
            Some(holds) => *holds = Holds::Text,
        }
        self.piece(node)
    }

    #[inline(always)]
    fn end(&mut self, self_closing: bool) -> Outcome {
        self.outline.open.pop();
        self.outline.tokens.push(if self_closing { CLOSE } else { END });
        Ok(())
    }
}

/// The sink that builds the tree of an outline: substitutions take the place of the texts that are values.
struct OpenTexts<'r, 'a, 'c> {
    tree: TreeBuilder<'r, 'a, 'c>,
    /// The index of the next substitution.
    next: u16,
    /// Whether the text of the attribute is a part of the outline.
    is_given: bool,
}

impl<'a> OpenTexts<'_, 'a, '_> {
    /// The node that stands in place of a text.
    fn open(&mut self, node: Node<'a>) -> Node<'a> {
        if string(node).is_none_or(<[u8]>::is_empty) {
            return node;
        }
        let index = self.next;
        self.next += 1;
        Node::Substitution(Substitution {
            index,
            declared: STRING,
            optional: false,
        })
    }
}

impl<'a, 'c: 'a> Sink<'a> for OpenTexts<'_, 'a, 'c> {
    fn start(&mut self, name: &'a Name<'a>, dependency: Option<u16>) -> Outcome {
        self.tree.start(name, dependency)
    }

    fn attribute(&mut self, name: &'a Name<'a>) {
        self.is_given = name.text == GIVEN_NAME;
        self.tree.attribute(name);
    }

    fn attribute_content(&mut self, node: Node<'a>) -> Outcome {
        let node = if self.is_given { node } else { self.open(node) };
        self.tree.attribute_content(node)
    }

    fn end_start(&mut self) {
        self.tree.end_start();
    }

    fn content(&mut self, node: Node<'a>) -> Outcome {
        let node = self.open(node);
        self.tree.content(node)
    }

    fn end(&mut self, self_closing: bool) -> Outcome {
        self.tree.end(self_closing)
    }
}
