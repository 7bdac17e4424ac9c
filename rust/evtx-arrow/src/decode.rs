//! Blocks of a file in, batches out.

pub(crate) mod batch;
pub(crate) mod decoder;

pub use decoder::{DecodeError, Decoder};
