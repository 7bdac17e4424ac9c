//! The events that logs hold, and the fields that each event has.
//!
//! The fields are those of `EventData` and the leaves of `UserData`. They and their types are those of the template
//! definitions. A definition does not say which event it is for, and several events can share one, so each record is
//! asked which event it is of and which template its `EventData` refers to. No field is decoded.
//!
//! Columns are those of the logs united with those that the catalog of Windows' events declares.

use std::cell::{Cell, OnceCell};
use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use bumpalo::Bump;
use evtx_catalog::{CatalogEvent, classic_providers, events_of};
use evtx_format::Interrupt;
use evtx_format::binxml::names::Names;
use evtx_format::container::header::FileHeader;
use evtx_format::container::record::Record;
use evtx_format::container::records::{PromisedIds, RecordWalk};
use evtx_format::value::ValueType;
use hashbrown::HashMap;

use super::event_ids::push_text;
use super::other_events::OtherEvents;
use super::report::{MAX_EVENT_BYTES, Report, ReportError, Slots, TooManyEvents, TypeName};
use super::table::{self, ReportColumn, Value};
use crate::filter::{Row, Scratch, Stage};
use crate::plan::EventData;
use crate::read::RecordReader;
use crate::record::{ChunkTemplates, GROUP, Part, PartContent, RecordGroup};
use crate::scan::Scan;
use crate::schema::{EntryKeys, EntryType, EventField, Events, Numbering, Options, TEXT, Table, column_type, unite};

/// About how many bytes of memory an event takes beside two copies of its key.
const EVENT: usize = 256;

/// The most fields that a catalog gives as columns, and that it keeps of one template. `event_data` has the others.
const MAX_FIELDS: usize = 4096;

/// The most rows of a batch.
const BATCH_ROWS: usize = 2048;

/// The columns that a catalog's scan reads. The constants below are indexes among them.
const COLUMNS: [&str; 5] = ["provider", "event_id", "version", "channel", "event_data"];
const PROVIDER: usize = 0;
const EVENT_ID: usize = 1;
const VERSION: usize = 2;
const CHANNEL: usize = 3;

/// The fields of a template's `EventData`, and then those of its `UserData`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Shape {
    /// The GUID of the template, its 16 bytes in the order of its text; `None` if the record spells `EventData` out.
    template: Option<[u8; 16]>,
    fields: Box<[ShapeField]>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ShapeField {
    /// Its key in `EventData`, or among the leaves of `UserData`.
    key: Arc<str>,
    value_type: ValueType,
    in_user_data: bool,
    /// Whether records spell it out, so that its type is only how it is written.
    is_spelled_out: bool,
}

/// The shapes that were found, each once.
#[derive(Default)]
struct Shapes {
    shapes: Vec<Shape>,
    /// The index of each in `shapes`.
    indices: HashMap<Shape, usize>,
    /// About how many bytes of memory they take.
    bytes: usize,
}

impl Shapes {
    /// The index of a shape. Adds the shape if it is new.
    fn index_of(&mut self, shape: Shape) -> usize {
        *self.indices.entry(shape).or_insert_with_key(|shape| {
            let names = shape
                .fields
                .iter()
                .map(|field| size_of::<ShapeField>() + field.key.len());
            self.bytes += 2 * (size_of::<Shape>() + names.sum::<usize>());
            self.shapes.push(shape.clone());
            self.shapes.len() - 1
        })
    }
}

/// What the records have in common that a catalog counts together: their event and their fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Event {
    provider: Option<Box<str>>,
    id: Option<u32>,
    version: Option<u8>,
    channel: Option<Box<str>>,
    /// The index of the shape of their `EventData`.
    shape: usize,
}

/// A row of [`EventReport`]: a field of an event, or an event without fields.
struct EventRow<'c> {
    event: &'c Event,
    /// How many records the event has.
    records: u64,
    shape: &'c Shape,
    /// The index of the field in `EventData`; 0 for an event without fields.
    position: usize,
    field: Option<&'c ShapeField>,
    type_name: TypeName,
}

/// The columns of [`EventReport`].
fn event_columns<'c>() -> Vec<ReportColumn<EventRow<'c>>> {
    vec![
        ReportColumn {
            name: "provider",
            about: "The name of the provider that raises the event.",
            value: Value::Text(|row| row.event.provider.as_deref().map(Into::into)),
        },
        ReportColumn {
            name: "event_id",
            about: "What kind of event it is.",
            value: Value::UInt32(|row| row.event.id),
        },
        ReportColumn {
            name: "version",
            about: "The version of the event.",
            value: Value::UInt8(|row| row.event.version),
        },
        ReportColumn {
            name: "channel",
            about: "The log that the event is written to.",
            value: Value::Text(|row| row.event.channel.as_deref().map(Into::into)),
        },
        ReportColumn {
            name: "field_position",
            about: "The index of the field in `EventData` or `UserData`, from 0. This, the next three and the last are NULL for an event without fields.",
            value: Value::UInt32(|row| row.field.map(|_| row.position as u32)),
        },
        ReportColumn {
            name: "field_name",
            about: "The field's name: its key in `event_data`, or the name of its element in `UserData`.",
            value: Value::Text(|row| row.field.map(|field| (*field.key).into())),
        },
        ReportColumn {
            name: "binxml_type",
            about: "The type that the template declares, `[]` for an array.",
            value: Value::Text(|row| row.field.map(|field| field.value_type.to_string().into())),
        },
        ReportColumn {
            name: "column_type",
            about: "The type of its column in `read_evtx(..., event_id := ...)`, if this were its only template.",
            value: Value::Text(|row| {
                let field = row.field?;
                let column_type = column_type(field.value_type).unwrap_or(TEXT);
                Some((row.type_name)(&column_type.field(&field.key)).into())
            }),
        },
        ReportColumn {
            name: "template_guid",
            about: "The template that `EventData` or `UserData` is an instance of. NULL where records spell it out.",
            value: Value::Uuid(|row| row.shape.template),
        },
        ReportColumn {
            name: "records",
            about: "How many records there are of this provider, event, version, channel and template. Where records spell their fields out: how many have just these fields. No column tells such rows apart, so count events with `read_evtx`.",
            value: Value::UInt64(|row| Some(row.records)),
        },
        ReportColumn {
            name: "in_user_data",
            about: "Whether the field is in `UserData`.",
            value: Value::Bool(|row| row.field.map(|field| field.in_user_data)),
        },
    ]
}

/// The events of some chunks.
#[derive(Default)]
pub struct FoundEvents {
    shapes: Shapes,
    /// By what makes an event another one: its place in `events`.
    known: HashMap<Box<[u8]>, usize>,
    /// The events, with their records.
    events: Vec<(Event, u64)>,
    /// About how many bytes are kept beside those of the shapes.
    bytes: usize,
}

impl std::fmt::Debug for FoundEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.events).finish()
    }
}

impl FoundEvents {
    /// About how many bytes they take.
    pub fn bytes(&self) -> usize {
        self.bytes + self.shapes.bytes
    }

    /// Adds records of an event, which `key` tells from others.
    fn add(&mut self, key: &[u8], records: u64, event: impl FnOnce() -> Event) -> Result<(), TooManyEvents> {
        if let Some(&known) = self.known.get(key) {
            self.events[known].1 += records;
            return Ok(());
        }
        self.bytes += EVENT + 2 * key.len();
        if self.bytes() > MAX_EVENT_BYTES {
            return Err(TooManyEvents);
        }
        self.known.insert(key.into(), self.events.len());
        self.events.push((event(), records));
        Ok(())
    }

    /// Adds the events of other chunks, which follow these.
    ///
    /// # Errors
    /// [`TooManyEvents`].
    pub fn absorb(&mut self, other: &FoundEvents) -> Result<(), TooManyEvents> {
        let shapes = other.shapes.shapes.iter();
        let shapes: Vec<usize> = shapes.map(|shape| self.shapes.index_of(shape.clone())).collect();
        let mut key = Vec::new();
        for (event, records) in &other.events {
            let shape = shapes[event.shape];
            key.clear();
            push_numbers(&mut key, shape, event.id, event.version);
            for text in [&event.provider, &event.channel] {
                push_text(&mut key, text.as_deref(), |text, key| {
                    key.extend_from_slice(text.as_bytes())
                });
            }
            self.add(&key, *records, || Event { shape, ..event.clone() })?;
        }
        Ok(())
    }
}

/// Begins the key of an event.
fn push_numbers(key: &mut Vec<u8>, shape: usize, id: Option<u32>, version: Option<u8>) {
    key.extend_from_slice(&shape.to_le_bytes());
    key.extend_from_slice(&id.map_or(u64::MAX, u64::from).to_le_bytes());
    key.extend_from_slice(&version.map_or(u16::MAX, u16::from).to_le_bytes());
}

/// Collects the events of logs.
pub struct Catalog {
    scan: Arc<Scan>,
    /// Reads only what tells an event, if some events count: most records are of others.
    first: Option<(Arc<Scan>, ChunkTemplates)>,
    /// Tells most of these records sooner, if the IDs of events count.
    others: Option<OtherEvents>,
    /// Which events count, if not all.
    events: Option<Arc<Events>>,
    templates: ChunkTemplates,
    arenas: [Bump; 2],
    scratch: Scratch,
    key: Vec<u8>,
    /// By the indices of the templates of `EventData` and `UserData` in the chunk at hand: the index of their shape.
    chunk_shapes: HashMap<[Option<usize>; 2], usize>,
    found: FoundEvents,
}

/// How far the rows of a catalog were handed out. The default is their start.
#[derive(Debug, Default)]
pub struct CatalogPlace {
    /// The indexes of the events in the order of the rows. `None` before the first batch. Events that are added after
    /// it have no rows.
    order: Option<Vec<usize>>,
    /// How many events were handed out in full, and how many fields of the next one.
    event: usize,
    field: usize,
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog")
            .field("found", &self.found)
            .finish_non_exhaustive()
    }
}

impl Catalog {
    /// An empty catalog, which collects some events, or all if `events` is `None`.
    pub fn new(events: Option<Events>) -> Self {
        Catalog::of(events, true)
    }

    /// An empty catalog of the same events that reads what records spell out as trees. It finds the same; tests compare
    /// the two ways.
    pub fn without_outlines(&self) -> Self {
        Catalog::of(self.events.as_deref().cloned(), false)
    }

    fn of(events: Option<Events>, reads_outlines: bool) -> Self {
        let events = events.map(Arc::new);
        let mut table = Table::from(Options::default());
        table.events = events.clone();
        let projection = table.indices_of(&COLUMNS);
        let mut scan = Scan::new(table.clone(), &projection);
        scan.target.user_entries = true;
        scan.target.names_only = true;
        scan.reads_outlines = reads_outlines;
        let first = events.as_ref().map(|_| {
            let mut first = Scan::new(table, &[]);
            first.reads_outlines = reads_outlines;
            Arc::new(first)
        });
        let ids = events.as_ref().and_then(|events| events.ids.as_deref());
        let others = first
            .as_ref()
            .zip(ids)
            .map(|(first, ids)| OtherEvents::new(ids, &first.target));
        Catalog {
            scan: Arc::new(scan),
            first: first.map(|scan| (scan, ChunkTemplates::default())),
            others,
            events,
            templates: ChunkTemplates::default(),
            arenas: Default::default(),
            scratch: Scratch::default(),
            key: Vec::new(),
            chunk_shapes: HashMap::new(),
            found: FoundEvents::default(),
        }
    }

    /// An empty catalog of the same events, for another thread. It reads templates of its own: to take turns at shared
    /// ones costs more.
    pub fn beside(&self) -> Self {
        Catalog::of(self.events.as_deref().cloned(), self.scan.reads_outlines)
    }

    /// Takes what was found so far out of the catalog.
    pub fn take_found(&mut self) -> FoundEvents {
        // The shapes of the chunk at hand go with it.
        self.chunk_shapes.clear();
        std::mem::take(&mut self.found)
    }

    /// Adds what another catalog has found in chunks that follow.
    ///
    /// # Errors
    /// [`TooManyEvents`].
    pub fn absorb(&mut self, found: &FoundEvents) -> Result<(), TooManyEvents> {
        self.found.absorb(found)
    }

    #[cfg(test)]
    pub(crate) fn scan(&self) -> &Scan {
        &self.scan
    }

    /// Adds the records of some slots. Leaves out what is damaged.
    ///
    /// # Errors
    /// [`ReportError::TooManyEvents`], [`ReportError::Interrupted`], [`ReportError::Poisoned`]. The records before stay
    /// in the catalog.
    pub fn push(&mut self, slots: Slots<'_>, interrupt: Interrupt<'_>) -> Result<(), ReportError> {
        let mut arenas = std::mem::take(&mut self.arenas);
        let [names, records] = &mut arenas;
        let pushed = slots.iter().try_for_each(|(_, chunk, promised)| {
            names.reset();
            self.chunk(chunk, promised, names, records, interrupt)
        });
        self.arenas = arenas;
        pushed?;
        let first = self.first.as_ref().map(|(scan, _)| scan.check_shared());
        first.transpose()?;
        Ok(self.scan.check_shared()?)
    }

    /// Adds the records of a chunk.
    fn chunk(
        &mut self,
        chunk: &[u8],
        promised: PromisedIds,
        names: &Bump,
        arena: &mut Bump,
        interrupt: Interrupt<'_>,
    ) -> Result<(), ReportError> {
        self.clear_templates();
        let names = Names::new(chunk, names);
        let (mut walk, _) = RecordWalk::new(chunk, promised, false);
        let scan = Arc::clone(&self.scan);
        let mut is_end = false;
        while !is_end {
            if self.templates.are_many() || self.first.as_ref().is_some_and(|(_, templates)| templates.are_many()) {
                self.clear_templates();
            }
            arena.reset();
            let first = self.first.as_ref().map(|(scan, _)| Arc::clone(scan));
            let first = first
                .as_ref()
                .map(|scan| RecordReader::new(scan, chunk, &names, arena, interrupt));
            let mut told = first
                .as_ref()
                .map(|reader| RecordGroup::new(&reader.scan.target, 1, arena));
            let reader = RecordReader::new(&scan, chunk, &names, arena, interrupt);
            let mut records = RecordGroup::new(&scan.target, 1, arena);
            for _ in 0..GROUP {
                let Some(item) = walk.next(chunk) else {
                    is_end = true;
                    break;
                };
                if let Ok(found) = item
                    && !self.is_another(first.as_ref().zip(told.as_mut()), &found.record)
                {
                    self.record(&reader, &mut records, &found.record)?;
                }
                if reader.takes_much() || first.as_ref().is_some_and(RecordReader::takes_much) {
                    break;
                }
            }
            interrupt.check()?;
        }
        Ok(())
    }

    fn clear_templates(&mut self) {
        self.templates.clear();
        self.chunk_shapes.clear();
        if let Some((_, templates)) = &mut self.first {
            templates.clear();
        }
        if let Some(others) = &mut self.others {
            others.clear();
        }
    }

    /// Whether a record's own instance tells that it is of an event that does not count.
    fn is_another<'x, 'r: 'x, 'c: 'r>(
        &mut self,
        first: Option<(&'x RecordReader<'r, 'c>, &'x mut RecordGroup<'r>)>,
        record: &Record,
    ) -> bool {
        let (Some((reader, records)), Some((scan, templates))) = (first, &mut self.first) else {
            return false;
        };
        let (chunk, binxml) = (reader.chunk, record.binxml());
        if self
            .others
            .as_ref()
            .is_some_and(|others| others.has(chunk, binxml.clone()))
        {
            return true;
        }
        reader.read_event(templates, records, binxml.clone());
        if let Some(others) = &mut self.others {
            others.learn(chunk, binxml, records, templates);
        }
        let row = row(records, templates, reader.interrupt);
        let filter = &scan.filter;
        records.current().has_system(templates) && !filter.keeps(Stage::Header, Stage::Record, &row, &mut self.scratch)
    }

    fn record<'r, 'c: 'r>(
        &mut self,
        reader: &RecordReader<'r, 'c>,
        records: &mut RecordGroup<'r>,
        record: &Record,
    ) -> Result<(), TooManyEvents> {
        let Catalog { templates, .. } = self;
        let (scan, interrupt) = (reader.scan, reader.interrupt);
        reader.read_event(templates, records, record.binxml());
        let mut keeps = |records: &RecordGroup<'_>, templates: &ChunkTemplates| {
            let row = row(records, templates, interrupt);
            scan.filter.keeps(Stage::Header, Stage::Record, &row, &mut self.scratch)
        };
        let has_system = records.current().has_system(templates);
        if has_system && !keeps(records, templates) {
            return Ok(());
        }
        reader.read_children(templates, records);
        if records.current().is_unread() || !has_system && !keeps(records, templates) {
            return Ok(());
        }
        let parts = records.current();
        let elements = [parts.event_data(templates), parts.user_entries(templates)];
        let of_templates = elements.map(|element| element.and_then(|(_, part)| part.template()));
        // What a record spells out is its own.
        let is_of_templates = elements.iter().flatten().all(|(_, part)| part.template().is_some());
        let known = self.chunk_shapes.get(&of_templates).filter(|_| is_of_templates);
        let shape = known.copied().unwrap_or_else(|| {
            let index = self.found.shapes.index_of(shape(scan, templates, elements));
            if is_of_templates {
                self.chunk_shapes.insert(of_templates, index);
            }
            index
        });
        let fields = parts.fields(templates);
        let id = fields.get(EVENT_ID).and_then(|found| found.number());
        let id = id.and_then(|id| u32::try_from(id).ok());
        let version = fields.get(VERSION).and_then(|found| found.number());
        let version = version.and_then(|version| u8::try_from(version).ok());
        self.key.clear();
        push_numbers(&mut self.key, shape, id, version);
        for place in [PROVIDER, CHANNEL] {
            push_text(&mut self.key, fields.get(place), |found, key| found.push_text(key));
        }
        let text = |place| fields.get(place)?.text().map(String::into_boxed_str);
        self.found.add(&self.key, 1, || Event {
            provider: text(PROVIDER),
            id,
            version,
            channel: text(CHANNEL),
            shape,
        })
    }

    /// The fields of the events, as columns: in the order of the first event's, and those that only a later one has
    /// behind the field that they stand behind there. There are at most 4,096.
    ///
    /// If the events are told by their IDs, the fields of the logs are united with those that Windows' providers
    /// declare: the providers that are asked for, or else, for each ID, those of the logs, or the classic ones if no log
    /// has the event.
    pub fn fields(&self) -> Vec<EventField> {
        let ids = self
            .events
            .as_ref()
            .and_then(|events| events.ids.as_deref())
            .unwrap_or_default();
        let ranks: HashMap<u32, usize> = ids.iter().enumerate().rev().map(|(rank, id)| (*id, rank)).collect();
        let rank = |event: &Event| event.id.and_then(|id| ranks.get(&id).copied());
        let mut events: Vec<(Option<usize>, &Event)> = self
            .found
            .events
            .iter()
            .map(|(event, _)| (rank(event), event))
            .collect();
        // The order does not depend on which was found first.
        let order = |(rank, event): &(Option<usize>, &Event)| (*rank, event.version);
        events.sort_by(|a, b| (order(a), self.place_of(a.1)).cmp(&(order(b), self.place_of(b.1))));
        let mut columns = Columns::default();
        let mut is_done = vec![false; self.found.shapes.shapes.len()];
        for (_, event) in events {
            // A shape that was added has nothing new.
            if !std::mem::replace(&mut is_done[event.shape], true) {
                columns.add(&self.found.shapes.shapes[event.shape]);
            }
        }
        let mut declared = self.declared(ids);
        declared.sort_by_key(|event| ranks.get(&event.id).copied());
        for event in declared {
            columns.declare(&event);
        }
        columns.in_order()
    }

    /// What an event is ordered by: events with the same fields stand together, in an order that does not depend on
    /// which was found first.
    fn place_of<'c>(&'c self, event: &'c Event) -> impl Ord + use<'c> {
        let shape = &self.found.shapes.shapes[event.shape];
        (&event.provider, event.id, event.version, &event.channel, shape)
    }

    /// What is declared of the events with some IDs.
    fn declared(&self, ids: &[u32]) -> Vec<CatalogEvent> {
        if ids.is_empty() {
            return Vec::new();
        }
        if let Some(providers) = self.events.as_ref().and_then(|events| events.providers.as_deref()) {
            let names = providers.iter().map(|name| name.to_ascii_lowercase()).collect();
            return events_of(&names, ids).collect();
        }
        let mut of_logs: HashMap<u32, HashSet<String>> = HashMap::new();
        for (event, _) in &self.found.events {
            let Some(id) = event.id else { continue };
            let providers = of_logs.entry(id).or_default();
            providers.extend(event.provider.iter().map(|name| name.to_ascii_lowercase()));
        }
        // To ask for the classic ones takes some milliseconds the first time.
        let classic = match ids.iter().all(|id| of_logs.contains_key(id)) {
            true => HashSet::new(),
            false => classic_providers(),
        };
        let all = of_logs.values().flatten().chain(&classic).cloned().collect();
        let counts = |event: &CatalogEvent| {
            let providers = of_logs.get(&event.id).unwrap_or(&classic);
            providers.contains(&event.provider.to_ascii_lowercase())
        };
        events_of(&all, ids).filter(counts).collect()
    }

    /// The next rows behind a place, which moves behind them; `None` where there are no more. A row per field of each
    /// event, by provider, ID, version and channel, and one for an event without fields. `type_name` names the type of
    /// a column.
    ///
    /// # Errors
    /// The error of Arrow if it refuses an array of the batch.
    pub fn batch(&self, place: &mut CatalogPlace, type_name: TypeName) -> Result<Option<RecordBatch>, ArrowError> {
        let order = place.order.get_or_insert_with(|| {
            let mut order: Vec<usize> = (0..self.found.events.len()).collect();
            let place = |at: usize| self.place_of(&self.found.events[at].0);
            order.sort_by(|a, b| place(*a).cmp(&place(*b)));
            order
        });
        let mut rows = Vec::new();
        while let Some(&at) = order.get(place.event).filter(|_| rows.len() < BATCH_ROWS) {
            let (event, records) = &self.found.events[at];
            let shape = &self.found.shapes.shapes[event.shape];
            let all = shape.fields.len().max(1);
            let end = all.min(place.field + BATCH_ROWS - rows.len());
            rows.extend((place.field..end).map(|position| EventRow {
                event,
                records: *records,
                shape,
                position,
                field: shape.fields.get(position),
                type_name,
            }));
            place.field = end;
            if end == all {
                place.event += 1;
                place.field = 0;
            }
        }
        let batch = (!rows.is_empty()).then(|| table::batch(&event_columns(), &rows));
        batch.transpose()
    }
}

/// The columns for fields, as a linked list, so that a column can be inserted between two.
#[derive(Default)]
struct Columns {
    columns: Vec<FieldColumn>,
    first: Option<usize>,
    /// The index of each column by its key.
    indices: HashMap<Arc<str>, usize>,
}

struct FieldColumn {
    name: Arc<str>,
    keys: EntryKeys,
    /// What holds the types that templates give the field, and what those that providers declare.
    of_templates: Option<EntryType>,
    declared: Option<EntryType>,
    next: Option<usize>,
}

/// The narrowest type that holds both, where both are known.
fn unite_known(a: Option<EntryType>, b: Option<EntryType>) -> Option<EntryType> {
    match (a, b) {
        (Some(a), Some(b)) => Some(unite(a, b)),
        (a, b) => a.or(b),
    }
}

impl Columns {
    /// The column with a key, a new one behind `last` if need be. `None` if there are too many.
    fn place(&mut self, name: String, key: String, last: Option<usize>) -> Option<usize> {
        if let Some(&known) = self.indices.get(&*key) {
            return Some(known);
        }
        if self.columns.len() >= MAX_FIELDS {
            return None;
        }
        let index = self.columns.len();
        let next = match last {
            Some(last) => self.columns[last].next.replace(index),
            None => self.first.replace(index),
        };
        let key: Arc<str> = key.into();
        self.indices.insert(Arc::clone(&key), index);
        self.columns.push(FieldColumn {
            name: name.into(),
            keys: EntryKeys { key, in_both: None },
            of_templates: None,
            declared: None,
            next,
        });
        Some(index)
    }

    /// Adds the fields of a shape, each behind the one before it. Where a key is in both elements, that of `UserData`
    /// gets a number.
    fn add(&mut self, shape: &Shape) {
        let mut keys = [(); 2].map(|()| Numbering::new(str::to_lowercase));
        let keyed = shape.fields.iter().map(|field| {
            let (name, key, _) = keys[usize::from(field.in_user_data)].take_folded(field.key.to_string());
            (field, name, key)
        });
        let keyed: Vec<_> = keyed.collect();
        let mut of_both = Numbering::new(str::to_lowercase);
        let is_in_both: Vec<bool> = keyed
            .iter()
            .map(|(field, name, key)| {
                let is_in_both = field.in_user_data && keys[0].is_taken(key);
                if !is_in_both {
                    of_both.take(name.clone());
                }
                is_in_both
            })
            .collect();
        let mut last = None;
        for ((field, name, key), is_in_both) in keyed.into_iter().zip(is_in_both) {
            let in_both = is_in_both.then(|| Arc::from(&*key));
            let (name, key) = match is_in_both {
                true => {
                    let (name, key, _) = of_both.take_folded(name);
                    (name, key)
                }
                false => (name, key),
            };
            let Some(index) = self.place(name, key, last) else {
                continue;
            };
            last = Some(index);
            let column = &mut self.columns[index];
            column.keys.in_both = column.keys.in_both.take().or(in_both);
            // That a record spells out a text says nothing of what the text is of.
            let found = column_type(field.value_type).filter(|found| !(field.is_spelled_out && *found == TEXT));
            column.of_templates = unite_known(column.of_templates, found);
        }
    }

    /// Adds the fields that a provider declares for an event.
    fn declare(&mut self, event: &CatalogEvent) {
        let mut last = None;
        let mut keys = Numbering::new(str::to_lowercase);
        for (name, value_type) in event.fields.iter() {
            let (name, key, _) = keys.take_folded(name.to_string());
            let Some(index) = self.place(name, key, last) else {
                continue;
            };
            last = Some(index);
            let column = &mut self.columns[index];
            column.declared = unite_known(column.declared, column_type(*value_type));
        }
    }

    /// The columns in the order of the list.
    fn in_order(&self) -> Vec<EventField> {
        let next = |index: &usize| self.columns[*index].next;
        let indices = std::iter::successors(self.first, next);
        let field = |index: usize| {
            let column = &self.columns[index];
            EventField {
                name: Arc::clone(&column.name),
                keys: column.keys.clone(),
                // A log can be of another version of Windows, so its templates are right.
                column_type: column.of_templates.or(column.declared).unwrap_or(TEXT),
            }
        };
        indices.map(field).collect()
    }
}

/// What predicates on an event ask of a record, as far as it was read.
fn row<'x, 'r>(records: &'x RecordGroup<'r>, templates: &'x ChunkTemplates, interrupt: Interrupt<'x>) -> Row<'x, 'r> {
    Row {
        record_id: None,
        chunk_index: None,
        record_offset: None,
        recovered: None,
        filename: "",
        written: None,
        parts: Some((records.current(), templates)),
        entries: OnceCell::new(),
        push_text: None,
        has_text: Cell::default(),
        may_be_any_event: false,
        interrupt,
    }
}

/// An element of a record: its entries, and the part that has their values.
type Leaves<'x, 'r> = Option<(&'x EventData, &'x Part<'r>)>;

/// The fields of `EventData` and of `UserData`.
// Kept out of line, because most records have the fields of one before.
#[cold]
fn shape(scan: &Scan, templates: &ChunkTemplates, [event_data, user_data]: [Leaves<'_, '_>; 2]) -> Shape {
    let template = |(_, part): (_, &Part<'_>)| Some(templates.get(part.instance()?.0).ok()?.guid);
    let fields = |leaves: Leaves<'_, '_>, in_user_data| {
        let of_part = |(event_data, part): (&EventData, &Part<'_>)| {
            let is_spelled_out = matches!(part.content, PartContent::Tree(_, _, None) | PartContent::Outlined(..));
            let entries = event_data.entries.iter().take(MAX_FIELDS);
            let fields = entries.map(|entry| ShapeField {
                key: scan.keys.name(&entry.key),
                value_type: entry.declared,
                in_user_data,
                is_spelled_out,
            });
            fields.collect::<Vec<_>>()
        };
        leaves.map(of_part).unwrap_or_default()
    };
    let (mut all, mut of_user_data) = (fields(event_data, false), fields(user_data, true));
    all.append(&mut of_user_data);
    Shape {
        template: event_data.and_then(template).or_else(|| user_data.and_then(template)),
        fields: all.into(),
    }
}

/// A report on the events of files: a row for each field of each event, and one for an event without fields. It has
/// rows only after all files were read.
#[derive(Debug)]
pub struct EventReport {
    /// What was found so far.
    catalog: Catalog,
    type_name: TypeName,
    /// How far its rows were handed out.
    place: CatalogPlace,
}

impl EventReport {
    /// A report of the events of files. `type_name` names the type of a column.
    pub fn new(type_name: TypeName) -> Self {
        EventReport {
            catalog: Catalog::new(None),
            type_name,
            place: CatalogPlace::default(),
        }
    }
}

impl Report for EventReport {
    type Worker = Catalog;
    type Piece = ();

    fn schema(&self) -> SchemaRef {
        table::schema(&event_columns())
    }

    fn reference(&self) -> Vec<(&'static str, &'static str)> {
        table::reference(&event_columns())
    }

    fn worker(&self) -> Catalog {
        self.catalog.beside()
    }

    fn look(worker: &mut Catalog, slots: Slots<'_>, interrupt: Interrupt<'_>) -> Result<(), ReportError> {
        worker.push(slots, interrupt)
    }

    fn start(&mut self, _filename: &str, _size: u64, _header: Option<FileHeader>) {}

    fn add(&mut self, (): ()) {}

    // What cannot be read holds no events.
    fn end(&mut self, _failure: Option<&str>) {}

    fn join(&mut self, mut worker: Catalog) -> Result<(), TooManyEvents> {
        self.catalog.absorb(&worker.take_found())
    }

    fn batch(&mut self, last: bool) -> Result<Option<RecordBatch>, ArrowError> {
        if !last {
            return Ok(None);
        }
        self.catalog.batch(&mut self.place, self.type_name)
    }
}
