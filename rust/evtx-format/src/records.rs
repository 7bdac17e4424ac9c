//! Records, and the walk over those of a chunk.

use std::ops::Range;

use memchr::memmem;

use crate::bytes::{u32_at, u64_at};
use crate::chunk::{CHUNK_HEADER, CHUNK_SIZE, ChunkHeader};
use crate::error::{Error, ErrorKind, Result};

/// Bytes of a record before its BinXML: magic 4, size u32, ID u64, time written u64.
pub const RECORD_HEADER: usize = 24;

/// A record's header, and the copy of its size at its end.
const RECORD_FRAME: usize = RECORD_HEADER + 4;

const RECORD_MAGIC: [u8; 4] = *b"**\0\0";

/// A record's place, and what its header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Chunk offset of the record.
    pub offset: u32,
    /// Size in bytes, header and trailing copy of the size included.
    pub size: u32,
    /// Record ID.
    pub id: u64,
    /// When it was written, a FILETIME: 100 ns ticks since 1601-01-01 UTC.
    pub written: u64,
}

impl Record {
    /// Reads the header of the record at a chunk offset. Its size is as stored, which can be wrong.
    ///
    /// # Errors
    /// [`ErrorKind::RecordMagic`] where none starts there, [`ErrorKind::Truncated`] where the chunk ends in it.
    pub fn header(chunk: &[u8], at: usize) -> Result<Self> {
        let Some(header) = chunk.get(at..).and_then(|rest| rest.first_chunk::<RECORD_HEADER>()) else {
            let kind = ErrorKind::Truncated {
                what: "a record header",
                need: RECORD_HEADER,
                have: chunk.len().saturating_sub(at),
            };
            return Err(Error::new(at, kind));
        };
        let magic = [header[0], header[1], header[2], header[3]];
        if magic != RECORD_MAGIC {
            return Err(Error::new(at, ErrorKind::RecordMagic(magic)));
        }
        Ok(Record {
            offset: at as u32,
            size: u32_at(header, 4).unwrap_or_default(),
            id: u64_at(header, 8).unwrap_or_default(),
            written: u64_at(header, 16).unwrap_or_default(),
        })
    }

    /// Reads the header of the record at a chunk offset, and checks its size.
    ///
    /// # Errors
    /// As [`Record::header`], and [`ErrorKind::RecordSize`] where the size is too small or runs past the chunk.
    pub fn read(chunk: &[u8], at: usize) -> Result<Self> {
        let record = Self::header(chunk, at)?;
        let room = chunk.len() - at;
        if (record.size as usize) < RECORD_FRAME || record.size as usize > room {
            let size = record.size;
            return Err(Error::new(at, ErrorKind::RecordSize { size, room }));
        }
        Ok(record)
    }

    /// Chunk offset behind the record.
    pub fn end(&self) -> usize {
        self.offset as usize + self.size as usize
    }

    /// Chunk offsets of the record's BinXML.
    pub fn binxml(&self) -> Range<usize> {
        self.offset as usize + RECORD_HEADER..self.end() - 4
    }

    /// Whether the copy of the size at the record's end matches. Windows does not need it to, and real logs
    /// have records where it does not; it tells a record from bytes that look like one.
    fn size_copy_matches(&self, chunk: &[u8]) -> bool {
        u32_at(chunk, self.end() - 4) == Some(self.size)
    }
}

/// A record that a walk has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundRecord {
    /// The record.
    pub record: Record,
    /// Whether the chunk's own bookkeeping does not reach it.
    pub recovered: bool,
}

/// A walk over a chunk's records, in the order of their places. It holds no bytes: each step is given the
/// chunk, so that a walk can be left and taken up again.
#[derive(Debug, Clone)]
pub struct RecordWalk {
    next: Option<usize>,
    /// Records end here: the free space, or the end of the chunk.
    end: usize,
    /// What the header says of where the last record is, if it can be trusted.
    header: Option<ChunkHeader>,
    /// Whether records are also looked for where the header does not lead.
    recover: bool,
    /// Where they are still to be looked for before the walk goes on.
    carve: Range<usize>,
}

impl RecordWalk {
    /// A walk over the records of a chunk, and what is wrong with the chunk as a whole.
    ///
    /// A chunk that is cut short, without its magic, or with its free space out of range is walked to its
    /// end, and only records whose two sizes agree count there.
    ///
    /// With `recover`, the walk also finds what the bookkeeping no longer reaches: records between live ones
    /// that are damaged, and those that were left behind the last one when the chunk was written anew.
    pub fn new(chunk: &[u8], recover: bool) -> (Self, Option<Error>) {
        let header = ChunkHeader::read(chunk).and_then(|header| {
            if (header.free_space as usize) < CHUNK_HEADER || header.free_space as usize > CHUNK_SIZE {
                return Err(Error::new(48, ErrorKind::FreeSpaceOffset(header.free_space)));
            }
            Ok(header)
        });
        let damage = match header {
            Err(error) => Some(error),
            Ok(_) if chunk.len() < CHUNK_SIZE => {
                let kind = ErrorKind::ChunkCutShort { have: chunk.len() };
                Some(Error::new(chunk.len(), kind))
            }
            Ok(_) => None,
        };
        let header = header.ok();
        let free_space = header.map_or(CHUNK_SIZE, |header| header.free_space as usize);
        let walk = RecordWalk {
            next: Some(CHUNK_HEADER),
            end: free_space.min(chunk.len()),
            header,
            recover,
            carve: 0..0,
        };
        (walk, damage)
    }

    /// The next record, or what stands where one should start; `None` at the end.
    ///
    /// Past bytes that are no record the walk goes on at the next one that is beyond doubt: its sizes agree,
    /// it ends before the free space, and its ID is in the range that the chunk's header gives.
    // A call for each record would cost a tenth of counting them.
    #[inline(always)]
    pub fn next(&mut self, chunk: &[u8]) -> Option<Result<FoundRecord>> {
        loop {
            if !self.carve.is_empty()
                && let Some(record) = self.carve(chunk)
            {
                let recovered = true;
                return Some(Ok(FoundRecord { record, recovered }));
            }
            let at = self.next?;
            if at >= self.end {
                self.skip(at, None, chunk);
                continue;
            }
            match Record::read(chunk, at) {
                Ok(record) if self.header.is_some() || record.size_copy_matches(chunk) => {
                    self.next = Some(record.end());
                    if self.header.is_some_and(|header| header.last_record_id == record.id) {
                        self.skip(record.end(), None, chunk);
                    }
                    // Without a header, no bookkeeping reaches it.
                    let recovered = self.recover && self.header.is_none();
                    return Some(Ok(FoundRecord { record, recovered }));
                }
                read => {
                    let next = self.resume(chunk, at + 1);
                    self.skip(at, next, chunk);
                    match read {
                        // Behind the last record of a chunk that is damaged as a whole, anything may stand.
                        Err(error) if next.is_some() || self.header.is_some() && !is_blank(error.kind) => {
                            return Some(Err(error));
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// Whether the chunk's header can be trusted.
    pub fn has_header(&self) -> bool {
        self.header.is_some()
    }

    /// Takes a recovered record back that turned out to be none, so that others in its place are found.
    pub fn reject(&mut self, record: &Record) {
        self.carve.start = record.offset as usize + 1;
    }

    /// Goes on at `next`; what is between is looked through first.
    fn skip(&mut self, from: usize, next: Option<usize>, chunk: &[u8]) {
        self.next = next;
        if self.recover {
            self.carve = from..next.unwrap_or(chunk.len());
        }
    }

    /// The next record in the span that is looked through.
    fn carve(&mut self, chunk: &[u8]) -> Option<Record> {
        while let Some(found) = chunk
            .get(self.carve.clone())
            .and_then(|span| memmem::find(span, &RECORD_MAGIC))
        {
            let at = self.carve.start + found;
            match Record::read(chunk, at) {
                Ok(record) if record.size_copy_matches(chunk) && record.end() <= self.carve.end => {
                    self.carve.start = record.end();
                    return Some(record);
                }
                _ => self.carve.start = at + 1,
            }
        }
        self.carve = 0..0;
        None
    }

    /// Chunk offset of the next record beyond doubt, from `from` on.
    fn resume(&self, chunk: &[u8], mut from: usize) -> Option<usize> {
        let until = match self.header {
            Some(header) => self.end.min(header.last_record as usize + RECORD_MAGIC.len()),
            None => self.end,
        };
        let live = chunk.get(..until)?;
        while let Some(found) = memmem::find(live.get(from..)?, &RECORD_MAGIC) {
            let at = from + found;
            if let Ok(record) = Record::read(chunk, at)
                && record.size_copy_matches(chunk)
                && record.end() <= self.end
                && self
                    .header
                    .is_none_or(|header| (header.first_record_id..=header.last_record_id).contains(&record.id))
            {
                return Some(at);
            }
            from = at + 1;
        }
        None
    }
}

/// Whether there is nothing where a record should start: zeros, or too few bytes for a header. Some chunks'
/// headers put the free space behind where it really starts.
fn is_blank(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::RecordMagic([0, 0, 0, 0]) | ErrorKind::Truncated { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::CHUNK_MAGIC;

    /// A chunk of records with these IDs, each of 64 bytes.
    fn chunk_of(ids: &[u64]) -> Vec<u8> {
        let mut chunk = vec![0; CHUNK_SIZE];
        chunk[..8].copy_from_slice(&CHUNK_MAGIC);
        chunk[24..32].copy_from_slice(&ids[0].to_le_bytes());
        chunk[32..40].copy_from_slice(&ids[ids.len() - 1].to_le_bytes());
        for (i, id) in ids.iter().enumerate() {
            let at = CHUNK_HEADER + 64 * i;
            chunk[at..at + 4].copy_from_slice(&RECORD_MAGIC);
            chunk[at + 4..at + 8].copy_from_slice(&64u32.to_le_bytes());
            chunk[at + 8..at + 16].copy_from_slice(&id.to_le_bytes());
            chunk[at + 60..at + 64].copy_from_slice(&64u32.to_le_bytes());
        }
        let end = CHUNK_HEADER + 64 * ids.len();
        chunk[44..48].copy_from_slice(&((end - 64) as u32).to_le_bytes());
        chunk[48..52].copy_from_slice(&(end as u32).to_le_bytes());
        chunk
    }

    fn walk(chunk: &[u8]) -> (Vec<std::result::Result<u64, ErrorKind>>, Option<ErrorKind>) {
        let (mut walk, damage) = RecordWalk::new(chunk, false);
        let mut items = Vec::new();
        while let Some(item) = walk.next(chunk) {
            items.push(item.map(|found| found.record.id).map_err(|error| error.kind));
        }
        (items, damage.map(|error| error.kind))
    }

    #[test]
    fn a_sound_chunk_gives_its_records() {
        assert_eq!(walk(&chunk_of(&[7, 8, 9])), (vec![Ok(7), Ok(8), Ok(9)], None));
    }

    #[test]
    fn the_walk_ends_at_the_last_id_whatever_follows() {
        let mut chunk = chunk_of(&[7, 8, 9]);
        chunk[32] = 8;
        assert_eq!(walk(&chunk).0, [Ok(7), Ok(8)]);
    }

    #[test]
    fn a_damaged_record_costs_only_itself() {
        let mut chunk = chunk_of(&[7, 8, 9]);
        chunk[CHUNK_HEADER + 64] = b'x';
        assert_eq!(walk(&chunk).0, [Ok(7), Err(ErrorKind::RecordMagic(*b"x*\0\0")), Ok(9)]);
        let mut chunk = chunk_of(&[7, 8, 9]);
        chunk[CHUNK_HEADER + 64 + 7] = 1;
        let error = ErrorKind::RecordSize {
            size: 64 | 1 << 24,
            room: CHUNK_SIZE - CHUNK_HEADER - 64,
        };
        assert_eq!(walk(&chunk).0, [Ok(7), Err(error), Ok(9)]);
    }

    #[test]
    fn zeros_before_the_free_space_are_its_start() {
        let mut chunk = chunk_of(&[7, 8, 9]);
        chunk[48..52].copy_from_slice(&1000u32.to_le_bytes());
        chunk[32] = 12;
        assert_eq!(walk(&chunk).0, [Ok(7), Ok(8), Ok(9)]);
    }

    #[test]
    fn damaged_chunks_give_their_sound_records() {
        let ids = vec![Ok(7), Ok(8), Ok(9)];
        let mut chunk = chunk_of(&[7, 8, 9]);
        chunk[0] = b'X';
        assert_eq!(walk(&chunk), (ids.clone(), Some(ErrorKind::ChunkMagic(*b"XlfChnk\0"))));
        let mut chunk = chunk_of(&[7, 8, 9]);
        chunk[48..52].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(walk(&chunk), (ids.clone(), Some(ErrorKind::FreeSpaceOffset(u32::MAX))));
        let have = CHUNK_HEADER + 64 * 3;
        let chunk = chunk_of(&[7, 8, 9]);
        assert_eq!(walk(&chunk[..have]), (ids, Some(ErrorKind::ChunkCutShort { have })));
        assert_eq!(walk(&chunk[..have - 1]).0[..2], [Ok(7), Ok(8)],);
        assert_eq!(walk(&chunk[..5]), (vec![], Some(ErrorKind::ChunkCutShort { have: 5 })));
    }

    #[test]
    fn what_the_bookkeeping_does_not_reach_is_recovered() {
        let recovered = |chunk: &[u8]| -> Vec<(u64, bool)> {
            let (mut walk, _) = RecordWalk::new(chunk, true);
            std::iter::from_fn(|| walk.next(chunk))
                .flatten()
                .map(|found| (found.record.id, found.recovered))
                .collect()
        };
        // The header says that the second record is the last: the third is in the free space.
        let mut chunk = chunk_of(&[7, 8, 9]);
        chunk[32] = 8;
        chunk[48..52].copy_from_slice(&(CHUNK_HEADER as u32 + 128).to_le_bytes());
        assert_eq!(recovered(&chunk), [(7, false), (8, false), (9, true)]);
        // An ID out of the chunk's range does not count as live past damage.
        let mut chunk = chunk_of(&[7, 8, 900, 9]);
        chunk[CHUNK_HEADER + 64] = b'x';
        assert_eq!(recovered(&chunk), [(7, false), (900, true), (9, false)]);
        let mut chunk = chunk_of(&[7, 8]);
        chunk[0] = b'x';
        assert_eq!(recovered(&chunk), [(7, true), (8, true)]);
        // A record that is taken back leaves room for what is in it.
        let mut chunk = chunk_of(&[7, 8, 9]);
        chunk[48..52].copy_from_slice(&(CHUNK_HEADER as u32).to_le_bytes());
        let (mut walk, _) = RecordWalk::new(&chunk, true);
        let first = walk.next(&chunk).unwrap().unwrap();
        assert_eq!((first.record.id, first.recovered), (7, true));
        walk.reject(&first.record);
        assert_eq!(walk.next(&chunk).unwrap().unwrap().record.id, 8);
    }
}
