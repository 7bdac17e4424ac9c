//! Records as the parts from which columns are read, and groups of records.

mod templates;
mod parts;
mod group;
mod read_record;
mod insertions;

pub(crate) use group::{GROUP, KeptRecord, RecordGroup};
pub use insertions::{Declaration, Insertion};
pub(crate) use parts::{ImplicitInstance, KeyedEntries, Part, PartContent, PathValues, RecordView, SpelledOut};
pub use read_record::{Arrays, FieldSlot, FoundValue, ReadRecord, RecordHeader, RecordValues, UNNAMED};
pub(crate) use templates::{ChunkTemplates, TemplateId};
