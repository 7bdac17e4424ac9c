//! Element and attribute names.
//!
//! A name is stored once per chunk, at its first use: `next` u32 (the chain of its hash bucket), `hash` u16,
//! `length` u16 in UTF-16 units, the units, and a NUL. BinXML refers to it by chunk offset. The chunk
//! header's string table points to the chains, but is not needed to read names, so damage there costs
//! nothing.

use std::cell::RefCell;

use bumpalo::Bump;
use hashbrown::HashMap;

use crate::bytes::u16_at;
use crate::error::{Error, ErrorKind, Result};
use crate::text::{self, Form};

/// Bytes before a name's units: next u32, hash u16, length u16.
pub const NAME_HEADER: usize = 8;

/// The UTF-16LE units of the name at a chunk offset.
///
/// # Errors
/// [`ErrorKind::Truncated`] where the name runs past the chunk.
pub fn name_units(chunk: &[u8], offset: u32) -> Result<&[u8]> {
    let start = offset as usize;
    let length = start.checked_add(6).and_then(|at| u16_at(chunk, at));
    let units = length.and_then(|length| {
        let units = start + NAME_HEADER;
        chunk.get(units..units + 2 * usize::from(length))
    });
    units.ok_or_else(|| {
        let kind = ErrorKind::Truncated {
            what: "a name",
            need: NAME_HEADER + 2 * length.map_or(0, usize::from),
            have: chunk.len().saturating_sub(start),
        };
        Error::new(start, kind)
    })
}

/// The names of a chunk, decoded at their first use and kept in the chunk's arena.
pub struct Names<'c> {
    chunk: &'c [u8],
    arena: &'c Bump,
    known: RefCell<HashMap<u32, &'c str>>,
}

impl<'c> Names<'c> {
    /// The names of `chunk`, to be kept in `arena`.
    pub fn new(chunk: &'c [u8], arena: &'c Bump) -> Self {
        let known = RefCell::default();
        Names { chunk, arena, known }
    }

    /// The name at a chunk offset.
    ///
    /// # Errors
    /// Where it runs past the chunk.
    pub fn get(&self, offset: u32) -> Result<&'c str> {
        if let Some(name) = self.known.borrow().get(&offset) {
            return Ok(name);
        }
        let mut name = Vec::new();
        text::push_utf16(&mut name, name_units(self.chunk, offset)?, Form::Raw);
        let name = String::from_utf8(name).unwrap_or_default();
        let name = &*self.arena.alloc_str(&name);
        self.known.borrow_mut().insert(offset, name);
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_by_offset_and_bounded_by_the_chunk() {
        let mut chunk = vec![0; 16];
        chunk.extend_from_slice(&[0, 0, 0, 0, 0xba, 0x0c, 2, 0, b'I', 0, b'd', 0, 0, 0]);
        let arena = Bump::new();
        let names = Names::new(&chunk, &arena);
        assert_eq!(names.get(16), Ok("Id"));
        assert_eq!(names.get(16), Ok("Id"));
        for beyond in [20, 29, 30, u32::MAX] {
            let error = names.get(beyond).unwrap_err();
            assert!(matches!(error.kind, ErrorKind::Truncated { what: "a name", .. }));
        }
    }
}
