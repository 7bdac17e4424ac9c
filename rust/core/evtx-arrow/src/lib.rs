//! EVTX logs as Arrow record batches.
//!
//! Each record of a log is a row. For the records of one template, a column is a constant, one of the template's
//! substitutions, or a mix of both. So each template is compiled once into a *plan* for the columns of a query. To read
//! a record, the decoder looks at its value table and copies the values that the columns need. It decodes other
//! values only if it has to read the record as a tree.
//!
//! - [`Options`] and [`schema`] define the columns. No other crate does.
//! - [`Predicate`]s decide which records are kept, before a row is built.
//! - [`Scan`] holds what the threads of a query share: the projection, the options, and the compiled plans.
//! - [`Decoder`] turns blocks of a file into batches. Each thread has one. It is a push decoder, in the style of
//!   `arrow-csv` and `arrow-json`: the caller does the I/O.

#[cfg(test)]
mod testing;
mod arrays;
mod schema;
mod plan;
mod record;
mod extra;
mod recovery;
mod table;
mod filter;
mod columns;
mod scan;
mod read;
mod decode;
#[cfg(test)]
mod tests;

pub use arrays::{Indices, MakeArrays, Strings};
pub use columns::TextColumn;
pub use decode::{DecodeError, Decoder, Doubt, SlotChunks};
pub use extra::{
    Beside, ExtraBuilder, ExtraColumn, GroupRows, Keeps, Known, KnownValues, Requirements, RowFinder, RowSource,
    ScanLayout, SecondPass,
};
pub use filter::{Comparison, Expression, Literal, Predicate};
pub use plan::{PathId, is_misfit, system_element};
pub use read::RecordScan;
pub use record::{ContentInstance, Entries, FoundValue, ReadRecord, RecordEntry, RecordHeader, RecoveredRecord};
pub use recovery::{ChunkRecovery, ChunkSource, Decision, NextChunk, Recovery, Step};
pub use scan::Scan;
pub use schema::{
    ColumnKeys, ColumnReference, ColumnType, Comparable, EntryKeys, EventField, EventPath, Events, FieldType, OnError,
    Options, reference, system_names, uuid_field,
};
pub use table::{Table, schema};
