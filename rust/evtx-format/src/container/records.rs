//! The walk over the records of a chunk.

use std::ops::{Range, RangeInclusive};

use bumpalo::Bump;
use memchr::memmem;

use super::chunk::{CHUNK_HEADER, CHUNK_SIZE, ChunkHeader};
use super::header::FileHeader;
use super::record::{
    RECORD_FRAME, RECORD_HEADER, RECORD_MAGIC, Record, count_magics, ends_with_its_size, find, find_any, follows,
};
use crate::binxml::Reader;
use crate::binxml::names::Names;
use crate::error::{Error, ErrorKind, Result};

/// How often one record is searched for records inside it. Each one found makes the record shorter.
const MAX_INSIDE: usize = 8;

/// A record that a walk has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundRecord {
    /// The record. If its stored size is wrong, this has the size that the next record or the free space gives it.
    pub record: Record,
    /// Whether it was recovered: it is carved, or the header of its chunk cannot be read.
    pub recovered: bool,
    /// Whether it was carved from bytes that the live records do not reach. It can be noise until its BinXML is read.
    pub is_carved: bool,
    /// Whether its frame is damaged. [`RecordWalk::damage`] says how.
    pub is_damaged: bool,
}

/// A walk over the records of a chunk, in the order of their offsets. It borrows no bytes: the caller passes the chunk
/// to each step, so that a walk can be left and continued later.
///
/// The frames of the records decide which records there are, not the chunk header. The header says where the records
/// end, but the walk goes on after that place if a record there continues the IDs of the live records. The records of a
/// chunk that Windows has only begun are live if the rest of the log [promises](PromisedIds) the ID of the first.
/// Otherwise an older use of the disk has left them there.
#[derive(Debug, Clone)]
pub struct RecordWalk {
    next: Option<usize>,
    /// Where the header says that the records end: the free space, or the end of the chunk.
    end: usize,
    /// Chunk offset of a record behind `end` at which the walk continues.
    known_beyond: usize,
    /// The chunk header, if it can be read.
    header: Option<ChunkHeader>,
    /// Whether no record is live: the chunk is new, and the log does not promise the records that stand in it.
    is_leftover: bool,
    /// ID of the last record.
    last: Option<u64>,
    /// What is wrong with the frame of the last record.
    damage: Option<Error>,
    /// Whether records are also carved from the bytes between the live ones.
    recover: bool,
    /// The records that start before this chunk offset have sound frames and no other record in them.
    sound_until: usize,
    /// The bytes that are still to be carved before the walk goes on.
    carve: Range<usize>,
    /// Whether an error has already told why the records end, so that the end needs none of its own.
    end_is_told: bool,
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
    /// What a file header promises to every chunk. The ID 1 is no promise, since each new log has it.
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

    /// The same after a chunk of which the bytes are given.
    pub fn after_chunk(self, chunk: &[u8]) -> Self {
        let (mut walk, _) = RecordWalk::new(chunk, self.after(None), false);
        while walk.next(chunk).is_some() {}
        self.after(walk.last_listed())
    }

    /// Whether the promise decides about records of a chunk: it is new and seems empty, but has some.
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

/// A record whose frame was checked, and what is wrong with the frame.
type Framed = (Record, Option<Error>);

impl RecordWalk {
    /// A walk over the records of a chunk, and what is wrong with the chunk as a whole.
    ///
    /// A chunk that is cut short is walked to the cut. A chunk without its magic, or with its free space out of range,
    /// is walked to its end, and a record in it counts if its two sizes agree or the next record stands behind it.
    ///
    /// `promised` are the IDs that the log promises for the first record of this chunk.
    ///
    /// With `recover`, the walk also carves records that the live ones do not lead to: between a damaged record and the
    /// next live one, and after the last record, where those of an older use of the chunk were left. It finds the same
    /// live records as without.
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
        let is_leftover = PromisedIds::matter_to(chunk) && !promised.holds(chunk);
        let header = header.ok();
        let free_space = header.map_or(CHUNK_SIZE, |header| header.free_space as usize);
        // Leftovers are walked over as if the chunk was full.
        let free_space = if is_leftover { CHUNK_SIZE } else { free_space };
        let mut walk = RecordWalk {
            next: Some(CHUNK_HEADER).filter(|_| recover || !is_leftover),
            end: free_space.min(chunk.len()),
            known_beyond: usize::MAX,
            header,
            is_leftover,
            last: None,
            damage: None,
            recover,
            sound_until: 0,
            carve: 0..0,
            end_is_told: damage.is_some(),
        };
        if walk.header.is_some() {
            walk.sound_until = walk.sound_run(chunk);
        }
        (walk, damage)
    }

    /// Chunk offset of the end of the sound run: the records from the first on that are each followed by the next. 0 if
    /// one of them may have another record in it, which is so if the run has more magics than records. In logs as
    /// Windows writes them the run ends with the last record but one.
    fn sound_run(&self, chunk: &[u8]) -> usize {
        let (mut at, mut count) = (CHUNK_HEADER, 0);
        while at < self.end
            && let Ok(record) = Record::read(chunk, at)
            && let Some(left) = record.is_followed(chunk)
        {
            at = record.end();
            count += 1 + left;
        }
        let run = chunk.get(CHUNK_HEADER..at).unwrap_or_default();
        if count_magics(run) > count { 0 } else { at }
    }

    /// The next record; `None` at the end.
    ///
    /// A record ends where its size says, unless another record starts inside it. A record whose size cannot be right
    /// ends where the next record starts. Behind bytes that are not a record, the walk goes on at the next record that
    /// is beyond doubt: its two sizes agree, and its ID can follow or another record stands behind it.
    ///
    /// # Errors
    /// Why no record starts where one should, once for each such place, or [`ErrorKind::LastRecord`] at the end. The
    /// walk goes on behind an error.
    // Inlined: a call for each record takes a tenth of the time of count(*).
    #[inline(always)]
    pub fn next(&mut self, chunk: &[u8]) -> Option<Result<FoundRecord>> {
        if let Some(at) = self.next
            && at < self.sound_until
            && !self.recover
            && let Ok(record) = Record::read(chunk, at)
        {
            self.next = Some(record.end());
            self.last = Some(record.id);
            return Some(Ok(FoundRecord {
                record,
                recovered: false,
                is_carved: false,
                is_damaged: false,
            }));
        }
        self.next_carefully(chunk)
    }

    #[inline(never)]
    fn next_carefully(&mut self, chunk: &[u8]) -> Option<Result<FoundRecord>> {
        loop {
            if !self.carve.is_empty()
                && let Some(record) = self.carve(chunk)
            {
                return Some(Ok(FoundRecord {
                    record,
                    recovered: true,
                    is_carved: true,
                    is_damaged: false,
                }));
            }
            let Some(at) = self.next else {
                return self.unreached(chunk).map(Err);
            };
            if at >= self.end && at != self.known_beyond && !self.goes_on(chunk, at) {
                let next = self.resume(chunk, at, self.last.map(|id| (id, at)));
                self.skip(at, next, chunk);
                let Some(next) = next else { continue };
                self.known_beyond = next;
                let kind = Record::read(chunk, at).map_or_else(|error| error.kind, |_| ErrorKind::LeftoverRecord);
                return Some(Err(Error::new(at, kind)));
            }
            let framed = match Record::read(chunk, at) {
                Ok(record) if at < self.sound_until => Ok((record, None)),
                _ => self.framed(chunk, at),
            };
            match framed {
                Ok((record, damage)) => {
                    self.next = Some(record.end());
                    self.last = Some(self.id_between(chunk, &record));
                    self.damage = damage;
                    self.follow_claim(chunk, &record);
                    if self.recover {
                        self.carve = unused(chunk, &record);
                    }
                    return Some(Ok(FoundRecord {
                        record,
                        // Without a header, nothing says that the record is live.
                        recovered: self.is_leftover || self.recover && self.header.is_none(),
                        is_carved: false,
                        is_damaged: damage.is_some(),
                    }));
                }
                Err(error) => {
                    let next = self.resume(chunk, at + 1, self.last.map(|id| (id, at)));
                    self.skip(at, next, chunk);
                    self.known_beyond = next.unwrap_or(self.known_beyond);
                    if self.is_leftover {
                        continue;
                    }
                    // Behind the last record of a chunk that is damaged as a whole, anything may stand.
                    if next.is_some() || self.header.is_some() && !is_blank(error.kind) {
                        self.end_is_told |= next.is_none();
                        return Some(Err(error));
                    }
                }
            }
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
            if end >= self.end && Record::read(chunk, end).is_ok_and(is_next) {
                self.known_beyond = end;
            }
        }
    }

    /// The ID of a record. If the IDs of the records around it leave one ID between them, it is that one.
    fn id_between(&self, chunk: &[u8], record: &Record) -> u64 {
        let due = self.last.and_then(|last| last.checked_add(1));
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

    /// Tells the walk that the carved record which it gave last is noise, so that it carves again from the next byte.
    pub fn reject(&mut self, record: &Record) {
        self.carve.start = record.offset as usize + 1;
    }

    /// Whether the walk has reached the last record that the header lists. True if the header lists none.
    fn is_reached(&self, header: &ChunkHeader) -> bool {
        let is_reached = |ids: RangeInclusive<u64>| self.last.is_some_and(|last| last >= *ids.end());
        header.record_ids().is_none_or(is_reached)
    }

    /// The ID of the last record, of which the next chunk has the following one. `None` if the header says that this
    /// chunk is empty: a chunk that needs a promise gives none, so that one chunk more is all that has to be read.
    pub fn last_listed(&self) -> Option<u64> {
        self.last.filter(|_| !self.seems_empty() && !self.is_leftover)
    }

    /// Whether none of the records is live. With `recover` the walk goes over them as over live ones, but a place where no
    /// record starts is not an error.
    pub fn is_leftover(&self) -> bool {
        self.is_leftover
    }

    /// Whether the header says that there are no records.
    fn seems_empty(&self) -> bool {
        self.end <= CHUNK_HEADER
    }

    /// An error, once, if the records end before the last one that the header lists.
    fn unreached(&mut self, chunk: &[u8]) -> Option<Error> {
        let header = self.header?;
        if std::mem::replace(&mut self.end_is_told, true) || self.is_reached(&header) {
            return None;
        }
        let kind = ErrorKind::LastRecord {
            id: header.last_record_id,
        };
        Some(Error::new(self.end.min(chunk.len()), kind))
    }

    /// Whether the records go on where the header says that they end. The header is then stale or forged. The next ID
    /// follows that of the last record, or if that is damaged, the last one that the header lists.
    fn goes_on(&self, chunk: &[u8], at: usize) -> bool {
        let listed = self.header.and_then(|header| header.record_ids()).map(|ids| *ids.end());
        let listed = listed.filter(|_| at == self.end);
        let is_later = |record: &Record, step| {
            let mut known = self.last.into_iter().chain(listed);
            self.last.is_none() && at == CHUNK_HEADER && step == 1
                || known.any(|id| id.checked_add(step) == Some(record.id))
        };
        let follows = Record::read(chunk, at).is_ok_and(|record| {
            is_later(&record, 1) && (record.size_copy_matches(chunk) || record.is_before_next(chunk))
        });
        // Its size may be damaged, but the next record is there.
        let is_sized_wrong = || {
            let after = at + RECORD_HEADER..chunk.len();
            Record::header(chunk, at).is_ok_and(|record| is_later(&record, 1))
                && find_any(chunk, after, |next| is_later(next, 2) && next.size_copy_matches(chunk)).is_some()
        };
        // The magic or the ID of this record may be damaged, but the record behind it continues the IDs.
        follows
            || is_sized_wrong()
            || Record::without_magic(chunk, at).is_some_and(|record| {
                let next = Record::read(chunk, record.end());
                record.size_copy_matches(chunk)
                    && next.is_ok_and(|next| is_later(&next, 2) && next.size_copy_matches(chunk))
            })
    }

    /// The record whose frame starts at a chunk offset, and what is wrong with the frame.
    ///
    /// # Errors
    /// Why no frame starts there, or why the end of the record is not known.
    fn framed(&self, chunk: &[u8], at: usize) -> Result<Framed> {
        let (mut record, mut damage) = match Record::header(chunk, at) {
            Ok(record) => (record, None),
            Err(error) => {
                // Only the magic may be damaged.
                let record = Record::without_magic(chunk, at).ok_or(error)?;
                let follows = self.last.is_some_and(|last| last.checked_add(1) == Some(record.id));
                if !follows || !record.size_copy_matches(chunk) {
                    return Err(error);
                }
                (record, Some(error))
            }
        };
        // An ID that does not follow is trusted less than the ID of the record before.
        let before = match self.last {
            Some(last) if last.checked_add(1) != Some(record.id) => (last, at),
            _ => (record.id, at),
        };
        let room = chunk.len() - at;
        let size = record.size;
        if (size as usize) < RECORD_FRAME || size as usize > room {
            let error = Error::new(at, ErrorKind::RecordSize { size, room });
            let next = self.resume(chunk, at + RECORD_HEADER, Some(before));
            let end = next.or_else(|| Some(self.end).filter(|&end| ends_with_its_size(chunk, at, end)));
            let end = end.filter(|end| end - at >= RECORD_FRAME).ok_or(error)?;
            record.size = (end - at) as u32;
            damage = Some(error);
        } else if self.header.is_none() && !record.size_copy_matches(chunk) && !record.is_before_next(chunk) {
            return Err(Error::new(at, ErrorKind::RecordSize { size, room }));
        } else if !record.size_copy_matches(chunk)
            && Record::header(chunk, record.end()).is_err()
            && self.inside(chunk, &record, before).is_none()
        {
            // The size may be too small, or too large if this is the last record.
            let next = self.resume(chunk, record.end(), Some(before)).unwrap_or(self.end);
            if ends_with_its_size(chunk, at, next) {
                record.size = (next - at) as u32;
            }
        }
        // The part of the record that is left can have another record in it.
        for _ in 0..MAX_INSIDE {
            match self.inside(chunk, &record, before) {
                // Not even room for a frame is left.
                Some(next) if next - at < RECORD_FRAME => {
                    return Err(Error::new(at, ErrorKind::RecordSize { size, room: next - at }));
                }
                Some(next) => record.size = (next - at) as u32,
                None => break,
            }
        }
        if record.size != size {
            let kind = ErrorKind::RecordSpan {
                claimed: size,
                actual: record.size,
            };
            damage.get_or_insert(Error::new(at, kind));
        }
        Ok((record, damage))
    }

    /// Chunk offset of another record that starts inside a record, if that is beyond doubt. A value of a sound record
    /// that looks like a record does not count.
    fn inside(&self, chunk: &[u8], record: &Record, before: (u64, usize)) -> Option<usize> {
        let start = record.offset as usize;
        let span = start + RECORD_HEADER..record.end();
        let copy_matches = record.size_copy_matches(chunk);
        let mut end_of_values = None;
        find_any(chunk, span, |inner| {
            // Two records that end at one place have one copy of the size, which matches only one of them.
            let shares_copy = inner.end() == record.end();
            let has_copy = inner.size_copy_matches(chunk) || shares_copy || self.is_next(chunk, before, inner);
            if !has_copy {
                return false;
            }
            let is_known = || follows(before, inner) || !copy_matches && self.leads_on(chunk, inner);
            // Few records get here, so only their BinXML is read.
            match *end_of_values.get_or_insert_with(|| binxml_end(chunk, record)) {
                // Behind its BinXML a record has only padding, so a frame there is a hidden record.
                Some(end) if inner.offset as usize >= end => copy_matches && inner.end() <= record.end() || is_known(),
                // A value can look like a record, so this counts only if the outer record's two sizes differ.
                Some(_) => !copy_matches && is_known(),
                None => is_known(),
            }
        })
    }

    /// Continues the walk at `next`. With `recover`, carves the bytes between first.
    fn skip(&mut self, from: usize, next: Option<usize>, chunk: &[u8]) {
        self.next = next;
        if self.recover {
            self.carve = from..next.unwrap_or(chunk.len());
        }
    }

    /// The next record in the bytes that are carved.
    fn carve(&mut self, chunk: &[u8]) -> Option<Record> {
        let Range { start, end } = self.carve;
        // Windows does not clear the padding of records. So among leftovers, the first bytes of an older record can stand
        // in the padding of a newer one (seen in a log that was never written).
        let last = if self.is_leftover { chunk.len() } else { end };
        let found = find(chunk, start..end, |record| record.end() <= last);
        let record = found.and_then(|at| Record::read(chunk, at).ok());
        self.carve = match record {
            Some(record) => {
                // It can hide another one after its BinXML.
                let hidden = unused(chunk, &record);
                if hidden.is_empty() {
                    record.end()..end
                } else {
                    hidden.start..end
                }
            }
            None => 0..0,
        };
        record
    }

    /// Chunk offset of the next record beyond doubt, from `from` on. `before` is the ID and the chunk offset of the
    /// record before, if there is one.
    fn resume(&self, chunk: &[u8], from: usize, before: Option<(u64, usize)>) -> Option<usize> {
        // The records in the free space are from an older use of the chunk, unless the live ones end too early.
        let is_short = self.header.is_some_and(|header| !self.is_reached(&header));
        // A header can say that the chunk is empty though it has records.
        let seems_empty = self.seems_empty();
        // Behind the end, a damaged record that goes on is followed by the next.
        let is_beyond = before.is_some_and(|(_, at)| at >= self.end && from > at);
        let until = if is_short || seems_empty || is_beyond {
            chunk.len()
        } else {
            self.end
        };
        find_any(chunk, from..until, |record| {
            if !record.size_copy_matches(chunk) {
                return before.is_some_and(|before| self.is_next(chunk, before, record));
            }
            let Some(header) = self.header else { return true };
            let is_of_header = header.record_ids().is_some_and(|ids| ids.contains(&record.id));
            let follows = before.map_or(is_of_header, |before| follows(before, record));
            match (record.offset as usize) < self.end {
                true => follows || self.leads_on(chunk, record),
                // The free space of exported logs has records of an earlier export, whose IDs go on too.
                false => {
                    let is_at_end = record.offset as usize == self.end;
                    follows && is_of_header
                        || seems_empty && record.is_before_next(chunk)
                        || is_at_end && self.goes_on(chunk, self.end)
                        || is_beyond && before.is_some_and(|(id, _)| id.checked_add(1) == Some(record.id))
                }
            }
        })
    }

    /// Whether a record has the next ID, and ends where the next record starts or the records end. The copy of its size
    /// then need not match.
    fn is_next(&self, chunk: &[u8], (id, _): (u64, usize), record: &Record) -> bool {
        let is_next = |id: u64, record: &Record| id.checked_add(1) == Some(record.id);
        let end = record.end();
        let leads_on = || Record::header(chunk, end).is_ok_and(|next| is_next(record.id, &next));
        is_next(id, record) && (end == self.end || leads_on())
    }

    /// Whether a record ends where another record starts or the records end. The record behind it counts if its two
    /// sizes agree or it has the next ID.
    fn leads_on(&self, chunk: &[u8], record: &Record) -> bool {
        let end = record.end();
        let is_next = |next: Record| next.size_copy_matches(chunk) || next.id == record.id.wrapping_add(1);
        end >= self.end || Record::read(chunk, end).is_ok_and(is_next)
    }
}

/// The bytes of a record behind its BinXML if the record has a magic in it, else an empty range.
fn unused(chunk: &[u8], record: &Record) -> Range<usize> {
    let bytes = chunk.get(record.binxml()).unwrap_or_default();
    let may_be_there = memmem::find(bytes, &RECORD_MAGIC).is_some();
    let end = if may_be_there { binxml_end(chunk, record) } else { None };
    end.map_or(0..0, |end| end..record.binxml().end)
}

/// Chunk offset of the end of a record's BinXML; `None` if the BinXML is damaged.
#[cold]
fn binxml_end(chunk: &[u8], record: &Record) -> Option<usize> {
    let arena = Bump::new();
    let names = Names::new(chunk, &arena);
    Reader::new(chunk, &names, &arena).stream_end(record.binxml())
}

/// Whether zeros, or too few bytes for a header, stand where a record should start. That is the end of the records in
/// chunks whose header puts the free space too far behind.
fn is_blank(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::RecordMagic([0, 0, 0, 0]) | ErrorKind::Truncated { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::chunk::CHUNK_MAGIC;

    const SIZE: usize = 64;

    /// Where the record with a number starts in the chunks below.
    fn place(number: usize) -> usize {
        CHUNK_HEADER + SIZE * number
    }

    /// A chunk of records with these IDs, each of 64 bytes, with an instance that has no values.
    fn chunk_of(ids: &[u64]) -> Vec<u8> {
        let mut chunk = vec![0; CHUNK_SIZE];
        chunk[..8].copy_from_slice(&CHUNK_MAGIC);
        chunk[24..32].copy_from_slice(&ids[0].to_le_bytes());
        chunk[32..40].copy_from_slice(&ids[ids.len() - 1].to_le_bytes());
        for (i, id) in ids.iter().enumerate() {
            let record = &mut chunk[place(i)..place(i + 1)];
            record[..4].copy_from_slice(&RECORD_MAGIC);
            record[4..8].copy_from_slice(&(SIZE as u32).to_le_bytes());
            record[8..16].copy_from_slice(&id.to_le_bytes());
            record[RECORD_HEADER..RECORD_HEADER + 6].copy_from_slice(&[0x0f, 1, 1, 0, 0x0c, 1]);
            record[SIZE - 4..].copy_from_slice(&(SIZE as u32).to_le_bytes());
        }
        put(&mut chunk, 44, place(ids.len() - 1) as u32);
        put(&mut chunk, 48, place(ids.len()) as u32);
        chunk
    }

    fn put(chunk: &mut [u8], at: usize, number: u32) {
        chunk[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }

    type Item = std::result::Result<u64, ErrorKind>;

    fn walk(chunk: &[u8]) -> (Vec<Item>, Option<ErrorKind>) {
        let (walk, damage) = RecordWalk::new(chunk, PromisedIds::default(), false);
        (items(walk, chunk), damage.map(|error| error.kind))
    }

    fn items(mut walk: RecordWalk, chunk: &[u8]) -> Vec<Item> {
        let next = || {
            Some(
                walk.next(chunk)?
                    .map(|found| found.record.id)
                    .map_err(|error| error.kind),
            )
        };
        std::iter::from_fn(next).collect()
    }

    /// What the walk finds, with the sizes and the damage of frames.
    fn frames(chunk: &[u8]) -> Vec<(u64, u32, Option<ErrorKind>)> {
        let (mut walk, _) = RecordWalk::new(chunk, PromisedIds::default(), false);
        let mut frames = Vec::new();
        while let Some(found) = walk.next(chunk) {
            let found = found.expect("a record");
            let damage = walk.damage().filter(|_| found.is_damaged).map(|error| error.kind);
            frames.push((found.record.id, found.record.size, damage));
        }
        frames
    }

    #[test]
    fn a_sound_chunk_gives_its_records() {
        assert_eq!(walk(&chunk_of(&[7, 8, 9])), (vec![Ok(7), Ok(8), Ok(9)], None));
        // Whatever the IDs are.
        assert_eq!(
            walk(&chunk_of(&[7, 0, 7, u64::MAX, 9])).0,
            [7, 0, 7, u64::MAX, 9].map(Ok)
        );
    }

    #[test]
    fn records_go_on_after_a_damaged_one_that_the_header_lists() {
        let mut chunk = chunk_of(&[7, 8, 9]);
        // The header is behind, and the only record that it lists is gone.
        chunk[32..40].copy_from_slice(&7_u64.to_le_bytes());
        put(&mut chunk, 44, place(0) as u32);
        put(&mut chunk, 48, place(1) as u32);
        chunk[place(0)..place(1)].fill(0);
        let (found, _) = walk(&chunk);
        assert_eq!(found[1..], [Ok(8), Ok(9)]);
        // One after it has a wrong size.
        let mut chunk = chunk_of(&[7, 8, 9]);
        chunk[32..40].copy_from_slice(&7_u64.to_le_bytes());
        put(&mut chunk, 48, place(1) as u32);
        put(&mut chunk, place(1) + 4, 0x80_0000);
        assert_eq!(walk(&chunk).0, [Ok(7), Ok(8), Ok(9)]);
        // One after it hides another, whose ID the next has too.
        let mut chunk = chunk_of(&[7, 8, 9, 9, 10]);
        chunk[32..40].copy_from_slice(&7_u64.to_le_bytes());
        put(&mut chunk, 48, place(1) as u32);
        for at in [place(1) + 4, place(3) - 4] {
            put(&mut chunk, at, 2 * SIZE as u32);
        }
        assert_eq!(walk(&chunk).0, [7, 8, 9, 9, 10].map(Ok));
    }

    #[test]
    fn the_sound_run_ends_before_the_last_record() {
        let run = |chunk: &[u8]| RecordWalk::new(chunk, PromisedIds::default(), false).0.sound_until;
        let mut chunk = chunk_of(&[7, 8, 9, 10]);
        assert_eq!(run(&chunk), place(3));
        // The header ends it.
        put(&mut chunk, 48, place(2) as u32);
        assert_eq!(run(&chunk), place(2));
        put(&mut chunk, 48, place(4) as u32);
        // A magic in the last eight bytes of a record is no record.
        let mut left = chunk.clone();
        left[place(1) - 8..place(1) - 4].copy_from_slice(&RECORD_MAGIC);
        assert_eq!(run(&left), place(3));
        // One that has room before may be one.
        left[place(1) - 12..place(1) - 8].copy_from_slice(&RECORD_MAGIC);
        assert_eq!(run(&left), 0);
        // An ID that does not follow ends it.
        let other = chunk_of(&[7, 8, 10, 11]);
        assert_eq!(run(&other), place(1));
        assert_eq!(run(&chunk_of(&[7])), place(0));
    }

    #[test]
    fn the_header_hides_no_record() {
        let ids = [Ok(7), Ok(8), Ok(9)];
        for free_space in [place(0), place(1), place(2), place(3), CHUNK_SIZE] {
            for last in [0, 7, 8, 9_u64] {
                let mut chunk = chunk_of(&[7, 8, 9]);
                chunk[32..40].copy_from_slice(&last.to_le_bytes());
                put(&mut chunk, 48, free_space as u32);
                assert_eq!(walk(&chunk).0, ids, "free space {free_space}, last ID {last}");
            }
        }
        // What does not continue the IDs behind the free space was left there.
        let mut chunk = chunk_of(&[7, 8, 5]);
        put(&mut chunk, 48, place(2) as u32);
        assert_eq!(walk(&chunk).0[..2], [Ok(7), Ok(8)]);
        assert_eq!(walk(&chunk).0.len(), 2);
    }

    /// A chunk of these records with the header of a new one.
    fn new_chunk_of(ids: &[u64]) -> Vec<u8> {
        let mut chunk = chunk_of(ids);
        chunk[24..40].fill(0xff);
        put(&mut chunk, 44, 0);
        put(&mut chunk, 48, CHUNK_HEADER as u32);
        chunk
    }

    #[test]
    fn a_new_chunk_has_live_records_only_if_the_log_promises_them() {
        let of_log = |next_of_log| PromisedIds {
            next_of_log: Some(next_of_log),
            ..PromisedIds::default()
        };
        let live = |chunk: &[u8], promised| items(RecordWalk::new(chunk, promised, false).0, chunk);
        let chunk = new_chunk_of(&[7, 8, 9]);
        for promised in [PromisedIds::default(), of_log(6), of_log(8), of_log(9).after(Some(5))] {
            assert_eq!(live(&chunk, promised), [], "{promised:?}");
            let (mut walk, damage) = RecordWalk::new(&chunk, promised, true);
            let found: Vec<_> = std::iter::from_fn(|| walk.next(&chunk)).flatten().collect();
            assert!(found.iter().all(|found| found.recovered) && damage.is_none());
            assert!(walk.is_leftover() && walk.last_listed().is_none());
            assert_eq!(found.len(), 3, "{promised:?}");
        }
        for promised in [of_log(7), of_log(1).after(Some(6))] {
            assert_eq!(live(&chunk, promised), [Ok(7), Ok(8), Ok(9)], "{promised:?}");
        }
        // The first record is damaged, and those after it follow.
        let mut chunk = new_chunk_of(&[7, 8, 9]);
        put(&mut chunk, place(0), 0x78);
        let magic = ErrorKind::RecordMagic(*b"x\0\0\0");
        assert_eq!(live(&chunk, of_log(7)), [Err(magic), Ok(8), Ok(9)]);
        assert_eq!(live(&chunk, of_log(70)), []);
    }

    #[test]
    fn a_chunk_promises_the_id_after_its_last_record() {
        let none = PromisedIds::default();
        assert_eq!(none.after_chunk(&chunk_of(&[7, 8])), none.after(Some(8)));
        assert_eq!(none.after(Some(3)).after_chunk(&new_chunk_of(&[7, 8])), none);
        assert_eq!(none.after_chunk(&[0; CHUNK_SIZE]), none);
        assert_eq!(none.after(Some(u64::MAX)), none);
        assert!(PromisedIds::matter_to(&new_chunk_of(&[7])) && !PromisedIds::matter_to(&chunk_of(&[7])));
        assert!(!PromisedIds::matter_to(&new_chunk_of(&[7])[..CHUNK_HEADER]));
    }

    #[test]
    fn every_sound_record_in_slack_is_found() {
        // The first has one bit of a size flipped, the second hides another one after its BinXML.
        let mut chunk = new_chunk_of(&[370, 371, 372, 373]);
        put(&mut chunk, place(0) + 4, 68);
        put(&mut chunk, place(1) + 4, 128);
        put(&mut chunk, place(3) - 4, 128);
        let (mut walk, _) = RecordWalk::new(&chunk, PromisedIds::default(), true);
        let found = std::iter::from_fn(|| walk.next(&chunk)).map(|item| item.expect("no error"));
        let ids: Vec<_> = found.map(|found| (found.record.id, found.recovered)).collect();
        assert_eq!(ids, [370, 371, 372, 373].map(|id| (id, true)));
    }

    #[test]
    fn a_damaged_record_costs_only_itself() {
        let mut chunk = chunk_of(&[7, 8, 9]);
        // Its magic and its size.
        put(&mut chunk, place(1), 0x78);
        put(&mut chunk, place(1) + 4, 65);
        let magic = ErrorKind::RecordMagic(*b"x\0\0\0");
        assert_eq!(walk(&chunk).0, [Ok(7), Err(magic), Ok(9)]);
        // The first, and the last.
        let mut chunk = chunk_of(&[7, 8, 9]);
        put(&mut chunk, place(0), 0x78);
        put(&mut chunk, place(2), 0x78);
        assert_eq!(walk(&chunk).0, [Err(magic), Ok(8), Ok(9)]);
        put(&mut chunk, place(2) + 8, 77);
        assert_eq!(walk(&chunk).0, [Err(magic), Ok(8), Err(magic)]);
    }

    #[test]
    fn a_damaged_frame_is_mended_where_the_next_record_says_how() {
        let all = |damage: Option<ErrorKind>| [(7, 64, None), (8, 64, damage), (9, 64, None)];
        let mut chunk = chunk_of(&[7, 8, 9]);
        chunk[place(1)] = b'x';
        assert_eq!(frames(&chunk), all(Some(ErrorKind::RecordMagic(*b"x*\0\0"))));
        for claimed in [0, 27, 64 | 1 << 24, u32::MAX] {
            let mut chunk = chunk_of(&[7, 8, 9]);
            put(&mut chunk, place(1) + 4, claimed);
            let room = CHUNK_SIZE - place(1);
            assert_eq!(frames(&chunk), all(Some(ErrorKind::RecordSize { size: claimed, room })));
        }
        for claimed in [28, 40, 63, 65, 100, 128, 192, 4000] {
            let mut chunk = chunk_of(&[7, 8, 9]);
            put(&mut chunk, place(1) + 4, claimed);
            let damage = ErrorKind::RecordSpan { claimed, actual: 64 };
            assert_eq!(frames(&chunk), all(Some(damage)), "{claimed}");
        }
        // The last record has none behind it, but the free space.
        let mut chunk = chunk_of(&[7, 8, 9]);
        for claimed in [1 << 24, 40, 100] {
            put(&mut chunk, place(2) + 4, claimed);
            assert_eq!(frames(&chunk)[2].1, 64, "{claimed}");
        }
    }

    #[test]
    fn an_id_that_does_not_follow_is_trusted_less_than_the_one_before() {
        let mut chunk = chunk_of(&[7, 8, 9, 10, 11]);
        // The ID and the size of the second, and the magic of the fourth, so that only the IDs say that the third counts.
        put(&mut chunk, place(1) + 8, 900);
        put(&mut chunk, place(1) + 4, 0);
        put(&mut chunk, place(3), 0x78);
        let ids: Vec<_> = walk(&chunk).0.into_iter().flatten().collect();
        assert_eq!(ids, [7, 900, 9, 10, 11]);
    }

    #[test]
    fn a_record_counts_if_the_next_id_follows_it() {
        // Behind the damaged record, the IDs are others, and only the ID behind it says that 300 counts.
        let mut chunk = chunk_of(&[7, 8, 300, 301, 302]);
        put(&mut chunk, place(1), 0x78);
        put(&mut chunk, place(1) + 4, 0);
        put(&mut chunk, place(4) - 4, 0);
        let ids: Vec<_> = walk(&chunk).0.into_iter().flatten().collect();
        assert_eq!(ids, [7, 300, 301, 302]);
    }

    #[test]
    fn a_record_inside_of_a_record_is_found() {
        let mut chunk = chunk_of(&[7, 8, 9, 10]);
        // The size of the second, and its copy, reach to the end of the third.
        put(&mut chunk, place(1) + 4, 128);
        put(&mut chunk, place(3) - 4, 128);
        let damage = ErrorKind::RecordSpan {
            claimed: 128,
            actual: 64,
        };
        let all = [(7, 64, None), (8, 64, Some(damage)), (9, 64, None), (10, 64, None)];
        assert_eq!(frames(&chunk), all);
        let mut chunk = chunk_of(&[7, 8, 9, 10]);
        put(&mut chunk, place(1) + 4, 192 + 8);
        put(&mut chunk, place(4) + 4, 192 + 8);
        put(&mut chunk, 48, place(4) as u32 + 8);
        assert_eq!(walk(&chunk).0[..4], [Ok(7), Ok(8), Ok(9), Ok(10)]);
        // The IDs behind it go on as if it were not there.
        let mut chunk = chunk_of(&[7, 8, 9, 9, 10]);
        put(&mut chunk, place(1) + 4, 128);
        put(&mut chunk, place(3) - 4, 128);
        let ids: Vec<_> = frames(&chunk).iter().map(|frame| frame.0).collect();
        assert_eq!(ids, [7, 8, 9, 9, 10]);
    }

    #[test]
    fn a_record_needs_room_for_its_frame_before_the_next() {
        // In the place of 8, an ID that does not follow, and the record 8 at so many bytes behind it.
        let with = |claimed: u32, behind: usize| {
            let mut chunk = chunk_of(&[7, 900, 9]);
            let inner = place(1) + behind;
            let size = (SIZE - behind) as u32;
            chunk[inner..inner + 4].copy_from_slice(&RECORD_MAGIC);
            put(&mut chunk, place(1) + 4, claimed);
            put(&mut chunk, inner + 4, size);
            put(&mut chunk, inner + 8, 8);
            put(&mut chunk, inner + 12, 0);
            put(&mut chunk, place(2) - 4, size);
            walk(&chunk).0
        };
        for (claimed, room) in [(0, CHUNK_SIZE - place(1)), (SIZE as u32, RECORD_HEADER)] {
            let error = Err(ErrorKind::RecordSize { size: claimed, room });
            assert_eq!(with(claimed, RECORD_HEADER), [Ok(7), error, Ok(8), Ok(9)]);
            assert_eq!(with(claimed, RECORD_FRAME), [Ok(7), Ok(900), Ok(8), Ok(9)]);
        }
    }

    #[test]
    fn a_record_inside_of_a_record_counts_only_beyond_doubt() {
        let found = |chunk: &[u8]| -> Vec<_> { frames(chunk).iter().map(|frame| (frame.0, frame.1)).collect() };
        // Nothing says where the values of 8 end. Its sizes agree, and the ID inside it does not follow.
        let mut chunk = chunk_of(&[7, 8, 555, 9]);
        put(&mut chunk, place(1) + 4, 128);
        put(&mut chunk, place(3) - 4, 128);
        chunk[place(1) + RECORD_HEADER] = 0x7f;
        assert_eq!(found(&chunk), [(7, 64), (8, 128), (9, 64)]);
        // Behind the values, in a record whose sizes agree, it counts whatever its ID is.
        let mut chunk = chunk_of(&[7, 8, 555]);
        put(&mut chunk, place(1) + 4, 136);
        put(&mut chunk, place(3) + 4, 136);
        put(&mut chunk, 48, place(3) as u32 + 8);
        assert_eq!(walk(&chunk).0[..3], [Ok(7), Ok(8), Ok(555)]);
        // If they do not agree, and neither its ID nor the record behind it says so, it does not count.
        let mut chunk = chunk_of(&[7, 8, 555, 9, 10]);
        put(&mut chunk, place(1) + 4, 128);
        put(&mut chunk, place(3), 0x78);
        put(&mut chunk, place(3) + 8, 777);
        let ids: Vec<_> = walk(&chunk).0.into_iter().flatten().collect();
        assert_eq!(ids, [7, 8, 10]);
    }

    #[test]
    fn a_record_in_a_value_is_none() {
        // The value of the second, of 64 bytes, is the third.
        let mut chunk = chunk_of(&[7, 8, 9]);
        let binxml = place(1) + RECORD_HEADER;
        put(&mut chunk, binxml + 14, 1);
        put(&mut chunk, binxml + 18, (64 + 18) | (14 << 16));
        put(&mut chunk, place(1) + 4, 128 + 4);
        put(&mut chunk, place(3), 128 + 4);
        put(&mut chunk, 48, place(3) as u32 + 4);
        put(&mut chunk, 32, 8);
        assert_eq!(frames(&chunk), [(7, 64, None), (8, 132, None)]);
    }

    #[test]
    fn the_end_is_told_if_the_last_record_was_not_reached() {
        let mut chunk = chunk_of(&[7, 8, 9]);
        put(&mut chunk, 48, 1000);
        assert_eq!(
            walk(&chunk).0,
            [Ok(7), Ok(8), Ok(9)],
            "zeros before the free space are its start"
        );
        chunk[32] = 12;
        assert_eq!(walk(&chunk).0[3], Err(ErrorKind::LastRecord { id: 12 }));
        // IDs that are reversed, as those of an empty chunk, say nothing.
        put(&mut chunk, 24, 13);
        assert_eq!(walk(&chunk).0, [Ok(7), Ok(8), Ok(9)]);
        put(&mut chunk, 24, 12);
        assert_eq!(walk(&chunk).0[3], Err(ErrorKind::LastRecord { id: 12 }));
        // Once, and not where the damage was told.
        let mut chunk = chunk_of(&[7, 8, 9]);
        chunk[place(2)..place(3)].fill(0);
        assert_eq!(walk(&chunk).0, [Ok(7), Ok(8), Err(ErrorKind::LastRecord { id: 9 })]);
        chunk[place(2)..place(3)].fill(1);
        assert_eq!(walk(&chunk).0, [Ok(7), Ok(8), Err(ErrorKind::RecordMagic([1; 4]))]);
    }

    #[test]
    fn damaged_chunks_give_their_sound_records() {
        let ids = vec![Ok(7), Ok(8), Ok(9)];
        let mut chunk = chunk_of(&[7, 8, 9]);
        chunk[0] = b'X';
        assert_eq!(walk(&chunk), (ids.clone(), Some(ErrorKind::ChunkMagic(*b"XlfChnk\0"))));
        let mut chunk = chunk_of(&[7, 8, 9]);
        put(&mut chunk, 48, u32::MAX);
        assert_eq!(walk(&chunk), (ids.clone(), Some(ErrorKind::FreeSpaceOffset(u32::MAX))));
        let have = place(3);
        let chunk = chunk_of(&[7, 8, 9]);
        assert_eq!(walk(&chunk[..have]), (ids, Some(ErrorKind::ChunkCutShort { have })));
        assert!(
            frames(&chunk[..have]).iter().all(|frame| frame.2.is_none()),
            "the cut is behind the last record"
        );
        assert_eq!(walk(&chunk[..have - 1]).0[..2], [Ok(7), Ok(8)]);
        assert_eq!(walk(&chunk[..5]), (vec![], Some(ErrorKind::ChunkCutShort { have: 5 })));
    }

    #[test]
    fn what_the_bookkeeping_does_not_reach_is_recovered() {
        let recovered = |chunk: &[u8]| -> Vec<(u64, bool)> {
            let (mut walk, _) = RecordWalk::new(chunk, PromisedIds::default(), true);
            std::iter::from_fn(|| walk.next(chunk))
                .flatten()
                .map(|found| (found.record.id, found.recovered))
                .collect()
        };
        // The header says that the second record is the last: another is in the free space.
        let mut chunk = chunk_of(&[7, 8, 5]);
        chunk[32] = 8;
        put(&mut chunk, 48, place(2) as u32);
        assert_eq!(recovered(&chunk), [(7, false), (8, false), (5, true)]);
        // One whose ID cannot follow and that leads nowhere does not count as live past damage.
        let mut chunk = chunk_of(&[7, 8, 900, 9, 10]);
        put(&mut chunk, place(1), 0x78);
        put(&mut chunk, place(1) + 4, 0);
        put(&mut chunk, place(3), 0x78);
        put(&mut chunk, place(3) + 4, 0);
        assert_eq!(recovered(&chunk), [(7, false), (900, true), (10, false)]);
        let mut chunk = chunk_of(&[7, 8]);
        chunk[0] = b'x';
        assert_eq!(recovered(&chunk), [(7, true), (8, true)]);
        // A record that is taken back leaves room for what is in it.
        let mut chunk = chunk_of(&[7, 3, 4]);
        put(&mut chunk, 48, place(1) as u32);
        let (mut walk, _) = RecordWalk::new(&chunk, PromisedIds::default(), true);
        assert_eq!(walk.next(&chunk).unwrap().unwrap().record.id, 7);
        let first = walk.next(&chunk).unwrap().unwrap();
        assert_eq!((first.record.id, first.recovered), (3, true));
        walk.reject(&first.record);
        assert_eq!(walk.next(&chunk).unwrap().unwrap().record.id, 4);
        // Such as one that it reaches over.
        put(&mut chunk, place(1) + 4, 136);
        put(&mut chunk, place(3) + 4, 136);
        let (mut walk, _) = RecordWalk::new(&chunk, PromisedIds::default(), true);
        walk.next(&chunk);
        let first = walk.next(&chunk).unwrap().unwrap();
        assert_eq!((first.record.id, first.record.size), (3, 136));
        // What stands after its BinXML is found whether it is noise or not.
        let mut taken = walk.clone();
        assert_eq!(taken.next(&chunk).unwrap().unwrap().record.id, 4);
        walk.reject(&first.record);
        assert_eq!(walk.next(&chunk).unwrap().unwrap().record.id, 4);
    }

    /// A change of a chunk: four bytes at an offset.
    type Change = (usize, u32);

    /// Changes of the frames of the first `records` records of [`chunk_of`], and of its header.
    fn changes(records: usize) -> Vec<Change> {
        let sizes = [0, 27, 28, 32, 60, 68, 96, 124, 128, 132, 192, 4000, 1 << 24];
        let ids = [0, 6, 7, 8, 9, 10, 11, 12];
        let mut changes = Vec::new();
        for number in 0..records {
            let at = place(number);
            changes.extend([(at, 0), (at, 0x78), (at + 12, 1), (at + SIZE - 12, 0x2a2a)]);
            changes.extend(sizes.map(|size| (at + 4, size)));
            changes.extend(sizes.map(|size| (at + SIZE - 4, size)));
            changes.extend(ids.map(|id| (at + 8, id)));
        }
        changes.extend(ids.map(|id| (24, id)));
        changes.extend(ids.map(|id| (32, id)));
        changes.extend((0..=records).map(|number| (48, place(number) as u32)));
        changes.extend([(0, 0), (48, place(2) as u32 + 8), (48, CHUNK_SIZE as u32), (48, 0)]);
        changes
    }

    /// All that a walk says: the items with their frames and damage, and what is wrong with the chunk.
    fn walk_in_full(chunk: &[u8], recover: bool) -> String {
        let (mut walk, damage) = RecordWalk::new(chunk, PromisedIds::default(), recover);
        let mut said = format!("{damage:?}");
        while let Some(item) = walk.next(chunk) {
            let damage = walk.damage();
            match item {
                Ok(FoundRecord {
                    record,
                    recovered,
                    is_carved,
                    is_damaged,
                }) => {
                    let (at, end, id) = (record.offset, record.end(), record.id);
                    said += &format!(" {at}..{end} {id} {recovered} {is_carved} {is_damaged} {damage:?}");
                }
                Err(error) => said += &format!(" {error:?}"),
            }
        }
        said
    }

    #[test]
    fn one_change_of_a_frame_costs_no_other_record() {
        let ids = [7, 8, 9, 10];
        for (at, number) in changes(ids.len()) {
            let mut chunk = chunk_of(&ids);
            put(&mut chunk, at, number);
            let found: Vec<u64> = items(RecordWalk::new(&chunk, PromisedIds::default(), false).0, &chunk)
                .into_iter()
                .flatten()
                .collect();
            let of = |id: &u64| (at.checked_sub(CHUNK_HEADER)).is_some_and(|at| at / SIZE == (*id - 7) as usize);
            let mut others = ids.iter().filter(|id| !of(id));
            assert!(others.all(|id| found.contains(id)), "{at} {number}: {found:?}");
        }
    }

    #[test]
    fn two_changes_of_frames_are_walked_as_ever() {
        let all = changes(4);
        let mut checksums = Vec::new();
        for recover in [false, true] {
            for family in all.chunks(all.len().div_ceil(4)) {
                let mut checksum = crc32fast::Hasher::new();
                for (i, first) in family.iter().enumerate() {
                    for second in all.iter().skip(i % 5).step_by(5) {
                        let mut chunk = chunk_of(&[7, 8, 9, 10, 11]);
                        for (at, number) in [first, second] {
                            put(&mut chunk, *at, *number);
                        }
                        checksum.update(walk_in_full(&chunk, recover).as_bytes());
                    }
                }
                checksums.push(format!("{:08x}", checksum.finalize()));
            }
        }
        // They change with what the walk gives. Campaigns against an independent walker then show that it is right.
        assert_eq!(
            checksums.join(" "),
            "391919d1 c09ecd17 c3f429e5 5ef7a497 2bf89249 82aa2f2a 33b37dd6 8f4a7462"
        );
    }
}
