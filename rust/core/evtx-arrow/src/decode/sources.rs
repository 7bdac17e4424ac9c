//! Where the chunks of a block come from: the slots of a log, or recovery.

mod slots;
mod stray_chunks;
mod image;

use evtx_format::container::layout::{Block, Chunks};
use evtx_format::{Interrupt, Interrupted};

use super::recovery::DefinitionSource;
use super::step::Step;
use image::ImageChunks;
use slots::SlotChunks;
use stray_chunks::StrayChunkSource;

/// The chunks of a block.
pub(super) enum ChunkSource {
    Slots(SlotChunks),
    StrayChunks(StrayChunkSource),
    Image(ImageChunks),
}

impl ChunkSource {
    /// The source of no chunks.
    pub(super) fn empty() -> Self {
        ChunkSource::Slots(SlotChunks::default())
    }

    /// The chunks of a block. If `recovers`, records are also looked for outside of what is live.
    pub(super) fn new(block: Block, recovers: bool) -> Self {
        match block.chunks {
            Chunks::Slots(slot) => ChunkSource::Slots(SlotChunks::new(block, slot, recovers)),
            Chunks::StrayChunks(first, count) => {
                ChunkSource::StrayChunks(StrayChunkSource::new(block, first..first + count))
            }
            Chunks::Image(own) => ChunkSource::Image(ImageChunks::new(&block, own)),
        }
    }

    /// What the bytes of the block from a file offset on are. The answer stays the same until [`pass`](Self::pass).
    pub(super) fn next<'b>(
        &mut self,
        bytes: &'b [u8],
        offset: u64,
        definitions: &DefinitionSource,
        interrupt: Interrupt<'_>,
    ) -> Result<Step<'b>, Interrupted> {
        match self {
            ChunkSource::Slots(slots) => Ok(slots.next(bytes, offset)),
            ChunkSource::StrayChunks(stray_chunks) => Ok(stray_chunks.next(bytes, offset)),
            ChunkSource::Image(image) => image.next(bytes, offset, definitions, interrupt),
        }
    }

    /// Moves past a chunk. `last` is the ID of its last record, as its header has it.
    pub(super) fn pass(&mut self, last: Option<u64>) {
        match self {
            ChunkSource::Slots(slots) => slots.pass(last),
            ChunkSource::StrayChunks(stray_chunks) => stray_chunks.pass(),
            ChunkSource::Image(_) => {}
        }
    }
}
