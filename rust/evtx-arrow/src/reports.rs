//! Reports: tables of files, of chunks and of kinds of events, rather than of records.

mod report;
mod runs;
mod event_ids;
mod table;
mod other_events;
mod events;
mod files;
mod declared;
mod rules;

pub use declared::DeclaredEventReport;
pub use events::{Catalog, CatalogPlace, EventReport, FoundEvents};
pub use files::{ChunkReport, FileReport};
pub use report::{Report, ReportError, Slots, TooManyEvents, TypeName};
pub use rules::{RuleReport, RuleRow};
