//! The one walk over BinXML: a stream of tokens to a tree of elements.
//!
//! The same walk reads a template definition, leaving its **holes** open for whoever compiles it, and an
//! instance, filling them from its value table. So what a compiled template says of a record and what the
//! record's own tree says cannot drift.
//!
//! Filling follows Windows (MS-EVEN6, sections 2.2.12 and 3.1.4.7.5):
//! - an optional hole whose value is empty leaves nothing; an attribute without content is not there;
//! - an element that depends on a NULL value is left out, but for a template's root;
//! - a BinXML value's elements stand in its hole's place;
//! - an array of two or more items repeats the element that holds it, once per item.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

use crate::bytes::Cursor;
use crate::error::{Error, ErrorKind, Result};
use crate::instance::{Definition, Instance, Values};
use crate::names::{NAME_HEADER, Names};
use crate::tree::{Attribute, Element, Hole, Node};
use crate::value::{Scalar, Value, ValueType};
use crate::{MAX_NESTING, MAX_NODES, MAX_OPEN_ELEMENTS};

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

/// How the walk meets a hole.
#[derive(Clone, Copy)]
enum Holes<'a> {
    /// A definition's, to be compiled.
    Open,
    /// A definition's, for one record.
    Filled(Values<'a>),
    /// None can be met: a record's own stream.
    Forbidden,
}

/// Reads BinXML of one chunk into trees in one arena. What it builds of a record counts against [`MAX_NODES`].
pub struct Reader<'a, 'c> {
    chunk: &'a [u8],
    names: &'a Names<'c>,
    arena: &'a Bump,
    nodes_left: Cell<usize>,
    /// Where the names are referred to, if that is asked for.
    name_refs: RefCell<Option<Vec<u32>>>,
    embeds_binxml: Cell<bool>,
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
            name_refs: RefCell::default(),
            embeds_binxml: Cell::new(false),
        }
    }

    /// Begins a record: what was built so far no longer counts.
    #[inline]
    pub fn begin(&self) {
        self.nodes_left.set(MAX_NODES);
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
                    let roots = self.walk(cursor, Holes::Forbidden, 0, 0, true)?;
                    let Some(&Node::Element(element)) = roots.first() else {
                        break;
                    };
                    return Ok(Some(Part::Element(element)));
                }
            }
        }
        *cursor = Cursor::new(self.chunk, 0, 0);
        Ok(None)
    }

    /// A definition's tree, its holes open.
    ///
    /// # Errors
    /// Where the definition is damaged, or has not exactly one root element.
    pub fn template(&self, definition: &Definition) -> Result<Template<'a>> {
        self.name_refs.replace(Some(Vec::new()));
        let root = self.definition_root(definition, Holes::Open, 0, 0)?;
        Ok(Template {
            root,
            name_refs: self.name_refs.take().unwrap_or_default(),
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

    fn fill(&self, instance: &Instance<'a>, depth: usize, open: usize) -> Result<&'a Element<'a>> {
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
        match self.walk(&mut cursor, holes, depth, open, false)? {
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

    fn nested(&self, stream: Range<usize>, depth: usize, open: usize) -> Result<&'a [Node<'a>]> {
        if depth > MAX_NESTING {
            return Err(Error::new(stream.start, ErrorKind::Nesting));
        }
        let mut cursor = Cursor::new(self.chunk, stream.start, stream.end);
        self.walk(&mut cursor, Holes::Forbidden, depth, open, false)
    }

    /// Walks a stream to its end, or past its first element, and returns its top elements. `depth` streams
    /// and `open` elements surround it.
    fn walk(
        &self,
        cursor: &mut Cursor<'a>,
        holes: Holes<'a>,
        depth: usize,
        open: usize,
        one: bool,
    ) -> Result<&'a [Node<'a>]> {
        let mut tree = Growing {
            reader: self,
            holes,
            depth,
            open,
            stack: BumpVec::new_in(self.arena),
            len: 0,
            in_start: false,
            roots: BumpVec::new_in(self.arena),
        };
        while !cursor.at_end() {
            let at = cursor.pos();
            let token = cursor.u8("a token")?;
            let fault = |kind| Error::new(at, kind);
            match token {
                0x00 => break,
                0x01 | 0x41 => {
                    let dependency = match holes {
                        Holes::Forbidden => NO_DEPENDENCY,
                        _ => cursor.u16("an element start")?,
                    };
                    cursor.skip(4, "an element start")?;
                    let name = self.name(cursor)?;
                    if token & 0x40 != 0 {
                        cursor.skip(4, "an attribute list")?;
                    }
                    tree.open_start(name, dependency).map_err(fault)?;
                }
                0x02 => tree.close_start().map_err(fault)?,
                0x03 => tree.close_empty().map_err(fault)?,
                0x04 => tree.end_element().map_err(fault)?,
                0x05 | 0x45 => tree.value(cursor).map_err(|error| error.unwrap_or_else(fault))?,
                0x06 | 0x46 => {
                    let name = self.name(cursor)?;
                    tree.attribute(name).map_err(fault)?;
                }
                0x07 | 0x47 => {
                    let units = cursor.u16("a CDATA section")?;
                    let text = cursor.take(2 * usize::from(units), "a CDATA section")?;
                    tree.content(Node::CData(text)).map_err(fault)?;
                }
                0x08 | 0x48 => {
                    let number = cursor.u16("a character reference")?;
                    tree.content(Node::CharRef(number)).map_err(fault)?;
                }
                0x09 | 0x49 => {
                    let name = self.name(cursor)?;
                    tree.content(Node::EntityRef(name)).map_err(fault)?;
                }
                // Processing instructions have no place in an event's text.
                0x0a => self.name(cursor).map(drop)?,
                0x0b => {
                    let units = cursor.u16("a processing instruction")?;
                    cursor.skip(2 * usize::from(units), "a processing instruction")?;
                }
                0x0c => {
                    let instance = Instance::read(self.chunk, cursor, self.arena)?;
                    tree.instance(&instance).map_err(|error| error.unwrap_or_else(fault))?;
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
                    tree.hole(hole).map_err(|error| error.unwrap_or_else(fault))?;
                }
                0x0f => cursor.skip(3, "a fragment header")?,
                _ => return Err(fault(ErrorKind::Token(token))),
            }
            if one && tree.is_closed() {
                break;
            }
        }
        tree.finish().map_err(|kind| Error::new(cursor.pos(), kind))
    }

    /// Reads a reference to a name, and passes the name where it stands inline, at its first use.
    fn name(&self, cursor: &mut Cursor<'a>) -> Result<&'a str> {
        let at = cursor.pos();
        let offset = cursor.u32("a name reference")?;
        if let Some(name_refs) = self.name_refs.borrow_mut().as_mut() {
            name_refs.push(at as u32);
        }
        let inline = offset as usize == cursor.pos();
        if inline {
            cursor.skip(NAME_HEADER - 2, "a name")?;
            let units = cursor.u16("a name")?;
            cursor.skip(2 * usize::from(units) + 2, "a name")?;
        }
        self.names.get(offset)
    }

    fn count_node(&self) -> std::result::Result<(), ErrorKind> {
        let left = self.nodes_left.get().checked_sub(1).ok_or(ErrorKind::Nodes)?;
        self.nodes_left.set(left);
        Ok(())
    }
}

/// A place in a stream, between its top parts. Made by [`Reader::parts`].
pub struct Parts<'a> {
    cursor: Cursor<'a>,
}

/// A tree that the walk is building.
struct Growing<'r, 'a, 'c> {
    reader: &'r Reader<'a, 'c>,
    holes: Holes<'a>,
    depth: usize,
    /// Elements open around the stream.
    open: usize,
    /// The elements that are open, and behind them some that were, whose places are used again: to move what was just written
    /// stalls.
    stack: BumpVec<'a, OpenElement<'a>>,
    /// How many are open.
    len: usize,
    /// Whether the start tag of the last of them is open.
    in_start: bool,
    roots: BumpVec<'a, Node<'a>>,
}

struct OpenElement<'a> {
    name: &'a str,
    dependency: Option<u16>,
    attributes: BumpVec<'a, Attribute<'a>>,
    /// The attribute whose value is being read.
    attribute: Option<(&'a str, BumpVec<'a, Node<'a>>)>,
    content: BumpVec<'a, Node<'a>>,
    /// Whether its content or an attribute holds an array that repeats it.
    repeats: bool,
    /// Whether it, or an element around it, depends on a value that is NULL. Nothing in it is looked at.
    left_out: bool,
}

/// The kind of an error at the token, or an error elsewhere.
type Fault = std::result::Result<Error, ErrorKind>;

impl<'a, 'c: 'a> Growing<'_, 'a, 'c> {
    fn is_closed(&self) -> bool {
        self.len == 0 && !self.roots.is_empty()
    }

    fn open_start(&mut self, name: &'a str, dependency: u16) -> std::result::Result<(), ErrorKind> {
        if self.in_start {
            return Err(ErrorKind::Structure("an element starts inside of a start tag"));
        }
        self.reader.count_node()?;
        let arena = self.reader.arena;
        let dependency = (dependency != NO_DEPENDENCY).then_some(dependency);
        // A root is not left out: it has nothing to be left out of.
        let left_out = match (self.last(), self.holes, dependency) {
            (None, ..) => false,
            (Some(parent), ..) if parent.left_out => true,
            (Some(_), Holes::Filled(values), Some(hole)) => values.get(hole).is_some_and(Value::is_null),
            _ => false,
        };
        if self.len == self.stack.len() {
            self.stack.push(OpenElement::new(arena));
        }
        let element = &mut self.stack[self.len];
        element.name = name;
        element.dependency = dependency;
        element.repeats = false;
        element.left_out = left_out;
        self.len += 1;
        self.in_start = true;
        Ok(())
    }

    /// The innermost element that is open.
    #[inline]
    fn last(&self) -> Option<&OpenElement<'a>> {
        self.stack[..self.len].last()
    }

    #[inline]
    fn last_mut(&mut self) -> Option<&mut OpenElement<'a>> {
        self.stack[..self.len].last_mut()
    }

    fn attribute(&mut self, name: &'a str) -> std::result::Result<(), ErrorKind> {
        self.reader.count_node()?;
        let arena = self.reader.arena;
        let start = self
            .start()
            .ok_or(ErrorKind::Structure("an attribute stands outside of a start tag"))?;
        start.end_attribute();
        start.attribute = Some((name, BumpVec::new_in(arena)));
        Ok(())
    }

    /// The element whose start tag is open.
    #[inline]
    fn start(&mut self) -> Option<&mut OpenElement<'a>> {
        if self.in_start { self.last_mut() } else { None }
    }

    fn close_start(&mut self) -> std::result::Result<(), ErrorKind> {
        let around = self.open + self.len.saturating_sub(1);
        let element = self
            .start()
            .ok_or(ErrorKind::Structure("a start tag closes that was not open"))?;
        if around >= MAX_OPEN_ELEMENTS {
            return Err(ErrorKind::OpenElements);
        }
        element.end_attribute();
        self.in_start = false;
        Ok(())
    }

    fn close_empty(&mut self) -> std::result::Result<(), ErrorKind> {
        let element = self
            .start()
            .ok_or(ErrorKind::Structure("a start tag closes that was not open"))?;
        element.end_attribute();
        self.in_start = false;
        self.attach(true)
    }

    fn end_element(&mut self) -> std::result::Result<(), ErrorKind> {
        if self.len == 0 || self.in_start {
            return Err(ErrorKind::Structure("an element ends that was not open"));
        }
        self.attach(false)
    }

    /// Closes the last element, and puts it where it belongs.
    fn attach(&mut self, self_closing: bool) -> std::result::Result<(), ErrorKind> {
        let arena = self.reader.arena;
        let Some(open) = self.stack[..self.len].last_mut() else {
            return Ok(());
        };
        let (name, dependency) = (open.name, open.dependency.filter(|_| matches!(self.holes, Holes::Open)));
        let attributes: &[_] = std::mem::replace(&mut open.attributes, BumpVec::new_in(arena)).into_bump_slice();
        let content: &[_] = std::mem::replace(&mut open.content, BumpVec::new_in(arena)).into_bump_slice();
        let (left_out, repeats) = (open.left_out, open.repeats);
        self.len -= 1;
        if left_out {
            return Ok(());
        }
        let element = || Element {
            name,
            attributes,
            content,
            dependency,
            self_closing,
        };
        let Some(parent) = self.stack[..self.len].last_mut() else {
            // Nor is a root repeated.
            self.roots.push(Node::Element(arena.alloc_with(element)));
            return Ok(());
        };
        if repeats {
            let mut copies = BumpVec::new_in(arena);
            self.reader.repeat(element(), &mut copies)?;
            parent.content.push(Node::Repeated(copies.into_bump_slice()));
        } else {
            parent.content.push(Node::Element(arena.alloc_with(element)));
        }
        Ok(())
    }

    // Inlined, so that a node is written where it stays: to move what was just written stalls.
    #[inline(always)]
    fn content(&mut self, node: Node<'a>) -> std::result::Result<(), ErrorKind> {
        self.reader.count_node()?;
        let repeats = matches!(node, Node::Value(value) if value.repeats());
        if let Some(start) = self.start() {
            if matches!(node, Node::Element(_) | Node::Repeated(_)) {
                return Err(ErrorKind::ElementInAttribute);
            }
            if let Some((_, value)) = &mut start.attribute {
                start.repeats |= repeats;
                value.push(node);
            }
            return Ok(());
        }
        match (self.last_mut(), node) {
            (Some(parent), _) => {
                parent.repeats |= repeats;
                parent.content.push(node);
            }
            (None, Node::Element(_)) => self.roots.push(node),
            (None, _) => return Err(ErrorKind::Structure("content stands outside of an element")),
        }
        Ok(())
    }

    /// Reads a value that stands in the stream itself.
    fn value(&mut self, cursor: &mut Cursor<'a>) -> std::result::Result<(), Fault> {
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
        let start = cursor.pos();
        let bytes = cursor.take(size, WHAT).map_err(Ok)?;
        if value_type.scalar == Scalar::BinXml {
            self.reader.embeds_binxml.set(true);
            return self.binxml(start..start + size);
        }
        self.content(Node::Value(Value { value_type, bytes })).map_err(Err)
    }

    /// Puts the elements of a BinXML value in its place.
    fn binxml(&mut self, stream: Range<usize>) -> std::result::Result<(), Fault> {
        if self.in_start {
            return Err(Err(ErrorKind::ElementInAttribute));
        }
        let open = self.open + self.len;
        for &root in self.reader.nested(stream, self.depth + 1, open).map_err(Ok)? {
            self.content(root).map_err(Err)?;
        }
        Ok(())
    }

    fn instance(&mut self, instance: &Instance<'a>) -> std::result::Result<(), Fault> {
        if !matches!(self.holes, Holes::Forbidden) {
            return Err(Err(ErrorKind::InstanceInDefinition));
        }
        if self.in_start {
            return Err(Err(ErrorKind::ElementInAttribute));
        }
        let open = self.open + self.len;
        let root = self.reader.fill(instance, self.depth, open).map_err(Ok)?;
        self.content(Node::Element(root)).map_err(Err)
    }

    /// Whether what is being read is left out.
    fn is_left_out(&self) -> bool {
        self.last().is_some_and(|element| element.left_out)
    }

    fn hole(&mut self, hole: Hole) -> std::result::Result<(), Fault> {
        let values = match self.holes {
            Holes::Open => return self.content(Node::Hole(hole)).map_err(Err),
            Holes::Forbidden => return Err(Err(ErrorKind::SubstitutionOutsideTemplate)),
            Holes::Filled(values) => values,
        };
        let slot = values.slot(usize::from(hole.index));
        let Some(slot) = slot.filter(|_| !self.is_left_out()) else {
            return Ok(());
        };
        if let Some(stream) = slot.stream() {
            return self.binxml(stream);
        }
        let value = values.value(slot);
        if hole.optional && value.is_empty() {
            return Ok(());
        }
        self.content(Node::Value(value)).map_err(Err)
    }

    fn finish(self) -> std::result::Result<&'a [Node<'a>], ErrorKind> {
        if self.len > 0 {
            return Err(ErrorKind::Structure("an element is not closed"));
        }
        Ok(self.roots.into_bump_slice())
    }
}

impl<'a> OpenElement<'a> {
    /// A place for elements.
    #[cold]
    fn new(arena: &'a Bump) -> Self {
        OpenElement {
            name: "",
            dependency: None,
            attributes: BumpVec::new_in(arena),
            attribute: None,
            content: BumpVec::new_in(arena),
            repeats: false,
            left_out: false,
        }
    }

    fn end_attribute(&mut self) {
        if let Some((name, value)) = self.attribute.take()
            && !value.is_empty()
        {
            let content = value.into_bump_slice();
            self.attributes.push(Attribute { name, content });
        }
    }
}

impl<'a, 'c: 'a> Reader<'a, 'c> {
    /// Appends the copies of an element that its arrays make: one for each item of the first, those in turn
    /// for the next. Content is looked through before attributes.
    fn repeat(
        &self,
        element: Element<'a>,
        copies: &mut BumpVec<'a, Element<'a>>,
    ) -> std::result::Result<(), ErrorKind> {
        let array = |nodes: &'a [Node<'a>]| {
            nodes.iter().enumerate().find_map(|(i, node)| match node {
                Node::Value(value) if value.repeats() => Some((i, *value)),
                _ => None,
            })
        };
        if let Some((at, value)) = array(element.content) {
            for item in value.items() {
                let content = self.replace(element.content, at, item)?;
                self.repeat(Element { content, ..element }, copies)?;
            }
            return Ok(());
        }
        let mut attributes = element.attributes.iter().enumerate();
        let Some((which, (at, value))) = attributes.find_map(|(i, a)| array(a.content).map(|found| (i, found))) else {
            self.count_node()?;
            copies.push(element);
            return Ok(());
        };
        for item in value.items() {
            let mut attributes = BumpVec::from_iter_in(element.attributes.iter().copied(), self.arena);
            attributes[which].content = self.replace(attributes[which].content, at, item)?;
            attributes.retain(|attribute| !attribute.content.is_empty());
            let attributes = attributes.into_bump_slice();
            self.repeat(Element { attributes, ..element }, copies)?;
        }
        Ok(())
    }

    /// Content with one piece replaced by an array's item, or without it where the item is an empty string.
    fn replace(
        &self,
        content: &'a [Node<'a>],
        at: usize,
        item: Value<'a>,
    ) -> std::result::Result<&'a [Node<'a>], ErrorKind> {
        let nodes = content.iter().enumerate().filter_map(|(i, node)| match i == at {
            true => (!item.is_empty()).then_some(Node::Value(item)),
            false => Some(*node),
        });
        content.iter().try_for_each(|_| self.count_node())?;
        Ok(BumpVec::from_iter_in(nodes, self.arena).into_bump_slice())
    }
}
