//! What is told of whole files: their events, their headers, their chunks.

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Field, SchemaRef};
use evtx_format::container::header::{FileHeader, NotEvtx};
use evtx_format::{Interrupt, Interrupted};

use crate::catalog::{Catalog, CatalogPlace, TooManyEvents};
use crate::scan::Poisoned;

/// Names the type of a column, as the caller's language does.
pub type TypeName = fn(&Field) -> String;

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
/// For each file: [`start`](Self::start), [`push`](Self::push) of its bytes in order, first its header alone (4,096 bytes,
/// or as many as there are) and then whole chunks, of which the last may be cut short, and [`end`](Self::end).
pub trait Report: Send {
    /// The schema of the batches.
    fn schema(&self) -> SchemaRef;

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

    /// The next rows that are whole, some thousand at most; `None` if there are none for now. `last` says that no file follows.
    ///
    /// # Errors
    /// That of Arrow, if the batch cannot be made.
    fn batch(&mut self, last: bool) -> Result<Option<RecordBatch>, ArrowError>;
}

/// The events of files, as rows of their fields, once all files were read.
#[derive(Debug)]
pub struct EventReport {
    /// What was found so far.
    pub catalog: Catalog,
    type_name: TypeName,
    size: u64,
    has_header: bool,
    /// How far its rows were handed out.
    place: CatalogPlace,
}

impl EventReport {
    /// A report of a catalog.
    pub fn new(catalog: Catalog, type_name: TypeName) -> Self {
        EventReport {
            catalog,
            type_name,
            size: 0,
            has_header: false,
            place: CatalogPlace::default(),
        }
    }
}

impl Report for EventReport {
    fn schema(&self) -> SchemaRef {
        Catalog::schema()
    }

    fn start(&mut self, _filename: &str, size: u64) {
        self.size = size;
        self.has_header = false;
    }

    fn push(&mut self, bytes: &[u8], interrupt: Interrupt<'_>) -> Result<(), ReportError> {
        if self.has_header {
            return self.catalog.push(bytes, interrupt);
        }
        FileHeader::read(bytes, self.size)?;
        self.has_header = true;
        Ok(())
    }

    // What cannot be read holds no events.
    fn end(&mut self, _failure: Option<&str>) {}

    fn batch(&mut self, last: bool) -> Result<Option<RecordBatch>, ArrowError> {
        if !last {
            return Ok(None);
        }
        self.catalog.batch(&mut self.place, self.type_name)
    }
}
