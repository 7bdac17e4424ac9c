//! Archives and compressed files: a [`Storage`](evtx_scan::Storage) around another one, in which a ZIP, 7z or tar
//! archive is a folder and a `.gz`, `.zst`, `.bz2` or `.xz` file is the file in it.
//!
//! An [`ArchiveStorage`] lists the entries of an archive by its directory or headers. A stored entry is read in place.
//! Others are decompressed when they are opened, into memory or a temporary file. No path of a file system is made of a name in an
//! archive.
#![forbid(unsafe_code)]

mod memory;
mod input;
mod limits;
mod cipher;
mod codec;
mod formats;
mod names;
mod head;
mod findings;
mod zip;
mod tar;
mod unpacked;
mod seven_zip;
mod block;
mod entry;
mod storage;
mod encoding;
mod xml;

pub use encoding::{decode, encoding, len_in_file};
pub use formats::NESTING;
pub use limits::Archives;
pub use storage::ArchiveStorage;
pub use xml::{EXPORT_FILES, XmlExport, log_of_texts};
