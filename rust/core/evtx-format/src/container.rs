//! The container: the file header, the chunks and the records.

pub mod chunk;
pub mod header;
pub mod record;
mod evidence;
pub mod records;
pub mod layout;
pub mod survey;
