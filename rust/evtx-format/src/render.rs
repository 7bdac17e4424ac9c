//! Text of whole elements: XML and JSON, compiled once per template.

mod ops;
pub mod json;
mod json_stream;
mod xml;
pub mod program;
#[cfg(test)]
mod tests;
