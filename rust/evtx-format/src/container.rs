//! The container: the file, its chunks, and the records in them.

pub mod chunk;
pub mod header;
pub mod layout;
pub mod records;
mod strays;
pub mod survey;
