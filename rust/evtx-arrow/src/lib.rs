//! EVTX logs as Arrow record batches.
//!
//! Each record of a log is a row. For the records of one template, a column is a constant, one of the template's
//! substitutions, or a mix of both. So each template is compiled once into a *plan* for the columns of a query. To read
//! a record, the decoder looks at its value table and copies the values that the columns need. It never decodes others.
//!
//! - [`Options`] and [`schema`] define the columns. No other crate does.
//! - [`Predicate`]s decide which records are kept, before a row is built.
//! - [`Scan`] holds what the threads of a query share: the projection, the options, and the compiled plans.
//! - [`Decoder`] turns blocks of a file into batches. Each thread has one. It is a push decoder, in the style of
//!   `arrow-csv` and `arrow-json`: the caller does the I/O.

#[cfg(test)]
mod testing;
mod schema;
mod plan;
mod findings;
mod record;
mod filter;
mod columns;
mod scan;
mod detect;
mod read;
mod events;
mod decode;
mod rows;
#[cfg(test)]
mod tests;

pub use columns::{Indices, MakeArrays, Strings};
pub use decode::{DecodeError, Decoder, Definitions, Doubt};
pub use events::{
    CollectedEvent, CollectedEvents, CollectedField, EventCollector, FieldLayout, PlaceReader, PlaceValues, Slots,
    SlotsError, TooManyEvents,
};
pub use filter::{Comparison, Expression, Literal, Pattern, Predicate, lower_case};
pub use findings::FoundBurst;
pub use plan::{is_misfit, system_element};
pub use rows::{EventRow, EventValue, Findings, Hit, HitList, RowMatcher, event_fields, findings_field, hits_field};
pub use scan::{Poisoned, Scan};
pub use schema::{
    ColumnReference, ENUMS, EventField, EventFieldParts, Events, MessageCatalog, MessageFile, Numbering, OnError,
    Options, Rules, Table, column_field, enum_of, level_field, reference, rule_reference, schema, uuid_field,
};
