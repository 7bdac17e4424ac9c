//! Programs: templates, compiled to literals and operations on their substitutions.
//!
//! A [`Program`] writes the text of a template's instances into a buffer. The same compiler renders the tree of a
//! record that no program supports: without substitutions, it compiles to one literal. So one set of rules covers both.

use std::ops::Range;

use hashbrown::HashMap;

pub use super::ops::Language;
use super::ops::{AcceptedShapes, AttributeOp, Compiler, Literal, Op};
pub use super::system::SystemTexts;
use super::system::{CachedText, SystemSections};
use super::{json, lines, xml};
use crate::binxml::instance::ValueTable;
use crate::binxml::tree::Element;
use crate::error::{Error, ErrorKind, Result};
use crate::value::Value;
use crate::value::text::{self, Escaping};

/// A template, compiled to write its instances in a language.
#[derive(Debug)]
pub struct Program {
    language: Language,
    root: Box<str>,
    literals: Box<[u8]>,
    ops: Box<[Op]>,
    takes: Box<[AcceptedShapes]>,
    /// The sections of `System`, in the program of an event.
    system: Option<SystemSections>,
    irregular: bool,
}

/// Renders the streams in the substitutions of a program. The implementor has the programs of their templates.
pub trait Streams {
    /// Appends the elements of the stream in a range of the chunk. Calls `name` before each element, with its name.
    ///
    /// # Errors
    /// If the stream is damaged.
    fn push_stream(
        &mut self,
        language: Language,
        stream: Range<usize>,
        out: &mut Vec<u8>,
        name: &mut OnName<'_>,
    ) -> Result<()>;
}

/// A callback before an element is written: gets the name of the element, and the text so far.
pub type OnName<'n> = dyn FnMut(&str, &mut Vec<u8>) + 'n;

/// The member names of a JSON object so far.
#[derive(Debug, Default)]
pub struct Members<'p> {
    /// The names of the members that the program wrote.
    before: &'p [Box<str>],
    /// The first member after those: the range of its escaped name in the text. Most objects have no second.
    first: Range<usize>,
    /// How often each escaped name occurred. Filled from the second member on.
    counts: HashMap<Vec<u8>, usize>,
    /// Whether one of the names is `Data`.
    has_data: bool,
}

impl<'p> Members<'p> {
    fn after(before: &'p [Box<str>]) -> Self {
        Members {
            before,
            ..Members::default()
        }
    }

    /// Writes a comma if one is needed, and the key of the next member. Numbers a repeated name.
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
    /// Compiles the tree of a template with open substitutions.
    pub fn new(language: Language, root: &Element<'_>) -> Self {
        let mut compiler = Compiler::new(language);
        compile(&mut compiler, root);
        if compiler.is_full() {
            compiler = Compiler::new(language);
            compiler.irregular = true;
        }
        compiler.flush();
        Program {
            language,
            root: root.name.into(),
            system: SystemSections::mark(root, &mut compiler.ops),
            literals: compiler.literals.into(),
            ops: compiler.ops.into(),
            takes: compiler.takes.into(),
            irregular: compiler.irregular,
        }
    }

    /// The approximate size in bytes.
    pub fn bytes(&self) -> usize {
        let of_op = |op: &Op| match op {
            Op::Element { attributes, .. } | Op::Attributes(attributes) => size_of_val(&**attributes),
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

    /// Whether the program can write an instance with these values. If not, use [`push_tree`].
    #[inline]
    pub fn supports(&self, values: ValueTable<'_>) -> bool {
        !self.irregular
            && values.compound().all(|(substitution, descriptor)| {
                let Some(takes) = self.takes.get(substitution) else {
                    return true;
                };
                if descriptor.value_type.array {
                    takes.items || !values.value(descriptor).repeats()
                } else {
                    takes.streams || descriptor.size == 0
                }
            })
    }

    /// Appends the text of an instance that the program [supports](Self::supports), with that of `System` from `texts`
    /// for the same values. Returns false if it cannot write a stream: then drop what it appended, and use
    /// [`push_tree`].
    ///
    /// # Errors
    /// [`ErrorKind::Text`] if `out` exceeds `limit` bytes, and those of `streams`. The text is then incomplete.
    pub fn run(
        &self,
        values: ValueTable<'_>,
        texts: Option<&mut SystemTexts>,
        streams: &mut dyn Streams,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<bool> {
        let mut text = match (&self.system, texts) {
            (Some(system), Some(texts)) => texts.entry(system, values),
            _ => None,
        };
        let is_written = self.run_ops(0..self.ops.len(), text.as_deref_mut(), values, streams, out, limit)?;
        if let (Some(text), Some(system), true) = (text, &self.system, is_written) {
            text.end(system);
        }
        Ok(is_written)
    }

    /// Runs a range of operations. `text` is that of `System`, if it can be cached.
    #[inline]
    fn run_ops(
        &self,
        range: Range<usize>,
        mut text: Option<&mut CachedText>,
        values: ValueTable<'_>,
        streams: &mut dyn Streams,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<bool> {
        let ops = &self.ops[range];
        let mut at = 0;
        while let Some(op) = ops.get(at) {
            at += 1;
            match op {
                Op::Literal(literal) => out.extend_from_slice(&self.literals[literal.clone()]),
                Op::Guard { substitution, skip } => {
                    if values.get(*substitution).is_some_and(Value::is_null) {
                        at += skip;
                    }
                }
                Op::System { section, len } => {
                    let Some(text) = text.as_deref_mut() else { continue };
                    match text.section(*section) {
                        Some(text) => out.extend_from_slice(text),
                        None => {
                            let start = out.len();
                            if !self.run_ops(at..at + len, None, values, streams, out, limit)? {
                                return Ok(false);
                            }
                            text.push(*section, &out[start..]);
                        }
                    }
                    at += len;
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

    // A call for each operation costs 4 % of `xml`.
    #[inline(always)]
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
            Op::Literal(_) | Op::Guard { .. } | Op::System { .. } => {}
            Op::Text { substitution, escaping } => value(*substitution).push_text(out, *escaping),
            Op::Attribute { substitution, open } => {
                let value = value(*substitution);
                if !value.is_empty() {
                    out.extend_from_slice(literal(open));
                    value.push_text(out, Escaping::XmlAttribute);
                    out.push(b'"');
                }
            }
            Op::Content { substitution } => match values.stream(*substitution) {
                Some(range) => streams.push_stream(Language::Xml, range, out, &mut |_, _| {})?,
                None => value(*substitution).push_text(out, Escaping::XmlText),
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
                        item.push_text(out, Escaping::XmlText);
                        out.extend_from_slice(literal(close));
                    }
                    return Ok(true);
                }
                out.extend_from_slice(literal(open));
                match values.stream(*substitution) {
                    Some(range) => streams.push_stream(Language::Xml, range, out, &mut |_, _| {})?,
                    None => repeated.push_text(out, Escaping::XmlText),
                }
                out.extend_from_slice(literal(close));
            }
            Op::Line {
                substitution,
                open,
                close,
            } => {
                if let Some(range) = values.stream(*substitution) {
                    return push_lines(range, self.language, streams, out);
                }
                let (open, close) = (literal(open), literal(close));
                let whole = value(*substitution);
                if !(whole.value_type.array && whole.repeats()) {
                    lines::push_line(out, open, whole, close);
                    return Ok(true);
                }
                for item in whole.items() {
                    if out.len() > limit {
                        break;
                    }
                    lines::push_line(out, open, item, close);
                }
            }
            Op::Elements { substitution } => {
                return match values.stream(*substitution) {
                    Some(range) => push_lines(range, self.language, streams, out),
                    None => Ok(value(*substitution).single().is_empty()),
                };
            }
            Op::Comma => {
                if out.last() != Some(&b'{') {
                    out.push(b',');
                }
            }
            Op::Leaf {
                substitution,
                container,
            } => match values.stream(*substitution) {
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
                if !(data.value_type.array && data.repeats()) {
                    json::push_leaf(out, data, b"\"\"");
                } else if *alone {
                    json::push_array(out, data.items());
                } else {
                    json::push_items(out, data.items());
                }
            }
            Op::Element { attributes, content } => {
                let start = out.len();
                out.push(b'{');
                let content = content.map_or(Value::null(), value);
                if !self.push_attributes(attributes, values, out, limit) {
                    // Without attributes, the element is a leaf.
                    out.truncate(start);
                    json::push_leaf(out, content, b"null");
                    return Ok(true);
                }
                if !content.is_empty() {
                    out.extend_from_slice(b",\"#text\":");
                    json::push_leaf(out, content, b"");
                }
                out.push(b'}');
            }
            Op::Attributes(attributes) => {
                self.push_attributes(attributes, values, out, limit);
            }
            Op::Members { substitution, names } => {
                let Some(range) = values.stream(*substitution) else {
                    // Any other value would be text of the element.
                    return Ok(value(*substitution).single().is_empty());
                };
                push_members(range, &mut Members::after(names), streams, out)?;
            }
        }
        Ok(true)
    }

    /// Appends the member `#attributes` of an object. If all attributes are empty, appends nothing and returns false.
    #[inline]
    fn push_attributes(
        &self,
        attributes: &[AttributeOp],
        values: ValueTable<'_>,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> bool {
        let start = out.len();
        out.extend_from_slice(b"\"#attributes\":{");
        let empty = out.len();
        for attribute in attributes {
            if out.len() > limit {
                break;
            }
            let (key, value) = match attribute {
                AttributeOp::Literal(member) => (member, None),
                AttributeOp::Substitution { key, substitution } => {
                    (key, Some(values.get(*substitution).unwrap_or(Value::null())))
                }
            };
            if value.is_some_and(Value::is_empty) {
                continue;
            }
            if out.len() > empty {
                out.push(b',');
            }
            out.extend_from_slice(&self.literals[key.clone()]);
            if let Some(value) = value {
                json::push_leaf(out, value, b"");
            }
        }
        if out.len() == empty {
            out.truncate(start);
            return false;
        }
        out.push(b'}');
        true
    }
}

/// Appends the object of a stream in a leaf. Returns false if it is empty, or has `Data` in a `container`.
fn push_object(stream: Range<usize>, container: bool, streams: &mut dyn Streams, out: &mut Vec<u8>) -> Result<bool> {
    out.push(b'{');
    let mut members = Members::default();
    push_members(stream, &mut members, streams, out)?;
    out.push(b'}');
    let is_empty = members.first.is_empty();
    Ok(!is_empty && (!container || !members.has_data))
}

/// Appends the elements of a stream as members of a JSON object.
fn push_members(
    stream: Range<usize>,
    members: &mut Members<'_>,
    streams: &mut dyn Streams,
    out: &mut Vec<u8>,
) -> Result<()> {
    streams.push_stream(Language::Json, stream, out, &mut |name, out| {
        members.push_key(name, out)
    })
}

/// Appends the values of a stream as lines or fields. Returns false for `Data`, whose name depends on its siblings.
fn push_lines(stream: Range<usize>, language: Language, streams: &mut dyn Streams, out: &mut Vec<u8>) -> Result<bool> {
    let mut has_data = false;
    streams.push_stream(language, stream, out, &mut |name, _| has_data |= name == "Data")?;
    Ok(!has_data)
}

fn compile(compiler: &mut Compiler, root: &Element<'_>) {
    match compiler.language {
        Language::Xml => xml::compile_root(compiler, root),
        Language::Json => json::compile_root(compiler, root),
        Language::Text | Language::Fields => lines::compile_root(compiler, root),
    }
}

/// Appends the text of a tree without open substitutions.
///
/// # Errors
/// [`ErrorKind::Text`] if `out` becomes longer than `limit` bytes.
pub fn push_tree(language: Language, root: &Element<'_>, out: &mut Vec<u8>, limit: usize) -> Result<()> {
    let mut compiler = Compiler::appending(language, std::mem::take(out), limit);
    compile(&mut compiler, root);
    let is_full = compiler.is_full();
    *out = compiler.literals;
    if is_full {
        return Err(Error::new(0, ErrorKind::Text));
    }
    Ok(())
}
