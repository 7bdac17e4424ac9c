//! Element and attribute names.
//!
//! A name is stored once per chunk, at its first use: `next` u32 (chunk offset of the next name in its hash bucket),
//! `hash` u16, `length` u16 in UTF-16 units, the units, and a NUL unit. BinXML refers to it by its chunk offset. The
//! string table in the chunk header, with the hash buckets, is not needed to read names.

use std::cell::Cell;

use bumpalo::Bump;

use crate::bytes::u16_at;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::MAX_NAMES;
use crate::value::text::{self, Escaping};

/// Bytes before a name's units: next u32, hash u16, length u16.
pub const NAME_HEADER: usize = 8;

/// The UTF-16LE bytes of the name at a chunk offset, without the NUL.
///
/// # Errors
/// [`ErrorKind::Truncated`] if the name runs past the end of the chunk.
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

/// A name of a chunk.
#[derive(Debug)]
pub struct Name<'c> {
    /// The text of the name.
    pub text: &'c str,
    /// The chunk offset of the name.
    pub(super) offset: u32,
    /// Whether the stored hash is the hash of the units.
    pub(crate) is_valid: bool,
    /// The name that was read before this one and has the same bucket of [`Names::known`].
    before: Option<&'c Name<'c>>,
}

/// The size of the hash table of names. Most chunks have fewer names.
const BUCKETS: usize = 256;

/// The names of a chunk. Each is decoded once and kept in the chunk's arena, up to [`MAX_NAMES`] bytes of text.
pub struct Names<'c> {
    chunk: &'c [u8],
    arena: &'c Bump,
    /// How many more bytes of text can be kept.
    left: Cell<usize>,
    /// A hash table by some bits of the offset: the name that was read last of those with these bits.
    known: [Cell<Option<&'c Name<'c>>>; BUCKETS],
}

impl<'c> Names<'c> {
    /// The names of `chunk`, which are kept in `arena`.
    pub fn new(chunk: &'c [u8], arena: &'c Bump) -> Self {
        Names {
            chunk,
            arena,
            left: Cell::new(MAX_NAMES),
            known: [const { Cell::new(None) }; BUCKETS],
        }
    }

    /// The name at a chunk offset. Without space to keep it, it is decoded into `arena` and reduces `left` by its
    /// bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`] if the name runs past the chunk's end, [`ErrorKind::Names`] if it exceeds `left`.
    #[inline]
    pub fn get<'a>(&self, offset: u32, arena: &'a Bump, left: &Cell<usize>) -> Result<&'a Name<'a>>
    where
        'c: 'a,
    {
        let mut next = self.known[offset as usize / 4 % BUCKETS].get();
        while let Some(name) = next {
            if name.offset == offset {
                return Ok(name);
            }
            next = name.before;
        }
        self.decode(offset, arena, left)
    }

    #[inline(never)]
    fn decode<'a>(&self, offset: u32, arena: &'a Bump, left: &Cell<usize>) -> Result<&'a Name<'a>>
    where
        'c: 'a,
    {
        let units = name_units(self.chunk, offset)?;
        // No unit becomes more than three bytes of UTF-8.
        let size = 3 * (units.len() / 2);
        if let Some(remaining) = self.left.get().checked_sub(size) {
            self.left.set(remaining);
            let bucket = &self.known[offset as usize / 4 % BUCKETS];
            let name = self.decode_into(offset, units, self.arena, bucket.get());
            bucket.set(Some(name));
            return Ok(name);
        }
        let remaining = left.get().checked_sub(size);
        left.set(remaining.ok_or_else(|| Error::new(offset as usize, ErrorKind::Names))?);
        Ok(self.decode_into(offset, units, arena, None))
    }

    fn decode_into<'a>(
        &self,
        offset: u32,
        units: &[u8],
        arena: &'a Bump,
        before: Option<&'a Name<'a>>,
    ) -> &'a Name<'a> {
        let mut text = Vec::new();
        text::push_utf16(&mut text, units, Escaping::Plain);
        let text = String::from_utf8(text).unwrap_or_default();
        let text = arena.alloc_str(&text);
        arena.alloc_with(|| Name {
            text,
            offset,
            // Zeroed bytes would be an empty name whose hash matches, but no element has an empty name.
            is_valid: !units.is_empty() && u16_at(self.chunk, offset as usize + 4) == Some(hash(units)),
            before,
        })
    }
}

/// The hash of a name: the lower 16 bits of a polynomial of its UTF-16 units (seen in all logs).
fn hash(units: &[u8]) -> u16 {
    let units = units.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
    let hash = units.fold(0_u32, |hash, unit| hash.wrapping_mul(65_599).wrapping_add(unit.into()));
    hash as u16
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
        let none = Cell::new(0);
        for _ in 0..2 {
            assert_eq!(names.get(16, &arena, &none).map(|name| name.text), Ok("Id"));
        }
        for beyond in [20, 29, 30, u32::MAX] {
            let error = names.get(beyond, &arena, &none).unwrap_err();
            assert!(matches!(error.kind, ErrorKind::Truncated { what: "a name", .. }));
        }
    }

    #[test]
    fn names_that_overlap_are_kept_as_long_as_there_is_space() {
        // A name of 10,000 units starts at each even offset. Its header is text of the name before.
        let chunk: Vec<u8> = 10_000_u16.to_le_bytes().repeat(16_000);
        let (kept, own) = (Bump::new(), Bump::new());
        let names = Names::new(&chunk, &kept);
        let left = Cell::new(MAX_NAMES);
        let read = |offset: u32| names.get(offset, &own, &left).map(|name| name.text.chars().count());
        assert!((0..2000).step_by(2).filter(|&offset| read(offset).is_ok()).count() < 100);
        assert_eq!(read(2000).map_err(|error| error.kind), Err(ErrorKind::Names));
        assert!(kept.allocated_bytes() + own.allocated_bytes() < 8 * MAX_NAMES);
        // The next record has as much again, and names that are kept cost nothing.
        left.set(0);
        assert_eq!(read(0), Ok(10_000));
        left.set(MAX_NAMES);
        assert_eq!(read(2000), Ok(10_000));
    }
}
