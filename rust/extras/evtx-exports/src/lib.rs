//! Events in the exports of other tools, as `read_evtx` has them.
//!
//! A source is data: `sources.tsv` says where its rows have the values of the columns. A [`LineScan`] reads the rows, which are lines of
//! JSON, values in a document of JSON, or rows of CSV.
#![forbid(unsafe_code)]

mod json;
mod values;
mod types;
mod sources;
mod field_maps;
mod rows;
mod xml;
mod fields;
mod event;
mod recognize;
mod records;
mod settings;
mod block;
mod export;
mod lines;

pub use field_maps::FieldMaps;
pub use lines::{LINE_FILES, LineScan, SOURCE_FILES};
pub use rows::event_schema;
pub use settings::{OF_SOURCES, SourceSettings};
pub use values::time_zone;
