//! The message texts of event providers: reads, stores, finds and renders them.
//!
//! A log stores the values of an event, not its message. The message is a text of the provider, in which `%1` stands for
//! the first value. Windows finds it in three steps: the registry names the files of the provider; a resource of one
//! file says which message an event has; a table of messages in the same or another file has the text.
//!
//! This crate turns these files into rows, a row per message, and rows into a compact catalog file. A catalog finds the
//! message of an event, and renders it as Windows does. The crate does no I/O. Its own limits and rules are marked *(choice)*.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`row`] | one message with all that is known of it |
//! | [`template`] | the text of a message, parsed into its parts |
//! | [`insertion`] | the text of a value in a message |
//! | [`render`] | a message with its values filled in |
//! | [`binary`] | the tables of messages and the manifests in PE files |
//! | [`registry`] | which provider uses which files, from the hives of a registry |
//! | [`catalog`] | the catalog file: written from rows, opened from bytes, searched by event |
//! | [`mta`] | the messages that were saved beside a log |
//! | [`provider`] | the rows of a provider, from its binaries and the registry |
#![forbid(unsafe_code)]

mod error;
pub mod row;
pub mod template;
pub mod insertion;
pub mod render;
pub mod binary;
pub mod registry;
pub mod catalog;
mod language;
pub mod provider;
pub mod mta;

pub use catalog::{CATALOG_ENDING, Catalog, CatalogWriter, EventKey, Message};
pub use error::{Error, Result};
pub use insertion::Insertion;
pub use render::{Insertions, Parameters};
pub use row::{Field, Guid, MessageKind, MessageRow, ValueMap};
