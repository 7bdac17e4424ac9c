//! The C ABI of `evtx-scan` and `evtx-arrow`, for the DuckDB extension. The only crate with `unsafe` code.
//!
//! - A function that can fail returns null, or an error that the caller frees with [`evtx_error_free`]: a C string
//!   whose first character is the digit of an [`EvtxErrorKind`], followed by the text.
//! - Results are written through pointers.
//! - Every function catches panics (by `entry` or `release`). A panic becomes an error if the function can return one.
//! - Only functions that take an [`EvtxStorage`] call back into the caller.
//! - Text is a pointer to UTF-8 bytes and a length in bytes. The core reads it only during the call.

mod boundary;
mod storage;
mod arguments;
mod paths;
mod macros;
mod answers;
mod report;
mod call;
mod filter;
mod planned;
mod scan;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

pub use answers::{
    EvtxAnswers, EvtxAnswersView, EvtxCodeFunction, EvtxList, EvtxVector, evtx_answers_free, evtx_answers_new,
    evtx_answers_view, evtx_code_function,
};
pub use arguments::{
    EvtxArgument, EvtxArguments, EvtxScanFunction, EvtxValue, EvtxValueKind, evtx_argument, evtx_arguments_free,
    evtx_arguments_need, evtx_arguments_new, evtx_arguments_set, evtx_scan_function,
};
pub use boundary::{EvtxErrorKind, EvtxFunction, EvtxText, evtx_error_free};
pub use call::{
    EvtxCall, EvtxCallInfo, EvtxFolderType, evtx_call_enum, evtx_call_estimate, evtx_call_folder_name,
    evtx_call_folder_type, evtx_call_folder_value, evtx_call_free, evtx_call_info, evtx_call_new, evtx_call_schema,
    evtx_call_warning, evtx_enum,
};
pub use filter::{EvtxHints, EvtxNode, EvtxNodeKind};
pub use macros::{EvtxMacro, EvtxParameter, evtx_macro};
pub use paths::{EvtxPaths, evtx_paths_expand, evtx_paths_free, evtx_paths_new};
pub use planned::{EvtxPlanned, evtx_planned_free, evtx_planned_new, evtx_planned_tell};
pub use scan::{
    EvtxPlace, EvtxScan, EvtxWorker, evtx_scan_free, evtx_scan_new, evtx_scan_progress, evtx_scan_schema,
    evtx_worker_free, evtx_worker_new, evtx_worker_next, evtx_worker_reading,
};
pub use storage::{EvtxFileInfo, EvtxStorage, EvtxStorageCode, EvtxTexts, evtx_texts_push};
