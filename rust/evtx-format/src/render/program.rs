//! Text of whole elements, compiled: literal runs and what the substitutions put between them, decided once per
//! template.
//!
//! A [`Program`] writes the XML or JSON of the instances of a template straight into a buffer. A tree without
//! substitutions compiles to one literal run: that is how a record is rendered that no program covers, so there is
//! one set of rules for both.

use std::ops::Range;

use hashbrown::HashMap;

use super::ops::{AcceptedShapes, AttributeOp, Compiler, Literal, Op};
use super::{json, xml};
use crate::binxml::instance::ValueTable;
use crate::binxml::tree::Element;
use crate::error::{Error, ErrorKind, Result};
use crate::value::Value;
use crate::value::text::{self, Form};

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
    takes: Box<[AcceptedShapes]>,
    irregular: bool,
}

/// Renders the streams that a program's substitutions hold: whoever has the programs of their templates.
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
    /// How often each name was there, as it is escaped, once there is a second member. Escaping keeps different names
    /// different.
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
            let end = text::push_json_key(out, name, same);
            self.first = start..end;
            return;
        }
        if self.counts.is_empty() {
            self.count_all(out);
        }
        let end = text::push_json_key(out, name, 0);
        let count = self.counts.entry_ref(&out[start..end]).or_default();
        *count += 1;
        if *count > 1 {
            out.truncate(start);
            text::push_json_key(out, name, *count - 1);
        }
    }

    /// Counts the names of all members so far.
    #[cold]
    fn count_all(&mut self, out: &[u8]) {
        let mut key = Vec::new();
        for name in self.before {
            key.clear();
            let end = text::push_json_key(&mut key, name, 0);
            *self.counts.entry_ref(&key[..end]).or_default() += 1;
        }
        *self.counts.entry_ref(&out[self.first.clone()]).or_default() += 1;
    }
}

impl Program {
    /// The program of a template, given its tree with substitutions.
    pub fn new(language: Language, root: &Element<'_>) -> Self {
        let mut compiler = Compiler::default();
        compile(&mut compiler, language, root);
        if compiler.is_full() {
            compiler = Compiler::irregular();
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
    pub fn supports(&self, values: ValueTable<'_>) -> bool {
        !self.irregular
            && values.compound_slots().all(|(substitution, slot)| {
                let Some(takes) = self.takes.get(substitution) else {
                    return true;
                };
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
    pub fn run(
        &self,
        values: ValueTable<'_>,
        streams: &mut dyn Streams,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<bool> {
        let mut at = 0;
        while let Some(op) = self.ops.get(at) {
            at += 1;
            match op {
                Op::Literal(literal) => out.extend_from_slice(&self.literals[literal.clone()]),
                Op::Guard { substitution, skip } => {
                    if values.get(*substitution).is_some_and(Value::is_null) {
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
        values: ValueTable<'_>,
        streams: &mut dyn Streams,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<bool> {
        let literal = |literal: &Literal| &self.literals[literal.clone()];
        let value = |substitution: u16| values.get(substitution).unwrap_or(Value::null());
        match op {
            Op::Literal(_) | Op::Guard { .. } => {}
            Op::Text { substitution, form } => value(*substitution).push_text(out, *form),
            Op::Attribute { substitution, open } => {
                let value = value(*substitution);
                if !value.is_empty() {
                    out.extend_from_slice(literal(open));
                    value.push_text(out, Form::XmlAttribute);
                    out.push(b'"');
                }
            }
            Op::Content { substitution } => match stream(values, *substitution) {
                Some(range) => streams.push_xml(range, out)?,
                None => value(*substitution).push_text(out, Form::XmlText),
            },
            Op::Repeat {
                substitution,
                open,
                close,
            } => {
                let repeated = value(*substitution);
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
                match stream(values, *substitution) {
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
            Op::Leaf {
                substitution,
                container,
            } => match stream(values, *substitution) {
                Some(range) => return push_object(range, *container, streams, out),
                None => json::push_leaf(out, value(*substitution), b"null"),
            },
            Op::CloseOrNull => {
                if out.last() == Some(&b'{') {
                    out.pop();
                    out.extend_from_slice(b"null");
                } else {
                    out.push(b'}');
                }
            }
            Op::Data { substitution, alone } => {
                let data = value(*substitution);
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
                    let (key, substitution) = match attribute {
                        AttributeOp::Literal(member) => (member, None),
                        AttributeOp::Substitution { key, substitution } => (key, Some(value(*substitution))),
                    };
                    if substitution.is_some_and(Value::is_empty) {
                        continue;
                    }
                    if out.len() > empty {
                        out.push(b',');
                    }
                    out.extend_from_slice(literal(key));
                    if let Some(value) = substitution {
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
            Op::Members { substitution, names } => {
                if let Some(range) = stream(values, *substitution) {
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

/// Where the stream that a substitution holds is in the chunk; `None` where it holds none.
#[inline]
fn stream(values: ValueTable<'_>, substitution: u16) -> Option<Range<usize>> {
    let slot = values.slot(usize::from(substitution))?;
    slot.stream()
}

fn compile(compiler: &mut Compiler, language: Language, root: &Element<'_>) {
    match language {
        Language::Xml => xml::compile_root(compiler, root),
        Language::Json => json::compile_root(compiler, root),
    }
}

/// Appends the text of a tree without substitutions.
///
/// # Errors
/// [`ErrorKind::Text`] if `out` becomes longer than `limit`.
pub fn push_tree(language: Language, root: &Element<'_>, out: &mut Vec<u8>, limit: usize) -> Result<()> {
    let mut compiler = Compiler::appending(std::mem::take(out), limit);
    compile(&mut compiler, language, root);
    let is_full = compiler.is_full();
    *out = compiler.literals;
    if is_full {
        return Err(Error::new(0, ErrorKind::Text));
    }
    Ok(())
}
