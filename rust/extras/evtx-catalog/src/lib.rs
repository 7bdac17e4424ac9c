//! The fields that Windows' providers declare for their events.
//!
//! A log names the fields of an event only if it contains that event. The catalog has the events of Windows 10 and 11
//! and of Sysmon: provider, event ID, version, and the names and types of the fields. `tools/make_catalog.py` makes it
//! from the manifests of providers. A log of another version of Windows can have other fields: trust its template.
//!
//! The catalog is `data/events.bin`, less than 1 MiB: texts, each compressed with zlib. The first is the directory.
//! Each other one is a block with the events of some providers, so one provider takes the directory and one block.
//!
//! ```text
//! directory   for each block a line: its compressed size in bytes, and the names of its providers
//! block       for each provider a line with its name, then for each of its events a line: ID, version, 1 if its fields
//!             are in UserData or 0, and for each field a letter for its BinXML type and its name
//! ```
//!
//! Tabs separate the columns of a line. The letter A means type 0, B means type 1, and so on. Providers are sorted by name
//! without regard to case, and events by ID and version. Some manifests declare several events with one ID and version.

mod classic;
mod events;
mod similar;

pub use classic::classic_providers;
pub use events::{DeclaredEvent, Events, all_events, events_of};
pub use similar::similar_providers;
