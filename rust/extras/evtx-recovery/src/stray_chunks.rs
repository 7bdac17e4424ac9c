//! The chunks of logs with stray chunks, which are at no slot.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use evtx_arrow::{ChunkSource, NextChunk, SlotChunks, Step};
use evtx_format::container::records::PromisedIds;
use evtx_format::{Interrupt, Interrupted};

use crate::state::ChunkState;
use crate::stray_search::StrayChunk;

/// The chunks in the slots of a log.
pub(crate) struct RecoveredSlots {
    pub(crate) slots: SlotChunks,
    /// The stray chunks of the log, by offset.
    pub(crate) stray_chunks: Arc<[StrayChunk]>,
}

impl ChunkSource for RecoveredSlots {
    fn next<'b>(&mut self, bytes: &'b [u8], offset: u64, interrupt: Interrupt<'_>) -> Result<Step<'b>, Interrupted> {
        let mut step = self.slots.next(bytes, offset, interrupt)?;
        if let Step::Chunk(next) = &mut step {
            next.recovery = Some(Box::new(ChunkState::of_slot(&self.stray_chunks)));
        }
        Ok(step)
    }

    fn pass(&mut self, last: Option<u64>) {
        self.slots.pass(last);
    }
}

/// Some stray chunks of a log.
#[derive(Default)]
pub(crate) struct StrayChunks {
    /// Those that are left, by offset.
    pub(crate) left: VecDeque<StrayChunk>,
    pub(crate) promised: PromisedIds,
}

impl ChunkSource for StrayChunks {
    /// The next chunk. The bytes of the block stay, because stray chunks can overlap.
    fn next<'b>(&mut self, bytes: &'b [u8], offset: u64, _: Interrupt<'_>) -> Result<Step<'b>, Interrupted> {
        let Some(stray) = self.left.front() else {
            return Ok(Step::End);
        };
        let chunk = bytes.get((stray.offset - offset) as usize..).unwrap_or_default();
        Ok(Step::Chunk(NextChunk {
            bytes: Cow::Borrowed(&chunk[..chunk.len().min(stray.len as usize)]),
            offset: stray.offset,
            slot: None,
            first: 0,
            promised: self.promised,
            recovery: Some(Box::new(ChunkState::of_stray_chunk())),
            len: 0,
        }))
    }

    fn pass(&mut self, _: Option<u64>) {
        self.left.pop_front();
    }
}
