//! The steps of a program, and the compiler that XML and JSON give them to.

use std::ops::Range;

use crate::binxml::tree::Node;
use crate::value::text::Form;

/// A place in a program's literals.
pub(super) type Literal = Range<usize>;

/// A step of a program.
#[derive(Debug)]
pub(crate) enum Op {
    /// A literal.
    Literal(Literal),
    /// Skips the next ops if the substitution's value is NULL.
    Guard { substitution: u16, skip: usize },
    /// A value's text.
    Text { substitution: u16, form: Form },
    /// XML: an attribute whose value is a substitution, with the literal ` name="`; nothing if the value is empty.
    Attribute { substitution: u16, open: Literal },
    /// XML: a substitution in content. Text, or a stream.
    Content { substitution: u16 },
    /// XML: an element of one substitution, which an array repeats.
    Repeat {
        substitution: u16,
        open: Literal,
        close: Literal,
    },
    /// JSON: a comma, unless the object is empty so far.
    Comma,
    /// JSON: the value of a leaf.
    Leaf { substitution: u16, container: bool },
    /// JSON: the end of an object, or `null` in its place where it has no member.
    CloseOrNull,
    /// JSON: the value of a `Data` leaf. `alone`, an array is one of JSON; else its items are some of a list.
    Data { substitution: u16, alone: bool },
    /// JSON: the value of an element whose attributes or content are substitutions.
    Element {
        attributes: Box<[AttributeOp]>,
        content: Option<u16>,
    },
    /// JSON: the elements of a stream as members, after members of these names.
    Members { substitution: u16, names: Box<[Box<str>]> },
}

/// JSON: an attribute of [`Op::Element`].
#[derive(Debug)]
pub(crate) enum AttributeOp {
    /// With its key and value.
    Literal(Literal),
    /// With its key.
    Substitution { key: Literal, substitution: u16 },
}

/// What a program can take of a substitution beside single values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AcceptedShapes {
    /// Arrays that repeat the element.
    pub(crate) items: bool,
    /// Streams.
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

/// Most bytes of literals in a template's program. One of real logs has some thousand; a longer text is read from the
/// tree of each record.
const MAX_LITERALS: usize = 1 << 20;

/// A program in the making.
#[derive(Debug)]
pub(crate) struct Compiler {
    /// Literals so far, from `flushed` on not yet in an op. For a tree without substitutions, all of its text.
    pub(crate) literals: Vec<u8>,
    flushed: usize,
    pub(super) ops: Vec<Op>,
    pub(super) takes: Vec<AcceptedShapes>,
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
    /// A compiler that appends to a text, for a tree without substitutions, as long as that is no longer than `limit`.
    pub(super) fn appending(text: Vec<u8>, limit: usize) -> Self {
        Compiler {
            literals: text,
            limit,
            ..Compiler::default()
        }
    }

    /// The compiler of a template that no program covers.
    pub(super) fn irregular() -> Self {
        Compiler {
            irregular: true,
            ..Compiler::default()
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
    pub(super) fn flush(&mut self) {
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

    /// Says what the program can take of a substitution.
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

/// The substitutions among pieces of content.
pub(crate) fn substitutions<'n>(nodes: &'n [Node<'_>]) -> impl Iterator<Item = u16> + 'n {
    nodes.iter().filter_map(|node| match node {
        Node::Substitution(substitution) => Some(substitution.index),
        _ => None,
    })
}
