//! What a report is: it takes the bytes of files, and gives batches of rows on them.

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Field, SchemaRef};
use evtx_arrow::{Slots, SlotsError, TooManyEvents};
use evtx_format::Interrupt;
use evtx_format::container::header::FileHeader;

/// Gives the name that the type of a column has in the language of the caller, such as SQL.
pub type TypeName = fn(&Field) -> String;

/// A table on files, rather than on their records.
///
/// Any number of threads look at pieces of files, each with a worker of its own. What they find is told to the report
/// in the order of the files: for each file [`start`](Self::start), [`add`](Self::add) for its pieces, and
/// [`end`](Self::end). The workers join it at the end.
pub trait Report: Send {
    /// What a thread looks at pieces with.
    type Worker: Send;
    /// What there is to tell of a piece.
    type Piece: Send;

    /// The schema of the batches.
    fn schema(&self) -> SchemaRef;

    /// The name of each column, with a sentence on what the column holds.
    fn reference(&self) -> Vec<(&'static str, &'static str)>;

    /// A worker for a thread.
    fn worker(&self) -> Self::Worker;

    /// Looks at a piece of a file.
    ///
    /// # Errors
    /// [`SlotsError::TooManyEvents`]: the file then ends; [`SlotsError::Interrupted`]; [`SlotsError::Poisoned`].
    fn look(worker: &mut Self::Worker, slots: Slots<'_>, interrupt: Interrupt<'_>) -> Result<Self::Piece, SlotsError>;

    /// Begins a file of `size` bytes. It has no header if it is no log, or cannot be read.
    fn start(&mut self, filename: &str, size: u64, header: Option<FileHeader>);

    /// Takes what there is to tell of the next piece of the file.
    fn add(&mut self, piece: Self::Piece);

    /// Ends the file. If it was not read to its end, `failure` says why.
    fn end(&mut self, failure: Option<&str>);

    /// Takes what a worker has kept, when no file is left.
    ///
    /// # Errors
    /// [`TooManyEvents`] if there is no room for it.
    fn join(&mut self, worker: Self::Worker) -> Result<(), TooManyEvents>;

    /// The next rows that are whole, some thousand at most; `None` if there are none for now. `last` says that no file
    /// follows, and that every worker has joined.
    ///
    /// # Errors
    /// The error of Arrow if it refuses an array of the batch.
    fn batch(&mut self, last: bool) -> Result<Option<RecordBatch>, ArrowError>;
}

/// A table that is a report in its form only: it reads no files.
pub(super) trait ReportWithoutFiles: Send {
    /// The schema of the batches.
    fn schema(&self) -> SchemaRef;

    /// The name of each column, with a sentence on what the column holds.
    fn reference(&self) -> Vec<(&'static str, &'static str)>;

    /// The next rows; `None` if there are no more.
    ///
    /// # Errors
    /// The error of Arrow if it refuses an array of the batch.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError>;
}

impl<R: ReportWithoutFiles> Report for R {
    type Worker = ();
    type Piece = ();

    fn schema(&self) -> SchemaRef {
        ReportWithoutFiles::schema(self)
    }

    fn reference(&self) -> Vec<(&'static str, &'static str)> {
        ReportWithoutFiles::reference(self)
    }

    fn worker(&self) {}

    fn look((): &mut (), _slots: Slots<'_>, _interrupt: Interrupt<'_>) -> Result<(), SlotsError> {
        Ok(())
    }

    fn start(&mut self, _filename: &str, _size: u64, _header: Option<FileHeader>) {}

    fn add(&mut self, (): ()) {}

    fn end(&mut self, _failure: Option<&str>) {}

    fn join(&mut self, (): ()) -> Result<(), TooManyEvents> {
        Ok(())
    }

    fn batch(&mut self, last: bool) -> Result<Option<RecordBatch>, ArrowError> {
        match last {
            true => self.next_batch(),
            false => Ok(None),
        }
    }
}
