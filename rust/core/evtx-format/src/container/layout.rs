//! The layout of a file: where its chunks are, in the order of their records.
//!
//! Chunks have slots of 64 KiB, from the end of the 4,096-byte header to the end of the file. The counts in the header of
//! a log that was copied while it was open (*dirty*) are stale, so they are not used to find chunks.

use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use super::chunk::CHUNK_SIZE;
use super::header::{FILE_HEADER, FileHeader};
use super::records::PromisedIds;

/// Chunks in a block: 1 MiB. One thread reads a block at once and decodes it.
pub const BLOCK_CHUNKS: u64 = 16;

/// Chunks in a block of a remote file, where each read takes long: 8 MiB.
pub const REMOTE_BLOCK_CHUNKS: u64 = 128;

/// What recovery has found in a file besides the slots: blocks that come after theirs. Only recovery knows what is in them.
pub trait FoundBlocks: Debug + Send + Sync + Any {
    /// How many there are.
    fn count(&self) -> u64;

    /// The bytes of the file that the block with an index covers.
    fn bytes(&self, index: u64) -> Range<u64>;
}

/// A range of a file that is read at once, and the chunks in it.
#[derive(Debug, Clone)]
pub struct Block {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length in bytes. The last slot of a file can be cut short.
    pub len: u64,
    /// Which chunks in those bytes belong to the block.
    pub chunks: Chunks,
    /// What recovery has found in the file.
    pub found: Option<Arc<dyn FoundBlocks>>,
    /// The IDs that the log promises to the first chunk. [`Layout`] knows those of the file header only.
    pub promised: PromisedIds,
    /// The slots before this index were used, also if they are zeros. [`Layout`] knows those that the file header lists. The
    /// bytes of the block show the others, unless it ends with zeros.
    pub used_slots: u64,
}

/// The chunks of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunks {
    /// The chunks follow each other from the start of the block. Holds the index in the file of the first slot.
    Slots(u64),
    /// Recovery knows them. Holds the index of the block among the [`FoundBlocks`].
    Found(u64),
}

/// Where the chunks of a file are, in the order of their records.
#[derive(Debug, Clone)]
pub struct Layout {
    size: u64,
    /// The slots that are read, in this order.
    ranges: [Range<u64>; 2],
    /// Chunks in a block.
    block_chunks: u64,
    found: Option<Arc<dyn FoundBlocks>>,
    /// The IDs that the file header promises to the chunks.
    promised: PromisedIds,
    /// How many chunks the file header lists.
    listed_chunks: u64,
}

impl Layout {
    /// A log of `size` bytes whose oldest records are in the slot with index `oldest`.
    pub fn new(size: u64, oldest: u64) -> Self {
        let slots = slots_of(size);
        let oldest = oldest.min(slots.saturating_sub(1));
        Layout {
            size,
            ranges: [oldest..slots, 0..oldest],
            block_chunks: BLOCK_CHUNKS,
            found: None,
            promised: PromisedIds::default(),
            listed_chunks: 0,
        }
    }

    /// The layout with blocks of `chunks` chunks, at least one.
    pub fn in_blocks_of(self, chunks: u64) -> Self {
        Layout {
            block_chunks: chunks.max(1),
            ..self
        }
    }

    /// The layout with these slots only, in the order of the file. Slots that the file does not have are left out.
    pub fn of_slots(self, slots: Range<u64>) -> Self {
        let end = slots.end.min(slots_of(self.size));
        Layout {
            ranges: [slots.start.min(end)..end, 0..0],
            ..self
        }
    }

    /// The layout with what a file header says about the chunks.
    pub(super) fn with_header(self, header: &FileHeader) -> Self {
        Layout {
            promised: PromisedIds::of_log(header),
            listed_chunks: header.listed_chunks(),
            ..self
        }
    }

    /// The layout with what recovery has found.
    pub fn with_found(self, found: Arc<dyn FoundBlocks>) -> Self {
        let found = Some(found);
        Layout { found, ..self }
    }

    /// How many blocks a range of slots has.
    fn blocks_of(&self, range: &Range<u64>) -> u64 {
        (range.end - range.start).div_ceil(self.block_chunks)
    }

    /// How many blocks the file has.
    pub fn blocks(&self) -> u64 {
        let of_slots: u64 = self.ranges.iter().map(|range| self.blocks_of(range)).sum();
        of_slots + self.found.as_ref().map_or(0, |found| found.count())
    }

    /// The block with an index; `None` after the last. Blocks are in the order of the records: from the oldest chunk
    /// to the end of the file, then from the file's start, then those that recovery has found.
    pub fn block(&self, mut index: u64) -> Option<Block> {
        for range in &self.ranges {
            let Some(later) = index.checked_sub(self.blocks_of(range)) else {
                let first = range.start + index * self.block_chunks;
                let end = slot_offset((first + self.block_chunks).min(range.end));
                return Some(self.block_of(slot_offset(first)..end.min(self.size), Chunks::Slots(first)));
            };
            index = later;
        }
        let found = self.found.as_ref().filter(|found| index < found.count())?;
        Some(self.block_of(found.bytes(index), Chunks::Found(index)))
    }

    fn block_of(&self, bytes: Range<u64>, chunks: Chunks) -> Block {
        Block {
            offset: bytes.start,
            len: bytes.end - bytes.start,
            chunks,
            found: self.found.clone(),
            promised: self.promised,
            used_slots: self.listed_chunks,
        }
    }

    #[cfg(test)]
    pub(super) fn oldest(&self) -> u64 {
        self.ranges[0].start
    }
}

/// How many slots a file of `size` bytes has. A last slot that is cut short counts.
pub fn slots_of(size: u64) -> u64 {
    size.saturating_sub(FILE_HEADER as u64).div_ceil(CHUNK_SIZE as u64)
}

/// The range of a file of `size` bytes, in bytes, that holds the chunk before a slot, in the order in which Windows
/// writes chunks: before slot 0 it is the last slot. `None` if the file has one slot only.
pub fn previous_chunk(size: u64, slot: u64) -> Option<Range<u64>> {
    let slots = slots_of(size);
    let previous = slot
        .checked_sub(1)
        .or(slots.checked_sub(1))
        .filter(|&previous| previous != slot)?;
    Some(slot_offset(previous)..slot_offset(previous + 1).min(size))
}

/// File offset of a slot, in bytes.
pub fn slot_offset(slot: u64) -> u64 {
    FILE_HEADER as u64 + slot * CHUNK_SIZE as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slots of all blocks, in order.
    fn slots_in(layout: &Layout) -> Vec<u64> {
        let mut slots = Vec::new();
        for index in 0..layout.blocks() {
            let block = layout.block(index).expect("a block");
            assert!(block.len > 0 && block.len <= layout.block_chunks * CHUNK_SIZE as u64);
            assert!(block.offset + block.len <= layout.size);
            let Chunks::Slots(first) = block.chunks else {
                panic!("not of slots")
            };
            slots.extend(first..first + block.len.div_ceil(CHUNK_SIZE as u64));
        }
        assert!(layout.block(layout.blocks()).is_none());
        slots
    }

    proptest! {
        #[test]
        fn blocks_cover_every_slot_once_in_order(slots in 0..200u64, oldest in 0..200u64, tail in 0..CHUNK_SIZE as u64, chunks in 1..40_u64) {
            let size = slot_offset(slots) + tail;
            let layout = Layout::new(size, oldest).in_blocks_of(chunks);
            let start = oldest.min(slots_of(layout.size).saturating_sub(1));
            let expected: Vec<_> = (start..slots_of(layout.size)).chain(0..start).collect();
            prop_assert_eq!(slots_in(&layout), expected);
        }

        #[test]
        fn ranges_of_slots_cover_every_slot_once(slots in 0..200u64, cuts in proptest::collection::vec(0..220u64, 0..4), tail in 0..CHUNK_SIZE as u64, chunks in 1..40_u64) {
            let layout = Layout::new(slot_offset(slots) + tail, slots / 2).in_blocks_of(chunks);
            let mut cuts = [vec![0], cuts, vec![u64::MAX]].concat();
            cuts.sort_unstable();
            let mut seen = Vec::new();
            for range in cuts.windows(2) {
                let slots = slots_in(&layout.clone().of_slots(range[0]..range[1]));
                prop_assert!(slots.iter().all(|slot| (range[0]..range[1]).contains(slot)));
                seen.extend(slots);
            }
            prop_assert_eq!(seen, (0..slots_of(layout.size)).collect::<Vec<_>>());
        }
    }
}
