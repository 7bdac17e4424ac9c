//! Text of whole elements: XML and JSON, compiled once per template.

pub mod json;
pub(crate) mod json_stream;
pub mod program;
mod xml;
