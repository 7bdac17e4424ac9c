//! Finds chunks by their magic, as in images: files that are not logs.

use std::ops::Range;

use evtx_format::container::chunk::{CHUNK_HEADER, CHUNK_MAGIC, CHUNK_SIZE, ChunkHeader, SECTOR};
use evtx_format::container::record::Record;
use memchr::memmem;

/// Offset of the first chunk of an image that starts in a range of its bytes.
///
/// A chunk magic counts at a multiple of [`SECTOR`] bytes from offset `sectors`: disks and memory hold chunks there, and
/// the header of a damaged one can say anything. Elsewhere the chunk also needs a header checksum or a first record that
/// is right. This finds a log inside another file, or one that has lost some bytes.
pub(crate) fn find_chunk(image: &[u8], starts: Range<usize>, sectors: usize) -> Option<usize> {
    // The magic can end after the range.
    let end = image.len().min(starts.end.saturating_add(CHUNK_MAGIC.len() - 1));
    let mut found = memmem::find_iter(image.get(starts.start..end)?, &CHUNK_MAGIC).map(|at| starts.start + at);
    found.find(|at| at % SECTOR == sectors % SECTOR || is_beyond_doubt(&image[*at..]))
}

/// Whether bytes that start with the magic are a chunk. Takes the same time whatever the bytes are.
fn is_beyond_doubt(bytes: &[u8]) -> bool {
    let chunk = &bytes[..bytes.len().min(CHUNK_SIZE)];
    let has_record = || Record::read(chunk, CHUNK_HEADER).is_ok_and(|record| record.size_copy_matches(chunk));
    ChunkHeader::read(chunk).is_ok_and(|header| header.is_valid(chunk) || has_record())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_an_image_start_at_sectors_from_a_place_on() {
        let mut image = vec![0; 8 * SECTOR];
        for at in [SECTOR, 3 * SECTOR + 1, 5 * SECTOR] {
            image[at..at + 8].copy_from_slice(&CHUNK_MAGIC);
        }
        let find = |from, sectors| find_chunk(&image, from..image.len(), sectors);
        assert_eq!(find(0, 0), Some(SECTOR));
        assert_eq!(find(SECTOR, 0), Some(SECTOR));
        assert_eq!(find(SECTOR + 1, 1), Some(3 * SECTOR + 1));
        assert_eq!(find(2 * SECTOR, 0), Some(5 * SECTOR));
        assert_eq!(find(6 * SECTOR, 0), None);
        assert_eq!(find(image.len() + 1, 0), None);
        // A magic that starts in the range can end after it.
        assert_eq!(find_chunk(&image, 0..SECTOR + 1, 0), Some(SECTOR));
        assert_eq!(find_chunk(&image, 0..SECTOR, 0), None);
    }

    #[test]
    fn a_chunk_beyond_doubt_starts_anywhere() {
        let mut image = vec![0; 8 * SECTOR];
        image[3..11].copy_from_slice(&CHUNK_MAGIC);
        let find = |image: &[u8]| find_chunk(image, 0..image.len(), 0);
        assert_eq!(find(&image), None);
        // A first record whose two sizes agree.
        let record = 3 + CHUNK_HEADER;
        image[record..record + 8].copy_from_slice(b"**\0\0\x40\0\0\0");
        assert_eq!(find(&image), None);
        image[record + 60] = 0x40;
        assert_eq!(find(&image), Some(3));
        // A header whose checksum matches.
        image[record..].fill(0);
        let sum = ChunkHeader::read(&image[3..])
            .expect("a header")
            .computed_header_checksum(&image[3..]);
        image[127..131].copy_from_slice(&sum.expect("all of it").to_le_bytes());
        assert_eq!(find(&image), Some(3));
    }
}
