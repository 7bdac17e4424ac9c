//! Recovery: which bytes of a damaged log or an image are records. Plain reading does not enter it.
//!
//! The chunks themselves are found by the [sources](super::sources) of stray chunks and of images.

mod definitions;
mod state;

pub use definitions::Definitions;
pub(super) use definitions::{DefinitionSource, LostDefinition};
pub(super) use state::Recovery;
