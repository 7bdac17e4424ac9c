//! The report on the schema of logs: their events, and the fields of each event.

use std::sync::Arc;

use evtx_events::{CollectedEvent, CollectedEvents, CollectedField, EventCollector, Slots, SlotsError, TooManyEvents};
use evtx_format::Interrupt;

use crate::report::{BATCH_ROWS, Report, TypeName};
use crate::table::columns;

/// A report on the events of files: a row for each field of each event, and one for an event without fields. It has
/// rows only after all files were read.
pub struct SchemaReport {
    /// The events, until the first rows are asked for.
    collected: CollectedEvents,
    /// From then on: the rest of the rows.
    rows: Option<Box<dyn Iterator<Item = EventRow> + Send>>,
    type_name: TypeName,
}

impl SchemaReport {
    /// A report on the events of files. `type_name` names the types of columns.
    pub fn new(type_name: TypeName) -> Self {
        SchemaReport {
            collected: CollectedEvents::default(),
            rows: None,
            type_name,
        }
    }
}

impl Report for SchemaReport {
    type Row = EventRow;
    type Worker = EventCollector;
    type BlockResult = ();

    fn worker(&self) -> EventCollector {
        EventCollector::new(None)
    }

    fn look(worker: &mut EventCollector, slots: Slots<'_>, interrupt: Interrupt<'_>) -> Result<(), SlotsError> {
        worker.push(slots, interrupt)
    }

    fn join(&mut self, mut worker: EventCollector) -> Result<(), TooManyEvents> {
        self.collected.absorb(&worker.take())
    }

    fn rows(&mut self, last: bool) -> Vec<EventRow> {
        if !last {
            return Vec::new();
        }
        let rows = self.rows.get_or_insert_with(|| {
            let events = std::mem::take(&mut self.collected).into_sorted();
            let type_name = self.type_name;
            Box::new(events.into_iter().flat_map(move |event| rows_of(event, type_name)))
        });
        rows.take(BATCH_ROWS).collect()
    }
}

/// A field of an event, or an event without fields.
pub struct EventRow {
    event: Arc<CollectedEvent>,
    /// The index of the field; 0 for an event without fields.
    position: usize,
    type_name: TypeName,
}

fn rows_of(event: CollectedEvent, type_name: TypeName) -> impl Iterator<Item = EventRow> {
    let event = Arc::new(event);
    (0..event.layout.fields.len().max(1)).map(move |position| EventRow {
        event: Arc::clone(&event),
        position,
        type_name,
    })
}

impl EventRow {
    fn field(&self) -> Option<&CollectedField> {
        self.event.layout.fields.get(self.position)
    }
}

columns! { EventRow:
    /// The name of the provider that raises the event.
    provider: Text(|row| row.event.provider.as_deref().map(Into::into));
    /// The ID of the event.
    event_id: UInt32(|row| row.event.id);
    /// The version of the event.
    version: UInt8(|row| row.event.version);
    /// The log that the event is written to.
    channel: Text(|row| row.event.channel.as_deref().map(Into::into));
    /// The index of the field in `EventData` or `UserData`, from 0. NULL for an event without fields.
    field_position: UInt32(|row| row.field().map(|_| row.position as u32));
    /// The field's name: its key in `event_data`, or the name of its element in `UserData`.
    field_name: Text(|row| row.field().map(|field| (*field.key).into()));
    /// The type that the template declares, `[]` for an array.
    binxml_type: Text(|row| row.field().map(|field| field.value_type.to_string().into()));
    /// The type of its column in `read_evtx(..., event_id := ...)`, if this were its only template.
    column_type: Text(|row| Some((row.type_name)(&row.field()?.column()).into()));
    /// The template of `EventData` or `UserData`. NULL if records spell the element out.
    template_guid: Uuid(|row| row.event.layout.template);
    /// How many records have this provider, event, version, channel, template, and exactly these fields.
    /// Count events with `read_evtx`.
    records: UInt64(|row| Some(row.event.records));
    /// Whether the field is in `UserData`.
    in_user_data: Bool(|row| row.field().map(|field| field.in_user_data));
}
