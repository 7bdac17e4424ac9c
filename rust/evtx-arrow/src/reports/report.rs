//! What a report is: it takes the bytes of files, and gives batches of rows on them.

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Field, SchemaRef};
use evtx_format::container::header::NotEvtx;
use evtx_format::{Interrupt, Interrupted};

use crate::scan::Poisoned;

/// The most bytes of memory that the events of a catalog may take. The tens of thousands of events that Windows has
/// take a few MiB. Only crafted files have more.
pub(super) const MAX_EVENT_BYTES: usize = 32 << 20;

/// Gives the name that the type of a column has in the language of the caller, such as SQL.
pub type TypeName = fn(&Field) -> String;

/// The files have more different events than a catalog may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the files have more different events than fit into {} MiB; read fewer files at once", MAX_EVENT_BYTES >> 20)]
pub struct TooManyEvents;

/// Why a report ends, or does without the rest of a file.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The file is no log. The report can go on with the next file.
    #[error(transparent)]
    NotEvtx(#[from] NotEvtx),
    /// There are too many different events. The report can go on with the next file.
    #[error(transparent)]
    TooManyEvents(#[from] TooManyEvents),
    /// The caller has interrupted the report.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// A thread that shares the state of the report has panicked.
    #[error(transparent)]
    Poisoned(#[from] Poisoned),
}

/// A table on files, rather than on their records.
///
/// For each file, the caller calls these in turn:
///
/// 1. [`start`](Self::start);
/// 2. [`push`](Self::push) with the header alone: the first 4,096 bytes, or all of a shorter file;
/// 3. [`push`](Self::push) with the chunks in order, one or more at a time. The last chunk can be cut short;
/// 4. [`end`](Self::end).
///
/// Between these, the caller can take the rows that are ready with [`batch`](Self::batch).
pub trait Report: Send {
    /// The Arrow schema of the batches.
    fn schema(&self) -> SchemaRef;

    /// The name of each column, with a sentence on what the column holds.
    fn reference(&self) -> Vec<(&'static str, &'static str)>;

    /// Begins a file of `size` bytes.
    fn start(&mut self, filename: &str, size: u64);

    /// Takes the next bytes of the file: its header, or chunks.
    ///
    /// # Errors
    /// - [`ReportError::NotEvtx`] if the file does not start with a header, and [`ReportError::TooManyEvents`]. The
    ///   caller then ends the file.
    /// - [`ReportError::Interrupted`] and [`ReportError::Poisoned`]. The report cannot be continued.
    fn push(&mut self, bytes: &[u8], interrupt: Interrupt<'_>) -> Result<(), ReportError>;

    /// Ends the file. If it was not read to its end, `failure` says why.
    fn end(&mut self, failure: Option<&str>);

    /// The next rows that are complete, a few thousand at most; `None` if there are none for now. `last` says that all
    /// files have ended.
    ///
    /// # Errors
    /// The error of Arrow if it refuses an array of the batch.
    fn batch(&mut self, last: bool) -> Result<Option<RecordBatch>, ArrowError>;
}

impl<R: Report + ?Sized> Report for Box<R> {
    fn schema(&self) -> SchemaRef {
        (**self).schema()
    }

    fn reference(&self) -> Vec<(&'static str, &'static str)> {
        (**self).reference()
    }

    fn start(&mut self, filename: &str, size: u64) {
        (**self).start(filename, size);
    }

    fn push(&mut self, bytes: &[u8], interrupt: Interrupt<'_>) -> Result<(), ReportError> {
        (**self).push(bytes, interrupt)
    }

    fn end(&mut self, failure: Option<&str>) {
        (**self).end(failure);
    }

    fn batch(&mut self, last: bool) -> Result<Option<RecordBatch>, ArrowError> {
        (**self).batch(last)
    }
}
