//! The errors of the crate: what is wrong in a file, and at which offset.

use evtx_format::Interrupted;

/// A result whose error is [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why a file cannot be read. The caller adds the name of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say it
pub enum Error {
    #[error("{what} at offset {offset} needs {need} bytes, but only {have} are left")]
    Truncated {
        what: &'static str,
        offset: u64,
        need: u64,
        have: u64,
    },
    #[error("not a Windows binary (.dll, .exe, .sys, .mui or .mun)")]
    NotABinary,
    #[error("not a registry hive: found no \"regf\" header")]
    NotAHive,
    #[error("an SQLite database: convert it to a catalog as docs/messages.md shows")]
    Database,
    #[error("it is {0}: to use it, pass its path")]
    OnlyIfNamed(&'static str),
    #[error("not a catalog of messages: found \"{}\" at offset 0", .0.escape_ascii())]
    NotACatalog(Vec<u8>),
    #[error(
        "the catalog of messages has version {found}, but this version of the extension reads version {supported}: write it again"
    )]
    CatalogVersion { found: u32, supported: u32 },
    #[error("{what} at offset {offset} is damaged: its checksum is {computed:#010x} in place of {stored:#010x}")]
    Checksum {
        what: &'static str,
        offset: u64,
        stored: u32,
        computed: u32,
    },
    #[error("{what} at offset {offset} is damaged: {why}")]
    Damaged {
        what: &'static str,
        offset: u64,
        why: &'static str,
    },
    #[error("{what} at offset {offset} would take {size} bytes, but at most {limit} are allowed")]
    TooLarge {
        what: &'static str,
        offset: u64,
        size: u64,
        limit: u64,
    },
    #[error(
        "{what} would take {size} bytes, but at most {limit} are allowed. The file with most of them is '{file}': leave it out \
         with WHERE (filename = '...') IS NOT TRUE"
    )]
    CatalogTooLarge {
        what: String,
        size: u64,
        limit: u64,
        file: String,
    },
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl Error {
    /// What would take more bytes than it may.
    pub fn too_large(what: &'static str, offset: u64, size: usize, limit: usize) -> Self {
        let (size, limit) = (size as u64, limit as u64);
        Error::TooLarge {
            what,
            offset,
            size,
            limit,
        }
    }
}
