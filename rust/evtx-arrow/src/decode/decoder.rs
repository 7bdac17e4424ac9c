//! The push decoder: the caller pushes the bytes of blocks, and gets record batches.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use evtx_format::Interrupt;
use evtx_format::container::chunk::{CHUNK_SIZE, SECTOR, is_zeros};
use evtx_format::container::image::find_chunk;
use evtx_format::container::layout::{Block, Chunks};
use evtx_format::container::orphans::{Orphans, find_orphan};
use evtx_format::container::records::PromisedIds;

use super::admission::Admission;
use super::batch::{BareRow, BatchBuilder};
use super::chunk::{Arenas, ChunkDecoder, Progress};
use super::definitions::{Definitions, LostDefinition};
use super::error::DecodeError;
use super::place::{ChunkPlace, Doubt};
use super::walk::OrphanChunk;
use crate::arrays::MakeArrays;
use crate::extra::{RowFinder, Shared};
use crate::filter::{HeaderValues, Scratch};
use crate::record::ChunkTemplates;
use crate::scan::Scan;
use crate::schema::MessageFile;

/// Decodes the blocks of files into batches, for one thread.
///
/// Begin a block with [`start`](Self::start). Then call [`decode`](Self::decode), with the bytes of the block that were
/// not consumed so far, and [`flush`](Self::flush) if the batch [is full](Self::is_full), in turn, until the block is
/// [done](Self::is_done). A batch has the rows of all blocks since the last one was flushed.
pub struct Decoder {
    inner: ChunkDecoder,
    arenas: Arenas,
    /// File offset of the current chunk, or of where the search for the next one starts, in bytes.
    offset: u64,
    /// How many bytes of the block are left from `offset` on.
    left: u64,
    /// Which chunks in these bytes are decoded.
    chunks: Chunks,
    /// Of an image: the file offsets where the orphans of the block start. See [`Chunks::Image`].
    orphans: Range<u64>,
    /// Of an image: the file offset before which no chunk starts.
    gap_end: u64,
    /// The IDs that the log promises to the next chunk.
    promised: PromisedIds,
    /// See [`Block::used_slots`].
    used_slots: u64,
    definitions: Lender,
}

/// Where the definitions for orphans come from that have lost theirs.
enum Lender {
    Nowhere,
    /// The caller has them, and is not asked yet.
    Caller,
    Asked,
    Known(Arc<Definitions>),
}

impl Decoder {
    /// A decoder for a scan.
    pub fn new(scan: Arc<Scan>) -> Self {
        let admission = Admission {
            place: ChunkPlace {
                filename: "".into(),
                offset: 0,
                slot: None,
                is_stray: false,
                first: 0,
                doubts: Arc::default(),
            },
            strays: Arc::default(),
            templates: ChunkTemplates::default(),
            finder: scan
                .source
                .as_ref()
                .map(|source| source.finder(&scan.layout(&Shared::default()))),
            scratch: Scratch::default(),
        };
        Decoder {
            inner: ChunkDecoder {
                batch: BatchBuilder::new(Arc::clone(&scan)),
                scan,
                messages: None,
                admission,
                walk: None,
            },
            arenas: Arenas::default(),
            offset: 0,
            left: 0,
            chunks: Chunks::Slots(0),
            orphans: 0..0,
            gap_end: 0,
            promised: PromisedIds::default(),
            used_slots: 0,
            definitions: Lender::Nowhere,
        }
    }

    /// The decoder, with other functions that make its arrays.
    pub fn with_arrays(mut self, make: MakeArrays) -> Self {
        self.inner.batch.make_arrays = make;
        self
    }

    /// The decoder, which asks for the definitions that orphans have lost: see [`asks_for_definitions`](Self::asks_for_definitions).
    pub fn asking(self) -> Self {
        Decoder {
            definitions: Lender::Caller,
            ..self
        }
    }

    /// Whether the block goes on only when [`lend`](Self::lend) was called.
    pub fn asks_for_definitions(&self) -> bool {
        matches!(self.definitions, Lender::Asked)
    }

    /// Sets the definitions of all chunks of the scan.
    pub fn lend(&mut self, definitions: Arc<Definitions>) {
        self.definitions = Lender::Known(definitions);
    }

    /// The finder of the scan's row source, if it has one.
    pub fn finder(&mut self) -> Option<&mut dyn RowFinder> {
        Some(&mut **self.inner.admission.finder.as_mut()?)
    }

    /// Sets the doubts about the records of the next block, by record ID. Their rows say them.
    pub fn doubt(&mut self, doubts: Arc<[Doubt]>) {
        self.inner.admission.place.doubts = doubts;
    }

    /// Begins a block of a file. `messages` are the messages beside the file. Drops the rest of the last block.
    pub fn start(&mut self, filename: &Arc<str>, messages: Option<Arc<[MessageFile]>>, block: Block) {
        self.start_file(filename);
        self.inner.messages = messages;
        self.inner.walk = None;
        self.inner.admission.strays = block.strays;
        self.inner.admission.place.is_stray = matches!(block.chunks, Chunks::Strays(..));
        (self.offset, self.left) = (block.offset, block.len);
        (self.chunks, self.promised) = (block.chunks, block.promised);
        self.used_slots = block.used_slots;
        if let Chunks::Image(own) = block.chunks {
            let later = CHUNK_SIZE as u64;
            let start = if block.offset == 0 { 0 } else { block.offset + later };
            self.orphans = start..block.offset + own + later;
            self.gap_end = block.offset;
        }
    }

    fn start_file(&mut self, filename: &Arc<str>) {
        self.inner.admission.place.filename = Arc::clone(filename);
        self.inner.batch.start_file(filename);
    }

    /// Whether the batch has to be flushed before more is decoded.
    pub fn is_full(&self) -> bool {
        self.inner.batch.is_full()
    }

    /// How many rows the batch has.
    pub fn rows(&self) -> usize {
        self.inner.batch.len()
    }

    /// Whether the batch has a row with a record without damage.
    pub fn has_records(&self) -> bool {
        self.inner.batch.has_records()
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
        self.inner.report(BareRow {
            header: HeaderValues {
                filename,
                ..HeaderValues::default()
            },
            written: None,
            error: format!("{filename}: {text}"),
        })
    }

    /// Decodes until the batch is full or the block is done. `bytes` has all bytes of the block that were not consumed.
    /// Returns how many of them were consumed now.
    ///
    /// # Errors
    /// [`DecodeError::Damaged`] at the first damage with `on_error` `fail`, [`DecodeError::Interrupted`],
    /// [`DecodeError::Arrow`], [`DecodeError::Poisoned`]. After an error the block cannot be continued.
    pub fn decode(&mut self, bytes: &[u8], interrupt: Interrupt<'_>) -> Result<usize, DecodeError> {
        let bytes = &bytes[..bytes.len().min(self.left as usize)];
        let consumed = match self.chunks {
            Chunks::Strays(first, count) => self.decode_strays(bytes, first..first + count, interrupt)?,
            Chunks::Slots(slot) => self.decode_slots(bytes, slot, interrupt)?,
            Chunks::Image(_) => self.decode_image(bytes, interrupt)?,
        };
        self.inner.scan.check_shared()?;
        Ok(consumed)
    }

    /// Ends the batch and returns it; `None` if it has no rows.
    ///
    /// # Errors
    /// [`DecodeError::Arrow`] if the batch cannot be made, and [`DecodeError::Poisoned`].
    pub fn flush(&mut self) -> Result<Option<RecordBatch>, DecodeError> {
        let batch = self.inner.batch.finish()?;
        self.inner.scan.check_shared()?;
        Ok(batch)
    }

    fn decode_slots(&mut self, bytes: &[u8], mut slot: u64, interrupt: Interrupt<'_>) -> Result<usize, DecodeError> {
        let mut consumed = 0;
        while !self.is_done() && !self.is_full() {
            interrupt.check()?;
            let left = &bytes[consumed..];
            // The caller has fewer bytes than the block if the file cannot be read further.
            if left.is_empty() || slot >= self.used_slots && is_zeros(left) {
                // The rest of the block was never used.
                self.left = 0;
                return Ok(bytes.len());
            }
            let len = left.len().min(CHUNK_SIZE);
            match self.decode_chunk(&left[..len], self.offset, Some(slot), self.promised, None, interrupt)? {
                Progress::Full => break,
                Progress::Done(last) => self.promised = self.promised.after(last),
            }
            consumed += len;
            self.pass(len);
            slot += 1;
            self.chunks = Chunks::Slots(slot);
        }
        Ok(consumed)
    }

    /// Decodes the chunks of a block of an image, and the orphans between them.
    fn decode_image(&mut self, bytes: &[u8], interrupt: Interrupt<'_>) -> Result<usize, DecodeError> {
        let mut consumed = 0;
        while !self.is_done() && !self.is_full() && !self.asks_for_definitions() {
            interrupt.check()?;
            let left = &bytes[consumed..];
            let until = left.len().min(self.orphans.end.saturating_sub(self.offset) as usize);
            if until == 0 {
                self.left = 0;
                break;
            }
            if self.gap_end <= self.offset {
                let sectors = SECTOR - (self.offset % SECTOR as u64) as usize;
                let gap = find_chunk(left, 0..until, sectors).unwrap_or(until);
                self.gap_end = self.offset + gap as u64;
            }
            let gap = until.min((self.gap_end - self.offset) as usize);
            let (len, progress) = if gap > 0 {
                // A chunk ends the orphans before it.
                let until = if gap < until { gap } else { left.len() };
                self.decode_orphans(&left[..until], gap, interrupt)?
            } else {
                let len = left.len().min(CHUNK_SIZE);
                // Another chunk can start inside this one.
                let len = find_chunk(left, SECTOR.min(len)..len, 0).unwrap_or(len);
                // The chunks from the end of the orphans on belong to the next block.
                let is_own = self.offset + (CHUNK_SIZE as u64) < self.orphans.end;
                let promised = self.promised.after(None);
                let mut decode = || self.decode_chunk(&left[..len], self.offset, None, promised, None, interrupt);
                (len, if is_own { decode()? } else { Progress::Done(None) })
            };
            if let Progress::Full = progress {
                break;
            }
            consumed += len;
            self.pass(len);
        }
        Ok(consumed)
    }

    /// Decodes the first orphans that start in the first `gap` of some bytes. Returns how many of these are done with.
    fn decode_orphans(
        &mut self,
        bytes: &[u8],
        gap: usize,
        interrupt: Interrupt<'_>,
    ) -> Result<(usize, Progress), DecodeError> {
        match find_orphan(bytes, 0..gap) {
            None => return Ok((gap, Progress::Done(None))),
            Some(first) if first > 0 => return Ok((first, Progress::Done(None))),
            Some(_) => {}
        }
        let Orphans { chunk_offset, len } = Orphans::of(bytes);
        let mut chunk = vec![0; chunk_offset];
        chunk.extend_from_slice(&bytes[..len]);
        let lost = LostDefinition::all(&chunk, interrupt)?;
        let lent = match &self.definitions {
            Lender::Known(definitions) => definitions.lend(&lost, &mut chunk),
            Lender::Caller if !lost.is_empty() => {
                self.definitions = Lender::Asked;
                return Ok((0, Progress::Full));
            }
            _ => Definitions::default().lend(&lost, &mut chunk),
        };
        let at = |offset: u64| chunk_offset + (offset.saturating_sub(self.offset) as usize).min(len.min(gap));
        let starts = at(self.orphans.start)..at(self.orphans.end);
        let first = chunk_offset as u32;
        let orphans = OrphanChunk { first, starts, lent };
        let offset = self.offset.wrapping_sub(first.into());
        let promised = self.promised.after(None);
        let progress = self.decode_chunk(&chunk, offset, None, promised, Some(orphans), interrupt)?;
        Ok((len.min(gap), progress))
    }

    fn decode_chunk(
        &mut self,
        chunk: &[u8],
        offset: u64,
        slot: Option<u64>,
        promised: PromisedIds,
        orphans: Option<OrphanChunk>,
        interrupt: Interrupt<'_>,
    ) -> Result<Progress, DecodeError> {
        let place = &mut self.inner.admission.place;
        (place.offset, place.slot, place.first) = (offset, slot, 0);
        if let Some(orphans) = &orphans {
            place.first = orphans.first;
        }
        self.inner.decode(chunk, promised, orphans, &mut self.arenas, interrupt)
    }

    /// Decodes the stray chunks of a block.
    fn decode_strays(
        &mut self,
        bytes: &[u8],
        mut left: Range<usize>,
        interrupt: Interrupt<'_>,
    ) -> Result<usize, DecodeError> {
        let promised = self.promised.after(None);
        let strays = Arc::clone(&self.inner.admission.strays);
        for stray in strays.get(left.clone()).unwrap_or_default() {
            let chunk = bytes.get((stray.offset - self.offset) as usize..).unwrap_or_default();
            let chunk = &chunk[..chunk.len().min(stray.len as usize)];
            if let Progress::Full = self.decode_chunk(chunk, stray.offset, None, promised, None, interrupt)? {
                return Ok(0);
            }
            left.start += 1;
            self.chunks = Chunks::Strays(left.start, left.len());
        }
        self.left = 0;
        Ok(bytes.len())
    }

    /// Moves the start of the block to the end of bytes that were decoded.
    fn pass(&mut self, len: usize) {
        self.offset += len as u64;
        self.left -= len as u64;
    }
}
