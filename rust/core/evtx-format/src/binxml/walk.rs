//! The one walk over BinXML: reads the tokens of a stream, checks their structure, and passes what it finds to a sink.
//!
//! Sinks build a tree, write JSON, or do nothing, which checks the stream.
//!
//! The same walk reads a template definition for the compiler, which leaves its **substitutions** open, and for a
//! record, which fills them from its value table. So both read BinXML in the same way.

use std::cell::{Cell, RefCell};

use bumpalo::Bump;

use super::instance::Instance;
use super::names::{NAME_HEADER, Name, Names};
use super::sink::{Fault, Outcome, Sink};
use super::tree::{Node, Substitution};
use crate::bytes::Cursor;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{MAX_NAMES, MAX_NODES, MAX_OPEN_ELEMENTS};
use crate::value::{Scalar, Value, ValueType};

/// The dependency ID of an element without a dependency.
const NO_DEPENDENCY: u16 = 0xffff;

/// What a walk covers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// A template definition, whose elements have a dependency ID.
    Definition,
    /// A whole stream of a record.
    Stream,
    /// The next element of a stream of a record.
    Element,
}

/// Where a token stands in its stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    /// In the content of an element, or outside of all elements.
    Content,
    /// In a start tag, before its first attribute.
    StartTag,
    /// In the value of an attribute of a start tag.
    Attribute,
}

/// Why content without an element around it is an error.
pub(super) const OUTSIDE: &str = "content stands outside of an element";

/// Reads the BinXML of one chunk into trees in one arena. [`MAX_NODES`] limits the nodes of each record.
pub struct Reader<'a, 'c> {
    pub(super) chunk: &'a [u8],
    pub(super) names: &'a Names<'c>,
    pub(crate) arena: &'a Bump,
    /// How many more nodes the current record may have.
    pub(super) nodes_left: Cell<usize>,
    /// How many nodes the current record may have altogether.
    nodes: Cell<usize>,
    /// How many more bytes the names may take that [`Names`] has no space to keep.
    pub(super) names_left: Cell<usize>,
    /// Chunk offsets of the name references in the definition that is read.
    pub(super) name_refs: RefCell<Vec<u32>>,
    /// Whether a BinXML value was found in the stream itself.
    pub(super) embeds_binxml: Cell<bool>,
    /// Chunk offset of a name that was read and whose hash does not match.
    invalid_name: Cell<Option<u32>>,
    /// Chunk offset of a token that was read where the grammar does not allow it.
    misplaced: Cell<Option<u32>>,
}

/// How many nodes and bytes of names a record may still have, and the name read so far whose hash does not match.
#[derive(Debug, Clone, Copy)]
pub struct Left {
    pub(super) nodes: usize,
    pub(super) names: usize,
    invalid_name: Option<u32>,
    misplaced: Option<u32>,
}

impl<'a, 'c: 'a> Reader<'a, 'c> {
    /// A reader of `chunk` that builds its trees in `arena`.
    // Inlined: each record has a reader, and moving it right after it was written is a store-forwarding stall.
    #[inline(always)]
    pub fn new(chunk: &'a [u8], names: &'a Names<'c>, arena: &'a Bump) -> Self {
        Reader {
            chunk,
            names,
            arena,
            nodes_left: Cell::new(MAX_NODES),
            nodes: Cell::new(MAX_NODES),
            names_left: Cell::new(MAX_NAMES),
            name_refs: RefCell::default(),
            embeds_binxml: Cell::new(false),
            invalid_name: Cell::new(None),
            misplaced: Cell::new(None),
        }
    }

    /// Begins a record with `bytes` bytes of BinXML: resets the limits and what was found wrong.
    #[inline]
    pub fn begin(&self, bytes: usize) {
        // Templates make some hundred of them.
        self.nodes.set(MAX_NODES.min(4096 + 8 * bytes));
        self.begin_again();
        self.invalid_name.set(None);
        self.misplaced.set(None);
    }

    /// Begins to read the same record again. Resets the limits on nodes and names.
    #[inline]
    pub fn begin_again(&self) {
        self.nodes_left.set(self.nodes.get());
        self.names_left.set(MAX_NAMES);
    }

    /// What the current record may still take.
    #[inline]
    pub fn left(&self) -> Left {
        Left {
            nodes: self.nodes_left.get(),
            names: self.names_left.get(),
            invalid_name: self.invalid_name.get(),
            misplaced: self.misplaced.get(),
        }
    }

    /// Restores an earlier [`left`](Self::left), because what was read since will be read in another way.
    #[inline]
    pub fn restore(&self, left: Left) {
        self.nodes_left.set(left.nodes);
        self.names_left.set(left.names);
        self.invalid_name.set(left.invalid_name);
        self.misplaced.set(left.misplaced);
    }

    /// [`ErrorKind::NameHash`] if a name of the record does not match its hash: it was damaged or overwritten.
    #[inline]
    pub fn invalid_name(&self) -> Option<Error> {
        let offset = self.invalid_name.get()?;
        Some(Error::new(offset as usize, ErrorKind::NameHash))
    }

    /// [`ErrorKind::Misplaced`] if a token of the record stands where the grammar (MS-EVEN6 2.2.12) does not allow it.
    /// The other tokens mean what they mean without it.
    #[inline]
    pub fn misplaced(&self) -> Option<Error> {
        let offset = self.misplaced.get()?;
        Some(Error::new(offset as usize, ErrorKind::Misplaced))
    }

    /// Passes the tokens up to the end token, or one element, to a sink. `around` elements are open around the stream.
    pub(super) fn walk<S: Sink<'a>>(
        &self,
        cursor: &mut Cursor<'a>,
        sink: &mut S,
        extent: Extent,
        around: usize,
    ) -> Result<()> {
        // How many elements of this stream are open, and the context of the token.
        let (mut open, mut context) = (0, Context::Content);
        let mut has_root = false;
        while !cursor.at_end() {
            let at = cursor.pos();
            let token = cursor.u8("a token")?;
            let fault = |kind| Error::new(at, kind);
            let structure = |text| Err(fault(ErrorKind::Structure(text)));
            match token {
                0x00 if extent == Extent::Stream => {
                    stream_end(cursor)?;
                    break;
                }
                0x00 => break,
                0x01 | 0x41 => {
                    let dependency = match extent {
                        Extent::Definition => Some(cursor.u16("an element start")?).filter(|&id| id != NO_DEPENDENCY),
                        _ => None,
                    };
                    cursor.skip(4, "an element start")?;
                    let name = self.name(cursor, sink)?;
                    if token & 0x40 != 0 {
                        cursor.skip(4, "an attribute list")?;
                    }
                    if context != Context::Content {
                        return structure("an element starts inside of a start tag");
                    }
                    self.count_node()
                        .and_then(|()| sink.start(name, dependency))
                        .map_err(fault)?;
                    open += 1;
                    context = Context::StartTag;
                }
                0x02 | 0x03 => {
                    if context == Context::Content {
                        return structure("a start tag closes that was not open");
                    }
                    context = Context::Content;
                    sink.end_start();
                    if token == 0x03 {
                        open -= 1;
                        has_root |= open == 0;
                        sink.end(true).map_err(fault)?;
                    } else if around + open > MAX_OPEN_ELEMENTS {
                        return Err(fault(ErrorKind::OpenElements));
                    }
                }
                0x04 => {
                    if open == 0 || context != Context::Content {
                        return structure("an element ends that was not open");
                    }
                    open -= 1;
                    has_root |= open == 0;
                    sink.end(false).map_err(fault)?;
                }
                0x05 | 0x45 => {
                    let (value_type, size) = inline_value(cursor).map_err(|error| error.unwrap_or_else(fault))?;
                    let start = cursor.pos();
                    let bytes = cursor.take(size, "a value")?;
                    if value_type.scalar != Scalar::BinXml {
                        let node = Node::Value(Value { value_type, bytes });
                        self.put(sink, node, open, context, at).map_err(fault)?;
                        continue;
                    }
                    self.embeds_binxml.set(true);
                    if context != Context::Content {
                        return Err(fault(ErrorKind::ElementInAttribute));
                    }
                    let any = sink.stream(start..start + size);
                    let any = any.map_err(|error| error.unwrap_or_else(fault))?;
                    has_root |= any && open == 0;
                }
                0x06 | 0x46 => {
                    let name = self.name(cursor, sink)?;
                    if context == Context::Content {
                        return structure("an attribute stands outside of a start tag");
                    }
                    self.count_node().map_err(fault)?;
                    sink.attribute(name);
                    context = Context::Attribute;
                }
                0x07 | 0x47 => {
                    let units = cursor.u16("a CDATA section")?;
                    let text = cursor.take(2 * usize::from(units), "a CDATA section")?;
                    self.put(sink, Node::CData(text), open, context, at).map_err(fault)?;
                }
                0x08 | 0x48 => {
                    let number = cursor.u16("a character reference")?;
                    self.put(sink, Node::CharRef(number), open, context, at)
                        .map_err(fault)?;
                }
                0x09 | 0x49 => {
                    let name = self.name(cursor, sink)?.text;
                    self.put(sink, Node::EntityRef(name), open, context, at)
                        .map_err(fault)?;
                }
                // Processing instructions are not part of the text of an event.
                0x0a => {
                    self.name(cursor, sink)?;
                    if context != Context::Content {
                        self.note_misplaced(at);
                    }
                }
                0x0b => {
                    if context != Context::Content {
                        self.note_misplaced(at);
                    }
                    let units = cursor.u16("a processing instruction")?;
                    cursor.skip(2 * usize::from(units), "a processing instruction")?;
                }
                0x0c => {
                    let instance = Instance::read(self.chunk, cursor, self.arena)?;
                    if extent == Extent::Definition {
                        return Err(fault(ErrorKind::InstanceInDefinition));
                    }
                    if context != Context::Content {
                        return Err(fault(ErrorKind::ElementInAttribute));
                    }
                    sink.instance(&instance).map_err(|error| error.unwrap_or_else(fault))?;
                    has_root |= open == 0;
                }
                0x0d | 0x0e => {
                    let index = cursor.u16("a substitution")?;
                    let byte = cursor.u8("a substitution")?;
                    let declared = ValueType::from_byte(byte).ok_or_else(|| fault(ErrorKind::ValueType(byte)))?;
                    let optional = token == 0x0e;
                    let substitution = Substitution {
                        index,
                        declared,
                        optional,
                    };
                    if context == Context::StartTag {
                        self.note_misplaced(at);
                        continue;
                    }
                    sink.substitution(substitution, context == Context::Attribute)
                        .map_err(|error| error.unwrap_or_else(fault))?;
                }
                0x0f => {
                    if open > 0 {
                        self.note_misplaced(at);
                    }
                    cursor.skip(3, "a fragment header")?;
                }
                _ => return Err(fault(ErrorKind::Token(token))),
            }
            if extent == Extent::Element && has_root {
                break;
            }
        }
        if open > 0 {
            return Err(Error::new(
                cursor.pos(),
                ErrorKind::Structure("an element is not closed"),
            ));
        }
        Ok(())
    }

    /// Passes content to a sink, if the grammar allows it here. Inlined, so that the node stays in registers: no
    /// store-forwarding stall.
    #[inline(always)]
    fn put<S: Sink<'a>>(&self, sink: &mut S, node: Node<'a>, open: usize, context: Context, at: usize) -> Outcome {
        if open == 0 {
            return Err(ErrorKind::Structure(OUTSIDE));
        }
        self.count_node()?;
        match context {
            Context::Content => sink.content(node),
            Context::Attribute => sink.attribute_content(node),
            Context::StartTag => {
                self.note_misplaced(at);
                Ok(())
            }
        }
    }

    /// Notes the token at a chunk offset, for which the grammar has no place.
    #[cold]
    fn note_misplaced(&self, at: usize) {
        self.misplaced.set(Some(at as u32));
    }

    /// Reads a reference to a name, and moves the cursor after the name if it is inline, at its first use.
    #[inline]
    pub(super) fn name<S: Sink<'a>>(&self, cursor: &mut Cursor<'a>, sink: &mut S) -> Result<&'a Name<'a>> {
        sink.name_ref(cursor.pos());
        let offset = cursor.u32("a name reference")?;
        if offset as usize == cursor.pos() {
            cursor.skip(NAME_HEADER - 2, "a name")?;
            let units = cursor.u16("a name")?;
            cursor.skip(2 * usize::from(units) + 2, "a name")?;
        }
        let name = self.names.get(offset, self.arena, &self.names_left)?;
        if !name.is_valid {
            self.invalid_name.set(Some(offset));
        }
        Ok(name)
    }

    #[inline]
    pub(super) fn count_node(&self) -> Outcome {
        let left = self.nodes_left.get().checked_sub(1).ok_or(ErrorKind::Nodes)?;
        self.nodes_left.set(left);
        Ok(())
    }
}

/// Checks that the bytes of a nested stream end with its end token, which was just read.
pub(super) fn stream_end(cursor: &Cursor<'_>) -> Result<()> {
    match cursor.end() - cursor.pos() {
        0 => Ok(()),
        unread => {
            let what = "nested stream";
            Err(Error::new(cursor.pos(), ErrorKind::UnreadBytes { what, unread }))
        }
    }
}

/// Reads the type and the size in bytes of a value in the stream itself. The cursor is then before the value.
#[inline(always)]
fn inline_value(cursor: &mut Cursor<'_>) -> std::result::Result<(ValueType, usize), Fault> {
    const WHAT: &str = "a value";
    let at = cursor.pos();
    let byte = cursor.u8(WHAT).map_err(Ok)?;
    let value_type = ValueType::from_byte(byte).ok_or(Err(ErrorKind::ValueType(byte)))?;
    let size = match (value_type.array, value_type.scalar, value_type.scalar.fixed_size()) {
        (false, _, Some(size)) => size,
        (false, Scalar::Null, _) => 0,
        (false, Scalar::String, _) => 2 * usize::from(cursor.u16(WHAT).map_err(Ok)?),
        (false, Scalar::BinXml, _) => usize::from(cursor.u16(WHAT).map_err(Ok)?),
        // The other types have a size only in a value table.
        _ => return Err(Ok(Error::new(at, ErrorKind::UnsupportedValue(byte)))),
    };
    Ok((value_type, size))
}
