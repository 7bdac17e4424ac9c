//! Scans of EVTX files over any storage.
//!
//! The threads of a query share a [`FileScan`]: the files, the order of their blocks, and the progress. Each thread has
//! a [`Worker`], which claims a block, reads it, and returns its rows as batches. Each batch has the position of its
//! block in the order of all rows.
//!
//! An engine implements [`Storage`] and passes it to each call, so that a call can use state of the engine that belongs
//! to the current thread. [`LocalStorage`] reads the files of this machine.
//!
//! - A file that the caller named and that cannot be read is an error. A file that a glob found becomes a row that says
//!   why it cannot be read.
//! - Every call asks every few milliseconds whether it was interrupted.
#![forbid(unsafe_code)]

mod pool;
mod globs;
mod storage;
mod threads;
mod local;
mod skipped;
mod file_kind;
mod scan_path;
mod paths;
mod file;
mod beside;
mod log;
mod queue;
mod second_pass;
mod unmatched;
mod scan;
pub mod arguments;

pub use arguments::{
    Argument, ArgumentKind, ArgumentValue, OF_EVENTS, OF_FILES, OF_LOGS, ScanSettings, Set, Setter, Setting, put,
};
pub use beside::{BesideLogs, ReadsLogs};
pub use evtx_arrow::Doubt;
pub use evtx_format::free;
pub use file::{Buffer, LogFile, estimate_records};
pub use file_kind::{FileKind, OtherFiles};
pub use globs::literal;
pub use local::{LocalFile, LocalStorage, single_stars};
pub use paths::{expand, has_glob};
pub use pool::{Lease, Pool};
pub use queue::batch_index;
pub use scan::{FileBatch, FileScan, Worker};
pub use scan_path::{FileSplit, ScanPath};
pub use storage::{
    ALL_READ, Call, Holds, LastOpened, ListedFile, Listing, Modified, NestedFile, Nesting, OpenFile, Password, SETTLED,
    ScanError, Storage, StorageError, StorageFile, WAIT, ends_with, separators, sort_by, unless_failed,
};
pub use threads::{MAX_THREADS, on_threads};
pub use unmatched::Advice;
