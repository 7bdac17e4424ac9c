//! Tables of events: their options, and their columns with types.

mod options;
mod numbering;
mod columns;
mod unify;
mod rules;
mod table;

pub(crate) use columns::{
    COLUMNS, Column, ColumnSource, ColumnType, EVENT_ID, EVENT_RECORD_ID, EntryKeys, FieldType, HeaderValue, MESSAGE,
    MessageSource, Operand, PROVIDER, PROVIDER_GUID, Place, QUALIFIERS, RULE_COLUMNS, RuleColumn, TIME_CREATED,
    VERSION, burst_fields, burst_record_field, burst_record_fields, entries_field, entry_fields, list_field,
    list_fields, schema_of, sigma_name, sigma_names,
};
pub use columns::{ColumnReference, ENUMS, enum_of, level_field, reference, rule_reference, uuid_field};
pub(crate) use numbering::ColumnKeys;
pub use numbering::Numbering;
pub use options::{OnError, Options};
pub use rules::Rules;
pub(crate) use rules::level_number;
pub use table::{EventField, EventFieldParts, Events, MessageCatalog, MessageFile, Table, schema};
pub use unify::column_field;
pub(crate) use unify::{TEXT, column_type, unite};
