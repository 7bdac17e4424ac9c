//! Decodes blocks of a file into batches.

mod error;
mod location;
mod slots;
mod batch;
mod predicates;
mod walk;
mod admission;
mod chunk;
mod decoder;

pub use decoder::Decoder;
pub use error::DecodeError;
pub use location::Doubt;
pub use slots::SlotChunks;
