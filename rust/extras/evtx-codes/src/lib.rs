//! What the codes in Windows events mean: status codes, access masks, SIDs, GUIDs and others.
//!
//! Each kind of code has a table, a file of the folder `codes`. [`Lookup`] finds the table by its name and answers.

mod code;
mod table;
mod text;
mod base64;
mod lookup;
mod details;

pub use code::Code;
pub use details::Event;
pub use lookup::{Answer, Lookup, Source};
pub use table::tables;
