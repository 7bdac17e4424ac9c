//! What a report is: it takes the bytes of files, and gives batches of rows on them.

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Field, SchemaRef};
use evtx_format::container::chunk::CHUNK_SIZE;
use evtx_format::container::header::FileHeader;
use evtx_format::container::records::PromisedIds;
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

/// Consecutive slots of a file, each with a chunk. The last may be cut short.
#[derive(Debug, Clone, Copy, Default)]
pub struct Slots<'b> {
    /// Their bytes.
    pub bytes: &'b [u8],
    /// The index of the first slot in the file.
    pub first: u64,
    /// The IDs that the log promises to the first chunk.
    pub promised: PromisedIds,
}

impl<'b> Slots<'b> {
    /// Each chunk with its index in the file, and the IDs that the log promises to it.
    pub(super) fn iter(self) -> impl Iterator<Item = (u64, &'b [u8], PromisedIds)> {
        let chunks = self.bytes.chunks(CHUNK_SIZE);
        let previous = std::iter::once(None).chain(chunks.clone().map(Some));
        (self.first..)
            .zip(chunks)
            .zip(previous)
            .map(move |((index, chunk), previous)| {
                let promised = match previous {
                    Some(previous) if PromisedIds::matter_to(chunk) => self.promised.after_chunk(previous),
                    _ => self.promised,
                };
                (index, chunk, promised)
            })
    }
}

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
    /// [`ReportError::TooManyEvents`]: the file then ends; [`ReportError::Interrupted`]; [`ReportError::Poisoned`].
    fn look(worker: &mut Self::Worker, slots: Slots<'_>, interrupt: Interrupt<'_>) -> Result<Self::Piece, ReportError>;

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

    fn look((): &mut (), _slots: Slots<'_>, _interrupt: Interrupt<'_>) -> Result<(), ReportError> {
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
