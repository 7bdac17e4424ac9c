//! Copies BinXML token by token, from a chunk to a record that stands alone, and from there to another chunk.
//!
//! Only what tells where something is changes: the offsets of names and definitions, and the sizes around them. Every
//! value keeps its type and its bytes. The walk of `evtx-format` passes on what BinXML means, which is not enough for
//! a copy: it does not tell the dependencies of elements, flags of tokens, or bytes after an end token.
//!
//! A [`Target`] is asked about each part, and can replace it. For one that does not edit, the compiler leaves the
//! questions out.

use std::ops::Range;

use crate::error::WriteError;
use crate::source::{DEFINITION_HEADER, NAME_HEADER, Result, Source};
use crate::target::{Content, Edit, Target};
use crate::value::from_utf16;

/// How deep BinXML values may contain others. `evtx-format` reads half of it.
const MAX_NESTING: usize = 32;
/// The most bytes of a record that stands alone. Its definitions have names of their own, which a chunk shares.
pub(crate) const MAX_RECORD: usize = 1 << 18;
pub(crate) const BINXML: u8 = 0x21;
pub(crate) const STRING: u8 = 1;

/// The character of one of XML's entities.
pub(crate) fn entity_character(name: &str) -> Option<u8> {
    Some(match name {
        "amp" => b'&',
        "lt" => b'<',
        "gt" => b'>',
        "quot" => b'"',
        "apos" => b'\'',
        _ => return None,
    })
}

/// Copies a definition, after the link to the next one of the template table.
pub(crate) fn copy_definition<T: Target>(target: &mut T, source: Source<'_>, at: usize) -> Result<()> {
    let (bytes, body) = source.definition(at)?;
    target.out().extend(&bytes[..DEFINITION_HEADER - 4]);
    let start = target.out().len();
    Copy {
        target,
        source: source.inside(at),
        has_dependencies: true,
        has_instances: false,
    }
    .stream(body, 0)?;
    patch_size(target.out(), start - 4);
    Ok(())
}

/// Copies a stream up to its end token. Returns the offset after it.
pub(crate) fn copy_stream<T: Target>(target: &mut T, source: Source<'_>, stream: Range<usize>) -> Result<usize> {
    Copy {
        target,
        source,
        has_dependencies: false,
        has_instances: true,
    }
    .stream(stream, 0)
}

/// Writes how many bytes follow the u32 at an offset.
fn patch_size(out: &mut [u8], at: usize) {
    let size = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&size.to_le_bytes());
}

struct Copy<'c, 's, T> {
    target: &'c mut T,
    source: Source<'s>,
    /// Whether elements have a dependency, as in a definition.
    has_dependencies: bool,
    /// Whether template instances are allowed. In a definition they are not, so that no two refer to each other.
    has_instances: bool,
}

impl<'s, T: Target> Copy<'_, 's, T> {
    fn stream(&mut self, stream: Range<usize>, depth: usize) -> Result<usize> {
        if depth > MAX_NESTING {
            return Err(Source::damaged(stream.start, "BinXML is nested too deep"));
        }
        // Where the sizes of the open elements are, and that of the list of attributes of the start tag that is open.
        let (mut open, mut list) = (Vec::new(), None);
        let (mut at, mut run_end) = (stream.start, stream.start);
        while at < stream.end {
            if self.target.out().len() > MAX_RECORD {
                return Err(WriteError::RecordSize);
            }
            let token = self.source.byte(at, "a token")?;
            if at >= run_end && self.target.edits().is_some() {
                let (text, after, is_run) = self.run(at)?;
                run_end = after;
                let run = Content::Run(&text, &self.source.bytes[at..after]);
                if is_run && let Some(edit) = self.edited(run)? {
                    self.put(&edit, &[], token)?;
                    at = after;
                    continue;
                }
            }
            match token {
                0x00 => {
                    self.target.out().push(token);
                    return Ok(at + 1);
                }
                0x01 | 0x41 => {
                    at = self.copy(at, if self.has_dependencies { 3 } else { 1 }, "an element")? + 4;
                    open.push(self.target.out().len());
                    self.target.out().extend([0; 4]);
                    at = self.name(at)?;
                    if token & 0x40 != 0 {
                        list = Some(self.target.out().len());
                        at = self.copy(at, 4, "a list of attributes")?;
                    }
                }
                0x02..=0x04 => {
                    if let Some(list) = list.take() {
                        patch_size(self.target.out(), list);
                    }
                    at = self.copy(at, 1, "a token")?;
                    if token != 0x02 {
                        let element = open.pop().ok_or_else(|| Source::damaged(at, "no element is open"))?;
                        patch_size(self.target.out(), element);
                    }
                }
                0x05 | 0x45 => at = self.value(at, depth)?,
                0x06 | 0x46 | 0x0a => {
                    at = self.copy(at, 1, "a token")?;
                    at = self.name(at)?;
                }
                0x07 | 0x47 | 0x0b => {
                    let units = self.source.u16(at + 1, "a text")?;
                    at = self.content(at, 3 + 2 * units, 1, "a text", |all| Content::Value(STRING, &all[3..]))?;
                }
                0x08 | 0x48 => {
                    let number = |all: &[u8]| Content::Character(u16::from_le_bytes([all[1], all[2]]));
                    at = self.content(at, 3, 0, "a character reference", number)?;
                }
                0x09 | 0x49 => at = self.entity(at)?,
                0x0c if self.has_instances => at = self.instance(at, depth)?,
                0x0d if self.target.edits().is_some_and(|edits| edits.makes_optional()) => {
                    self.target.out().push(0x0e);
                    at = self.copy(at + 1, 3, "a substitution")?;
                }
                0x0d | 0x0e => at = self.copy(at, 4, "a substitution")?,
                0x0f => at = self.copy(at, 4, "a fragment header")?,
                _ => return Err(Source::damaged(at, "no such token")),
            }
        }
        if open.is_empty() {
            Ok(at)
        } else {
            Err(Source::damaged(at, "an element is not closed"))
        }
    }

    /// Reads texts and references that follow each other. Returns what they show, in UTF-16LE, the offset after them, and
    /// whether there are several.
    fn run(&self, start: usize) -> Result<(Vec<u8>, usize, bool)> {
        let (mut text, mut at, mut count) = (Vec::new(), start, 0);
        while let Some(&token) = self.source.bytes.get(at) {
            let units = |at: usize| self.source.u16(at, "a text").map(|units| 2 * units);
            match token & !0x40 {
                0x05 if self.source.byte(at + 1, "a value")? == STRING => {
                    let size = units(at + 2)?;
                    text.extend(self.source.take(at + 4, size, "a text")?);
                    at += 4 + size;
                }
                0x07 => {
                    let size = units(at + 1)?;
                    text.extend(self.source.take(at + 3, size, "a text")?);
                    at += 3 + size;
                }
                0x08 => {
                    text.extend(self.source.take(at + 1, 2, "a character reference")?);
                    at += 3;
                }
                0x09 => {
                    let (entry, after) = self.name_at(at + 1)?;
                    let Some(character) = entity_character(&from_utf16(&entry[4..])) else {
                        break;
                    };
                    text.extend([character, 0]);
                    at = after;
                }
                _ => break,
            }
            count += 1;
        }
        Ok((text, at, count > 1))
    }

    /// Copies bytes. Returns the offset after them.
    fn copy(&mut self, at: usize, count: usize, what: &'static str) -> Result<usize> {
        self.target.out().extend(self.source.take(at, count, what)?);
        Ok(at + count)
    }

    /// What replaces content, if anything does.
    fn edited(&mut self, content: Content<'_>) -> Result<Option<Edit>> {
        self.target.edits().map_or(Ok(None), |edits| edits.content(content))
    }

    /// Copies content, or what replaces it. Returns the offset after it. `head` bytes come before the number of units of a
    /// text. Without them, a text becomes a value.
    fn content(
        &mut self,
        at: usize,
        count: usize,
        head: usize,
        what: &'static str,
        content: impl FnOnce(&'s [u8]) -> Content<'s>,
    ) -> Result<usize> {
        let all = self.source.take(at, count, what)?;
        match self.edited(content(all))? {
            Some(edit) => self.put(&edit, &all[..head], all[0])?,
            None => self.target.out().extend(all),
        }
        Ok(at + count)
    }

    /// Appends what replaces content that begins with a token.
    fn put(&mut self, edit: &Edit, head: &[u8], token: u8) -> Result<()> {
        let out = self.target.out();
        match (head, edit.value_type) {
            (head @ [_, ..], STRING) => out.extend(head),
            (_, value_type) => out.extend([0x05 | token & 0x40, value_type]),
        }
        if edit.value_type == STRING {
            let units = edit.bytes.len() / 2;
            let units = u16::try_from(units).map_err(|_| WriteError::ValueSize(edit.bytes.len()))?;
            out.extend(units.to_le_bytes());
        }
        out.extend(&edit.bytes);
        Ok(())
    }

    /// Copies an entity reference, or what replaces it. Returns the offset after it.
    fn entity(&mut self, at: usize) -> Result<usize> {
        let token = self.source.byte(at, "a token")?;
        let (entry, end) = self.name_at(at + 1)?;
        let Some(edit) = self.edited(Content::Entity(entry))? else {
            let after = self.copy(at, 1, "a token")?;
            return self.name(after);
        };
        self.put(&edit, &[], token)?;
        Ok(end)
    }

    /// Copies a reference to a name. Returns the offset after it, and after the name if that follows.
    fn name(&mut self, at: usize) -> Result<usize> {
        let (entry, after) = self.name_at(at)?;
        self.target.name(entry);
        Ok(after)
    }

    /// The name that a reference refers to, and the offset after the reference, and after the name if that follows.
    fn name_at(&self, at: usize) -> Result<(&'s [u8], usize)> {
        let offset = self.source.base.saturating_add(self.source.u32(at, "a name")?);
        let units = self.source.u16(offset.saturating_add(NAME_HEADER - 2), "a name")?;
        let entry = self.source.take(offset + 4, NAME_HEADER - 4 + 2 * units, "a name")?;
        // Names end with NUL.
        let inline = if offset == at + 4 {
            NAME_HEADER + 2 * units + 2
        } else {
            0
        };
        Ok((entry, at + 4 + inline))
    }

    /// Copies a value that is not in a value table.
    fn value(&mut self, at: usize, depth: usize) -> Result<usize> {
        const WHAT: &str = "a value";
        let value_type = self.source.byte(at + 1, WHAT)?;
        // A text has its number of units before it.
        let head = if value_type == STRING { 4 } else { 2 };
        let size = match value_type {
            0 => 0,
            STRING => 2 * self.source.u16(at + 2, WHAT)?,
            3 | 4 => 1,
            5 | 6 => 2,
            7 | 8 | 11 | 13 | 20 => 4,
            9 | 10 | 12 | 17 | 21 => 8,
            15 | 18 => 16,
            BINXML => {
                let size = self.source.u16(at + 2, WHAT)?;
                let start = self.copy(at, 4, WHAT)?;
                let place = self.target.out().len() - 2;
                self.nested(start..start + size, place, depth)?;
                return Ok(start + size);
            }
            _ => return Err(Source::damaged(at, "a value of a type that has no size")),
        };
        let content = |all: &'s [u8]| Content::Value(value_type, &all[head..]);
        self.content(at, head + size, if head == 4 { 2 } else { 0 }, WHAT, content)
    }

    /// Copies a stream with what follows its end token, and writes its size, a u16, at `place` in the target.
    fn nested(&mut self, stream: Range<usize>, place: usize, depth: usize) -> Result<()> {
        let start = self.target.out().len();
        let end = stream.end;
        self.source.take(stream.start, stream.len(), "a nested stream")?;
        let has_dependencies = std::mem::take(&mut self.has_dependencies);
        let after = self.stream(stream, depth + 1)?;
        self.has_dependencies = has_dependencies;
        let rest = self.source.take(after, end.saturating_sub(after), "a nested stream")?;
        // Nobody reads these bytes, so nobody can say what they are.
        let rest = if self.target.edits().is_some() { &[] } else { rest };
        self.target.out().extend(rest);
        let size = self.target.out().len() - start;
        let size = u16::try_from(size).map_err(|_| WriteError::ValueSize(size))?;
        self.target.out()[place..place + 2].copy_from_slice(&size.to_le_bytes());
        Ok(())
    }

    fn instance(&mut self, at: usize, depth: usize) -> Result<usize> {
        // The token, a byte, the template ID, the offset of the definition.
        let after = self.copy(at, 6, "a template instance")?;
        let definition = self
            .source
            .base
            .saturating_add(self.source.u32(after, "a template instance")?);
        self.target.definition(self.source, definition)?;
        let inline = if definition == after + 4 {
            self.source.definition(definition)?.1.end - definition
        } else {
            0
        };
        let table = after + 4 + inline;
        let count = self.source.u32(table, "a value table")?;
        let descriptors = self.source.take(table + 4, count.saturating_mul(4), "a value table")?;
        let descriptors = descriptors.as_chunks::<4>().0;
        let written = self.target.out().len() + 4;
        let mut value = self.copy(table, 4 + 4 * count, "a value table")?;
        let mut plain = value;
        for (index, &[low, high, value_type, _]) in descriptors.iter().enumerate() {
            let size = usize::from(u16::from_le_bytes([low, high]));
            let (end, place) = (value + size, written + 4 * index);
            if value_type == BINXML && size > 0 {
                self.copy(plain, value - plain, "a value")?;
                self.nested(value..end, place, depth)?;
                plain = end;
            } else if let Some(edits) = self.target.edits()
                && let Some(edit) = edits.value(value_type, self.source.take(value, size, "a value")?)?
            {
                self.copy(plain, value - plain, "a value")?;
                self.put_value(&edit, place)?;
                plain = end;
            }
            value = end;
        }
        self.copy(plain, value - plain, "a value")
    }

    /// Appends what replaces a value, whose descriptor is at `place` in the target.
    fn put_value(&mut self, edit: &Edit, place: usize) -> Result<()> {
        let size = edit.bytes.len();
        let [low, high] = u16::try_from(size)
            .map_err(|_| WriteError::ValueSize(size))?
            .to_le_bytes();
        let out = self.target.out();
        out.extend(&edit.bytes);
        if out.len() > MAX_RECORD {
            return Err(WriteError::RecordSize);
        }
        out[place..place + 3].copy_from_slice(&[low, high, edit.value_type]);
        Ok(())
    }
}
