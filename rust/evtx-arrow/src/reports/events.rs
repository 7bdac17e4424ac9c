//! The events that logs hold, and the fields that each event has.
//!
//! The fields and their types are those of the template definitions. A definition does not say which event it is for,
//! and several events can share one. So each record is read for its event and for the template that its `EventData`
//! refers to. The values of the fields are not decoded.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use bumpalo::Bump;
use evtx_format::Interrupt;
use evtx_format::binxml::names::Names;
use evtx_format::container::chunk::CHUNK_SIZE;
use evtx_format::container::header::FileHeader;
use evtx_format::container::record::Record;
use evtx_format::container::records::RecordWalk;
use evtx_format::value::ValueType;
use hashbrown::HashMap;

use super::report::{MAX_EVENT_BYTES, Report, ReportError, TooManyEvents, TypeName};
use super::table::{self, ReportColumn, Value};
use crate::filter::{Row, Scratch, Stage};
use crate::plan::EventData;
use crate::read::RecordReader;
use crate::record::{ChunkTemplates, Part, RecordGroup};
use crate::scan::Scan;
use crate::schema::{EntryType, EventField, Events, Options, TEXT, Table, column_type, unite};

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

/// The fields of an `EventData`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Shape {
    /// The GUID of the template, its 16 bytes in the order of its text; `None` if the record spells `EventData` out.
    template: Option<[u8; 16]>,
    /// The name and the declared type of each field, in the order of the template.
    fields: Box<[(Arc<str>, ValueType)]>,
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
                .map(|(name, _)| size_of::<(Arc<str>, ValueType)>() + name.len());
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
    /// The name and the declared type of the field; `None` for an event without fields.
    field: Option<&'c (Arc<str>, ValueType)>,
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
            about: "The index of the field in `EventData`, from 0. This and the next three are NULL for an event without fields.",
            value: Value::UInt32(|row| row.field.map(|_| row.position as u32)),
        },
        ReportColumn {
            name: "field_name",
            about: "The field's name, its key in `event_data`.",
            value: Value::Text(|row| row.field.map(|(name, _)| (**name).into())),
        },
        ReportColumn {
            name: "binxml_type",
            about: "The BinXML type that the template declares, with `[]` for an array.",
            value: Value::Text(|row| row.field.map(|(_, value_type)| value_type.to_string().into())),
        },
        ReportColumn {
            name: "column_type",
            about: "The type of its column in `read_evtx(..., event_id := ...)`, if this were its only template.",
            value: Value::Text(|row| {
                let (name, value_type) = row.field?;
                Some((row.type_name)(&column_type(*value_type).unwrap_or(TEXT).field(name)).into())
            }),
        },
        ReportColumn {
            name: "template_guid",
            about: "The template that `EventData` is an instance of. NULL where records spell it out.",
            value: Value::Uuid(|row| row.shape.template),
        },
        ReportColumn {
            name: "records",
            about: "How many records there are of this provider, event, version, channel and template.",
            value: Value::UInt64(|row| Some(row.records)),
        },
    ]
}

/// Collects the events of logs: counts their records, and keeps the fields of each.
pub struct Catalog {
    scan: Scan,
    /// The events that are collected; `None` for all.
    events: Option<Events>,
    templates: ChunkTemplates,
    arenas: [Bump; 2],
    scratch: Scratch,
    key: Vec<u8>,
    shapes: Shapes,
    /// The index of the shape of each template of the current chunk, by the index of the template in `templates`.
    chunk_shapes: Vec<Option<usize>>,
    /// The index of each event in `found`, by a key that is unique to the event.
    known: HashMap<Box<[u8]>, usize>,
    /// The events, with the number of their records.
    found: Vec<(Event, u64)>,
    /// About how many bytes of memory the events take, without the shapes.
    bytes: usize,
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
        let mut table = Table::from(Options::default());
        table.events = events.clone().map(Arc::new);
        let index = |name: &str| table.columns.iter().position(|column| column.name == name);
        let projection: Vec<usize> = COLUMNS.iter().filter_map(|name| index(name)).collect();
        Catalog {
            scan: Scan::new(table, &projection),
            events,
            templates: ChunkTemplates::default(),
            arenas: Default::default(),
            scratch: Scratch::default(),
            key: Vec::new(),
            shapes: Shapes::default(),
            chunk_shapes: Vec::new(),
            known: HashMap::new(),
            found: Vec::new(),
            bytes: 0,
        }
    }

    #[cfg(test)]
    pub(crate) fn scan(&self) -> &Scan {
        &self.scan
    }

    /// Adds the records of adjacent chunks, of which the last can be cut short. Leaves out what is damaged.
    ///
    /// # Errors
    /// [`ReportError::TooManyEvents`], [`ReportError::Interrupted`], [`ReportError::Poisoned`]. The records before stay
    /// in the catalog.
    pub fn push(&mut self, chunks: &[u8], interrupt: Interrupt<'_>) -> Result<(), ReportError> {
        let mut arenas = std::mem::take(&mut self.arenas);
        let [names, records] = &mut arenas;
        let mut chunks = chunks.chunks(CHUNK_SIZE);
        let pushed = chunks.try_for_each(|chunk| {
            names.reset();
            self.chunk(chunk, names, records, interrupt)
        });
        self.arenas = arenas;
        pushed?;
        Ok(self.scan.check_shared()?)
    }

    /// Adds the records of a chunk.
    fn chunk(
        &mut self,
        chunk: &[u8],
        names: &Bump,
        arena: &mut Bump,
        interrupt: Interrupt<'_>,
    ) -> Result<(), ReportError> {
        self.templates.clear();
        self.chunk_shapes.clear();
        let names = Names::new(chunk, names);
        let (mut walk, _) = RecordWalk::new(chunk, false);
        while let Some(item) = walk.next(chunk) {
            interrupt.check()?;
            if let Ok(found) = item {
                if self.templates.are_many() {
                    self.templates.clear();
                    self.chunk_shapes.clear();
                }
                self.record(chunk, &names, arena, &found.record, interrupt)?;
                arena.reset();
            }
        }
        Ok(())
    }

    /// Adds a record, if it is of an event that is collected and can be read.
    fn record<'c>(
        &mut self,
        chunk: &'c [u8],
        names: &Names<'c>,
        arena: &Bump,
        record: &Record,
        interrupt: Interrupt<'_>,
    ) -> Result<(), TooManyEvents> {
        let Catalog { scan, templates, .. } = self;
        let reader = RecordReader::new(scan, chunk, names, arena, interrupt);
        let mut records = RecordGroup::new(&scan.target, 1, arena);
        reader.read_event(templates, &mut records, record.binxml());
        let mut keeps = |records: &RecordGroup<'_>, templates: &ChunkTemplates| {
            let row = Row {
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
            };
            scan.filter.keeps(Stage::Header, Stage::Record, &row, &mut self.scratch)
        };
        let has_system = records.current().has_system(templates);
        if has_system && !keeps(&records, templates) {
            return Ok(());
        }
        reader.read_children(templates, &mut records);
        if records.current().is_unread() || !has_system && !keeps(&records, templates) {
            return Ok(());
        }
        let parts = records.current();
        let shape = match parts.event_data(templates) {
            None => {
                let none = Shape {
                    template: None,
                    fields: [].into(),
                };
                self.shapes.index_of(none)
            }
            Some((event_data, part)) => {
                let known = part.template().and_then(|at| *self.chunk_shapes.get(at)?);
                known.unwrap_or_else(|| {
                    let shape = shape(scan, templates, event_data, part);
                    let index = self.shapes.index_of(shape);
                    if let Some(at) = part.template() {
                        self.chunk_shapes.resize(self.chunk_shapes.len().max(at + 1), None);
                        self.chunk_shapes[at] = Some(index);
                    }
                    index
                })
            }
        };
        let fields = parts.fields(templates);
        let id = fields.get(EVENT_ID).and_then(|found| found.number());
        let id = id.and_then(|id| u32::try_from(id).ok());
        let version = fields.get(VERSION).and_then(|found| found.number());
        let version = version.and_then(|version| u8::try_from(version).ok());
        self.key.clear();
        self.key.extend_from_slice(&shape.to_le_bytes());
        self.key
            .extend_from_slice(&id.map_or(u64::MAX, u64::from).to_le_bytes());
        self.key
            .extend_from_slice(&version.map_or(u16::MAX, u16::from).to_le_bytes());
        for place in [PROVIDER, CHANNEL] {
            // UTF-8 has no bytes 0xfe and 0xff, so no two events have the same key.
            match fields.get(place) {
                Some(found) => found.push_text(&mut self.key),
                None => self.key.push(0xfe),
            }
            self.key.push(0xff);
        }
        if let Some(&known) = self.known.get(&self.key[..]) {
            self.found[known].1 += 1;
            return Ok(());
        }
        self.bytes += EVENT + 2 * self.key.len();
        if self.bytes + self.shapes.bytes > MAX_EVENT_BYTES {
            return Err(TooManyEvents);
        }
        let text = |place| fields.get(place)?.text().map(String::into_boxed_str);
        let event = Event {
            provider: text(PROVIDER),
            id,
            version,
            channel: text(CHANNEL),
            shape,
        };
        self.known.insert(self.key[..].into(), self.found.len());
        self.found.push((event, 1));
        Ok(())
    }

    /// Adds the events that another catalog has found.
    ///
    /// # Errors
    /// [`TooManyEvents`] if there is no room for all.
    pub fn join(&mut self, other: Catalog) -> Result<(), TooManyEvents> {
        let shapes: Vec<usize> = other
            .shapes
            .shapes
            .into_iter()
            .map(|shape| self.shapes.index_of(shape))
            .collect();
        let places = self
            .found
            .iter()
            .enumerate()
            .map(|(place, (event, _))| (event.clone(), place));
        let mut places: HashMap<Event, usize> = places.collect();
        for (event, records) in other.found {
            let event = Event {
                shape: shapes[event.shape],
                ..event
            };
            match places.get(&event) {
                Some(&place) => self.found[place].1 += records,
                None => {
                    let texts = [&event.provider, &event.channel].into_iter().flatten();
                    self.bytes += EVENT + 2 * texts.map(|text| text.len()).sum::<usize>();
                    if self.bytes + self.shapes.bytes > MAX_EVENT_BYTES {
                        return Err(TooManyEvents);
                    }
                    places.insert(event.clone(), self.found.len());
                    self.found.push((event, records));
                }
            }
        }
        Ok(())
    }

    /// The fields of the events, as columns, 4,096 at most. They are in the order of the first event. A field that only
    /// a later event has is placed behind the field that it follows in that event. The events are in the order of the
    /// IDs that the catalog was made for, and those of one ID in the order of their versions.
    pub fn fields(&self) -> Vec<EventField> {
        let ids = self.events.as_ref().map_or(&[][..], |events| &events.ids);
        let ranks: HashMap<u32, usize> = ids.iter().enumerate().rev().map(|(rank, id)| (*id, rank)).collect();
        let rank = |event: &Event| event.id.and_then(|id| ranks.get(&id).copied());
        let mut events: Vec<(Option<usize>, &Event)> =
            self.found.iter().map(|(event, _)| (rank(event), event)).collect();
        events.sort_by(|(rank_a, a), (rank_b, b)| (rank_a, a.version, a).cmp(&(rank_b, b.version, b)));
        let mut columns = Columns::default();
        let mut is_done = vec![false; self.shapes.shapes.len()];
        for (_, event) in events {
            // A shape that was added has nothing new.
            if !std::mem::replace(&mut is_done[event.shape], true) {
                columns.add(&self.shapes.shapes[event.shape]);
            }
        }
        columns.in_order()
    }

    /// The next rows from a place on, 2,048 at most; `None` if there are no more. Moves the place behind them. There is
    /// a row for each field of each event, and one for an event without fields, sorted by provider, ID, version and
    /// channel. `type_name` gives the name of a column's type.
    ///
    /// # Errors
    /// The error of Arrow if it refuses an array of the batch.
    pub fn batch(&self, place: &mut CatalogPlace, type_name: TypeName) -> Result<Option<RecordBatch>, ArrowError> {
        let order = place.order.get_or_insert_with(|| {
            let mut order: Vec<usize> = (0..self.found.len()).collect();
            // Events with the same fields stand together, in an order that does not depend on which was found first.
            let key = |at: usize| {
                let event = &self.found[at].0;
                let shape = &self.shapes.shapes[event.shape];
                (&event.provider, event.id, event.version, &event.channel, shape)
            };
            order.sort_by(|a, b| key(*a).cmp(&key(*b)));
            order
        });
        let mut rows = Vec::new();
        while let Some(&at) = order.get(place.event).filter(|_| rows.len() < BATCH_ROWS) {
            let (event, records) = &self.found[at];
            let shape = &self.shapes.shapes[event.shape];
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
    /// Of each column the name, the type if a template declares one, and the index of the next column.
    columns: Vec<(Arc<str>, Option<EntryType>, Option<usize>)>,
    /// The index of the first column.
    first: Option<usize>,
    /// The index of each column by its name.
    indices: HashMap<Arc<str>, usize>,
}

impl Columns {
    /// Adds the fields of a shape, each new one behind the field before it.
    fn add(&mut self, shape: &Shape) {
        let mut last = None;
        for (name, value_type) in &shape.fields {
            let found = column_type(*value_type);
            if let Some(&known) = self.indices.get(name) {
                let column_type = &mut self.columns[known].1;
                *column_type = match (*column_type, found) {
                    (Some(known), Some(found)) => Some(unite(known, found)),
                    (known, found) => known.or(found),
                };
                last = Some(known);
            } else if self.columns.len() < MAX_FIELDS {
                let index = self.columns.len();
                let next = match last {
                    Some(last) => self.columns[last].2.replace(index),
                    None => self.first.replace(index),
                };
                self.columns.push((Arc::clone(name), found, next));
                self.indices.insert(Arc::clone(name), index);
                last = Some(index);
            }
        }
    }

    /// The columns in the order of the list.
    fn in_order(&self) -> Vec<EventField> {
        let next = |index: &usize| self.columns[*index].2;
        let indices = std::iter::successors(self.first, next);
        let field = |index: usize| {
            let (name, column_type, _) = &self.columns[index];
            EventField {
                name: name.as_ref().into(),
                column_type: column_type.unwrap_or(TEXT),
            }
        };
        indices.map(field).collect()
    }
}

/// The shape of an `EventData`, which is in a part of a record.
fn shape(scan: &Scan, templates: &ChunkTemplates, event_data: &EventData, part: &Part<'_>) -> Shape {
    let fields = event_data.entries.iter();
    Shape {
        template: part.template().and_then(|at| Some(templates.get(at).ok()?.guid)),
        fields: fields
            .take(MAX_FIELDS)
            .map(|entry| (scan.keys.name(&entry.key), entry.declared))
            .collect(),
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
        Catalog::new(None)
    }

    fn look(worker: &mut Catalog, chunks: &[u8], _first: u64, interrupt: Interrupt<'_>) -> Result<(), ReportError> {
        worker.push(chunks, interrupt)
    }

    fn start(&mut self, _filename: &str, _size: u64, _header: Option<FileHeader>) {}

    fn add(&mut self, (): ()) {}

    // What cannot be read holds no events.
    fn end(&mut self, _failure: Option<&str>) {}

    fn join(&mut self, worker: Catalog) -> Result<(), TooManyEvents> {
        self.catalog.join(worker)
    }

    fn batch(&mut self, last: bool) -> Result<Option<RecordBatch>, ArrowError> {
        if !last {
            return Ok(None);
        }
        self.catalog.batch(&mut self.place, self.type_name)
    }
}
