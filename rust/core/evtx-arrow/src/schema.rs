//! Tables of events: their options, and their columns with types.

mod options;
mod numbering;
mod columns;
mod unify;
mod events;

pub(crate) use columns::{
    COLUMNS, Column, ColumnSource, ColumnType, EVENT_RECORD_ID, EntryKeys, Extra, FieldType, HeaderValue, Operand,
    TIME_CREATED, columns, entries_field, entry_fields, list_field, list_fields, schema_of,
};
pub use columns::{ColumnReference, Comparable, EventPath, enum_field, enum_of, reference, system_names, uuid_field};
pub use events::{EventField, EventFieldTuple, Events};
pub(crate) use numbering::ColumnKeys;
pub use numbering::Numbering;
pub use options::{OnError, Options};
pub use unify::column_field;
pub(crate) use unify::{TEXT, column_type, unite};
