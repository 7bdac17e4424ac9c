//! The records in stray chunks, which slots around them may also lead to.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use evtx_format::Error;
use evtx_format::container::layout::{Chunks, Stray};
use evtx_format::container::record::Record;
use evtx_format::container::records::{FoundRecord, Origin};

use super::batch::BareRow;
use super::place::ChunkPlace;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    Slots,
    Image,
    /// The slots around stray chunks. They give no rows: they are read to know which of their records are damaged.
    AroundStrays,
    Strays,
}

/// The stray chunks of a file, and what a block of them has found so far.
pub(super) struct StrayChunks {
    pub(super) pass: Pass,
    /// All stray chunks of the file, by offset.
    pub(super) all: Arc<[Stray]>,
    /// Those of the block that are not decoded yet.
    pub(super) left: Range<usize>,
    /// The damaged records of the slots around them, by file offset. Those that no stray chunk has are reported.
    pub(super) failed: BTreeMap<u64, BareRow>,
}

impl StrayChunks {
    /// Those of a block that begins.
    pub(super) fn new(chunks: Chunks, all: Arc<[Stray]>) -> Self {
        let (pass, left) = match chunks {
            Chunks::Slots(_) => (Pass::Slots, 0..0),
            Chunks::Image(_) => (Pass::Image, 0..0),
            Chunks::Strays(first, count) => (Pass::AroundStrays, first..first + count),
        };
        StrayChunks {
            pass,
            all,
            left,
            failed: BTreeMap::new(),
        }
    }

    /// Whether the slot that leads to a record leaves it to a stray chunk: the record is inside one, and is damaged or
    /// carved in the slot. Notes the damaged records of slots around stray chunks.
    pub(super) fn take(&mut self, found: &FoundRecord, damage: Option<Error>, place: &ChunkPlace) -> bool {
        let offset = place.file_offset(found.record.offset);
        match self.pass {
            Pass::Slots => (damage.is_some() || found.origin == Origin::Carved) && self.contain(offset),
            Pass::AroundStrays => {
                let mut strays = self.all.iter().skip(self.left.start).take(self.left.len());
                if let Some(error) =
                    damage.filter(|_| found.origin != Origin::Carved && strays.any(|stray| stray.contains(offset)))
                {
                    let row = BareRow {
                        record: Some(found.record),
                        chunk: place.chunk_index(),
                        offset: Some(offset),
                        error: place.describe_in(&found.record, error),
                    };
                    self.failed.insert(offset, row);
                }
                true
            }
            Pass::Image | Pass::Strays => false,
        }
    }

    pub(super) fn next(&self) -> Option<Stray> {
        self.all.get(self.left.start).filter(|_| !self.left.is_empty()).copied()
    }

    fn contain(&self, offset: u64) -> bool {
        let after = self.all.partition_point(|stray| stray.offset <= offset);
        after > 0 && self.all[after - 1].contains(offset)
    }

    /// Forgets the damage to a record that a stray chunk has given as a row.
    #[inline]
    pub(super) fn read(&mut self, record: &Record, place: &ChunkPlace) {
        if self.pass == Pass::Strays {
            self.failed.remove(&place.file_offset(record.offset));
        }
    }
}
