//! Archives and compressed files: a [`Storage`](evtx_scan::Storage) around another one, in which a ZIP archive is a
//! folder and a `.gz` or `.zst` file is the file in it.
//!
//! An [`ArchiveStorage`] lists the entries of an archive by its directory. An entry that is stored without compression
//! is read in place. The thread that opens a compressed or encrypted entry decompresses it once, into memory or a
//! temporary file. Names in an archive are only compared and shown. No path of a file system is made of them.
#![forbid(unsafe_code)]

mod held;
mod input;
mod cipher;
mod codec;
mod directory;
mod names;
mod entry;
mod storage;

pub use entry::Archives;
pub use storage::ArchiveStorage;
