//! The push decoder: blocks of a file in, record batches out.

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use bumpalo::Bump;
use evtx_format::chunk::{CHUNK_SIZE, ChunkHeader, find_chunk, is_unused};
use evtx_format::file::{Block, SECTOR};
use evtx_format::mta::Messages;
use evtx_format::names::Names;
use evtx_format::records::{FoundRecord, Record, RecordWalk};
use evtx_format::time::filetime_to_unix_nanos;
use evtx_format::{Error, ErrorKind, Interrupt, Interrupted};

use hashbrown::HashSet;

use crate::batch::{BareRow, BatchBuilder, Location};
use crate::builders::MakeArrays;
use crate::filter::{Row, Stage};
use crate::options::OnError;
use crate::record::{ChunkTemplates, RecordReader};
use crate::records::{GROUP, Records};
use crate::scan::{Poisoned, Scan};

/// The group with the record at hand, and how its work asks whether to go on.
type Group<'g, 'r> = (&'g Records<'r>, Interrupt<'g>);

/// Frames of records between two looks for an interrupt.
const FRAMES: usize = 32;

/// Why a scan ends early.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A log is damaged and the scan was told to fail then. The text names the file, chunk and offset.
    #[error("{0}")]
    Damaged(String),
    /// A batch could not be made.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// The caller wants no more.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// A thread of the scan panicked.
    #[error(transparent)]
    Poisoned(#[from] Poisoned),
}

/// Decodes the blocks of files into batches, for one thread.
///
/// Begin a block with [`start`](Self::start). Then call [`decode`](Self::decode) with the bytes of the block
/// that were not consumed so far and [`flush`](Self::flush) the batch, in turn, until the block is
/// [done](Self::is_done). A batch has rows of one block only.
pub struct Decoder {
    scan: Arc<Scan>,
    batch: BatchBuilder,
    filename: Arc<str>,
    /// The messages that stand beside the file, if there are any and they are read.
    messages: Option<Arc<Messages>>,
    /// What is left of the block.
    block: Block,
    /// Whether it is one of an image, in which chunks are found by their signature.
    is_image: bool,
    /// The walk over the current chunk, if it has begun.
    walk: Option<ChunkWalk>,
    templates: ChunkTemplates,
    arenas: Arenas,
    /// The text that a predicate looks at.
    scratch: Vec<u8>,
}

/// Memory that is reset, not freed: per chunk, and per group of records.
#[derive(Default)]
struct Arenas {
    chunk: Bump,
    records: Bump,
}

struct ChunkWalk {
    records: RecordWalk,
    /// What is wrong with the chunk as a whole, to be reported behind its records.
    damage: Vec<Error>,
    /// IDs and times of the records that were read so far, if others are recovered: the free space can hold copies of them.
    seen: HashSet<(u64, u64)>,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("block", &self.block)
            .field("rows", &self.batch.len())
            .finish_non_exhaustive()
    }
}

impl Decoder {
    /// A decoder for a scan.
    pub fn new(scan: Arc<Scan>) -> Self {
        Decoder {
            batch: BatchBuilder::new(Arc::clone(&scan)),
            scan,
            filename: "".into(),
            messages: None,
            block: Block {
                first_chunk: 0,
                offset: 0,
                len: 0,
                image: 0,
            },
            is_image: false,
            walk: None,
            templates: ChunkTemplates::default(),
            arenas: Arenas::default(),
            scratch: Vec::new(),
        }
    }

    /// The decoder, with another way to make arrays.
    pub fn with_arrays(mut self, make: MakeArrays) -> Self {
        self.batch.make_arrays = make;
        self
    }

    /// Begins a block of a file, with the messages that stand beside it. What was left of the last block is dropped.
    pub fn start(&mut self, filename: &Arc<str>, messages: Option<Arc<Messages>>, block: Block) {
        self.filename = Arc::clone(filename);
        self.messages = messages;
        self.block = block;
        self.is_image = block.image > 0;
        self.walk = None;
    }

    /// Whether all of the block was decoded. A batch may still be there to be flushed.
    pub fn is_done(&self) -> bool {
        self.block.len == 0
    }

    /// Adds a row that says what is wrong with a file as a whole, or fails, or does nothing, as the scan was told.
    ///
    /// # Errors
    /// [`DecodeError::Damaged`] if the scan fails on errors.
    pub fn report_file(&mut self, filename: &Arc<str>, text: &str) -> Result<(), DecodeError> {
        self.filename = Arc::clone(filename);
        self.report(format!("{filename}: {text}"), None, None, None)
    }

    /// Decodes until the batch is full or the block is done, and returns how many of the bytes were consumed.
    /// `bytes` is what is left of the block, all of it.
    ///
    /// # Errors
    /// [`DecodeError::Damaged`] if the scan fails on errors, at the first; [`DecodeError::Interrupted`]; [`DecodeError::Poisoned`]. The
    /// block is not to be gone on with then.
    pub fn decode(&mut self, bytes: &[u8], interrupt: Interrupt<'_>) -> Result<usize, DecodeError> {
        let mut arenas = std::mem::take(&mut self.arenas);
        let result = self.decode_block(bytes, &mut arenas, interrupt);
        self.arenas = arenas;
        let consumed = result?;
        self.scan.check_shared()?;
        Ok(consumed)
    }

    /// The batch, or `None` where it has no rows.
    ///
    /// # Errors
    /// [`DecodeError::Arrow`] if it cannot be made; [`DecodeError::Poisoned`].
    pub fn flush(&mut self) -> Result<Option<RecordBatch>, DecodeError> {
        let batch = self.batch.finish(&self.filename)?;
        self.scan.check_shared()?;
        Ok(batch)
    }

    fn decode_block(
        &mut self,
        bytes: &[u8],
        arenas: &mut Arenas,
        interrupt: Interrupt<'_>,
    ) -> Result<usize, DecodeError> {
        let mut consumed = 0;
        while !self.is_done() && !self.batch.is_full() {
            interrupt.check()?;
            let left = bytes.get(consumed..).unwrap_or_default();
            let left = &left[..left.len().min(self.block.len as usize)];
            if left.is_empty() {
                // The file has become shorter since it was opened.
                self.block.len = 0;
                break;
            }
            if self.is_image {
                let gap = self.pass_gap(left);
                consumed += gap;
                if gap > 0 {
                    continue;
                }
            }
            let mut len = left.len().min(CHUNK_SIZE);
            if self.is_image
                && let Some(next) = find_chunk(&left[SECTOR.min(len)..len], 0)
            {
                // Another chunk starts in its place.
                len = SECTOR + next;
            }
            arenas.chunk.reset();
            if !self.chunk(&left[..len], arenas, interrupt)? {
                break;
            }
            consumed += len;
            self.walk = None;
            self.block.first_chunk += u64::from(!self.is_image);
            self.pass(len);
        }
        Ok(consumed)
    }

    /// Moves the block's start past bytes that were decoded.
    fn pass(&mut self, len: usize) {
        let len = len as u64;
        self.block.offset += len;
        self.block.len -= len;
        self.block.image = self.block.image.saturating_sub(len);
        // The bytes that an image's block has behind those are the next one's.
        if self.is_image && self.block.image == 0 {
            self.block.len = 0;
        }
    }

    /// Passes the bytes of an image before the next chunk.
    fn pass_gap(&mut self, left: &[u8]) -> usize {
        let own = left.len().min(self.block.image as usize);
        let misaligned = (SECTOR as u64 - self.block.offset % SECTOR as u64) as usize % SECTOR;
        // The signature may reach behind the bytes in which it starts.
        let until = left.len().min(own + 8);
        let gap = find_chunk(&left[..until], misaligned)
            .filter(|&at| at < own)
            .unwrap_or(own);
        self.pass(gap);
        gap
    }

    /// Decodes a chunk from where it was left. Returns whether it is done.
    fn chunk(&mut self, chunk: &[u8], arenas: &mut Arenas, interrupt: Interrupt<'_>) -> Result<bool, DecodeError> {
        let mut walk = match self.walk.take() {
            Some(walk) => walk,
            None if is_unused(chunk) => return Ok(true),
            None => {
                self.templates.clear();
                self.batch.start_chunk();
                self.open_chunk(chunk)
            }
        };
        let names = Names::new(chunk, &arenas.chunk);
        let scan = Arc::clone(&self.scan);
        loop {
            interrupt.check()?;
            if self.templates.are_many() {
                self.templates.clear();
                self.batch.start_chunk();
            }
            arenas.records.reset();
            let reader = RecordReader::new(&scan, chunk, &names, &arenas.records, interrupt);
            if self.records(&reader, &mut walk)? {
                break;
            }
            if self.batch.is_full() {
                self.walk = Some(walk);
                return Ok(false);
            }
        }
        for error in walk.damage {
            self.report_damage(&error, None)?;
        }
        Ok(true)
    }

    fn open_chunk(&self, chunk: &[u8]) -> ChunkWalk {
        let (records, damage) = RecordWalk::new(chunk, self.scan.options.recover);
        let mut damage = Vec::from_iter(damage);
        if self.scan.options.verify && damage.is_empty() {
            damage.extend(ChunkHeader::read(chunk).and_then(|header| header.verify(chunk)).err());
        }
        let seen = HashSet::new();
        ChunkWalk { records, damage, seen }
    }

    /// Decodes a group of records, and appends the rows of those that are kept. Returns whether there are no more.
    fn records<'r, 'c: 'r>(
        &mut self,
        reader: &RecordReader<'r, 'c>,
        walk: &mut ChunkWalk,
    ) -> Result<bool, DecodeError> {
        let scan = reader.scan;
        let mut left = self.batch.room();
        if scan.reads_binxml {
            left = left.min(GROUP);
        }
        let mut group = Records::new(scan, left.min(GROUP), reader.arena);
        let mut is_end = false;
        // Frames that are damaged take long, too.
        let look = |left: usize| match left.is_multiple_of(FRAMES) {
            true => reader.interrupt.check(),
            false => Ok(()),
        };
        while left > 0 {
            left -= 1;
            match walk.records.next(reader.chunk) {
                Some(Ok(found)) if !self.keeps_frame(scan, &found) => look(left)?,
                Some(Ok(found)) if !scan.reads_binxml => {
                    self.batch.push_frame(&found, self.location());
                    look(left)?;
                }
                Some(Ok(found)) => {
                    if self.record(reader, &mut group, &found, walk)? {
                        group.keep(&found);
                    }
                    // What takes much more memory than its record does not wait for others.
                    let is_heavy = group.repeat_values || self.templates.are_many();
                    if is_heavy || reader.takes_much() || self.batch.has_long_texts() {
                        break;
                    }
                }
                Some(Err(error)) => {
                    self.push_rows(&group, reader)?;
                    group.clear();
                    let has_header = matches!(error.kind, ErrorKind::RecordSize { .. });
                    let record = has_header.then(|| Record::header(reader.chunk, error.offset as usize).ok());
                    self.report_damage(&error, record.flatten())?;
                }
                None => {
                    is_end = true;
                    break;
                }
            }
        }
        self.push_rows(&group, reader)?;
        Ok(is_end)
    }

    /// Whether a record can be kept, as far as its frame tells.
    #[inline(always)]
    fn keeps_frame(&mut self, scan: &Scan, found: &FoundRecord) -> bool {
        // What only looks like a record, or like a copy of one, is found out by reading both, whether or not they are asked for.
        scan.options.recover || self.keeps(Stage::Header, Stage::Header, found, None)
    }

    /// Reads a record into a group. Returns whether it is kept.
    fn record<'r, 'c: 'r>(
        &mut self,
        reader: &RecordReader<'r, 'c>,
        group: &mut Records<'r>,
        found: &FoundRecord,
        walk: &mut ChunkWalk,
    ) -> Result<bool, DecodeError> {
        let scan = reader.scan;
        let record = &found.record;
        let (carved, recovers) = (found.is_carved, scan.options.recover);
        reader.read_event(&mut self.templates, group, record.binxml());
        let has_system = group.at_hand().has_system(&self.templates);
        // The first damage ends such a scan, also where it is in a record that is not asked for.
        let fails = scan.options.on_error == OnError::Fail;
        let event_first = !recovers && has_system && !fails;
        if event_first && !self.keeps(Stage::Event, Stage::Event, found, Some((&*group, reader.interrupt))) {
            return Ok(false);
        }
        if !has_system || scan.checks || scan.reads_children {
            reader.read_children(&mut self.templates, group);
        }
        if group.error.is_none() && group.at_hand().parts.is_empty() {
            group.error = Some(Error::new(record.binxml().start, ErrorKind::NoEvent));
        }
        // A definition or a name that was overwritten makes nonsense of a record that was left behind, but the record is one.
        let is_orphaned = carved && group.not_its_own.is_some();
        if is_orphaned {
            group.drop_parts();
        }
        if carved && group.error.is_some() && !is_orphaned {
            // Bytes that only looked like a record.
            walk.records.reject(record);
            return Ok(false);
        }
        if recovers {
            let identity = (record.id, record.written);
            if carved && walk.seen.contains(&identity) {
                return Ok(false);
            }
            if group.error.is_none() || is_orphaned {
                walk.seen.insert(identity);
            }
        }
        let frame_damage = walk.records.damage().filter(|_| found.is_damaged);
        let damage = frame_damage.or(group.error);
        if fails && let Some(error) = damage {
            return Err(self.damaged(error, record));
        }
        let undecided = match (recovers, event_first) {
            (true, _) => Stage::Header,
            (false, false) => Stage::Event,
            (false, true) => Stage::Record,
        };
        if !self.keeps(undecided, Stage::Record, found, Some((&*group, reader.interrupt))) {
            return Ok(false);
        }
        let on_error = scan.options.on_error;
        let mut error = damage.filter(|_| scan.checks);
        if error.is_some() && on_error == OnError::Skip {
            return Ok(false);
        }
        // A text that is too long is NULL, and leaves no row out: others can ask for the record without it.
        if let Err(too_long) = self.batch.push_texts(reader, &self.templates, group) {
            error.get_or_insert(too_long);
        }
        if let Some(error) = error {
            let text = self.describe(&at_record(error, record));
            if on_error == OnError::Fail {
                return Err(DecodeError::Damaged(text));
            }
            group.report(text);
        }
        Ok(true)
    }

    /// Whether the predicates of some stages are true for a record, read as far as they need.
    #[inline(always)]
    fn keeps(&mut self, from: Stage, to: Stage, found: &FoundRecord, group: Option<Group<'_, '_>>) -> bool {
        self.scan.filter.is_empty() || self.decides(from, to, found, group)
    }

    // Apart, for the scans without predicates.
    #[inline(never)]
    fn decides(&mut self, from: Stage, to: Stage, found: &FoundRecord, group: Option<Group<'_, '_>>) -> bool {
        let (group, interrupt) = group.unzip();
        let interrupt = interrupt.unwrap_or_default();
        let row = Row {
            record_id: Some(found.record.id),
            chunk_index: self.chunk_index(),
            record_offset: Some(self.block.offset + u64::from(found.record.offset)),
            recovered: Some(found.recovered),
            filename: &self.filename,
            written: written(&found.record),
            parts: group.map(|group| (group.at_hand(), &self.templates)),
            entries: OnceCell::new(),
            interrupt,
        };
        self.scan.filter.keeps(from, to, &row, &mut self.scratch)
    }

    /// Appends the rows of a group of records.
    fn push_rows(&mut self, group: &Records<'_>, reader: &RecordReader<'_, '_>) -> Result<(), DecodeError> {
        let (at, messages) = (self.location(), self.messages.as_deref());
        Ok(self.batch.push_rows(reader, &self.templates, group, at, messages)?)
    }

    /// A row of what is known where no record could be read.
    fn push_bare(&mut self, row: &BareRow<'_>) -> Result<(), DecodeError> {
        let known = Row {
            record_id: row.record.map(|record| record.id),
            chunk_index: row.chunk,
            record_offset: row.offset,
            recovered: row.record.map(|_| false),
            filename: &self.filename,
            written: row.record.as_ref().and_then(written),
            parts: None,
            entries: OnceCell::new(),
            interrupt: Interrupt::NEVER,
        };
        let filter = &self.scan.filter;
        if filter.keeps(Stage::Header, Stage::Record, &known, &mut self.scratch) {
            self.batch.push_bare(row)?;
        }
        Ok(())
    }

    /// Where the chunk at hand stands.
    #[inline]
    fn location(&self) -> Location {
        Location {
            chunk_index: self.chunk_index(),
            offset: self.block.offset,
        }
    }

    /// The number of the chunk; in an image chunks have none.
    fn chunk_index(&self) -> Option<u32> {
        u32::try_from(self.block.first_chunk).ok().filter(|_| !self.is_image)
    }

    #[cold]
    fn damaged(&self, error: Error, record: &Record) -> DecodeError {
        DecodeError::Damaged(self.describe(&at_record(error, record)))
    }

    /// An error as a sentence that names file, chunk, and offset in the file.
    fn describe(&self, error: &Error) -> String {
        let Block {
            first_chunk, offset, ..
        } = self.block;
        let at = offset + u64::from(error.offset);
        if self.is_image {
            format!("{}: chunk at {offset:#x}, offset {at:#x}: {error}", self.filename)
        } else {
            format!("{}: chunk {first_chunk}, offset {at:#x}: {error}", self.filename)
        }
    }

    /// Reports damage to a chunk, or to the frame of a record in it, with what its header gives.
    fn report_damage(&mut self, error: &Error, record: Option<Record>) -> Result<(), DecodeError> {
        let text = self.describe(error);
        let offset = self.block.offset + u64::from(error.offset);
        self.report(text, record, self.chunk_index(), Some(offset))
    }

    fn report(
        &mut self,
        text: String,
        record: Option<Record>,
        chunk: Option<u32>,
        offset: Option<u64>,
    ) -> Result<(), DecodeError> {
        match self.scan.options.on_error {
            OnError::Report => self.push_bare(&BareRow {
                record,
                chunk,
                offset,
                error: &text,
            }),
            OnError::Skip => Ok(()),
            OnError::Fail => Err(DecodeError::Damaged(text)),
        }
    }
}

/// An error with its place; a text that is too long has none of its own but its record's.
fn at_record(error: Error, record: &Record) -> Error {
    let offset = if error.offset == 0 { record.offset } else { error.offset };
    Error { offset, ..error }
}

/// When a record was written, in nanoseconds since 1970-01-01 UTC: what stands in for its time where its
/// BinXML cannot be read.
pub(crate) fn written(record: &Record) -> Option<i64> {
    filetime_to_unix_nanos(record.written)
}
