//! Files read for a report.

use std::sync::Arc;

use arrow_array::RecordBatch;
use evtx_arrow::{Report, ReportError};
use evtx_format::Interrupt;
use evtx_format::container::header::FILE_HEADER;

use crate::file::LogFile;
use crate::paths::ScanPath;
use crate::storage::{Call, LastOpened, ScanError, Storage};

/// Most bytes that are read for the fields of events, unless all files are asked for, and fewest of each file. A
/// template comes back in every chunk that uses it, so evenly spread pieces of a file have nearly all that it has.
const SAMPLE_BYTES: u64 = 512 << 20;
const LEAST_BYTES: u64 = 8 << 20;

/// Pieces that are read of a remote file for the fields of events: its header and the first one, which the scan mostly
/// needs too.
const REMOTE_PIECES: u64 = 2;

/// Files that are read for a report, one after the other.
pub struct ReportScan<R> {
    report: R,
    paths: Vec<ScanPath>,
    /// The next path, and the file before it that is being read.
    next: usize,
    reading: Option<Reading>,
    bytes: Vec<u8>,
    is_done: bool,
    last: Arc<LastOpened>,
}

struct Reading {
    file: LogFile,
    offset: u64,
    /// Why it ends before its end.
    failure: Option<String>,
}

impl<R: Report> ReportScan<R> {
    /// A report on files.
    pub fn new(report: R, paths: Vec<ScanPath>) -> Self {
        ReportScan {
            report,
            paths,
            next: 0,
            reading: None,
            bytes: Vec::new(),
            is_done: false,
            last: Arc::default(),
        }
    }

    /// The path of the file that is being read, if any is: of an entry that of its archive.
    pub fn reading(&self) -> Option<&str> {
        let last = self.next.checked_sub(1)?;
        Some(self.paths.get(last)?.storage_path())
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// Those of the storage for files that the caller named, and what ends a report early.
    pub fn next(&mut self, storage: &dyn Storage, interrupt: Interrupt<'_>) -> Result<Option<RecordBatch>, ScanError> {
        let last = Arc::clone(&self.last);
        let call = Call {
            storage,
            interrupt,
            last: &last,
        };
        loop {
            // A report hands out a bounded number of rows at a time: all that are whole go out before more is read.
            let batch = self
                .report
                .batch(self.is_done)
                .map_err(|error| ScanError::Decode(error.into()))?;
            if let Some(batch) = batch.filter(|batch| batch.num_rows() > 0) {
                return Ok(Some(batch));
            }
            if self.is_done {
                return Ok(None);
            }
            self.read(call)?;
        }
    }

    /// Reads the next piece of the files.
    fn read(&mut self, call: Call<'_>) -> Result<(), ScanError> {
        call.interrupt.check()?;
        if let Some(mut reading) = self.reading.take() {
            let path = &self.paths[self.next - 1];
            if read_piece(&mut self.report, path, &mut reading, &mut self.bytes, call)? {
                self.reading = Some(reading);
            }
            return Ok(());
        }
        let Some(path) = self.paths.get(self.next) else {
            self.is_done = true;
            return Ok(());
        };
        self.next += 1;
        self.reading = start(&mut self.report, path, call)?;
        Ok(())
    }
}

/// Begins a file; `None` if it cannot be read, which the report is told.
fn start(report: &mut impl Report, path: &ScanPath, call: Call<'_>) -> Result<Option<Reading>, ScanError> {
    let opened = LogFile::open(call, path).and_then(|file| match &file.failure {
        Some(failure) if file.size() == 0 => Err(failure.clone()),
        _ => Ok(file),
    });
    match opened {
        Ok(mut file) => {
            let failure = file.failure.take().map(|failure| path.damage(failure)).transpose()?;
            report.start(&path.path, file.size());
            Ok(Some(Reading {
                file,
                offset: 0,
                failure,
            }))
        }
        Err(error) => {
            let why = path.failure(error)?;
            report.start(&path.path, 0);
            report.end(Some(&why));
            Ok(None)
        }
    }
}

/// Reads a piece of a file. Returns false if that has ended.
fn read_piece(
    report: &mut impl Report,
    path: &ScanPath,
    reading: &mut Reading,
    bytes: &mut Vec<u8>,
    call: Call<'_>,
) -> Result<bool, ScanError> {
    let Reading { file, offset, failure } = reading;
    let wanted = if *offset == 0 { FILE_HEADER as u64 } else { file.piece() };
    let len = wanted.min(file.size().saturating_sub(*offset));
    if *offset > 0 && len == 0 {
        report.end(failure.as_deref());
        return Ok(false);
    }
    if let Err(error) = file.read(bytes, *offset, len) {
        report.end(Some(&path.failure(error)?));
        return Ok(false);
    }
    *offset += len;
    match report.push(bytes, call.interrupt) {
        Ok(()) => Ok(true),
        Err(ReportError::Interrupted(interrupted)) => Err(interrupted.into()),
        Err(ReportError::Poisoned(poisoned)) => Err(poisoned.into()),
        Err(why) => {
            let why = failure.take().unwrap_or_else(|| why.to_string());
            if path.explicitly_named {
                return Err(ScanError::File(format!("{}: {why}", path.path)));
            }
            report.end(Some(&why));
            Ok(false)
        }
    }
}

/// Reads the fields of events from so many of the files, evenly spread, or from all of all if `sample_size` is `None`.
/// Of a large file some pieces are read, of a remote one the first. A file that cannot be read is the scan's to tell
/// of.
///
/// # Errors
/// [`ScanError::Interrupted`].
pub fn read_sample(
    report: &mut impl Report,
    storage: &dyn Storage,
    paths: &[ScanPath],
    sample_size: Option<usize>,
    interrupt: Interrupt<'_>,
) -> Result<(), ScanError> {
    let call = Call {
        storage,
        interrupt,
        last: &LastOpened::default(),
    };
    let wanted = sample_size.map_or(paths.len(), |size| size.min(paths.len()));
    let mut bytes = Vec::new();
    for i in 0..wanted {
        interrupt.check()?;
        let path = ScanPath {
            explicitly_named: false,
            ..paths[i * paths.len() / wanted].clone()
        };
        let Some(mut reading) = start(report, &path, call)? else {
            continue;
        };
        let share = LEAST_BYTES.max(SAMPLE_BYTES / wanted as u64);
        let stride = sample_size.map_or(1, |_| reading.file.size().div_ceil(share));
        let pieces = if reading.file.is_remote() {
            REMOTE_PIECES
        } else {
            u64::MAX
        };
        for piece in 0..pieces {
            interrupt.check()?;
            if !read_piece(report, &path, &mut reading, &mut bytes, call)? {
                break;
            }
            if piece > 0 {
                let passed = stride.saturating_sub(1) * reading.file.piece();
                reading.offset = (reading.offset + passed).min(reading.file.size());
            }
        }
    }
    Ok(())
}
