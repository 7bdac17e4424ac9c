//! Files read for a report.

use arrow_array::RecordBatch;
use evtx_arrow::{Report, ReportError};
use evtx_format::Interrupt;
use evtx_format::container::header::FILE_HEADER;

use crate::file::{LogFile, describe_failure};
use crate::paths::ScanPath;
use crate::storage::{Call, ScanError, Storage, StorageError};

/// Files that are read for a report, one after the other.
pub struct ReportScan<R> {
    report: R,
    paths: Vec<ScanPath>,
    /// The next path, and the file before it that is being read.
    next: usize,
    reading: Option<Reading>,
    bytes: Vec<u8>,
    is_done: bool,
}

struct Reading {
    file: LogFile,
    offset: u64,
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
        }
    }

    /// The path that is being read, if any is.
    pub fn reading(&self) -> Option<&str> {
        let last = self.next.checked_sub(1)?;
        Some(&self.paths.get(last)?.path)
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// Those of the storage for files that the caller named, and what ends a report early.
    pub fn next(&mut self, storage: &dyn Storage, interrupt: Interrupt<'_>) -> Result<Option<RecordBatch>, ScanError> {
        let call = Call { storage, interrupt };
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
    match LogFile::open(call.storage, path) {
        Ok(file) => {
            report.start(&path.path, file.size());
            Ok(Some(Reading { file, offset: 0 }))
        }
        Err(StorageError::Failed(why)) if !path.explicitly_named => {
            report.start(&path.path, 0);
            report.end(Some(&describe_failure(&why)));
            Ok(None)
        }
        Err(error) => Err(error.into()),
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
    let Reading { file, offset } = reading;
    let wanted = if *offset == 0 { FILE_HEADER as u64 } else { file.piece() };
    let len = wanted.min(file.size().saturating_sub(*offset));
    if *offset > 0 && len == 0 {
        report.end(None);
        return Ok(false);
    }
    match file.read(bytes, *offset, len) {
        Ok(()) => {}
        Err(StorageError::Failed(why)) if !path.explicitly_named => {
            report.end(Some(&describe_failure(&why)));
            return Ok(false);
        }
        Err(error) => return Err(error.into()),
    }
    *offset += len;
    match report.push(bytes, call.interrupt) {
        Ok(()) => Ok(true),
        Err(ReportError::Interrupted(interrupted)) => Err(interrupted.into()),
        Err(ReportError::Poisoned(poisoned)) => Err(poisoned.into()),
        Err(why) if path.explicitly_named => Err(ScanError::File(format!("{}: {why}", path.path))),
        Err(why) => {
            report.end(Some(&why.to_string()));
            Ok(false)
        }
    }
}
