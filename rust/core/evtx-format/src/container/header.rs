//! The file header.

use super::chunk::CHUNK_SIZE;
use crate::bytes::{array_at, u16_at, u32_at, u64_at};
use crate::error::{Error, ErrorKind};

/// Size of the file header, in bytes. The format uses 128 of them.
pub const FILE_HEADER: usize = 4096;

pub(super) const FILE_MAGIC: [u8; 8] = *b"ElfFile\0";
// Flags of the file header. The log is not closed; it has reached its maximum size; it keeps no checksums.
const DIRTY: u32 = 1;
const FULL: u32 = 2;
const NO_CHECKSUMS: u32 = 4;

/// Why a file is not a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotEvtx {
    /// The file is empty.
    #[error("not an EVTX log: the file is empty, there is nothing in place of \"ElfFile\\0\"")]
    Empty,
    /// The file does not start with `ElfFile\0`. Holds its first eight bytes, fewer if it is shorter.
    #[error("not an EVTX log: it starts with \"{}\" in place of \"ElfFile\\0\"", .0.escape_ascii())]
    Magic(Vec<u8>),
    /// The file ends inside its header. Holds the size of the file in bytes.
    #[error("not an EVTX log: after \"ElfFile\\0\" the file ends at {0} bytes, inside of its 4096-byte header")]
    Short(u64),
}

/// The fields of a file header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileHeader {
    /// Number of the oldest chunk.
    pub first_chunk: u64,
    /// Number of the newest chunk.
    pub last_chunk: u64,
    /// ID that the next record gets.
    pub next_record_id: u64,
    /// Version, (major, minor): 3.1, or 3.2 on newer Windows.
    pub version: (u16, u16),
    /// Chunks in the file, modulo 65,536.
    pub chunk_count: u16,
    /// 1 dirty, 2 full, 4 no checksums.
    pub flags: u32,
    /// CRC32 of bytes 0 to 120, as stored.
    pub checksum: u32,
    /// CRC32 of bytes 0 to 120, as computed.
    pub computed_checksum: u32,
}

impl FileHeader {
    /// Reads the header from the first 4,096 bytes of a file, or all of a shorter one. `size` is the file's, in bytes.
    ///
    /// # Errors
    /// [`NotEvtx`] if the file does not start with a whole file header.
    pub fn read(bytes: &[u8], size: u64) -> Result<Self, NotEvtx> {
        if bytes.is_empty() {
            return Err(NotEvtx::Empty);
        }
        let Some(FILE_MAGIC) = array_at(bytes, 0) else {
            return Err(NotEvtx::Magic(bytes[..bytes.len().min(8)].to_vec()));
        };
        if bytes.len() < FILE_HEADER {
            return Err(NotEvtx::Short(size));
        }
        let u16_at = |at| u16_at(bytes, at).unwrap_or_default();
        let u32_at = |at| u32_at(bytes, at).unwrap_or_default();
        let u64_at = |at| u64_at(bytes, at).unwrap_or_default();
        Ok(FileHeader {
            first_chunk: u64_at(8),
            last_chunk: u64_at(16),
            next_record_id: u64_at(24),
            version: (u16_at(38), u16_at(36)),
            chunk_count: u16_at(42),
            flags: u32_at(120),
            checksum: u32_at(124),
            computed_checksum: crc32fast::hash(&bytes[..120]),
        })
    }

    /// Whether the log was open when it was copied, so that the header can be older than the chunks.
    pub fn is_dirty(&self) -> bool {
        self.flags & DIRTY != 0
    }

    /// Whether the log had reached its maximum size.
    pub fn is_full(&self) -> bool {
        self.flags & FULL != 0
    }

    /// Whether the log was closed before it ever wrapped, so that the chunks are in the order of their records. False if
    /// the header has no checksum, or one that does not match, because such a header cannot be trusted.
    pub(super) fn never_wrapped(&self) -> bool {
        self.flags & (DIRTY | NO_CHECKSUMS) == 0 && self.first_chunk == 0 && self.checksum == self.computed_checksum
    }

    /// How many chunks the header lists, all of them used; 0 if its checksum does not match, because its numbers can be
    /// wrong. That of an open log is stale, and can list fewer than there are.
    pub fn listed_chunks(&self) -> u64 {
        // The count wraps at 65,536, the number of the newest chunk does not.
        let listed = self.last_chunk.saturating_add(1).max(self.chunk_count.into());
        if self.verify().is_ok() { listed } else { 0 }
    }

    /// Checks that a file of `size` bytes has all chunks that its header [lists](Self::listed_chunks).
    ///
    /// # Errors
    /// [`ErrorKind::FileCutShort`].
    pub fn check_size(&self, size: u64) -> Result<(), Error> {
        let have = size.saturating_sub(FILE_HEADER as u64).div_ceil(CHUNK_SIZE as u64);
        let listed = self.listed_chunks();
        if listed <= have {
            return Ok(());
        }
        Err(Error::new(42, ErrorKind::FileCutShort { listed, have }))
    }

    /// Checks the stored checksum. A header without one passes.
    ///
    /// # Errors
    /// [`ErrorKind::Checksum`] if it does not match.
    pub fn verify(&self) -> Result<(), Error> {
        if self.flags & NO_CHECKSUMS != 0 || self.checksum == self.computed_checksum {
            return Ok(());
        }
        let kind = ErrorKind::Checksum {
            what: "file header",
            stored: self.checksum,
            computed: self.computed_checksum,
        };
        Err(Error::new(124, kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with these flags, whose checksum matches.
    fn header(flags: u32) -> FileHeader {
        FileHeader {
            first_chunk: 0,
            last_chunk: 5,
            next_record_id: 7,
            version: (3, 1),
            chunk_count: 6,
            flags,
            checksum: 9,
            computed_checksum: 9,
        }
    }

    /// One whose checksum does not match.
    fn doctored() -> FileHeader {
        let mut header = header(0);
        header.checksum = 8;
        header
    }

    #[test]
    fn a_header_is_believed_if_the_log_was_closed_and_the_checksum_matches() {
        for (flags, is_dirty, is_full, believed) in [
            (0, false, false, true),
            (1, true, false, false),
            (2, false, true, true),
            (3, true, true, false),
            (4, false, false, false),
        ] {
            let header = header(flags);
            assert_eq!((header.is_dirty(), header.is_full()), (is_dirty, is_full), "{flags}");
            assert_eq!(header.never_wrapped(), believed, "{flags}");
        }
        let mut wrapped = header(0);
        wrapped.first_chunk = 3;
        assert!(!wrapped.never_wrapped() && !doctored().never_wrapped());
    }

    #[test]
    fn the_checksum_is_compared_if_there_is_one() {
        assert_eq!(header(0).verify(), Ok(()));
        let kind = ErrorKind::Checksum {
            what: "file header",
            stored: 8,
            computed: 9,
        };
        let with = |flags| FileHeader { flags, ..doctored() }.verify();
        assert_eq!(
            [with(0), with(3), with(4)],
            [Err(Error::new(124, kind)), Err(Error::new(124, kind)), Ok(())]
        );
    }

    #[test]
    fn a_file_has_the_chunks_that_its_header_lists() {
        let size = |chunks: usize| (FILE_HEADER + chunks * CHUNK_SIZE) as u64;
        let header = header(0);
        for enough in [size(6), size(5) + 1, size(9)] {
            assert_eq!(header.check_size(enough), Ok(()), "{enough}");
        }
        let cut = |have| Err(Error::new(42, ErrorKind::FileCutShort { listed: 6, have }));
        assert_eq!(header.check_size(size(5)), cut(5));
        assert_eq!(header.check_size(100), cut(0));
        // The count of a log of 65,536 chunks is 0.
        let large = FileHeader {
            chunk_count: 0,
            ..header
        };
        assert_eq!(large.check_size(size(5)), cut(5));
        assert_eq!(doctored().check_size(size(5)), Ok(()));
        let listed = [header, large, doctored()].map(|header| header.listed_chunks());
        assert_eq!(listed, [6, 6, 0]);
    }

    #[test]
    fn the_error_says_why_a_file_is_not_a_log() {
        let read = |bytes: &[u8]| FileHeader::read(bytes, bytes.len() as u64).unwrap_err().to_string();
        assert!(read(b"").contains("empty"));
        assert!(read(b"PK\x03\x04zip").contains("\"PK\\x03\\x04zip\""));
        assert!(read(b"ElfFile\0short").contains("13 bytes"));
    }
}
