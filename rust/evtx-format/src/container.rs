//! The container: the file header, the chunks and the records.

pub mod chunk;
pub mod header;
pub mod layout;
pub mod record;
pub mod records;
mod strays;
pub mod survey;
