//! The content of a template: what the copies of its definition in all chunks have in common.

use evtx_format::binxml::Template;
use evtx_format::binxml::instance::Definition;
use evtx_format::binxml::names::name_units;
use evtx_format::{Error, ErrorKind, MAX_NAMES};

/// The content of a template, without the chunk offsets of its names.
#[derive(Debug)]
pub(super) struct TemplateContent {
    body: Box<[u8]>,
    /// In order.
    refs: Box<[NameRef]>,
    /// The names outside of the body: the stored hash of each, which is sound, its length, and its UTF-16LE units.
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
    pub(super) fn new(chunk: &[u8], definition: &Definition, template: &Template<'_>) -> Result<Self, Error> {
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

    pub(super) fn bytes(&self) -> usize {
        self.body.len() + self.names.len() + self.refs.len() * size_of::<NameRef>()
    }

    pub(super) fn matches(&self, chunk: &[u8], definition: &Definition) -> bool {
        let start = definition.body as usize;
        let body = chunk.get(start..start + definition.size as usize);
        let Some(body) = body.filter(|body| body.len() == self.body.len()) else {
            return false;
        };
        // What is compared so far of the body, and of the names.
        let (mut at, mut name_at) = (0, 0);
        for known in &self.refs {
            let (offset, inline) = reference(chunk, start + known.at);
            let name = &self.names[name_at..known.end];
            let has_name = || {
                let bytes = chunk.get(offset as usize + 4..);
                bytes.is_some_and(|bytes| bytes.starts_with(name))
            };
            if body[at..known.at] != self.body[at..known.at] || inline != known.inline || !inline && !has_name() {
                return false;
            }
            at = known.at + if inline { 8 } else { 4 };
            name_at = known.end;
        }
        body[at..] == self.body[at..]
    }
}

/// Reads a reference to a name: the chunk offset of the name, and whether the name follows the reference.
pub(super) fn reference(chunk: &[u8], at: usize) -> (u32, bool) {
    let bytes = chunk.get(at..).and_then(|rest| rest.first_chunk::<4>());
    let offset = u32::from_le_bytes(*bytes.unwrap_or(&[0xff; 4]));
    (offset, offset as usize == at + 4)
}
