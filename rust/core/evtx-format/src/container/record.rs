//! The frame of a record.
//!
//! A record is `2a 2a 00 00`, a size u32, an ID u64, the time at which it was written (FILETIME, u64), BinXML, and a
//! copy of the size u32. Windows aligns records to eight bytes.

use std::ops::Range;

use memchr::memmem;

use crate::bytes::{u32_at, u64_at};
use crate::error::{Error, ErrorKind, Result};
use crate::value::time::filetime_to_unix_nanos;

/// Bytes of a record before its BinXML: magic, size u32, ID u64, time written u64.
pub const RECORD_HEADER: usize = 24;

/// Bytes of a frame: the header of a record, and the copy of its size at its end. No record is smaller.
pub(super) const RECORD_FRAME: usize = RECORD_HEADER + 4;

pub(super) const RECORD_MAGIC: [u8; 4] = *b"**\0\0";

/// The place of a record, and the fields of its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Chunk offset of the record.
    pub offset: u32,
    /// Size in bytes, with the header and the copy of the size.
    pub size: u32,
    /// Record ID.
    pub id: u64,
    /// The time at which it was written, a FILETIME: 100 ns ticks since 1601-01-01 UTC.
    pub written: u64,
}

impl Record {
    /// Reads the header of the record at a chunk offset. Does not check the stored size.
    ///
    /// # Errors
    /// [`ErrorKind::RecordMagic`] if no record starts there, [`ErrorKind::Truncated`] if the chunk ends in the header.
    pub fn header(chunk: &[u8], at: usize) -> Result<Self> {
        let Some(header) = chunk.get(at..).and_then(|rest| rest.first_chunk::<RECORD_HEADER>()) else {
            let kind = ErrorKind::Truncated {
                what: "a record header",
                need: RECORD_HEADER,
                have: chunk.len().saturating_sub(at),
            };
            return Err(Error::new(at, kind));
        };
        let magic = [header[0], header[1], header[2], header[3]];
        if magic != RECORD_MAGIC {
            return Err(Error::new(at, ErrorKind::RecordMagic(magic)));
        }
        Ok(Record::of_header(header, at))
    }

    #[inline(always)]
    fn of_header(header: &[u8; RECORD_HEADER], at: usize) -> Self {
        Record {
            offset: at as u32,
            size: u32_at(header, 4).unwrap_or_default(),
            id: u64_at(header, 8).unwrap_or_default(),
            written: u64_at(header, 16).unwrap_or_default(),
        }
    }

    /// The record at a chunk offset, without a check of its magic and size; `None` if the chunk ends in the header.
    pub(super) fn unchecked(chunk: &[u8], at: usize) -> Option<Self> {
        let header = chunk.get(at..)?.first_chunk::<RECORD_HEADER>()?;
        Some(Record::of_header(header, at))
    }

    /// Reads the header of the record at a chunk offset, and checks its size.
    ///
    /// # Errors
    /// Those of [`Record::header`], and [`ErrorKind::RecordSize`] if the size is too small or runs past the chunk.
    pub fn read(chunk: &[u8], at: usize) -> Result<Self> {
        let record = Self::header(chunk, at)?;
        let available = chunk.len() - at;
        if (record.size as usize) < RECORD_FRAME || record.size as usize > available {
            let size = record.size;
            return Err(Error::new(at, ErrorKind::RecordSize { size, available }));
        }
        Ok(record)
    }

    /// Chunk offset of the record's end. The size of a record that was not checked can lead past any chunk.
    pub fn end(&self) -> usize {
        (self.offset as usize).saturating_add(self.size as usize)
    }

    /// Chunk offsets of the record's BinXML.
    pub fn binxml(&self) -> Range<usize> {
        self.offset as usize + RECORD_HEADER..self.end() - 4
    }

    /// The time at which it was written, in nanoseconds since 1970-01-01 UTC; `None` if that does not fit an i64.
    pub fn written_nanos(&self) -> Option<i64> {
        filetime_to_unix_nanos(self.written)
    }

    /// Whether the copy of the size at its end matches. Windows also reads records whose copy differs (seen in real
    /// logs).
    pub fn size_copy_matches(&self, chunk: &[u8]) -> bool {
        u32_at(chunk, self.end() - 4) == Some(self.size)
    }

    /// Whether the record after this one has the next ID and a copy of its size that matches.
    pub(super) fn is_before_next(&self, chunk: &[u8]) -> bool {
        let next = Record::read(chunk, self.end());
        next.is_ok_and(|next| next.id == self.id.wrapping_add(1) && next.size_copy_matches(chunk))
    }

    /// `Some` if the copy of its size matches and the record after it has the next ID. In logs as Windows writes them
    /// this holds for all records of a chunk but the last. The number is how many magics are in the four bytes before
    /// the copy of the size, 0 or 1: Windows pads records there, and does not clear the padding.
    #[inline(always)]
    pub(super) fn is_followed(&self, chunk: &[u8]) -> Option<usize> {
        let around = chunk.get(self.end() - 8..)?.first_chunk::<24>()?;
        let is_followed = u32_at(around, 4) == Some(self.size)
            && around[8..12] == RECORD_MAGIC
            && u64_at(around, 16) == Some(self.id.wrapping_add(1));
        is_followed.then_some(usize::from(around[..4] == RECORD_MAGIC))
    }
}

/// Chunk offset of the first record in a span whose two sizes agree and that `accept` accepts.
pub fn find(chunk: &[u8], span: Range<usize>, mut accept: impl FnMut(&Record) -> bool) -> Option<usize> {
    find_any(chunk, span, |record| record.size_copy_matches(chunk) && accept(record))
}

/// As [`find`], without a check of the copies of the sizes.
pub(super) fn find_any(chunk: &[u8], span: Range<usize>, mut accept: impl FnMut(&Record) -> bool) -> Option<usize> {
    let mut from = span.start;
    let bytes = &chunk[..chunk.len().min(span.end + RECORD_MAGIC.len() - 1)];
    while let Some(found) = memmem::find(bytes.get(from..)?, &RECORD_MAGIC) {
        let at = from + found;
        if let Ok(record) = Record::read(chunk, at)
            && accept(&record)
        {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

/// Whether the bytes from one chunk offset to another end with their own size, as a record does.
pub(super) fn ends_with_its_size(chunk: &[u8], at: usize, end: usize) -> bool {
    end >= at + RECORD_FRAME && u32_at(chunk, end - 4) == Some((end - at) as u32)
}

/// Whether a record can come after another, given by ID and chunk offset: its ID is higher, by at most one more than
/// the number of records that fit between.
pub(super) fn follows((id, at): (u64, usize), record: &Record) -> bool {
    let available = (record.offset as usize).saturating_sub(at) / RECORD_FRAME;
    let step = record.id.checked_sub(id);
    step.is_some_and(|step| step > 0 && step <= available as u64 + 1)
}

/// How often the magic of a record occurs at multiples of four bytes. (Windows aligns records to eight.)
// Without branches, so that the compiler vectorizes it.
pub(super) fn count_magics(bytes: &[u8]) -> usize {
    let magics = bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|bytes| u32::from(*bytes == RECORD_MAGIC));
    magics.sum::<u32>() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts a frame of `size` bytes at an offset, with a copy of the size.
    fn put(chunk: &mut [u8], at: usize, size: u32, id: u64) {
        chunk[at..at + 4].copy_from_slice(&RECORD_MAGIC);
        chunk[at + 4..at + 8].copy_from_slice(&size.to_le_bytes());
        chunk[at + 8..at + 16].copy_from_slice(&id.to_le_bytes());
        let end = at + size as usize;
        chunk[end - 4..end].copy_from_slice(&size.to_le_bytes());
    }

    #[test]
    fn a_record_has_space_for_its_frame_and_ends_in_the_chunk() {
        let mut chunk = vec![0; 200];
        let mut read = |size: u32| {
            chunk[100..104].copy_from_slice(&RECORD_MAGIC);
            chunk[104..108].copy_from_slice(&size.to_le_bytes());
            Record::read(&chunk, 100).map(|record| record.size)
        };
        for size in [28, 29, 99, 100] {
            assert_eq!(read(size), Ok(size), "{size}");
        }
        for size in [0, 27, 101, u32::MAX] {
            let kind = ErrorKind::RecordSize { size, available: 100 };
            assert_eq!(read(size), Err(Error::new(100, kind)), "{size}");
        }
        assert!(matches!(
            Record::read(&chunk, 180).unwrap_err().kind,
            ErrorKind::Truncated { have: 20, .. }
        ));
        assert!(matches!(
            Record::read(&chunk, 0).unwrap_err().kind,
            ErrorKind::RecordMagic([0, 0, 0, 0])
        ));
    }

    #[test]
    fn a_record_is_followed_by_the_next_id() {
        let mut valid = vec![0; 200];
        put(&mut valid, 40, 48, 7);
        put(&mut valid, 88, 40, 8);
        let shown = |chunk: &[u8]| {
            let record = Record::read(chunk, 40).expect("a record");
            (
                record.size_copy_matches(chunk),
                record.is_before_next(chunk),
                record.is_followed(chunk),
            )
        };
        assert_eq!(shown(&valid), (true, true, Some(0)));
        let changed = |at: usize, byte: u8| {
            let mut chunk = valid.clone();
            chunk[at] = byte;
            shown(&chunk)
        };
        assert_eq!(changed(84, 49), (false, true, None), "the copy of its size");
        assert_eq!(changed(88, 0), (true, false, None), "the next magic");
        assert_eq!(changed(96, 9), (true, false, None), "the next ID");
        assert_eq!(changed(124, 41), (true, false, Some(0)), "the copy of the next size");
        let mut left = valid.clone();
        left[80..84].copy_from_slice(&RECORD_MAGIC);
        assert_eq!(shown(&left), (true, true, Some(1)), "a magic in its last bytes");
    }

    #[test]
    fn records_are_found_by_their_frames() {
        let mut chunk = vec![0; 300];
        put(&mut chunk, 10, 30, 1);
        put(&mut chunk, 100, 40, 2);
        put(&mut chunk, 200, 50, 3);
        chunk[136] = 0;
        let any = |span| find_any(&chunk, span, |_| true);
        let valid = |span| find(&chunk, span, |_| true);
        assert_eq!(
            (any(0..300), any(11..300), any(101..300)),
            (Some(10), Some(100), Some(200))
        );
        assert_eq!((any(0..10), any(0..11), any(201..300)), (None, Some(10), None));
        assert_eq!((valid(0..300), valid(11..300)), (Some(10), Some(200)));
        assert_eq!(find_any(&chunk, 0..300, |record| record.id == 3), Some(200));
        assert_eq!(count_magics(&chunk), 2, "those at multiples of four");
        assert!(ends_with_its_size(&chunk, 10, 40) && !ends_with_its_size(&chunk, 10, 41));
        assert!(!ends_with_its_size(&chunk, 20, 40), "too small");
    }

    #[test]
    fn a_later_record_has_no_higher_id_than_there_is_space_for() {
        let later = |offset, id| {
            let record = Record {
                offset,
                size: 28,
                id,
                written: 0,
            };
            follows((10, 1000), &record)
        };
        assert!(later(1028, 11) && later(1028, 12) && !later(1028, 13));
        assert!(!later(1028, 10) && !later(1028, 9));
        assert!(later(1027, 11) && !later(1027, 12));
        assert!(later(500, 11) && !later(500, 12), "an earlier offset has no space");
    }
}
