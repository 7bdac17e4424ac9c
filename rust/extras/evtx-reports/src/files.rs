//! The report on files.

use evtx_events::{Slots, SlotsError};
use evtx_format::container::header::FileHeader;
use evtx_format::{Interrupt, printable};

use crate::event_ids::{ClearReader, EventIdReader, EventIds, LogSpan};
use crate::id_ranges::Span;
use crate::report::Report;
use crate::summary::{ChunkSummary, RecordSummary};
use crate::table::{Row, columns};

/// The column for which events are read, and not only the frames of their records.
const EVENT_RECORD_IDS: &str = "event_record_ids";

/// The column for which the events of the first chunk are read, and of each chunk only the first record.
const IS_WRAPPED: &str = "is_wrapped";

/// The column for which no chunk is read.
const FILENAME: &str = "filename";

/// A report on files, with one row for each.
#[derive(Default)]
pub struct FileReport {
    rows: Vec<FileRow>,
    /// Whether the last row is of a file that has not ended.
    is_open: bool,
    /// Whether events are read.
    reads_events: bool,
    /// Whether it is told if a log starts with the event of its clearing.
    reads_clears: bool,
    /// Whether the first record of each chunk tells enough.
    is_first_only: bool,
}

impl FileReport {
    /// A report for the columns with these indexes. Events, and records after the first of a chunk, are read only if one of the columns
    /// needs them.
    pub fn of_columns(columns: &[usize]) -> Self {
        let names = || {
            columns
                .iter()
                .filter_map(|&column| Some(FileRow::COLUMNS.get(column)?.name))
        };
        let reads = |name| names().any(|column| column == name);
        FileReport {
            reads_events: reads(EVENT_RECORD_IDS),
            reads_clears: reads(IS_WRAPPED),
            is_first_only: names().all(|column| [FILENAME, IS_WRAPPED].contains(&column)),
            ..FileReport::default()
        }
    }
}

/// A row of a [`FileReport`].
#[derive(Default)]
pub struct FileRow {
    filename: String,
    /// The size of the file, in bytes.
    size: u64,
    /// The header; `None` if the file is not an EVTX log.
    header: Option<FileHeader>,
    blocks: FileBlocks,
    /// The span of the record IDs, once the file has ended.
    span: Option<Span>,
    logs: Option<Vec<LogSpan>>,
    error: Option<String>,
}

/// The chunks of some blocks of a file.
#[derive(Default)]
pub struct FileBlocks {
    chunks: u64,
    /// How many chunks were never used.
    unused: u64,
    damaged: u64,
    order: ChunkOrder,
    event_ids: EventIds,
    records: RecordSummary,
}

/// The order of the chunks of a file, by the IDs of their first records.
#[derive(Debug, Default)]
struct ChunkOrder {
    /// The least ID in slot 0, if it has records and is among the chunks.
    start: Option<u64>,
    /// The least ID of the first and of the last chunk with records.
    span: Option<(u64, u64)>,
    /// Whether a chunk has lower IDs than the one before it.
    falls: bool,
    /// Whether slot 0 starts with the event that says that the log was cleared.
    starts_cleared: bool,
}

impl ChunkOrder {
    /// The order of one chunk with this index in the file. If its first record is damaged, its header has the ID.
    fn of(chunk: &ChunkSummary, index: u64) -> Self {
        let found = chunk.ids.map(|(first, _)| first);
        let listed = chunk.header.and_then(|header| header.record_ids());
        let listed = listed.map(|ids| *ids.start()).filter(|_| found.is_some());
        let first = found.into_iter().chain(listed).min();
        ChunkOrder {
            start: first.filter(|_| index == 0),
            span: first.map(|first| (first, first)),
            ..ChunkOrder::default()
        }
    }

    /// Adds the chunks that follow.
    fn add(&mut self, next: ChunkOrder) {
        self.start = self.start.or(next.start);
        self.falls |= next.falls;
        self.starts_cleared |= next.starts_cleared;
        self.span = match (self.span, next.span) {
            (Some((first, last)), Some((next, end))) => {
                self.falls |= next < last;
                Some((first, end))
            }
            (a, b) => a.or(b),
        };
    }

    /// Whether the newest records have replaced the oldest. The IDs of a log go on after it was cleared, and a log with unused
    /// chunks had room.
    fn has_wrapped(&self, unused: u64) -> bool {
        self.falls || self.start.is_some_and(|id| id > 1) && unused == 0 && !self.starts_cleared
    }
}

impl FileBlocks {
    /// Adds the chunks that follow.
    fn join(&mut self, next: FileBlocks) {
        self.chunks += next.chunks;
        self.unused += next.unused;
        self.damaged += next.damaged;
        self.order.add(next.order);
        self.event_ids.join(next.event_ids);
        self.records.join(next.records);
    }
}

impl Report for FileReport {
    type Row = FileRow;
    type Worker = FileWorker;
    type BlockResult = FileBlocks;

    fn worker(&self) -> FileWorker {
        FileWorker {
            ids: self.reads_events.then(EventIdReader::new),
            clears: self.reads_clears.then(ClearReader::new),
            is_first_only: self.is_first_only,
        }
    }

    fn look(
        FileWorker {
            ids,
            clears,
            is_first_only,
        }: &mut FileWorker,
        slots: Slots<'_>,
        interrupt: Interrupt<'_>,
    ) -> Result<FileBlocks, SlotsError> {
        let (mut block, first_unused) = (FileBlocks::default(), slots.first_unused());
        for (index, chunk, promised) in slots.chunks() {
            interrupt.check()?;
            block.chunks += 1;
            if index >= first_unused {
                block.unused += 1;
                continue;
            }
            if let Some(reader) = ids {
                reader.read(chunk, promised, &mut block.event_ids, interrupt)?;
            }
            let summary = ChunkSummary::of(chunk, index, promised, *is_first_only, interrupt)?;
            block.damaged += u64::from(summary.records.error.is_some());
            let mut order = ChunkOrder::of(&summary, index);
            if let (Some(reader), 0) = (clears.as_mut(), index) {
                order.starts_cleared = reader.starts_cleared(chunk, promised, interrupt)?;
            }
            block.order.add(order);
            block.records.join(summary.records);
        }
        Ok(block)
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

    fn add(&mut self, block: FileBlocks) {
        if let Some(row) = self.rows.last_mut() {
            row.blocks.join(block);
        }
    }

    fn end(&mut self, failure: Option<&str>) {
        self.is_open = false;
        if let Some(row) = self.rows.last_mut() {
            row.span = std::mem::take(&mut row.blocks.records.ranges).span();
            row.logs = if self.reads_events && row.header.is_some() {
                std::mem::take(&mut row.blocks.event_ids).spans()
            } else {
                None
            };
            let first = row.error.take().or(row.blocks.records.error.take());
            row.error = failure.map(str::to_owned).or(first);
        }
    }

    fn rows(&mut self, _last: bool) -> Vec<FileRow> {
        if self.is_open {
            Vec::new()
        } else {
            std::mem::take(&mut self.rows)
        }
    }
}

/// What a thread needs to look at blocks for a [`FileReport`].
pub struct FileWorker {
    ids: Option<EventIdReader>,
    clears: Option<ClearReader>,
    is_first_only: bool,
}

columns! { FileRow:
    /// The path of the file.
    filename: Text(|row| Some(row.filename.as_str().into()));
    /// The size of the file, in bytes.
    file_size: UInt64(|row| Some(row.size));
    /// The version of the format: 3.1, or 3.2 on newer Windows.
    version: Text(|row| row.header.map(|header| format!("{}.{}", header.version.0, header.version.1).into()));
    /// The header's flags: 1 dirty, 2 full, 4 no checksums.
    flags: UInt32(|row| row.header.map(|header| header.flags));
    /// Whether the log was open when it was copied, so that its header can be older than its chunks.
    is_dirty: Bool(|row| row.header.map(|header| header.is_dirty()));
    /// Whether the header says that the log has reached its maximum size. Not set in every log that has wrapped.
    is_full: Bool(|row| row.header.map(|header| header.is_full()));
    /// Whether the newest records have replaced the oldest: a chunk has lower IDs than the one before it, or the first
    /// one starts above record ID 1 and none is unused. A place where the log was cleared (events 104 and 1102) does
    /// not count.
    is_wrapped: Bool(|row| row.header.map(|_| row.blocks.order.has_wrapped(row.blocks.unused)));
    /// The index of the oldest chunk, according to the header.
    first_chunk: UInt64(|row| row.header.map(|header| header.first_chunk));
    /// The index of the newest chunk, according to the header.
    last_chunk: UInt64(|row| row.header.map(|header| header.last_chunk));
    /// The ID of the next record, according to the header.
    next_record_id: UInt64(|row| row.header.map(|header| header.next_record_id));
    /// The number of chunks, according to the header.
    header_chunks: UInt16(|row| row.header.map(|header| header.chunk_count));
    /// The CRC32 that the header states.
    stored_checksum: UInt32(|row| row.header.map(|header| header.checksum));
    /// The CRC32 of the header's bytes.
    computed_checksum: UInt32(|row| row.header.map(|header| header.computed_checksum));
    /// How many chunks the file has room for. A chunk that is cut short counts.
    chunks: UInt64(|row| row.header.map(|_| row.blocks.chunks));
    /// How many of these chunks were never used: only zeros follow, and the header does not count them.
    unused_chunks: UInt64(|row| row.header.map(|_| row.blocks.unused));
    /// How many of these chunks are damaged or do not match their checksums.
    damaged_chunks: UInt64(|row| row.header.map(|_| row.blocks.damaged));
    /// How many records there are, by their frames. Only `read_evtx` finds records that cannot be decoded.
    records: UInt64(|row| row.header.map(|_| row.blocks.records.live));
    /// The lowest record ID.
    first_record_id: UInt64(|row| row.span.map(|span| span.least));
    /// The highest record ID.
    last_record_id: UInt64(|row| row.span.map(|span| span.greatest));
    /// How many IDs between these two have no record. NULL if there are more than 262,143 gaps.
    missing_records: UInt64(|row| row.span?.missing);
    /// The earliest time at which a record was written, UTC.
    first_written: Time(|row| row.blocks.records.times.map(|(first, _)| first));
    /// The latest time at which a record was written, UTC.
    last_written: Time(|row| row.blocks.records.times.map(|(_, last)| last));
    /// How many valid records are left over from an older use of the chunk or the disk. `recover := true` returns them,
    /// except copies of other records.
    slack_records: UInt64(|row| row.header.map(|_| row.blocks.records.slack));
    /// For each channel and computer: the number of records, the lowest and the highest `event_record_id`, and how many
    /// IDs between these have no record. NULL if there are more of them than in any real log.
    event_record_ids: LogSpans(|row| row.logs.as_deref());
    /// NULL, or why the file could not be read to its end, or its first damage. Starts with `not read: ` for files that
    /// look like other evidence.
    error: Text(|row| row.error.as_deref().map(printable));
}
