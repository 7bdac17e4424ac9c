//! Records read into parts, and their texts.

mod json_memo;
mod reader;
mod render;

pub(crate) use reader::RecordReader;
pub(crate) use render::Renderer;
