//! The catalog file: all messages of many providers, compressed, for fast lookups.
//!
//! Opening a catalog reads its directory. The block of a provider is decompressed when the first event asks for it. After
//! that, threads read it without a lock.
//!
//! ```text
//! header      magic "EVTXMSGS", then u32: version, compressed size of the directory, its size, its CRC32
//! directory   u32 count, then for each provider: u64 offset of its block from the end of the directory; u32: compressed
//!             size of the block, its size, its CRC32, length of the name, number of GUIDs; the name, and the GUIDs
//! blocks      one for each provider
//! ```
//!
//! Providers are sorted by name in lower case. The directory and the blocks are compressed with zlib. The CRC32 is that
//! of the uncompressed bytes. A provider whose name is not known has its GUID in braces as its name.
//!
//! ```text
//! block       u32: number of strings, bytes of text, number of list items, of messages, of parameters
//! strings     u32 for each string: the offset in the text at which it ends. It starts where the one before it ends
//! lists       u32 each. A list is its length and its items. Others refer to it by its position
//!               keywords   a string each
//!               fields     three each: name; input type, and output type in the second byte; map
//!               map        name, 1 if it is a bit map, then for each entry: value, text
//! messages    twelve u32 each, sorted by event ID: event ID and version; qualifiers; ID of the message; language, text,
//!             channel, level, task and opcode (strings); keywords and fields (lists); file (string)
//! parameters  four u32 each, sorted by ID: ID, language, text, file
//! text        UTF-8
//! ```
//!
//! A file is the path of the one that the text came from. A reference to a string or a list is its position plus 1, or 0
//! for none. All numbers are little endian. What is written depends on the rows alone, not on their order.

mod block;
mod text;
mod choose;
mod write;
mod read;

pub use block::MAX_MESSAGE;
pub use choose::EventKey;
pub use read::{Catalog, Message, Rows};
pub use write::CatalogWriter;

/// How the name of a catalog file ends.
pub const CATALOG_ENDING: &str = ".messages";
