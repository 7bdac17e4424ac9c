//! Writes EVTX logs in the layout of Windows: events that it is given, for samples and tests, or records of other logs.
//!
//! An [`Event`] is an instance of a [`Template`], with values that fill its substitutions. A value can be a stream with
//! another instance in it, as `EventData` is. A [`LogWriter`] writes events as records into chunks. It stores each name
//! and template definition of a chunk at its first use, links them into the tables of the chunk header, and computes
//! the checksums.
//!
//! A [`Cutter`] cuts records out of a chunk, with all that they refer to. A [`LogWriter`] writes them unchanged to another
//! log, in which they share names and definitions again. A [`Redactor`] replaces the values of fields in
//! them before, a [`Pseudonymizer`] all values that are not allowed.
//!
//! ```
//! use evtx_writer::{Element, Event, Substitution, LogWriter, Template, Value};
//!
//! let id = Element::new("EventID").substitution(Substitution::new(0, Value::UInt16(0).value_type()));
//! let template = Template::new([7; 16], Element::new("Event").child(Element::new("System").child(id)));
//! let mut log = LogWriter::new(1);
//! log.write(132_223_104_000_000_000, &Event::new(&template, vec![Value::UInt16(4624)]))?;
//! let file = log.finish();
//! assert_eq!(file.len(), 4096 + 65_536);
//! # Ok::<(), evtx_writer::WriteError>(())
//! ```
//!
//! Sources: MS-EVEN6, section 2.2.12, for BinXML; logs that Windows wrote, for the container.
#![forbid(unsafe_code)]

mod error;
mod binxml;
mod value;
mod source;
mod target;
mod copy;
mod record;
mod typed;
mod chunk;
mod editor;
mod redact;
mod pseudonym;
mod log;

pub use binxml::{Content, Element, Event, Fragment, Stream, Substitution, Template, Value};
pub use error::WriteError;
pub use log::LogWriter;
pub use pseudonym::{Check, Left, Pseudonymizer};
pub use record::{CutRecord, Cutter, Marks};
pub use redact::Redactor;
