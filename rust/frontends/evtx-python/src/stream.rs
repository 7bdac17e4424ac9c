//! Arrow streams, and the rows of a scan in the order of the records.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use evtx_arrow::{DecodeError, MakeArrays};
use evtx_format::{Interrupt, Interrupted};
use evtx_scan::{FileScan, LocalStorage, ScanError, WAIT, Worker};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::conditions::Condition;
use crate::errors::stream_error;
use crate::signals::{Signals, python_thread};
use crate::storage::Files;
use crate::types::Types;

/// How many batches a thread can be ahead of the stream.
const AHEAD: usize = 8;

/// How long the stream waits for the next rows before it takes rows of other threads.
const PATIENCE: Duration = Duration::from_millis(200);

/// How a stream makes its rows from those of the core.
#[derive(Clone)]
pub(crate) struct Output {
    pub(crate) types: Types,
    /// The conditions that the core does not decide, each with the index of its column in the rows.
    pub(crate) conditions: Vec<(Condition, usize)>,
    /// The number of columns that the caller wants. The others are for conditions.
    pub(crate) columns: usize,
    /// The schema of the stream.
    pub(crate) schema: SchemaRef,
}

impl Output {
    /// The rows of the stream.
    fn of(&self, mut rows: RecordBatch) -> Result<RecordBatch, ScanError> {
        for (condition, at) in &self.conditions {
            rows = condition.filter(&rows, *at).map_err(DecodeError::from)?;
        }
        if self.columns < rows.num_columns() {
            rows = rows
                .project(&(0..self.columns).collect::<Vec<_>>())
                .map_err(DecodeError::from)?;
        }
        let rows = self.types.rows(&rows, &self.schema);
        Ok(rows.map_err(DecodeError::from)?)
    }
}

type Numbered = (u64, RecordBatch);

/// The rows of a stream.
pub(crate) trait Rows: Send {
    /// The schema of the rows.
    fn schema(&self) -> SchemaRef;

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// [`ScanError`]. Nothing is asked for after one.
    fn next(&mut self, signals: &Arc<Signals>) -> Result<Option<RecordBatch>, ScanError>;
}

/// A stream. It does not hold the lock of the interpreter while it works.
pub(crate) struct Stream<R> {
    schema: SchemaRef,
    /// `None` after the end.
    rows: Option<R>,
    signals: Arc<Signals>,
    /// The thread of Python that made the stream. It usually holds the lock of the interpreter when it reads the stream.
    maker: Option<ThreadId>,
}

/// The rows of a scan.
pub(crate) struct ScanRows {
    output: Output,
    source: Source,
}

enum Source {
    /// The thread that reads the stream does the work.
    Own(Box<Worker>, Files),
    /// Threads that have not started yet: how many, and whether one can wait for another.
    Unstarted(Arc<FileScan>, usize, bool),
    Threads(Threads),
}

impl ScanRows {
    /// The rows of a scan. `waits_for_others` says whether a thread can wait until another makes progress.
    pub(crate) fn new(scan: FileScan, output: Output, files: Files, threads: usize, waits_for_others: bool) -> Self {
        let scan = Arc::new(scan);
        let source = if files.is_local() && threads > 1 {
            Source::Unstarted(scan, threads, waits_for_others)
        } else {
            Source::Own(Box::new(Worker::new(&scan, MakeArrays::CHECKED)), files)
        };
        ScanRows { output, source }
    }
}

impl Rows for ScanRows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.output.schema)
    }

    fn next(&mut self, signals: &Arc<Signals>) -> Result<Option<RecordBatch>, ScanError> {
        loop {
            match &mut self.source {
                Source::Unstarted(scan, threads, waits_for_others) => {
                    let threads = Threads::start(scan, &self.output, *threads, *waits_for_others)?;
                    self.source = Source::Threads(threads);
                }
                Source::Threads(threads) => return threads.next(signals),
                Source::Own(worker, files) => {
                    let is_set = || signals.is_set();
                    let interrupt = Interrupt::new(&is_set);
                    let Some(batch) = files.with(signals, |storage| worker.next(storage, interrupt))? else {
                        return Ok(None);
                    };
                    let rows = self.output.of(batch.rows)?;
                    if rows.num_rows() > 0 {
                        return Ok(Some(rows));
                    }
                }
            }
        }
    }
}

impl<R: Rows + 'static> Stream<R> {
    /// A stream of rows, as the Arrow C stream interface passes it.
    pub(crate) fn capsule(rows: R, py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
        let stream = Stream {
            schema: rows.schema(),
            rows: Some(rows),
            signals: Arc::new(Signals::new(py)?),
            maker: python_thread(py)?,
        };
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(stream)), c"arrow_array_stream")
    }
}

impl<R: Rows> Stream<R> {
    /// The next rows, made without the lock of the interpreter.
    fn step(&mut self) -> Result<Option<RecordBatch>, ScanError> {
        let Some(rows) = &mut self.rows else { return Ok(None) };
        let signals = &self.signals;
        // Another thread must not ask for the lock: one that holds it may wait for this stream.
        if self.maker != Some(thread::current().id()) {
            return rows.next(signals);
        }
        let mut result = None;
        let attached = Python::try_attach(|py| py.detach(|| result = Some(rows.next(signals))));
        match (attached, result) {
            (_, Some(result)) => result,
            // The interpreter is shutting down.
            (_, None) => Err(Interrupted.into()),
        }
    }
}

impl<R: Rows> Iterator for Stream<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.rows.as_ref()?;
        let step = catch_unwind(AssertUnwindSafe(|| self.step()));
        let error = match step {
            Ok(Ok(Some(rows))) => return Some(Ok(rows)),
            Ok(Ok(None)) => None,
            Ok(Err(error)) => Some(stream_error(&error, &self.signals)),
            Err(_) => Some(ArrowError::ExternalError(
                "an error in the reader itself: it panicked".into(),
            )),
        };
        // Nothing follows the end.
        self.rows = None;
        error.map(Err)
    }
}

impl<R: Rows> RecordBatchReader for Stream<R> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Threads that read local files. They never call Python.
struct Threads {
    heads: Vec<Head>,
    waits_for_others: bool,
    stop: Arc<AtomicBool>,
    handles: Vec<JoinHandle<()>>,
    /// The ID of their process. A fork of it does not have them.
    process: u32,
}

/// The rows of a thread, whose positions never fall.
struct Head {
    /// `None` once the thread has ended.
    rows: Option<Receiver<Result<Numbered, ScanError>>>,
    ready: VecDeque<Numbered>,
}

impl Threads {
    fn start(scan: &Arc<FileScan>, output: &Output, count: usize, waits_for_others: bool) -> Result<Self, ScanError> {
        let mut threads = Threads {
            heads: Vec::new(),
            waits_for_others,
            stop: Arc::default(),
            handles: Vec::new(),
            process: std::process::id(),
        };
        for index in 0..count {
            let (sender, rows) = mpsc::sync_channel(AHEAD);
            let (scan, output, stop) = (Arc::clone(scan), output.clone(), Arc::clone(&threads.stop));
            let name = format!("evtx-{index}");
            let handle = thread::Builder::new()
                .name(name)
                .spawn(move || read(&scan, &output, &stop, &sender));
            match handle {
                Ok(handle) => threads.handles.push(handle),
                Err(_) if index > 0 => break,
                Err(error) => return Err(ScanError::Storage(format!("cannot start a thread: {error}"))),
            }
            let ready = VecDeque::new();
            threads.heads.push(Head {
                rows: Some(rows),
                ready,
            });
        }
        Ok(threads)
    }

    /// The next rows in order. The order is known once each thread has sent rows or has ended.
    fn next(&mut self, signals: &Signals) -> Result<Option<RecordBatch>, ScanError> {
        if self.process != std::process::id() {
            let text = "a stream that was begun cannot be read after a fork: read the scan again".to_owned();
            return Err(ScanError::Input(text));
        }
        let mut since = Instant::now();
        while let Some(waiting) = self.heads.iter().position(Head::is_waiting) {
            if self.heads[waiting].receive(WAIT)? {
                since = Instant::now();
            } else if self.waits_for_others && since.elapsed() > PATIENCE {
                // The thread may wait for an entry of an archive that another holds while it waits for room.
                for head in &mut self.heads {
                    while head.receive(Duration::ZERO)? && head.rows.is_some() {}
                }
            }
            if signals.is_set() {
                return Err(Interrupted.into());
            }
        }
        let first = self.heads.iter_mut().filter(|head| !head.ready.is_empty());
        let first = first.min_by_key(|head| head.ready.front().map(|(index, _)| *index));
        Ok(first.and_then(|head| head.ready.pop_front()).map(|(_, rows)| rows))
    }
}

impl Head {
    fn is_waiting(&self) -> bool {
        self.ready.is_empty() && self.rows.is_some()
    }

    /// Takes rows of the thread. Returns false if none arrived in time.
    fn receive(&mut self, wait: Duration) -> Result<bool, ScanError> {
        let Some(rows) = &self.rows else { return Ok(true) };
        match rows.recv_timeout(wait) {
            Ok(rows) => self.ready.push_back(rows?),
            Err(RecvTimeoutError::Timeout) => return Ok(false),
            Err(RecvTimeoutError::Disconnected) => self.rows = None,
        }
        Ok(true)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // The threads are in another process, and one of them may hold a lock of a channel.
            std::mem::forget((std::mem::take(&mut self.heads), std::mem::take(&mut self.handles)));
            return;
        }
        self.stop.store(true, Ordering::Relaxed);
        // Threads that wait for room end when the channels close.
        self.heads.clear();
        for handle in self.handles.drain(..) {
            // A panic was sent as an error.
            _ = handle.join();
        }
    }
}

/// Reads the scan until it ends or nobody takes the rows.
fn read(scan: &Arc<FileScan>, output: &Output, stop: &AtomicBool, sender: &SyncSender<Result<Numbered, ScanError>>) {
    let work = || {
        let mut worker = Worker::new(scan, MakeArrays::CHECKED);
        let is_set = || stop.load(Ordering::Relaxed);
        loop {
            let next = match worker.next(&LocalStorage, Interrupt::new(&is_set)) {
                Ok(None) => return,
                Ok(Some(batch)) => match output.of(batch.rows) {
                    Ok(rows) if rows.num_rows() == 0 => continue,
                    rows => rows.map(|rows| (batch.index, rows)),
                },
                Err(error) => Err(error),
            };
            let is_last = next.is_err();
            if sender.send(next).is_err() || is_last {
                return;
            }
        }
    };
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        let text = "an error in the reader itself: a thread panicked".to_owned();
        // This fails if the stream is gone.
        _ = sender.send(Err(ScanError::Input(text)));
    }
}
