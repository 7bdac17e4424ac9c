//! EVTX logs as Arrow record batches.
//!
//! A log's rows are its records; a column is, for each template that a record uses, either a constant or one
//! of the template's holes. So a template is compiled once into a *plan* for the columns that a query asks
//! for, and a record then costs a look at its value table and a copy of the values that are asked for. What
//! no column asks for is never decoded.
//!
//! - [`Options`] and [`schema`] say which columns there are: this crate is their one home.
//! - [`Predicate`]s say which rows are kept, and are decided before a row is built.
//! - [`Scan`] is what the threads of one query share: the projection, the options, the compiled plans.
//! - [`Decoder`] turns blocks of a file into batches, one per thread. It is a push decoder, in the style of
//!   `arrow-csv` and `arrow-json`: the caller does the I/O.

mod batch;
mod builders;
mod cache;
mod catalog;
mod convert;
mod decoder;
mod dictionary;
mod entries;
mod filter;
mod keys;
mod maps;
mod metadata;
mod numbering;
mod options;
mod plan;
mod record;
mod records;
mod render;
mod report;
mod scan;
mod schema;
mod spelled;
mod system;
mod table;

pub use builders::{MakeArrays, Numbers, Strings};
pub use catalog::EVENT_COLUMNS;
pub use catalog::{Catalog, CatalogPlace, EventField, TooManyEvents};
pub use decoder::{DecodeError, Decoder};
pub use filter::{Comparison, Expression, Literal, Predicate};
pub use metadata::{CHUNK_COLUMNS, ChunkReport, FILE_COLUMNS, FileReport};
pub use options::{OnError, Options};
pub use report::{EventReport, Report, ReportError, TypeName};
pub use scan::{Poisoned, Scan};
pub use schema::{ColumnReference, reference, schema};
pub use table::{Events, Table};
