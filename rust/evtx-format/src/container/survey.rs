//! The file header, and where a log's chunks are.
//!
//! Chunks stand at fixed offsets behind the 4,096-byte header, to the end of the file. The header's counts
//! can be stale (a live log that was copied is *dirty*), so they are not used to find chunks.

use std::ops::Range;
use std::sync::Arc;

use crate::bytes::{array_at, u16_at, u32_at, u64_at};
use crate::container::chunk::{CHUNK_MAGIC, CHUNK_SIZE, ChunkHeader, is_unused};
use crate::container::strays::{Stray, StraySearch};
use crate::error::{Error, ErrorKind};

/// Size of the file header, in bytes, of which 128 are used.
pub const FILE_HEADER: usize = 4096;

/// Chunks in a block: what one read brings and one thread works on (1 MiB).
pub const BLOCK_CHUNKS: u64 = 16;

/// Chunks in a block of a file where a read takes long (8 MiB).
pub const REMOTE_BLOCK_CHUNKS: u64 = 128;

/// In an image, chunks start at multiples of this, in bytes: a sector.
pub const SECTOR: usize = 512;

/// Bytes of an image in which the chunks of a block start.
const IMAGE_BLOCK: u64 = BLOCK_CHUNKS * CHUNK_SIZE as u64;

const FILE_MAGIC: [u8; 8] = *b"ElfFile\0";
/// Flags of the file header: the log is not closed; it has reached its size; no checksums are kept.
const DIRTY: u32 = 1;
const FULL: u32 = 2;
const NO_CHECKSUMS: u32 = 4;

/// Bytes of a chunk that the survey looks at.
const PROBE: usize = 128;

/// Damaged chunk slots that the survey steps over at either end of a file before it gives up.
const MAX_STEPS: u64 = 16;

/// Why a file is not a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotEvtx {
    /// There is nothing in it.
    #[error("not an EVTX log: the file is empty, there is nothing in place of \"ElfFile\\0\"")]
    Empty,
    /// It starts otherwise.
    #[error("not an EVTX log: it starts with \"{}\" in place of \"ElfFile\\0\"", .0.escape_ascii())]
    Magic(Vec<u8>),
    /// It ends before its header does.
    #[error("not an EVTX log: after \"ElfFile\\0\" the file ends at {0} bytes, inside of its 4096-byte header")]
    Short(u64),
}

/// What a file header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileHeader {
    /// Number of the oldest chunk.
    pub first_chunk: u64,
    /// Number of the newest chunk.
    pub last_chunk: u64,
    /// ID that the next record gets.
    pub next_record_id: u64,
    /// Version, (major, minor): 3.1, or 3.2 on newer Windows.
    pub version: (u16, u16),
    /// Chunks in the file, modulo 65,536.
    pub chunk_count: u16,
    /// 1 dirty, 2 full, 4 no checksums.
    pub flags: u32,
    /// CRC32 of bytes 0 to 120, as stored.
    pub checksum: u32,
    /// CRC32 of bytes 0 to 120, as computed.
    pub computed_checksum: u32,
}

impl FileHeader {
    /// Reads a file header from the first bytes of a file of `size` bytes, 4,096 or as many as there are.
    ///
    /// # Errors
    /// [`NotEvtx`] where it is none.
    pub fn read(bytes: &[u8], size: u64) -> Result<Self, NotEvtx> {
        if bytes.is_empty() {
            return Err(NotEvtx::Empty);
        }
        let Some(FILE_MAGIC) = array_at(bytes, 0) else {
            return Err(NotEvtx::Magic(bytes[..bytes.len().min(8)].to_vec()));
        };
        if bytes.len() < FILE_HEADER {
            return Err(NotEvtx::Short(size));
        }
        let u16_at = |at| u16_at(bytes, at).unwrap_or_default();
        let u32_at = |at| u32_at(bytes, at).unwrap_or_default();
        let u64_at = |at| u64_at(bytes, at).unwrap_or_default();
        Ok(FileHeader {
            first_chunk: u64_at(8),
            last_chunk: u64_at(16),
            next_record_id: u64_at(24),
            version: (u16_at(38), u16_at(36)),
            chunk_count: u16_at(42),
            flags: u32_at(120),
            checksum: u32_at(124),
            computed_checksum: crc32fast::hash(&bytes[..120]),
        })
    }

    /// Whether the log was open when it was copied, so that the header is behind its chunks.
    pub fn is_dirty(&self) -> bool {
        self.flags & DIRTY != 0
    }

    /// Whether the log had reached its size.
    pub fn is_full(&self) -> bool {
        self.flags & FULL != 0
    }

    /// Whether the log was closed, and had not wrapped by then, so that its chunks stand in the order of their records. A
    /// header that keeps no checksum, or whose checksum does not match, does not say.
    fn never_wrapped(&self) -> bool {
        self.flags & (DIRTY | NO_CHECKSUMS) == 0 && self.first_chunk == 0 && self.checksum == self.computed_checksum
    }

    /// Checks the stored checksum. Headers that keep none pass.
    ///
    /// # Errors
    /// [`ErrorKind::Checksum`] where it does not match.
    pub fn verify(&self) -> Result<(), Error> {
        if self.flags & NO_CHECKSUMS != 0 || self.checksum == self.computed_checksum {
            return Ok(());
        }
        let kind = ErrorKind::Checksum {
            what: "file header",
            stored: self.checksum,
            computed: self.computed_checksum,
        };
        Err(Error::new(124, kind))
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
    /// They follow each other from the block's start. The first stands in the slot of the file with this number.
    Slots(u64),
    /// Anywhere, in an image. Those that start in so many bytes are the block's; the bytes behind are read so that they are whole.
    Image(u64),
    /// Stray chunks, so many from a number on: all that start in the same slot. The block has the slots around them, whole:
    /// what these lead to and the stray chunks do not is told of.
    Strays(usize, usize),
}

/// Where a log's chunks are, and in which order they hold its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    size: u64,
    oldest: u64,
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
    fn with_strays(self, strays: Arc<[Stray]>) -> Self {
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

    /// The block with a number, in the order of the records: from the oldest chunk to the end of the file,
    /// then from its start.
    pub fn block(&self, number: u64) -> Option<Block> {
        if self.image {
            let offset = number.checked_mul(IMAGE_BLOCK).filter(|&offset| offset < self.size)?;
            let left = self.size - offset;
            let len = left.min(IMAGE_BLOCK + CHUNK_SIZE as u64);
            return Some(self.block_of(offset..offset + len, Chunks::Image(left.min(IMAGE_BLOCK))));
        }
        if let Some(number) = number.checked_sub(self.slot_blocks()) {
            let &(first, count) = self.stray_blocks.get(usize::try_from(number).ok()?)?;
            let strays = self.strays.get(first..first + count)?;
            let (start, end) = (strays.first()?.offset, strays.last()?.end());
            let start = slot_at(start).map_or(start, slot_offset);
            let end = slot_at(end - 1).map_or(end, |slot| slot_offset(slot + 1));
            return Some(self.block_of(start..end.min(self.size), Chunks::Strays(first, count)));
        }
        let tail = (self.slots() - self.oldest).div_ceil(self.block_chunks);
        let (first, end) = match number.checked_sub(tail) {
            None => (self.oldest + number * self.block_chunks, self.slots()),
            Some(number) => (number * self.block_chunks, self.oldest),
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
pub(crate) fn slot_offset(slot: u64) -> u64 {
    FILE_HEADER as u64 + slot * CHUNK_SIZE as u64
}

/// How a survey looks for the oldest chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// In every chunk's header, 128 bytes of every 64 KiB. Right for any file, such as a log from a shadow
    /// copy, whose chunks are of mixed ages.
    Every,
    /// By bisection, with some ten reads, for files where a read takes long. Right for logs as Windows writes
    /// them: the first record IDs rise up to a point and start again lower there.
    Bisect,
}

/// Finds a log's [`Layout`] by reads that the caller does: while [`Survey::wants`] names a range of the file,
/// read it and [`push`](Survey::push) it.
///
/// A log that is full writes each new chunk over its oldest one, so once it has *wrapped* its oldest chunk
/// can be anywhere. It is the one with the lowest first record ID. The file header names it too, but a dirty
/// log is ahead of its header.
#[derive(Debug, Clone)]
pub struct Survey {
    size: u64,
    slots: u64,
    search: Search,
    recover: bool,
    header: Option<FileHeader>,
    strays: Option<StraySearch>,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Wants the file header.
    Header,
    /// Wants the chunk at a slot, having seen those before it.
    Every { slot: u64, oldest: Option<Anchor> },
    /// Wants the chunk at a slot, looking for the first that says where it belongs.
    First { slot: u64 },
    /// Wants the chunk at a slot, looking for the last such.
    Last { first: Anchor, slot: u64 },
    /// Chunks up to `low` are not older than the first; the one at `high` is. Wants the chunk at `probe`, between them.
    Bisect {
        first: Anchor,
        low: u64,
        high: u64,
        probe: u64,
    },
    /// Knows the oldest slot, and looks for stray chunks.
    Strays(u64),
    /// Knows the oldest slot.
    Done(u64),
    /// Knows that it is no log.
    Image,
}

#[derive(Debug, Clone, Copy)]
struct Anchor {
    slot: u64,
    first_record_id: u64,
}

impl Survey {
    /// A survey of a file of `size` bytes. With `recover`, a file that is no log is taken for an image that
    /// may hold chunks, and a log is also looked through for stray chunks: with [`Search::Every`] always, with
    /// [`Search::Bisect`] if one of the slots that it looks at has no chunk.
    pub fn new(size: u64, search: Search, recover: bool) -> Self {
        Survey {
            size,
            slots: Layout::new(size, 0).slots(),
            search,
            recover,
            header: None,
            strays: (recover && search == Search::Every).then(|| stray_search(size, search)),
            state: State::Header,
        }
    }

    /// The range of the file to read and push next, in bytes; `None` once the layout is known. A range can be
    /// empty (of an empty file).
    pub fn wants(&self) -> Option<Range<u64>> {
        let slot = match self.state {
            State::Header => return Some(0..self.size.min(FILE_HEADER as u64)),
            State::Strays(_) => return self.strays.as_ref()?.wants(),
            State::Done(_) | State::Image => return None,
            State::Every { slot, .. } | State::First { slot } | State::Last { slot, .. } => slot,
            State::Bisect { probe, .. } => probe,
        };
        let offset = slot_offset(slot);
        Some(offset..(offset + PROBE as u64).min(self.size))
    }

    /// Takes the bytes of the range that was wanted.
    ///
    /// # Errors
    /// [`NotEvtx`] where the file is not a log.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), NotEvtx> {
        if let State::Strays(oldest) = self.state {
            if let Some(strays) = &mut self.strays {
                strays.push(bytes);
            }
            self.state = self.found(oldest);
            return Ok(());
        }
        let is_probe = matches!(
            self.state,
            State::First { .. } | State::Last { .. } | State::Bisect { .. }
        );
        if self.recover && is_probe && !bytes.starts_with(&CHUNK_MAGIC) && !is_unused(bytes) {
            self.strays.get_or_insert_with(|| stray_search(self.size, self.search));
        }
        self.state = match self.step(bytes)? {
            State::Done(oldest) => self.found(oldest),
            state => state,
        };
        Ok(())
    }

    /// The state once the oldest slot is known.
    fn found(&self, oldest: u64) -> State {
        match self.strays.as_ref().and_then(StraySearch::wants) {
            Some(_) => State::Strays(oldest),
            None => State::Done(oldest),
        }
    }

    /// The next state, given the bytes that were wanted.
    fn step(&mut self, bytes: &[u8]) -> Result<State, NotEvtx> {
        Ok(match self.state {
            State::Header => {
                let header = FileHeader::read(bytes, self.size);
                self.header = header.as_ref().ok().copied();
                let header = match header {
                    Err(_) if self.recover => return Ok(State::Image),
                    header => header?,
                };
                match self.search {
                    _ if self.slots == 0 => State::Done(0),
                    // Its slots are looked at all the same.
                    Search::Bisect if self.recover => State::First { slot: 0 },
                    _ if self.slots == 1 || header.never_wrapped() => State::Done(0),
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
                // A log that has wrapped has no slots left unused.
                None if is_unused(bytes) || slot <= first.slot + 1 || slot + MAX_STEPS <= self.slots => State::Done(0),
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
                // Nothing between the middle and `high` says where it belongs.
                None => bisect(first, low, low + (high - low) / 2),
            },
            State::Strays(oldest) | State::Done(oldest) => State::Done(oldest),
            State::Image => State::Image,
        })
    }

    /// The file header, once it was pushed.
    pub fn header(&self) -> Option<&FileHeader> {
        self.header.as_ref()
    }

    /// The layout, once nothing more is wanted.
    pub fn layout(&self) -> Option<Layout> {
        match self.state {
            State::Done(oldest) => {
                let layout = Layout::new(self.size, oldest)
                    .with_strays(self.strays.as_ref().map(StraySearch::found).unwrap_or_default());
                Some(layout.in_blocks_of(block_chunks(self.search)))
            }
            State::Image => Some(Layout::image(self.size)),
            _ => None,
        }
    }
}

/// Chunks in a block of a file that is surveyed so.
fn block_chunks(search: Search) -> u64 {
    match search {
        Search::Every => BLOCK_CHUNKS,
        Search::Bisect => REMOTE_BLOCK_CHUNKS,
    }
}

fn stray_search(size: u64, search: Search) -> StraySearch {
    StraySearch::new(size, block_chunks(search) * CHUNK_SIZE as u64)
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

/// What a chunk says of its place; `None` where it is damaged, unused, or its range of IDs is reversed.
fn anchor(bytes: &[u8], slot: u64) -> Option<Anchor> {
    let header = ChunkHeader::read(bytes).ok()?;
    (header.first_record_id <= header.last_record_id).then_some(Anchor {
        slot,
        first_record_id: header.first_record_id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
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

    fn first_slot(block: &Block) -> u64 {
        match block.chunks {
            Chunks::Slots(first) => first,
            Chunks::Image(_) | Chunks::Strays(..) => panic!("not of slots"),
        }
    }

    fn survey(chunks: &[Option<u64>], search: Search) -> (u64, usize) {
        let mut file = vec![0; FILE_HEADER];
        file[..8].copy_from_slice(&FILE_MAGIC);
        chunks.iter().for_each(|&first| file.extend(chunk_start(first)));
        let mut survey = Survey::new(file.len() as u64, search, false);
        let mut reads = 0;
        while let Some(range) = survey.wants() {
            survey
                .push(&file[range.start as usize..range.end as usize])
                .expect("a log");
            reads += 1;
        }
        (survey.layout().expect("done").oldest, reads)
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

        #[test]
        fn blocks_cover_every_slot_once_in_order(slots in 0..200u64, oldest in 0..200u64, tail in 0..CHUNK_SIZE as u64, chunks in 1..40_u64) {
            let size = slot_offset(slots) + tail;
            let layout = Layout::new(size, oldest).in_blocks_of(chunks);
            let mut seen = Vec::new();
            for number in 0..layout.blocks() {
                let block = layout.block(number).expect("a block");
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

    #[test]
    fn an_image_is_read_in_blocks_that_overlap_by_a_chunk() {
        let size = 2 * IMAGE_BLOCK + 700;
        let mut survey = Survey::new(size, Search::Every, true);
        assert_eq!(survey.wants(), Some(0..4096));
        survey.push(&[7; 4096]).expect("an image");
        let layout = survey.layout().expect("done");
        let blocks: Vec<_> = (0..layout.blocks())
            .map(|number| layout.block(number).expect("a block"))
            .collect();
        let ranges: Vec<_> = blocks
            .iter()
            .map(|block| (block.offset, block.chunks, block.len))
            .collect();
        assert_eq!(
            ranges,
            [
                (0, Chunks::Image(IMAGE_BLOCK), IMAGE_BLOCK + 65_536),
                (IMAGE_BLOCK, Chunks::Image(IMAGE_BLOCK), IMAGE_BLOCK + 700),
                (2 * IMAGE_BLOCK, Chunks::Image(700), 700)
            ]
        );
        assert!(Survey::new(size, Search::Every, false).push(&[7; 4096]).is_err());
    }

    #[test]
    fn what_is_no_log_is_named() {
        let read = |bytes: &[u8]| FileHeader::read(bytes, bytes.len() as u64).unwrap_err().to_string();
        assert!(read(b"").contains("empty"));
        assert!(read(b"PK\x03\x04zip").contains("\"PK\\x03\\x04zip\""));
        assert!(read(b"ElfFile\0short").contains("13 bytes"));
    }
}
