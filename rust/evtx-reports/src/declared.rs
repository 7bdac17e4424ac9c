//! The events that Windows' providers and Sysmon declare, whether a log has them or not.

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use evtx_arrow::column_field;
use evtx_catalog::{DeclaredEvent, all_events};
use evtx_format::value::ValueType;

use super::report::{ReportWithoutFiles, TypeName};
use super::table::{self, ReportColumn, Value};

/// The most rows of a batch.
const BATCH_ROWS: usize = 2048;

/// A row of [`DeclaredEventReport`]: a field of an event, or an event without fields.
struct DeclaredRow {
    event: DeclaredEvent,
    /// The index of the field among those of the event; 0 for an event without fields.
    position: usize,
    type_name: TypeName,
}

impl DeclaredRow {
    /// The name and the type of the field; `None` for an event without fields.
    fn field(&self) -> Option<(&str, ValueType)> {
        let (name, value_type) = self.event.fields.get(self.position)?;
        Some((name, *value_type))
    }
}

/// The columns of [`DeclaredEventReport`].
const COLUMNS: &[ReportColumn<DeclaredRow>] = &[
    ReportColumn {
        name: "provider",
        about: "The name of the provider that raises the event.",
        value: Value::Text(|row| Some((*row.event.provider).into())),
    },
    ReportColumn {
        name: "event_id",
        about: "What kind of event it is.",
        value: Value::UInt32(|row| Some(row.event.id)),
    },
    ReportColumn {
        name: "version",
        about: "The version of the event.",
        value: Value::UInt8(|row| Some(row.event.version)),
    },
    ReportColumn {
        name: "field_position",
        about: "The index of the field, from 0. This, the next three and the last are NULL for an event without fields.",
        value: Value::UInt32(|row| row.field().and_then(|_| u32::try_from(row.position).ok())),
    },
    ReportColumn {
        name: "field_name",
        about: "The field's name, its key in `event_data`.",
        value: Value::Text(|row| row.field().map(|(name, _)| name.into())),
    },
    ReportColumn {
        name: "binxml_type",
        about: "The BinXML type that templates in logs declare; `Null` if it is not known.",
        value: Value::Text(|row| row.field().map(|(_, value_type)| value_type.to_string().into())),
    },
    ReportColumn {
        name: "column_type",
        about: "The type of its column in `read_evtx(..., event_id := ...)`, if no template of a log says otherwise.",
        value: Value::Text(|row| {
            let (name, value_type) = row.field()?;
            Some((row.type_name)(&column_field(name, value_type)).into())
        }),
    },
    ReportColumn {
        name: "in_user_data",
        about: "Whether the field is in `UserData`.",
        value: Value::Bool(|row| row.field().map(|_| row.event.in_user_data)),
    },
];

/// A report on the catalog of declared events ([`evtx_catalog`]): a row for each field of each event, and one for an
/// event without fields. It reads no files.
#[derive(Debug)]
pub struct DeclaredEventReport {
    events: evtx_catalog::Events<'static>,
    /// The event whose rows did not all fit into the last batch, and how many of them did.
    rest: Option<(DeclaredEvent, usize)>,
    type_name: TypeName,
}

impl DeclaredEventReport {
    /// A report on the whole catalog. `type_name` gives the name of a column's type.
    pub fn new(type_name: TypeName) -> Self {
        DeclaredEventReport {
            events: all_events(),
            rest: None,
            type_name,
        }
    }
}

impl ReportWithoutFiles for DeclaredEventReport {
    fn schema(&self) -> SchemaRef {
        table::schema(COLUMNS)
    }

    fn reference(&self) -> Vec<(&'static str, &'static str)> {
        table::reference(COLUMNS)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let mut rows = Vec::with_capacity(BATCH_ROWS);
        while rows.len() < BATCH_ROWS
            && let Some((event, done)) = self.rest.take().or_else(|| Some((self.events.next()?, 0)))
        {
            let all = event.fields.len().max(1);
            let end = all.min(done + BATCH_ROWS - rows.len());
            rows.extend((done..end).map(|position| DeclaredRow {
                event: event.clone(),
                position,
                type_name: self.type_name,
            }));
            self.rest = (end < all).then_some((event, end));
        }
        let batch = (!rows.is_empty()).then(|| table::batch(COLUMNS, &rows));
        batch.transpose()
    }
}
