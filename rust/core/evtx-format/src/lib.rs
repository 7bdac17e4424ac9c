//! The EVTX file format of Windows event logs: bytes to chunks, records, templates and values.
//!
//! A log is a 4,096-byte file header and a run of 64 KiB **chunks**. A chunk is self-contained: it holds **records**, and
//! the **names** and **template definitions** that they use. Each of these is stored at its first use and referred to by
//! chunk offset. A record is BinXML, almost always one **template instance**: a reference to a definition (an XML tree
//! with typed substitutions) and a **value table** that fills the substitutions.
//!
//! This crate reads these structures from bytes and checks every offset, size and count. It does no I/O.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`case`] | folds texts, to compare them without regard to case |
//! | [`search`] | searches texts for the plain texts of a pattern |
//! | [`value`] | reads typed values and writes their text as Windows shows it |
//! | [`binxml`] | reads names and template instances; the one walk over a stream, to a tree or to JSON |
//! | [`container`] | reads the file header, finds the chunks, and walks over the records of a chunk |
//! | [`render`] | writes whole elements as XML or JSON, compiled once per template |
//!
//! All numbers are little endian. Sources: MS-EVEN6, section 2.2.12, for BinXML; real logs for the container.
#![forbid(unsafe_code)]

mod limits;
mod error;
pub mod bytes;
mod interrupt;
pub mod case;
mod names;
pub mod search;
mod numbering;
mod printable;
pub mod value;
pub mod binxml;
pub mod container;
pub mod render;

pub use error::{Error, ErrorKind, Result};
pub use interrupt::{Interrupt, Interrupted, free};
pub use limits::{MAX_NAMES, MAX_NESTING, MAX_NODES, MAX_OPEN_ELEMENTS, MAX_TEXT};
pub use names::{did_you_mean, distance, named};
pub use numbering::Numbering;
pub use printable::{boundary, cut, printable};
