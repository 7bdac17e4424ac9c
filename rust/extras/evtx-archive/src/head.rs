//! What is known of the entries of an archive before they are opened.

use evtx_scan::StorageError;

use crate::codec::Method;
use crate::memory::ListMemory;

/// Most entries of an archive, and most bytes of its directory.
pub(crate) const MAX_ENTRIES: usize = 1_000_000;
pub(crate) const MAX_DIRECTORY: u64 = 256 << 20;

/// Why a symbolic link is not read.
pub(crate) const SYMBOLIC_LINK: &str = "it is a symbolic link, which is not followed";

/// How an entry is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encryption {
    None,
    /// The old cipher, with the byte that reveals most wrong passwords.
    Classic {
        check: u8,
    },
    /// AES of a strength, 1 to 3.
    Aes {
        strength: u8,
    },
    /// With the other entries of its block.
    Block,
    Unsupported,
}

/// Where the bytes of an entry are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// In all of the file.
    Whole,
    /// After a local header at an offset in the file.
    Local {
        offset: u64,
        /// Bytes of the header, estimated from the directory.
        header: u64,
        /// What the header should repeat.
        own: Own,
    },
    /// At an offset in the file, as they are.
    File { offset: u64 },
    /// At an offset in what a block of the archive decompresses to.
    Block { block: u32, offset: u64 },
}

/// An entry of an archive, without its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) place: Place,
    pub(crate) compressed: u64,
    /// Its size, if it is known.
    pub(crate) size: Option<u64>,
    /// Its CRC-32, if it has one.
    pub(crate) checksum: Option<u32>,
    pub(crate) method: Method,
    pub(crate) encryption: Encryption,
    /// Why it is not read, if it is not a file.
    pub(crate) refusal: Option<&'static str>,
    /// How many bytes of it are read at most.
    pub(crate) limit: u64,
}

impl Head {
    /// The offset at which it starts.
    pub(crate) fn offset(&self) -> u64 {
        match self.place {
            Place::Whole => 0,
            Place::Local { offset, .. } | Place::File { offset } | Place::Block { offset, .. } => offset,
        }
    }
}

/// Fields of the directory that the local header repeats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Own {
    /// The CRC-32 of the bytes of its name.
    pub(crate) name: u32,
    /// The number of its method.
    pub(crate) method: u16,
    /// Its CRC-32, as stored.
    pub(crate) checksum: u32,
}

/// Which entries of an archive somebody asks for, and the memory that their list may take.
pub(crate) struct Wanted<'w> {
    pub(crate) memory: ListMemory,
    pub(crate) is_wanted: &'w dyn Fn(&str) -> bool,
}

/// What an entry takes in lists, in bytes: its head in those of the archive, and the file that is listed.
pub(crate) const ENTRY: usize = 600;

/// The entries of an archive.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// Their names and heads, in the order of the directory. Folders are left out.
    pub(crate) entries: Vec<(String, Head)>,
    /// Why there may be more.
    pub(crate) failures: Vec<String>,
}

impl Directory {
    /// Adds an entry, if somebody asks for it.
    ///
    /// # Errors
    /// [`StorageError::Unusable`] if the list takes too much memory.
    pub(crate) fn push(&mut self, name: &str, head: Head, wanted: &mut Wanted<'_>) -> Result<(), StorageError> {
        if (wanted.is_wanted)(name) {
            wanted.memory.take(ENTRY + 4 * name.len())?;
            self.entries.push((name.to_owned(), head));
        }
        Ok(())
    }
}
