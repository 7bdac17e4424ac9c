//! What files, chunks and events are, rather than what records say.

mod report;
mod table;
mod events;
mod files;
mod declared;

pub use declared::DeclaredEventReport;
pub use events::{Catalog, CatalogPlace, EventReport, FoundEvents};
pub use files::{ChunkReport, FileReport};
pub use report::{Report, ReportError, TooManyEvents, TypeName};
