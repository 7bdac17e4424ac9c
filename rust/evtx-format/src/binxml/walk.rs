//! The one walk over BinXML: a stream of tokens to a tree of elements.
//!
//! The same walk reads a template definition, leaving its **holes** open for whoever compiles it, and an
//! instance, filling them from its value table. So what a compiled template says of a record and what the
//! record's own tree says cannot drift.
//!
//! The walk sees to the structure, and gives what it finds to a sink: one grows a tree, one writes JSON at once,
//! one takes nothing, to check.
//!
//! Filling follows Windows (MS-EVEN6, sections 2.2.12 and 3.1.4.7.5):
//! - an optional hole whose value is empty leaves nothing; an attribute without content is not there;
//! - an element that depends on a NULL value is left out, but for a template's root;
//! - a BinXML value's elements stand in its hole's place;
//! - an array of two or more items repeats the element that holds it, once per item.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use bumpalo::Bump;

use super::builder::Growing;
use crate::binxml::instance::{Definition, Instance, Values};
use crate::binxml::names::{NAME_HEADER, Name, Names};
use crate::binxml::tree::{Element, Hole, Node};
use crate::bytes::Cursor;
use crate::error::{Error, ErrorKind, Result};
use crate::render::json_stream::Direct;
use crate::value::{Scalar, Value, ValueType};
use crate::{MAX_NAMES, MAX_NESTING, MAX_NODES, MAX_OPEN_ELEMENTS};

/// The dependency ID of an element without a dependency.
const NO_DEPENDENCY: u16 = 0xffff;

/// A definition's tree, its holes open.
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
pub enum Part<'a> {
    /// A template instance.
    Instance(Instance<'a>),
    /// An element that the record spells out.
    Element(&'a Element<'a>),
}

/// What a walk is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// A template definition, whose elements can depend on holes.
    Definition,
    /// A stream of a record.
    Stream,
    /// The element that comes next in such a stream.
    Element,
}

/// Why content has no place.
pub(super) const OUTSIDE: &str = "content stands outside of an element";

/// How the walk meets a hole.
#[derive(Clone, Copy)]
pub(super) enum Holes<'a> {
    /// A definition's, to be compiled.
    Open,
    /// A definition's, for one record.
    Filled(Values<'a>),
    /// None can be met: a record's own stream.
    Forbidden,
}

/// What a sink says: the kind of an error at the token, if it cannot take it.
pub(crate) type Outcome = std::result::Result<(), ErrorKind>;

/// An error elsewhere, or the kind of one at the token.
pub(crate) type Fault = std::result::Result<Error, ErrorKind>;

/// Takes what the walk finds in a stream, in order. The walk has seen to it that it can stand there. If nothing else is said, plain
/// elements are taken to see whether they are sound, and what has to be looked into further is not taken.
pub(crate) trait Sink<'a> {
    /// The chunk offset of a reference to a name, before what it is the name of.
    fn name_ref(&mut self, _at: usize) {}

    /// An element, whose start tag is open from here on. In a definition it can depend on a hole.
    fn start(&mut self, _name: &'a Name<'a>, _dependency: Option<u16>) -> Outcome {
        Ok(())
    }

    /// An attribute.
    fn attribute(&mut self, _name: &'a Name<'a>) {}

    /// A piece of what stands in a start tag: of the attribute's value, if there is one.
    fn attribute_content(&mut self, _node: Node<'a>) -> Outcome {
        Ok(())
    }

    /// The end of the start tag.
    fn end_start(&mut self) {}

    /// A piece of the innermost element's content.
    fn content(&mut self, _node: Node<'a>) -> Outcome {
        Ok(())
    }

    /// The end of the innermost element.
    fn end(&mut self, _self_closing: bool) -> Outcome {
        Ok(())
    }

    /// A BinXML value in content, at a range of the chunk. Says whether it has any element.
    fn stream(&mut self, _stream: Range<usize>) -> std::result::Result<bool, Fault> {
        Err(Err(NOT_PLAIN))
    }

    /// A template instance in content.
    fn instance(&mut self, _instance: &Instance<'a>) -> std::result::Result<(), Fault> {
        Err(Err(NOT_PLAIN))
    }

    /// A hole. Only a definition has any.
    fn hole(&mut self, _hole: Hole, _in_start: bool) -> std::result::Result<(), Fault> {
        Err(Err(NOT_PLAIN))
    }
}

/// Takes what is sound.
struct Check;

impl Sink<'_> for Check {}

/// Passes what is there, whatever the streams and instances in it hold.
struct Pass;

impl<'a> Sink<'a> for Pass {
    fn stream(&mut self, _stream: Range<usize>) -> std::result::Result<bool, Fault> {
        Ok(true)
    }

    fn instance(&mut self, _instance: &Instance<'a>) -> std::result::Result<(), Fault> {
        Ok(())
    }
}

/// Most nodes that a record of so many bytes of BinXML may expand to: templates give it some hundred, its own bytes the others.
fn max_nodes(bytes: usize) -> usize {
    MAX_NODES.min(4096 + 8 * bytes)
}

/// Why a sink does not take what only a tree tells.
pub(crate) const NOT_PLAIN: ErrorKind = ErrorKind::Structure("an element is not plain");

/// Reads BinXML of one chunk into trees in one arena. What it builds of a record counts against [`MAX_NODES`].
pub struct Reader<'a, 'c> {
    chunk: &'a [u8],
    names: &'a Names<'c>,
    pub(super) arena: &'a Bump,
    nodes_left: Cell<usize>,
    /// How many the record at hand may expand to.
    nodes: Cell<usize>,
    /// How many bytes more of names are read that the chunk does not keep.
    names_left: Cell<usize>,
    /// Where the definition that is read refers to names.
    pub(super) name_refs: RefCell<Vec<u32>>,
    embeds_binxml: Cell<bool>,
    /// Chunk offset of a name that was read and is not what its hash says.
    unsound_name: Cell<Option<u32>>,
}

impl<'a, 'c: 'a> Reader<'a, 'c> {
    /// A reader of `chunk` that builds in `arena`.
    // There is one for each record, and moving what was just written stalls.
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
            unsound_name: Cell::new(None),
        }
    }

    /// Begins a record of so many bytes of BinXML: what was built and read so far no longer counts.
    #[inline]
    pub fn begin(&self, bytes: usize) {
        self.nodes.set(max_nodes(bytes));
        self.begin_again();
        self.unsound_name.set(None);
    }

    /// Begins to read a record once more: what was built so far no longer counts.
    #[inline]
    pub fn begin_again(&self) {
        self.nodes_left.set(self.nodes.get());
        self.names_left.set(MAX_NAMES);
    }

    /// The damage that a name which was read is not what its hash says: its bytes were damaged, or overwritten by others.
    #[inline]
    pub fn unsound_name(&self) -> Option<Error> {
        let offset = self.unsound_name.get()?;
        Some(Error::new(offset as usize, ErrorKind::NameHash))
    }

    /// The template instance that a stream in a range of the chunk begins with, and whether there is nothing behind it. `None` where
    /// it begins otherwise, or is damaged: its [parts](Self::parts) tell.
    #[inline(always)]
    pub fn leading_instance(&self, stream: Range<usize>) -> Option<(Instance<'a>, bool)> {
        let until = stream.end;
        let (instance, end) = Instance::leading(self.chunk, stream, self.arena)?;
        let is_all = end >= until || self.chunk[end] == 0;
        Some((instance, is_all))
    }

    /// The parts at the top of the stream in a range of the chunk.
    pub fn parts(&self, stream: Range<usize>) -> Parts<'a> {
        Parts {
            cursor: Cursor::new(self.chunk, stream.start, stream.end),
        }
    }

    /// The next part of a stream; `None` at its end.
    ///
    /// # Errors
    /// Where the stream is damaged. Nothing of it comes after an error.
    #[inline]
    pub fn next_part(&self, parts: &mut Parts<'a>) -> Option<Result<Part<'a>>> {
        let part = self.read_part(&mut parts.cursor).transpose()?;
        if part.is_err() {
            parts.cursor = Cursor::new(self.chunk, 0, 0);
        }
        Some(part)
    }

    #[inline]
    fn read_part(&self, cursor: &mut Cursor<'a>) -> Result<Option<Part<'a>>> {
        while !cursor.at_end() {
            match cursor.u8("a token")? {
                0x00 => break,
                0x0f => cursor.skip(3, "a fragment header")?,
                0x0c => {
                    let instance = Instance::read(self.chunk, cursor, self.arena)?;
                    return Ok(Some(Part::Instance(instance)));
                }
                _ => {
                    cursor.step_back();
                    let mut tree = Growing::new(self, Holes::Forbidden, 0, 0);
                    self.walk(cursor, &mut tree, Extent::Element, 0)?;
                    let Some(&Node::Element(element)) = tree.into_roots().first() else {
                        break;
                    };
                    return Ok(Some(Part::Element(element)));
                }
            }
        }
        *cursor = Cursor::new(self.chunk, 0, 0);
        Ok(None)
    }

    /// Chunk offset of where a stream in a range of the chunk ends: that of its end token, or the range's end. `None` where it is
    /// damaged before.
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

    /// The name of the element that comes next in a stream; `None` where something else does, or where it cannot be read.
    pub fn next_name(&self, parts: &Parts<'a>) -> Option<&'a str> {
        let mut cursor = parts.cursor;
        self.at_element(&mut cursor).then(|| {
            cursor.skip(1 + 4, "an element start").ok()?;
            self.name(&mut cursor, &mut Check).ok().map(|name| name.text)
        })?
    }

    /// Passes the element that comes next in a stream, if it is sound as far as can be told without its tree.
    pub fn pass_element(&self, parts: &mut Parts<'a>) -> bool {
        self.pass(parts, &mut Check)
    }

    /// Appends the JSON value of the element that comes next in a stream, if it is sound and can be written without its tree, and
    /// `out` becomes no longer than `limit`. If not, it is still the next.
    pub fn push_json(&self, parts: &mut Parts<'a>, out: &mut Vec<u8>, limit: usize) -> bool {
        let start = out.len();
        let passed = self.pass(parts, &mut Direct::new(out, limit, self.arena));
        if !passed {
            out.truncate(start);
        }
        passed
    }

    /// Gives the element that comes next in a stream to a sink, if it takes it.
    fn pass(&self, parts: &mut Parts<'a>, sink: &mut impl Sink<'a>) -> bool {
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

    /// A definition's tree, its holes open.
    ///
    /// # Errors
    /// Where the definition is damaged, or has not exactly one root element.
    pub fn template(&self, definition: &Definition) -> Result<Template<'a>> {
        self.name_refs.borrow_mut().clear();
        let root = self.definition_root(definition, Holes::Open, 0, 0)?;
        Ok(Template {
            root,
            name_refs: self.name_refs.take(),
            self_contained: !self.embeds_binxml.get(),
        })
    }

    /// An instance's tree, its holes filled.
    ///
    /// # Errors
    /// Where its definition or a value that it holds is damaged.
    pub fn instance(&self, instance: &Instance<'a>) -> Result<&'a Element<'a>> {
        self.fill(instance, 0, 0)
    }

    pub(super) fn fill(&self, instance: &Instance<'a>, depth: usize, open: usize) -> Result<&'a Element<'a>> {
        instance.values.check()?;
        let definition = Definition::read(self.chunk, instance.definition)?;
        self.definition_root(&definition, Holes::Filled(instance.values), depth, open)
    }

    fn definition_root(
        &self,
        definition: &Definition,
        holes: Holes<'a>,
        depth: usize,
        open: usize,
    ) -> Result<&'a Element<'a>> {
        let start = definition.body as usize;
        let mut cursor = Cursor::new(self.chunk, start, start + definition.size as usize);
        let mut tree = Growing::new(self, holes, depth, open);
        self.walk(&mut cursor, &mut tree, Extent::Definition, open)?;
        match tree.into_roots() {
            &[Node::Element(root)] => Ok(root),
            roots => Err(Error::new(start, ErrorKind::DefinitionRoots(roots.len()))),
        }
    }

    /// The elements of the stream that a BinXML value holds.
    ///
    /// # Errors
    /// Where it is damaged.
    pub fn fragment(&self, stream: Range<usize>) -> Result<&'a [Node<'a>]> {
        self.nested(stream, 0, 0)
    }

    pub(super) fn nested(&self, stream: Range<usize>, depth: usize, open: usize) -> Result<&'a [Node<'a>]> {
        if depth > MAX_NESTING {
            return Err(Error::new(stream.start, ErrorKind::Nesting));
        }
        let mut cursor = Cursor::new(self.chunk, stream.start, stream.end);
        let mut tree = Growing::new(self, Holes::Forbidden, depth, open);
        self.walk(&mut cursor, &mut tree, Extent::Stream, open)?;
        Ok(tree.into_roots())
    }

    /// Walks as far as there is something, and gives what is there to a sink. `around` elements surround it.
    fn walk<S: Sink<'a>>(&self, cursor: &mut Cursor<'a>, sink: &mut S, extent: Extent, around: usize) -> Result<()> {
        // Elements that are open in this stream, and whether the start tag of the last of them is.
        let (mut open, mut in_start) = (0, false);
        let mut has_root = false;
        while !cursor.at_end() {
            let at = cursor.pos();
            let token = cursor.u8("a token")?;
            let fault = |kind| Error::new(at, kind);
            let structure = |text| Err(fault(ErrorKind::Structure(text)));
            match token {
                0x00 => break,
                0x01 | 0x41 => {
                    let dependency = match extent == Extent::Definition {
                        true => Some(cursor.u16("an element start")?).filter(|&hole| hole != NO_DEPENDENCY),
                        false => None,
                    };
                    cursor.skip(4, "an element start")?;
                    let name = self.name(cursor, sink)?;
                    if token & 0x40 != 0 {
                        cursor.skip(4, "an attribute list")?;
                    }
                    if in_start {
                        return structure("an element starts inside of a start tag");
                    }
                    self.count_node()
                        .and_then(|()| sink.start(name, dependency))
                        .map_err(fault)?;
                    open += 1;
                    in_start = true;
                }
                0x02 | 0x03 => {
                    if !in_start {
                        return structure("a start tag closes that was not open");
                    }
                    in_start = false;
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
                    if open == 0 || in_start {
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
                        self.put(sink, node, open, in_start).map_err(fault)?;
                        continue;
                    }
                    self.embeds_binxml.set(true);
                    if in_start {
                        return Err(fault(ErrorKind::ElementInAttribute));
                    }
                    let any = sink.stream(start..start + size);
                    let any = any.map_err(|error| error.unwrap_or_else(fault))?;
                    has_root |= any && open == 0;
                }
                0x06 | 0x46 => {
                    let name = self.name(cursor, sink)?;
                    if !in_start {
                        return structure("an attribute stands outside of a start tag");
                    }
                    self.count_node().map_err(fault)?;
                    sink.attribute(name);
                }
                0x07 | 0x47 => {
                    let units = cursor.u16("a CDATA section")?;
                    let text = cursor.take(2 * usize::from(units), "a CDATA section")?;
                    self.put(sink, Node::CData(text), open, in_start).map_err(fault)?;
                }
                0x08 | 0x48 => {
                    let number = cursor.u16("a character reference")?;
                    self.put(sink, Node::CharRef(number), open, in_start).map_err(fault)?;
                }
                0x09 | 0x49 => {
                    let name = self.name(cursor, sink)?.text;
                    self.put(sink, Node::EntityRef(name), open, in_start).map_err(fault)?;
                }
                // Processing instructions have no place in an event's text.
                0x0a => self.name(cursor, sink).map(drop)?,
                0x0b => {
                    let units = cursor.u16("a processing instruction")?;
                    cursor.skip(2 * usize::from(units), "a processing instruction")?;
                }
                0x0c => {
                    let instance = Instance::read(self.chunk, cursor, self.arena)?;
                    if extent == Extent::Definition {
                        return Err(fault(ErrorKind::InstanceInDefinition));
                    }
                    if in_start {
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
                    let hole = Hole {
                        index,
                        declared,
                        optional,
                    };
                    sink.hole(hole, in_start).map_err(|error| error.unwrap_or_else(fault))?;
                }
                0x0f => cursor.skip(3, "a fragment header")?,
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

    /// Gives a piece of content to a sink. Inlined, so that a node goes there in registers: to read what was just written in parts
    /// stalls.
    #[inline(always)]
    fn put<S: Sink<'a>>(&self, sink: &mut S, node: Node<'a>, open: usize, in_start: bool) -> Outcome {
        if open == 0 {
            return Err(ErrorKind::Structure(OUTSIDE));
        }
        self.count_node()?;
        match in_start {
            true => sink.attribute_content(node),
            false => sink.content(node),
        }
    }

    /// Reads a reference to a name, and passes the name where it stands inline, at its first use.
    #[inline]
    fn name<S: Sink<'a>>(&self, cursor: &mut Cursor<'a>, sink: &mut S) -> Result<&'a Name<'a>> {
        sink.name_ref(cursor.pos());
        let offset = cursor.u32("a name reference")?;
        if offset as usize == cursor.pos() {
            cursor.skip(NAME_HEADER - 2, "a name")?;
            let units = cursor.u16("a name")?;
            cursor.skip(2 * usize::from(units) + 2, "a name")?;
        }
        let name = self.names.get(offset, self.arena, &self.names_left)?;
        if !name.is_sound {
            self.unsound_name.set(Some(offset));
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

/// A place in a stream, between its top parts. Made by [`Reader::parts`].
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    cursor: Cursor<'a>,
}

/// The type of a value that stands in the stream itself, and its size in bytes. The value comes next.
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
        // Only a value table gives the other types a size.
        _ => return Err(Ok(Error::new(at, ErrorKind::UnsupportedValue(byte)))),
    };
    Ok((value_type, size))
}

impl PartialEq for Parts<'_> {
    /// Places in streams of one chunk are the same if they stand there at the same offset.
    fn eq(&self, other: &Self) -> bool {
        self.cursor.pos() == other.cursor.pos() && self.cursor.end() == other.cursor.end()
    }
}
