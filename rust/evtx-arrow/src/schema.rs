//! The tables of events: their options, their columns and the types of these.

mod options;
mod numbering;
mod columns;
mod unify;
mod table;

pub(crate) use columns::{
    COLUMNS, Column, ColumnSource, EVENT_ID, EVENT_RECORD_ID, EntryKeys, EntryType, FieldType, MESSAGE, PROVIDER,
    Place, entries_field, entry_fields, list_field, list_fields, schema_of,
};
pub use columns::{ColumnReference, reference};
pub(crate) use numbering::Numbering;
pub use options::{OnError, Options};
pub use table::{EventField, Events, Table, schema};
pub(crate) use unify::{TEXT, column_type, unite};
