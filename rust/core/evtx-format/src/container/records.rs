//! The walk over the records of a chunk.

use std::ops::Range;

use memchr::memmem;

use super::chunk::{CHUNK_HEADER, CHUNK_SIZE, ChunkHeader};
use super::evidence::{AT_EXPECTED_OFFSET, DAMAGED_MAGIC, Evidence, Known, binxml_end};
use super::header::FileHeader;
use super::record::{
    RECORD_FRAME, RECORD_HEADER, RECORD_MAGIC, Record, count_magics, ends_with_its_size, find, follows,
};
use crate::error::{Error, ErrorKind, Result};

/// How often one record is searched for records inside it. Each one found makes the record shorter.
const MAX_INSIDE: usize = 8;

/// A record that a walk has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundRecord {
    /// The record. If its stored size is wrong, this has the size that the next record or the free space gives it.
    pub record: Record,
    /// How the walk came to it.
    pub origin: Origin,
    /// Whether its frame is damaged. [`RecordWalk::damage`] returns the error.
    pub is_damaged: bool,
}

/// How a walk came to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It is live.
    Live,
    /// The frames lead to it, but it may not be live: in slack, a stray chunk, or a chunk whose header cannot be read.
    Recovered,
    /// It was carved from bytes that the live records do not reach. It can be noise until its BinXML is read.
    Carved,
}

impl Origin {
    /// Whether the record was recovered: it may not be live.
    #[inline]
    pub fn is_recovered(self) -> bool {
        self != Origin::Live
    }
}

/// A walk over the records of a chunk, in the order of their offsets. It borrows no bytes: the caller passes the chunk
/// to each step, so that a walk can be left and continued later.
///
/// The frames decide which records there are, not the chunk header. The header says where the records end, but the walk
/// goes on after that offset if a record there continues the IDs of the live records. The records of a chunk that
/// Windows has only begun are live if the rest of the log [promises](PromisedIds) the ID of the first. Otherwise they
/// are slack, which an older use of the disk has left. Tables in `evidence.rs` list what makes a frame a record.
#[derive(Debug, Clone)]
pub struct RecordWalk {
    step: Step,
    /// The bytes to carve before that step.
    carve: Range<usize>,
    known: Known,
    /// Chunk offset of a record after the end of the listed ones that is known to be live.
    known_beyond: Option<usize>,
    /// Whether no record is live: the chunk is new, and the log does not promise its records.
    is_leftover: bool,
    /// The origin of the records to which frames lead.
    framed: Origin,
    /// Whether records are also carved from the bytes between the live ones.
    recover: bool,
    /// What is wrong with the frame of the last record.
    damage: Option<Error>,
    /// The records that start before this chunk offset have valid frames and no other record in them.
    valid_until: usize,
}

/// What a walk does next.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Reads the record that should start at a chunk offset.
    Record(usize),
    /// The records have ended. Reports the end if it is too early.
    End,
    /// Nothing is left, not even an error.
    Done,
}

/// What is at an offset where a record should start.
enum Candidate {
    /// A live record, and what is wrong with its frame.
    Live(Record, Option<Error>),
    /// No record that continues those that the header lists, but slack, or nothing.
    Slack,
    /// No record, though there should be one.
    Damage(Error),
}

/// The IDs that a log promises to a chunk [that is new](ChunkHeader::is_new): the one after the last record of the chunk
/// before, and the one that the file header keeps for the next record. A new chunk can have live records, if the log was
/// copied while it was open. But its clusters can also hold old records of this log or of *others*.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromisedIds {
    after_previous: Option<u64>,
    next_of_log: Option<u64>,
}

impl PromisedIds {
    /// The promise of a file header to every chunk. The ID 1 does not count, because each new log has it.
    pub fn of_log(header: &FileHeader) -> Self {
        PromisedIds {
            after_previous: None,
            next_of_log: Some(header.next_record_id).filter(|&id| id > 1),
        }
    }

    /// The same after a chunk whose last record has this ID.
    pub fn after(self, last: Option<u64>) -> Self {
        PromisedIds {
            after_previous: last.and_then(|last| last.checked_add(1)),
            ..self
        }
    }

    /// The same after the chunk with these bytes.
    pub fn after_chunk(self, chunk: &[u8]) -> Self {
        let (mut walk, _) = RecordWalk::new(chunk, self.after(None), false);
        while walk.next(chunk).is_some() {}
        self.after(walk.last_listed())
    }

    /// Whether the promise decides if records of a chunk are live: it is new and seems empty, but has some.
    pub fn matter_to(chunk: &[u8]) -> bool {
        let header = ChunkHeader::read(chunk);
        let seems_empty = header.is_ok_and(|header| header.is_new() && header.free_space as usize <= CHUNK_HEADER);
        seems_empty && memmem::find(&chunk[CHUNK_HEADER.min(chunk.len())..], &RECORD_MAGIC).is_some()
    }

    /// Whether the first record of a chunk has one of the IDs. If that record is damaged, a later one can follow.
    fn holds(self, chunk: &[u8]) -> bool {
        let first = Record::read(chunk, CHUNK_HEADER).ok();
        let first = first.filter(|record| record.size_copy_matches(chunk) || record.is_before_next(chunk));
        let mut ids = self.after_previous.into_iter().chain(self.next_of_log);
        ids.any(|id| match first {
            Some(first) => first.id == id,
            None => {
                let before = (id.saturating_sub(1), CHUNK_HEADER);
                let is_later = |record: &Record| follows(before, record) && record.is_before_next(chunk);
                find(chunk, CHUNK_HEADER..chunk.len(), is_later).is_some()
            }
        })
    }
}

impl RecordWalk {
    /// A walk over the records of a chunk, and what is wrong with the chunk as a whole.
    ///
    /// A chunk that is cut short is walked to the cut. A chunk without its magic, or with its free space out of range,
    /// is walked to its end, and a record in it counts if its two sizes agree or the next record follows it.
    ///
    /// `promised` are the IDs that the log promises for the first record of this chunk.
    ///
    /// With `recover`, the walk also carves records to which the live ones do not lead: between a damaged record and
    /// the next live one, and after the last, left by an older use of the chunk. The live records are the same.
    pub fn new(chunk: &[u8], promised: PromisedIds, recover: bool) -> (Self, Option<Error>) {
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
        let is_leftover = PromisedIds::matter_to(chunk) && !promised.holds(chunk);
        // Slack is walked over as if the chunk was full.
        let free_space = match header {
            Some(header) if !is_leftover => header.free_space as usize,
            _ => CHUNK_SIZE,
        };
        let mut walk = RecordWalk {
            step: if is_leftover && !recover {
                Step::Done
            } else {
                Step::Record(CHUNK_HEADER)
            },
            carve: 0..0,
            known: Known {
                header,
                end: free_space.min(chunk.len()),
                last: None,
            },
            known_beyond: None,
            is_leftover,
            framed: if is_leftover || header.is_none() && recover {
                Origin::Recovered
            } else {
                Origin::Live
            },
            recover,
            damage: None,
            valid_until: 0,
        };
        if header.is_some() {
            walk.valid_until = walk.valid_prefix(chunk);
        }
        (walk, damage)
    }

    /// The walk, in which no record counts as live.
    pub fn without_live(self) -> Self {
        RecordWalk {
            framed: Origin::Recovered,
            ..self
        }
    }

    /// A walk that only carves the records that start in a range of chunk offsets.
    pub fn carving(chunk: &[u8], starts: Range<usize>) -> Self {
        let known = Known {
            header: None,
            end: chunk.len(),
            last: None,
        };
        RecordWalk {
            step: Step::Done,
            carve: starts,
            known,
            known_beyond: None,
            is_leftover: true,
            framed: Origin::Recovered,
            recover: true,
            damage: None,
            valid_until: 0,
        }
    }

    /// Chunk offset of the end of the valid prefix: the records from the first on that are each followed by the next. 0
    /// if one of them may have another record in it, which is so if it has more magics than records. In logs as Windows
    /// writes them, it ends with the last record but one.
    fn valid_prefix(&self, chunk: &[u8]) -> usize {
        let (mut at, mut count) = (CHUNK_HEADER, 0);
        while at < self.known.end
            && let Ok(record) = Record::read(chunk, at)
            && let Some(left) = record.is_followed(chunk)
        {
            at = record.end();
            count += 1 + left;
        }
        let prefix = chunk.get(CHUNK_HEADER..at).unwrap_or_default();
        if count_magics(prefix) > count { 0 } else { at }
    }

    /// The next record; `None` at the end.
    ///
    /// A record ends where its size says, unless another record starts inside it, or where the next starts if the size
    /// cannot be right. After bytes that are not a record, the walk goes on at the next record that is beyond doubt.
    ///
    /// # Errors
    /// Why no record starts where one should, or [`ErrorKind::LastRecord`] at the end. The walk goes on after an error.
    // Inlined: a call for each record takes a tenth of the time of count(*).
    #[inline(always)]
    pub fn next(&mut self, chunk: &[u8]) -> Option<Result<FoundRecord>> {
        if let Step::Record(at) = self.step
            && at < self.valid_until
            && !self.recover
            && let Ok(record) = Record::read(chunk, at)
        {
            self.step = Step::Record(record.end());
            self.known.last = Some(record.id);
            return Some(Ok(FoundRecord {
                record,
                origin: Origin::Live,
                is_damaged: false,
            }));
        }
        self.next_carefully(chunk)
    }

    #[inline(never)]
    fn next_carefully(&mut self, chunk: &[u8]) -> Option<Result<FoundRecord>> {
        loop {
            if let Some(record) = self.carve(chunk) {
                return Some(Ok(FoundRecord {
                    record,
                    origin: Origin::Carved,
                    is_damaged: false,
                }));
            }
            let at = match self.step {
                Step::Record(at) => at,
                Step::End => {
                    self.step = Step::Done;
                    return self.unreached(chunk).map(Err);
                }
                Step::Done => return None,
            };
            let error = match self.candidate(chunk, at) {
                Candidate::Live(record, damage) => return Some(Ok(self.found(chunk, record, damage))),
                Candidate::Slack => None,
                Candidate::Damage(error) => Some(error),
            };
            let next = self.evidence(chunk, at).next_record(at + usize::from(error.is_some()));
            self.known_beyond = next.or(self.known_beyond);
            if self.recover {
                self.carve = at..next.unwrap_or(chunk.len());
            }
            self.step = next.map_or(Step::End, Step::Record);
            let kind = || Record::read(chunk, at).map_or_else(|error| error.kind, |_| ErrorKind::LeftoverRecord);
            match (next, error) {
                (Some(_), None) => return Some(Err(Error::new(at, kind()))),
                // Anything may be between slack records, and after the last record of a damaged chunk.
                (_, Some(_)) if self.is_leftover => {}
                (Some(_), Some(error)) => return Some(Err(error)),
                (None, Some(error)) if self.known.header.is_some() && !is_blank(error.kind) => {
                    self.step = Step::Done;
                    return Some(Err(error));
                }
                (None, _) => {}
            }
        }
    }

    /// What a walk at a chunk offset has found out about the record before.
    fn evidence<'w, 'c>(&'w self, chunk: &'c [u8], at: usize) -> Evidence<'w, 'c> {
        Evidence::new(&self.known, chunk, self.known.last.map(|id| (id, at)))
    }

    /// What is at a chunk offset where a record should start.
    fn candidate(&self, chunk: &[u8], at: usize) -> Candidate {
        let is_listed = at < self.known.end || self.known_beyond == Some(at);
        if !is_listed && !self.evidence(chunk, at).continues_at(at) {
            return Candidate::Slack;
        }
        match Record::read(chunk, at) {
            Ok(record) if at < self.valid_until => Candidate::Live(record, None),
            _ => self.framed(chunk, at).unwrap_or_else(Candidate::Damage),
        }
    }

    /// Moves after a record that is not carved.
    fn found(&mut self, chunk: &[u8], record: Record, damage: Option<Error>) -> FoundRecord {
        self.step = Step::Record(record.end());
        self.known.last = Some(self.id_between(chunk, &record));
        self.damage = damage;
        self.follow_claim(chunk, &record);
        if self.recover {
            self.carve = unused(chunk, &record);
        }
        FoundRecord {
            record,
            origin: self.framed,
            is_damaged: damage.is_some(),
        }
    }

    /// Notes the end that a record claims, with another record inside, if it is after that of the chunk and the next
    /// record is there. The inner record has that ID too, as tools that hide a record number the later ones anew.
    fn follow_claim(&mut self, chunk: &[u8], record: &Record) {
        if let Some(Error {
            kind: ErrorKind::RecordSpan { claimed, .. },
            ..
        }) = self.damage
        {
            let end = record.offset as usize + claimed as usize;
            let is_next = |next: Record| record.id.checked_add(1) == Some(next.id) && next.size_copy_matches(chunk);
            if end >= self.known.end && Record::read(chunk, end).is_ok_and(is_next) {
                self.known_beyond = Some(end);
            }
        }
    }

    /// The ID of a record. If the IDs of the records around it leave one ID between them, it is that one.
    fn id_between(&self, chunk: &[u8], record: &Record) -> u64 {
        let due = self.known.last.and_then(|last| last.checked_add(1));
        let is_due = |due: &u64| {
            let next = Record::read(chunk, record.end());
            *due != record.id && next.is_ok_and(|next| due.checked_add(1) == Some(next.id))
        };
        due.filter(is_due).unwrap_or(record.id)
    }

    /// What is wrong with the frame of the record that was found last among the live ones.
    pub fn damage(&self) -> Option<Error> {
        self.damage
    }

    /// Rejects the carved record that came last, because it is noise. The walk carves again from its next byte.
    pub fn reject(&mut self, record: &Record) {
        self.carve.start = record.offset as usize + 1;
    }

    /// The ID of the last record. The next chunk starts with the ID after it. `None` if the header says that this chunk is
    /// empty: a chunk that needs a promise makes none, so that a caller reads no more than one chunk for it.
    pub fn last_listed(&self) -> Option<u64> {
        self.known
            .last
            .filter(|_| !self.known.seems_empty() && !self.is_leftover)
    }

    /// Whether no record is live. With `recover` the walk returns them nevertheless, without errors between them.
    pub fn is_leftover(&self) -> bool {
        self.is_leftover
    }

    /// An error if the records end before the last that the header lists. A chunk that is cut short has its own error.
    fn unreached(&self, chunk: &[u8]) -> Option<Error> {
        let id = self.known.unreached().filter(|_| chunk.len() >= CHUNK_SIZE)?;
        Some(Error::new(self.known.end, ErrorKind::LastRecord { id }))
    }

    /// The record whose frame starts at a chunk offset, and what is wrong with the frame.
    ///
    /// # Errors
    /// Why no frame starts there, or why the end of the record is not known.
    fn framed(&self, chunk: &[u8], at: usize) -> Result<Candidate> {
        let (mut record, mut damage) = match Record::header(chunk, at) {
            Ok(record) => (record, None),
            Err(error) => {
                let has_magic_only = |record: &Record| self.evidence(chunk, at).shows(DAMAGED_MAGIC, record);
                let record = Record::unchecked(chunk, at).filter(has_magic_only);
                (record.ok_or(error)?, Some(error))
            }
        };
        // An ID that does not follow is trusted less than the ID of the record before.
        let before = match self.known.last {
            Some(last) if last.checked_add(1) != Some(record.id) => (last, at),
            _ => (record.id, at),
        };
        let evidence = || Evidence::new(&self.known, chunk, Some(before));
        let available = chunk.len() - at;
        let size = record.size;
        let wrong_size = Error::new(at, ErrorKind::RecordSize { size, available });
        if (size as usize) < RECORD_FRAME || size as usize > available {
            let next = evidence().next_record(at + RECORD_HEADER);
            let end = next.or_else(|| Some(self.known.end).filter(|&end| ends_with_its_size(chunk, at, end)));
            let end = end.filter(|end| end - at >= RECORD_FRAME).ok_or(wrong_size)?;
            record.size = (end - at) as u32;
            damage = Some(wrong_size);
        } else if !evidence().shows(AT_EXPECTED_OFFSET, &record) {
            return Err(wrong_size);
        } else if !record.size_copy_matches(chunk)
            && Record::header(chunk, record.end()).is_err()
            && evidence().record_inside(&record).is_none()
        {
            // The size may be too small, or too large if this is the last record.
            let next = evidence().next_record(record.end()).unwrap_or(self.known.end);
            if ends_with_its_size(chunk, at, next) {
                record.size = (next - at) as u32;
            }
        }
        // The part of the record that is left can have another record in it.
        for _ in 0..MAX_INSIDE {
            let Some(next) = evidence().record_inside(&record) else {
                break;
            };
            // Not even space for a frame is left.
            if next - at < RECORD_FRAME {
                return Err(Error::new(
                    at,
                    ErrorKind::RecordSize {
                        size,
                        available: next - at,
                    },
                ));
            }
            record.size = (next - at) as u32;
        }
        if record.size != size {
            let kind = ErrorKind::RecordSpan {
                claimed: size,
                actual: record.size,
            };
            damage.get_or_insert(Error::new(at, kind));
        }
        Ok(Candidate::Live(record, damage))
    }

    /// The next record in the bytes to carve.
    fn carve(&mut self, chunk: &[u8]) -> Option<Record> {
        let Range { start, end } = self.carve;
        if start >= end {
            return None;
        }
        // Windows does not clear the padding of records. So in slack, the first bytes of an older record can be in the
        // padding of a newer one (seen in a log that was never written).
        let last = if self.is_leftover { chunk.len() } else { end };
        let found = find(chunk, start..end, |record| record.end() <= last);
        let record = found.and_then(|at| Record::read(chunk, at).ok());
        // It can hide another one after its BinXML.
        let next = record.map(|record| match unused(chunk, &record) {
            hidden if hidden.is_empty() => record.end(),
            hidden => hidden.start,
        });
        self.carve = next.map_or(0..0, |next| next..end);
        record
    }
}

/// The bytes of a record after its BinXML if the record has a magic in it, else an empty range.
fn unused(chunk: &[u8], record: &Record) -> Range<usize> {
    let bytes = chunk.get(record.binxml()).unwrap_or_default();
    let may_be_there = memmem::find(bytes, &RECORD_MAGIC).is_some();
    let end = if may_be_there { binxml_end(chunk, record) } else { None };
    end.map_or(0..0, |end| end..record.binxml().end)
}

/// Whether zeros, or too few bytes for a header, are in place of a record, as before a free space that is put too late.
fn is_blank(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::RecordMagic([0, 0, 0, 0]) | ErrorKind::Truncated { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::evidence::tests::{
        Change, SIZE, changed, chunk_of, copy, free_space, id, last_id, magic, offset_of, size,
    };

    type Item = std::result::Result<u64, ErrorKind>;

    const NO_PROMISE: PromisedIds = PromisedIds {
        after_previous: None,
        next_of_log: None,
    };
    const NO_MAGIC: Item = Err(ErrorKind::RecordMagic(*b"x\0\0\0"));

    fn walk(chunk: &[u8]) -> (Vec<Item>, Option<ErrorKind>) {
        let (walk, damage) = RecordWalk::new(chunk, NO_PROMISE, false);
        (items(walk, chunk), damage.map(|error| error.kind))
    }

    fn items(mut walk: RecordWalk, chunk: &[u8]) -> Vec<Item> {
        let items = std::iter::from_fn(|| walk.next(chunk));
        items
            .map(|item| item.map(|found| found.record.id).map_err(|error| error.kind))
            .collect()
    }

    /// The items of a walk over a chunk of these records after these changes.
    fn walk_changed(ids: &[u64], changes: &[Change]) -> Vec<Item> {
        walk(&changed(ids, changes)).0
    }

    /// What the walk finds, with the sizes and the damage of frames.
    fn frames(chunk: &[u8]) -> Vec<(u64, u32, Option<ErrorKind>)> {
        let (mut walk, _) = RecordWalk::new(chunk, NO_PROMISE, false);
        let mut frames = Vec::new();
        while let Some(found) = walk.next(chunk) {
            let found = found.expect("a record");
            let damage = walk.damage().filter(|_| found.is_damaged).map(|error| error.kind);
            frames.push((found.record.id, found.record.size, damage));
        }
        frames
    }

    /// The IDs that a walk with `recover` finds, and whether they were recovered.
    fn recovered(chunk: &[u8]) -> Vec<(u64, bool)> {
        let (mut walk, _) = RecordWalk::new(chunk, NO_PROMISE, true);
        let found = std::iter::from_fn(|| walk.next(chunk)).flatten();
        found
            .map(|found| (found.record.id, found.origin.is_recovered()))
            .collect()
    }

    #[test]
    fn a_valid_chunk_gives_its_records_whatever_their_ids() {
        assert_eq!(walk(&chunk_of(&[7, 8, 9])), (vec![Ok(7), Ok(8), Ok(9)], None));
        let ids = [7, 0, 7, u64::MAX, 9];
        assert_eq!(walk(&chunk_of(&ids)).0, ids.map(Ok));
    }

    #[test]
    fn records_go_on_after_a_damaged_one_that_the_header_lists() {
        // The header is stale, and the only record that it lists is gone.
        let stale = [last_id(7), free_space(offset_of(1))];
        let mut chunk = changed(&[7, 8, 9], &stale);
        chunk[offset_of(0)..offset_of(1)].fill(0);
        assert_eq!(walk(&chunk).0[1..], [Ok(8), Ok(9)]);
        // The one after it has a wrong size.
        let wrong = [&stale[..], &[size(1, 0x80_0000)]].concat();
        assert_eq!(walk_changed(&[7, 8, 9], &wrong), [Ok(7), Ok(8), Ok(9)]);
        // The one after it hides another, whose ID the next has too.
        let hides = [&stale[..], &[size(1, 2 * SIZE), copy(2, 2 * SIZE)]].concat();
        let ids = [7, 8, 9, 9, 10];
        assert_eq!(walk_changed(&ids, &hides), ids.map(Ok));
    }

    #[test]
    fn the_valid_prefix_ends_before_the_last_record() {
        let run = |ids: &[u64], changes: &[Change]| {
            let chunk = changed(ids, changes);
            RecordWalk::new(&chunk, NO_PROMISE, false).0.valid_until
        };
        let ids = [7, 8, 9, 10];
        assert_eq!(run(&ids, &[]), offset_of(3));
        assert_eq!(
            run(&ids, &[free_space(offset_of(2))]),
            offset_of(2),
            "the header ends it"
        );
        let magic_before_end = |bytes: usize| (offset_of(1) - bytes, u32::from_le_bytes(RECORD_MAGIC));
        assert_eq!(run(&ids, &[magic_before_end(8)]), offset_of(3), "no space for a record");
        assert_eq!(run(&ids, &[magic_before_end(8), magic_before_end(12)]), 0);
        assert_eq!(run(&[7, 8, 10, 11], &[]), offset_of(1), "the next ID does not follow");
        assert_eq!(run(&[7], &[]), offset_of(0));
    }

    #[test]
    fn the_header_hides_no_record() {
        for end in [offset_of(0), offset_of(1), offset_of(2), offset_of(3), CHUNK_SIZE] {
            for last in [0, 7, 8, 9] {
                let found = walk_changed(&[7, 8, 9], &[free_space(end), last_id(last)]);
                assert_eq!(found, [Ok(7), Ok(8), Ok(9)], "free space {end}, last ID {last}");
            }
        }
        // A record in the free space that does not continue the IDs is slack.
        assert_eq!(walk_changed(&[7, 8, 5], &[free_space(offset_of(2))]), [Ok(7), Ok(8)]);
    }

    /// A chunk of these records with the header of a new one.
    fn new_chunk_of(ids: &[u64], changes: &[Change]) -> Vec<u8> {
        let mut chunk = changed(ids, changes);
        chunk[24..40].fill(0xff);
        chunk[44..52].copy_from_slice(&((CHUNK_HEADER as u64) << 32).to_le_bytes());
        chunk
    }

    #[test]
    fn a_new_chunk_has_live_records_only_if_the_log_promises_them() {
        let of_log = |next_of_log| PromisedIds {
            next_of_log: Some(next_of_log),
            ..NO_PROMISE
        };
        let live = |chunk: &[u8], promised| items(RecordWalk::new(chunk, promised, false).0, chunk);
        let chunk = new_chunk_of(&[7, 8, 9], &[]);
        for promised in [NO_PROMISE, of_log(6), of_log(8), of_log(9).after(Some(5))] {
            assert_eq!(live(&chunk, promised), [], "{promised:?}");
            let (mut walk, damage) = RecordWalk::new(&chunk, promised, true);
            let found: Vec<_> = std::iter::from_fn(|| walk.next(&chunk)).flatten().collect();
            assert!(found.iter().all(|found| found.origin == Origin::Recovered) && damage.is_none());
            assert!(walk.is_leftover() && walk.last_listed().is_none());
            assert_eq!(found.len(), 3, "{promised:?}");
        }
        for promised in [of_log(7), of_log(1).after(Some(6))] {
            assert_eq!(live(&chunk, promised), [Ok(7), Ok(8), Ok(9)], "{promised:?}");
        }
        // The first record is damaged, and those after it follow.
        let chunk = new_chunk_of(&[7, 8, 9], &[magic(0)]);
        assert_eq!(live(&chunk, of_log(7)), [NO_MAGIC, Ok(8), Ok(9)]);
        assert_eq!(live(&chunk, of_log(70)), []);
    }

    #[test]
    fn a_chunk_promises_the_id_after_its_last_record() {
        let new_chunk = new_chunk_of(&[7, 8], &[]);
        assert_eq!(NO_PROMISE.after_chunk(&chunk_of(&[7, 8])), NO_PROMISE.after(Some(8)));
        assert_eq!(NO_PROMISE.after(Some(3)).after_chunk(&new_chunk), NO_PROMISE);
        assert_eq!(NO_PROMISE.after_chunk(&[0; CHUNK_SIZE]), NO_PROMISE);
        assert_eq!(NO_PROMISE.after(Some(u64::MAX)), NO_PROMISE);
        assert!(PromisedIds::matter_to(&new_chunk) && !PromisedIds::matter_to(&chunk_of(&[7])));
        assert!(!PromisedIds::matter_to(&new_chunk[..CHUNK_HEADER]));
    }

    #[test]
    fn every_valid_record_in_slack_is_found() {
        let ids = [370, 371, 372, 373];
        // The first has one bit of a size flipped, the second hides another one after its BinXML.
        let chunk = new_chunk_of(&ids, &[size(0, 68), size(1, 128), copy(2, 128)]);
        assert_eq!(recovered(&chunk), ids.map(|id| (id, true)));
    }

    #[test]
    fn a_damaged_record_costs_only_itself() {
        let ids = [7, 8, 9];
        assert_eq!(walk_changed(&ids, &[magic(1), size(1, 65)]), [Ok(7), NO_MAGIC, Ok(9)]);
        assert_eq!(walk_changed(&ids, &[magic(0), magic(2)]), [NO_MAGIC, Ok(8), Ok(9)]);
        let found = walk_changed(&ids, &[magic(0), magic(2), id(2, 77)]);
        assert_eq!(found, [NO_MAGIC, Ok(8), NO_MAGIC]);
    }

    #[test]
    fn a_damaged_frame_is_mended_where_the_next_record_says_how() {
        let second = |change: Change| {
            let frames = frames(&changed(&[7, 8, 9], &[change]));
            assert_eq!([frames[0], frames[2]], [(7, 64, None), (9, 64, None)], "{change:?}");
            assert_eq!((frames.len(), frames[1].0, frames[1].1), (3, 8, 64), "{change:?}");
            frames[1].2
        };
        assert_eq!(second(magic(1)), Some(ErrorKind::RecordMagic(*b"x\0\0\0")));
        for claimed in [0, 27, 64 | 1 << 24, u32::MAX] {
            let available = CHUNK_SIZE - offset_of(1);
            let damage = ErrorKind::RecordSize {
                size: claimed,
                available,
            };
            assert_eq!(second(size(1, claimed as usize)), Some(damage));
        }
        for claimed in [28, 40, 63, 65, 100, 128, 192, 4000] {
            let damage = ErrorKind::RecordSpan { claimed, actual: 64 };
            assert_eq!(second(size(1, claimed as usize)), Some(damage));
        }
        // The last record ends at the free space.
        for claimed in [1 << 24, 40, 100] {
            assert_eq!(frames(&changed(&[7, 8, 9], &[size(2, claimed)]))[2].1, 64, "{claimed}");
        }
    }

    #[test]
    fn an_id_that_does_not_follow_is_trusted_less_than_the_one_before() {
        // Only the IDs say that the third record counts.
        let found = walk_changed(&[7, 8, 9, 10, 11], &[id(1, 900), size(1, 0), magic(3)]);
        let ids: Vec<_> = found.into_iter().flatten().collect();
        assert_eq!(ids, [7, 900, 9, 10, 11]);
    }

    #[test]
    fn a_record_inside_a_record_is_found() {
        // The second record claims the bytes of the third too.
        let hides = [size(1, 128), copy(2, 128)];
        let damage = ErrorKind::RecordSpan {
            claimed: 128,
            actual: 64,
        };
        let all = [(7, 64, None), (8, 64, Some(damage)), (9, 64, None), (10, 64, None)];
        assert_eq!(frames(&changed(&[7, 8, 9, 10], &hides)), all);
        // The later IDs go on as if the third were not there.
        let ids = [7, 8, 9, 9, 10];
        assert_eq!(walk_changed(&ids, &hides), ids.map(Ok));
        // It claims some bytes after the last record.
        let end = offset_of(4) + 8;
        let found = walk_changed(&[7, 8, 9, 10], &[size(1, 200), (end - 4, 200), free_space(end)]);
        assert_eq!(found[..4], [7, 8, 9, 10].map(Ok));
    }

    #[test]
    fn a_record_needs_space_for_its_frame_before_the_next() {
        // In place of 8, an ID that does not follow. The record 8 starts so many bytes later.
        let with = |claimed: usize, later: usize| {
            let inner = offset_of(1) + later;
            let changes = [
                size(1, claimed),
                (inner, u32::from_le_bytes(RECORD_MAGIC)),
                (inner + 4, (SIZE - later) as u32),
                (inner + 8, 8),
                (inner + 12, 0),
                copy(1, SIZE - later),
            ];
            walk_changed(&[7, 900, 9], &changes)
        };
        for (claimed, available) in [(0, CHUNK_SIZE - offset_of(1)), (SIZE, RECORD_HEADER)] {
            let size = claimed as u32;
            let error = Err(ErrorKind::RecordSize { size, available });
            assert_eq!(with(claimed, RECORD_HEADER), [Ok(7), error, Ok(8), Ok(9)]);
            assert_eq!(with(claimed, RECORD_FRAME), [Ok(7), Ok(900), Ok(8), Ok(9)]);
        }
    }

    #[test]
    fn records_that_end_before_the_last_listed_one_are_an_error() {
        let all = [Ok(7), Ok(8), Ok(9)];
        // Zeros before the free space are its start.
        let end = |changes: &[Change]| {
            let found = walk_changed(&[7, 8, 9], &[&[free_space(1000)], changes].concat());
            assert_eq!(found[..3], all);
            found[3..].to_vec()
        };
        let first_id = |id| (24, id);
        let error = Err(ErrorKind::LastRecord { id: 12 });
        assert_eq!(end(&[]), []);
        assert_eq!(end(&[last_id(12)]), [error]);
        assert_eq!(end(&[last_id(12), first_id(12)]), [error]);
        assert_eq!(end(&[last_id(12), first_id(13)]), [], "reversed IDs are ignored");
        // Only once, and not if the damage is reported already.
        let mut chunk = chunk_of(&[7, 8, 9]);
        chunk[offset_of(2)..offset_of(3)].fill(0);
        assert_eq!(walk(&chunk).0, [Ok(7), Ok(8), Err(ErrorKind::LastRecord { id: 9 })]);
        chunk[offset_of(2)..offset_of(3)].fill(1);
        assert_eq!(walk(&chunk).0, [Ok(7), Ok(8), Err(ErrorKind::RecordMagic([1; 4]))]);
    }

    #[test]
    fn damaged_chunks_give_their_valid_records() {
        let ids = [7, 8, 9];
        let valid = chunk_of(&ids);
        let (have, u32_max) = (offset_of(3), u32::MAX as usize);
        let no_magic = changed(&ids, &[(0, 0x78)]);
        let no_free_space = changed(&ids, &[free_space(u32_max)]);
        for (chunk, damage) in [
            (&no_magic[..], ErrorKind::ChunkMagic(*b"x\0\0\0hnk\0")),
            (&no_free_space, ErrorKind::FreeSpaceOffset(u32::MAX)),
            (&valid[..have], ErrorKind::ChunkCutShort { have }),
        ] {
            assert_eq!(walk(chunk), (ids.map(Ok).to_vec(), Some(damage)));
            assert!(frames(chunk).iter().all(|frame| frame.2.is_none()));
        }
        assert_eq!(walk(&valid[..have - 1]).0[..2], [Ok(7), Ok(8)]);
        assert_eq!(walk(&valid[..5]), (vec![], Some(ErrorKind::ChunkCutShort { have: 5 })));
    }

    #[test]
    fn records_that_live_ones_do_not_lead_to_are_recovered() {
        // The header says that the second record is the last: another is in the free space.
        let chunk = changed(&[7, 8, 5], &[last_id(8), free_space(offset_of(2))]);
        assert_eq!(recovered(&chunk), [(7, false), (8, false), (5, true)]);
        // After damage, a record whose ID cannot follow and that leads nowhere is not live.
        let chunk = changed(&[7, 8, 900, 9, 10], &[magic(1), size(1, 0), magic(3), size(3, 0)]);
        assert_eq!(recovered(&chunk), [(7, false), (900, true), (10, false)]);
        assert_eq!(recovered(&changed(&[7, 8], &[(0, 0)])), [(7, true), (8, true)]);
    }

    #[test]
    fn the_bytes_of_a_rejected_record_are_carved() {
        let free_space = free_space(offset_of(1));
        let reaches_over = [size(1, 136), (offset_of(3) + 4, 136)];
        for changes in [&[free_space][..], &[&[free_space], &reaches_over[..]].concat()] {
            let chunk = changed(&[7, 3, 4], changes);
            let (mut walk, _) = RecordWalk::new(&chunk, NO_PROMISE, true);
            let mut next = |rejected: Option<Record>| {
                rejected.iter().for_each(|record| walk.reject(record));
                walk.next(&chunk).expect("a record").expect("a valid one")
            };
            assert_eq!(next(None).record.id, 7);
            let first = next(None);
            assert_eq!((first.record.id, first.origin), (3, Origin::Carved));
            let accepted = next(None);
            assert_eq!(accepted.record.id, 4, "after its BinXML");
            assert_eq!(next(Some(first.record)), accepted);
        }
    }

    /// Changes of the frames of the first `records` records of [`chunk_of`], and of its header.
    fn changes(records: usize) -> Vec<Change> {
        let sizes = [0, 27, 28, 32, 60, 68, 96, 124, 128, 132, 192, 4000, 1 << 24];
        let ids = [0, 6, 7, 8, 9, 10, 11, 12];
        let mut changes = Vec::new();
        for number in 0..records {
            let at = offset_of(number);
            changes.extend([(at, 0), (at, 0x78), (at + 12, 1), (at + SIZE - 12, 0x2a2a)]);
            changes.extend(sizes.map(|size| (at + 4, size)));
            changes.extend(sizes.map(|size| (at + SIZE - 4, size)));
            changes.extend(ids.map(|id| (at + 8, id)));
        }
        changes.extend(ids.map(|id| (24, id)));
        changes.extend(ids.map(|id| (32, id)));
        changes.extend((0..=records).map(|number| (48, offset_of(number) as u32)));
        changes.extend([(0, 0), (48, offset_of(2) as u32 + 8), (48, CHUNK_SIZE as u32), (48, 0)]);
        changes
    }

    /// Everything that a walk returns.
    fn walk_in_full(chunk: &[u8], recover: bool) -> String {
        let (mut walk, damage) = RecordWalk::new(chunk, NO_PROMISE, recover);
        let mut said = format!("{damage:?}");
        while let Some(item) = walk.next(chunk) {
            said += &match item {
                Ok(found) => {
                    let (at, end, id) = (found.record.offset, found.record.end(), found.record.id);
                    let (recovered, carved) = (found.origin.is_recovered(), found.origin == Origin::Carved);
                    let flags = format!("{recovered} {carved} {}", found.is_damaged);
                    format!(" {at}..{end} {id} {flags} {:?}", walk.damage())
                }
                Err(error) => format!(" {error:?}"),
            };
        }
        said
    }

    #[test]
    fn one_change_of_a_frame_costs_no_other_record() {
        let ids = [7, 8, 9, 10];
        for (at, number) in changes(ids.len()) {
            let found: Vec<u64> = walk_changed(&ids, &[(at, number)]).into_iter().flatten().collect();
            let of = |id: &u64| (at.checked_sub(CHUNK_HEADER)).is_some_and(|at| at / SIZE == (*id - 7) as usize);
            let mut others = ids.iter().filter(|id| !of(id));
            assert!(others.all(|id| found.contains(id)), "{at} {number}: {found:?}");
        }
    }

    #[test]
    fn walks_over_two_changes_of_frames_do_not_change() {
        let all = changes(4);
        let mut checksums = Vec::new();
        for recover in [false, true] {
            for family in all.chunks(all.len().div_ceil(4)) {
                let mut checksum = crc32fast::Hasher::new();
                for (i, first) in family.iter().enumerate() {
                    for second in all.iter().skip(i % 5).step_by(5) {
                        let chunk = changed(&[7, 8, 9, 10, 11], &[*first, *second]);
                        checksum.update(walk_in_full(&chunk, recover).as_bytes());
                    }
                }
                checksums.push(format!("{:08x}", checksum.finalize()));
            }
        }
        // If these differ, the walk finds other records. Compare it with an independent walker before you replace them.
        assert_eq!(
            checksums.join(" "),
            "99279026 93f7955c 769fa76c b19f8f0c e06e825e d0612987 85cea426 4c3b0894"
        );
    }
}
