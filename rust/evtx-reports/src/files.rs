//! Reports on files and on chunks: what their headers say, and what their bytes hold.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use evtx_arrow::{Slots, SlotsError, TooManyEvents};
use evtx_format::container::chunk::{CHUNK_SIZE, ChunkHeader, is_unused, template_count};
use evtx_format::container::header::{FILE_HEADER, FileHeader};
use evtx_format::container::records::{PromisedIds, RecordWalk};
use evtx_format::value::time::filetime_to_unix_nanos;
use evtx_format::{Error, ErrorKind, Interrupt, Interrupted};

use super::event_ids::{EventIdReader, EventIds, LogSpan};
use super::report::Report;
use super::runs::{Runs, Span};
use super::table::{self, ReportColumn, Value};

/// What a walk over the records of a chunk finds.
#[derive(Debug, Default)]
struct ChunkSummary {
    /// The header of the chunk, if it can be read.
    header: Option<ChunkHeader>,
    /// How many live records there are.
    records: u64,
    /// How many sound records of an older use of the chunk, or of the disk, stand between and after them.
    slack_records: u64,
    /// The IDs of the first and the last record, in the order of their offsets.
    ids: Option<(u64, u64)>,
    /// The IDs of all records.
    runs: Runs,
    /// The earliest and the latest time at which a record was written, in nanoseconds since 1970-01-01 UTC.
    times: Option<(i64, i64)>,
    /// The first damage, with the index of the chunk and the file offset.
    error: Option<String>,
}

impl ChunkSummary {
    /// Walks over the records of a chunk, whose index in the file is `index`.
    ///
    /// # Errors
    /// [`Interrupted`].
    fn of(chunk: &[u8], index: u64, promised: PromisedIds, interrupt: Interrupt<'_>) -> Result<Self, Interrupted> {
        let (mut walk, damage) = RecordWalk::new(chunk, promised, true);
        let mut found = ChunkSummary {
            header: ChunkHeader::read(chunk).ok(),
            ..ChunkSummary::default()
        };
        let mut error = damage;
        while let Some(item) = walk.next(chunk) {
            if (found.records + found.slack_records).is_multiple_of(FRAMES) {
                interrupt.check()?;
            }
            match item {
                Ok(item) if item.is_carved || walk.is_leftover() => found.slack_records += 1,
                Ok(item) => {
                    if item.is_damaged {
                        error = error.or(walk.damage());
                    }
                    found.records += 1;
                    let id = item.record.id;
                    found.ids = Some((found.ids.map_or(id, |(first, _)| first), id));
                    found.runs.add(id, id);
                    if let Some(time) = filetime_to_unix_nanos(item.record.written) {
                        let (first, last) = found.times.unwrap_or((time, time));
                        found.times = Some((first.min(time), last.max(time)));
                    }
                }
                Err(damage) => _ = error.get_or_insert(damage),
            }
        }
        let unsound = || found.header.and_then(|header| header.verify(chunk).err());
        let other_ids = || found.header.and_then(|header| other_ids(&header, found.ids?));
        found.error = error.or_else(unsound).or_else(other_ids).map(|error| {
            let at = offset(index) + u64::from(error.offset);
            format!("chunk {index}, offset {at:#x}: {error}")
        });
        Ok(found)
    }
}

/// The error of a chunk whose header has other IDs than its first and last record; `None` if they are the same.
fn other_ids(header: &ChunkHeader, found: (u64, u64)) -> Option<Error> {
    let stored = (header.first_record_id, header.last_record_id);
    (stored != found).then(|| Error::new(24, ErrorKind::RecordIds { stored, found }))
}

/// The offset of a chunk in its file, in bytes.
fn offset(index: u64) -> u64 {
    FILE_HEADER as u64 + index * CHUNK_SIZE as u64
}

/// How many records are read between two checks for an interrupt. It is low because damaged frames take long.
const FRAMES: u64 = 32;

/// The column that takes reading the events.
const EVENT_RECORD_IDS: &str = "event_record_ids";

/// The columns of a [`FileReport`].
const FILE_COLUMNS: &[ReportColumn<FileRow>] = &[
    ReportColumn {
        name: "filename",
        about: "The path of the file.",
        value: Value::Text(|row| Some(row.filename.as_str().into())),
    },
    ReportColumn {
        name: "file_size",
        about: "The size of the file, in bytes.",
        value: Value::UInt64(|row| Some(row.size)),
    },
    ReportColumn {
        name: "version",
        about: "The version of the format: 3.1, or 3.2 on newer Windows.",
        value: Value::Text(|row| {
            row.header
                .map(|header| format!("{}.{}", header.version.0, header.version.1).into())
        }),
    },
    ReportColumn {
        name: "flags",
        about: "The header's flags: 1 dirty, 2 full, 4 no checksums.",
        value: Value::UInt32(|row| row.header.map(|header| header.flags)),
    },
    ReportColumn {
        name: "is_dirty",
        about: "Whether the log was open when it was copied, so that its header can be older than its chunks.",
        value: Value::Bool(|row| row.header.map(|header| header.is_dirty())),
    },
    ReportColumn {
        name: "is_full",
        about: "Whether the header says that the log has reached its maximum size. Windows does not set this flag in every log that has wrapped.",
        value: Value::Bool(|row| row.header.map(|header| header.is_full())),
    },
    ReportColumn {
        name: "is_wrapped",
        about: "Whether the newest records have replaced the oldest: the first chunk starts above record ID 1, or a later chunk has lower IDs than the one before it.",
        value: Value::Bool(|row| row.header.map(|_| row.found.order.has_wrapped())),
    },
    ReportColumn {
        name: "first_chunk",
        about: "The index of the oldest chunk, according to the header.",
        value: Value::UInt64(|row| row.header.map(|header| header.first_chunk)),
    },
    ReportColumn {
        name: "last_chunk",
        about: "The index of the newest chunk, according to the header.",
        value: Value::UInt64(|row| row.header.map(|header| header.last_chunk)),
    },
    ReportColumn {
        name: "next_record_id",
        about: "The ID that the next record gets, according to the header.",
        value: Value::UInt64(|row| row.header.map(|header| header.next_record_id)),
    },
    ReportColumn {
        name: "header_chunks",
        about: "How many chunks there are, according to the header.",
        value: Value::UInt16(|row| row.header.map(|header| header.chunk_count)),
    },
    ReportColumn {
        name: "stored_checksum",
        about: "The CRC32 of the header, as stored in it.",
        value: Value::UInt32(|row| row.header.map(|header| header.checksum)),
    },
    ReportColumn {
        name: "computed_checksum",
        about: "The CRC32 of the header, as computed from its bytes.",
        value: Value::UInt32(|row| row.header.map(|header| header.computed_checksum)),
    },
    ReportColumn {
        name: "chunks",
        about: "How many chunks the file has room for, one that is cut short included.",
        value: Value::UInt64(|row| row.header.map(|_| row.found.chunks)),
    },
    ReportColumn {
        name: "unused_chunks",
        about: "How many of these chunks are all zeros.",
        value: Value::UInt64(|row| row.header.map(|_| row.found.unused)),
    },
    ReportColumn {
        name: "damaged_chunks",
        about: "How many of these chunks are damaged, or do not match their checksums.",
        value: Value::UInt64(|row| row.header.map(|_| row.found.damaged)),
    },
    ReportColumn {
        name: "records",
        about: "How many records there are, by their frames. Which of them cannot be decoded, only `read_evtx` tells.",
        value: Value::UInt64(|row| row.header.map(|_| row.found.records)),
    },
    ReportColumn {
        name: "first_record_id",
        about: "The least ID of a record.",
        value: Value::UInt64(|row| row.span.map(|span| span.least)),
    },
    ReportColumn {
        name: "last_record_id",
        about: "The greatest ID of a record.",
        value: Value::UInt64(|row| row.span.map(|span| span.greatest)),
    },
    ReportColumn {
        name: "missing_records",
        about: "How many IDs between these two belong to no record. NULL if there are more than 262,143 gaps between IDs.",
        value: Value::UInt64(|row| row.span?.missing),
    },
    ReportColumn {
        name: "first_written",
        about: "The earliest time at which a record was written, UTC.",
        value: Value::Time(|row| row.found.times.map(|(first, _)| first)),
    },
    ReportColumn {
        name: "last_written",
        about: "The latest time at which a record was written, UTC.",
        value: Value::Time(|row| row.found.times.map(|(_, last)| last)),
    },
    ReportColumn {
        name: "slack_records",
        about: "How many sound records stand where no live record should be: left over from an older use of the chunk, or in a chunk that was never written from another file. `recover := true` returns them, except copies of others.",
        value: Value::UInt64(|row| row.header.map(|_| row.found.slack_records)),
    },
    ReportColumn {
        name: EVENT_RECORD_IDS,
        about: "For each channel and computer: the records, the least and the greatest `event_record_id`, and how many between these no record has. A log that was exported has new record IDs, but keeps these. NULL if there are more gaps, or more channels and computers, than any real log has.",
        value: Value::LogSpans(|row| row.logs.as_deref()),
    },
    ReportColumn {
        name: "error",
        about: "NULL, or why the file could not be read to its end, or else its first damage.",
        value: Value::Text(|row| row.error.as_deref().map(Into::into)),
    },
];

/// A report on files, with one row for each.
#[derive(Debug, Default)]
pub struct FileReport {
    rows: Vec<FileRow>,
    /// Whether the last row is of a file that has not ended.
    is_open: bool,
    /// Whether the events are read, for their IDs.
    reads_events: bool,
}

impl FileReport {
    /// A report of which the columns with these indexes are wanted. The events are read only if one of them needs that.
    pub fn of_columns(columns: &[usize]) -> Self {
        let is_of_events = |&column: &usize| FILE_COLUMNS.get(column).is_some_and(|it| it.name == EVENT_RECORD_IDS);
        FileReport {
            reads_events: columns.iter().any(is_of_events),
            ..FileReport::default()
        }
    }
}

/// What a thread looks at pieces for a [`FileReport`] with.
pub struct FileWorker(Option<EventIdReader>);

impl std::fmt::Debug for FileWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FileWorker").field(&self.0.is_some()).finish()
    }
}

/// A row of [`FileReport`].
#[derive(Debug, Default)]
struct FileRow {
    filename: String,
    /// The size of the file, in bytes.
    size: u64,
    /// The header; `None` if the file is no log.
    header: Option<FileHeader>,
    found: FilePiece,
    /// The span of the IDs, once the file has ended.
    span: Option<Span>,
    logs: Option<Vec<LogSpan>>,
    error: Option<String>,
}

/// What a [`FileReport`] tells of a piece of a file.
#[derive(Debug, Default)]
pub struct FilePiece {
    chunks: u64,
    /// How many of these are all zeros.
    unused: u64,
    /// How many of these are damaged.
    damaged: u64,
    records: u64,
    slack_records: u64,
    /// The IDs of the records, until the file ends.
    runs: Runs,
    times: Option<(i64, i64)>,
    order: ChunkOrder,
    event_ids: EventIds,
    /// What is wrong first.
    error: Option<String>,
}

/// The order of the chunks of a file, by the IDs of their first records.
#[derive(Debug, Default)]
struct ChunkOrder {
    /// The least ID in the slot with index 0, if it was read and has records.
    start: Option<u64>,
    /// The least ID of the first and of the last chunk with records.
    span: Option<(u64, u64)>,
    /// Whether a chunk has lower IDs than the one before it.
    falls: bool,
}

impl ChunkOrder {
    /// The order of one chunk, whose index in the file is `index`. Where its first record is damaged, its header tells.
    fn of(chunk: &ChunkSummary, index: u64) -> Self {
        let found = chunk.ids.map(|(first, _)| first);
        let listed = chunk.header.and_then(|header| header.record_ids());
        let listed = listed.map(|ids| *ids.start()).filter(|_| found.is_some());
        let first = found.into_iter().chain(listed).min();
        ChunkOrder {
            start: first.filter(|_| index == 0),
            span: first.map(|first| (first, first)),
            falls: false,
        }
    }

    /// Adds the chunks that follow.
    fn add(&mut self, next: ChunkOrder) {
        self.start = self.start.or(next.start);
        self.falls |= next.falls;
        self.span = match (self.span, next.span) {
            (Some((first, last)), Some((next, end))) => {
                self.falls |= next < last;
                Some((first, end))
            }
            (a, b) => a.or(b),
        };
    }

    fn has_wrapped(&self) -> bool {
        self.falls || self.start.is_some_and(|id| id > 1)
    }
}

impl FilePiece {
    fn chunk(
        &mut self,
        chunk: &[u8],
        index: u64,
        promised: PromisedIds,
        FileWorker(reader): &mut FileWorker,
        interrupt: Interrupt<'_>,
    ) -> Result<(), Interrupted> {
        self.chunks += 1;
        if is_unused(chunk) {
            self.unused += 1;
            return Ok(());
        }
        if let Some(reader) = reader {
            reader.read(chunk, promised, &mut self.event_ids, interrupt)?;
        }
        let found = ChunkSummary::of(chunk, index, promised, interrupt)?;
        self.add(FilePiece {
            chunks: 0,
            unused: 0,
            damaged: found.error.is_some().into(),
            records: found.records,
            slack_records: found.slack_records,
            order: ChunkOrder::of(&found, index),
            runs: found.runs,
            times: found.times,
            event_ids: EventIds::default(),
            error: found.error,
        });
        Ok(())
    }

    /// Adds what there is to tell of the chunks behind.
    fn add(&mut self, behind: FilePiece) {
        self.chunks += behind.chunks;
        self.unused += behind.unused;
        self.damaged += behind.damaged;
        self.records += behind.records;
        self.slack_records += behind.slack_records;
        self.runs.join(behind.runs);
        self.order.add(behind.order);
        self.event_ids.join(behind.event_ids);
        self.times = match (self.times, behind.times) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        self.error = self.error.take().or(behind.error);
    }
}

impl Report for FileReport {
    type Worker = FileWorker;
    type Piece = FilePiece;

    fn schema(&self) -> SchemaRef {
        table::schema(FILE_COLUMNS)
    }

    fn reference(&self) -> Vec<(&'static str, &'static str)> {
        table::reference(FILE_COLUMNS)
    }

    fn worker(&self) -> FileWorker {
        FileWorker(self.reads_events.then(EventIdReader::new))
    }

    fn look(worker: &mut FileWorker, slots: Slots<'_>, interrupt: Interrupt<'_>) -> Result<FilePiece, SlotsError> {
        let mut piece = FilePiece::default();
        for (index, chunk, promised) in slots.chunks() {
            interrupt.check()?;
            piece.chunk(chunk, index, promised, worker, interrupt)?;
        }
        Ok(piece)
    }

    fn start(&mut self, filename: &str, size: u64, header: Option<FileHeader>) {
        self.is_open = true;
        self.rows.push(FileRow {
            filename: filename.to_owned(),
            size,
            header,
            error: header.and_then(|header| {
                let wrong = header.verify().and_then(|()| header.check_size(size));
                Some(wrong.err()?.to_string())
            }),
            ..FileRow::default()
        });
    }

    fn add(&mut self, piece: FilePiece) {
        if let Some(row) = self.rows.last_mut() {
            row.found.add(piece);
        }
    }

    fn end(&mut self, failure: Option<&str>) {
        self.is_open = false;
        if let Some(row) = self.rows.last_mut() {
            row.span = std::mem::take(&mut row.found.runs).span();
            row.logs = match self.reads_events && row.header.is_some() {
                true => std::mem::take(&mut row.found.event_ids).spans(),
                false => None,
            };
            let first = row.error.take().or(row.found.error.take());
            row.error = failure.map(str::to_owned).or(first);
        }
    }

    fn join(&mut self, _worker: FileWorker) -> Result<(), TooManyEvents> {
        Ok(())
    }

    fn batch(&mut self, _last: bool) -> Result<Option<RecordBatch>, ArrowError> {
        if self.is_open || self.rows.is_empty() {
            return Ok(None);
        }
        let rows = std::mem::take(&mut self.rows);
        table::batch(FILE_COLUMNS, &rows).map(Some)
    }
}

/// The columns of a [`ChunkReport`].
const CHUNK_COLUMNS: &[ReportColumn<ChunkRow>] = &[
    ReportColumn {
        name: "filename",
        about: "The path of the file.",
        value: Value::Text(|row| Some((*row.filename).into())),
    },
    ReportColumn {
        name: "chunk_index",
        about: "The index of the chunk in the file, from 0. For a file that is no log, this and all but `error` are NULL.",
        value: Value::UInt64(|row| row.index),
    },
    ReportColumn {
        name: "chunk_offset",
        about: "Where the chunk starts in the file, in bytes.",
        value: Value::UInt64(|row| row.index.map(offset)),
    },
    ReportColumn {
        name: "is_used",
        about: "Whether the chunk was ever used. A chunk that was not is all zeros, and has no header.",
        value: Value::Bool(|row| row.is_used),
    },
    ReportColumn {
        name: "flags",
        about: "The chunk header's flags: 4 no checksums.",
        value: Value::UInt32(|row| row.header().map(|header| header.flags)),
    },
    ReportColumn {
        name: "first_record_number",
        about: "The number of its first record, counted from the start of the log, according to the chunk header.",
        value: Value::UInt64(|row| row.header().map(|header| header.first_record_number)),
    },
    ReportColumn {
        name: "last_record_number",
        about: "The number of its last record, according to the chunk header.",
        value: Value::UInt64(|row| row.header().map(|header| header.last_record_number)),
    },
    ReportColumn {
        name: "header_first_record_id",
        about: "The ID of its first record, according to the chunk header.",
        value: Value::UInt64(|row| row.header().map(|header| header.first_record_id)),
    },
    ReportColumn {
        name: "header_last_record_id",
        about: "The ID of its last record, according to the chunk header.",
        value: Value::UInt64(|row| row.header().map(|header| header.last_record_id)),
    },
    ReportColumn {
        name: "last_record_offset",
        about: "Where its last record starts in the chunk, in bytes, according to the chunk header.",
        value: Value::UInt32(|row| row.header().map(|header| header.last_record)),
    },
    ReportColumn {
        name: "free_space_offset",
        about: "Where its free space starts in the chunk, in bytes, according to the chunk header.",
        value: Value::UInt32(|row| row.header().map(|header| header.free_space)),
    },
    ReportColumn {
        name: "free_bytes",
        about: "How many bytes of the chunk are free space, according to the chunk header.",
        value: Value::UInt32(|row| {
            row.header()
                .map(|header| (CHUNK_SIZE as u32).saturating_sub(header.free_space))
        }),
    },
    ReportColumn {
        name: "stored_header_checksum",
        about: "The CRC32 of the chunk header, as stored in it.",
        value: Value::UInt32(|row| row.header().map(|header| header.header_checksum)),
    },
    ReportColumn {
        name: "computed_header_checksum",
        about: "The CRC32 of the chunk header, as computed from its bytes.",
        value: Value::UInt32(|row| row.checksums.0),
    },
    ReportColumn {
        name: "stored_records_checksum",
        about: "The CRC32 of the records, as stored in the chunk header.",
        value: Value::UInt32(|row| row.header().map(|header| header.records_checksum)),
    },
    ReportColumn {
        name: "computed_records_checksum",
        about: "The CRC32 of the records, as computed from their bytes. NULL if the free space is out of range.",
        value: Value::UInt32(|row| row.checksums.1),
    },
    ReportColumn {
        name: "templates",
        about: "How many template definitions the table of the chunk leads to.",
        value: Value::UInt32(|row| row.templates),
    },
    ReportColumn {
        name: "records",
        about: "How many records there are.",
        value: Value::UInt64(|row| row.is_used.map(|_| row.found.records)),
    },
    ReportColumn {
        name: "first_record_id",
        about: "The least ID of a record.",
        value: Value::UInt64(|row| row.span.map(|span| span.least)),
    },
    ReportColumn {
        name: "last_record_id",
        about: "The greatest ID of a record.",
        value: Value::UInt64(|row| row.span.map(|span| span.greatest)),
    },
    ReportColumn {
        name: "missing_records",
        about: "How many IDs between these two belong to no record. NULL if there are more than 262,143 gaps between IDs.",
        value: Value::UInt64(|row| row.span?.missing),
    },
    ReportColumn {
        name: "first_written",
        about: "The earliest time at which a record was written, UTC.",
        value: Value::Time(|row| row.found.times.map(|(first, _)| first)),
    },
    ReportColumn {
        name: "last_written",
        about: "The latest time at which a record was written, UTC.",
        value: Value::Time(|row| row.found.times.map(|(_, last)| last)),
    },
    ReportColumn {
        name: "slack_records",
        about: "How many sound records stand where no live record should be: left over from an older use of the chunk, or in a chunk that was never written from another file. `recover := true` returns them, except copies of others.",
        value: Value::UInt64(|row| row.is_used.map(|_| row.found.slack_records)),
    },
    ReportColumn {
        name: "error",
        about: "NULL, or the first damage in the chunk, or why the file could not be read.",
        value: Value::Text(|row| row.found.error.as_deref().map(Into::into)),
    },
];

/// A report on chunks, with one row for each slot of a chunk, and one for each file that cannot be read to its end.
#[derive(Debug, Default)]
pub struct ChunkReport {
    /// The path and the size of the current file, in bytes.
    filename: Arc<str>,
    rows: Vec<ChunkRow>,
}

/// A row of a [`ChunkReport`].
#[derive(Debug, Default)]
pub struct ChunkRow {
    filename: Arc<str>,
    /// The index of the chunk in the file; `None` in the row of a file that cannot be read.
    index: Option<u64>,
    /// Whether the chunk is not all zeros; `None` in the row of a file that cannot be read.
    is_used: Option<bool>,
    found: ChunkSummary,
    /// The CRC32 of the header and that of the records, as computed.
    checksums: (Option<u32>, Option<u32>),
    /// How many template definitions the table leads to; `None` if the header cannot be read.
    templates: Option<u32>,
    /// What the IDs of the records span.
    span: Option<Span>,
}

impl ChunkRow {
    fn header(&self) -> Option<&ChunkHeader> {
        self.found.header.as_ref()
    }
}

impl Report for ChunkReport {
    type Worker = ();
    type Piece = Vec<ChunkRow>;

    fn schema(&self) -> SchemaRef {
        table::schema(CHUNK_COLUMNS)
    }

    fn reference(&self) -> Vec<(&'static str, &'static str)> {
        table::reference(CHUNK_COLUMNS)
    }

    fn worker(&self) {}

    fn look((): &mut (), slots: Slots<'_>, interrupt: Interrupt<'_>) -> Result<Vec<ChunkRow>, SlotsError> {
        let mut rows = Vec::new();
        for (index, chunk, promised) in slots.chunks() {
            interrupt.check()?;
            let is_used = !is_unused(chunk);
            let mut found = if is_used {
                ChunkSummary::of(chunk, index, promised, interrupt)?
            } else {
                ChunkSummary::default()
            };
            let header = found.header;
            rows.push(ChunkRow {
                index: Some(index),
                is_used: Some(is_used),
                checksums: (
                    header.and_then(|header| header.computed_header_checksum(chunk)),
                    header.and_then(|header| header.computed_records_checksum(chunk)),
                ),
                templates: header.map(|_| template_count(chunk) as u32),
                span: std::mem::take(&mut found.runs).span(),
                found,
                ..ChunkRow::default()
            });
        }
        Ok(rows)
    }

    fn start(&mut self, filename: &str, _size: u64, _header: Option<FileHeader>) {
        self.filename = filename.into();
    }

    fn add(&mut self, piece: Vec<ChunkRow>) {
        let filename = &self.filename;
        self.rows.extend(piece.into_iter().map(|row| ChunkRow {
            filename: Arc::clone(filename),
            ..row
        }));
    }

    fn end(&mut self, failure: Option<&str>) {
        if let Some(failure) = failure {
            let found = ChunkSummary {
                error: Some(failure.to_owned()),
                ..ChunkSummary::default()
            };
            self.add(vec![ChunkRow {
                found,
                ..ChunkRow::default()
            }]);
        }
    }

    fn join(&mut self, (): ()) -> Result<(), TooManyEvents> {
        Ok(())
    }

    fn batch(&mut self, _last: bool) -> Result<Option<RecordBatch>, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(None);
        }
        table::batch(CHUNK_COLUMNS, &rows).map(Some)
    }
}
