//! Files read for a report, by any number of threads.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use evtx_arrow::DecodeError;
use evtx_events::{Slots, SlotsError};
use evtx_format::Interrupt;
use evtx_format::container::chunk::CHUNK_SIZE;
use evtx_format::container::header::{FILE_HEADER, FileHeader};
use evtx_format::container::records::PromisedIds;
use evtx_scan::{Buffer, Call, LastOpened, LogFile, ScanError, ScanPath, Storage, WAIT};

use crate::report::Report;

/// How many outcomes can wait for an earlier one.
const MAX_WAITING: usize = 256;

/// A report on files, without its type.
pub trait ReportThreads: Send + Sync {
    /// A thread of it.
    fn thread(&self) -> Box<dyn ReportRows>;

    /// The share of the files that was read, 0 to 1.
    fn progress(&self) -> f64;
}

/// A thread of a report.
pub trait ReportRows: Send {
    /// The path of the file of the storage that is being read, if any.
    fn reading(&self) -> Option<&str>;

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// Those of the storage for files that the caller named, and what ends a report early.
    fn next(&mut self, storage: &dyn Storage, interrupt: Interrupt<'_>) -> Result<Option<ReportBatch>, ScanError>;
}

/// Rows of a report.
#[derive(Debug)]
pub struct ReportBatch {
    /// The rows, with the columns of the projection.
    pub rows: RecordBatch,
    /// The position of the batch in the order of all rows. Those that one thread gets rise.
    pub index: u64,
}

/// Files that are read for a report. The threads look at blocks of files, each at its own, and the report gets what
/// they found in the order of the files.
pub struct ReportScan<R: Report>(Arc<Shared<R>>);

struct Shared<R: Report> {
    paths: Vec<ScanPath>,
    /// The indexes of the columns that are handed out.
    projection: Vec<usize>,
    last: LastOpened,
    progress: Mutex<Progress<R>>,
    changed: Condvar,
}

struct Progress<R: Report> {
    report: R,
    /// The next file that no thread has opened.
    next: usize,
    /// The files that are open and have blocks left.
    open: Vec<OpenFile>,
    /// Outcomes that the report has not received yet, by their steps.
    waiting: BTreeMap<StepIndex, Outcome<R>>,
    /// The next step whose outcome the report receives.
    at: StepIndex,
    /// How many threads look for work or do some.
    threads: usize,
    /// The next batch index.
    index: u64,
    /// Whether a thread has failed, so that its outcome never comes.
    is_failed: bool,
}

/// A step in the order in which the report receives outcomes: the index of a file, and the index of a step. Step 0 of
/// a file is its header; its blocks and its end follow.
type StepIndex = (usize, u64);

/// The outcome of a step.
enum Outcome<R: Report> {
    /// The file was opened, or could not be.
    Start {
        size: u64,
        header: Option<FileHeader>,
    },
    Block(R::BlockResult),
    /// The file has ended. Holds the reason if it was not read to its end.
    End(Option<String>),
}

/// A file with blocks left to read.
#[derive(Clone)]
struct OpenFile {
    file: Arc<LogFile>,
    /// Its index among the files.
    index: usize,
    /// The step of the next block, and its offset in the file.
    step: u64,
    offset: u64,
    /// The IDs that its header promises to its chunks.
    promised: PromisedIds,
    /// How many chunks the file header lists.
    listed_chunks: u64,
    /// The reason if the file cannot be read to its end.
    failure: Option<String>,
}

/// What a thread does next.
enum Work {
    Open(usize),
    Look(OpenFile),
    Wait,
    Nothing,
}

impl<R: Report + 'static> ReportScan<R> {
    /// A report on files, with the columns that have these indexes.
    pub fn new(report: R, paths: Vec<ScanPath>, projection: &[usize]) -> Self {
        ReportScan(Arc::new(Shared {
            paths,
            projection: projection.to_vec(),
            last: LastOpened::default(),
            progress: Mutex::new(Progress {
                report,
                next: 0,
                open: Vec::new(),
                waiting: BTreeMap::new(),
                at: (0, 0),
                threads: 0,
                index: 0,
                is_failed: false,
            }),
            changed: Condvar::new(),
        }))
    }
}

impl<R: Report + 'static> ReportThreads for ReportScan<R> {
    fn thread(&self) -> Box<dyn ReportRows> {
        Box::new(Thread {
            shared: Arc::clone(&self.0),
            worker: None,
            is_begun: false,
            bytes: Buffer::default(),
            reading: None,
        })
    }

    fn progress(&self) -> f64 {
        match self.0.paths.len() {
            0 => 1.0,
            files => self.0.lock().at.0 as f64 / files as f64,
        }
    }
}

struct Thread<R: Report> {
    shared: Arc<Shared<R>>,
    /// Reads blocks, from the first call until no work is left.
    worker: Option<R::Worker>,
    is_begun: bool,
    bytes: Buffer,
    /// The index of the file that it reads.
    reading: Option<usize>,
}

impl<R: Report> Shared<R> {
    // A poisoned lock stays usable: an error or a panic of one thread ends the report.
    fn lock(&self) -> MutexGuard<'_, Progress<R>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the outcome of a step of a file, then an [`Outcome::End`] if that step was its last, and the file if it was
    /// opened and has blocks.
    fn deliver(&self, at: StepIndex, outcome: Outcome<R>, end: Option<Outcome<R>>, opened: Option<OpenFile>) {
        let mut progress = self.lock();
        let (index, step) = at;
        progress.deliver(&self.paths, at, outcome);
        if let Some(end) = end {
            progress.deliver(&self.paths, (index, step + 1), end);
        }
        if let Some(opened) = opened {
            let at = progress.open.partition_point(|other| other.index < index);
            progress.open.insert(at, opened);
        }
        drop(progress);
        self.changed.notify_all();
    }
}

impl<R: Report> Progress<R> {
    /// What a thread does next. Blocks of the first open file come first.
    fn claim(&mut self, files: usize) -> Work {
        let at = self.at;
        self.open.retain(|open| open.index >= at.0);
        let is_next = self.open.first().is_some_and(|open| (open.index, open.step) == at);
        if self.waiting.len() >= MAX_WAITING && !is_next {
            return Work::Wait;
        }
        if let Some(open) = self.open.first_mut() {
            let work = open.clone();
            open.step += 1;
            open.offset += open.file.block_size();
            if open.offset >= open.file.size() {
                self.open.remove(0);
            }
            return Work::Look(work);
        }
        if self.next < files {
            self.next += 1;
            return Work::Open(self.next - 1);
        }
        if self.at.0 < files {
            // A thread that opens a file can find blocks for this one.
            Work::Wait
        } else {
            Work::Nothing
        }
    }

    /// Takes an outcome, and passes on to the report what is in order now.
    fn deliver(&mut self, paths: &[ScanPath], at: StepIndex, found: Outcome<R>) {
        if at >= self.at {
            self.waiting.insert(at, found);
        }
        while let Some(found) = self.waiting.remove(&self.at) {
            let (file, step) = self.at;
            self.at = (file, step + 1);
            match found {
                Outcome::Start { size, header } => self.report.start(&paths[file].path, size, header),
                Outcome::Block(result) => self.report.add(result),
                Outcome::End(failure) => {
                    self.report.end(failure.as_deref());
                    // Outcomes after a failure do not count.
                    self.at = (file + 1, 0);
                    self.waiting = self.waiting.split_off(&self.at);
                }
            }
        }
    }

    /// The next rows that are whole.
    fn batch(&mut self, projection: &[usize], last: bool) -> Result<Option<ReportBatch>, ScanError> {
        let rows = self.report.batch(last).map_err(DecodeError::from)?;
        let Some(rows) = rows.filter(|rows| rows.num_rows() > 0) else {
            return Ok(None);
        };
        self.index += 1;
        Ok(Some(ReportBatch {
            rows: rows.project(projection).map_err(DecodeError::from)?,
            index: self.index - 1,
        }))
    }
}

impl<R: Report> ReportRows for Thread<R> {
    fn reading(&self) -> Option<&str> {
        Some(self.shared.paths.get(self.reading?)?.storage_path())
    }

    fn next(&mut self, storage: &dyn Storage, interrupt: Interrupt<'_>) -> Result<Option<ReportBatch>, ScanError> {
        let shared = Arc::clone(&self.shared);
        let call = Call::new(storage, interrupt, &shared.last);
        loop {
            interrupt.check()?;
            let mut progress = shared.lock();
            if !std::mem::replace(&mut self.is_begun, true) {
                progress.threads += 1;
                self.worker = Some(progress.report.worker());
            }
            if progress.is_failed {
                return Ok(None);
            }
            let is_end = progress.at.0 >= shared.paths.len();
            if is_end && let Some(worker) = self.worker.take() {
                progress.threads -= 1;
                let joined = progress.report.join(worker);
                joined.map_err(|why| ScanError::Input(why.to_string()))?;
            }
            // A report returns a bounded number of rows at a time: return all complete ones before reading more.
            let is_last = is_end && progress.threads == 0;
            if let Some(batch) = progress.batch(&shared.projection, is_last)? {
                return Ok(Some(batch));
            }
            if is_end {
                return Ok(None);
            }
            let work = progress.claim(shared.paths.len());
            if let Work::Wait = work {
                drop(shared.changed.wait_timeout(progress, WAIT));
                continue;
            }
            drop(progress);
            let doing = Doing(&shared);
            match work {
                Work::Open(index) => self.open(index, call)?,
                Work::Look(open) => self.look(&open, call)?,
                Work::Wait | Work::Nothing => {}
            }
            std::mem::forget(doing);
        }
    }
}

/// Work that a thread does. If it fails or panics, drop says so, so that no other thread waits for it.
struct Doing<'s, R: Report>(&'s Shared<R>);

impl<R: Report> Drop for Doing<'_, R> {
    fn drop(&mut self) {
        self.0.lock().is_failed = true;
        self.0.changed.notify_all();
    }
}

impl<R: Report> Thread<R> {
    /// Opens a file and reads its header.
    fn open(&mut self, index: usize, call: Call<'_>) -> Result<(), ScanError> {
        self.reading = Some(index);
        let path = &self.shared.paths[index];
        let (size, started) = start(path, &mut self.bytes, call)?;
        let (header, open, end) = match started {
            Ok((header, _, failure)) if size <= FILE_HEADER as u64 => (Some(header), None, Some(Outcome::End(failure))),
            Ok((header, file, failure)) => {
                let open = OpenFile {
                    file: Arc::new(file),
                    index,
                    step: 1,
                    offset: FILE_HEADER as u64,
                    promised: PromisedIds::of_log(&header),
                    listed_chunks: header.listed_chunks(),
                    failure,
                };
                (Some(header), Some(open), None)
            }
            Err(why) => (None, None, Some(Outcome::End(Some(why)))),
        };
        let start = Outcome::Start { size, header };
        self.shared.deliver((index, 0), start, end, open);
        Ok(())
    }

    /// Looks at the next block of an open file.
    fn look(&mut self, open: &OpenFile, call: Call<'_>) -> Result<(), ScanError> {
        let Some(worker) = &mut self.worker else { return Ok(()) };
        self.reading = Some(open.index);
        let path = &self.shared.paths[open.index];
        let first = (open.offset - FILE_HEADER as u64) / CHUNK_SIZE as u64;
        let len = open.file.block_size().min(open.file.size() - open.offset);
        let found = match open.file.read(&mut self.bytes, open.offset, len) {
            Err(error) => Err(path.failure(error)?),
            Ok(()) => {
                let slots = Slots {
                    bytes: &self.bytes,
                    first,
                    promised: open.file.promised(&self.bytes, first, open.promised)?,
                    used_slots: open
                        .file
                        .used_slots(&self.bytes, first, open.listed_chunks, call.interrupt)?,
                };
                match R::look(worker, slots, call.interrupt) {
                    Ok(result) => Ok(result),
                    Err(why) => Err(failure(path, why)?),
                }
            }
        };
        let end = (open.offset + len >= open.file.size()).then(|| Outcome::End(open.failure.clone()));
        let (found, end) = match found {
            Ok(result) => (Outcome::Block(result), end),
            Err(why) => (Outcome::End(Some(why)), None),
        };
        self.shared.deliver((open.index, open.step), found, end, None);
        Ok(())
    }
}

/// An open log, with the reason if it cannot be read to its end; or why the file cannot be read or is not a log.
type Started = Result<(FileHeader, LogFile, Option<String>), String>;

/// Opens a file and reads its header. Returns its size, too.
///
/// # Errors
/// Why a file that the caller named cannot be read, and [`ScanError::Interrupted`].
fn start(path: &ScanPath, bytes: &mut Buffer, call: Call<'_>) -> Result<(u64, Started), ScanError> {
    let opened = LogFile::open(call, path).and_then(|file| match &file.failure {
        Some(failure) if file.size() == 0 => Err(failure.clone()),
        _ => Ok(file),
    });
    let mut file = match opened {
        Ok(file) => file,
        Err(error) => {
            let why = path.failure(error)?;
            return Ok((path.size_if_skipped(call.storage), Err(why)));
        }
    };
    let size = file.size();
    let failed = file.failure.take().map(|failure| path.damage(failure)).transpose()?;
    if let Err(error) = file.read(bytes, 0, size.min(FILE_HEADER as u64)) {
        return Ok((size, Err(path.failure(error)?)));
    }
    let started = match FileHeader::read(bytes, size) {
        Ok(header) => Ok((header, file, failed)),
        Err(why) => match failed {
            Some(failed) => Err(path.not_a_log(failed)?),
            None => Err(path.not_a_log_in_report(why.to_string(), call.storage)?),
        },
    };
    Ok((size, started))
}

/// Why the rest of a file is left.
///
/// # Errors
/// The reason for a file that the caller named, and what ends a report.
fn failure(path: &ScanPath, why: SlotsError) -> Result<String, ScanError> {
    match why {
        SlotsError::Interrupted(interrupted) => Err(interrupted.into()),
        why => path.unusable(why.to_string()),
    }
}
