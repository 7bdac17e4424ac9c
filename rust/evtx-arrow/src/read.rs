//! Reads records into parts, and renders their texts.

mod json_memo;
mod reader;
mod render;

pub(crate) use reader::RecordReader;
pub(crate) use render::Renderer;
