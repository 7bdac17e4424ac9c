//! Calls of functions over EVTX files.
//!
//! A [`Query`] says what a call asks for, and lists the arguments that it takes: those of the core, and those of the extras.
//! [`Arguments`] are the values of a call, and a [`ScanCall`] is planned from them and the files.
#![forbid(unsafe_code)]

mod columns;
mod folders;
mod partitions;
mod settings;
mod query;
mod call;
mod arguments;

pub use arguments::{Arguments, rules_of_rows};
pub use call::ScanCall;
pub use columns::reference;
pub use folders::FolderColumn;
pub use partitions::{ScanTask, partitions};
pub use query::Query;
