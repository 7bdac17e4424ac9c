//! The chunks in the slots of a log.

use std::borrow::Cow;

use evtx_format::container::chunk::{CHUNK_SIZE, is_zeros};
use evtx_format::container::layout::Block;
use evtx_format::container::records::PromisedIds;
use evtx_format::{Interrupt, Interrupted};

use crate::recovery::{ChunkSource, NextChunk, Step};

/// The chunks in the slots of a log.
#[derive(Debug, Default)]
pub struct SlotChunks {
    /// The index of the next slot.
    slot: u64,
    /// See [`Block::used_slots`].
    used: u64,
    promised: PromisedIds,
}

impl SlotChunks {
    /// The chunks of a block that starts with a slot.
    pub fn new(block: &Block, slot: u64) -> Self {
        SlotChunks {
            slot,
            used: block.used_slots,
            promised: block.promised,
        }
    }
}

impl ChunkSource for SlotChunks {
    fn next<'b>(&mut self, bytes: &'b [u8], offset: u64, _: Interrupt<'_>) -> Result<Step<'b>, Interrupted> {
        // The caller has fewer bytes than the block if the file cannot be read further.
        if bytes.is_empty() || self.slot >= self.used && is_zeros(bytes) {
            // The rest of the block was never used.
            return Ok(Step::End);
        }
        let len = bytes.len().min(CHUNK_SIZE);
        Ok(Step::Chunk(NextChunk {
            bytes: Cow::Borrowed(&bytes[..len]),
            offset,
            slot: Some(self.slot),
            first: 0,
            promised: self.promised,
            recovery: None,
            len,
        }))
    }

    fn pass(&mut self, last: Option<u64>) {
        self.slot += 1;
        self.promised = self.promised.after(last);
    }
}
