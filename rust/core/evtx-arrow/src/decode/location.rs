//! Where a chunk is, and how the text of an error names it.

use std::ops::Range;
use std::sync::Arc;

use evtx_format::container::record::Record;
use evtx_format::{Error, ErrorKind};

use crate::filter::HeaderValues;

/// Records of a log that was made of another file, where they may be no events, or have values that no column has.
#[derive(Debug, Clone)]
pub struct Doubt {
    /// The IDs of the records.
    pub records: Range<u64>,
    /// Why the rows are not valid. The records of a file can share the text.
    pub why: Arc<str>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ChunkLocation {
    pub(super) filename: Arc<str>,
    /// File offset in bytes. That of a chunk whose first bytes are lost can be before the file: it wraps.
    pub(crate) offset: u64,
    /// The index of its slot, if it has one.
    pub(super) slot: Option<u64>,
    /// The chunk offset of its first byte that is in the file.
    pub(super) first: u32,
    /// The doubts about the file, by record ID.
    pub(super) doubts: Arc<[Doubt]>,
}

impl ChunkLocation {
    /// The index of the slot, as the column has it.
    #[inline]
    pub(crate) fn chunk_index(&self) -> Option<u32> {
        u32::try_from(self.slot?).ok()
    }

    #[inline]
    pub(crate) fn file_offset(&self, chunk_offset: u32) -> u64 {
        self.offset.wrapping_add(chunk_offset.into())
    }

    /// The header values of a record in the chunk.
    #[inline]
    pub(crate) fn header(&self, record_id: u64, chunk_offset: u32, is_recovered: bool) -> HeaderValues<'_> {
        HeaderValues {
            record_id: Some(record_id),
            filename: &self.filename,
            chunk_index: self.chunk_index(),
            record_offset: Some(self.file_offset(chunk_offset)),
            recovered: Some(is_recovered),
        }
    }

    /// The text of an error in the chunk, with the file, the chunk and the file offset.
    pub(super) fn describe(&self, error: &Error) -> String {
        let (filename, at) = (&self.filename, self.file_offset(error.offset));
        match self.slot {
            Some(slot) => format!("{filename}: chunk {slot}, offset {at:#x}: {error}"),
            None if self.first > 0 => format!("{filename}: offset {at:#x}: {error}"),
            None => format!("{filename}: chunk at {:#x}, offset {at:#x}: {error}", self.offset),
        }
    }

    /// The doubt about a record.
    #[inline]
    pub(super) fn doubt(&self, record: &Record) -> Option<&Doubt> {
        let after = self.doubts.partition_point(|doubt| doubt.records.start <= record.id);
        let doubt = self.doubts.get(after.checked_sub(1)?)?;
        doubt.records.contains(&record.id).then_some(doubt)
    }

    /// The text of an error in a record. An error without an offset, such as a text that is too long, gets the record's.
    #[cold]
    pub(super) fn describe_in(&self, record: &Record, error: Error) -> String {
        if error.kind == ErrorKind::Doubted
            && let Some(doubt) = self.doubt(record)
        {
            return format!("{}: {}", self.filename, doubt.why);
        }
        let is_placed = error.offset != 0 && error.offset >= self.first;
        let offset = if is_placed { error.offset } else { record.offset };
        self.describe(&Error { offset, ..error })
    }
}
