//! The layout of a file: where its chunks are, in the order of their records.
//!
//! Chunks have slots of 64 KiB, from the end of the 4,096-byte header to the end of the file. The counts in the header of
//! a log that was copied while it was open (*dirty*) are stale, so they are not used to find chunks.

use std::ops::Range;
use std::sync::Arc;

use super::chunk::CHUNK_SIZE;
use super::header::{FILE_HEADER, FileHeader};
use super::records::PromisedIds;

/// Chunks in a block: 1 MiB. One thread reads a block at once and decodes it.
pub const BLOCK_CHUNKS: u64 = 16;

/// Chunks in a block of a remote file, where each read takes long: 8 MiB.
pub const REMOTE_BLOCK_CHUNKS: u64 = 128;

/// How many bytes of an image one block covers: the block's chunks start in them.
pub(super) const IMAGE_BLOCK: u64 = BLOCK_CHUNKS * CHUNK_SIZE as u64;

/// A chunk that starts at no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrayChunk {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length in bytes: 65,536, or less if another chunk or the end of the file comes before.
    pub len: u64,
}

impl StrayChunk {
    /// File offset of its end, in bytes.
    pub fn end(&self) -> u64 {
        self.offset + self.len
    }

    /// Whether a file offset, in bytes, lies in it.
    pub fn contains(&self, offset: u64) -> bool {
        (self.offset..self.end()).contains(&offset)
    }
}

/// A range of a file that is read at once, and the chunks in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length in bytes. The last slot of a file can be cut short.
    pub len: u64,
    /// Which chunks in those bytes belong to the block.
    pub chunks: Chunks,
    /// All stray chunks of the file, by offset.
    pub stray_chunks: Arc<[StrayChunk]>,
    /// The IDs that the log promises to the first chunk. [`Layout`] knows those of the file header only.
    pub promised: PromisedIds,
    /// The slots before this index were used, also if they are zeros. [`Layout`] knows those that the file header lists. The
    /// bytes of the block show the others, unless it ends with zeros.
    pub used_slots: u64,
}

/// Where the chunks of a block are in its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunks {
    /// The chunks follow each other from the start of the block. Holds the index in the file of the first slot.
    Slots(u64),
    /// The chunks of an image start at any sector. Holds how many bytes from the start the block covers: the chunks that
    /// start there belong to the block. So do records outside of chunks that start up to a chunk later, but not in the
    /// first chunk's length: a chunk or a definition before the block can concern them. Two chunks' length of bytes after
    /// the covered ones are read, so that all these are whole.
    Image(u64),
    /// Stray chunks that start in one slot: the index of the first in [`Block::stray_chunks`], and how many.
    StrayChunks(usize, usize),
}

/// Where the chunks of a file are, in the order of their records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    size: u64,
    /// The slots that are read, in this order; `None` for an image, whose chunks can start at any sector.
    ranges: Option<[Range<u64>; 2]>,
    /// Chunks in a block.
    block_chunks: u64,
    stray_chunks: Arc<[StrayChunk]>,
    /// For each block of stray chunks: the index of the first, and how many it has.
    stray_chunk_blocks: Arc<[(usize, usize)]>,
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
            ranges: Some([oldest..slots, 0..oldest]),
            block_chunks: BLOCK_CHUNKS,
            stray_chunks: Arc::default(),
            stray_chunk_blocks: Arc::default(),
            promised: PromisedIds::default(),
            listed_chunks: 0,
        }
    }

    /// An image of `size` bytes: a file that is not a log, in which chunks are found by their magic.
    pub fn image(size: u64) -> Self {
        Layout {
            ranges: None,
            ..Layout::new(size, 0)
        }
    }

    /// The layout with blocks of `chunks` chunks, at least one. The blocks of an image keep their size.
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
            ranges: Some([slots.start.min(end)..end, 0..0]),
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

    /// The layout with stray chunks, whose blocks come last.
    pub(super) fn with_stray_chunks(self, stray_chunks: Arc<[StrayChunk]>) -> Self {
        let of_slots = stray_chunks.chunk_by(|a, b| slot_at(a.offset) == slot_at(b.offset));
        let stray_chunk_blocks = of_slots.scan(0, |first, of_slot| {
            *first += of_slot.len();
            Some((*first - of_slot.len(), of_slot.len()))
        });
        Layout {
            stray_chunk_blocks: stray_chunk_blocks.collect(),
            stray_chunks,
            ..self
        }
    }

    /// How many blocks a range of slots has.
    fn blocks_of(&self, range: &Range<u64>) -> u64 {
        (range.end - range.start).div_ceil(self.block_chunks)
    }

    /// How many blocks the file has.
    pub fn blocks(&self) -> u64 {
        let Some(ranges) = &self.ranges else {
            return self.size.div_ceil(IMAGE_BLOCK);
        };
        let of_slots: u64 = ranges.iter().map(|range| self.blocks_of(range)).sum();
        of_slots + self.stray_chunk_blocks.len() as u64
    }

    /// The block with an index; `None` after the last. Blocks are in the order of the records: from the oldest chunk
    /// to the end of the file, then from the file's start, then the stray chunks.
    pub fn block(&self, mut index: u64) -> Option<Block> {
        let Some(ranges) = &self.ranges else {
            let offset = index.checked_mul(IMAGE_BLOCK).filter(|&offset| offset < self.size)?;
            let left = self.size - offset;
            let len = left.min(IMAGE_BLOCK + 2 * CHUNK_SIZE as u64);
            return Some(self.block_of(offset..offset + len, Chunks::Image(left.min(IMAGE_BLOCK))));
        };
        for range in ranges {
            let Some(later) = index.checked_sub(self.blocks_of(range)) else {
                let first = range.start + index * self.block_chunks;
                let end = slot_offset((first + self.block_chunks).min(range.end));
                return Some(self.block_of(slot_offset(first)..end.min(self.size), Chunks::Slots(first)));
            };
            index = later;
        }
        let &(first, count) = self.stray_chunk_blocks.get(usize::try_from(index).ok()?)?;
        let stray_chunks = self.stray_chunks.get(first..first + count)?;
        let (start, end) = (stray_chunks.first()?.offset, stray_chunks.last()?.end());
        Some(self.block_of(start..end.min(self.size), Chunks::StrayChunks(first, count)))
    }

    fn block_of(&self, bytes: Range<u64>, chunks: Chunks) -> Block {
        Block {
            offset: bytes.start,
            len: bytes.end - bytes.start,
            chunks,
            stray_chunks: Arc::clone(&self.stray_chunks),
            promised: self.promised,
            used_slots: self.listed_chunks,
        }
    }

    #[cfg(test)]
    pub(super) fn oldest(&self) -> u64 {
        self.ranges.as_ref().map_or(0, |ranges| ranges[0].start)
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

/// Index of the slot that a file offset lies in; `None` before the first slot.
fn slot_at(offset: u64) -> Option<u64> {
    Some(offset.checked_sub(FILE_HEADER as u64)? / CHUNK_SIZE as u64)
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
        assert_eq!(layout.block(layout.blocks()), None);
        slots
    }

    #[test]
    fn stray_chunks_come_last() {
        let stray = |offset, len| StrayChunk { offset, len };
        // Two start in slot 1, and the second ends in slot 2. One starts in slot 3, after which the file ends.
        let stray_chunks = [
            stray(slot_offset(1) + 5, 100),
            stray(slot_offset(2) - 1, 2),
            stray(slot_offset(3), 50),
        ];
        let size = slot_offset(3) + 60;
        let layout = Layout::new(size, 2).with_stray_chunks(stray_chunks.into());
        assert_eq!(layout.blocks(), 4, "two blocks of slots and two of stray chunks");
        let block = |index| {
            let block = layout.block(index)?;
            assert_eq!(*block.stray_chunks, stray_chunks);
            Some((block.offset, block.offset + block.len, block.chunks))
        };
        assert_eq!(block(0), Some((slot_offset(2), size, Chunks::Slots(2))));
        assert_eq!(block(1), Some((slot_offset(0), slot_offset(2), Chunks::Slots(0))));
        assert_eq!(
            block(2),
            Some((slot_offset(1) + 5, slot_offset(2) + 1, Chunks::StrayChunks(0, 2)))
        );
        assert_eq!(
            block(3),
            Some((slot_offset(3), slot_offset(3) + 50, Chunks::StrayChunks(2, 1)))
        );
        assert_eq!(block(4), None);
        assert!(stray_chunks[0].contains(slot_offset(1) + 5) && stray_chunks[0].contains(slot_offset(1) + 104));
        assert!(!stray_chunks[0].contains(slot_offset(1) + 4) && !stray_chunks[0].contains(slot_offset(1) + 105));
        // One in the header starts where it is.
        let in_header = Layout::new(size, 0).with_stray_chunks([stray(100, 50)].into());
        let block = in_header.block(in_header.blocks() - 1).expect("the stray");
        assert_eq!((block.offset, block.len), (100, 50));
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
