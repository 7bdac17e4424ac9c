//! Tables of events: their options, and their columns with types.

mod options;
mod column_keys;
mod columns;
mod events;

pub use column_keys::ColumnKeys;
pub(crate) use columns::{
    COLUMNS, Column, ColumnSource, EVENT_RECORD_ID, Extra, HeaderValue, Operand, TIME_CREATED, columns, entries_field,
    entry_fields, list_field, list_fields, schema_of,
};
pub use columns::{
    ColumnReference, ColumnType, Comparable, EntryKeys, EventPath, FieldType, reference, system_names, uuid_field,
};
pub use events::{EventField, Events};
pub use options::{OnError, Options};
