//! What files, chunks and events are, rather than what records say.

mod report;
mod events;
mod files;

pub use events::{Catalog, CatalogPlace, EVENT_COLUMNS, EventReport};
pub use files::{CHUNK_COLUMNS, ChunkReport, FILE_COLUMNS, FileReport};
pub use report::{Report, ReportError, TooManyEvents, TypeName};
