//! Records as the sections from which columns are read, and groups of records.

mod templates;
mod sections;
mod group;
mod read_record;
mod entries;
mod recovered;

pub use entries::{ContentInstance, Entries, RecordEntry};
pub(crate) use group::{GROUP, KeptRecord, RecordGroup};
pub use read_record::{FoundValue, ReadRecord, RecordHeader};
pub use recovered::RecoveredRecord;
pub(crate) use sections::{
    ImplicitInstance, KeyedEntries, PathValues, RecordSection, RecordView, SectionContent, SpelledOut,
};
pub(crate) use templates::{ChunkTemplates, TemplateId};
