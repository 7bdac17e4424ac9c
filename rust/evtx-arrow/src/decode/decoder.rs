//! The push decoder: the caller pushes the bytes of blocks, and gets record batches.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::vec::IntoIter;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_schema::ArrowError;
use bumpalo::Bump;
use evtx_format::binxml::names::Names;
use evtx_format::container::chunk::{CHUNK_SIZE, ChunkHeader, SECTOR, is_unused};
use evtx_format::container::header::FILE_HEADER;
use evtx_format::container::image::find_chunk;
use evtx_format::container::layout::{Block, Chunks, Stray};
use evtx_format::container::record::Record;
use evtx_format::container::records::{FoundRecord, PromisedIds, RecordWalk};
use evtx_format::mta::Messages;
use evtx_format::render::program::Language;
use evtx_format::{Error, ErrorKind, Interrupt, Interrupted};
use evtx_sigma::Match;

use hashbrown::HashSet;

use super::batch::{BareRow, BatchBuilder, Location};
use crate::columns::{MakeArrays, Rendering};
use crate::detect::Detector;
use crate::filter::{PushText, Row, Scratch, Stage};
use crate::read::{RecordReader, Renderer};
use crate::record::{ChunkTemplates, GROUP, RecordGroup};
use crate::scan::{Poisoned, Scan};
use crate::schema::{OnError, Options, Table};

/// The current record, as far as it was read, for a predicate.
struct CurrentRecord<'g, 'r> {
    group: &'g RecordGroup<'r>,
    interrupt: Interrupt<'g>,
    /// Whether it is damaged in such a way that its event is not known.
    is_unread: bool,
    push_text: PushText<'g>,
}

/// How the BinXML of a record begins, as Windows writes it: a fragment header (1.1), and a template instance.
const INSTANCE: [u8; 6] = [0x0f, 1, 1, 0, 0x0c, 1];

/// How many frames of records are read between two looks for an interrupt.
const FRAMES: usize = 32;

/// Why a scan ends early.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A log is damaged, and the scan shall fail then. The text names the file, the chunk and the file offset.
    #[error("{0}")]
    Damaged(String),
    /// Arrow refused an array of the batch.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// The caller has interrupted the scan.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// Another thread of the scan panicked.
    #[error(transparent)]
    Poisoned(#[from] Poisoned),
}

/// Decodes the blocks of files into batches, for one thread.
///
/// Begin a block with [`start`](Self::start). Then call [`decode`](Self::decode), with the bytes of the block that were
/// not consumed so far, and [`flush`](Self::flush) if the batch [is full](Self::is_full), in turn, until the block is
/// [done](Self::is_done). A batch has the rows of all blocks since the last one was flushed.
pub struct Decoder {
    scan: Arc<Scan>,
    batch: BatchBuilder,
    filename: Arc<str>,
    /// The messages beside the file, if there are any and the scan reads them.
    messages: Option<Arc<Messages>>,
    /// File offset of the current chunk, or of the place where the next is looked for, in bytes.
    offset: u64,
    /// How many bytes of the block are left from `offset` on.
    left: u64,
    /// Which chunks in these bytes are decoded.
    chunks: Chunks,
    /// The stray chunks of the file.
    strays: Arc<[Stray]>,
    /// The IDs that the log promises to the next chunk.
    promised: PromisedIds,
    /// The state of a block of stray chunks.
    around: AroundStray,
    /// The walk over the current chunk, if it has begun.
    walk: Option<ChunkWalk>,
    templates: ChunkTemplates,
    arenas: Arenas,
    /// The text that a predicate compares.
    scratch: Scratch,
    /// Finds the rules that events match, if the scan has rules.
    detector: Option<Box<Detector>>,
    /// Whether rules can be for the events of the log, so that damage to it is told.
    concerns_log: bool,
    /// The same of the current chunk, once it is known.
    concerns_chunk: Option<bool>,
}

/// Arenas that are reset and not freed: one for a chunk, one for a group of records.
#[derive(Default)]
struct Arenas {
    chunk: Bump,
    records: Bump,
}

/// What the slots around stray chunks have of the records in the stray chunks.
#[derive(Default)]
struct AroundStray {
    /// Whether these slots are being read, which makes no rows.
    is_filling: bool,
    /// Whether they were read.
    is_filled: bool,
    /// The records that cannot be read in their slot: by file offset, with the index of the slot and what is wrong.
    /// Those that the stray chunks do not lead to either are reported.
    failed: BTreeMap<u64, (Record, u64, String)>,
}

struct ChunkWalk {
    records: RecordWalk,
    /// What is wrong with the chunk as a whole. Reported behind its records.
    damage: Vec<Error>,
    /// A record that has more matches than the last group had room for, and those that it has not had yet.
    again: Option<(FoundRecord, IntoIter<Match>)>,
    /// With `recover`: the IDs and times of the records that were read. The free space can have copies of them.
    seen: HashSet<(u64, u64)>,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("offset", &self.offset)
            .field("left", &self.left)
            .field("rows", &self.batch.len())
            .finish_non_exhaustive()
    }
}

impl Decoder {
    /// A decoder for a scan.
    pub fn new(scan: Arc<Scan>) -> Self {
        Decoder {
            batch: BatchBuilder::new(Arc::clone(&scan)),
            detector: scan.rules.as_ref().map(|rules| Detector::new(&scan, rules).into()),
            scan,
            filename: "".into(),
            messages: None,
            offset: 0,
            left: 0,
            chunks: Chunks::Slots(0),
            strays: Arc::default(),
            promised: PromisedIds::default(),
            around: AroundStray::default(),
            walk: None,
            templates: ChunkTemplates::default(),
            arenas: Arenas::default(),
            scratch: Scratch::default(),
            concerns_log: true,
            concerns_chunk: None,
        }
    }

    /// Whether the rules of a scan can be for the events of the log that a chunk is of, by the channels of its records.
    /// `None` if no channel can be read. All events concern a scan without rules.
    ///
    /// # Errors
    /// [`DecodeError::Interrupted`].
    pub fn concerns(scan: &Scan, chunk: &[u8], interrupt: Interrupt<'_>) -> Result<Option<bool>, DecodeError> {
        let Some(rules) = &scan.all_rules else {
            return Ok(Some(true));
        };
        let table = Table::from(Options::default());
        let schema = table.schema();
        let of_channel = Scan::new(table, &[schema.index_of("channel").unwrap_or_default()]);
        let mut decoder = Decoder::new(Arc::new(of_channel));
        let block = Block {
            offset: 0,
            len: chunk.len() as u64,
            chunks: Chunks::Slots(0),
            strays: Arc::default(),
            promised: PromisedIds::default(),
        };
        decoder.start(&"".into(), None, block);
        let (mut rest, mut is_read) = (chunk, false);
        while !decoder.is_done() {
            let consumed = decoder.decode(rest, interrupt)?;
            rest = &rest[consumed..];
            let Some(rows) = decoder.flush()? else { continue };
            let channels = rows.column(0).as_any_dictionary().values();
            for channel in channels.as_string::<i32>().iter().flatten() {
                is_read = true;
                if rules.set.is_for_channel(channel) {
                    return Ok(Some(true));
                }
            }
        }
        Ok(is_read.then_some(false))
    }

    /// Whether damage to the current chunk is told: not of a log that no rule is for.
    fn concerns_chunk(&mut self, chunk: &[u8], interrupt: Interrupt<'_>) -> Result<bool, DecodeError> {
        if self.detector.is_none() {
            return Ok(true);
        }
        if let Some(known) = self.concerns_chunk {
            return Ok(known);
        }
        let concerns = Self::concerns(&self.scan, chunk, interrupt)?.unwrap_or(self.concerns_log);
        self.concerns_chunk = Some(concerns);
        Ok(concerns)
    }

    /// The decoder, with other functions that make its arrays.
    pub fn with_arrays(mut self, make: MakeArrays) -> Self {
        self.batch.make_arrays = make;
        self
    }

    /// Says whether rules of the scan can be for the events of the log of the next block, as [`concerns`](Self::concerns)
    /// tells of one of its chunks. Damage to another log is not told.
    pub fn of_log(&mut self, concerns: bool) {
        self.concerns_log = concerns;
    }

    /// Whether damage to the log is told.
    pub fn concerns_log(&self) -> bool {
        self.concerns_log
    }

    /// Begins a block of a file. `messages` are the messages beside the file. Drops the rest of the last block.
    pub fn start(&mut self, filename: &Arc<str>, messages: Option<Arc<Messages>>, block: Block) {
        self.start_file(filename);
        self.messages = messages;
        Block {
            offset: self.offset,
            len: self.left,
            chunks: self.chunks,
            strays: self.strays,
            promised: self.promised,
        } = block;
        self.walk = None;
        self.around = AroundStray::default();
    }

    fn start_file(&mut self, filename: &Arc<str>) {
        self.filename = Arc::clone(filename);
        self.batch.start_file(filename);
    }

    /// Whether the batch has to be flushed before more is decoded.
    pub fn is_full(&self) -> bool {
        self.batch.is_full()
    }

    /// How many rows the batch has.
    pub fn rows(&self) -> usize {
        self.batch.len()
    }

    /// Whether the whole block was decoded. The last rows may not be flushed yet.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Reports what is wrong with a file as a whole, by `on_error`: adds a row (`report`), does nothing (`skip`), or
    /// fails (`fail`).
    ///
    /// # Errors
    /// [`DecodeError::Damaged`] with `fail`; [`DecodeError::Arrow`] if the row cannot be added.
    pub fn report_file(&mut self, filename: &Arc<str>, text: &str) -> Result<(), DecodeError> {
        self.start_file(filename);
        self.report(format!("{filename}: {text}"), None, None, None)
    }

    /// Decodes until the batch is full or the block is done. `bytes` has all bytes of the block that were not consumed.
    /// Returns how many of them were consumed now.
    ///
    /// # Errors
    /// [`DecodeError::Damaged`] at the first damage if the scan shall fail then, [`DecodeError::Interrupted`],
    /// [`DecodeError::Arrow`], [`DecodeError::Poisoned`]. After an error the block cannot be continued.
    pub fn decode(&mut self, bytes: &[u8], interrupt: Interrupt<'_>) -> Result<usize, DecodeError> {
        let mut arenas = std::mem::take(&mut self.arenas);
        let result = self.decode_block(bytes, &mut arenas, interrupt);
        self.arenas = arenas;
        let consumed = result?;
        self.scan.check_shared()?;
        Ok(consumed)
    }

    /// Ends the batch and returns it; `None` if it has no rows.
    ///
    /// # Errors
    /// [`DecodeError::Arrow`] if the batch cannot be made, and [`DecodeError::Poisoned`].
    pub fn flush(&mut self) -> Result<Option<RecordBatch>, DecodeError> {
        let batch = self.batch.finish()?;
        self.scan.check_shared()?;
        Ok(batch)
    }

    fn decode_block(
        &mut self,
        bytes: &[u8],
        arenas: &mut Arenas,
        interrupt: Interrupt<'_>,
    ) -> Result<usize, DecodeError> {
        if let Chunks::Strays(first, count) = self.chunks {
            return self.decode_strays(bytes, first, count, arenas, interrupt);
        }
        let mut consumed = 0;
        while !self.is_done() && !self.batch.is_full() {
            interrupt.check()?;
            let left = bytes.get(consumed..).unwrap_or_default();
            let left = &left[..left.len().min(self.left as usize)];
            if left.is_empty() {
                // The caller has fewer bytes than the block: the file cannot be read further.
                self.left = 0;
                break;
            }
            let mut len = left.len().min(CHUNK_SIZE);
            if let Chunks::Image(own) = self.chunks {
                let gap = self.pass_gap(left, own);
                consumed += gap;
                if gap > 0 {
                    continue;
                }
                if let Some(next) = find_chunk(left, SECTOR.min(len)..len, 0) {
                    // Another chunk starts inside this one.
                    len = next;
                }
            }
            if !self.chunk(&left[..len], arenas, interrupt)? {
                break;
            }
            consumed += len;
            self.pass(len);
        }
        Ok(consumed)
    }

    /// Decodes `count` stray chunks from index `first` on. Then reports the records that can be read neither in them
    /// nor in their slots.
    fn decode_strays(
        &mut self,
        bytes: &[u8],
        first: usize,
        count: usize,
        arenas: &mut Arenas,
        interrupt: Interrupt<'_>,
    ) -> Result<usize, DecodeError> {
        let bytes = &bytes[..bytes.len().min(self.left as usize)];
        let start = self.offset;
        if !self.around.is_filled {
            self.around.is_filling = true;
            // The block of the first slot can start in the file header.
            let slots = (FILE_HEADER as u64).saturating_sub(start) as usize;
            for (i, slot) in bytes.get(slots..).unwrap_or_default().chunks(CHUNK_SIZE).enumerate() {
                self.offset = start + (slots + i * CHUNK_SIZE) as u64;
                self.chunk(slot, arenas, interrupt)?;
            }
            self.around.is_filling = false;
            self.around.is_filled = true;
        }
        let strays = Arc::clone(&self.strays);
        for (i, stray) in strays.iter().enumerate().skip(first).take(count) {
            let chunk = bytes.get((stray.offset - start) as usize..).unwrap_or_default();
            self.offset = stray.offset;
            let is_done = self.chunk(&chunk[..chunk.len().min(stray.len as usize)], arenas, interrupt);
            self.offset = start;
            if !is_done? {
                self.chunks = Chunks::Strays(i, first + count - i);
                return Ok(0);
            }
        }
        let failed = std::mem::take(&mut self.around.failed);
        let concerns = self.concerns_log;
        for (offset, (record, slot, text)) in failed.into_iter().filter(|_| concerns) {
            interrupt.check()?;
            self.report(text, Some(record), u32::try_from(slot).ok(), Some(offset))?;
        }
        self.left = 0;
        Ok(bytes.len())
    }

    /// Moves the start of the block behind bytes that were decoded.
    fn pass(&mut self, len: usize) {
        let len = len as u64;
        self.offset += len;
        self.left -= len;
        match &mut self.chunks {
            Chunks::Slots(slot) => *slot += 1,
            Chunks::Image(own) => {
                *own = own.saturating_sub(len);
                if *own == 0 {
                    // The chunks behind belong to the next block.
                    self.left = 0;
                }
            }
            Chunks::Strays(..) => {}
        }
    }

    /// Skips the bytes of an image before the next chunk, up to `own`, behind which chunks belong to the next block.
    /// Returns how many bytes were skipped.
    fn pass_gap(&mut self, left: &[u8], own: u64) -> usize {
        let own = left.len().min(own as usize);
        let sectors = SECTOR - (self.offset % SECTOR as u64) as usize;
        let gap = find_chunk(left, 0..own, sectors).unwrap_or(own);
        self.pass(gap);
        gap
    }

    /// Decodes a chunk, from where it was left when the last batch was full. Returns whether the chunk is done.
    fn chunk(&mut self, chunk: &[u8], arenas: &mut Arenas, interrupt: Interrupt<'_>) -> Result<bool, DecodeError> {
        arenas.chunk.reset();
        let mut walk = match self.walk.take() {
            Some(walk) => walk,
            None if is_unused(chunk) => {
                self.promised = self.promised.after(None);
                return Ok(true);
            }
            None => {
                self.templates.clear();
                self.batch.start_chunk();
                self.concerns_chunk = None;
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
        self.promised = self.promised.after(walk.records.last_listed());
        for error in walk.damage {
            if self.concerns_chunk(chunk, interrupt)? {
                self.report_damage(&error, None)?;
            }
        }
        Ok(true)
    }

    /// The IDs that the log promises to the current chunk. A chunk that stands in no slot follows no other.
    fn promised_here(&self) -> PromisedIds {
        match self.chunks {
            Chunks::Slots(_) => self.promised,
            Chunks::Image(_) | Chunks::Strays(..) => self.promised.after(None),
        }
    }

    fn open_chunk(&self, chunk: &[u8]) -> ChunkWalk {
        let (records, damage) = RecordWalk::new(chunk, self.promised_here(), self.scan.options.recover);
        let mut damage = Vec::from_iter(damage);
        if self.scan.options.verify && damage.is_empty() {
            damage.extend(ChunkHeader::read(chunk).and_then(|header| header.verify(chunk)).err());
        }
        let seen = HashSet::new();
        ChunkWalk {
            records,
            damage,
            again: None,
            seen,
        }
    }

    /// Decodes a group of records, and appends the rows of the kept ones. Returns whether the chunk has no more
    /// records.
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
        let mut group = RecordGroup::new(&scan.target, left.min(GROUP), reader.arena);
        let mut is_end = false;
        let is_stray = matches!(self.chunks, Chunks::Strays(..));
        // Even frames take long if they are damaged.
        let look = |left: usize| match left.is_multiple_of(FRAMES) {
            true => reader.interrupt.check(),
            false => Ok(()),
        };
        while left > 0 {
            left -= 1;
            let (again, matches) = walk.again.take().unzip();
            let found = match again {
                Some(found) => Some(Ok(found)),
                None => walk.records.next(reader.chunk).map(|found| {
                    found.map(|found| FoundRecord {
                        recovered: found.recovered || is_stray,
                        ..found
                    })
                }),
            };
            match found {
                Some(Ok(found)) if !self.keeps_frame(scan, &found) => look(left)?,
                Some(Ok(found)) if !scan.reads_binxml => {
                    self.batch.push_frame(&found, self.location());
                    look(left)?;
                }
                Some(Ok(found)) => {
                    if self.record(reader, &mut group, &found, matches.is_some(), walk)? {
                        match &mut self.detector {
                            Some(detector) => {
                                let matches = matches.unwrap_or_else(|| detector.take_found().into_iter());
                                left -= self.keep_matches(&mut group, &found, matches, left, walk);
                            }
                            None => group.keep(&found),
                        }
                    }
                    // A record that takes much more memory than its bytes ends the group.
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
                    if self.concerns_chunk(reader.chunk, reader.interrupt)? {
                        self.report_damage(&error, record.flatten())?;
                    }
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

    /// Whether the predicates on its frame keep a record.
    #[inline(always)]
    fn keeps_frame(&mut self, scan: &Scan, found: &FoundRecord) -> bool {
        // With `recover` every record is read: only that tells noise from records, and records from their copies.
        scan.options.recover || self.keeps(Stage::Header, Stage::Header, found, None)
    }

    /// Keeps the current record of a group once for each of its matches, with room for `left` rows more than one.
    /// Returns how many more there are than one. If there is no room for all, the walk comes back to the record with
    /// the others.
    fn keep_matches(
        &mut self,
        group: &mut RecordGroup<'_>,
        found: &FoundRecord,
        mut matches: IntoIter<Match>,
        left: usize,
        walk: &mut ChunkWalk,
    ) -> usize {
        let report = group.reported(group.kept().len()).map(str::to_owned);
        group.keep_match(found, matches.next(), false);
        let mut more = 0;
        for matched in matches.by_ref().take(left) {
            self.batch.push_texts_again();
            if let Some(report) = &report {
                group.report(report.clone());
            }
            group.keep_match(found, Some(matched), true);
            more += 1;
        }
        if !matches.as_slice().is_empty() {
            walk.again = Some((*found, matches));
        }
        more
    }

    /// Reads a record as the current record of a group. Returns whether it is kept. `is_again` is whether it was kept
    /// before, with other matches of it.
    fn record<'r, 'c: 'r>(
        &mut self,
        reader: &RecordReader<'r, 'c>,
        group: &mut RecordGroup<'r>,
        found: &FoundRecord,
        is_again: bool,
        walk: &mut ChunkWalk,
    ) -> Result<bool, DecodeError> {
        let scan = reader.scan;
        let record = &found.record;
        let (carved, recovers) = (found.is_carved, scan.options.recover);
        reader.read_event(&mut self.templates, group, record.binxml());
        let has_system = group.current().has_system(&self.templates);
        // Its event is not known, so it may be one of the events of the table.
        let is_unread = group.current().parts.is_empty() || group.error.is_some() && !has_system;
        // The first damage ends such a scan, even in a record that a predicate drops.
        let fails = scan.options.on_error == OnError::Fail;
        let event_first = !recovers && has_system && !fails;
        let interrupt = reader.interrupt;
        // The values of the streams are not read yet.
        let push_text: PushText<'_> = &|_, _| false;
        let so_far = CurrentRecord {
            group,
            interrupt,
            is_unread,
            push_text,
        };
        if event_first && !self.keeps(Stage::Event, Stage::Event, found, Some(so_far)) {
            return Ok(false);
        }
        // The kind of events that rules are asked about, once it is known.
        let mut kind = Ok(None);
        if !has_system || scan.validates_all || scan.reads_children {
            let detector = &mut self.detector;
            let is_wanted = |templates: &ChunkTemplates, group: &RecordGroup<'r>| match detector {
                Some(detector) if event_first => {
                    kind = detector.kind(scan, group.current(), templates, interrupt).map(Some);
                    matches!(&kind, Ok(Some(kind)) if kind.may_match())
                }
                _ => true,
            };
            if !reader.read_children_if(&mut self.templates, group, is_wanted) {
                return kind.map(|_| false).map_err(Into::into);
            }
        }
        if group.error.is_none() && group.current().parts.is_empty() {
            group.error = Some(Error::new(record.binxml().start, ErrorKind::NoEvent));
        }
        // The definition or a name of a carved record was overwritten. Its content is lost, but it is a record: a frame
        // whose two sizes agree, around an instance.
        let is_instance = || {
            reader
                .chunk
                .get(record.binxml())
                .is_some_and(|it| it.starts_with(&INSTANCE))
        };
        let is_orphaned = carved && (group.not_its_own.is_some() || group.error.is_some() && is_instance());
        if is_orphaned {
            group.drop_parts();
        }
        if carved && group.error.is_some() && !is_orphaned {
            // These bytes only looked like a record.
            walk.records.reject(record);
            return Ok(false);
        }
        if recovers {
            let identity = (record.id, record.written);
            if carved && !is_again && walk.seen.contains(&identity) {
                return Ok(false);
            }
            if group.error.is_none() || is_orphaned {
                walk.seen.insert(identity);
            }
        }
        let frame_damage = walk.records.damage().filter(|_| found.is_damaged);
        let mut damage = frame_damage.or(group.error).or_else(|| reader.unread());
        if damage.is_some() && !self.concerns_chunk(reader.chunk, interrupt)? {
            damage = None;
        }
        if recovers && self.is_of_stray(found, damage) {
            return Ok(false);
        }
        if fails && let Some(error) = damage {
            return Err(self.damaged(error, record));
        }
        let undecided = match (recovers, event_first) {
            (true, _) => Stage::Header,
            (false, false) => Stage::Event,
            (false, true) => Stage::Record,
        };
        let current = group.current();
        let so_far = CurrentRecord {
            group,
            interrupt,
            is_unread,
            push_text: &|templates, out| {
                let mut renderer = Renderer::new(reader, templates, None);
                let pushed = renderer.push(current, Rendering::Event(Language::Text), out);
                pushed == Ok(true)
            },
        };
        if !self.keeps(undecided, Stage::Record, found, Some(so_far)) {
            return Ok(false);
        }
        let on_error = scan.options.on_error;
        let mut error = damage.filter(|_| scan.validates_all);
        if error.is_some() && on_error == OnError::Skip {
            return Ok(false);
        }
        if let Some(detector) = self.detector.as_mut().filter(|_| !is_again) {
            let (current, templates) = (group.current(), &self.templates);
            let kind = match kind? {
                Some(kind) => kind,
                None => detector.kind(scan, current, templates, interrupt)?,
            };
            detector.detect(&kind, current, templates, interrupt)?;
            // A match may be lost with what is damaged. So there is a row.
            if !detector.has_found() && error.is_none() {
                return Ok(false);
            }
        }
        // A text that is too long is NULL, but the row stays, even with `skip`: the number of rows must not depend on
        // whether the text is read.
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
        if matches!(self.chunks, Chunks::Strays(..)) {
            // Only a row takes the place of the error from the slot. A record that the scan does not keep here may be
            // one that it keeps without `recover`, as its event is not known there.
            self.around.failed.remove(&(self.offset + u64::from(record.offset)));
        }
        Ok(true)
    }

    /// Whether a record that a slot leads to is left to a stray chunk: it lies in one, and is damaged or carved in the
    /// slot. In a block of stray chunks, keeps track of the records that cannot be read in their slots.
    fn is_of_stray(&mut self, found: &FoundRecord, damage: Option<Error>) -> bool {
        let record = &found.record;
        let offset = self.offset + u64::from(record.offset);
        match self.chunks {
            Chunks::Strays(first, count) if self.around.is_filling => {
                let mut strays = self.strays.iter().skip(first).take(count);
                if let Some(error) = damage.filter(|_| !found.is_carved && strays.any(|stray| stray.contains(offset))) {
                    let slot = (self.offset - FILE_HEADER as u64) / CHUNK_SIZE as u64;
                    let text = self.describe_in(Chunks::Slots(slot), &at_record(error, record));
                    self.around.failed.insert(offset, (*record, slot, text));
                }
                true
            }
            Chunks::Strays(..) => false,
            Chunks::Slots(_) => (damage.is_some() || found.is_carved) && self.is_in_stray(offset),
            Chunks::Image(_) => false,
        }
    }

    /// Whether a file offset lies in a stray chunk.
    fn is_in_stray(&self, offset: u64) -> bool {
        let behind = self.strays.partition_point(|stray| stray.offset <= offset);
        behind > 0 && self.strays[behind - 1].contains(offset)
    }

    /// Whether the predicates of the stages `from` to `to` are true for a record, which has been read as far as they
    /// need.
    #[inline(always)]
    fn keeps(&mut self, from: Stage, to: Stage, found: &FoundRecord, so_far: Option<CurrentRecord<'_, '_>>) -> bool {
        self.scan.filter.is_empty() || self.decides(from, to, found, so_far)
    }

    // Kept out of line, so that scans without predicates stay fast.
    #[inline(never)]
    fn decides(&mut self, from: Stage, to: Stage, found: &FoundRecord, so_far: Option<CurrentRecord<'_, '_>>) -> bool {
        let row = Row {
            record_id: Some(found.record.id),
            chunk_index: self.chunk_index(),
            record_offset: Some(self.offset + u64::from(found.record.offset)),
            recovered: Some(found.recovered),
            filename: &self.filename,
            written: found.record.written_nanos(),
            parts: so_far.as_ref().map(|it| (it.group.current(), &self.templates)),
            entries: OnceCell::new(),
            push_text: so_far.as_ref().map(|it| it.push_text),
            has_text: Cell::default(),
            may_be_any_event: so_far.as_ref().is_some_and(|it| it.is_unread),
            interrupt: so_far.map_or(Interrupt::NEVER, |it| it.interrupt),
        };
        let (filter, scratch) = (&self.scan.filter, &mut self.scratch);
        match self.chunks {
            // A row takes the place of an error, which must not depend on what a query asks of the rows.
            Chunks::Strays(..) => filter.is_in_table(from, to, &row, scratch),
            _ => filter.keeps(from, to, &row, scratch),
        }
    }

    /// Appends the rows of a group of records.
    fn push_rows(&mut self, group: &RecordGroup<'_>, reader: &RecordReader<'_, '_>) -> Result<(), DecodeError> {
        let (at, messages) = (self.location(), self.messages.as_deref());
        Ok(self.batch.push_rows(reader, &self.templates, group, at, messages)?)
    }

    /// Appends a row that says why no record could be read, if the predicates keep it. A table of some events has such
    /// rows too, because the record may be one of these events.
    fn push_bare(&mut self, row: &BareRow<'_>) -> Result<(), DecodeError> {
        let known = Row {
            record_id: row.record.map(|record| record.id),
            chunk_index: row.chunk,
            record_offset: row.offset,
            recovered: row.record.map(|_| false),
            filename: &self.filename,
            written: row.record.as_ref().and_then(Record::written_nanos),
            parts: None,
            entries: OnceCell::new(),
            push_text: None,
            has_text: Cell::default(),
            may_be_any_event: true,
            interrupt: Interrupt::NEVER,
        };
        let filter = &self.scan.filter;
        if filter.keeps(Stage::Header, Stage::Record, &known, &mut self.scratch) {
            self.batch.push_bare(row)?;
        }
        Ok(())
    }

    /// The place of the current chunk.
    #[inline]
    fn location(&self) -> Location {
        Location {
            chunk_index: self.chunk_index(),
            offset: self.offset,
        }
    }

    /// The index of the current chunk's slot, if it stands in one.
    fn chunk_index(&self) -> Option<u32> {
        match self.chunks {
            Chunks::Slots(slot) => u32::try_from(slot).ok(),
            Chunks::Image(_) | Chunks::Strays(..) => None,
        }
    }

    #[cold]
    fn damaged(&self, error: Error, record: &Record) -> DecodeError {
        DecodeError::Damaged(self.describe(&at_record(error, record)))
    }

    /// An error as text, with the file, the chunk, and the file offset.
    fn describe(&self, error: &Error) -> String {
        self.describe_in(self.chunks, error)
    }

    fn describe_in(&self, chunks: Chunks, error: &Error) -> String {
        let offset = self.offset;
        let at = offset + u64::from(error.offset);
        match chunks {
            Chunks::Slots(slot) => format!("{}: chunk {slot}, offset {at:#x}: {error}", self.filename),
            Chunks::Image(_) | Chunks::Strays(..) => {
                format!("{}: chunk at {offset:#x}, offset {at:#x}: {error}", self.filename)
            }
        }
    }

    /// Reports damage to the current chunk, or to the frame of a record in it, with the record's header if it can be
    /// read.
    fn report_damage(&mut self, error: &Error, record: Option<Record>) -> Result<(), DecodeError> {
        let text = self.describe(error);
        let offset = self.offset + u64::from(error.offset);
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
            _ if self.around.is_filling => Ok(()),
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

/// The error with the chunk offset of the record if it has none: a text that is too long has no offset.
fn at_record(error: Error, record: &Record) -> Error {
    let offset = if error.offset == 0 { record.offset } else { error.offset };
    Error { offset, ..error }
}
