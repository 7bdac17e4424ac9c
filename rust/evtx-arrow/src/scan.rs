//! What the threads of one query share.

use std::sync::Arc;

use arrow_schema::SchemaRef;

use crate::filter::{Filter, Predicate};
use crate::plan::{Keys, PlanCache, Projection};
use crate::schema::{self, Column, ColumnSource, OnError, Options, Table};

/// A query's projection and options, and the plans that its threads have compiled. Immutable but for those.
#[derive(Debug)]
pub struct Scan {
    pub(crate) options: Options,
    pub(crate) target: Projection,
    pub(crate) keys: Arc<Keys>,
    pub(crate) plans: PlanCache,
    /// Whether any column needs a record's BinXML.
    pub(crate) reads_binxml: bool,
    /// Whether a column may be in what the substitutions of `Event` hold. `System` is not.
    pub(crate) reads_children: bool,
    /// Whether each record is checked in full, and not only what the columns ask for.
    pub(crate) validates_all: bool,
    /// Whether every instance is read as a tree of its own, as if no plan of a template covered it.
    pub(crate) force_tree_path: bool,
    /// Where the parts of a message are read, if messages are.
    pub(crate) message: Option<MessagePlaces>,
    /// Which records are kept.
    pub(crate) filter: Filter,
    pub(crate) columns: Vec<Column>,
    schema: SchemaRef,
}

/// A thread of the scan panicked while it changed what all of them share, so that none of it can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("another thread of this scan failed in the midst of its work, so the scan cannot go on")]
pub struct Poisoned;

/// The indices of places in the target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessagePlaces {
    pub(crate) message: usize,
    pub(crate) provider: usize,
    pub(crate) event_record: usize,
}

impl Scan {
    /// A scan for the columns with these indexes in the schema of a table, in this order.
    ///
    /// Records are checked in full if `error` is among the columns or errors are not just reported, so that
    /// what counts as damaged does not depend on the other columns. Indexes that name no column are left out.
    pub fn new(table: impl Into<Table>, projection: &[usize]) -> Self {
        Scan::filtered(table, projection, &[])
    }

    /// As [`Scan::new`], but only of the rows for which all of the predicates are true.
    pub fn filtered(table: impl Into<Table>, projection: &[usize], predicates: &[Predicate]) -> Self {
        let table: Table = table.into();
        let options = table.options;
        let all = &table.columns;
        let columns: Vec<Column> = projection.iter().filter_map(|&index| all.get(index).cloned()).collect();
        let has = |source| columns.iter().any(|column| column.source == source);
        let mut target = Projection {
            event_data: has(ColumnSource::EventData),
            user_data: has(ColumnSource::UserData),
            xml: has(ColumnSource::Xml),
            json: has(ColumnSource::Json),
            ..Projection::default()
        };
        for column in &columns {
            match &column.source {
                ColumnSource::Field(place, _) => target.places.push(*place),
                ColumnSource::Entry(key, _) => _ = target.key(key),
                _ => {}
            }
        }
        // A message that stands beside the log is found by what the event says of itself.
        let message = target.places.iter().position(|place| *place == schema::MESSAGE);
        let message = message.map(|message| {
            target.places.extend([schema::PROVIDER, schema::EVENT_RECORD_ID]);
            MessagePlaces {
                message,
                provider: target.places.len() - 2,
                event_record: target.places.len() - 1,
            }
        });
        let reports = has(ColumnSource::Error) || options.on_error != OnError::Report;
        let of_events = table.events.as_deref().map(Predicate::of_events);
        let filter = Filter::new(of_events.as_ref(), predicates, &mut target);
        // There is no text of half an event, and what only looks like a record is none.
        let validates_all = reports || target.xml || target.json || options.recover;
        let beyond_system = target.places.iter().any(|place| !place.in_system);
        Scan {
            options,
            keys: Arc::default(),
            plans: PlanCache::default(),
            reads_binxml: validates_all || target.event_data || target.user_data || !target.places.is_empty(),
            reads_children: validates_all
                || target.event_data
                || target.user_data
                || beyond_system
                || filter.reads_children(),
            filter,
            validates_all,
            force_tree_path: false,
            message,
            target,
            schema: schema::schema_of(columns.iter()),
            columns,
        }
    }

    /// The scan, but one that takes the fallback for every record. What it reads is the same; tests compare the two.
    pub fn force_tree_path(self) -> Self {
        Scan {
            force_tree_path: true,
            ..self
        }
    }

    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Whether messages are read, so that a log's [`Messages`](evtx_format::mta::Messages) are of use.
    pub fn reads_messages(&self) -> bool {
        self.message.is_some()
    }

    /// Whether checksums are compared.
    pub fn verifies(&self) -> bool {
        self.options.verify
    }

    /// Whether the files' surveys should take what is no log for an image.
    pub fn recovers(&self) -> bool {
        self.options.recover
    }

    /// Looks whether what the threads share is sound. A lock stays poisoned once it is, so a look behind some work
    /// tells of all of it, and nothing else has to look.
    ///
    /// # Errors
    /// [`Poisoned`].
    pub(crate) fn check_shared(&self) -> Result<(), Poisoned> {
        match self.keys.is_poisoned() || self.plans.is_poisoned() {
            true => Err(Poisoned),
            false => Ok(()),
        }
    }
}
