//! The survey of a file whose records are recovered: it also finds stray chunks, and images.

use std::ops::Range;
use std::sync::Arc;

use evtx_format::container::chunk::{CHUNK_MAGIC, CHUNK_SIZE, is_zeros};
use evtx_format::container::header::{FILE_HEADER, FileHeader, NotEvtx};
use evtx_format::container::layout::{BLOCK_CHUNKS, FoundBlocks, Layout};
use evtx_format::container::survey::{FileSurvey, Search, Survey, block_chunks};

use crate::stray_search::{StrayChunk, StrayChunkSearch};

/// How many bytes of an image one block covers: the block's chunks start in them.
const IMAGE_BLOCK: u64 = BLOCK_CHUNKS * CHUNK_SIZE as u64;

/// What was found in a file besides its slots.
#[derive(Debug)]
pub(crate) enum Found {
    /// The stray chunks of a log, by offset, and the indices of those in each block: they start in one slot.
    StrayChunks(Arc<[StrayChunk]>, Vec<Range<usize>>),
    /// The file is an image of this size. Its chunks start at any sector.
    Image(u64),
}

impl Found {
    fn stray_chunks(all: Arc<[StrayChunk]>) -> Self {
        let slot = |stray: &StrayChunk| Some(stray.offset.checked_sub(FILE_HEADER as u64)? / CHUNK_SIZE as u64);
        let of_slots = all.chunk_by(|a, b| slot(a) == slot(b));
        let blocks = of_slots.scan(0, |first, of_slot| {
            *first += of_slot.len();
            Some(*first - of_slot.len()..*first)
        });
        let blocks = blocks.collect();
        Found::StrayChunks(all, blocks)
    }

    /// All stray chunks of the file, by offset.
    pub(crate) fn all_stray_chunks(&self) -> Arc<[StrayChunk]> {
        match self {
            Found::StrayChunks(all, _) => Arc::clone(all),
            Found::Image(_) => Arc::default(),
        }
    }

    /// The file offsets that a block of an image covers: its chunks start there. So do records outside of chunks that start up
    /// to a chunk later, but not in the first chunk's length: a chunk or a definition before the block can concern them. Two
    /// chunks' length of bytes after the covered ones are read, so that all these are whole.
    pub(crate) fn covered(size: u64, index: u64) -> Range<u64> {
        let start = index * IMAGE_BLOCK;
        start..size.min(start + IMAGE_BLOCK)
    }
}

impl FoundBlocks for Found {
    fn count(&self) -> u64 {
        match self {
            Found::StrayChunks(_, blocks) => blocks.len() as u64,
            Found::Image(size) => size.div_ceil(IMAGE_BLOCK),
        }
    }

    fn bytes(&self, index: u64) -> Range<u64> {
        match self {
            Found::StrayChunks(all, blocks) => {
                let own = &all[blocks[index as usize].clone()];
                own[0].offset..own[own.len() - 1].end()
            }
            Found::Image(size) => {
                let covered = Found::covered(*size, index);
                covered.start..(covered.end + 2 * CHUNK_SIZE as u64).min(*size)
            }
        }
    }
}

/// A survey in which a file that is not a log is an image, and a log is searched for stray chunks: always with
/// [`Search::Every`], else if a slot that the survey reads has bytes but no chunk.
#[derive(Debug)]
pub(crate) struct RecoverySurvey {
    size: u64,
    search: Search,
    slots: Survey,
    stray_chunks: Option<StrayChunkSearch>,
    layout: Option<Layout>,
}

impl RecoverySurvey {
    /// A survey of a file of `size` bytes.
    pub(crate) fn new(size: u64, search: Search) -> Self {
        let slots = Survey::new(size, search);
        let (slots, stray_chunks) = match search {
            Search::Every => (slots, Some(stray_chunk_search(size, search))),
            // The search for stray chunks depends on the slots, so they are read in any case.
            Search::Bisect => (slots.probing(), None),
        };
        RecoverySurvey {
            size,
            search,
            slots,
            stray_chunks,
            layout: None,
        }
    }
}

impl FileSurvey for RecoverySurvey {
    fn wants(&self) -> Option<Range<u64>> {
        if self.layout.is_some() {
            return None;
        }
        let wanted = self.slots.wants();
        wanted.or_else(|| self.stray_chunks.as_ref()?.wants())
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), NotEvtx> {
        let has_header = self.slots.header().is_some();
        if self.slots.wants().is_none() {
            self.stray_chunks.iter_mut().for_each(|search| search.push(bytes));
        } else if let Err(not_a_log) = self.slots.push(bytes) {
            if has_header {
                return Err(not_a_log);
            }
            self.layout = Some(Layout::new(0, 0).with_found(Arc::new(Found::Image(self.size))));
        } else if has_header && self.search == Search::Bisect && !bytes.starts_with(&CHUNK_MAGIC) && !is_zeros(bytes) {
            self.stray_chunks
                .get_or_insert_with(|| stray_chunk_search(self.size, self.search));
        }
        if self.wants().is_none()
            && let Some(layout) = self.slots.layout()
        {
            let found = self.stray_chunks.as_ref().map(StrayChunkSearch::found);
            let found = Arc::new(Found::stray_chunks(found.unwrap_or_default()));
            self.layout = Some(layout.clone().with_found(found));
        }
        Ok(())
    }

    fn give_up(&mut self) {
        self.slots.give_up();
        self.layout = self.slots.layout().cloned();
    }

    fn header(&self) -> Option<&FileHeader> {
        self.slots.header()
    }

    fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }
}

fn stray_chunk_search(size: u64, search: Search) -> StrayChunkSearch {
    StrayChunkSearch::new(size, block_chunks(search) * CHUNK_SIZE as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evtx_format::container::layout::{Chunks, slot_offset};

    /// The start of a file, and the first bytes of its slots: those of a chunk, zeros, or others.
    fn survey(slots: &[&[u8; 8]], search: Search) -> RecoverySurvey {
        let mut file = vec![0; slot_offset(slots.len() as u64) as usize];
        file[..8].copy_from_slice(b"ElfFile\0");
        for (slot, bytes) in (0..).zip(slots) {
            let at = slot_offset(slot) as usize;
            file[at..at + 8].copy_from_slice(*bytes);
            // The ID of its first record, and of its last.
            (file[at + 24], file[at + 32]) = (1, 10);
        }
        let mut survey = RecoverySurvey::new(file.len() as u64, search);
        while let Some(range) = survey.wants() {
            let bytes = &file[range.start as usize..range.end as usize];
            survey.push(bytes).expect("a log");
        }
        survey
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
        let layout = |stray_chunks: &[StrayChunk]| {
            Layout::new(size, 2).with_found(Arc::new(Found::stray_chunks(stray_chunks.into())))
        };
        let blocks = layout(&stray_chunks);
        assert_eq!(blocks.blocks(), 4, "two blocks of slots and two of stray chunks");
        let block = |index| {
            let block = blocks.block(index)?;
            Some((block.offset, block.offset + block.len, block.chunks))
        };
        assert_eq!(block(0), Some((slot_offset(2), size, Chunks::Slots(2))));
        assert_eq!(block(1), Some((slot_offset(0), slot_offset(2), Chunks::Slots(0))));
        assert_eq!(
            block(2),
            Some((slot_offset(1) + 5, slot_offset(2) + 1, Chunks::Found(0)))
        );
        assert_eq!(block(3), Some((slot_offset(3), slot_offset(3) + 50, Chunks::Found(1))));
        assert_eq!(block(4), None);
        assert!(stray_chunks[0].contains(slot_offset(1) + 5) && stray_chunks[0].contains(slot_offset(1) + 104));
        assert!(!stray_chunks[0].contains(slot_offset(1) + 4) && !stray_chunks[0].contains(slot_offset(1) + 105));
        // One in the header starts where it is.
        let in_header = layout(&[stray(100, 50)]);
        let block = in_header.block(in_header.blocks() - 1).expect("the stray");
        assert_eq!((block.offset, block.len), (100, 50));
    }

    #[test]
    fn steps_are_as_large_as_blocks() {
        let size = slot_offset(200);
        let mut survey = RecoverySurvey::new(size, Search::Every);
        let mut header = vec![0; FILE_HEADER];
        header[..8].copy_from_slice(b"ElfFile\0");
        survey.push(&header).expect("a log");
        while let Some(range) = survey.wants().filter(|range| range.start > 0) {
            survey
                .push(&vec![0; (range.end - range.start) as usize])
                .expect("a log");
        }
        assert_eq!(survey.wants(), Some(0..(1 << 20) + 65_536), "a chunk more than a step");
    }

    #[test]
    fn a_remote_log_is_searched_for_stray_chunks_where_a_slot_has_bytes_but_no_chunk() {
        let searches = |slots: &[&[u8; 8]]| survey(slots, Search::Bisect).stray_chunks.is_some();
        let (valid, damaged) = (&CHUNK_MAGIC, b"ElfChnk1");
        assert!(searches(&[damaged, valid]) && searches(&[valid, damaged]));
        assert!(!searches(&[valid, valid]));
        let mut unused = RecoverySurvey::new(slot_offset(1), Search::Bisect);
        let mut header = vec![0; FILE_HEADER];
        header[..8].copy_from_slice(b"ElfFile\0");
        unused.push(&header).expect("a log");
        assert_eq!(unused.wants(), Some(4096..4224), "even if the header names the oldest");
        unused.push(&[0; 128]).expect("a log");
        assert!(unused.stray_chunks.is_none() && unused.layout().is_some());
    }

    #[test]
    fn a_survey_that_is_given_up_finds_nothing() {
        let mut survey = RecoverySurvey::new(slot_offset(2), Search::Every);
        survey.give_up();
        assert!(survey.layout().is_none(), "nothing is known yet");
        let mut header = vec![0; FILE_HEADER];
        header[..8].copy_from_slice(b"ElfFile\0");
        survey.push(&header).expect("a log");
        assert!(survey.layout().is_none());
        survey.give_up();
        assert_eq!((survey.wants(), survey.layout().map(Layout::blocks)), (None, Some(1)));
    }

    #[test]
    fn an_image_is_read_in_blocks_that_overlap_by_a_chunk() {
        let size = 2 * IMAGE_BLOCK + 700;
        let mut survey = RecoverySurvey::new(size, Search::Every);
        assert_eq!(survey.wants(), Some(0..4096));
        survey.push(&[7; 4096]).expect("an image");
        let layout = survey.layout().expect("done");
        let blocks = (0..layout.blocks()).map(|number| layout.block(number).expect("a block"));
        let ranges: Vec<_> = blocks.map(|block| (block.offset, block.chunks, block.len)).collect();
        assert_eq!(
            ranges,
            [
                (0, Chunks::Found(0), IMAGE_BLOCK + 131_072),
                (IMAGE_BLOCK, Chunks::Found(1), IMAGE_BLOCK + 700),
                (2 * IMAGE_BLOCK, Chunks::Found(2), 700)
            ]
        );
        assert_eq!(Found::covered(size, 2), 2 * IMAGE_BLOCK..size);
        assert!(Survey::new(size, Search::Every).push(&[7; 4096]).is_err());
    }
}
