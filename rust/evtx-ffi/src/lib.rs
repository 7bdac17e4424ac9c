//! The C ABI of `evtx-arrow`, for the DuckDB extension. The only crate with `unsafe`.
//!
//! One error channel: a function that can fail returns an error, which the caller frees with [`evtx_error_free`], or null if it
//! succeeded. Its first letter is the number of an [`EvtxErrorKind`], and its text follows. What a function has to tell goes through
//! pointers. Panics are caught in every entry, by `entry` or `release`, and become such an error where there is someone to tell.
//! Nothing here calls back into the caller but what takes an [`EvtxStorage`].
//!
//! Pointers to text are UTF-8 with a length and are only read during the call.

mod boundary;
mod options;
mod events;
mod storage;
mod paths;
mod report;
#[cfg(test)]
mod reference;
mod table;
mod filter;
mod scan;
#[cfg(test)]
mod tests;

pub use boundary::{EvtxErrorKind, evtx_error_free};
pub use events::EvtxEvents;
pub use filter::{EvtxNode, EvtxNodeKind};
pub use options::{EvtxOnError, EvtxOptions, evtx_on_error};
pub use paths::{
    EvtxPaths, evtx_paths_count, evtx_paths_estimate, evtx_paths_expand, evtx_paths_free, evtx_paths_get,
    evtx_paths_new,
};
pub use report::{
    EvtxReport, EvtxReportKind, evtx_report_free, evtx_report_new, evtx_report_next, evtx_report_reading,
    evtx_report_schema,
};
pub use scan::{
    EvtxHints, EvtxMessages, EvtxPlace, EvtxScan, EvtxWorker, evtx_scan_free, evtx_scan_new, evtx_scan_progress,
    evtx_scan_schema, evtx_worker_free, evtx_worker_new, evtx_worker_next, evtx_worker_reading,
};
pub use storage::{EvtxStorage, EvtxStorageCode, EvtxTexts, evtx_texts_push};
pub use table::{
    EvtxTable, evtx_table_columns, evtx_table_free, evtx_table_new, evtx_table_of_events, evtx_table_schema,
};
