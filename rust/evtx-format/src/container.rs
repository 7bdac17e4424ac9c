//! The container: the file, its chunks, and the records in them.

pub mod chunk;
pub mod records;
pub mod strays;
pub mod survey;
