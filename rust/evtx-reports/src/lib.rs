//! Reports on EVTX logs: tables of files, of chunks, of events with their fields, and of rules.
//!
//! A [`Report`] does no I/O: its caller reads the files, in pieces and with any number of threads.
#![forbid(unsafe_code)]

mod runs;
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
mod json;
mod lines;
mod log;

pub use chunks::ChunkReport;
pub use declared::DeclaredEventReport;
pub use files::FileReport;
pub use json::{JsonCheck, JsonTypes, check_json, without_nuls};
pub use lines::{LineRow, line_batch, line_schema};
pub use log::{LogMarks, LogOptions, LogPart, LogRows};
pub use messages::{CatalogRow, CatalogRows, message_batch, message_schema};
pub use report::{ListReport, Report, TypeName};
pub use rules::{RuleReport, RuleRow};
pub use schema::SchemaReport;
pub use table::{ReportColumn, Row};
