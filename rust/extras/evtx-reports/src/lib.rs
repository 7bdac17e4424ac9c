//! Reports on EVTX logs: tables of files, of chunks, of events with their fields, and of rules.
//!
//! A [`Report`] does no I/O: a [`ReportScan`] reads the files, in blocks and with any number of threads. A
//! [`MessageScan`] reads the files of providers.
#![forbid(unsafe_code)]

mod id_ranges;
mod event_ids;
mod table;
mod report;
mod schema;
mod summary;
mod files;
mod chunks;
mod declared;
mod rules;
mod messages;
mod log;
mod scan;
mod providers;

pub use chunks::ChunkReport;
pub use declared::DeclaredEventReport;
pub use files::FileReport;
pub use log::{LogMarks, LogOptions, LogRows, LogSegment};
pub use messages::{CatalogRow, CatalogRows, message_batch, message_schema};
pub use providers::{MessageScan, PROVIDER_FILES};
pub use report::{ListReport, Report, TypeName};
pub use rules::RuleReport;
pub use scan::{ReportBatch, ReportRows, ReportScan, ReportThreads};
pub use schema::SchemaReport;
pub use table::{ReportColumn, Row};
