//! The EVTX file format of Windows event logs: bytes to chunks, records, templates and values.
//!
//! A log is a 4,096-byte file header and a run of 64 KiB **chunks**. A chunk stands alone: it holds
//! **records**, and beside them the **names** and **template definitions** that its records use, each
//! stored at its first use and referred to by chunk offset. A record is BinXML, almost always one
//! **template instance**: a reference to a definition (an XML tree with typed substitutions) and a **value
//! table** that fills the substitutions.
//!
//! This crate reads those structures out of byte slices. It does no I/O, knows nothing of tables, and
//! trusts nothing: every offset, size and count is checked before use.
//!
//! | module | what it reads |
//! | --- | --- |
//! | [`value`] | typed values, and their text as Windows shows it |
//! | [`binxml`] | names, template instances, and the one walk over a stream: to a tree, its substitutions left open or filled, or to JSON |
//! | [`container`] | the file header and where the chunks are, chunk headers, records and the walk over those of a chunk |
//! | [`mta`] | the messages beside a log that was saved with them |
//! | [`render`] | the text of whole elements, compiled once per template |
//!
//! Byte order is little endian throughout. The BinXML part is MS-EVEN6, section 2.2.12; the container is
//! known from reverse engineering and from real logs.
#![forbid(unsafe_code)]

mod limits;
mod error;
mod bytes;
mod interrupt;
pub mod value;
pub mod binxml;
pub mod container;
pub mod render;
pub mod mta;

pub use error::{Error, ErrorKind, Result};
pub use interrupt::{Interrupt, Interrupted};
pub use limits::{MAX_NAMES, MAX_NESTING, MAX_NODES, MAX_OPEN_ELEMENTS, MAX_TEXT};
