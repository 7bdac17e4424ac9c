//! The container: the file header, the chunks and the records.

pub mod chunk;
pub mod header;
pub mod record;
mod evidence;
pub mod records;
pub mod image;
pub mod orphans;
pub mod layout;
mod stray_chunks;
pub mod survey;
