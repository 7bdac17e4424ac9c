//! Decodes blocks of a file into batches.

mod error;
mod location;
mod batch;
mod predicates;
mod recovery;
mod walk;
mod admission;
mod step;
mod sources;
mod chunk;
mod decoder;

pub use decoder::Decoder;
pub use error::DecodeError;
pub use location::Doubt;
pub use recovery::Definitions;
