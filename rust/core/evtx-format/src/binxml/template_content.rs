//! The content of a template: what the copies of its definition in all chunks have in common.

use std::ops::Range;

use super::instance::Definition;
use super::names::name_units;
use super::reader::Template;
use crate::error::{Error, ErrorKind};
use crate::limits::MAX_NAMES;

/// The content of a template, without the chunk offsets of its names.
#[derive(Debug)]
pub struct TemplateContent {
    /// The bytes after the header of the definition.
    pub body: Box<[u8]>,
    /// In order.
    pub refs: Box<[NameRef]>,
    /// The names outside of the body: the stored hash of each, which is valid, its length, and its UTF-16LE units.
    pub names: Box<[u8]>,
}

/// A reference to a name in the content of a template.
#[derive(Debug)]
pub struct NameRef {
    /// Offset in the body of the u32 reference.
    pub at: usize,
    /// Whether the name follows the reference, after the u32 that links the names of its hash bucket.
    pub inline: bool,
    /// The end of its bytes in `names`. They start at the end of the name before.
    pub end: usize,
}

impl TemplateContent {
    /// The content of a definition in a chunk.
    ///
    /// # Errors
    /// What is wrong with a name.
    pub fn new(chunk: &[u8], definition: &Definition, template: &Template<'_>) -> Result<Self, Error> {
        let body = definition.body as usize..(definition.body + definition.size) as usize;
        let body = chunk.get(body).unwrap_or_default();
        let mut names = Vec::new();
        let mut refs = Vec::with_capacity(template.name_refs.len());
        for &name in &template.name_refs {
            let (offset, inline) = reference(chunk, name as usize);
            let at = (name - definition.body) as usize;
            let units = name_units(chunk, offset)?;
            if !inline {
                let behind_link = chunk.get(offset as usize + 4..).unwrap_or_default();
                names.extend_from_slice(&behind_link[..units.len() + 4]);
            }
            if names.len() > MAX_NAMES {
                return Err(Error::new(name as usize, ErrorKind::Names));
            }
            refs.push(NameRef {
                at,
                inline,
                end: names.len(),
            });
        }
        Ok(TemplateContent {
            body: body.into(),
            refs: refs.into(),
            names: names.into(),
        })
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.body.len() + self.names.len() + self.refs.len() * size_of::<NameRef>()
    }

    /// Whether a definition of a chunk is another copy, in which the same names are inline.
    pub fn matches(&self, chunk: &[u8], definition: &Definition) -> bool {
        self.agrees(chunk, definition, |range, name| chunk.get(range) == Some(name))
    }

    /// Whether a definition of a chunk has the same bytes apart from references and links, and the same inline names, and
    /// `has_name` is true for each of the others: for the chunk offsets of its bytes from the hash on, and the bytes.
    pub fn agrees<'t>(
        &'t self,
        chunk: &[u8],
        definition: &Definition,
        mut has_name: impl FnMut(Range<usize>, &'t [u8]) -> bool,
    ) -> bool {
        let start = definition.body as usize;
        let body = chunk.get(start..start + definition.size as usize);
        let Some(body) = body.filter(|body| body.len() == self.body.len()) else {
            return false;
        };
        // What is compared so far of the body, and of the names.
        let (mut at, mut name_at) = (0, 0);
        for known in &self.refs {
            let (offset, inline) = reference(chunk, start + known.at);
            let (name, start) = (&self.names[name_at..known.end], offset as usize + 4);
            if body[at..known.at] != self.body[at..known.at]
                || inline != known.inline
                || !inline && !has_name(start..start + name.len(), name)
            {
                return false;
            }
            at = known.at + if inline { 8 } else { 4 };
            name_at = known.end;
        }
        body[at..] == self.body[at..]
    }
}

/// Reads a reference to a name: the chunk offset of the name, and whether the name follows the reference.
pub fn reference(chunk: &[u8], at: usize) -> (u32, bool) {
    let bytes = chunk.get(at..).and_then(|rest| rest.first_chunk::<4>());
    let offset = u32::from_le_bytes(*bytes.unwrap_or(&[0xff; 4]));
    (offset, offset as usize == at + 4)
}
