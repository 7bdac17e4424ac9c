//! Records as the parts from which columns are read, and groups of records.

mod templates;
mod parts;
mod insertions;
mod group;

pub(crate) use group::{GROUP, KeptRecord, RecordGroup};
pub(crate) use insertions::{declaration, insertions};
pub(crate) use parts::{Keyed, KeyedEntries, Outlined, Part, PartContent, Places, RecordView, SpelledOut};
pub(crate) use templates::{ChunkTemplates, TemplateId};
