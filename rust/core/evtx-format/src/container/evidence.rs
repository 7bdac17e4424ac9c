//! What makes a frame a record: the signs that a frame can show, and tables of the signs that are enough.
//!
//! A chunk can hold frames that are not its records: in values, in padding, and in what an older use of the disk left.
//! One sign alone, such as a magic, proves little. Each row of a table lists signs that together leave no doubt.

use std::cell::OnceCell;

use bumpalo::Bump;

use super::chunk::{CHUNK_HEADER, ChunkHeader};
use super::record::{RECORD_FRAME, RECORD_HEADER, RECORD_MAGIC, Record, find_any, follows};
use crate::binxml::Reader;
use crate::binxml::names::Names;

/// Something that a frame shows, or the offset where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// The frame starts with the magic of a record.
    Magic,
    /// The size has space for a frame and ends in the chunk.
    PossibleSize,
    /// The copy of the size at the frame's end matches.
    SizesAgree,
    /// It does not match.
    SizesDiffer,

    /// The ID is the one after that of the record before.
    NextId,
    /// The ID is [later](follows) than that of the record before. Without a record before, the chunk header lists it.
    LaterId,
    /// The chunk header lists the ID.
    ListedId,
    /// The ID continues the live IDs, see [`Evidence::continues`].
    ContinuesIds,

    /// The frame ends where a record with the next ID starts, whose sizes agree.
    BeforeNextRecord,
    /// The frame ends where a frame with the next ID starts, or where the listed records end.
    LeadsToNextId,
    /// The frame ends where a record with the next ID or with sizes that agree starts, or where the listed records end.
    LeadsOn,
    /// The frame ends where a record starts that has the ID after the one that continues the live IDs.
    LeadsPastContinuation,
    /// Such a record comes anywhere later.
    ComesBeforeContinuation,
    /// The frame shows a row of [`CONTINUES`].
    Continues,

    /// The chunk header can be read.
    Header,
    /// It cannot.
    NoHeader,
    /// The header lists no record.
    SeemsEmpty,
    /// The frame starts before the end of the listed records.
    BeforeEnd,
    /// The frame starts where the listed records end.
    AtEnd,
    /// The frame starts there, or after it.
    FromEnd,
    /// The record before is damaged and comes after the end of the listed records.
    AfterUnlisted,

    /// The two sizes of the record around the frame agree.
    OuterSizesAgree,
    /// They do not.
    OuterSizesDiffer,
    /// The frame ends where the record around it ends. One copy of a size then serves both.
    SharesEnd,
    /// The frame ends in the record around it.
    EndsInOuter,
    /// The frame starts after the BinXML of the record around it.
    AfterBinXml,
    /// The same, or the BinXML of that record is damaged.
    NotInBinXml,
}

use Sign::*;

/// A table: a frame that shows all signs of one row is accepted.
pub(super) type Table = &'static [&'static [Sign]];

/// The records go on where the header says that they end: the header is stale or forged.
pub(super) const CONTINUES: Table = &[
    &[Magic, PossibleSize, ContinuesIds, SizesAgree],
    &[Magic, PossibleSize, ContinuesIds, BeforeNextRecord],
    // Its size is damaged.
    &[Magic, ContinuesIds, ComesBeforeContinuation],
    // Its magic or its ID is damaged.
    &[PossibleSize, SizesAgree, LeadsPastContinuation],
];

/// A record starts where the record before ends, though its magic is damaged.
pub(super) const DAMAGED_MAGIC: Table = &[&[PossibleSize, NextId, SizesAgree]];

/// A frame with a magic and a possible size is a record where the record before ends.
pub(super) const AT_EXPECTED_OFFSET: Table = &[&[Header], &[SizesAgree], &[BeforeNextRecord]];

/// The walk goes on at this record after bytes that are not a record.
pub(super) const AFTER_DAMAGE: Table = &[
    &[SizesDiffer, NextId, LeadsToNextId],
    &[SizesAgree, NoHeader],
    &[SizesAgree, BeforeEnd, LaterId],
    &[SizesAgree, BeforeEnd, LeadsOn],
    // The free space of exported logs has records of an earlier export, whose IDs go on too.
    &[SizesAgree, FromEnd, LaterId, ListedId],
    &[SizesAgree, FromEnd, SeemsEmpty, BeforeNextRecord],
    &[SizesAgree, AtEnd, Continues],
    &[SizesAgree, FromEnd, AfterUnlisted, NextId],
];

/// A frame inside a record has a size that can be trusted.
const SIZED_INSIDE: Table = &[&[SizesAgree], &[SharesEnd], &[NextId, LeadsToNextId]];

/// A frame inside a record is a record, which ends the one around it. A value of a valid record does not count.
const INSIDE: Table = &[
    // After its BinXML a record has only padding, so a frame there is a hidden record.
    &[AfterBinXml, OuterSizesAgree, EndsInOuter],
    &[NotInBinXml, LaterId],
    &[OuterSizesDiffer, LaterId],
    &[OuterSizesDiffer, LeadsOn],
];

/// What a walk knows about its chunk so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// The chunk header, if it can be read.
    pub(super) header: Option<ChunkHeader>,
    /// Chunk offset of the end of the listed records: the free space, or the end of the chunk.
    pub(super) end: usize,
    /// ID of the last live record.
    pub(super) last: Option<u64>,
}

impl Known {
    /// Whether the header lists no record.
    pub(super) fn seems_empty(&self) -> bool {
        self.end <= CHUNK_HEADER
    }

    /// The ID of the last record that the header lists, if the walk has not reached it.
    pub(super) fn unreached(&self) -> Option<u64> {
        let listed = *self.header?.record_ids()?.end();
        self.last.is_none_or(|last| last < listed).then_some(listed)
    }
}

/// The evidence for frames at some offset of a walk.
pub(super) struct Evidence<'w, 'c> {
    known: &'w Known,
    chunk: &'c [u8],
    /// The ID and the chunk offset of the record before.
    before: Option<(u64, usize)>,
    /// Whether the record before is damaged and comes after the end of the listed records.
    after_unlisted: bool,
    /// The record around the frames, and the chunk offset of the end of its BinXML; `None` if that is damaged.
    outer: Option<(Record, OnceCell<Option<usize>>)>,
}

impl<'w, 'c> Evidence<'w, 'c> {
    /// The evidence for frames after a record, whose ID and chunk offset are given.
    pub(super) fn new(known: &'w Known, chunk: &'c [u8], before: Option<(u64, usize)>) -> Self {
        Evidence {
            known,
            chunk,
            before,
            after_unlisted: false,
            outer: None,
        }
    }

    /// Whether the frame at a chunk offset continues the live records, after the end of the listed ones.
    pub(super) fn continues_at(&self, at: usize) -> bool {
        Record::unchecked(self.chunk, at).is_some_and(|frame| self.shows(CONTINUES, &frame))
    }

    /// Chunk offset of the next record after damage, from `from` on.
    pub(super) fn next_record(mut self, from: usize) -> Option<usize> {
        let end = self.known.end;
        self.after_unlisted = self.before.is_some_and(|(_, at)| at >= end && from > at);
        // Records in the free space are old, unless the live ones end too early or the header lists none.
        let goes_on = self.after_unlisted || self.known.seems_empty() || self.known.unreached().is_some();
        let until = if goes_on { self.chunk.len() } else { end };
        find_any(self.chunk, from..until, |frame| self.shows(AFTER_DAMAGE, frame))
    }

    /// Chunk offset of another record that starts inside a record.
    pub(super) fn record_inside(mut self, outer: &Record) -> Option<usize> {
        self.outer = Some((*outer, OnceCell::new()));
        let span = outer.offset as usize + RECORD_HEADER..outer.end();
        find_any(self.chunk, span, |frame| {
            self.shows(SIZED_INSIDE, frame) && self.shows(INSIDE, frame)
        })
    }

    /// Whether a frame shows all signs of a row.
    pub(super) fn shows(&self, table: Table, frame: &Record) -> bool {
        table.iter().any(|row| row.iter().all(|&sign| self.has(sign, frame)))
    }

    fn has(&self, sign: Sign, frame: &Record) -> bool {
        let (chunk, at, end) = (self.chunk, frame.offset as usize, self.known.end);
        let listed = || self.known.header.and_then(|header| header.record_ids());
        let is_next = |next: &Record| frame.id.checked_add(1) == Some(next.id);
        let outer_sizes_agree = || (self.outer.as_ref()).is_some_and(|(outer, _)| outer.size_copy_matches(chunk));
        match sign {
            Magic => chunk[at..].starts_with(&RECORD_MAGIC),
            PossibleSize => frame.size as usize >= RECORD_FRAME && frame.end() <= chunk.len(),
            SizesAgree => frame.size_copy_matches(chunk),
            SizesDiffer => !frame.size_copy_matches(chunk),

            NextId => (self.before).is_some_and(|(before, _)| before.checked_add(1) == Some(frame.id)),
            LaterId => match self.before {
                Some(before) => follows(before, frame),
                None => self.has(ListedId, frame),
            },
            ListedId => listed().is_some_and(|ids| ids.contains(&frame.id)),
            ContinuesIds => self.continues(at, frame, 1),

            BeforeNextRecord => frame.is_before_next(chunk),
            LeadsToNextId => frame.end() == end || Record::header(chunk, frame.end()).is_ok_and(|next| is_next(&next)),
            LeadsOn => {
                let is_record = |next: Record| next.size_copy_matches(chunk) || next.id == frame.id.wrapping_add(1);
                frame.end() >= end || Record::read(chunk, frame.end()).is_ok_and(is_record)
            }
            LeadsPastContinuation => Record::read(chunk, frame.end())
                .is_ok_and(|next| self.continues(at, &next, 2) && next.size_copy_matches(chunk)),
            ComesBeforeContinuation => find_any(chunk, at + RECORD_HEADER..chunk.len(), |next| {
                self.continues(at, next, 2) && next.size_copy_matches(chunk)
            })
            .is_some(),
            Continues => self.shows(CONTINUES, frame),

            Header => self.known.header.is_some(),
            NoHeader => self.known.header.is_none(),
            SeemsEmpty => self.known.seems_empty(),
            BeforeEnd => at < end,
            AtEnd => at == end,
            FromEnd => at >= end,
            AfterUnlisted => self.after_unlisted,

            OuterSizesAgree => outer_sizes_agree(),
            OuterSizesDiffer => !outer_sizes_agree(),
            SharesEnd => (self.outer.as_ref()).is_some_and(|(outer, _)| frame.end() == outer.end()),
            EndsInOuter => (self.outer.as_ref()).is_some_and(|(outer, _)| frame.end() <= outer.end()),
            AfterBinXml => self.end_of_outer_binxml().is_some_and(|end| at >= end),
            NotInBinXml => self.end_of_outer_binxml().is_none_or(|end| at >= end),
        }
    }

    /// Whether a record has the ID `step` after the last live one. For the frame where the listed records end, at `at`,
    /// the last listed ID counts too, as the last live record may be damaged. The first record of a chunk has any ID.
    fn continues(&self, at: usize, record: &Record, step: u64) -> bool {
        let listed = self.known.header.and_then(|header| header.record_ids());
        let listed = listed.filter(|_| at == self.known.end).map(|ids| *ids.end());
        let mut known = self.known.last.into_iter().chain(listed);
        self.known.last.is_none() && at == CHUNK_HEADER && step == 1
            || known.any(|id| id.checked_add(step) == Some(record.id))
    }

    /// Few frames inside a record need this, so the BinXML of the others is not read.
    fn end_of_outer_binxml(&self) -> Option<usize> {
        let (outer, end) = self.outer.as_ref()?;
        *end.get_or_init(|| binxml_end(self.chunk, outer))
    }
}

/// Chunk offset of the end of a record's BinXML; `None` if the BinXML is damaged.
#[cold]
pub(super) fn binxml_end(chunk: &[u8], record: &Record) -> Option<usize> {
    let arena = Bump::new();
    let names = Names::new(chunk, &arena);
    Reader::new(chunk, &names, &arena).stream_end(record.binxml())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::container::chunk::{CHUNK_MAGIC, CHUNK_SIZE};

    pub(crate) const SIZE: usize = 64;

    /// Where the record with a number starts in the chunks below.
    pub(crate) fn offset_of(number: usize) -> usize {
        CHUNK_HEADER + SIZE * number
    }

    /// A chunk of records with these IDs, each of 64 bytes, with an instance that has no values.
    pub(crate) fn chunk_of(ids: &[u64]) -> Vec<u8> {
        let mut chunk = vec![0; CHUNK_SIZE];
        chunk[..8].copy_from_slice(&CHUNK_MAGIC);
        chunk[24..32].copy_from_slice(&ids[0].to_le_bytes());
        chunk[32..40].copy_from_slice(&ids[ids.len() - 1].to_le_bytes());
        for (i, id) in ids.iter().enumerate() {
            let record = &mut chunk[offset_of(i)..offset_of(i + 1)];
            record[..4].copy_from_slice(&RECORD_MAGIC);
            record[4..8].copy_from_slice(&(SIZE as u32).to_le_bytes());
            record[8..16].copy_from_slice(&id.to_le_bytes());
            record[RECORD_HEADER..RECORD_HEADER + 6].copy_from_slice(&[0x0f, 1, 1, 0, 0x0c, 1]);
            record[SIZE - 4..].copy_from_slice(&(SIZE as u32).to_le_bytes());
        }
        put(&mut chunk, 44, offset_of(ids.len() - 1) as u32);
        put(&mut chunk, 48, offset_of(ids.len()) as u32);
        chunk
    }

    pub(crate) fn put(chunk: &mut [u8], at: usize, number: u32) {
        chunk[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }

    /// A change of a chunk: four bytes at an offset.
    pub(crate) type Change = (usize, u32);

    /// Destroys the magic of a record.
    pub(crate) fn magic(number: usize) -> Change {
        (offset_of(number), 0x78)
    }

    pub(crate) fn size(number: usize, bytes: usize) -> Change {
        (offset_of(number) + 4, bytes as u32)
    }

    /// The copy of the size at the end of a record.
    pub(crate) fn copy(number: usize, bytes: usize) -> Change {
        (offset_of(number + 1) - 4, bytes as u32)
    }

    pub(crate) fn id(number: usize, id: u32) -> Change {
        (offset_of(number) + 8, id)
    }

    pub(crate) fn last_id(id: u32) -> Change {
        (32, id)
    }

    pub(crate) fn free_space(at: usize) -> Change {
        (48, at as u32)
    }

    /// A [`chunk_of`] these IDs with some changes.
    pub(crate) fn changed(ids: &[u64], changes: &[Change]) -> Vec<u8> {
        let mut chunk = chunk_of(ids);
        changes.iter().for_each(|&(at, number)| put(&mut chunk, at, number));
        chunk
    }

    /// The rows that the frame at `offset_of(2)` shows in a chunk of the records 7 to 10, after these changes. The
    /// record before has the ID 8 and starts at `offset_of(1)`.
    fn rows(table: Table, changes: &[Change], prepare: impl Fn(&mut Evidence<'_, '_>)) -> Vec<usize> {
        let chunk = changed(&[7, 8, 9, 10], changes);
        let header = ChunkHeader::read(&chunk).ok();
        let known = Known {
            header,
            end: header.map_or(CHUNK_SIZE, |header| header.free_space as usize),
            last: Some(8),
        };
        let mut evidence = Evidence::new(&known, &chunk, Some((8, offset_of(1))));
        prepare(&mut evidence);
        let frame = Record::unchecked(&chunk, offset_of(2)).expect("a header");
        let shows = |row: &&'static [Sign]| row.iter().all(|&sign| evidence.has(sign, &frame));
        table
            .iter()
            .enumerate()
            .filter(|(_, row)| shows(row))
            .map(|(i, _)| i)
            .collect()
    }

    #[test]
    fn each_row_after_damage_is_enough() {
        let rows_if = |after_unlisted: bool, changes: &[Change]| {
            rows(AFTER_DAMAGE, changes, |it| it.after_unlisted = after_unlisted)
        };
        let (other_id, no_next, no_header) = (id(2, 900), magic(3), (0, 0));
        let ends_at = |number: usize| free_space(offset_of(number));
        for (changes, expected) in [
            (&[][..], &[2, 3][..]),
            (&[copy(2, 0)], &[0]),
            (&[copy(2, 0), no_next], &[]),
            (&[no_header, other_id, no_next], &[1]),
            (&[no_next], &[2]),
            (&[other_id], &[3]),
            (&[other_id, no_next], &[]),
            (&[ends_at(1)], &[4]),
            (&[ends_at(1), last_id(8)], &[]),
            (&[ends_at(0), last_id(8)], &[5]),
            (&[ends_at(2), last_id(8)], &[6]),
        ] {
            assert_eq!(rows_if(false, changes), expected, "{changes:?}");
        }
        assert_eq!(rows_if(true, &[ends_at(1), last_id(8)]), [7]);
    }

    #[test]
    fn each_row_where_the_listed_records_end_is_enough() {
        let (other_id, no_next, no_size) = (id(2, 900), magic(3), size(2, 0));
        for (changes, expected) in [
            (&[no_next][..], &[0][..]),
            (&[copy(2, 0)], &[1, 2]),
            (&[no_size], &[2]),
            (&[magic(2)], &[3]),
            (&[other_id], &[3]),
            (&[other_id, no_next], &[]),
            (&[no_size, no_next], &[]),
        ] {
            let listed = [free_space(offset_of(2)), last_id(8)];
            let rows = rows(CONTINUES, &[&listed[..], changes].concat(), |_| {});
            assert_eq!(rows, expected, "{changes:?}");
        }
    }

    #[test]
    fn each_row_at_the_expected_offset_is_enough() {
        let (no_next, no_header) = (magic(3), (0, 0));
        for (changes, expected) in [
            (&[][..], &[0, 1, 2][..]),
            (&[copy(2, 0), no_next], &[0]),
            (&[no_header, no_next], &[1]),
            (&[no_header, copy(2, 0)], &[2]),
            (&[no_header, copy(2, 0), no_next], &[]),
        ] {
            assert_eq!(rows(AT_EXPECTED_OFFSET, changes, |_| {}), expected, "{changes:?}");
        }
        for (change, expected) in [(magic(2), &[0][..]), (id(2, 900), &[]), (copy(2, 0), &[])] {
            assert_eq!(rows(DAMAGED_MAGIC, &[change], |_| {}), expected, "{change:?}");
        }
    }

    #[test]
    fn each_row_inside_a_record_is_enough() {
        let inside = |table: Table, changes: &[Change]| {
            // The record before claims the bytes of this one too.
            rows(table, &[&[size(1, 2 * SIZE)], changes].concat(), |it| {
                let outer = Record::read(it.chunk, offset_of(1)).expect("a record");
                it.outer = Some((outer, OnceCell::new()));
            })
        };
        let (other_id, no_next, outer_copy) = (id(2, 900), magic(3), copy(2, 2 * SIZE));
        assert_eq!(inside(SIZED_INSIDE, &[]), [0, 1, 2]);
        assert_eq!(inside(SIZED_INSIDE, &[outer_copy, no_next]), [1]);
        let binxml = offset_of(1) + RECORD_HEADER;
        let damaged = (binxml, 0x7f);
        // A value of 64 bytes, in which the frame starts.
        let (count, value) = ((binxml + 14, 1), (binxml + 18, 64 | (14 << 16)));
        for (changes, expected) in [
            (&[][..], &[1, 2, 3][..]),
            (&[other_id], &[3]),
            (&[other_id, no_next], &[]),
            (&[other_id, outer_copy], &[0]),
            (&[damaged, outer_copy], &[1]),
            (&[damaged, outer_copy, other_id], &[]),
            (&[count, value, no_next], &[2]),
            (&[count, value, outer_copy], &[]),
        ] {
            assert_eq!(inside(INSIDE, changes), expected, "{changes:?}");
        }
    }
}
