//! The fields that Windows' providers declare for their events.
//!
//! A log names the fields of an event only if it contains that event. The catalog has the events of Windows 10 and 11
//! and of Sysmon: provider, event ID, version, and the names and types of the fields. `tools/make_catalog.py` makes it
//! from the manifests of providers. Where a log's template differs, trust the template: the log may come from another
//! version of Windows.
//!
//! The catalog is `data/events.bin`, less than 1 MiB. It consists of a directory and blocks, each compressed with zlib.
//! A block has the events of some providers and refers to no other block. So reading the events of one provider takes
//! the directory and one block.
//!
//! ```text
//! file        u32 size of the packed directory, u32 its size, the packed directory, then the packed blocks in order
//! directory   number of blocks; for each: its packed size, its size, number of providers, the name of each
//! block       number of names, the names;
//!             number of field lists; for each: 2 * number of fields, + 1 if they are in UserData;
//!                                    for each field: the index of its name, a byte for its BinXML type;
//!             for each provider: number of events;
//!                                for each event: its ID minus the one before, a byte for its version, the index of its
//!                                field list
//! ```
//!
//! The two sizes at the start of the file are little-endian. All other numbers have seven bits per byte, the lowest
//! first, and the top bit set in all but the last byte. A name is its length in bytes, then UTF-8. Providers are sorted
//! by name without regard to case, and events by ID and version. Some manifests declare several events with one ID and
//! version.

mod packed;
mod classic;
mod events;

pub use classic::classic_providers;
pub use events::{DeclaredEvent, Events, all_events, events_of};
