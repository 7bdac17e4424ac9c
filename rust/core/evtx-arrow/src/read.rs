//! Reads records into parts, and renders their texts.

mod reader;
mod render;

pub(crate) use reader::RecordReader;
pub(crate) use render::render;
