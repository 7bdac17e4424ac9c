//! Reads records into parts, renders their texts, and hands them out one at a time.

mod reader;
mod render;
mod record_scan;

pub(crate) use reader::RecordReader;
pub use record_scan::RecordScan;
pub(crate) use render::render;
