//! The scan that the threads of a query share, and the worker of each thread.

use std::sync::Arc;

use arrow_array::RecordBatch;
use evtx_arrow::{Decoder, MakeArrays, Scan};
use evtx_format::Interrupt;
use evtx_format::container::layout::Chunks;

use crate::messages::MessageFinder;
use crate::paths::ScanPath;
use crate::queue::{FileOptions, FileQueue, Reserved, Work};
use crate::storage::{Call, ScanError, Storage};

/// A scan of files, and its progress. The threads of a query share it.
pub struct FileScan {
    scan: Arc<Scan>,
    queue: FileQueue,
}

/// Rows of one block, or of several that follow one another.
#[derive(Debug)]
pub struct FileBatch {
    /// The rows, all of one file unless [`FileScan::joining_files`] was called.
    pub rows: RecordBatch,
    /// The index of the first row's file among the files of the scan.
    pub file: usize,
    /// The position of the first block in the order of all rows. The positions that one worker returns never fall.
    pub index: u64,
}

/// A batch ends with its block once it has so many rows, and so many bytes were read for it. Each batch costs as much as
/// some hundred rows, however few it has.
const ENOUGH_ROWS: usize = 512;
const ENOUGH_BYTES: usize = 1 << 20;

/// A thread's part of a scan.
pub struct Worker {
    scan: Arc<FileScan>,
    decoder: Decoder,
    work: Option<Work>,
    /// The bytes of the current block.
    block: Vec<u8>,
    /// How many of them were decoded.
    decoded: usize,
    /// Whether the decoder has started the current block.
    is_started: bool,
    /// Why the current file cannot be read further. Reported behind the rows of the block.
    failure: Option<String>,
    last_file: usize,
    /// The file and position of the block with which the batch began, and how many bytes and blocks were read for it.
    begun: Option<(usize, u64)>,
    read: usize,
    blocks: usize,
    /// How many blocks would have given the last batch enough rows.
    wanted: u64,
}

impl FileScan {
    /// A scan of files. If the scan reads messages, `messages` finds them.
    pub fn new(scan: Arc<Scan>, paths: Vec<ScanPath>, messages: Option<MessageFinder>) -> Self {
        let options = FileOptions {
            recover: scan.recovers(),
            verify: scan.verifies(),
            messages: messages.filter(|_| scan.reads_messages()),
            joins_files: false,
        };
        let queue = FileQueue::new(paths, options);
        FileScan { scan, queue }
    }

    /// The scan, with batches that may have rows of several small files.
    pub fn joining_files(mut self) -> Self {
        self.queue.options.joins_files = true;
        self
    }

    /// The share of the scan that was handed out to workers, 0 to 1.
    pub fn progress(&self) -> f64 {
        self.queue.progress()
    }

    /// The projection, options and predicates of the scan.
    pub fn scan(&self) -> &Arc<Scan> {
        &self.scan
    }
}

impl Worker {
    /// A worker of a scan. `arrays` makes the Arrow arrays of its batches.
    pub fn new(scan: &Arc<FileScan>, arrays: MakeArrays) -> Self {
        scan.queue.join();
        Worker {
            begun: None,
            read: 0,
            blocks: 0,
            wanted: 1,
            decoder: Decoder::new(Arc::clone(&scan.scan)).with_arrays(arrays),
            scan: Arc::clone(scan),
            work: None,
            block: Vec::new(),
            decoded: 0,
            is_started: true,
            failure: None,
            last_file: 0,
        }
    }

    /// The path of the file that the worker reads, if there is one: of an entry that of its archive.
    pub fn reading(&self) -> Option<&str> {
        let work = self.work.as_ref()?;
        Some(self.scan.queue.path(work.file).storage_path())
    }

    /// The next rows; `None` at the end of the scan.
    ///
    /// # Errors
    /// [`ScanError::Storage`] and [`ScanError::File`] for files that the caller named, and every other [`ScanError`]
    /// that ends a scan early. After an error the worker cannot be used.
    pub fn next(&mut self, storage: &dyn Storage, interrupt: Interrupt<'_>) -> Result<Option<FileBatch>, ScanError> {
        let scan = Arc::clone(&self.scan);
        let call = Call {
            storage,
            interrupt,
            last: scan.queue.last(),
        };
        let mut reserved = Reserved::none(&scan.queue);
        let next = self.batch(call, &mut reserved)?;
        // The next call can be long after this one, and other threads would wait for it.
        reserved.give_back();
        Ok(next)
    }

    fn batch(&mut self, call: Call<'_>, reserved: &mut Reserved<'_>) -> Result<Option<FileBatch>, ScanError> {
        let interrupt = call.interrupt;
        loop {
            interrupt.check()?;
            if self.begun.is_none() {
                self.begun = self.work.as_ref().map(|work| (work.file, work.batch_index));
            }
            if !self.decoder.is_done() {
                let left = self.block.get(self.decoded..).unwrap_or_default();
                self.decoded += self.decoder.decode(left, interrupt)?;
            }
            let is_full = self.decoder.is_full();
            if !is_full {
                if !self.decoder.is_done() {
                    continue;
                }
                if !self.is_started {
                    // The row of what is wrong with the file as a whole comes before the rows of the block.
                    self.start();
                    continue;
                }
                if let Some(failure) = self.failure.take() {
                    self.report(&failure)?;
                    continue;
                }
            }
            let has_more = !reserved.is_empty() || self.work.as_ref().is_some_and(|work| !work.behind.is_empty());
            let rows = self.decoder.rows();
            let is_enough = rows >= ENOUGH_ROWS && self.read >= ENOUGH_BYTES;
            if is_full || is_enough || !has_more {
                let begun = self.begun.take();
                self.read = 0;
                let blocks = std::mem::take(&mut self.blocks);
                if blocks > 0 {
                    self.wanted = (blocks * ENOUGH_ROWS).div_ceil(rows.max(1)) as u64;
                }
                if let Some(rows) = self.decoder.flush()?
                    && let Some((file, index)) = begun
                {
                    return Ok(Some(FileBatch { rows, file, index }));
                }
            }
            if !is_full && !self.claim(call, reserved)? {
                return Ok(None);
            }
        }
    }

    /// Begins the block that was read.
    fn start(&mut self) {
        self.is_started = true;
        self.decoded = 0;
        if let Some(work) = &self.work
            && let Some((log, block)) = &work.block
        {
            let messages = log.messages.as_ref().and_then(|held| held.messages());
            let path = self.scan.queue.path(work.file).path.as_str();
            self.decoder.start(&path.into(), messages, block.clone());
        }
    }

    /// Goes on to the next block that was claimed, or claims the next work, and reads the block. Returns false at the end
    /// of the scan. A file that a glob found and that cannot be read on is given up.
    fn claim(&mut self, call: Call<'_>, reserved: &mut Reserved<'_>) -> Result<bool, ScanError> {
        let scan = Arc::clone(&self.scan);
        // Lets go of the last file, which may close it, before another one is opened.
        let next = match self.work.take().and_then(Work::next) {
            None => scan.queue.claim(call, self.last_file, self.wanted, reserved)?,
            next => next,
        };
        let Some(mut work) = next else { return Ok(false) };
        self.last_file = work.file;
        if scan.scan.has_rules() {
            let log = work.block.as_ref().map(|(log, _)| log);
            let concerns = log.map(|log| log.concerns(&scan.scan, call.interrupt)).transpose()?;
            self.decoder.of_log(concerns.unwrap_or(true));
        }
        let path = scan.queue.path(work.file);
        let read = match &mut work.block {
            None => Ok(()),
            Some((log, block)) => {
                self.read += block.len as usize;
                self.blocks += 1;
                let read = log.file.read_chunks(&mut self.block, block.offset, block.len);
                if let Chunks::Slots(slot) = block.chunks {
                    block.promised = log.file.promised(&self.block, slot, block.promised)?;
                }
                read
            }
        };
        if let Err(error) = read {
            let why = path.failure(error)?;
            work.behind = 0..0;
            // Other threads can fail at other blocks of the same file. One row of the file is enough.
            let is_first = scan.queue.give_up(work.file);
            self.failure = is_first.then_some(why);
        }
        self.is_started = work.block.is_none();
        if self.decoder.rows() == 0 {
            self.begun = None;
        }
        let damage = work.damage.clone().filter(|_| self.decoder.concerns_log());
        self.work = Some(work);
        damage.map_or(Ok(()), |damage| self.report(&damage))?;
        Ok(true)
    }

    /// Adds a row that says what is wrong with the current file.
    fn report(&mut self, what: &str) -> Result<(), ScanError> {
        let Some(work) = &self.work else { return Ok(()) };
        let path: Arc<str> = self.scan.queue.path(work.file).path.as_str().into();
        Ok(self.decoder.report_file(&path, what)?)
    }
}
