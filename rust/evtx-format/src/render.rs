//! Whole elements as XML or JSON text, by programs that are compiled once per template.

mod ops;
pub mod json;
mod json_stream;
mod xml;
pub mod program;
#[cfg(test)]
mod tests;
