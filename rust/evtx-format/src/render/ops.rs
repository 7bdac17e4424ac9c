//! The operations of a program, and the compiler that collects them.

use std::ops::Range;

use crate::binxml::tree::Node;
use crate::value::text::Form;

/// The language that a program writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// XML, without white space between elements, as the `evtx` crate writes it with `indent(false)`.
    Xml,
    /// The JSON value of the element, in the shape of `evtx_dump -o json`.
    Json,
    /// The values, a line `name: value` for each.
    Lines,
    /// The values as fields: a name, [`END_OF_NAME`](super::lines::END_OF_NAME), a value,
    /// [`END_OF_VALUE`](super::lines::END_OF_VALUE). So a value with line breaks can be told from several.
    Fields,
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
    /// The next `len` operations are a part of `System` whose text may be known from an earlier event.
    System { part: usize, len: usize },
    /// The text of a value.
    Text { substitution: u16, form: Form },
    /// XML: an attribute whose value is a substitution. `open` is ` name="`. Writes nothing if the value is empty.
    Attribute { substitution: u16, open: Literal },
    /// XML: a substitution in content, which holds a text or a stream.
    Content { substitution: u16 },
    /// XML: an element whose content is one substitution. An array repeats the element.
    Repeat {
        substitution: u16,
        open: Literal,
        close: Literal,
    },
    /// Lines: a value with its name, for each item of an array, or the elements of a stream. `open` and `close` are what
    /// stands before and behind the value. Writes nothing for an empty value.
    Line {
        substitution: u16,
        open: Literal,
        close: Literal,
        language: Language,
    },
    /// Lines: the elements of a stream.
    Elements { substitution: u16, language: Language },
    /// JSON: a comma, unless the object is empty so far.
    Comma,
    /// JSON: the value of a leaf, or the object of the stream in it. `container`: the leaf is `EventData` or
    /// `UserData`.
    Leaf { substitution: u16, container: bool },
    /// JSON: the end of an object. Replaces an object without members by `null`.
    CloseOrNull,
    /// JSON: the value of a `Data` leaf. An array is a JSON array if the leaf is `alone`; else its items are appended
    /// to the JSON array of several leaves.
    Data { substitution: u16, alone: bool },
    /// JSON: the value of an element whose attributes or content are substitutions.
    Element {
        attributes: Box<[AttributeOp]>,
        content: Option<u16>,
    },
    /// JSON: the member `#attributes` at the start of an object, unless all attributes are empty.
    Attributes(Box<[AttributeOp]>),
    /// JSON: the elements of a stream as members, behind members with these names.
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

/// Which values of a substitution a program can write beside single values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AcceptedShapes {
    /// Whether it can write arrays that repeat the element.
    pub(crate) items: bool,
    /// Whether it can write streams.
    pub(crate) streams: bool,
}

impl AcceptedShapes {
    pub(crate) const SINGLE: AcceptedShapes = AcceptedShapes {
        items: false,
        streams: false,
    };
    pub(crate) const ITEMS: AcceptedShapes = AcceptedShapes {
        items: true,
        streams: false,
    };
    pub(crate) const STREAMS: AcceptedShapes = AcceptedShapes {
        items: false,
        streams: true,
    };
    pub(crate) const ANY: AcceptedShapes = AcceptedShapes {
        items: true,
        streams: true,
    };
}

/// The most bytes of literals in the program of a template. Those of real logs have some thousand. A template with more
/// has no program, and each of its records is rendered from its tree.
const MAX_LITERALS: usize = 1 << 20;

/// A program that is being compiled.
#[derive(Debug)]
pub(crate) struct Compiler {
    /// The literals so far. For a tree without substitutions, its whole text.
    pub(crate) literals: Vec<u8>,
    /// The literals from here on are not in an operation yet.
    flushed: usize,
    pub(super) ops: Vec<Op>,
    /// By index of the substitution.
    pub(super) takes: Vec<AcceptedShapes>,
    /// Whether no program can render the template.
    pub(crate) irregular: bool,
    /// The most bytes that the literals may have.
    pub(crate) limit: usize,
    /// Whether the literals would have more, by what [`fill`](Self::fill) was told.
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
    /// A compiler for a tree without substitutions. It appends to `text`, up to `limit` bytes.
    pub(super) fn appending(text: Vec<u8>, limit: usize) -> Self {
        Compiler {
            literals: text,
            limit,
            ..Compiler::default()
        }
    }

    /// The compiler of a template that no program can render.
    pub(super) fn irregular() -> Self {
        Compiler {
            irregular: true,
            ..Compiler::default()
        }
    }

    /// Whether the literals are longer than the limit.
    pub(crate) fn is_full(&self) -> bool {
        self.overflows || self.literals.len() > self.limit
    }

    /// Tells that the literals would be longer than the limit.
    pub(crate) fn fill(&mut self) {
        self.overflows = true;
    }

    pub(crate) fn literal(&mut self, text: &str) {
        self.literals.extend_from_slice(text.as_bytes());
    }

    /// Ends the literal run: makes an operation of it.
    pub(super) fn flush(&mut self) {
        let end = self.literals.len();
        if self.flushed < end {
            self.ops.push(Op::Literal(self.flushed..end));
            self.flushed = end;
        }
    }

    /// Adds an operation behind the literal run.
    pub(crate) fn op(&mut self, op: Op) {
        self.flush();
        self.ops.push(op);
    }

    /// A literal for the fields of an operation. It is not part of the literal run.
    pub(crate) fn aside(&mut self, write: impl FnOnce(&mut Self)) -> Literal {
        self.flush();
        let start = self.literals.len();
        write(self);
        self.flushed = self.literals.len();
        start..self.flushed
    }

    /// Compiles what `write` writes so that it is left out of records in which the value of `dependency` is NULL.
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

    /// Restricts which values of a substitution the program can write.
    pub(crate) fn take(&mut self, substitution: u16, takes: AcceptedShapes) {
        let substitution = usize::from(substitution);
        if self.takes.len() <= substitution {
            self.takes.resize(substitution + 1, AcceptedShapes::ANY);
        }
        let known = &mut self.takes[substitution];
        known.items &= takes.items;
        known.streams &= takes.streams;
    }
}

/// The indices of the substitutions among pieces of content.
pub(crate) fn substitutions<'n>(nodes: &'n [Node<'_>]) -> impl Iterator<Item = u16> + 'n {
    nodes.iter().filter_map(|node| match node {
        Node::Substitution(substitution) => Some(substitution.index),
        _ => None,
    })
}
