//! What a report is, and reports that read no files.

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Field, SchemaRef};
use evtx_events::{Slots, SlotsError, TooManyEvents};
use evtx_format::Interrupt;
use evtx_format::container::header::FileHeader;

use crate::table::{self, Row};

/// The most rows of a batch.
pub(crate) const BATCH_ROWS: usize = 2048;

/// Names the type of a column in the caller's language.
pub type TypeName = fn(&Field) -> String;

/// A table about files rather than their records.
///
/// Any number of threads look at blocks of files, each with its own worker. The report gets their results in the order
/// of the files: [`start`](Self::start), [`add`](Self::add) for each block, and [`end`](Self::end). When no file is
/// left, the workers [`join`](Self::join).
pub trait Report: Send {
    /// A row of the table.
    type Row: Row;
    /// What a thread needs to look at blocks.
    type Worker: Send;
    /// The result of looking at a block.
    type BlockResult: Send;

    /// A worker for a thread.
    fn worker(&self) -> Self::Worker;

    /// Looks at a block of a file.
    ///
    /// # Errors
    /// [`SlotsError::TooManyEvents`]: the rest of the file is left out; [`SlotsError::Interrupted`].
    fn look(
        worker: &mut Self::Worker,
        slots: Slots<'_>,
        interrupt: Interrupt<'_>,
    ) -> Result<Self::BlockResult, SlotsError>;

    /// Begins a file of `size` bytes. A file without a header is not an EVTX log, or cannot be read.
    fn start(&mut self, filename: &str, size: u64, header: Option<FileHeader>) {
        let _ = (filename, size, header);
    }

    /// Takes the result for the next block of the file.
    fn add(&mut self, block: Self::BlockResult) {
        drop(block);
    }

    /// Ends the file. `failure` says why it was not read to its end.
    fn end(&mut self, failure: Option<&str>) {
        let _ = failure;
    }

    /// Takes what a worker has kept.
    ///
    /// # Errors
    /// [`TooManyEvents`].
    fn join(&mut self, worker: Self::Worker) -> Result<(), TooManyEvents> {
        drop(worker);
        Ok(())
    }

    /// The next complete rows, at most some thousand; none if there are none yet. `last` says that every worker has
    /// joined.
    fn rows(&mut self, last: bool) -> Vec<Self::Row>;

    /// The [`rows`](Self::rows) as a batch; `None` if there are none.
    ///
    /// # Errors
    /// The error of Arrow if it refuses an array of the batch.
    fn batch(&mut self, last: bool) -> Result<Option<RecordBatch>, ArrowError> {
        let rows = self.rows(last);
        (!rows.is_empty()).then(|| table::batch(&rows)).transpose()
    }

    /// The schema of the batches.
    fn schema() -> SchemaRef {
        table::schema::<Self::Row>()
    }

    /// The name of each column, with a sentence that describes it.
    fn reference() -> Vec<(&'static str, &'static str)> {
        let columns = Self::Row::COLUMNS.iter();
        columns.map(|column| (column.name, column.about)).collect()
    }
}

/// A report with a list of rows, which reads no files.
pub struct ListReport<R>(Box<dyn Iterator<Item = R> + Send>);

impl<R> ListReport<R> {
    pub(crate) fn of(rows: impl Iterator<Item = R> + Send + 'static) -> Self {
        ListReport(Box::new(rows))
    }
}

impl<R: Row> Report for ListReport<R> {
    type Row = R;
    type Worker = ();
    type BlockResult = ();

    fn worker(&self) {}

    fn look((): &mut (), _slots: Slots<'_>, _interrupt: Interrupt<'_>) -> Result<(), SlotsError> {
        Ok(())
    }

    fn rows(&mut self, last: bool) -> Vec<R> {
        if last {
            self.0.by_ref().take(BATCH_ROWS).collect()
        } else {
            Vec::new()
        }
    }
}
