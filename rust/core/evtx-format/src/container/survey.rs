//! The survey of a file, which finds the layout with a few reads that the caller does.

use std::fmt::Debug;
use std::ops::Range;

use super::chunk::{ChunkHeader, is_zeros};
use super::header::{FILE_HEADER, FileHeader, NotEvtx};
use super::layout::{BLOCK_CHUNKS, Layout, REMOTE_BLOCK_CHUNKS, slot_offset, slots_of};

/// Bytes of a chunk that the survey reads.
const PROBE: usize = 128;

/// How many slots without a readable header the survey steps over at either end of a file before it gives up.
const MAX_STEPS: u64 = 16;

/// How a survey finds the oldest chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// Reads 128 bytes of every chunk. Right for any file, even for a log from a shadow copy with chunks of mixed ages.
    Every,
    /// Bisects, with some ten reads, for remote files, where each read takes long. Right for logs as Windows writes
    /// them: the first record IDs of the chunks rise, fall once, and rise again.
    Bisect,
}

/// Finds the [`Layout`] of a file. The caller reads each range that [`wants`](Self::wants) names, and [`push`](Self::push)es
/// it.
pub trait FileSurvey: Debug {
    /// The range of the file to push next, empty for an empty file; `None` once the layout is known.
    fn wants(&self) -> Option<Range<u64>>;

    /// Takes the bytes of the range that [`wants`](Self::wants) named.
    ///
    /// # Errors
    /// [`NotEvtx`] if the file has no chunks, because it is not a log.
    fn push(&mut self, bytes: &[u8]) -> Result<(), NotEvtx>;

    /// Ends the survey of a log if a wanted range cannot be read: the slots then come in the order of the file. Does
    /// nothing before the header was pushed.
    fn give_up(&mut self);

    /// The file header, once it was pushed; `None` if the file is not a log.
    fn header(&self) -> Option<&FileHeader>;

    /// The layout, once nothing more is wanted.
    fn layout(&self) -> Option<&Layout>;
}

/// The survey of a log.
///
/// Windows writes each new chunk of a full log over the oldest one. So the oldest chunk of a log that has *wrapped*,
/// which has the lowest first record ID, can be in any slot. The file header names it too, but that of a dirty log is
/// stale.
#[derive(Debug, Clone)]
pub struct Survey {
    size: u64,
    slots: u64,
    search: Search,
    header: Option<FileHeader>,
    /// The slots that are read, if not all.
    only: Option<Range<u64>>,
    /// Whether slots are read even if the file header names the oldest chunk.
    always_probes: bool,
    state: State,
    /// The layout, once nothing more is wanted.
    layout: Option<Layout>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Wants the file header.
    Header,
    /// Wants the chunk at `slot`. `oldest` is the oldest of the chunks before it.
    Every { slot: u64, oldest: Option<Anchor> },
    /// Wants the chunk at `slot`, to find the first chunk with a readable header.
    First { slot: u64 },
    /// Wants the chunk at `slot`, to find the last chunk with a readable header.
    Last { first: Anchor, slot: u64 },
    /// The chunk at `low` is not older than the first, the one at `high` is. Wants the chunk at `probe`, between them.
    Bisect {
        first: Anchor,
        low: u64,
        high: u64,
        probe: u64,
    },
    /// Has found the oldest slot.
    Done(u64),
}

/// A chunk whose header says where it belongs in the order of the records.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    slot: u64,
    first_record_id: u64,
}

impl Survey {
    /// A survey of a file of `size` bytes.
    pub fn new(size: u64, search: Search) -> Self {
        Survey {
            size,
            slots: slots_of(size),
            search,
            header: None,
            only: None,
            always_probes: false,
            state: State::Header,
            layout: None,
        }
    }

    /// A survey for a scan of these slots, in the order of the file. It reads no more than the file header.
    pub fn of_slots(size: u64, search: Search, slots: Range<u64>) -> Self {
        Survey {
            only: Some(slots),
            ..Survey::new(size, search)
        }
    }

    /// The survey, which reads slots even if the file header names the oldest chunk, so that its caller sees them.
    pub fn probing(self) -> Self {
        Survey {
            always_probes: true,
            ..self
        }
    }

    /// The next state, given the bytes that were wanted.
    fn step(&mut self, bytes: &[u8]) -> Result<State, NotEvtx> {
        Ok(match self.state {
            State::Header => {
                let header = FileHeader::read(bytes, self.size);
                self.header = header.as_ref().ok().copied();
                let header = header?;
                match self.search {
                    _ if self.slots == 0 || self.only.is_some() => State::Done(0),
                    _ if !self.always_probes && (self.slots == 1 || header.never_wrapped()) => State::Done(0),
                    Search::Every => State::Every { slot: 0, oldest: None },
                    Search::Bisect => State::First { slot: 0 },
                }
            }
            State::Every { slot, oldest } => {
                let older = |a: &Anchor| oldest.is_none_or(|b| a.first_record_id < b.first_record_id);
                let oldest = anchor(bytes, slot).filter(older).or(oldest);
                if slot + 1 < self.slots {
                    State::Every { slot: slot + 1, oldest }
                } else {
                    State::Done(oldest.map_or(0, |chunk| chunk.slot))
                }
            }
            State::First { slot } => match anchor(bytes, slot) {
                Some(first) => State::Last {
                    first,
                    slot: self.slots - 1,
                },
                None if slot + 1 < self.slots.min(MAX_STEPS) => State::First { slot: slot + 1 },
                None => State::Done(0),
            },
            State::Last { first, slot } => match anchor(bytes, slot) {
                Some(last) if last.first_record_id < first.first_record_id => bisect(first, first.slot, slot),
                Some(_) => State::Done(0),
                // An unused slot at the end: the log has not wrapped.
                None if is_zeros(bytes) && slot >= self.listed_chunks() => State::Done(0),
                None if slot <= first.slot + 1 || slot + MAX_STEPS <= self.slots => State::Done(0),
                None => State::Last { first, slot: slot - 1 },
            },
            State::Bisect {
                first,
                low,
                high,
                probe,
            } => match anchor(bytes, probe) {
                Some(chunk) if chunk.first_record_id < first.first_record_id => bisect(first, low, probe),
                Some(_) => bisect(first, probe, high),
                None if probe + 1 < high => State::Bisect {
                    first,
                    low,
                    high,
                    probe: probe + 1,
                },
                // No chunk between the middle and `high` has a readable header.
                None => bisect(first, low, low + (high - low) / 2),
            },
            state @ State::Done(_) => state,
        })
    }

    fn listed_chunks(&self) -> u64 {
        self.header.as_ref().map_or(0, FileHeader::listed_chunks)
    }

    /// Goes on to a state.
    fn enter(&mut self, state: State) {
        self.state = state;
        let State::Done(oldest) = state else { return };
        let layout = Layout::new(self.size, oldest);
        let layout = match &self.header {
            Some(header) => layout.with_header(header),
            None => layout,
        };
        let layout = match &self.only {
            Some(slots) => layout.of_slots(slots.clone()),
            None => layout,
        };
        self.layout = Some(layout.in_blocks_of(block_chunks(self.search)));
    }
}

impl FileSurvey for Survey {
    fn wants(&self) -> Option<Range<u64>> {
        let slot = match self.state {
            State::Header => return Some(0..self.size.min(FILE_HEADER as u64)),
            State::Done(_) => return None,
            State::Every { slot, .. } | State::First { slot } | State::Last { slot, .. } => slot,
            State::Bisect { probe, .. } => probe,
        };
        let offset = slot_offset(slot);
        Some(offset..(offset + PROBE as u64).min(self.size))
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), NotEvtx> {
        let state = self.step(bytes)?;
        self.enter(state);
        Ok(())
    }

    fn give_up(&mut self) {
        if self.header.is_some() {
            self.enter(State::Done(0));
        }
    }

    fn header(&self) -> Option<&FileHeader> {
        self.header.as_ref()
    }

    fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }
}

/// How many chunks the blocks of a file have, by the search that surveys it.
pub fn block_chunks(search: Search) -> u64 {
    match search {
        Search::Every => BLOCK_CHUNKS,
        Search::Bisect => REMOTE_BLOCK_CHUNKS,
    }
}

fn bisect(first: Anchor, low: u64, high: u64) -> State {
    if high <= low + 1 {
        return State::Done(high);
    }
    let probe = low + (high - low) / 2;
    State::Bisect {
        first,
        low,
        high,
        probe,
    }
}

/// The anchor of a chunk, from its first bytes; `None` if the header cannot be read or lists no records.
fn anchor(bytes: &[u8], slot: u64) -> Option<Anchor> {
    let header = ChunkHeader::read(bytes).ok()?;
    let first_record_id = *header.record_ids()?.start();
    Some(Anchor { slot, first_record_id })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::chunk::CHUNK_SIZE;
    use crate::container::header::FILE_MAGIC;
    use proptest::prelude::*;

    /// The start of a chunk whose records start at an ID; `None` for a damaged one.
    fn chunk_start(first: Option<u64>) -> Vec<u8> {
        let mut bytes = vec![0; CHUNK_SIZE];
        match first {
            Some(first) => {
                bytes[..8].copy_from_slice(b"ElfChnk\0");
                bytes[24..32].copy_from_slice(&first.to_le_bytes());
                bytes[32..40].copy_from_slice(&(first + 9).to_le_bytes());
            }
            None => bytes[0] = 1,
        }
        bytes
    }

    fn survey(chunks: &[Option<u64>], search: Search) -> (u64, usize) {
        let chunks: Vec<_> = chunks.iter().map(|&first| chunk_start(first)).collect();
        let (survey, reads) = survey_of(&chunks, search);
        (survey.layout().expect("done").oldest(), reads)
    }

    /// The file of a log of these chunks.
    fn log_of(chunks: &[Vec<u8>]) -> Vec<u8> {
        let mut file = vec![0; FILE_HEADER];
        file[..8].copy_from_slice(&FILE_MAGIC);
        file.extend(chunks.concat());
        file
    }

    /// A survey of a log of these chunks, and how many reads it took.
    fn survey_of(chunks: &[Vec<u8>], search: Search) -> (Survey, usize) {
        let file = log_of(chunks);
        let mut survey = Survey::new(file.len() as u64, search);
        let mut reads = 0;
        while let Some(range) = survey.wants() {
            survey
                .push(&file[range.start as usize..range.end as usize])
                .expect("a log");
            reads += 1;
        }
        (survey, reads)
    }

    #[test]
    fn some_slots_of_a_log_need_only_its_header() {
        let file = log_of(&vec![vec![0; CHUNK_SIZE]; 3]);
        let mut survey = Survey::of_slots(file.len() as u64, Search::Every, 1..9);
        assert_eq!(survey.wants(), Some(0..FILE_HEADER as u64));
        survey.push(&file[..FILE_HEADER]).expect("a log");
        assert_eq!(survey.wants(), None);
        let layout = survey.layout().expect("done");
        let block = layout.block(0).expect("a block");
        assert_eq!(
            (layout.blocks(), block.offset, block.len),
            (1, slot_offset(1), 2 * CHUNK_SIZE as u64)
        );
        assert!(Survey::of_slots(4, Search::Every, 1..9).push(b"none").is_err());
    }

    #[test]
    fn a_log_that_has_not_wrapped_starts_at_its_first_chunk() {
        let bisect = |chunks: &[Option<u64>]| survey(chunks, Search::Bisect);
        assert_eq!(bisect(&[]), (0, 1));
        assert_eq!(bisect(&[Some(1)]), (0, 1));
        assert_eq!(bisect(&[Some(1), Some(11), Some(21)]), (0, 3));
        assert_eq!(bisect(&[None, Some(11), Some(21)]).0, 0);
    }

    #[test]
    fn the_oldest_chunk_of_mixed_ones_is_found_by_looking_at_all() {
        assert_eq!(survey(&[Some(30), None, Some(10), Some(40)], Search::Every), (2, 5));
        assert_eq!(survey(&[None, None], Search::Every).0, 0);
    }

    #[test]
    fn zeros_in_place_of_a_chunk_that_the_header_lists_are_stepped_over() {
        let mut chunks: Vec<_> = [Some(30), Some(40), Some(10), Some(20)].map(chunk_start).into();
        chunks.push(vec![0; CHUNK_SIZE]);
        for (last_chunk, oldest) in [(3, 0), (4, 2)] {
            let mut file = log_of(&chunks);
            // No checksum.
            (file[16], file[120]) = (last_chunk, 4);
            let mut survey = Survey::new(file.len() as u64, Search::Bisect);
            while let Some(range) = survey.wants() {
                let bytes = &file[range.start as usize..range.end as usize];
                survey.push(bytes).expect("a log");
            }
            let layout = survey.layout().expect("done");
            assert_eq!(layout.oldest(), oldest);
            assert_eq!(layout.block(0).expect("a block").used_slots, u64::from(last_chunk) + 1);
        }
    }

    #[test]
    fn the_first_of_equally_old_chunks_is_the_oldest() {
        assert_eq!(survey(&[Some(30), Some(10), Some(10)], Search::Every), (1, 4));
        assert_eq!(survey(&[Some(5), Some(5)], Search::Bisect), (0, 3));
    }

    #[test]
    fn some_damaged_slots_at_either_end_are_stepped_over() {
        let bisect = |chunks: &[Option<u64>]| survey(chunks, Search::Bisect);
        // The header, both ends, and a probe between them. Each damaged slot takes a read more.
        assert_eq!(bisect(&[Some(30), Some(40), Some(10), Some(20)]), (2, 5));
        assert_eq!(bisect(&[None, None, Some(30), Some(10), Some(20)]).0, 3);
        assert_eq!(bisect(&[Some(30), Some(40), Some(10), Some(20), None, None]), (2, 7));
        // Between the ends, too. What is damaged right before the oldest chunk counts as its side.
        let turned = [Some(30), Some(40), Some(50), None, None, Some(10), Some(20)];
        assert_eq!(bisect(&turned), (3, 9));
        let turned = [Some(30), None, None, Some(40), Some(50), Some(10), Some(20)];
        assert_eq!(bisect(&turned).0, 5);
        let turned = [vec![Some(500); 11], vec![None; 4], vec![Some(100)]].concat();
        assert_eq!(bisect(&turned).0, 11);
        // Where no chunk is left, or too many are damaged, the log counts as one that has not wrapped.
        assert_eq!(bisect(&[None; 3]), (0, 4));
        assert_eq!(bisect(&[None; 40]), (0, 17));
        assert_eq!(bisect(&[Some(30), None]), (0, 3));
        assert_eq!(bisect(&[None, Some(30), None, None]), (0, 5));
        let wrapped = [vec![Some(500); 10], vec![Some(100); 10], vec![None; 20]].concat();
        assert_eq!(bisect(&wrapped), (0, 18));
        let wrapped = [vec![Some(500); 10], vec![Some(100); 10], vec![None; 15]].concat();
        assert_eq!(bisect(&wrapped).0, 10);
        // An unused slot at the end ends the log.
        let chunks = [Some(30), Some(10)].map(chunk_start);
        let (survey, reads) = survey_of(&[&chunks[..], &[vec![0; CHUNK_SIZE]]].concat(), Search::Bisect);
        assert_eq!((survey.layout().expect("done").oldest(), reads), (0, 3));
    }

    #[test]
    fn a_survey_that_is_given_up_has_the_slots_in_order() {
        let file = log_of(&[Some(30), Some(10)].map(chunk_start));
        let mut survey = Survey::new(file.len() as u64, Search::Every);
        survey.give_up();
        assert!(
            survey.layout().is_none() && survey.header().is_none(),
            "nothing is known yet"
        );
        survey.push(&file[..FILE_HEADER]).expect("a log");
        survey.push(&file[FILE_HEADER..][..PROBE]).expect("a log");
        assert!(survey.header().is_some() && survey.layout().is_none());
        survey.give_up();
        assert_eq!((survey.wants(), survey.layout().map(Layout::oldest)), (None, Some(0)));
    }

    #[test]
    fn blocks_are_larger_where_reads_take_long() {
        let chunks = vec![chunk_start(Some(1)); 200];
        let first = |search| {
            let (survey, _) = survey_of(&chunks, search);
            survey
                .layout()
                .and_then(|layout| layout.block(0))
                .map(|block| block.len)
        };
        assert_eq!(
            [Search::Every, Search::Bisect].map(first),
            [Some(1 << 20), Some(8 << 20)]
        );
    }

    #[test]
    fn slots_are_read_if_the_header_does_not_name_the_oldest_or_the_caller_wants_them() {
        let mut header = log_of(&[]);
        let checksum = crc32fast::hash(&header[..120]);
        header[124..128].copy_from_slice(&checksum.to_le_bytes());
        let next = |search, probes| {
            let survey = Survey::new(FILE_HEADER as u64 + 3 * CHUNK_SIZE as u64, search);
            let mut survey = if probes { survey.probing() } else { survey };
            survey.push(&header).expect("a log");
            survey.wants()
        };
        assert_eq!(next(Search::Bisect, false), None);
        assert_eq!(next(Search::Bisect, true), Some(4096..4224));
        assert_eq!(next(Search::Every, false), None);
        let mut survey = Survey::new(4096 + 65_536 + 50, Search::Every);
        header[120] = 1;
        survey.push(&header).expect("a log");
        assert_eq!(survey.wants(), Some(4096..4224));
        survey.push(&chunk_start(Some(1))[..PROBE]).expect("a log");
        assert_eq!(survey.wants(), Some(69_632..69_682), "the file ends there");
    }

    proptest! {
        #[test]
        fn the_oldest_chunk_of_a_wrapped_log_is_found(count in 2..60u64, turn in 1..60u64, damaged in proptest::collection::vec(0..60u64, 0..4)) {
            let oldest = turn % count;
            let mut chunks: Vec<_> = (0..count).map(|slot| Some(100 + (slot + count - oldest) % count * 10)).collect();
            for slot in damaged {
                // The point where the log turns, and its ends, must be there to be found.
                if slot > 0 && slot + 1 < count && slot != oldest && slot + 1 != oldest {
                    chunks[slot as usize] = None;
                }
            }
            prop_assert_eq!(survey(&chunks, Search::Every).0, oldest);
            let (found, reads) = survey(&chunks, Search::Bisect);
            // Damaged chunks right before the oldest one belong to neither side.
            let alike = (found..oldest).all(|slot| chunks[slot as usize].is_none());
            prop_assert!(found == oldest || found < oldest && alike, "{found} of {oldest} in {chunks:?}");
            prop_assert!(reads <= 16);
        }
    }
}
