//! The content of a template: what the copies of its definition in all chunks have in common.

use std::ops::Range;

use evtx_format::binxml::Template;
use evtx_format::binxml::instance::{DEFINITION_HEADER, Definition};
use evtx_format::binxml::names::name_units;
use evtx_format::{Error, ErrorKind, MAX_NAMES};

/// The content of a template, without the chunk offsets of its names.
#[derive(Debug)]
pub(crate) struct TemplateContent {
    body: Box<[u8]>,
    /// In order.
    refs: Box<[NameRef]>,
    /// The names outside of the body: the stored hash of each, which is valid, its length, and its UTF-16LE units.
    pub(super) names: Box<[u8]>,
}

#[derive(Debug)]
pub(super) struct NameRef {
    /// Offset in the body of the u32 reference.
    at: usize,
    /// Whether the name follows the reference, after the u32 that links the names of its hash bucket.
    inline: bool,
    /// The end of its bytes in `names`. They start at the end of the name before.
    end: usize,
}

impl TemplateContent {
    pub(crate) fn new(chunk: &[u8], definition: &Definition, template: &Template<'_>) -> Result<Self, Error> {
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

    pub(crate) fn bytes(&self) -> usize {
        self.body.len() + self.names.len() + self.refs.len() * size_of::<NameRef>()
    }

    /// Whether a definition of a chunk is another copy, in which the same names are inline.
    pub(crate) fn matches(&self, chunk: &[u8], definition: &Definition) -> bool {
        self.agrees(chunk, definition, |range, name| chunk.get(range) == Some(name))
    }

    /// Whether a definition of a chunk has the same bytes apart from references and links, and the same inline names, and
    /// `has_name` is true for each of the others: for the chunk offsets of its bytes from the hash on, and the bytes.
    fn agrees<'t>(
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

    /// Appends a copy of the definition to a chunk, with its names. Returns its chunk offset.
    pub(crate) fn append(&self, guid: [u8; 16], chunk: &mut Vec<u8>) -> usize {
        let at = chunk.len();
        chunk.extend_from_slice(&[0; 4]);
        chunk.extend_from_slice(&guid);
        chunk.extend_from_slice(&(self.body.len() as u32).to_le_bytes());
        chunk.extend_from_slice(&self.body);
        self.append_names(chunk, at + DEFINITION_HEADER);
        at
    }

    /// Appends the names that a definition of a chunk has lost. Returns false, and does nothing, if the definition is not
    /// another copy.
    pub(crate) fn complete(&self, chunk: &mut Vec<u8>, definition: &Definition) -> bool {
        let is_copy = self.agrees(chunk, definition, |_, _| true);
        if is_copy {
            self.append_names(chunk, definition.body as usize);
        }
        is_copy
    }

    fn append_names(&self, chunk: &mut Vec<u8>, body: usize) {
        let mut name_at = 0;
        for known in &self.refs {
            let (name, at) = (&self.names[name_at..known.end], body + known.at);
            name_at = known.end;
            let (offset, _) = reference(chunk, at);
            let start = offset as usize + 4;
            let offset = if known.inline {
                at + 4
            } else if chunk.get(start..start + name.len()) == Some(name) {
                continue;
            } else {
                let end = chunk.len();
                chunk.extend_from_slice(&[0; 4]);
                chunk.extend_from_slice(name);
                chunk.extend_from_slice(&[0; 2]);
                end
            };
            chunk[at..at + 4].copy_from_slice(&(offset as u32).to_le_bytes());
        }
    }
}

/// Reads a reference to a name: the chunk offset of the name, and whether the name follows the reference.
pub(super) fn reference(chunk: &[u8], at: usize) -> (u32, bool) {
    let bytes = chunk.get(at..).and_then(|rest| rest.first_chunk::<4>());
    let offset = u32::from_le_bytes(*bytes.unwrap_or(&[0xff; 4]));
    (offset, offset as usize == at + 4)
}
