//! What is told of whole files: their events, their headers, their chunks.

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Field, SchemaRef};
use evtx_format::container::header::NotEvtx;
use evtx_format::{Interrupt, Interrupted};

use crate::scan::Poisoned;

/// Most bytes that are kept of the events. The some tens of thousands that Windows has take a few MiB; more come from
/// crafted files.
pub(super) const MAX_EVENT_BYTES: usize = 32 << 20;

/// Names the type of a column, as the caller's language does.
pub type TypeName = fn(&Field) -> String;

/// There are more different events than a catalog tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the different events take more than {} MiB", MAX_EVENT_BYTES >> 20)]
pub struct TooManyEvents;

/// Why a report leaves the rest of a file, or ends.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The file is no log.
    #[error(transparent)]
    NotEvtx(#[from] NotEvtx),
    /// There is too much to tell.
    #[error(transparent)]
    TooManyEvents(#[from] TooManyEvents),
    /// The caller wants no more.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// A thread panicked.
    #[error(transparent)]
    Poisoned(#[from] Poisoned),
}

/// A table of what files are, rather than of what their records say.
///
/// For each file: [`start`](Self::start), [`push`](Self::push) of its bytes in order, first its header alone (4,096
/// bytes, or as many as there are) and then whole chunks, of which the last may be cut short, and [`end`](Self::end).
pub trait Report: Send {
    /// The schema of the batches.
    fn schema(&self) -> SchemaRef;

    /// The name of each column, with what it holds.
    fn reference(&self) -> Vec<(&'static str, &'static str)>;

    /// Begins a file of `size` bytes.
    fn start(&mut self, filename: &str, size: u64);

    /// Takes the next bytes of the file.
    ///
    /// # Errors
    /// [`ReportError::NotEvtx`] where they are no header, [`ReportError::TooManyEvents`]: the file then ends;
    /// [`ReportError::Interrupted`]; [`ReportError::Poisoned`].
    fn push(&mut self, bytes: &[u8], interrupt: Interrupt<'_>) -> Result<(), ReportError>;

    /// Ends the file. `failure` says why the rest of it was not read, if it was not.
    fn end(&mut self, failure: Option<&str>);

    /// The next rows that are whole, some thousand at most; `None` if there are none for now. `last` says that no file
    /// follows.
    ///
    /// # Errors
    /// That of Arrow, if the batch cannot be made.
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
