//! The report on the events that Windows' providers and Sysmon declare, whether logs have them or not.

use std::sync::Arc;

use evtx_catalog::{DeclaredEvent, all_events};
use evtx_events::column_field;
use evtx_format::value::ValueType;

use crate::report::{ListReport, TypeName};
use crate::table::columns;

/// A report on the catalog of declared events ([`evtx_catalog`]): a row for each field of each event, and one for an
/// event without fields.
pub type DeclaredEventReport = ListReport<DeclaredRow>;

impl DeclaredEventReport {
    /// A report on the whole catalog. `type_name` names the types of columns.
    pub fn new(type_name: TypeName) -> Self {
        ListReport::of(all_events().flat_map(move |event| {
            let event = Arc::new(event);
            (0..event.fields.len().max(1)).map(move |position| DeclaredRow {
                event: Arc::clone(&event),
                position,
                type_name,
            })
        }))
    }
}

/// A field of an event, or an event without fields.
pub struct DeclaredRow {
    event: Arc<DeclaredEvent>,
    /// The index of the field in the event; 0 for an event without fields.
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

columns! { DeclaredRow:
    /// The name of the provider that raises the event.
    provider: Text(|row| Some((*row.event.provider).into()));
    /// The ID of the event.
    event_id: UInt32(|row| Some(row.event.id));
    /// The version of the event.
    version: UInt8(|row| Some(row.event.version));
    /// The index of the field, from 0. NULL for an event without fields.
    field_position: UInt32(|row| row.field().and_then(|_| u32::try_from(row.position).ok()));
    /// The field's name, its key in `event_data`.
    field_name: Text(|row| row.field().map(|(name, _)| name.into()));
    /// The BinXML type that templates in logs declare; `Null` if unknown.
    binxml_type: Text(|row| row.field().map(|(_, value_type)| value_type.to_string().into()));
    /// The type of its column in `read_evtx(..., event_id := ...)`, unless a template of a log differs.
    column_type: Text(|row| row.field().map(|(name, of)| (row.type_name)(&column_field(name, of)).into()));
    /// Whether the field is in `UserData`.
    in_user_data: Bool(|row| row.field().map(|_| row.event.in_user_data));
}
