//! The C ABI of `evtx-arrow`, for the DuckDB extension. The only crate with `unsafe`.
//!
//! One error channel: a function that can fail returns an error text, which the caller frees with
//! [`evtx_error_free`], or null if it succeeded. What it has to tell goes through pointers. Panics are caught in every
//! entry, by `entry` or `release`, and become such a text where there is someone to tell.
//! Nothing here calls back into the caller but what takes an [`EvtxInterrupt`].
//!
//! Pointers to text are UTF-8 with a length and are only read during the call.

mod boundary;
mod options;
mod interrupt;
mod events;
mod report;
#[cfg(test)]
mod reference;
mod table;
mod filter;
mod file;
mod scan;
#[cfg(test)]
mod tests;

pub use boundary::evtx_error_free;
pub use events::EvtxEvents;
pub use file::{
    EvtxBlock, EvtxMessages, EvtxSurvey, evtx_batch_index, evtx_messages_free, evtx_messages_new,
    evtx_messages_pattern, evtx_messages_push, evtx_messages_read, evtx_path_text, evtx_survey_block,
    evtx_survey_blocks, evtx_survey_free, evtx_survey_new, evtx_survey_push, evtx_survey_verify, evtx_survey_wants,
};
pub use filter::{EvtxFilter, EvtxNode, EvtxNodeKind, evtx_filter_drops_file, evtx_filter_free, evtx_filter_new};
pub use interrupt::EvtxInterrupt;
pub use options::{EvtxOnError, EvtxOptions, evtx_on_error};
pub use report::{
    EvtxReport, EvtxReportKind, evtx_report_end, evtx_report_flush, evtx_report_free, evtx_report_new,
    evtx_report_push, evtx_report_schema, evtx_report_start,
};
pub use scan::{
    EvtxDecoder, EvtxScan, evtx_decoder_decode, evtx_decoder_flush, evtx_decoder_free, evtx_decoder_is_done,
    evtx_decoder_new, evtx_decoder_report_file, evtx_decoder_start, evtx_scan_free, evtx_scan_new,
    evtx_scan_reads_messages, evtx_scan_schema,
};
pub use table::{
    EvtxTable, evtx_table_columns, evtx_table_free, evtx_table_new, evtx_table_of_events, evtx_table_schema,
};
