//! The scan of a query, which its threads share.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use arrow_schema::SchemaRef;

use crate::filter::{Filter, Predicate};
use crate::plan::{PlaceId, PlanCache, Projection};
use crate::schema::{self, Column, ColumnSource, MessageCatalog, OnError, Options, Rules, Table};

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
    /// Whether spelled-out elements are read by the plans of their outlines, not as trees.
    pub(crate) reads_outlines: bool,
    /// The places that a message depends on, if messages are read.
    pub(crate) message: Option<MessagePlaces>,
    pub(crate) catalog: Option<MessageCatalog>,
    pub(crate) filter: Filter,
    pub(crate) columns: Vec<Column>,
    /// In a table of matches: the rules that the predicates leave.
    pub(crate) rules: Option<Arc<Rules>>,
    /// All rules of the table. Which damage is reported does not depend on predicates.
    pub(crate) all_rules: Option<Arc<Rules>>,
    /// How many matches all threads keep for correlations.
    pub(crate) kept_hits: Arc<AtomicUsize>,
    schema: SchemaRef,
}

fn chosen(rules: &Arc<Rules>, predicates: &[Predicate]) -> Arc<Rules> {
    let is_kept = |rule: usize| predicates.iter().all(|predicate| predicate.keeps_rule(rules, rule));
    if predicates.iter().any(Predicate::is_of_rules) {
        Arc::new(rules.only(is_kept))
    } else {
        Arc::clone(rules)
    }
}

/// A thread of the scan panicked while it changed the shared plans or keys, which cannot be trusted now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("another thread of this scan panicked, so the scan cannot continue")]
pub struct Poisoned;

/// The places that a message outside of its event depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessagePlaces {
    pub(crate) message: PlaceId,
    pub(crate) provider: PlaceId,
    pub(crate) guid: PlaceId,
    pub(crate) event_id: PlaceId,
    pub(crate) version: PlaceId,
    pub(crate) qualifiers: PlaceId,
    pub(crate) event_record: PlaceId,
}

impl Scan {
    /// Whether the scan matches rules against events.
    pub fn has_rules(&self) -> bool {
        self.all_rules.is_some()
    }

    /// The rules that the predicates leave, if it is a scan of matches.
    pub fn rules(&self) -> Option<&Rules> {
        self.rules.as_deref()
    }

    /// Whether the scan correlates matches. It then has all files and events, and predicates only choose rows.
    pub fn correlates(&self) -> bool {
        self.rules.as_ref().is_some_and(|rules| !rules.correlations.is_empty())
    }

    /// A scan of the columns with these indexes in the schema of a table, in this order. Ignores indexes out of range.
    ///
    /// Records are checked in full if `error` is among the columns or `on_error` is not `report`. So which records count
    /// as damaged does not depend on the other columns.
    pub fn new(table: impl Into<Table>, columns: &[usize]) -> Self {
        Scan::filtered(table, columns, &[])
    }

    /// As [`Scan::new`], but only with the rows for which all predicates are true.
    pub fn filtered(table: impl Into<Table>, columns: &[usize], predicates: &[Predicate]) -> Self {
        let table: Table = table.into();
        let options = table.options;
        let all = &table.columns;
        let columns: Vec<Column> = columns.iter().filter_map(|&index| all.get(index).cloned()).collect();
        let has = |source| columns.iter().any(|column| column.source == source);
        let mut projection = Projection {
            event_data: has(ColumnSource::EventData),
            user_data: has(ColumnSource::UserData),
            ..Projection::default()
        };
        for column in &columns {
            match &column.source {
                ColumnSource::Place(place, _) => _ = projection.place(*place),
                ColumnSource::Entry(keys, _) => _ = projection.column(keys),
                ColumnSource::Event(language) => projection.add_language(*language),
                _ => {}
            }
        }
        if has(ColumnSource::MessageSource) {
            projection.place(schema::MESSAGE);
        }
        if options.recover {
            // They tell whether a record has its own event.
            _ = [schema::EVENT_RECORD_ID, schema::TIME_CREATED].map(|place| projection.place(place));
        }
        let message = projection.place_id(schema::MESSAGE).map(|message| MessagePlaces {
            message,
            provider: projection.place(schema::PROVIDER),
            guid: projection.place(schema::PROVIDER_GUID),
            event_id: projection.place(schema::EVENT_ID),
            version: projection.place(schema::VERSION),
            qualifiers: projection.place(schema::QUALIFIERS),
            event_record: projection.place(schema::EVENT_RECORD_ID),
        });
        if has(ColumnSource::Insertions) || message.is_some() && table.catalog.is_some() {
            (projection.event_data, projection.user_entries) = (true, true);
        }
        let all_rules = table.rules.clone();
        let rules = all_rules.as_ref().map(|rules| chosen(rules, predicates));
        if rules.is_some() {
            (projection.event_data, projection.user_entries, projection.other_values) = (true, true, true);
            for (_, place) in schema::sigma_names() {
                projection.place(place);
            }
        }
        // A row reports damage that may have destroyed a match.
        let reports = has(ColumnSource::Error) || options.on_error != OnError::Report || rules.is_some();
        // A damaged event has no text and no record, and carved bytes are a record only if they read in full.
        let of_events = table.events.as_deref().map(Predicate::of_events);
        let filter = Filter::new(of_events.as_ref(), predicates, &mut projection);
        let validates_all = reports || !projection.languages.is_empty() || has(ColumnSource::Record) || options.recover;
        let beyond_system = projection.places.iter().any(|place| !place.in_system);
        Scan {
            options,
            all_rules,
            plans: PlanCache::default(),
            reads_binxml: validates_all
                || projection.event_data
                || projection.user_data
                || !projection.places.is_empty(),
            reads_children: validates_all
                || projection.event_data
                || projection.user_data
                || beyond_system
                || filter.reads_children(),
            filter,
            validates_all,
            force_tree_path: false,
            reads_outlines: true,
            message,
            catalog: table.catalog,
            kept_hits: Arc::default(),
            rules,
            projection,
            schema: schema::schema_of(columns.iter()),
            columns,
        }
    }

    /// The scan, reading every record as a tree, for tests. It gives the same rows.
    pub fn force_tree_path(self) -> Self {
        Scan {
            force_tree_path: true,
            reads_outlines: false,
            ..self
        }
    }

    /// The scan, reading every spelled-out element as a tree, for tests. It gives the same rows.
    pub fn without_outlines(self) -> Self {
        Scan {
            reads_outlines: false,
            ..self
        }
    }

    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Whether the scan reads messages, and needs the [`Messages`](evtx_format::mta::Messages) of each log.
    pub fn reads_messages(&self) -> bool {
        self.message.is_some()
    }

    /// Whether the scan checks checksums.
    pub fn verifies(&self) -> bool {
        self.options.verify
    }

    /// Whether the scan recovers records. Then the survey must find images and stray chunks.
    pub fn recovers(&self) -> bool {
        self.options.recover
    }

    /// Checks that no thread has panicked while it changed the plans and keys. One check after some work is enough.
    pub(crate) fn check_shared(&self) -> Result<(), Poisoned> {
        if self.plans.is_poisoned() {
            Err(Poisoned)
        } else {
            Ok(())
        }
    }
}
