//! The structure of 7z archives. Source of the format's facts: `7zFormat.txt` and `Methods.txt` in the LZMA SDK.
//!
//! A *folder* of 7z is a chain of coders, and the entries that come out of it one after the other. The list of entries is
//! at the end of the file, and mostly a compressed stream itself.

mod bytes;
mod keys;
mod coder;
mod folder;
mod streams;
mod files;
mod directory;

pub(crate) use directory::directory;
pub(crate) use folder::Folder;
pub(crate) use keys::Keys;
