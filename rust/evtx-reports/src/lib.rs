//! Reports on EVTX logs: tables of files, of chunks, of events with their fields, and of rules.
//!
//! A [`Report`] does no I/O: its caller reads the files, in pieces and with any number of threads.
#![forbid(unsafe_code)]

mod report;
mod runs;
mod event_ids;
mod table;
mod events;
mod files;
mod declared;
mod rules;

pub use declared::DeclaredEventReport;
pub use events::EventReport;
pub use files::{ChunkReport, FileReport};
pub use report::{Report, TypeName};
pub use rules::{RuleReport, RuleRow};
