//! Records as the sections from which columns are read, and groups of records.

mod templates;
mod sections;
mod group;
mod read_record;
mod insertions;

pub(crate) use group::{GROUP, KeptRecord, RecordGroup};
pub use insertions::{Declaration, Insertion};
pub use read_record::{Arrays, FieldSlot, FoundValue, ReadRecord, RecordHeader, RecordValues, UNNAMED};
pub(crate) use sections::{
    ImplicitInstance, KeyedEntries, PathValues, RecordSection, RecordView, SectionContent, SpelledOut,
};
pub(crate) use templates::{ChunkTemplates, TemplateId};
