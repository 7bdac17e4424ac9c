//! An event that is spelled out, without a template, as a list of tokens that is filled for one event after the other.

use std::ops::Range;

use hashbrown::HashMap;

use crate::error::WriteError;
use crate::target::{NO_DEPENDENCY, Target, hash};
use crate::value::utf16;

/// How many names are kept for the next event. Events have the same few, unless they are crafted.
const MAX_NAMES: usize = 4096;

/// The type of text in a code page.
pub(crate) const ANSI_STRING: u8 = 0x02;

/// The least bytes of a run of text that becomes a value. A value takes eight bytes more than its text.
const LONG_RUN: usize = 64;

/// An event that is spelled out. Fill it from its first start tag to its last end tag; [`clear`](Self::clear) begins the
/// next event.
#[derive(Debug, Default)]
pub struct SpelledEvent {
    /// The names as a chunk has them: hash, number of units, and units.
    entries: Vec<Box<[u8]>>,
    known: HashMap<Box<str>, usize>,
    tokens: Vec<Token>,
    texts: String,
}

#[derive(Debug, Clone)]
enum Token {
    /// A start tag, with its name, and how many attributes it has.
    Start(usize, usize),
    Attribute(usize, Range<usize>),
    /// The end of a start tag.
    EndStart,
    Text(Range<usize>),
    /// A reference to an entity, by its name.
    Reference(usize),
    /// The end of an element; true if it closes as empty.
    End(bool),
}

impl SpelledEvent {
    /// Begins the next event.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.texts.clear();
        if self.entries.len() > MAX_NAMES {
            self.entries.clear();
            self.known.clear();
        }
    }

    /// Begins a start tag.
    pub fn start(&mut self, name: &str) {
        let name = self.name(name);
        self.tokens.push(Token::Start(name, 0));
    }

    /// Adds an attribute to the start tag.
    pub fn attribute(&mut self, name: &str, text: &str) {
        let (name, text) = (self.name(name), self.push(text));
        let start = self.tokens.iter_mut().rev().find_map(|token| match token {
            Token::Start(_, attributes) => Some(attributes),
            _ => None,
        });
        start.into_iter().for_each(|attributes| *attributes += 1);
        self.tokens.push(Token::Attribute(name, text));
    }

    /// Ends the start tag. Content follows.
    pub fn end_start(&mut self) {
        self.tokens.push(Token::EndStart);
    }

    /// Adds text.
    pub fn text(&mut self, text: &str) {
        let text = self.push(text);
        self.tokens.push(Token::Text(text));
    }

    /// Adds a reference to an entity.
    pub fn reference(&mut self, name: &str) {
        let name = self.name(name);
        self.tokens.push(Token::Reference(name));
    }

    /// Ends the start tag and the element.
    pub fn close(&mut self) {
        self.tokens.push(Token::End(true));
    }

    /// Ends an element whose start tag has ended.
    pub fn end(&mut self) {
        self.tokens.push(Token::End(false));
    }

    fn push(&mut self, text: &str) -> Range<usize> {
        let start = self.texts.len();
        self.texts.push_str(text);
        start..self.texts.len()
    }

    fn name(&mut self, name: &str) -> usize {
        if let Some(&known) = self.known.get(name) {
            return known;
        }
        let mut entry: Vec<u8> = hash(name.encode_utf16()).to_le_bytes().into();
        // A longer name does not fit a chunk.
        let units = u16::try_from(name.encode_utf16().count()).unwrap_or(u16::MAX);
        entry.extend(units.to_le_bytes());
        entry.extend(utf16(name));
        self.entries.push(entry.into());
        self.known.insert(name.into(), self.entries.len() - 1);
        self.entries.len() - 1
    }

    /// Appends the BinXML of its elements. With `values`, it is that of a template, and long runs of Latin letters are values in
    /// a code page, which take half of the bytes.
    ///
    /// # Errors
    /// [`WriteError::RecordSize`] if a text is too long.
    pub(crate) fn write<T: Target>(
        &self,
        target: &mut T,
        mut values: Option<&mut Vec<Vec<u8>>>,
    ) -> Result<(), WriteError> {
        // Where the sizes of the open elements are.
        let mut open = Vec::new();
        let (mut list, mut left) = (0, 0);
        for token in &self.tokens {
            match token {
                Token::Start(name, attributes) => {
                    let out = target.out();
                    out.push(if *attributes > 0 { 0x41 } else { 0x01 });
                    if values.is_some() {
                        out.extend(NO_DEPENDENCY.to_le_bytes());
                    }
                    open.push(out.len());
                    out.extend([0; 4]);
                    target.name(&self.entries[*name]);
                    (list, left) = (target.out().len(), *attributes);
                    if left > 0 {
                        target.out().extend([0; 4]);
                    }
                }
                Token::Attribute(name, text) => {
                    left -= 1;
                    target.out().push(if left > 0 { 0x46 } else { 0x06 });
                    target.name(&self.entries[*name]);
                    push_text(target.out(), &self.texts[text.clone()])?;
                    if left == 0 {
                        put_size(target.out(), list);
                    }
                }
                Token::EndStart => target.out().push(0x02),
                Token::Text(text) => match &mut values {
                    Some(values) => self.push_runs(target.out(), text, values)?,
                    None => push_text(target.out(), &self.texts[text.clone()])?,
                },
                Token::Reference(name) => {
                    target.out().push(0x09);
                    target.name(&self.entries[*name]);
                }
                Token::End(is_empty) => {
                    let out = target.out();
                    out.push(if *is_empty { 0x03 } else { 0x04 });
                    open.pop().into_iter().for_each(|at| put_size(out, at));
                }
            }
        }
        Ok(())
    }

    /// Appends text. Its long runs of letters that the code page has become values.
    fn push_runs(&self, out: &mut Vec<u8>, text: &Range<usize>, values: &mut Vec<Vec<u8>>) -> Result<(), WriteError> {
        let mut rest = &self.texts[text.clone()];
        while let Some(first) = rest.chars().next() {
            let is_narrow = narrow(first).is_some();
            let end = rest.find(|letter| narrow(letter).is_some() != is_narrow);
            let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
            if is_narrow && run.len() >= LONG_RUN {
                out.push(0x0d);
                out.extend((values.len() as u16).to_le_bytes());
                out.push(ANSI_STRING);
                values.push(run.chars().filter_map(narrow).collect());
            } else {
                push_text(out, run)?;
            }
            rest = after;
        }
        Ok(())
    }
}

/// The byte of a letter in the code page of Western Europe, if it is the same in Latin-1.
fn narrow(letter: char) -> Option<u8> {
    u8::try_from(letter).ok().filter(|byte| !(0x80..0xA0).contains(byte))
}

/// Appends a value: text.
fn push_text(out: &mut Vec<u8>, text: &str) -> Result<(), WriteError> {
    out.extend([0x05, 0x01]);
    let at = out.len();
    out.extend([0; 2]);
    if text.is_ascii() {
        // Unlike an iterator of pairs, this becomes vector instructions.
        let start = out.len();
        out.resize(start + 2 * text.len(), 0);
        for (unit, byte) in out[start..].as_chunks_mut::<2>().0.iter_mut().zip(text.bytes()) {
            unit[0] = byte;
        }
    } else {
        out.extend(utf16(text));
    }
    let units = u16::try_from((out.len() - at) / 2 - 1).map_err(|_| WriteError::RecordSize)?;
    out[at..at + 2].copy_from_slice(&units.to_le_bytes());
    Ok(())
}

/// Writes the number of bytes after a size.
fn put_size(out: &mut [u8], at: usize) {
    let size = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&size.to_le_bytes());
}
