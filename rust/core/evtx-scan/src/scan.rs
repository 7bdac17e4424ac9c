//! The scan that the threads of a query share, and the worker of each thread.

use std::sync::Arc;

use arrow_array::RecordBatch;
use evtx_arrow::{Decoder, MakeArrays, Scan};
use evtx_format::Interrupt;
use evtx_format::container::layout::Chunks;

use crate::beside::{BesideLogs, ReadsLogs};
use crate::file::Buffer;
use crate::queue::{FileOptions, FileQueue, LAST_INDEX, Wanted, Work};
use crate::scan_path::ScanPath;
use crate::second_pass::{Again, FirstPass, LogAgain};
use crate::storage::{Call, ScanError, Storage};
use crate::unmatched::{Advice, Unmatched};

/// A scan of files, and its progress. The threads of a query share it.
pub struct FileScan {
    scan: Arc<Scan>,
    queue: FileQueue,
    /// The first pass, if the row source has a second one.
    first_pass: Option<FirstPass>,
    /// Reads the logs for recovery.
    logs: Option<Box<dyn ReadsLogs>>,
    /// What the scan says if it finds no record.
    unmatched: Option<Unmatched>,
}

/// Rows of one block, or of several that follow one another.
#[derive(Debug)]
pub struct FileBatch {
    /// The rows, all of one file unless [`FileScan::joining_files`] was called.
    pub rows: RecordBatch,
    /// The index of the first row's file among the files of the scan.
    pub file: usize,
    /// The position of the first block of their claim in the order of all rows. The positions that one worker returns
    /// never fall.
    pub index: u64,
}

/// A batch ends with its block when it has this many rows and this many bytes were read for it. Each batch costs as
/// much as some hundred rows, however few it has.
const ENOUGH_ROWS: usize = 512;
const ENOUGH_BYTES: usize = 1 << 20;

/// The most bytes that are read for a batch, if it has any rows.
const MOST_BYTES: usize = 8 << 20;

/// The rows of a claim: a row group of DuckDB, whose ordered sinks copy the rows of shorter claims.
const CLAIM_ROWS: usize = 122_880;

/// What is wrong with the rows of a file that changes while it is read.
const CHANGED: &str =
    "the file was modified while it was read: records of before and after it can be mixed, or missing";

/// A thread's part of a scan.
pub struct Worker {
    scan: Arc<FileScan>,
    decoder: Decoder,
    work: Option<Work>,
    state: State,
    /// The bytes of the current block.
    block: Buffer,
    batch: Batch,
    claim: Claim,
    wanted: Wanted,
    again: Again,
    /// Whether its part of the scan has ended.
    has_left: bool,
}

/// What a worker does with its work.
enum State {
    /// So many bytes of the block were decoded. The reason why the file cannot be read further comes after its rows.
    Decoding { decoded: usize, failure: Option<String> },
    /// The work is done. The file stays open until the next work is claimed.
    Done,
}

/// The batch that is being made.
#[derive(Default)]
struct Batch {
    /// The file and position of its first block.
    file: usize,
    index: u64,
    /// How many bytes and blocks were read for it.
    bytes: usize,
    blocks: usize,
}

/// The blocks that were claimed at once. Their batches have the same index.
#[derive(Default)]
struct Claim {
    index: u64,
    rows: usize,
}

impl FileScan {
    /// A scan of files. If the scan reads what is beside logs, `beside` finds it.
    pub fn new(scan: Arc<Scan>, paths: Vec<ScanPath>, beside: Option<Box<dyn BesideLogs>>) -> Self {
        let options = FileOptions {
            scan: Arc::clone(&scan),
            beside: beside.filter(|_| scan.reads_beside()),
            joins_files: false,
        };
        let queue = FileQueue::new(paths, options);
        FileScan {
            first_pass: scan.sees_all().then(FirstPass::default),
            scan,
            queue,
            logs: None,
            unmatched: None,
        }
    }

    /// The scan, with batches that may have rows of several small files.
    pub fn joining_files(mut self) -> Self {
        self.queue.options.joins_files = true;
        self
    }

    /// The scan, whose recovery may need other logs. They are read so.
    pub fn reading_logs(self, logs: Option<Box<dyn ReadsLogs>>) -> Self {
        FileScan { logs, ..self }
    }

    /// The scan, which has a row with this advice if it finds no record.
    pub fn advising(self, advice: Advice) -> Self {
        let unmatched = Some(Unmatched::new(advice));
        FileScan { unmatched, ..self }
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
        scan.first_pass.iter().for_each(FirstPass::join);
        scan.unmatched.iter().for_each(Unmatched::join);
        Worker {
            decoder: Decoder::new(Arc::clone(&scan.scan)).with_arrays(arrays),
            scan: Arc::clone(scan),
            work: None,
            state: State::Done,
            block: Buffer::default(),
            batch: Batch::default(),
            claim: Claim::default(),
            wanted: Wanted {
                last_file: 0,
                blocks: 1,
                long_claim: false,
            },
            again: Again::Later,
            has_left: false,
        }
    }

    /// Says whether the engine restores the order of the rows by the indices of their batches. It then gets longer
    /// claims.
    pub fn keep_order(&mut self, keeps_order: bool) {
        self.wanted.long_claim = keeps_order;
    }

    /// The path of the file of the storage that the worker reads, if there is one.
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
        let call = Call::new(storage, interrupt, &scan.queue.last);
        self.batch(call)
    }

    fn batch(&mut self, call: Call<'_>) -> Result<Option<FileBatch>, ScanError> {
        loop {
            call.interrupt.check()?;
            if self.decoder.is_full()
                && let Some(batch) = self.flush()?
            {
                return Ok(Some(batch));
            }
            match &mut self.state {
                State::Decoding { decoded, .. } if !self.decoder.is_done() => {
                    let left = self.block.get(*decoded..).unwrap_or_default();
                    *decoded += self.decoder.decode(left, call.interrupt)?;
                    if let Some(logs) = self.scan.logs.as_ref().filter(|_| self.decoder.needs_logs()) {
                        logs.read(call, self.scan.queue.paths())?;
                    }
                }
                State::Decoding { failure, .. } => {
                    let failure = failure.take();
                    self.state = State::Done;
                    if let Some(failure) = failure {
                        self.report(&failure)?;
                    }
                }
                State::Done => {
                    if self.is_batch_done()
                        && let Some(batch) = self.flush()?
                    {
                        return Ok(Some(batch));
                    }
                    if !self.claim(call)? {
                        // Rows on correlations that could not be evaluated, and on providers without records, come after
                        // all others, and have no work.
                        self.claim.index = LAST_INDEX;
                        self.leave()?;
                        return self.flush();
                    }
                }
            }
        }
    }

    /// Whether the batch ends here, though it is not full.
    fn is_batch_done(&self) -> bool {
        let joins_files = self.scan.queue.options.joins_files;
        if !self.work.as_ref().is_some_and(|work| work.has_more(joins_files)) {
            return true;
        }
        let is_enough = self.decoder.rows() >= ENOUGH_ROWS && self.batch.bytes >= ENOUGH_BYTES;
        is_enough && !self.wanted.long_claim || self.decoder.rows() > 0 && self.batch.bytes >= MOST_BYTES
    }

    /// Ends the batch; `None` if it has no rows.
    fn flush(&mut self) -> Result<Option<FileBatch>, ScanError> {
        let Batch {
            file, index, blocks, ..
        } = std::mem::take(&mut self.batch);
        if blocks > 0 {
            self.wanted.blocks = (blocks * ENOUGH_ROWS).div_ceil(self.decoder.rows().max(1)) as u64;
        }
        if let Some(work) = &self.work {
            // The next batch can begin with the rest of the same block.
            (self.batch.file, self.batch.index) = (work.file, work.batch_index);
        }
        if let Some(unmatched) = &self.scan.unmatched
            && self.decoder.has_records()
        {
            unmatched.found();
        }
        let Some(rows) = self.decoder.flush()? else {
            return Ok(None);
        };
        if self.claim.rows >= CLAIM_ROWS {
            self.claim = Claim { index, rows: 0 };
        }
        self.claim.rows += rows.num_rows();
        let index = self.claim.index;
        Ok(Some(FileBatch { rows, file, index }))
    }

    /// Lets the decoder start the block that was read.
    fn start(&mut self) {
        if let Some(work) = &self.work
            && let Some((log, block)) = &work.block
        {
            let path = self.scan.queue.path(work.file).path.as_str();
            self.decoder.doubt(log.file.doubts());
            self.decoder.start(&path.into(), log.beside.clone(), block.clone());
        }
    }

    /// Goes on to the next block that was claimed, or claims the next work, and reads the block. Returns false at the
    /// end of the scan. A file that a glob found and that cannot be read on is given up.
    fn claim(&mut self, call: Call<'_>) -> Result<bool, ScanError> {
        let scan = Arc::clone(&self.scan);
        let next = match self.work.take() {
            Some(work) => scan.queue.next(call, work, &mut self.block)?,
            None => None,
        };
        let mut work = match next {
            Some(work) => work,
            None => {
                let work = match scan.queue.claim(call, self.wanted, &mut self.block)? {
                    Some(work) => Some(work),
                    None => self.claim_again(call)?,
                };
                let Some(work) = work else { return Ok(false) };
                self.claim = Claim {
                    index: work.batch_index,
                    rows: 0,
                };
                work
            }
        };
        self.wanted.last_file = work.file;
        let mut reports_log = true;
        if let (Some(source), Some(finder)) = (scan.scan.source(), self.decoder.finder()) {
            let log = work.block.as_ref().map(|(log, _)| log);
            let concerns = log.map(|log| log.concerns(&**source, call.interrupt)).transpose()?;
            finder.start_block(work.file, concerns.unwrap_or(true));
            reports_log = finder.reports_log();
        }
        if self.decoder.rows() == 0 {
            (self.batch.file, self.batch.index) = (work.file, work.batch_index);
        }
        self.state = State::Done;
        if let Some((log, block)) = &mut work.block {
            self.batch.bytes += block.len as usize;
            self.batch.blocks += 1;
            let read = if log.is_read {
                self.block.show(block.offset, block.len)
            } else {
                log.file.read_chunks(&mut self.block, block.offset, block.len)
            };
            if let Chunks::Slots(slot) = block.chunks {
                block.promised = log.file.promised(&self.block, slot, block.promised)?;
                block.used_slots = log
                    .file
                    .used_slots(&self.block, slot, block.used_slots, call.interrupt)?;
            }
            let mut failure = None;
            if let Err(error) = read {
                let why = scan.queue.path(work.file).failure(error)?;
                work.give_up();
                // Other threads can fail at other blocks of the same file. One row of the file is enough.
                failure = scan.queue.give_up(work.file).then_some(why);
            } else if log.file.has_changed() {
                failure = Some(CHANGED.to_owned());
            }
            self.state = State::Decoding { decoded: 0, failure };
        }
        if let (Some(first), Some((log, _))) = (&scan.first_pass, &work.block) {
            first.note(work.file, log.file.version());
        }
        let damage = std::mem::take(&mut work.damage);
        self.work = Some(work);
        // Rows on damage to the whole file come before its other rows.
        if reports_log {
            damage.iter().try_for_each(|damage| self.report(damage))?;
        }
        self.start();
        Ok(true)
    }

    /// The next work of the second pass, if the row source has one and this is its last worker.
    fn claim_again(&mut self, call: Call<'_>) -> Result<Option<Work>, ScanError> {
        let (scan, paths) = (Arc::clone(&self.scan), self.scan.queue.paths());
        let (Some(first), Some(finder)) = (&scan.first_pass, self.decoder.finder()) else {
            return Ok(None);
        };
        let Some(pass) = finder.second_pass() else {
            return Ok(None);
        };
        if let Again::Later = self.again {
            let is_last = first.leave();
            pass.begin(is_last, call.interrupt)?;
            self.again = if is_last { Again::Reading(None) } else { Again::Done };
        }
        let Again::Reading(reading) = &mut self.again else {
            return Ok(None);
        };
        loop {
            if let Some(again) = reading {
                if let Some(block) = again.next_block(|offsets| pass.wants(offsets)) {
                    return Ok(Some(Work::last(again.file, Some(block), Vec::new())));
                }
                let file = again.file;
                *reading = None;
                if let Some(why) = pass.missed() {
                    return Ok(Some(Work::last(file, None, vec![why])));
                }
            }
            let path = |file: usize| paths[file].path.as_str().into();
            let Some(file) = pass.next_log(&path) else {
                let problems = pass.problems(&path);
                self.again = Again::Done;
                for (path, why) in problems {
                    self.decoder.report_file(&path, &why)?;
                }
                return Ok(None);
            };
            let log = match scan.queue.open_log(call, file, None) {
                Ok((log, _)) => log,
                // It was there before. A row says what was missed.
                Err(ScanError::Storage(_) | ScanError::File(_) | ScanError::Refused { .. }) => None,
                Err(error) => return Err(error),
            };
            let version = log.as_ref().map(|log| log.file.version());
            *reading = Some(LogAgain::new(file, log));
            if version.is_some_and(|version| first.is_changed(file, version)) {
                return Ok(Some(Work::last(file, None, vec![CHANGED.to_owned()])));
            }
        }
    }

    /// Ends the worker's part of the scan.
    fn leave(&mut self) -> Result<(), ScanError> {
        let scan = Arc::clone(&self.scan);
        if let (Some(unmatched), Some(first)) = (&scan.unmatched, scan.queue.paths().first())
            && !std::mem::replace(&mut self.has_left, true)
            && let Some(advice) = unmatched.leave()
        {
            self.decoder.report_file(&first.path.as_str().into(), &advice)?;
        }
        Ok(())
    }

    /// Adds a row that says what is wrong with the current file.
    fn report(&mut self, what: &str) -> Result<(), ScanError> {
        let Some(work) = &self.work else { return Ok(()) };
        let path: Arc<str> = self.scan.queue.path(work.file).path.as_str().into();
        Ok(self.decoder.report_file(&path, what)?)
    }
}
