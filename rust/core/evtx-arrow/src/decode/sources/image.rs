//! The chunks of an image, which start at any sector, and the orphans between them.

use std::borrow::Cow;
use std::ops::Range;

use evtx_format::container::chunk::{CHUNK_SIZE, SECTOR};
use evtx_format::container::image::find_chunk;
use evtx_format::container::layout::Block;
use evtx_format::container::orphans::{Orphans, find_orphan};
use evtx_format::container::records::PromisedIds;
use evtx_format::{Interrupt, Interrupted};

use crate::decode::recovery::{DefinitionSource, Definitions, LostDefinition, Recovery};
use crate::decode::step::{NextChunk, Step};

/// The chunks and orphans of a block of an image.
pub(crate) struct ImageChunks {
    /// The file offsets where the orphans of the block start. See [`Chunks::Image`](evtx_format::container::layout::Chunks::Image).
    orphans: Range<u64>,
    /// The file offset before which no chunk starts.
    gap_end: u64,
    promised: PromisedIds,
}

impl ImageChunks {
    /// Those of a block that covers so many bytes.
    pub(super) fn new(block: &Block, own: u64) -> Self {
        let later = CHUNK_SIZE as u64;
        let start = if block.offset == 0 { 0 } else { block.offset + later };
        ImageChunks {
            orphans: start..block.offset + own + later,
            gap_end: block.offset,
            promised: block.promised.after(None),
        }
    }

    pub(super) fn next<'b>(
        &mut self,
        bytes: &'b [u8],
        offset: u64,
        definitions: &DefinitionSource,
        interrupt: Interrupt<'_>,
    ) -> Result<Step<'b>, Interrupted> {
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
            return self.next_orphans(&bytes[..until], gap, offset, definitions, interrupt);
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
            recovery: Some(Box::default()),
            len,
        }))
    }

    /// The first orphans that start in the first `gap` of some bytes.
    fn next_orphans<'b>(
        &self,
        bytes: &'b [u8],
        gap: usize,
        offset: u64,
        definitions: &DefinitionSource,
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
        let restored = match definitions {
            DefinitionSource::Known(definitions) => definitions.restore(&lost, &mut chunk),
            DefinitionSource::Caller if !lost.is_empty() => return Ok(Step::Ask),
            _ => Definitions::default().restore(&lost, &mut chunk),
        };
        let at = |start: u64| chunk_offset + (start.saturating_sub(offset) as usize).min(len.min(gap));
        let starts = at(self.orphans.start)..at(self.orphans.end);
        Ok(Step::Chunk(NextChunk {
            bytes: Cow::Owned(chunk),
            offset: offset.wrapping_sub(chunk_offset as u64),
            slot: None,
            first: chunk_offset as u32,
            promised: self.promised,
            recovery: Some(Recovery::of_orphans(starts, restored).into()),
            len: len.min(gap),
        }))
    }
}
