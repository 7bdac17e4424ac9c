//! BinXML: names, trees of elements, template instances, and the one walk over a stream.

mod builder;
pub mod instance;
pub mod names;
pub mod tree;
pub mod walk;
