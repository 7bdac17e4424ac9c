//! What the codes in Windows events mean, without an engine.

mod codes;
mod base64;

pub use self::base64::text_of;
pub use codes::{Asked, Code, Table, lines, names, replace, sources, table, table_of_rights};
