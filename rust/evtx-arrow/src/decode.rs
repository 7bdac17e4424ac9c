//! Decodes blocks of a file into batches.

mod error;
mod place;
mod messages;
mod batch;
mod relevance;
mod definitions;
mod pass;
mod walk;
mod admission;
mod chunk;
mod decoder;

pub use decoder::Decoder;
pub use definitions::Definitions;
pub use error::DecodeError;
pub use place::Doubt;
