//! Where a log's chunks are, and in which order they hold its records.
//!
//! Chunks stand in slots at fixed offsets behind the 4,096-byte header, to the end of the file. The header's counts can
//! be stale (a live log that was copied is *dirty*), so they are not used to find chunks.

use std::ops::Range;
use std::sync::Arc;

use super::chunk::CHUNK_SIZE;
use super::header::FILE_HEADER;

/// Chunks in a block: what one read brings and one thread works on (1 MiB).
pub const BLOCK_CHUNKS: u64 = 16;

/// Chunks in a block of a file where a read takes long (8 MiB).
pub const REMOTE_BLOCK_CHUNKS: u64 = 128;

/// Bytes of an image in which the chunks of a block start.
pub(super) const IMAGE_BLOCK: u64 = BLOCK_CHUNKS * CHUNK_SIZE as u64;

/// A chunk that stands in no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stray {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length in bytes: a chunk, or less where another chunk or the end of the file comes before.
    pub len: u64,
}

impl Stray {
    /// File offset behind it.
    pub fn end(&self) -> u64 {
        self.offset + self.len
    }

    /// Whether a file offset is in it.
    pub fn contains(&self, offset: u64) -> bool {
        (self.offset..self.end()).contains(&offset)
    }
}

/// Bytes to read at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length in bytes. The last slot of a file can be cut short.
    pub len: u64,
    /// Which chunks of those bytes are the block's.
    pub chunks: Chunks,
    /// The stray chunks of the file. A record that is in one, and does not read in its slot, is the stray chunk's.
    pub strays: Arc<[Stray]>,
}

/// Where the chunks of a block stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunks {
    /// They follow each other from the block's start. The first stands in the slot of the file with this index.
    Slots(u64),
    /// Anywhere, in an image. Those that start in so many bytes are the block's; the bytes behind are read so that they
    /// are whole.
    Image(u64),
    /// Stray chunks, so many from an index on: all that start in the same slot. The block has the slots around them,
    /// whole: what these lead to and the stray chunks do not is told of.
    Strays(usize, usize),
}

/// Where a log's chunks are, and in which order they hold its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    size: u64,
    pub(super) oldest: u64,
    /// Chunks in a block.
    block_chunks: u64,
    /// Whether chunks can be anywhere: the file is no log.
    image: bool,
    strays: Arc<[Stray]>,
    /// Of each block of stray chunks, the first and how many it has.
    stray_blocks: Arc<[(usize, usize)]>,
}

impl Layout {
    /// A log of `size` bytes whose oldest records are in chunk slot `oldest`.
    pub fn new(size: u64, oldest: u64) -> Self {
        let layout = Layout {
            size,
            oldest,
            block_chunks: BLOCK_CHUNKS,
            image: false,
            strays: Arc::default(),
            stray_blocks: Arc::default(),
        };
        Layout {
            oldest: oldest.min(layout.slots().saturating_sub(1)),
            ..layout
        }
    }

    /// The layout in blocks of so many chunks, at least one. Those of an image stay as they are.
    pub fn in_blocks_of(self, chunks: u64) -> Self {
        Layout {
            block_chunks: chunks.max(1),
            ..self
        }
    }

    /// A file of `size` bytes that is no log, in which chunks can be found by their signature.
    pub fn image(size: u64) -> Self {
        Layout {
            size,
            oldest: 0,
            block_chunks: BLOCK_CHUNKS,
            image: true,
            strays: Arc::default(),
            stray_blocks: Arc::default(),
        }
    }

    /// The layout with chunks that stand in no slot. They come last.
    pub(super) fn with_strays(self, strays: Arc<[Stray]>) -> Self {
        let of_slots = strays.chunk_by(|a, b| slot_at(a.offset) == slot_at(b.offset));
        let stray_blocks = of_slots.scan(0, |first, of_slot| {
            *first += of_slot.len();
            Some((*first - of_slot.len(), of_slot.len()))
        });
        Layout {
            stray_blocks: stray_blocks.collect(),
            strays,
            ..self
        }
    }

    /// Chunk slots in the file, one that is cut short included.
    pub fn slots(&self) -> u64 {
        (self.size.saturating_sub(FILE_HEADER as u64)).div_ceil(CHUNK_SIZE as u64)
    }

    /// Blocks in the file.
    pub fn blocks(&self) -> u64 {
        if self.image {
            return self.size.div_ceil(IMAGE_BLOCK);
        }
        self.slot_blocks() + self.stray_blocks.len() as u64
    }

    /// Blocks of slots: those from the oldest on, then those before it.
    fn slot_blocks(&self) -> u64 {
        (self.slots() - self.oldest).div_ceil(self.block_chunks) + self.oldest.div_ceil(self.block_chunks)
    }

    /// The block with an index, in the order of the records: from the oldest chunk to the end of the file,
    /// then from its start.
    pub fn block(&self, index: u64) -> Option<Block> {
        if self.image {
            let offset = index.checked_mul(IMAGE_BLOCK).filter(|&offset| offset < self.size)?;
            let left = self.size - offset;
            let len = left.min(IMAGE_BLOCK + CHUNK_SIZE as u64);
            return Some(self.block_of(offset..offset + len, Chunks::Image(left.min(IMAGE_BLOCK))));
        }
        if let Some(index) = index.checked_sub(self.slot_blocks()) {
            let &(first, count) = self.stray_blocks.get(usize::try_from(index).ok()?)?;
            let strays = self.strays.get(first..first + count)?;
            let (start, end) = (strays.first()?.offset, strays.last()?.end());
            let start = slot_at(start).map_or(start, slot_offset);
            let end = slot_at(end - 1).map_or(end, |slot| slot_offset(slot + 1));
            return Some(self.block_of(start..end.min(self.size), Chunks::Strays(first, count)));
        }
        let tail = (self.slots() - self.oldest).div_ceil(self.block_chunks);
        let (first, end) = match index.checked_sub(tail) {
            None => (self.oldest + index * self.block_chunks, self.slots()),
            Some(index) => (index * self.block_chunks, self.oldest),
        };
        if first >= end {
            return None;
        }
        let stop = slot_offset((first + self.block_chunks).min(end)).min(self.size);
        Some(self.block_of(slot_offset(first)..stop, Chunks::Slots(first)))
    }

    fn block_of(&self, bytes: Range<u64>, chunks: Chunks) -> Block {
        Block {
            offset: bytes.start,
            len: bytes.end - bytes.start,
            chunks,
            strays: Arc::clone(&self.strays),
        }
    }
}

/// The slot that a file offset is in; `None` before the first.
fn slot_at(offset: u64) -> Option<u64> {
    Some(offset.checked_sub(FILE_HEADER as u64)? / CHUNK_SIZE as u64)
}

/// File offset of a slot.
pub(super) fn slot_offset(slot: u64) -> u64 {
    FILE_HEADER as u64 + slot * CHUNK_SIZE as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn first_slot(block: &Block) -> u64 {
        match block.chunks {
            Chunks::Slots(first) => first,
            Chunks::Image(_) | Chunks::Strays(..) => panic!("not of slots"),
        }
    }

    proptest! {
        #[test]
        fn blocks_cover_every_slot_once_in_order(slots in 0..200u64, oldest in 0..200u64, tail in 0..CHUNK_SIZE as u64, chunks in 1..40_u64) {
            let size = slot_offset(slots) + tail;
            let layout = Layout::new(size, oldest).in_blocks_of(chunks);
            let mut seen = Vec::new();
            for index in 0..layout.blocks() {
                let block = layout.block(index).expect("a block");
                prop_assert!(block.len > 0 && block.len <= chunks * CHUNK_SIZE as u64);
                prop_assert!(block.offset + block.len <= size);
                seen.extend((0..block.len.div_ceil(CHUNK_SIZE as u64)).map(|i| first_slot(&block) + i));
            }
            prop_assert_eq!(layout.block(layout.blocks()), None);
            let start = oldest.min(layout.slots().saturating_sub(1));
            let expected: Vec<_> = (start..layout.slots()).chain(0..start).collect();
            prop_assert_eq!(seen, expected);
        }
    }
}
