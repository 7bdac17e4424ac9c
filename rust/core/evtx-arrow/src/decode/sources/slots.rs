//! The chunks in the slots of a log.

use std::borrow::Cow;
use std::sync::Arc;

use evtx_format::container::chunk::{CHUNK_SIZE, is_zeros};
use evtx_format::container::layout::{Block, StrayChunk};
use evtx_format::container::records::PromisedIds;

use crate::decode::recovery::Recovery;
use crate::decode::step::{NextChunk, Step};

/// The chunks in the slots of a log.
#[derive(Default)]
pub(crate) struct SlotChunks {
    /// The index of the next slot.
    slot: u64,
    /// See [`Block::used_slots`].
    used: u64,
    promised: PromisedIds,
    /// If records are recovered: the stray chunks of the file.
    stray_chunks: Option<Arc<[StrayChunk]>>,
}

impl SlotChunks {
    /// The chunks of a block that starts with a slot. If `recovers`, records are also looked for outside of what is live.
    pub(super) fn new(block: Block, slot: u64, recovers: bool) -> Self {
        SlotChunks {
            slot,
            used: block.used_slots,
            promised: block.promised,
            stray_chunks: recovers.then_some(block.stray_chunks),
        }
    }

    /// Moves past a chunk. `last` is the ID of its last record, as its header has it.
    pub(super) fn pass(&mut self, last: Option<u64>) {
        self.slot += 1;
        self.promised = self.promised.after(last);
    }

    pub(super) fn next<'b>(&self, bytes: &'b [u8], offset: u64) -> Step<'b> {
        // The caller has fewer bytes than the block if the file cannot be read further.
        if bytes.is_empty() || self.slot >= self.used && is_zeros(bytes) {
            // The rest of the block was never used.
            return Step::End;
        }
        let len = bytes.len().min(CHUNK_SIZE);
        Step::Chunk(NextChunk {
            bytes: Cow::Borrowed(&bytes[..len]),
            offset,
            slot: Some(self.slot),
            first: 0,
            promised: self.promised,
            recovery: self
                .stray_chunks
                .as_ref()
                .map(|stray_chunks| Recovery::of_slot(stray_chunks).into()),
            len,
        })
    }
}
