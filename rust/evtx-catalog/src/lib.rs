//! What fields Windows' providers declare for their events.
//!
//! A log says what fields an event has only if it holds one. The catalog says so for the events of Windows 10 and 11,
//! and of Sysmon: provider, event ID, version, and the names and types of the fields. It is made of the manifests of
//! providers by `tools/make_catalog.py`, and is a part of the library. A log's own template is right where both differ:
//! it can be of another version of Windows.
//!
//! The catalog is `data/events.bin`, which has some hundred KiB. It is a directory and blocks, each compressed by zlib.
//! A block has the events of some providers, and nothing in it refers to another block. So the events of one provider
//! cost the directory and one block. Nothing is kept between calls.
//!
//! ```text
//! file        u32 size of the packed directory, u32 its size, the packed directory, then the packed blocks in order
//! directory   number of blocks; for each: its packed size, its size, number of providers, the name of each
//! block       number of names, the names;
//!             number of shapes; for each: 2 * number of fields, + 1 if they are in UserData;
//!                               for each field: the index of its name, a byte for its BinXML type;
//!             for each provider: number of events;
//!                                for each event: its ID less the one before, a byte for its version, index of its shape
//! ```
//!
//! Sizes of the file's head are little-endian. All other numbers have seven bits a byte, the lowest first, and the top
//! bit set in all but the last byte. A name is its length in bytes and UTF-8. Providers are in the order of their names
//! without regard to case, and events in the order of their IDs and versions. There can be several events of one ID and
//! version, as some manifests have them.

mod packed;
mod classic;
mod events;

pub use classic::CLASSIC_PROVIDERS;
pub use events::{CatalogEvent, Events, classic_events, classic_providers, events, events_of};
