//! Orphans: records in bytes where no chunk is, as in the free space of a disk. They are found by their frames.
//!
//! A record refers to names and definitions by their offset in its chunk. The definition of the first record of a kind
//! stands in the record itself, and so tells where in its chunk the record was, and with it the records around.

use std::collections::BTreeMap;
use std::ops::Range;

use evtx_format::bytes::u32_at;
use evtx_format::container::chunk::{CHUNK_HEADER, CHUNK_SIZE};
use evtx_format::container::record::{RECORD_HEADER, Record, find};
use memchr::memmem;

/// How the BinXML of a record begins, as Windows writes it: a fragment header (1.1), and a template instance.
pub(crate) const INSTANCE: [u8; 6] = [0x0f, 1, 1, 0, 0x0c, 1];

/// How a template instance begins.
const INSTANCE_TOKEN: [u8; 2] = [0x0c, 1];

/// Records that were once in one chunk, with the bytes between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Orphans {
    /// The chunk offset of their first byte. If no record tells it, that of the first record of a chunk.
    pub(crate) chunk_offset: usize,
    /// How many bytes they are.
    pub(crate) len: usize,
}

/// Offset of the first record in a span of bytes that are not a chunk: its two sizes agree, and it fits a chunk.
pub(crate) fn find_orphan(bytes: &[u8], span: Range<usize>) -> Option<usize> {
    find(bytes, span, |record| record.size as usize <= CHUNK_SIZE - CHUNK_HEADER)
}

impl Orphans {
    /// The records at the start of bytes that are not a chunk, as far as they can be of one chunk.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let (mut chunk_offset, mut at, mut len) = (None, 0, bytes.len());
        let mut definitions = BTreeMap::new();
        while let Some(start) = find_orphan(bytes, at..len.min(CHUNK_SIZE))
            && let Ok(record) = Record::read(bytes, start)
        {
            let first = |own: usize| own.checked_sub(start).filter(|first| *first >= CHUNK_HEADER);
            let stated = stated_chunk_offset(bytes, &record).map(first);
            let first = chunk_offset.unwrap_or(stated.flatten().unwrap_or(CHUNK_HEADER));
            // A chunk has one definition of each template.
            let is_other = reference(bytes, &record)
                .is_some_and(|(id, definition)| *definitions.entry(id).or_insert(definition) != definition);
            if is_other || stated.is_some_and(|stated| stated != Some(first)) || first + record.end() > CHUNK_SIZE {
                // It was in another chunk.
                len = start;
                break;
            }
            chunk_offset = chunk_offset.or(stated.flatten());
            at = record.end();
        }
        let chunk_offset = chunk_offset.unwrap_or(CHUNK_HEADER);
        let len = len.min(CHUNK_SIZE - chunk_offset);
        Orphans { chunk_offset, len }
    }
}

/// The template ID and the definition's chunk offset of the instance with which a record begins.
fn reference(bytes: &[u8], record: &Record) -> Option<(u32, u32)> {
    let instance = bytes.get(record.binxml())?.strip_prefix(&INSTANCE)?;
    Some((u32_at(instance, 0)?, u32_at(instance, 4)?))
}

/// The offset that a record had in its chunk, by a reference to a definition that follows this reference.
fn stated_chunk_offset(bytes: &[u8], record: &Record) -> Option<usize> {
    let binxml = bytes.get(record.binxml())?;
    memmem::find_iter(binxml, &INSTANCE_TOKEN).find_map(|at| {
        let instance = &binxml[at + INSTANCE_TOKEN.len()..];
        let (id, definition) = (u32_at(instance, 0)?, u32_at(instance, 4)? as usize);
        // A definition begins with the offset of another one, u32, and its GUID, whose first bytes are the ID.
        let own = definition.checked_sub(RECORD_HEADER + at + INSTANCE_TOKEN.len() + 8)?;
        let is_there = u32_at(instance, 12)? == id && own >= CHUNK_HEADER && own + record.size as usize <= CHUNK_SIZE;
        is_there.then_some(own)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of 100 bytes at a chunk offset, with the definition of a template of its own.
    fn record(chunk_offset: Option<u32>) -> Vec<u8> {
        let id = chunk_offset.unwrap_or_default();
        instance(id, chunk_offset)
    }

    /// A record of 100 bytes. With `chunk_offset`, it is there and has the definition.
    fn instance(id: u32, chunk_offset: Option<u32>) -> Vec<u8> {
        let mut record = vec![0; 100];
        record[..8].copy_from_slice(b"**\0\0\x64\0\0\0");
        record[24..30].copy_from_slice(&INSTANCE);
        record[30..34].copy_from_slice(&id.to_le_bytes());
        record[34..38].copy_from_slice(&chunk_offset.map_or(7, |offset| offset + 38).to_le_bytes());
        if chunk_offset.is_some() {
            record[42..46].copy_from_slice(&id.to_le_bytes());
        }
        record[96] = 100;
        record
    }

    #[test]
    fn definitions_tell_where_in_its_chunk_a_record_was() {
        let of = |records: &[Vec<u8>]| {
            let Orphans { chunk_offset, len } = Orphans::of(&records.concat());
            (chunk_offset, len)
        };
        let other = || record(None);
        assert_eq!(of(&[other(), vec![0; 50], other(), vec![0; 50]]), (512, 300));
        assert_eq!(of(&[record(Some(2000)), other()]), (2000, 200));
        assert_eq!(of(&[other(), vec![0; 8], record(Some(2108)), other()]), (2000, 308));
        assert_eq!(of(&[record(Some(2000)), record(Some(2100))]), (2000, 200));
        // Records of another chunk: they were elsewhere, or refer to another definition of the template.
        assert_eq!(of(&[record(Some(2000)), instance(2000, None)]), (2000, 100));
        assert_eq!(of(&[record(Some(2000)), record(Some(3000))]), (2000, 100));
        assert_eq!(of(&[other(), other(), record(Some(600))]), (512, 200));
        assert_eq!(of(&[record(Some(65_436)), other()]), (65_436, 100));
        assert_eq!(
            of(&[record(Some(65_437)), other()]),
            (512, 200),
            "it does not fit there"
        );
        assert_eq!(of(&[other(), vec![0; 70_000], other()]), (512, 65_024));
    }
}
