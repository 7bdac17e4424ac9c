//! The report on the events that logs hold, and on the fields of each event.

use std::vec::IntoIter;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use evtx_arrow::{CollectedEvent, CollectedEvents, CollectedField, EventCollector, Slots, SlotsError, TooManyEvents};
use evtx_format::Interrupt;
use evtx_format::container::header::FileHeader;

use super::report::{Report, TypeName};
use super::table::{self, ReportColumn, Value};

/// The most rows of a batch.
const BATCH_ROWS: usize = 2048;

/// A row of [`EventReport`]: a field of an event, or an event without fields.
struct EventRow<'c> {
    event: &'c CollectedEvent,
    /// The index of the field in `EventData`; 0 for an event without fields.
    position: usize,
    field: Option<&'c CollectedField>,
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
            value: Value::Text(|row| Some((row.type_name)(&row.field?.column()).into())),
        },
        ReportColumn {
            name: "template_guid",
            about: "The template that `EventData` or `UserData` is an instance of. NULL where records spell it out.",
            value: Value::Uuid(|row| row.event.layout.template),
        },
        ReportColumn {
            name: "records",
            about: "How many records there are of this provider, event, version, channel and template. Where records spell their fields out: how many have just these fields. No column tells such rows apart, so count events with `read_evtx`.",
            value: Value::UInt64(|row| Some(row.event.records)),
        },
        ReportColumn {
            name: "in_user_data",
            about: "Whether the field is in `UserData`.",
            value: Value::Bool(|row| row.field.map(|field| field.in_user_data)),
        },
    ]
}

/// A report on the events of files: a row for each field of each event, and one for an event without fields. It has
/// rows only after all files were read.
#[derive(Debug)]
pub struct EventReport {
    /// What was collected, until the first batch.
    collected: CollectedEvents,
    type_name: TypeName,
    /// The events in the order of the rows, from the first batch on.
    events: Option<IntoIter<CollectedEvent>>,
    /// The event whose rows did not all fit into the last batch, and how many of them did.
    rest: Option<(CollectedEvent, usize)>,
}

impl EventReport {
    /// A report of the events of files. `type_name` names the type of a column.
    pub fn new(type_name: TypeName) -> Self {
        EventReport {
            collected: CollectedEvents::default(),
            type_name,
            events: None,
            rest: None,
        }
    }
}

impl Report for EventReport {
    type Worker = EventCollector;
    type Piece = ();

    fn schema(&self) -> SchemaRef {
        table::schema(&event_columns())
    }

    fn reference(&self) -> Vec<(&'static str, &'static str)> {
        table::reference(&event_columns())
    }

    fn worker(&self) -> EventCollector {
        EventCollector::new(None)
    }

    fn look(worker: &mut EventCollector, slots: Slots<'_>, interrupt: Interrupt<'_>) -> Result<(), SlotsError> {
        worker.push(slots, interrupt)
    }

    fn start(&mut self, _filename: &str, _size: u64, _header: Option<FileHeader>) {}

    fn add(&mut self, (): ()) {}

    // What cannot be read holds no events.
    fn end(&mut self, _failure: Option<&str>) {}

    fn join(&mut self, mut worker: EventCollector) -> Result<(), TooManyEvents> {
        self.collected.absorb(&worker.take())
    }

    fn batch(&mut self, last: bool) -> Result<Option<RecordBatch>, ArrowError> {
        if !last {
            return Ok(None);
        }
        let collected = &mut self.collected;
        let events = self
            .events
            .get_or_insert_with(|| std::mem::take(collected).into_sorted().into_iter());
        let (mut done, mut count) = (Vec::new(), 0);
        while count < BATCH_ROWS
            && let Some((event, start)) = self.rest.take().or_else(|| Some((events.next()?, 0)))
        {
            let all = event.layout.fields.len().max(1);
            let end = all.min(start + BATCH_ROWS - count);
            count += end - start;
            self.rest = (end < all).then(|| (event.clone(), end));
            done.push((event, start..end));
        }
        let rows = done.iter().flat_map(|(event, positions)| {
            positions.clone().map(|position| EventRow {
                event,
                position,
                field: event.layout.fields.get(position),
                type_name: self.type_name,
            })
        });
        let rows: Vec<_> = rows.collect();
        let batch = (!rows.is_empty()).then(|| table::batch(&event_columns(), &rows));
        batch.transpose()
    }
}
