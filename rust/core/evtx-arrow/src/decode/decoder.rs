//! The push decoder: the caller pushes the bytes of blocks, and gets record batches.

use std::sync::Arc;

use arrow_array::RecordBatch;
use evtx_format::Interrupt;
use evtx_format::container::layout::{Block, Chunks};

use super::admission::Admission;
use super::batch::{BareRow, BatchBuilder};
use super::chunk::{Arenas, ChunkDecoder, Progress};
use super::error::DecodeError;
use super::location::Doubt;
use super::slots::SlotChunks;
use crate::arrays::MakeArrays;
use crate::extra::{Beside, RowFinder, Shared};
use crate::filter::HeaderValues;
use crate::recovery::{ChunkSource, Step};
use crate::scan::Scan;

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
    source: Box<dyn ChunkSource>,
    needs_logs: bool,
}

impl Decoder {
    /// A decoder for a scan.
    pub fn new(scan: Arc<Scan>) -> Self {
        let admission = Admission {
            finder: scan
                .source
                .as_ref()
                .map(|source| source.finder(&scan.layout(&Shared::default()))),
            ..Admission::default()
        };
        Decoder {
            inner: ChunkDecoder {
                batch: BatchBuilder::new(Arc::clone(&scan)),
                scan,
                beside: None,
                admission,
                walk: None,
            },
            arenas: Arenas::default(),
            offset: 0,
            left: 0,
            source: Box::<SlotChunks>::default(),
            needs_logs: false,
        }
    }

    /// The decoder, with other functions that make its arrays.
    pub fn with_arrays(mut self, make: MakeArrays) -> Self {
        self.inner.batch.make_arrays = make;
        self
    }

    /// Whether the block goes on only when recovery has read the logs of the scan.
    pub fn needs_logs(&self) -> bool {
        self.needs_logs
    }

    /// The finder of the scan's row source, if it has one.
    pub fn finder(&mut self) -> Option<&mut dyn RowFinder> {
        Some(&mut **self.inner.admission.finder.as_mut()?)
    }

    /// Sets the doubts about the records of the next block, by record ID. Their rows say them.
    pub fn doubt(&mut self, doubts: Arc<[Doubt]>) {
        self.inner.admission.location.doubts = doubts;
    }

    /// Begins a block of a file. `beside` is what extra columns read beside the file. Drops the rest of the last block.
    pub fn start(&mut self, filename: &Arc<str>, beside: Option<Beside>, block: Block) {
        self.start_file(filename);
        self.inner.beside = beside;
        self.inner.walk = None;
        (self.offset, self.left) = (block.offset, block.len);
        self.needs_logs = false;
        self.source = match (&self.inner.scan.recovery, block.chunks) {
            (Some(recovery), _) => Arc::clone(recovery).chunks(block),
            (None, Chunks::Slots(slot)) => Box::new(SlotChunks::new(&block, slot)),
            (None, Chunks::Found(_)) => return self.left = 0,
        };
    }

    fn start_file(&mut self, filename: &Arc<str>) {
        self.inner.admission.location.filename = Arc::clone(filename);
        self.inner.batch.start_file(filename);
    }

    /// Whether decoding needs a [`flush`](Self::flush) to go on.
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
        let mut consumed = 0;
        self.needs_logs = false;
        while !self.is_done() && !self.is_full() {
            interrupt.check()?;
            let left = &bytes[consumed..];
            let len = match self.source.next(left, self.offset, interrupt)? {
                Step::Chunk(next) => {
                    let len = next.len;
                    match self.inner.decode(next, &mut self.arenas, interrupt)? {
                        Progress::Full => break,
                        Progress::Done(last) => self.source.pass(last),
                    }
                    len
                }
                Step::Gap(len) => len,
                Step::End => {
                    self.left = 0;
                    consumed = bytes.len();
                    break;
                }
                Step::NeedsLogs => {
                    self.needs_logs = true;
                    break;
                }
            };
            consumed += len;
            self.offset += len as u64;
            self.left -= len as u64;
        }
        self.unless_poisoned(consumed)
    }

    /// Ends the batch and returns it; `None` if it has no rows.
    ///
    /// # Errors
    /// [`DecodeError::Arrow`] if the batch cannot be made, and [`DecodeError::Poisoned`].
    pub fn flush(&mut self) -> Result<Option<RecordBatch>, DecodeError> {
        let batch = self.inner.batch.finish()?;
        self.unless_poisoned(batch)
    }

    fn unless_poisoned<T>(&self, outcome: T) -> Result<T, DecodeError> {
        if self.inner.scan.is_poisoned() {
            return Err(DecodeError::Poisoned);
        }
        Ok(outcome)
    }
}
