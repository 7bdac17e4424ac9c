//! A record as the parts that its columns are read from, and groups of records.

mod templates;
mod parts;
mod group;

pub(crate) use group::{GROUP, KeptRecord, RecordGroup};
pub(crate) use parts::{Fields, KeyedEntries, Part, PartContent, RecordView};
pub(crate) use templates::ChunkTemplates;
