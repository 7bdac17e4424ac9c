//! The scan of a query, which its threads share.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use evtx_format::container::survey::{FileSurvey, Search, Survey};

use crate::columns::ReadColumn;
use crate::extra::{Keeps, KnownValues, Requirements, RowSource, ScanLayout, Shared};
use crate::filter::{Filter, Predicate};
use crate::plan::{PlanCache, Projection};
use crate::recovery::Recovery;
use crate::schema::{self, Column, ColumnSource, OnError, Options};
use crate::table::Table;

/// The projection, options and predicates of a query, and the plans that its threads have compiled. Only the plans and
/// the keys of `event_data` change during the scan.
#[derive(Debug)]
pub struct Scan {
    pub(crate) options: Options,
    pub(crate) projection: Projection,
    pub(crate) plans: PlanCache,
    /// Whether a column or predicate needs the BinXML of a record.
    pub(crate) reads_binxml: bool,
    /// Whether a column or predicate needs the streams in the substitutions of `Event`, which have all but `System`.
    pub(crate) reads_children: bool,
    /// Whether each record is checked in full, not only the values that are read.
    pub(crate) validates_all: bool,
    /// Whether every record is read as a tree, as if no plan supported it.
    pub(crate) force_tree_path: bool,
    /// Whether spelled-out elements are read by the plans of their implicit templates, not as trees.
    pub(crate) uses_implicit_templates: bool,
    /// Whether an extra column reads what is beside each log.
    reads_beside: bool,
    pub(crate) filter: Filter,
    pub(crate) columns: Vec<ReadColumn>,
    /// What decides what becomes a row; `None` if each record is one.
    pub(crate) source: Option<Arc<dyn RowSource>>,
    /// Whether the source sees every record, so that predicates only choose rows.
    pub(crate) sees_all: bool,
    /// What recovers records, if the scan does.
    pub(crate) recovery: Option<Arc<dyn Recovery>>,
    schema: SchemaRef,
}

impl Scan {
    /// The row source; `None` if each record is a row.
    pub fn source(&self) -> Option<&Arc<dyn RowSource>> {
        self.source.as_ref()
    }

    /// Whether the row source sees all files and events, so that predicates only choose rows.
    pub fn sees_all(&self) -> bool {
        self.sees_all
    }

    pub(crate) fn layout<'s>(&'s self, shared: &'s Shared) -> ScanLayout<'s> {
        ScanLayout {
            projection: &self.projection,
            source: self.source.as_deref(),
            shared,
        }
    }

    /// A scan of the columns with these indexes in the schema of a table, in this order. Ignores indexes out of range.
    ///
    /// Records are checked in full if `error` or a column that needs the whole event, such as `xml`, is among the columns, if
    /// `on_error` is not `report`, or with a recovery. So which records count as damaged does not depend on the other columns.
    pub fn new(table: impl Into<Table>, columns: &[usize]) -> Self {
        Scan::filtered(table, columns, &[])
    }

    /// As [`Scan::new`], but only with the rows for which all predicates are true.
    pub fn filtered(table: impl Into<Table>, columns: &[usize], predicates: &[Predicate]) -> Self {
        Scan::reading(Vec::new(), table.into(), columns, predicates)
    }

    /// The scan, which has some needs besides those of its columns and predicates.
    pub(crate) fn reading(
        mut requirements: Vec<Requirements>,
        table: Table,
        columns: &[usize],
        predicates: &[Predicate],
    ) -> Self {
        let options = table.options;
        let all = &table.columns;
        let columns: Vec<&Column> = columns.iter().filter_map(|&index| all.get(index)).collect();
        let extras = table.extras;
        let recovery = table.recovery.map(|make| make());
        let mut projection = Projection::default();
        requirements
            .iter()
            .for_each(|requirements| requirements.add_to(&mut projection));
        let mut reports = options.on_error != OnError::Report;
        let mut read = |source: &ColumnSource| match source {
            ColumnSource::Header(value) => ReadColumn::Header(*value),
            ColumnSource::Path(path, field_type) => ReadColumn::Path(projection.path(*path), *field_type),
            ColumnSource::Entry(keys, column_type) => ReadColumn::Entry(projection.column(keys), *column_type),
            ColumnSource::EventData => {
                projection.event_data = true;
                ReadColumn::EventData
            }
            ColumnSource::UserData => {
                projection.user_data = true;
                ReadColumn::UserData
            }
            ColumnSource::Event(language) => {
                projection.add_language(*language);
                ReadColumn::Event(*language)
            }
            ColumnSource::Error => {
                reports = true;
                ReadColumn::Error
            }
            ColumnSource::Extra(extra) => {
                requirements.push(extras[extra.id].requirements());
                ReadColumn::Extra(Arc::clone(&extras[extra.id]))
            }
        };
        let read: Vec<ReadColumn> = columns.iter().map(|column| read(&column.source)).collect();
        if recovery.is_some() {
            // They tell whether a record has its own event.
            _ = [schema::EVENT_RECORD_ID, schema::TIME_CREATED].map(|path| projection.path(path));
        }
        let keeps = |values: &KnownValues<'_>| {
            let keeps = |predicate: &Predicate| predicate.keeps_known(|id| values(&*extras[id]));
            predicates.iter().all(keeps)
        };
        let is_restricted = predicates.iter().any(Predicate::is_of_extras);
        let keeps: Option<&Keeps<'_>> = is_restricted.then_some(&keeps);
        let source = table.source.map(|source| source.of_scan(keeps));
        if let Some(source) = &source {
            requirements.push(source.requirements());
        }
        requirements
            .iter()
            .for_each(|requirements| requirements.add_to(&mut projection));
        reports |= requirements.iter().any(|requirements| requirements.whole);
        // A damaged event has no text and no record, and carved bytes are a record only if they read in full.
        let of_events = table.events.as_deref().map(Predicate::of_events);
        let filter = Filter::new(of_events.as_ref(), predicates, &mut projection);
        let validates_all = reports || !projection.languages.is_empty() || recovery.is_some();
        let beyond_system = projection.paths.iter().any(|path| !path.in_system);
        Scan {
            options,
            plans: PlanCache::default(),
            reads_binxml: validates_all
                || projection.event_data
                || projection.user_data
                || !projection.paths.is_empty(),
            reads_children: validates_all
                || projection.event_data
                || projection.user_data
                || beyond_system
                || filter.reads_children(),
            filter,
            validates_all,
            force_tree_path: false,
            uses_implicit_templates: true,
            reads_beside: requirements.iter().any(|requirements| requirements.beside),
            sees_all: source.as_ref().is_some_and(|source| source.sees_all()),
            source,
            recovery,
            projection,
            schema: schema::schema_of(columns.into_iter()),
            columns: read,
        }
    }

    /// The scan, reading every record as a tree, for tests. It gives the same rows.
    pub fn force_tree_path(self) -> Self {
        Scan {
            force_tree_path: true,
            uses_implicit_templates: false,
            ..self
        }
    }

    /// The scan, reading every spelled-out element as a tree, for tests. It gives the same rows.
    pub fn without_implicit_templates(self) -> Self {
        Scan {
            uses_implicit_templates: false,
            ..self
        }
    }

    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Whether an extra column reads what is beside each log.
    pub fn reads_beside(&self) -> bool {
        self.reads_beside
    }

    /// Whether the scan checks checksums.
    pub fn verifies(&self) -> bool {
        self.options.verify
    }

    /// Whether the scan recovers records.
    pub fn recovers(&self) -> bool {
        self.recovery.is_some()
    }

    /// What recovers records, if the scan does.
    pub fn recovery(&self) -> Option<&Arc<dyn Recovery>> {
        self.recovery.as_ref()
    }

    /// The survey of a file of `size` bytes.
    pub fn survey(&self, size: u64, search: Search) -> Box<dyn FileSurvey> {
        match &self.recovery {
            Some(recovery) => recovery.survey(size, search),
            None => Box::new(Survey::new(size, search)),
        }
    }

    /// Whether a thread has panicked while it changed the plans and keys. One check after some work is enough.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.plans.is_poisoned()
    }
}
