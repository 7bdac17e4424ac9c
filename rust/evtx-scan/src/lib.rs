//! Scans of EVTX files over any storage.
//!
//! A [`FileScan`] is what the threads of one query share: the files, the order in which their blocks are read, and how
//! far it is. Each thread has a [`Worker`], which claims a block, reads it, and gives its rows as batches, and each
//! batch has the position of its block in the order of all rows. A [`ReportScan`] reads the same files for a report.
//!
//! An engine implements [`Storage`], and hands it to each call: so a call can use what only the engine's current thread
//! may. [`LocalStorage`] is that of a machine's own files.
//!
//! - A file that the caller named and that cannot be read is an error. One that a glob found is a row that says so.
//! - No call takes more than some milliseconds between two questions whether to go on.
#![forbid(unsafe_code)]

mod storage;
mod local;
mod paths;
mod file;
mod messages;
mod log;
mod queue;
mod scan;
mod reports;
mod folders;
mod arguments;

pub use arguments::{ARGUMENTS, Argument, ArgumentKind, ArgumentValue, Arguments, ScanCall};
pub use file::estimate_records;
pub use folders::{FolderColumn, FolderType};
pub use local::LocalStorage;
pub use messages::MessageFinder;
pub use paths::{ScanPath, expand};
pub use queue::batch_index;
pub use reports::{ReportScan, read_sample};
pub use scan::{FileBatch, FileScan, Worker};
pub use storage::{ScanError, Storage, StorageError, StorageFile};
