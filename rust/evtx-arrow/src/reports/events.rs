//! What events a log holds, and what fields each has.
//!
//! The fields and their types are those of the template definitions. A definition does not say which event it is for,
//! and several events can share one, so each record is asked which event it is of and which template its `EventData`
//! refers to. No field is decoded.

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

/// About how many bytes an event takes beside its names.
const EVENT: usize = 256;

/// Most fields of events that become columns. The others are in `event_data` all the same.
const MAX_FIELDS: usize = 4096;

/// Most rows of a batch.
const BATCH_ROWS: usize = 2048;

/// The places of a catalog's scan, by index.
const COLUMNS: [&str; 5] = ["provider", "event_id", "version", "channel", "event_data"];
const PROVIDER: usize = 0;
const EVENT_ID: usize = 1;
const VERSION: usize = 2;
const CHANNEL: usize = 3;

/// The fields of a template's `EventData`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Shape {
    template: Option<[u8; 16]>,
    fields: Box<[(Arc<str>, ValueType)]>,
}

/// The shapes that were met, each once.
#[derive(Default)]
struct Shapes {
    shapes: Vec<Shape>,
    indices: HashMap<Shape, usize>,
    /// About how many bytes they take.
    bytes: usize,
}

impl Shapes {
    /// The index of a shape, a new one if need be.
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

/// Records of one event that have the same fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    provider: Option<Box<str>>,
    id: Option<u32>,
    version: Option<u8>,
    channel: Option<Box<str>>,
    /// The index of its shape.
    shape: usize,
}

/// A row of [`EventReport`]: a field of an event, or an event without fields.
struct EventRow<'c> {
    event: &'c Event,
    records: u64,
    shape: &'c Shape,
    /// The place of the field in `EventData`.
    position: usize,
    field: Option<&'c (Arc<str>, ValueType)>,
    type_name: TypeName,
}

/// The columns of [`EventReport`].
fn event_columns<'c>() -> Vec<ReportColumn<EventRow<'c>>> {
    vec![
        ReportColumn {
            name: "provider",
            about: "Who raises the event.",
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
            about: "The log that it is written to.",
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
            about: "The type that the template declares, `[]` for an array.",
            value: Value::Text(|row| row.field.map(|(_, value_type)| value_type.to_string().into())),
        },
        ReportColumn {
            name: "column_type",
            about: "The type of its column in `read_evtx(..., event_id := ...)`, were this its only template.",
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

/// Collects the events of logs.
pub struct Catalog {
    scan: Scan,
    /// Which events count, if not all.
    events: Option<Events>,
    templates: ChunkTemplates,
    arenas: [Bump; 2],
    scratch: Scratch,
    key: Vec<u8>,
    shapes: Shapes,
    /// By the index of the template in the chunk at hand: the index of its shape.
    chunk_shapes: Vec<Option<usize>>,
    /// By what makes an event another one: its place in `found`.
    known: HashMap<Box<[u8]>, usize>,
    /// The events, with their records.
    found: Vec<(Event, u64)>,
    /// About how many bytes are kept.
    bytes: usize,
}

/// A place among the rows of a catalog.
#[derive(Debug, Default)]
pub struct CatalogPlace {
    /// The events in the order of the rows, once there is one.
    order: Option<Vec<usize>>,
    /// How many of them are done, and how many fields of the next.
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
    /// An empty catalog of some events, or of all.
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

    /// Adds the records of some chunks, which stand one behind the other. What is damaged is left out.
    ///
    /// # Errors
    /// [`ReportError::TooManyEvents`], [`ReportError::Interrupted`], [`ReportError::Poisoned`].
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
            // No byte of UTF-8 is 0xff.
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

    /// The fields of the events, as columns: in the order of the first event's, and those that only a later one has
    /// behind the field that they stand behind there. There are at most 4,096.
    pub fn fields(&self) -> Vec<EventField> {
        let ids = self
            .events
            .as_ref()
            .and_then(|events| events.ids.as_deref())
            .unwrap_or_default();
        let ranks: HashMap<u32, usize> = ids.iter().enumerate().rev().map(|(rank, id)| (*id, rank)).collect();
        let rank = |event: &Event| event.id.and_then(|id| ranks.get(&id).copied());
        let mut events: Vec<(Option<usize>, &Event)> =
            self.found.iter().map(|(event, _)| (rank(event), event)).collect();
        events.sort_by(|(rank_a, a), (rank_b, b)| (rank_a, a.version, a).cmp(&(rank_b, b.version, b)));
        let mut columns = Columns::default();
        let mut is_done = vec![false; self.shapes.shapes.len()];
        for (_, event) in events {
            // Others of its shape have nothing new.
            if !std::mem::replace(&mut is_done[event.shape], true) {
                columns.add(&self.shapes.shapes[event.shape]);
            }
        }
        columns.in_order()
    }

    /// The next rows behind a place, which moves behind them; `None` where there are no more. A row per field of each
    /// event, by provider, ID, version and channel, and one for an event without fields. `type_name` names the type of
    /// a column.
    ///
    /// # Errors
    /// That of Arrow, if it cannot be made.
    pub fn batch(&self, place: &mut CatalogPlace, type_name: TypeName) -> Result<Option<RecordBatch>, ArrowError> {
        let order = place.order.get_or_insert_with(|| {
            let mut order: Vec<usize> = (0..self.found.len()).collect();
            order.sort_by(|a, b| self.found[*a].0.cmp(&self.found[*b].0));
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

/// The columns of fields. Each knows the next, so that one can be put between two.
#[derive(Default)]
struct Columns {
    columns: Vec<(Arc<str>, Option<EntryType>, Option<usize>)>,
    first: Option<usize>,
    indices: HashMap<Arc<str>, usize>,
}

impl Columns {
    /// Adds the fields of a shape, each behind the one before it.
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

/// What a part says of the fields of `EventData`.
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
        table::schema(&event_columns())
    }

    fn reference(&self) -> Vec<(&'static str, &'static str)> {
        table::reference(&event_columns())
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
