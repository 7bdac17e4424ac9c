//! BinXML: names, trees of elements, template instances, and the one walk over a stream.

pub mod names;
pub mod tree;
pub mod instance;
pub(crate) mod sink;
mod walk;
mod builder;
mod reader;

pub use reader::{StreamCursor, Template, TopLevel};
pub use walk::Reader;
