//! The operations of a program, and the compiler that emits them.

use std::ops::Range;

use crate::binxml::tree::Node;
use crate::value::text::Escaping;

/// The output language of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// XML, without white space between elements, as the `evtx` crate writes it with `indent(false)`.
    Xml,
    /// The JSON value of the element, in the shape of `evtx_dump -o json`.
    Json,
    /// All values, one line `name: value` each.
    Text,
    /// All values, each as a name, [`END_OF_NAME`](super::lines::END_OF_NAME), a value, and
    /// [`END_OF_VALUE`](super::lines::END_OF_VALUE). Unlike lines, these separate values that contain line breaks.
    Fields,
}

impl Language {
    /// All languages, in order.
    pub const ALL: [Language; 4] = [Language::Xml, Language::Json, Language::Text, Language::Fields];
}

/// A range in the literals of a program.
pub(super) type Literal = Range<usize>;

/// An operation of a program.
#[derive(Debug)]
pub(crate) enum Op {
    /// A literal.
    Literal(Literal),
    /// Skips the next `skip` operations if the value of the substitution is NULL.
    Guard { substitution: u16, skip: usize },
    /// The next `len` operations write a section of `System` whose text may be cached from an earlier event.
    System { section: usize, len: usize },
    /// The text of a value.
    Text { substitution: u16, escaping: Escaping },
    /// XML: an attribute whose value is a substitution. `open` is ` name="`. Writes nothing if the value is empty.
    Attribute { substitution: u16, open: Literal },
    /// XML: a substitution in content: a text or a stream.
    Content { substitution: u16 },
    /// XML: an element whose content is one substitution. An array repeats the element.
    Repeat {
        substitution: u16,
        open: Literal,
        close: Literal,
    },
    /// Text, fields: a value or each item between `open` and `close`, unless it is empty, or the elements of a stream.
    Line {
        substitution: u16,
        open: Literal,
        close: Literal,
    },
    /// Text, fields: the elements of a stream.
    Elements { substitution: u16 },
    /// JSON: a comma, unless the object is still empty.
    Comma,
    /// JSON: the value of a leaf, or the object of its stream. `container`: the leaf is `EventData` or `UserData`.
    Leaf { substitution: u16, container: bool },
    /// JSON: the end of an object. Replaces an object without members by `null`.
    CloseOrNull,
    /// JSON: the value of a `Data` leaf. If the leaf is `alone`, an array becomes a JSON array. Otherwise its items
    /// extend the JSON array that several leaves share.
    Data { substitution: u16, alone: bool },
    /// JSON: the value of an element whose attributes or content are substitutions.
    Element {
        attributes: Box<[AttributeOp]>,
        content: Option<u16>,
    },
    /// JSON: the member `#attributes` at the start of an object, unless all attributes are empty.
    Attributes(Box<[AttributeOp]>),
    /// JSON: the elements of a stream as members, after members with these names.
    Members { substitution: u16, names: Box<[Box<str>]> },
}

/// JSON: an attribute of [`Op::Element`] or [`Op::Attributes`].
#[derive(Debug)]
pub(crate) enum AttributeOp {
    /// A literal attribute: its key and value.
    Literal(Literal),
    /// An attribute whose value is a substitution.
    Substitution { key: Literal, substitution: u16 },
}

/// Which values a program can write in place of a substitution, besides single values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AcceptedShapes {
    /// Arrays that repeat the element.
    pub(crate) items: bool,
    /// Streams.
    pub(crate) streams: bool,
}

impl AcceptedShapes {
    pub(crate) const SINGLE: Self = Self::new(false, false);
    pub(crate) const ITEMS: Self = Self::new(true, false);
    pub(crate) const STREAMS: Self = Self::new(false, true);
    pub(crate) const ANY: Self = Self::new(true, true);

    const fn new(items: bool, streams: bool) -> Self {
        AcceptedShapes { items, streams }
    }
}

/// The most bytes of literals in a program. Real templates have a few thousand. Others are rendered from trees.
const MAX_LITERALS: usize = 1 << 20;

/// A program that is being compiled.
#[derive(Debug)]
pub(crate) struct Compiler {
    pub(super) language: Language,
    /// The literals so far: the whole text, for a tree without substitutions.
    pub(crate) literals: Vec<u8>,
    /// The start of the literals that no operation covers yet.
    flushed: usize,
    pub(super) ops: Vec<Op>,
    /// By substitution.
    pub(super) takes: Vec<AcceptedShapes>,
    /// Whether the template needs a tree.
    pub(crate) irregular: bool,
    /// The most bytes of literals.
    pub(crate) limit: usize,
    /// Whether [`fill`](Self::fill) was called.
    overflows: bool,
}

impl Compiler {
    /// Compiles a template.
    pub(super) fn new(language: Language) -> Self {
        Compiler::appending(language, Vec::new(), MAX_LITERALS)
    }

    /// Compiles a tree without substitutions: appends its text to `text`, up to `limit` bytes.
    pub(super) fn appending(language: Language, text: Vec<u8>, limit: usize) -> Self {
        Compiler {
            language,
            literals: text,
            flushed: 0,
            ops: Vec::new(),
            takes: Vec::new(),
            irregular: false,
            limit,
            overflows: false,
        }
    }

    /// Whether the literals are longer than the limit.
    pub(crate) fn is_full(&self) -> bool {
        self.overflows || self.literals.len() > self.limit
    }

    /// Marks the literals as longer than the limit.
    pub(crate) fn fill(&mut self) {
        self.overflows = true;
    }

    pub(crate) fn literal(&mut self, text: &str) {
        self.literals.extend_from_slice(text.as_bytes());
    }

    /// Emits the literals since the last operation.
    pub(super) fn flush(&mut self) {
        let end = self.literals.len();
        if self.flushed < end {
            self.ops.push(Op::Literal(self.flushed..end));
            self.flushed = end;
        }
    }

    /// Emits an operation.
    pub(crate) fn op(&mut self, op: Op) {
        self.flush();
        self.ops.push(op);
    }

    /// A literal that only an operation refers to.
    pub(crate) fn aside(&mut self, write: impl FnOnce(&mut Self)) -> Literal {
        self.flush();
        let start = self.literals.len();
        write(self);
        self.flushed = self.literals.len();
        start..self.flushed
    }

    /// Compiles what `write` writes. Records in which the value of `dependency` is NULL skip it.
    pub(crate) fn guarded(&mut self, dependency: Option<u16>, write: impl FnOnce(&mut Self)) {
        let Some(substitution) = dependency else {
            return write(self);
        };
        self.op(Op::Guard { substitution, skip: 0 });
        let at = self.ops.len();
        write(self);
        self.flush();
        let skip = self.ops.len() - at;
        self.ops[at - 1] = Op::Guard { substitution, skip };
    }

    /// Restricts the values that the program can write in place of a substitution.
    pub(crate) fn take(&mut self, substitution: u16, takes: AcceptedShapes) {
        let substitution = usize::from(substitution);
        if self.takes.len() <= substitution {
            self.takes.resize(substitution + 1, AcceptedShapes::ANY);
        }
        let known = &mut self.takes[substitution];
        known.items &= takes.items;
        known.streams &= takes.streams;
    }

    /// Restricts the substitutions in content to single values. Returns whether it has any.
    pub(crate) fn take_single(&mut self, content: &[Node<'_>]) -> bool {
        let taken = substitutions(content).inspect(|&substitution| self.take(substitution, AcceptedShapes::SINGLE));
        taken.count() > 0
    }
}

/// The indices of the substitutions in content.
pub(crate) fn substitutions<'n>(nodes: &'n [Node<'_>]) -> impl Iterator<Item = u16> + 'n {
    nodes.iter().filter_map(|node| match node {
        Node::Substitution(substitution) => Some(substitution.index),
        _ => None,
    })
}
