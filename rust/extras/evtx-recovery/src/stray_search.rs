//! Stray chunks: chunks that start at no slot of their log, because bytes before them were lost or inserted.

use std::ops::Range;
use std::sync::Arc;

use evtx_format::container::chunk::{CHUNK_HEADER, CHUNK_MAGIC, CHUNK_SIZE, ChunkHeader};
use evtx_format::container::header::FILE_HEADER;
use evtx_format::container::record::Record;
use memchr::memmem;

/// A chunk that starts at no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StrayChunk {
    /// Offset in the file, in bytes.
    pub(crate) offset: u64,
    /// Length in bytes: 65,536, or less if another chunk or the end of the file comes before.
    pub(crate) len: u64,
}

impl StrayChunk {
    /// File offset of its end, in bytes.
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.len
    }

    /// Whether a file offset, in bytes, lies in it.
    pub(crate) fn contains(&self, offset: u64) -> bool {
        (self.offset..self.end()).contains(&offset)
    }
}

/// A search for stray chunks in a whole file.
#[derive(Debug, Clone, Default)]
pub(crate) struct StrayChunkSearch {
    /// Size of the file in bytes.
    size: u64,
    /// How many bytes are searched at a time.
    step: u64,
    /// How many bytes were searched.
    done: u64,
    /// File offset of the end of the last chunk's records. A chunk magic before it is part of a value.
    records_end: u64,
    /// Whether the last chunk has records.
    has_records: bool,
    found: Vec<StrayChunk>,
}

impl StrayChunkSearch {
    /// A search of a file of `size` bytes in steps of `step` bytes.
    pub(crate) fn new(size: u64, step: u64) -> Self {
        StrayChunkSearch {
            size,
            step,
            ..StrayChunkSearch::default()
        }
    }

    /// The range of the file to push next; `None` at the end.
    pub(crate) fn wants(&self) -> Option<Range<u64>> {
        // One chunk more than the step, so that each chunk that starts in it is whole.
        let end = self.done + self.step + CHUNK_SIZE as u64;
        (self.done < self.size).then(|| self.done..end.min(self.size))
    }

    /// Takes the bytes of the range that [`wants`](Self::wants) named.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let start = self.done;
        self.done += self.step;
        // A magic that starts in the step can end after it.
        let own = bytes.len().min(self.step as usize + CHUNK_MAGIC.len() - 1);
        for at in memmem::find_iter(&bytes[..own], &CHUNK_MAGIC) {
            let chunk = &bytes[at..];
            self.chunk(start + at as u64, &chunk[..chunk.len().min(CHUNK_SIZE)]);
        }
    }

    /// Takes the bytes from a chunk magic on, up to 64 KiB, and the file offset of the magic.
    fn chunk(&mut self, offset: u64, chunk: &[u8]) {
        let Some(records) = records_of(chunk) else { return };
        let has_records = records > CHUNK_HEADER;
        if offset < self.records_end && (self.has_records || !has_records) || self.found.len() >= MAX_STRAY_CHUNKS {
            return;
        }
        match self.found.last_mut() {
            // The last one has no records, and this one starts in its header: its magic was there by chance.
            Some(last) if offset < last.offset + CHUNK_HEADER as u64 => _ = self.found.pop(),
            Some(last) => last.len = last.len.min(offset - last.offset),
            None => {}
        }
        let in_slots = offset.checked_sub(FILE_HEADER as u64);
        if in_slots.is_none_or(|offset| !offset.is_multiple_of(CHUNK_SIZE as u64)) {
            let len = chunk.len() as u64;
            self.found.push(StrayChunk { offset, len });
        }
        self.records_end = offset + records as u64;
        self.has_records = has_records;
    }

    /// The chunks that were found, in the order of the file.
    pub(crate) fn found(&self) -> Arc<[StrayChunk]> {
        self.found.as_slice().into()
    }
}

/// The most stray chunks that a search keeps.
const MAX_STRAY_CHUNKS: usize = 1 << 20;

/// Chunk offset of the end of the records that follow each other from a chunk's start. `None` if the chunk has neither
/// a header checksum that matches nor a record after the header.
fn records_of(chunk: &[u8]) -> Option<usize> {
    let header = ChunkHeader::read(chunk).ok()?;
    let mut at = CHUNK_HEADER;
    while let Some(record) = Record::read(chunk, at)
        .ok()
        .filter(|record| record.size_copy_matches(chunk))
    {
        at = record.end();
    }
    (at > CHUNK_HEADER || header.is_valid(chunk)).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A chunk with a record of a size whose bytes are `value`.
    fn chunk_with(value: &[u8]) -> Vec<u8> {
        let mut chunk = vec![0; CHUNK_SIZE];
        chunk[..8].copy_from_slice(&CHUNK_MAGIC);
        chunk[24..32].copy_from_slice(&7_u64.to_le_bytes());
        let size = (value.len() + 28) as u32;
        chunk[512..516].copy_from_slice(b"**\0\0");
        chunk[516..520].copy_from_slice(&size.to_le_bytes());
        chunk[520..528].copy_from_slice(&7_u64.to_le_bytes());
        chunk[536..536 + value.len()].copy_from_slice(value);
        chunk[536 + value.len()..540 + value.len()].copy_from_slice(&size.to_le_bytes());
        chunk
    }

    fn search(file: &[u8], step: u64) -> Vec<(u64, u64)> {
        let mut search = StrayChunkSearch::new(file.len() as u64, step);
        while let Some(range) = search.wants() {
            search.push(&file[range.start as usize..range.end as usize]);
        }
        search.found().iter().map(|stray| (stray.offset, stray.len)).collect()
    }

    proptest! {
        #[test]
        fn chunks_are_found_wherever_they_are_read_apart(gaps in proptest::collection::vec(0..3000_usize, 1..5), step in 700..200_000_u64) {
            let mut file = vec![1; FILE_HEADER];
            let mut expected = Vec::new();
            for gap in gaps {
                file.extend(vec![2; gap]);
                if !(file.len() - FILE_HEADER).is_multiple_of(CHUNK_SIZE) {
                    expected.push((file.len() as u64, CHUNK_SIZE as u64));
                }
                file.extend(chunk_with(b"value"));
            }
            prop_assert_eq!(search(&file, step), expected);
        }
    }

    #[test]
    fn a_chunk_in_a_value_does_not_count_and_a_chunk_that_is_cut_ends_at_the_next() {
        let inner = &chunk_with(b"in a value")[..2000];
        let outer = chunk_with(inner);
        let file = [&[1; 5000], outer.as_slice()].concat();
        assert_eq!(search(&file, 1 << 20), [(5000, 65_536)]);
        assert_eq!(search(&file, 700), [(5000, 65_536)]);
        let file = [&[1; 5000], &outer[..9000], &outer[..8000]].concat();
        assert_eq!(search(&file, 1 << 20), [(5000, 9000), (14_000, 8000)]);
        // A chunk in its slot also ends a stray one.
        let plain = chunk_with(b"value");
        let file = [&[1; 3000], &plain[..1096], plain.as_slice()].concat();
        assert_eq!(search(&file, 1 << 20), [(3000, 1096)]);
    }

    /// The header of a chunk without records, whose checksum matches, with `inner` in the place of its template table.
    fn valid_header(inner: &[u8]) -> Vec<u8> {
        let mut header = chunk_with(b"")[..CHUNK_HEADER].to_vec();
        header[128..128 + inner.len()].copy_from_slice(inner);
        let checksum = crc32fast::hash(&[&header[..120], &header[128..]].concat());
        header[124..128].copy_from_slice(&checksum.to_le_bytes());
        header
    }

    #[test]
    fn a_chunk_without_records_needs_a_valid_header_and_gives_way_to_one_with_records() {
        let found = |bytes: &[&[u8]]| search(&[&[1; 5000], &*bytes.concat()].concat(), 1 << 20);
        let rest = [0; CHUNK_SIZE];
        let whole = CHUNK_SIZE as u64;
        assert_eq!(found(&[&valid_header(&[]), &rest[512..]]), [(5000, whole)]);
        let invalid = chunk_with(b"")[..CHUNK_HEADER].to_vec();
        assert_eq!(found(&[&invalid, &rest[512..]]), []);
        // A chunk with records that starts in the header is the chunk; one without is not.
        let records = chunk_with(b"value");
        assert_eq!(
            found(&[&valid_header(&records[..300])[..128], &records]),
            [(5128, whole)]
        );
        let twice = valid_header(&valid_header(&[])[..128]);
        assert_eq!(found(&[&twice, &rest[512..]]), [(5000, whole)]);
        assert_eq!(found(&[&valid_header(&[]), &records]), [(5000, 512), (5512, whole)]);
        // A chunk right after the records of another is not part of their values.
        let end = 512 + 28 + b"value".len();
        let after = 5000 + end as u64;
        assert_eq!(
            found(&[&records[..end], &records]),
            [(5000, end as u64), (after, whole)]
        );
    }

    #[test]
    fn a_step_is_read_with_a_chunk_more() {
        let mut search = StrayChunkSearch::new(2000, 1000);
        assert_eq!(search.wants(), Some(0..2000));
        search.push(&[0; 2000]);
        assert_eq!(search.wants(), Some(1000..2000));
        search.push(&[0; 1000]);
        assert_eq!(search.wants(), None);
        assert_eq!(StrayChunkSearch::new(1 << 20, 1000).wants(), Some(0..66_536));
    }
}
