//! The seam for what is above this crate: columns that it does not know, and row sources that decide what becomes a row.
//!
//! Virtual calls happen once per group of records and extra column. Only a scan with a row source has some per record.

use std::any::Any;
use std::cell::RefCell;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{ArrowError, Field};
use bumpalo::Bump;
use evtx_format::{Interrupt, Interrupted};

use crate::arrays::MakeArrays;
use crate::plan::{Keys, PathId, Projection};
use crate::record::{ChunkTemplates, KeptRecord, PathValues, ReadRecord, RecordGroup, RecordHeader};
use crate::schema::{Comparable, EventPath};

/// What an extra column or a row source needs of each record.
#[derive(Debug, Clone, Default)]
pub struct Requirements {
    /// The paths that are read.
    pub paths: Vec<EventPath>,
    /// Whether the entries of `EventData` are read.
    pub event_data: bool,
    /// Whether the leaves of `UserData` are read as entries.
    pub user_entries: bool,
    /// Whether all other values are read.
    pub other_values: bool,
    /// Whether each record is checked in full, so that its damage is known.
    pub whole: bool,
    /// Whether it reads what is beside the log.
    pub beside: bool,
}

impl Requirements {
    /// Some paths.
    pub fn of_paths(paths: &[EventPath]) -> Self {
        Requirements {
            paths: paths.to_vec(),
            ..Requirements::default()
        }
    }

    /// All that values are matched by: the paths of `System`, and all other values.
    pub fn all_values(paths: Vec<EventPath>) -> Self {
        Requirements {
            paths,
            event_data: true,
            user_entries: true,
            other_values: true,
            whole: true,
            beside: false,
        }
    }

    /// Whether it needs a value of the event.
    pub(crate) fn reads_event(&self) -> bool {
        !self.paths.is_empty() || self.event_data || self.user_entries || self.other_values
    }

    pub(crate) fn add_to(&self, projection: &mut Projection) {
        for path in &self.paths {
            projection.path(*path);
        }
        projection.event_data |= self.event_data;
        projection.user_entries |= self.user_entries;
        projection.other_values |= self.other_values;
    }
}

/// What was found beside a log. Only the columns that read it know its type.
pub type Beside = Arc<dyn Any + Send + Sync>;

/// A value of an extra column that a row source knows before it reads a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known<'k> {
    /// A text.
    Text(&'k str),
    /// A number.
    Number(u64),
}

/// The values of the extra columns of some rows, if they are known.
pub type KnownValues<'v> = dyn for<'c> Fn(&'c dyn ExtraColumn) -> Option<Known<'v>> + 'v;

/// Whether predicates on extra columns can be true for rows with certain values.
pub type Keeps<'k> = dyn for<'v> Fn(&KnownValues<'v>) -> bool + 'k;

/// A column that this crate does not know.
pub trait ExtraColumn: Debug + Send + Sync + Any {
    /// The column as a field of an Arrow schema.
    fn field(&self, name: &str) -> Field;

    /// What it needs of each record.
    fn requirements(&self) -> Requirements {
        Requirements::default()
    }

    /// How predicates on it are compared, if [`RowSource::of_scan`] decides them. `None` if the engine does.
    fn comparable(&self) -> Option<Comparable> {
        None
    }

    /// The builder of the column, for one thread of a scan.
    fn builder(&self, scan: &ScanLayout<'_>) -> Box<dyn ExtraBuilder>;
}

/// The builder of an extra column. Each call but `bytes` and `finish` adds rows.
pub trait ExtraBuilder: Debug + Send {
    /// Appends a row for each record of a group.
    ///
    /// # Errors
    /// Those of Arrow.
    fn push(&mut self, rows: &GroupRows<'_>) -> Result<(), ArrowError>;

    /// Appends the row of what is no record: it is NULL.
    ///
    /// # Errors
    /// Those of Arrow.
    fn push_bare(&mut self) -> Result<(), ArrowError>;

    /// How many bytes the builder holds, besides a fixed number for each row.
    fn bytes(&self) -> usize {
        0
    }

    /// Ends the batch.
    ///
    /// # Errors
    /// Those of Arrow.
    fn finish(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError>;
}

/// What the builders of one thread share, each under its type.
#[derive(Debug, Default)]
pub(crate) struct Shared(RefCell<Vec<Arc<dyn Any + Send + Sync>>>);

/// What extra columns and row sources need of a scan, for one of its threads.
#[derive(Debug, Clone, Copy)]
pub struct ScanLayout<'s> {
    pub(crate) projection: &'s Projection,
    pub(crate) source: Option<&'s dyn RowSource>,
    pub(crate) shared: &'s Shared,
}

impl<'s> ScanLayout<'s> {
    /// A path that is read.
    pub fn path(&self, path: EventPath) -> Option<PathId> {
        self.projection.path_id(path)
    }

    /// The row source of the scan, if it is of a type.
    pub fn source<T: RowSource>(&self) -> Option<&'s T> {
        let source: &dyn Any = self.source?;
        source.downcast_ref()
    }

    /// What the extra columns of the thread share: the value that the first one makes.
    pub fn shared<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let known = self
            .shared
            .0
            .borrow()
            .iter()
            .find_map(|known| Arc::clone(known).downcast().ok());
        known.unwrap_or_else(|| {
            let made = Arc::new(make());
            self.shared.0.borrow_mut().push(Arc::clone(&made) as _);
            made
        })
    }
}

/// The rows of a group of records.
pub struct GroupRows<'g> {
    pub(crate) kept: &'g [KeptRecord],
    pub(crate) rows: &'g [PathValues<'g, 'g>],
    pub(crate) group: &'g RecordGroup<'g>,
    pub(crate) templates: &'g ChunkTemplates,
    pub(crate) keys: &'g Keys,
    pub(crate) arena: &'g Bump,
    pub(crate) chunk: &'g [u8],
    pub(crate) beside: Option<&'g (dyn Any + Send + Sync)>,
    pub(crate) found: Option<&'g dyn Any>,
}

impl<'g> GroupRows<'g> {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The record of a row; `None` if the column needs no value of it.
    pub fn record(&self, row: usize) -> Option<ReadRecord<'g>> {
        let row = self.rows.get(row)?;
        Some(ReadRecord::new(row.record, self.templates, self.keys))
    }

    /// The chunk offset of the record of a row; `None` if the record is damaged.
    pub fn valid_offset(&self, row: usize) -> Option<u32> {
        let is_valid = !self.kept[row].is_damaged && self.group.reported(row).is_none();
        is_valid.then_some(self.kept[row].offset)
    }

    /// The ID of the record of a row.
    pub fn record_id(&self, row: usize) -> u64 {
        self.kept[row].id
    }

    /// The chunk.
    pub fn chunk(&self) -> &'g [u8] {
        self.chunk
    }

    /// Memory that lasts as long as the group.
    pub fn arena(&self) -> &'g Bump {
        self.arena
    }

    /// What was found beside the log, if it is of a type.
    pub fn beside<T: Any>(&self) -> Option<&'g T> {
        self.beside?.downcast_ref()
    }

    /// Whether a record may have a path outside of `System` that the scan reads.
    pub fn is_beyond_system(&self) -> bool {
        self.group.beyond_system
    }

    /// What the row source has for the rows: see [`RowFinder::rows`].
    pub fn found<T: Any>(&self) -> Option<&'g T> {
        self.found?.downcast_ref()
    }
}

/// Decides what becomes a row, for all threads of a scan. Without one, each record is a row.
pub trait RowSource: Debug + Send + Sync + Any {
    /// What it needs of each record.
    fn requirements(&self) -> Requirements;

    /// Whether its finders must see every record, so that predicates only choose rows. Their [`SecondPass`] follows.
    fn sees_all(&self) -> bool {
        false
    }

    /// The source for one scan. If there are predicates on its extra columns, `keeps` decides them for rows with certain
    /// values.
    fn of_scan(&self, keeps: Option<&Keeps<'_>>) -> Arc<dyn RowSource>;

    /// Whether something can be found in the log of a chunk; `None` if the chunk does not tell.
    ///
    /// # Errors
    /// [`Interrupted`].
    fn concerns(&self, chunk: &[u8], interrupt: Interrupt<'_>) -> Result<Option<bool>, Interrupted>;

    /// The finder of one thread.
    fn finder(&self, scan: &ScanLayout<'_>) -> Box<dyn RowFinder>;
}

/// Finds what becomes a row in the records that one thread reads. It keeps what it has found for each row of a group, which
/// only its own columns understand.
pub trait RowFinder: Send + Any {
    /// Begins a block of a log. `log` is the index of the log among those of the scan, and `concerns` what
    /// [`RowSource::concerns`] says of it.
    fn start_block(&mut self, log: usize, concerns: bool) {
        let _ = (log, concerns);
    }

    /// Begins a chunk.
    fn start_chunk(&mut self);

    /// Begins a record. Returns false if the record has no row, whatever is in it.
    fn begin(&mut self, header: &RecordHeader) -> bool;

    /// Whether something can be found in a valid record, of which only the sections and no texts were read.
    ///
    /// # Errors
    /// [`Interrupted`].
    fn may_find(&mut self, record: ReadRecord<'_>, interrupt: Interrupt<'_>) -> Result<bool, Interrupted>;

    /// Finds how many rows a record has, which may be damaged.
    ///
    /// # Errors
    /// [`Interrupted`].
    fn find(
        &mut self,
        record: ReadRecord<'_>,
        header: &RecordHeader,
        is_damaged: bool,
        interrupt: Interrupt<'_>,
    ) -> Result<usize, Interrupted>;

    /// Keeps the next row of what was found last, or a row without a finding if there is none.
    fn keep(&mut self);

    /// How many rows of what was found last are not kept.
    fn left(&self) -> usize;

    /// What is kept for the rows of the group, in order.
    fn rows(&self) -> &dyn Any;

    /// Begins a group.
    fn clear(&mut self);

    /// Whether damage is reported in the rows of a chunk.
    ///
    /// # Errors
    /// [`Interrupted`].
    fn reports_damage(&mut self, chunk: &[u8], interrupt: Interrupt<'_>) -> Result<bool, Interrupted>;

    /// Whether damage without a record has a row.
    fn reports_chunks(&self) -> bool;

    /// Whether damage to the whole log has a row.
    fn reports_log(&self) -> bool {
        true
    }

    /// The second pass, if the source [sees all](RowSource::sees_all) records.
    fn second_pass(&mut self) -> Option<&mut dyn SecondPass> {
        None
    }
}

/// What a row source reads again once the finders of all threads have seen all records: some records of some logs, in an
/// order of its own. Its rows come after all others.
pub trait SecondPass {
    /// Ends the first pass of a thread, which has seen its last record. The finder of the last thread goes on with the second
    /// pass; the others have no more rows.
    ///
    /// # Errors
    /// [`Interrupted`].
    fn begin(&mut self, is_last: bool, interrupt: Interrupt<'_>) -> Result<(), Interrupted>;

    /// Goes on to the next log to read, by its index. `path` has the paths of logs, as rows have them.
    fn next_log(&mut self, path: &dyn Fn(usize) -> Arc<str>) -> Option<usize>;

    /// Whether some of the log between these file offsets is to be read.
    fn wants(&self, offsets: Range<u64>) -> bool;

    /// What of the log could not be read again, as a text for a row.
    fn missed(&mut self) -> Option<String>;

    /// What else is wrong: the path of a row, and its text. `path` is that of [`next_log`](Self::next_log).
    fn problems(&mut self, path: &dyn Fn(usize) -> Arc<str>) -> Vec<(Arc<str>, String)>;
}
