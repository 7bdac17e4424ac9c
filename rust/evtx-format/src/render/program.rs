//! Text of whole elements, compiled: literal runs and what the holes put between them, decided once per
//! template.
//!
//! A [`Program`] writes the XML or JSON of the instances of a template straight into a buffer. A tree without
//! holes compiles to one literal run: that is how a record is rendered that no program covers, so there is
//! one set of rules for both.

use std::ops::Range;

use hashbrown::HashMap;

use super::{json, xml};
use crate::binxml::instance::Values;
use crate::binxml::tree::{Element, Node};
use crate::error::{Error, ErrorKind, Result};
use crate::value::Value;
use crate::value::text::Form;

/// What a program writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// XML, without white space between elements, as the `evtx` crate's `indent(false)`.
    Xml,
    /// JSON, as `evtx_dump -o json`: the value of an element.
    Json,
}

/// Renders the instances of a template.
#[derive(Debug)]
pub struct Program {
    root: Box<str>,
    literals: Box<[u8]>,
    ops: Box<[Op]>,
    takes: Box<[Takes]>,
    irregular: bool,
}

/// A place in a program's literals.
type Literal = Range<usize>;

/// A step of a program.
#[derive(Debug)]
pub(crate) enum Op {
    /// A literal.
    Literal(Literal),
    /// Skips the next ops if the hole's value is NULL.
    Guard { hole: u16, skip: usize },
    /// A value's text.
    Text { hole: u16, form: Form },
    /// XML: an attribute whose value is a hole, with the literal ` name="`; nothing if the value is empty.
    Attribute { hole: u16, open: Literal },
    /// XML: a hole in content. Text, or a stream.
    Content { hole: u16 },
    /// XML: an element of one hole, which an array repeats.
    Repeat { hole: u16, open: Literal, close: Literal },
    /// JSON: a comma, unless the object is empty so far.
    Comma,
    /// JSON: the value of a leaf.
    Leaf { hole: u16, container: bool },
    /// JSON: the end of an object, or `null` in its place where it has no member.
    CloseOrNull,
    /// JSON: the value of a `Data` leaf. `alone`, an array is one of JSON; else its items are some of a list.
    Data { hole: u16, alone: bool },
    /// JSON: the value of an element whose attributes or content are holes.
    Element {
        attributes: Box<[AttributeOp]>,
        content: Option<u16>,
    },
    /// JSON: the elements of a stream as members, after members of these names.
    Members { hole: u16, names: Box<[Box<str>]> },
}

/// JSON: an attribute of [`Op::Element`].
#[derive(Debug)]
pub(crate) enum AttributeOp {
    /// With its key and value.
    Literal(Literal),
    /// With its key.
    Hole { key: Literal, hole: u16 },
}

/// What a program can take of a hole beside single values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Takes {
    /// Arrays that repeat the element.
    pub(crate) items: bool,
    /// Streams.
    pub(crate) streams: bool,
}

impl Takes {
    pub(crate) const SINGLE: Takes = Takes {
        items: false,
        streams: false,
    };
    pub(crate) const ITEMS: Takes = Takes {
        items: true,
        streams: false,
    };
    pub(crate) const STREAMS: Takes = Takes {
        items: false,
        streams: true,
    };
    pub(crate) const ANY: Takes = Takes {
        items: true,
        streams: true,
    };
}

/// Renders the streams that a program's holes hold: whoever has the programs of their templates.
pub trait Streams {
    /// Appends the XML of the elements of a stream, at a range of the chunk.
    ///
    /// # Errors
    /// Where the stream is damaged.
    fn push_xml(&mut self, stream: Range<usize>, out: &mut Vec<u8>) -> Result<()>;

    /// Appends the elements of a stream as members of a JSON object.
    ///
    /// # Errors
    /// Where the stream is damaged.
    fn push_members(&mut self, stream: Range<usize>, members: &mut Members<'_>, out: &mut Vec<u8>) -> Result<()>;
}

/// The names that members of a JSON object have so far.
#[derive(Debug, Default)]
pub struct Members<'p> {
    /// Those that the object's program has written.
    before: &'p [Box<str>],
    /// Where the first member after them has its name in the text, escaped. Most objects have no other.
    first: Range<usize>,
    /// How often each name was there, as it is escaped, once there is a second member. Escaping keeps different names different.
    counts: HashMap<Vec<u8>, usize>,
    /// Whether any of them is `Data`.
    has_data: bool,
}

impl<'p> Members<'p> {
    fn after(before: &'p [Box<str>]) -> Self {
        Members {
            before,
            ..Members::default()
        }
    }

    /// Writes the key of the next member, for an element of a name.
    pub fn push_key(&mut self, name: &str, out: &mut Vec<u8>) {
        if out.last() != Some(&b'{') {
            out.push(b',');
        }
        self.has_data |= name == "Data";
        let start = out.len();
        if self.first.is_empty() {
            let same = self.before.iter().filter(|&taken| **taken == *name).count();
            let end = json::push_key(out, name, same);
            self.first = start..end;
            return;
        }
        if self.counts.is_empty() {
            self.count_all(out);
        }
        let end = json::push_key(out, name, 0);
        let count = self.counts.entry_ref(&out[start..end]).or_default();
        *count += 1;
        if *count > 1 {
            out.truncate(start);
            json::push_key(out, name, *count - 1);
        }
    }

    /// Counts the names of all members so far.
    #[cold]
    fn count_all(&mut self, out: &[u8]) {
        let mut key = Vec::new();
        for name in self.before {
            key.clear();
            let end = json::push_key(&mut key, name, 0);
            *self.counts.entry_ref(&key[..end]).or_default() += 1;
        }
        *self.counts.entry_ref(&out[self.first.clone()]).or_default() += 1;
    }
}

impl Program {
    /// The program of a template, given its tree with holes.
    pub fn new(language: Language, root: &Element<'_>) -> Self {
        let mut compiler = Compiler::default();
        compiler.root(language, root);
        if compiler.is_full() {
            compiler = Compiler {
                irregular: true,
                ..Compiler::default()
            };
        }
        compiler.flush();
        Program {
            root: root.name.into(),
            literals: compiler.literals.into(),
            ops: compiler.ops.into(),
            takes: compiler.takes.into(),
            irregular: compiler.irregular,
        }
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let of_op = |op: &Op| match op {
            Op::Element { attributes, .. } => size_of_val(&**attributes),
            Op::Members { names, .. } => names.iter().map(|name| size_of::<Box<str>>() + name.len()).sum(),
            _ => 0,
        };
        let ops = size_of_val(&*self.ops) + self.ops.iter().map(of_op).sum::<usize>();
        self.root.len() + self.literals.len() + size_of_val(&*self.takes) + ops
    }

    /// The name of the root element.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Whether the program writes what the tree of these values says. If not, [`push_tree`] does.
    #[inline]
    pub fn covers(&self, values: Values<'_>) -> bool {
        !self.irregular
            && values.compound_slots().all(|(hole, slot)| {
                let Some(takes) = self.takes.get(hole) else { return true };
                match slot.value_type.array {
                    true => takes.items || !values.value(slot).repeats(),
                    false => takes.streams || slot.size == 0,
                }
            })
    }

    /// Appends the text of an instance that the program covers. Returns false where its streams turn out to hold what
    /// the program cannot tell, and [`push_tree`] has to; what was appended is then of no use.
    ///
    /// # Errors
    /// [`ErrorKind::Text`] if `out` becomes longer than `limit`, and those of `streams`. What was appended is
    /// then incomplete.
    pub fn run(&self, values: Values<'_>, streams: &mut dyn Streams, out: &mut Vec<u8>, limit: usize) -> Result<bool> {
        let mut at = 0;
        while let Some(op) = self.ops.get(at) {
            at += 1;
            match op {
                Op::Literal(literal) => out.extend_from_slice(&self.literals[literal.clone()]),
                Op::Guard { hole, skip } => {
                    if values.get(*hole).is_some_and(Value::is_null) {
                        at += skip;
                    }
                }
                _ => {
                    if !self.step(op, values, streams, out, limit)? {
                        return Ok(false);
                    }
                }
            }
            if out.len() > limit {
                return Err(Error::new(0, ErrorKind::Text));
            }
        }
        Ok(true)
    }

    #[inline]
    fn step(
        &self,
        op: &Op,
        values: Values<'_>,
        streams: &mut dyn Streams,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<bool> {
        let literal = |literal: &Literal| &self.literals[literal.clone()];
        let value = |hole: u16| values.get(hole).unwrap_or(Value::null());
        match op {
            Op::Literal(_) | Op::Guard { .. } => {}
            Op::Text { hole, form } => value(*hole).push_text(out, *form),
            Op::Attribute { hole, open } => {
                let value = value(*hole);
                if !value.is_empty() {
                    out.extend_from_slice(literal(open));
                    value.push_text(out, Form::XmlAttribute);
                    out.push(b'"');
                }
            }
            Op::Content { hole } => match stream(values, *hole) {
                Some(range) => streams.push_xml(range, out)?,
                None => value(*hole).push_text(out, Form::XmlText),
            },
            Op::Repeat { hole, open, close } => {
                let repeated = value(*hole);
                if repeated.value_type.array && repeated.repeats() {
                    for item in repeated.items() {
                        if out.len() > limit {
                            break;
                        }
                        out.extend_from_slice(literal(open));
                        item.push_text(out, Form::XmlText);
                        out.extend_from_slice(literal(close));
                    }
                    return Ok(true);
                }
                out.extend_from_slice(literal(open));
                match stream(values, *hole) {
                    Some(range) => streams.push_xml(range, out)?,
                    None => repeated.push_text(out, Form::XmlText),
                }
                out.extend_from_slice(literal(close));
            }
            Op::Comma => {
                if out.last() != Some(&b'{') {
                    out.push(b',');
                }
            }
            Op::Leaf { hole, container } => match stream(values, *hole) {
                Some(range) => return push_object(range, *container, streams, out),
                None => json::push_leaf(out, value(*hole), b"null"),
            },
            Op::CloseOrNull => {
                if out.last() == Some(&b'{') {
                    out.pop();
                    out.extend_from_slice(b"null");
                } else {
                    out.push(b'}');
                }
            }
            Op::Data { hole, alone } => {
                let data = value(*hole);
                match data.value_type.array && data.repeats() {
                    true if *alone => json::push_array(out, data.items()),
                    true => json::push_items(out, data.items()),
                    false => json::push_leaf(out, data, b"\"\""),
                }
            }
            Op::Element { attributes, content } => {
                let start = out.len();
                out.extend_from_slice(b"{\"#attributes\":{");
                let empty = out.len();
                for attribute in attributes {
                    if out.len() > limit {
                        break;
                    }
                    let (key, hole) = match attribute {
                        AttributeOp::Literal(member) => (member, None),
                        AttributeOp::Hole { key, hole } => (key, Some(value(*hole))),
                    };
                    if hole.is_some_and(Value::is_empty) {
                        continue;
                    }
                    if out.len() > empty {
                        out.push(b',');
                    }
                    out.extend_from_slice(literal(key));
                    if let Some(value) = hole {
                        json::push_leaf(out, value, b"");
                    }
                }
                let content = content.map_or(Value::null(), value);
                if out.len() == empty {
                    // Without attributes it is a leaf.
                    out.truncate(start);
                    json::push_leaf(out, content, b"null");
                    return Ok(true);
                }
                out.push(b'}');
                if !content.is_empty() {
                    out.extend_from_slice(b",\"#text\":");
                    json::push_leaf(out, content, b"");
                }
                out.push(b'}');
            }
            Op::Members { hole, names } => {
                if let Some(range) = stream(values, *hole) {
                    streams.push_members(range, &mut Members::after(names), out)?;
                }
            }
        }
        Ok(true)
    }
}

/// Appends the object of a stream's elements, as the content of a leaf. Returns false where it is none, or where `Data`
/// elements in it have rules of their own.
fn push_object(stream: Range<usize>, container: bool, streams: &mut dyn Streams, out: &mut Vec<u8>) -> Result<bool> {
    out.push(b'{');
    let mut members = Members::default();
    streams.push_members(stream, &mut members, out)?;
    out.push(b'}');
    let is_empty = members.first.is_empty();
    Ok(!is_empty && (!container || !members.has_data))
}

/// Where the stream that a hole holds is in the chunk; `None` where it holds none.
#[inline]
fn stream(values: Values<'_>, hole: u16) -> Option<Range<usize>> {
    let slot = values.slot(usize::from(hole))?;
    slot.stream()
}

/// Appends the text of a tree without holes.
///
/// # Errors
/// [`ErrorKind::Text`] if `out` becomes longer than `limit`.
pub fn push_tree(language: Language, root: &Element<'_>, out: &mut Vec<u8>, limit: usize) -> Result<()> {
    let mut compiler = Compiler {
        limit,
        literals: std::mem::take(out),
        ..Compiler::default()
    };
    compiler.root(language, root);
    let is_full = compiler.is_full();
    *out = compiler.literals;
    if is_full {
        return Err(Error::new(0, ErrorKind::Text));
    }
    Ok(())
}

/// Most bytes of literals in a template's program. One of real logs has some thousand; a longer text is read from the tree of each
/// record.
const MAX_LITERALS: usize = 1 << 20;

/// A program in the making.
#[derive(Debug)]
pub(crate) struct Compiler {
    /// Literals so far, from `flushed` on not yet in an op. For a tree without holes, all of its text.
    pub(crate) literals: Vec<u8>,
    flushed: usize,
    ops: Vec<Op>,
    takes: Vec<Takes>,
    pub(crate) irregular: bool,
    /// Nothing more is written once the literals are longer.
    pub(crate) limit: usize,
    /// Whether they would be.
    overflows: bool,
}

impl Default for Compiler {
    fn default() -> Self {
        Compiler {
            literals: Vec::new(),
            flushed: 0,
            ops: Vec::new(),
            takes: Vec::new(),
            irregular: false,
            limit: MAX_LITERALS,
            overflows: false,
        }
    }
}

impl Compiler {
    fn root(&mut self, language: Language, root: &Element<'_>) {
        match language {
            Language::Xml => xml::compile_root(self, root),
            Language::Json => json::compile_root(self, root),
        }
    }

    /// Whether the text is too long already.
    pub(crate) fn is_full(&self) -> bool {
        self.overflows || self.literals.len() > self.limit
    }

    /// Says that the text would be too long.
    pub(crate) fn fill(&mut self) {
        self.overflows = true;
    }

    pub(crate) fn literal(&mut self, text: &str) {
        self.literals.extend_from_slice(text.as_bytes());
    }

    /// Ends the literal run.
    fn flush(&mut self) {
        let end = self.literals.len();
        if self.flushed < end {
            self.ops.push(Op::Literal(self.flushed..end));
            self.flushed = end;
        }
    }

    /// Adds an op behind the literal run.
    pub(crate) fn op(&mut self, op: Op) {
        self.flush();
        self.ops.push(op);
    }

    /// A literal that an op has for itself.
    pub(crate) fn aside(&mut self, write: impl FnOnce(&mut Self)) -> Literal {
        self.flush();
        let start = self.literals.len();
        write(self);
        self.flushed = self.literals.len();
        start..self.flushed
    }

    /// What `write` compiles is left out if the value that an element depends on is NULL.
    pub(crate) fn guarded(&mut self, dependency: Option<u16>, write: impl FnOnce(&mut Self)) {
        let Some(hole) = dependency else { return write(self) };
        self.op(Op::Guard { hole, skip: 0 });
        let at = self.ops.len();
        write(self);
        self.flush();
        let skip = self.ops.len() - at;
        self.ops[at - 1] = Op::Guard { hole, skip };
    }

    /// Says what the program can take of a hole.
    pub(crate) fn take(&mut self, hole: u16, takes: Takes) {
        let hole = usize::from(hole);
        if self.takes.len() <= hole {
            self.takes.resize(hole + 1, Takes::ANY);
        }
        let known = &mut self.takes[hole];
        known.items &= takes.items;
        known.streams &= takes.streams;
    }
}

/// The holes among pieces of content.
pub(crate) fn holes<'n>(nodes: &'n [Node<'_>]) -> impl Iterator<Item = u16> + 'n {
    nodes.iter().filter_map(|node| match node {
        Node::Hole(hole) => Some(hole.index),
        _ => None,
    })
}
