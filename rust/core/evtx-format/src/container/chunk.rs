//! Chunk headers and their checksums.

use std::ops::{Range, RangeInclusive};

use crate::binxml::instance::DEFINITION_HEADER;
use crate::bytes::{array_at, u32_at, u64_at};
use crate::error::{Error, ErrorKind, Result};

/// Size of a chunk, in bytes.
pub const CHUNK_SIZE: usize = 65_536;

/// Size of a chunk header with its string and template tables, in bytes. The records start after it.
pub const CHUNK_HEADER: usize = 512;

/// Size of a sector, in bytes. In an image, chunks are looked for at multiples of it.
pub const SECTOR: usize = 512;

/// The first bytes of a chunk.
pub const CHUNK_MAGIC: [u8; 8] = *b"ElfChnk\0";

/// Flag in a chunk header: the chunk keeps no checksums.
const NO_CHECKSUMS: u32 = 4;

/// The fields of a chunk header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkHeader {
    /// Number of the first record. Numbers count the records from the start of the log.
    pub first_record_number: u64,
    /// Number of the last record.
    pub last_record_number: u64,
    /// ID of the first record.
    pub first_record_id: u64,
    /// ID of the last record.
    pub last_record_id: u64,
    /// Chunk offset of the last record.
    pub last_record: u32,
    /// Chunk offset of the end of the last record.
    pub free_space: u32,
    /// CRC32 of the records: bytes 512 to the free space. As stored.
    pub records_checksum: u32,
    /// Flags. 4: the chunk keeps no checksums.
    pub flags: u32,
    /// CRC32 of bytes 0 to 120 and 128 to 512. As stored.
    pub header_checksum: u32,
}

impl ChunkHeader {
    /// Reads the header of a chunk from its first 128 bytes.
    ///
    /// # Errors
    /// [`ErrorKind::ChunkMagic`] if they do not start with `ElfChnk\0`, [`ErrorKind::ChunkCutShort`] if they are fewer.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let cut_short = || Error::new(0, ErrorKind::ChunkCutShort { have: bytes.len() });
        let magic = array_at::<8>(bytes, 0).ok_or_else(cut_short)?;
        if magic != CHUNK_MAGIC {
            return Err(Error::new(0, ErrorKind::ChunkMagic(magic)));
        }
        if bytes.len() < 128 {
            return Err(cut_short());
        }
        let u32_at = |at| u32_at(bytes, at).unwrap_or_default();
        let u64_at = |at| u64_at(bytes, at).unwrap_or_default();
        Ok(ChunkHeader {
            first_record_number: u64_at(8),
            last_record_number: u64_at(16),
            first_record_id: u64_at(24),
            last_record_id: u64_at(32),
            last_record: u32_at(44),
            free_space: u32_at(48),
            records_checksum: u32_at(52),
            flags: u32_at(120),
            header_checksum: u32_at(124),
        })
    }

    /// The record IDs that the header lists; `None` if they are reversed, or the chunk [is new](Self::is_new).
    pub fn record_ids(&self) -> Option<RangeInclusive<u64>> {
        let (first, last) = (self.first_record_id, self.last_record_id);
        (first <= last && !self.is_new()).then_some(first..=last)
    }

    /// Whether the first and the last record ID are both -1, as Windows writes them when it begins a chunk (seen in 68
    /// of the 618 logs of six machines: logs that were created, and never written).
    pub fn is_new(&self) -> bool {
        (self.first_record_id, self.last_record_id) == (u64::MAX, u64::MAX)
    }

    /// Whether the header has a checksum of itself that matches.
    pub fn is_valid(&self, chunk: &[u8]) -> bool {
        self.flags & NO_CHECKSUMS == 0 && self.computed_header_checksum(chunk) == Some(self.header_checksum)
    }

    /// The CRC32 of the header's bytes; `None` if the chunk ends before.
    pub fn computed_header_checksum(&self, chunk: &[u8]) -> Option<u32> {
        Some(crc32fast::hash(
            &[chunk.get(..120)?, chunk.get(128..CHUNK_HEADER)?].concat(),
        ))
    }

    /// The CRC32 of the records' bytes; `None` if the chunk ends before, or if the free space is out of range.
    pub fn computed_records_checksum(&self, chunk: &[u8]) -> Option<u32> {
        chunk.get(CHUNK_HEADER..self.free_space as usize).map(crc32fast::hash)
    }

    /// Checks the stored checksums of the header and of the records against the chunk's bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Checksum`] for the first that does not match. One that is not kept, or whose bytes are cut off,
    /// passes.
    pub fn verify(&self, chunk: &[u8]) -> Result<()> {
        if self.flags & NO_CHECKSUMS != 0 {
            return Ok(());
        }
        let header = self.computed_header_checksum(chunk);
        let records = self.computed_records_checksum(chunk);
        for (what, offset, stored, computed) in [
            ("chunk header", 124, self.header_checksum, header),
            ("records", 52, self.records_checksum, records),
        ] {
            if let Some(computed) = computed.filter(|&computed| computed != stored) {
                let kind = ErrorKind::Checksum { what, stored, computed };
                return Err(Error::new(offset, kind));
            }
        }
        Ok(())
    }
}

/// Chunk offsets of the template table: the heads of 32 linked lists of definitions, u32 each. A head is the chunk
/// offset of the first definition, and each definition starts with the chunk offset of the next.
const TEMPLATE_TABLE: Range<usize> = 384..CHUNK_HEADER;

/// How many template definitions the template table of a chunk reaches.
pub fn template_count(chunk: &[u8]) -> usize {
    // A circular list ends at the number of definitions that a chunk has space for.
    let mut remaining = CHUNK_SIZE / DEFINITION_HEADER;
    let mut count = 0;
    for list in TEMPLATE_TABLE.step_by(4) {
        let mut next = u32_at(chunk, list);
        while let Some(at) = next.filter(|&at| at > 0 && remaining > 0)
            && (at as usize).saturating_add(DEFINITION_HEADER) <= chunk.len()
        {
            (count, remaining) = (count + 1, remaining - 1);
            next = u32_at(chunk, at as usize);
        }
    }
    count
}

/// How many slots there are before the zeros at the end of some bytes, which start with a slot.
pub fn slots_before_zeros(bytes: &[u8]) -> usize {
    let slots = bytes.chunks(CHUNK_SIZE);
    slots.len() - slots.rev().take_while(|slot| is_zeros(slot)).count()
}

/// Whether all bytes are zeros. A slot of zeros was never used if only zeros follow it, and the file header does not list it.
pub fn is_zeros(bytes: &[u8]) -> bool {
    // The bytes of a block are taken together without a branch, so that the compiler vectorizes the loop.
    bytes
        .chunks(256)
        .all(|block| block.iter().fold(0, |bits, &byte| bits | byte) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_counted_along_their_lists() {
        let mut chunk = vec![0; CHUNK_SIZE];
        let mut link = |at: usize, to: u32| chunk[at..at + 4].copy_from_slice(&to.to_le_bytes());
        let last = (CHUNK_SIZE - DEFINITION_HEADER) as u32;
        // The first list has three definitions, the last list one, and one list leads out of the chunk.
        link(384, 1000);
        link(1000, 2000);
        link(2000, last);
        link(508, 3000);
        link(400, last + 1);
        assert_eq!(template_count(&chunk), 4);
        assert_eq!(template_count(&chunk[..3000 + DEFINITION_HEADER]), 3);
        assert_eq!(template_count(&chunk[..3000 + DEFINITION_HEADER - 1]), 2);
        // A list that ends in a circle.
        chunk[3000..3004].copy_from_slice(&3000_u32.to_le_bytes());
        assert_eq!(template_count(&chunk), CHUNK_SIZE / DEFINITION_HEADER);
        assert_eq!(template_count(&[]), 0);
    }

    #[test]
    fn every_byte_of_zeros_is_zero() {
        for len in [0, 1, 255, 256, 257, CHUNK_SIZE - 1, CHUNK_SIZE] {
            let mut slot = vec![0; len];
            assert!(is_zeros(&slot), "{len} zeros");
            for at in [0, len / 2, len.saturating_sub(1)] {
                if let Some(byte) = slot.get_mut(at) {
                    *byte = 0x80;
                    assert!(!is_zeros(&slot), "byte {at} of {len}");
                    slot[at] = 0;
                }
            }
        }
        assert!(!is_zeros(&[0, 1, 1, 0]), "equal bytes");
    }

    #[test]
    fn only_slots_at_the_end_are_before_no_other_bytes() {
        let slots = |firsts: &[u8], rest: usize| {
            let mut bytes: Vec<_> = firsts
                .iter()
                .flat_map(|first| [vec![*first], vec![0; CHUNK_SIZE - 1]])
                .collect();
            bytes.push(vec![0; rest]);
            slots_before_zeros(&bytes.concat())
        };
        for (firsts, expected) in [
            (&[][..], 0),
            (&[0, 0], 0),
            (&[1, 0], 1),
            (&[0, 1], 2),
            (&[1, 0, 0, 7, 0], 4),
        ] {
            assert_eq!([0, 1, 9].map(|rest| slots(firsts, rest)), [expected; 3], "{firsts:?}");
        }
    }

    #[test]
    fn checksums_are_compared_unless_there_are_none() {
        let mut chunk = vec![0; CHUNK_SIZE];
        chunk[..8].copy_from_slice(&CHUNK_MAGIC);
        chunk[48..52].copy_from_slice(&576_u32.to_le_bytes());
        // Whether the header is valid, and which checksum does not match.
        let checked = |chunk: &[u8]| {
            let header = ChunkHeader::read(chunk).expect("a header");
            let wrong = match header.verify(chunk).map_err(|error| error.kind) {
                Err(ErrorKind::Checksum { what, .. }) => Some(what),
                other => other.err().map(|_| "another error"),
            };
            (header.is_valid(chunk), wrong)
        };
        let put = |chunk: &mut [u8], at: usize, sum: u32| chunk[at..at + 4].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(checked(&chunk), (false, Some("chunk header")));
        let records = crc32fast::hash(&chunk[512..576]);
        put(&mut chunk, 52, records);
        let header = crc32fast::hash(&[&chunk[..120], &chunk[128..512]].concat());
        put(&mut chunk, 124, header);
        assert_eq!(checked(&chunk), (true, None));
        chunk[520] ^= 1;
        assert_eq!(checked(&chunk), (true, Some("records")));
        // The flags are not among the bytes of the checksum.
        chunk[120] = 3;
        assert_eq!(checked(&chunk), (true, Some("records")));
        chunk[120] = 4;
        assert_eq!(checked(&chunk), (false, None));
        chunk[120] = 0;
        chunk[8] = 1;
        assert_eq!(checked(&chunk), (false, Some("chunk header")));
    }
}
