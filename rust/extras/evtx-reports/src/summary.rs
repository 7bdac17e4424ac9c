//! What the header and the records of a chunk say.

use evtx_format::container::chunk::{CHUNK_SIZE, ChunkHeader};
use evtx_format::container::header::FILE_HEADER;
use evtx_format::container::records::{Origin, PromisedIds, RecordWalk};
use evtx_format::value::time::filetime_to_unix_nanos;
use evtx_format::{Error, ErrorKind, Interrupt, Interrupted};

use crate::id_ranges::IdRanges;

/// How many records are read between two checks for an interrupt. Few, because damaged frames take long.
const CHECK_RECORDS: u64 = 32;

/// The header and the records of a chunk.
#[derive(Debug, Default)]
pub(crate) struct ChunkSummary {
    /// The header, if it can be read.
    pub(crate) header: Option<ChunkHeader>,
    /// The IDs of the live record with the lowest offset and of the one with the highest.
    pub(crate) ids: Option<(u64, u64)>,
    pub(crate) records: RecordSummary,
}

/// The records of some chunks.
#[derive(Debug, Default)]
pub(crate) struct RecordSummary {
    /// How many live records there are.
    pub(crate) live: u64,
    /// How many valid records are left over from an older use of the chunk, or of the disk.
    pub(crate) slack: u64,
    /// The IDs of the live records.
    pub(crate) ranges: IdRanges,
    /// When the first and the last live record were written, in nanoseconds since 1970-01-01 UTC.
    pub(crate) times: Option<(i64, i64)>,
    /// The first damage, with the index of the chunk and the file offset.
    pub(crate) error: Option<String>,
}

impl RecordSummary {
    fn add_times(&mut self, times: Option<(i64, i64)>) {
        self.times = match (self.times, times) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
    }

    /// Adds the records of the chunks that follow.
    pub(crate) fn join(&mut self, next: RecordSummary) {
        self.live += next.live;
        self.slack += next.slack;
        self.ranges.join(next.ranges);
        self.add_times(next.times);
        self.error = self.error.take().or(next.error);
    }
}

impl ChunkSummary {
    /// Walks over the records of a chunk with this index in the file, or only to the first.
    pub(crate) fn of(
        chunk: &[u8],
        index: u64,
        promised: PromisedIds,
        is_first_only: bool,
        interrupt: Interrupt<'_>,
    ) -> Result<Self, Interrupted> {
        let (mut walk, mut error) = RecordWalk::new(chunk, promised, true);
        let header = ChunkHeader::read(chunk).ok();
        let (mut ids, mut records) = (None, RecordSummary::default());
        while let Some(item) = walk.next(chunk) {
            if (records.live + records.slack).is_multiple_of(CHECK_RECORDS) {
                interrupt.check()?;
            }
            match item {
                Ok(item) if item.origin == Origin::Carved || walk.is_leftover() => records.slack += 1,
                Ok(item) => {
                    if item.is_damaged {
                        error = error.or(walk.damage());
                    }
                    records.live += 1;
                    let id = item.record.id;
                    ids = Some((ids.map_or(id, |(first, _)| first), id));
                    records.ranges.add(id, id);
                    let time = filetime_to_unix_nanos(item.record.written);
                    records.add_times(time.map(|time| (time, time)));
                    if is_first_only {
                        return Ok(ChunkSummary { header, ids, records });
                    }
                }
                Err(damage) => _ = error.get_or_insert(damage),
            }
        }
        let invalid = || header.and_then(|header| header.verify(chunk).err());
        let error = error.or_else(invalid).or_else(|| other_ids(&header?, ids?));
        records.error = error.map(|error| {
            let at = offset(index) + u64::from(error.offset);
            format!("chunk {index}, offset {at:#x}: {error}")
        });
        Ok(ChunkSummary { header, ids, records })
    }
}

/// The error of a chunk whose header states other IDs than its first and last record have.
fn other_ids(header: &ChunkHeader, found: (u64, u64)) -> Option<Error> {
    let stored = (header.first_record_id, header.last_record_id);
    (stored != found).then(|| Error::new(24, ErrorKind::RecordIds { stored, found }))
}

/// The offset of a chunk in its file, in bytes.
pub(crate) fn offset(index: u64) -> u64 {
    FILE_HEADER as u64 + index * CHUNK_SIZE as u64
}
