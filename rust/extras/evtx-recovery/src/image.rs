//! The chunks of an image, which start at any sector, and the orphans between them.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use evtx_arrow::{ChunkSource, NextChunk, Step};
use evtx_format::container::chunk::{CHUNK_SIZE, SECTOR};
use evtx_format::container::layout::Block;
use evtx_format::container::records::PromisedIds;
use evtx_format::{Interrupt, Interrupted};

use crate::definitions::{Definitions, LostDefinition, SharedDefinitions};
use crate::find_chunk::find_chunk;
use crate::orphans::{Orphans, find_orphan};
use crate::state::ChunkState;

/// The chunks and orphans of a block of an image.
pub(crate) struct ImageChunks {
    /// The file offsets where the orphans of the block start.
    orphans: Range<u64>,
    /// The file offset before which no chunk starts.
    gap_end: u64,
    promised: PromisedIds,
    definitions: Arc<SharedDefinitions>,
}

impl ImageChunks {
    /// Those of a block that covers these bytes.
    pub(crate) fn new(block: &Block, covered: Range<u64>, definitions: Arc<SharedDefinitions>) -> Self {
        let later = CHUNK_SIZE as u64;
        let start = if covered.start == 0 { 0 } else { covered.start + later };
        ImageChunks {
            orphans: start..covered.end + later,
            gap_end: covered.start,
            promised: block.promised.after(None),
            definitions,
        }
    }

    /// The first orphans that start in the first `gap` of some bytes.
    fn next_orphans<'b>(
        &self,
        bytes: &'b [u8],
        gap: usize,
        offset: u64,
        interrupt: Interrupt<'_>,
    ) -> Result<Step<'b>, Interrupted> {
        match find_orphan(bytes, 0..gap) {
            None => return Ok(Step::Gap(gap)),
            Some(first) if first > 0 => return Ok(Step::Gap(first)),
            Some(_) => {}
        }
        let Orphans { chunk_offset, len } = Orphans::of(bytes);
        let mut chunk = vec![0; chunk_offset];
        chunk.extend_from_slice(&bytes[..len]);
        let lost = LostDefinition::all(&chunk, interrupt)?;
        let restored = match self.definitions.known.get() {
            Some(definitions) => definitions.restore(&lost, &mut chunk),
            None if self.definitions.can_be_collected() && !lost.is_empty() => return Ok(Step::NeedsLogs),
            None => Definitions::default().restore(&lost, &mut chunk),
        };
        let at = |start: u64| chunk_offset + (start.saturating_sub(offset) as usize).min(len.min(gap));
        let starts = at(self.orphans.start)..at(self.orphans.end);
        Ok(Step::Chunk(NextChunk {
            bytes: Cow::Owned(chunk),
            offset: offset.wrapping_sub(chunk_offset as u64),
            slot: None,
            first: chunk_offset as u32,
            promised: self.promised,
            recovery: Some(Box::new(ChunkState::of_orphans(starts, restored))),
            len: len.min(gap),
        }))
    }
}

impl ChunkSource for ImageChunks {
    fn next<'b>(&mut self, bytes: &'b [u8], offset: u64, interrupt: Interrupt<'_>) -> Result<Step<'b>, Interrupted> {
        let until = bytes.len().min(self.orphans.end.saturating_sub(offset) as usize);
        if until == 0 {
            return Ok(Step::End);
        }
        if self.gap_end <= offset {
            let sectors = SECTOR - (offset % SECTOR as u64) as usize;
            let gap = find_chunk(bytes, 0..until, sectors).unwrap_or(until);
            self.gap_end = offset + gap as u64;
        }
        let gap = until.min((self.gap_end - offset) as usize);
        if gap > 0 {
            // A chunk ends the orphans before it.
            let until = if gap < until { gap } else { bytes.len() };
            return self.next_orphans(&bytes[..until], gap, offset, interrupt);
        }
        let len = bytes.len().min(CHUNK_SIZE);
        // Another chunk can start inside this one.
        let len = find_chunk(bytes, SECTOR.min(len)..len, 0).unwrap_or(len);
        // The chunks from the end of the orphans on belong to the next block.
        if offset + (CHUNK_SIZE as u64) >= self.orphans.end {
            return Ok(Step::Gap(len));
        }
        Ok(Step::Chunk(NextChunk {
            bytes: Cow::Borrowed(&bytes[..len]),
            offset,
            slot: None,
            first: 0,
            promised: self.promised,
            recovery: Some(Box::<ChunkState>::default()),
            len,
        }))
    }

    fn pass(&mut self, _: Option<u64>) {}
}
