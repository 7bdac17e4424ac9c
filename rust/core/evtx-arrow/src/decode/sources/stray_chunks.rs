//! Stray chunks, which are at no slot of a log.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use evtx_format::container::layout::{Block, StrayChunk};
use evtx_format::container::records::PromisedIds;

use crate::decode::recovery::Recovery;
use crate::decode::step::{NextChunk, Step};

/// Some stray chunks of a file.
pub(crate) struct StrayChunkSource {
    /// All of them, by offset.
    all: Arc<[StrayChunk]>,
    /// The indices of those that are left.
    left: Range<usize>,
    promised: PromisedIds,
}

impl StrayChunkSource {
    pub(super) fn new(block: Block, left: Range<usize>) -> Self {
        StrayChunkSource {
            all: block.stray_chunks,
            left,
            promised: block.promised.after(None),
        }
    }

    /// The next chunk. The bytes of the block stay, because stray chunks can overlap.
    pub(super) fn next<'b>(&self, bytes: &'b [u8], offset: u64) -> Step<'b> {
        let stray = self.all.get(self.left.clone()).and_then(|left| left.first());
        let Some(stray) = stray else { return Step::End };
        let chunk = bytes.get((stray.offset - offset) as usize..).unwrap_or_default();
        Step::Chunk(NextChunk {
            bytes: Cow::Borrowed(&chunk[..chunk.len().min(stray.len as usize)]),
            offset: stray.offset,
            slot: None,
            first: 0,
            promised: self.promised,
            recovery: Some(Recovery::of_stray_chunk().into()),
            len: 0,
        })
    }

    pub(super) fn pass(&mut self) {
        self.left.start += 1;
    }
}
