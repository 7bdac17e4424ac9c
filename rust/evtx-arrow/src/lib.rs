//! EVTX logs as Arrow record batches.
//!
//! A log's rows are its records; a column is, for each template that a record uses, either a constant or one
//! of the template's substitutions. So a template is compiled once into a *plan* for the columns that a query asks
//! for, and a record then costs a look at its value table and a copy of the values that are asked for. What
//! no column asks for is never decoded.
//!
//! - [`Options`] and [`schema`] say which columns there are: this crate is their one home.
//! - [`Predicate`]s say which rows are kept, and are decided before a row is built.
//! - [`Scan`] is what the threads of one query share: the projection, the options, the compiled plans.
//! - [`Decoder`] turns blocks of a file into batches, one per thread. It is a push decoder, in the style of
//!   `arrow-csv` and `arrow-json`: the caller does the I/O.

mod schema;
mod plan;
mod record;
mod filter;
mod columns;
mod scan;
mod read;
mod decode;
mod reports;
#[cfg(test)]
mod tests;

pub use columns::{Indices, MakeArrays, Strings};
pub use decode::{DecodeError, Decoder};
pub use filter::{Comparison, Expression, Literal, Predicate};
pub use reports::{
    Catalog, CatalogPlace, ChunkReport, EventReport, FileReport, Report, ReportError, TooManyEvents, TypeName,
};
pub use scan::{Poisoned, Scan};
pub use schema::{ColumnReference, EventField, Events, OnError, Options, Table, reference, schema};
