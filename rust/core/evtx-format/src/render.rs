//! Renders elements as XML, JSON or lists of values, with programs that are compiled once per template.

mod ops;
pub mod json;
mod xml;
pub mod lines;
mod system;
pub mod program;
#[cfg(test)]
mod tests;
