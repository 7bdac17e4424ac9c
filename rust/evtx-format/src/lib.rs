//! The EVTX file format of Windows event logs: bytes to chunks, records, templates and values.
//!
//! A log is a 4,096-byte file header and a run of 64 KiB **chunks**. A chunk stands alone: it holds
//! **records**, and beside them the **names** and **template definitions** that its records use, each
//! stored at its first use and referred to by chunk offset. A record is BinXML, almost always one
//! **template instance**: a reference to a definition (an XML tree with typed holes) and a **value
//! table** that fills the holes.
//!
//! This crate reads those structures out of byte slices. It does no I/O, knows nothing of tables, and
//! trusts nothing: every offset, size and count is checked before use.
//!
//! | module | what it reads |
//! | --- | --- |
//! | [`value`] | typed values, and their text as Windows shows it |
//! | [`binxml`] | names, template instances, and the one walk over a stream: to a tree, its holes left open or filled, or to JSON |
//! | [`container`] | the file header and where the chunks are, chunk headers, records and the walk over those of a chunk |
//! | [`mta`] | the messages beside a log that was saved with them |
//! | [`render`] | the text of whole elements, compiled once per template |
//!
//! Byte order is little endian throughout. The BinXML part is MS-EVEN6, section 2.2.12; the container is
//! known from reverse engineering and from real logs.
#![forbid(unsafe_code)]

mod bytes;
mod error;
mod interrupt;
pub mod value;
pub mod binxml;
pub mod container;
pub mod mta;
pub mod render;

pub use error::{Error, ErrorKind, Result};
pub use interrupt::{Interrupt, Interrupted};

/// Most BinXML streams nested in each other (values that hold BinXML, instances in them). Windows nests one
/// or two; the cap bounds recursion on crafted input.
pub const MAX_NESTING: usize = 16;

/// Most elements open at once, over all the nested streams of a record.
pub const MAX_OPEN_ELEMENTS: usize = 96;

/// Most nodes (elements, attributes, pieces of content) that one record may expand to; a small one has fewer, 4096 and eight for each
/// of its bytes. A chunk has room for
/// some ten thousand, but values are shared by the holes that name them, so a small crafted record could
/// otherwise grow exponentially.
pub const MAX_NODES: usize = 1 << 16;

/// Most bytes of rendered text that one record may give in one column.
pub const MAX_TEXT: usize = 16 << 20;

/// Most bytes of text that names may take: those of a chunk together, and the keys of one map. A chunk has room for 64 KiB of them,
/// but the bytes of one name can be part of another, and a name can be referred to many times.
pub const MAX_NAMES: usize = 1 << 20;
