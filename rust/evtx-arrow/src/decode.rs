//! Decodes blocks of a file into batches.

pub(crate) mod batch;
pub(crate) mod decoder;

pub use decoder::{DecodeError, Decoder};
