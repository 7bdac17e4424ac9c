//! What the threads of a query share, and what each of them does.

use std::sync::Arc;

use arrow_array::RecordBatch;
use evtx_arrow::{Decoder, MakeArrays, Scan};
use evtx_format::Interrupt;

use crate::file::describe_failure;
use crate::messages::MessageFinder;
use crate::paths::ScanPath;
use crate::queue::{FileOptions, FileQueue, Work};
use crate::storage::{Call, ScanError, Storage, StorageError};

/// The files of a query, and what is done of them. The threads share it.
pub struct FileScan {
    scan: Arc<Scan>,
    queue: FileQueue,
}

/// The rows of a block, or some of them.
#[derive(Debug)]
pub struct FileBatch {
    /// The rows, of one file.
    pub rows: RecordBatch,
    /// The number of the file among those of the scan.
    pub file: usize,
    /// The position of the block in the order of all rows. The positions that a worker gives rise.
    pub index: u64,
}

/// A thread of a scan.
pub struct Worker {
    scan: Arc<FileScan>,
    decoder: Decoder,
    work: Option<Work>,
    /// The bytes of the block at hand, and how many of them were decoded.
    block: Vec<u8>,
    decoded: usize,
    /// Whether the decoder was told of the block.
    is_started: bool,
    /// Why there is no more of the block's file, to be told behind its rows.
    failure: Option<String>,
    last_file: usize,
}

impl FileScan {
    /// A scan of files. Messages are looked for by `messages`, if the scan reads them.
    pub fn new(scan: Arc<Scan>, paths: Vec<ScanPath>, messages: Option<MessageFinder>) -> Self {
        let options = FileOptions {
            recover: scan.recovers(),
            verify: scan.verifies(),
            messages: messages.filter(|_| scan.reads_messages()),
        };
        let queue = FileQueue::new(paths, options);
        FileScan { scan, queue }
    }

    /// The share of the scan that was handed out to workers, 0 to 1.
    pub fn progress(&self) -> f64 {
        self.queue.progress()
    }

    /// What is read of the files.
    pub fn scan(&self) -> &Arc<Scan> {
        &self.scan
    }
}

impl Worker {
    /// A thread's part of a scan, with the way to make its arrays.
    pub fn new(scan: &Arc<FileScan>, arrays: MakeArrays) -> Self {
        Worker {
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

    /// The path that is being read, if any is.
    pub fn reading(&self) -> Option<&str> {
        let work = self.work.as_ref()?;
        Some(&self.scan.queue.path(work.file).path)
    }

    /// The next rows; `None` at the end of the scan.
    ///
    /// # Errors
    /// Those of the storage for files that the caller named, and what ends a scan early. Nothing follows an error.
    pub fn next(&mut self, storage: &dyn Storage, interrupt: Interrupt<'_>) -> Result<Option<FileBatch>, ScanError> {
        let call = Call { storage, interrupt };
        loop {
            interrupt.check()?;
            if !self.decoder.is_done() {
                let left = self.block.get(self.decoded..).unwrap_or_default();
                self.decoded += self.decoder.decode(left, interrupt)?;
            }
            if let Some(rows) = self.decoder.flush()?
                && let Some(work) = &self.work
            {
                return Ok(Some(FileBatch {
                    rows,
                    file: work.file,
                    index: work.batch_index,
                }));
            }
            if !self.decoder.is_done() {
                continue;
            }
            if !self.is_started {
                // What is wrong with the file, if anything, was handed out.
                self.start();
            } else if let Some(failure) = self.failure.take() {
                self.report(&failure)?;
            } else if !self.claim(call)? {
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

    /// Claims the thread's next work and reads it. A file that a glob found ends where it cannot be read. Returns false
    /// at the end of the scan.
    fn claim(&mut self, call: Call<'_>) -> Result<bool, ScanError> {
        // What is open of the last block's file is let go of before another one is opened.
        self.work = None;
        let scan = Arc::clone(&self.scan);
        let Some(work) = scan.queue.claim(call, self.last_file)? else {
            return Ok(false);
        };
        self.last_file = work.file;
        let path = scan.queue.path(work.file);
        let read = match &work.block {
            None => Ok(()),
            Some((log, block)) => log.file.read_chunks(&mut self.block, block.offset, block.len),
        };
        match read {
            Ok(()) => {}
            Err(StorageError::Failed(why)) if !path.explicitly_named => {
                // Other threads can be at other blocks of it, and fail too. A row of the file is enough.
                let is_first = scan.queue.give_up(work.file);
                self.failure = is_first.then(|| describe_failure(&why));
            }
            Err(error) => return Err(error.into()),
        }
        self.is_started = work.block.is_none();
        let damage = work.damage.clone();
        self.work = Some(work);
        damage.map_or(Ok(()), |damage| self.report(&damage))?;
        Ok(true)
    }

    /// Adds a row that says what is wrong with the file at hand.
    fn report(&mut self, what: &str) -> Result<(), ScanError> {
        let Some(work) = &self.work else { return Ok(()) };
        let path: Arc<str> = self.scan.queue.path(work.file).path.as_str().into();
        Ok(self.decoder.report_file(&path, what)?)
    }
}
