//! Decodes blocks of a file into batches.

mod error;
mod place;
mod batch;
mod definitions;
mod walk;
mod admission;
mod chunk;
mod decoder;

pub use decoder::Decoder;
pub use definitions::Definitions;
pub use error::DecodeError;
pub use place::Doubt;
