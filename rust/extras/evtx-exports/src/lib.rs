//! Events in the exports of other tools, as `read_evtx` has them.
//!
//! A source is data: `sources.tsv` says where its rows have the values of the columns. A [`SourceScan`] reads the rows, which are lines of
//! JSON, values in a document of JSON, or rows of CSV.
#![forbid(unsafe_code)]

mod json;
mod values;
mod rows;
mod types;
mod sources;
mod xml;
mod fields;
mod event;
mod recognize;
mod records;
mod settings;
mod block;
mod export;
mod scan;

pub use rows::event_schema;
pub use scan::{SOURCE_FILES, SourceScan};
pub use settings::{OF_SOURCES, SourceSettings};
pub use values::time_zone;
