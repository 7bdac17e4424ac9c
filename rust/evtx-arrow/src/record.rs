//! Records as the parts from which columns are read, and groups of records.

mod templates;
mod parts;
mod group;

pub(crate) use group::{GROUP, KeptRecord, RecordGroup};
pub(crate) use parts::{Fields, Keyed, KeyedEntries, Outlined, Part, PartContent, RecordView, SpelledOut};
pub(crate) use templates::ChunkTemplates;
