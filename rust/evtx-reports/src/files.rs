//! The report on files.

use evtx_arrow::{Slots, SlotsError, TooManyEvents};
use evtx_format::container::chunk::is_unused;
use evtx_format::container::header::FileHeader;
use evtx_format::container::records::PromisedIds;
use evtx_format::{Interrupt, Interrupted};

use crate::event_ids::{EventIdReader, EventIds, LogSpan};
use crate::report::Report;
use crate::runs::Span;
use crate::summary::{ChunkSummary, RecordSummary};
use crate::table::{ReportColumn, Row, Value};

/// The column for which events are read, and not only the frames of their records.
const EVENT_RECORD_IDS: &str = "event_record_ids";

/// A report on files, with one row for each.
#[derive(Default)]
pub struct FileReport {
    rows: Vec<FileRow>,
    /// Whether the last row is of a file that has not ended.
    is_open: bool,
    /// Whether events are read.
    reads_events: bool,
}

impl FileReport {
    /// A report for the columns with these indexes. Events are read only if one of the columns needs them.
    pub fn of_columns(columns: &[usize]) -> Self {
        let mut columns = columns.iter().filter_map(|&column| FileRow::COLUMNS.get(column));
        FileReport {
            reads_events: columns.any(|column| column.name == EVENT_RECORD_IDS),
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
    pieces: FilePiece,
    /// The span of the record IDs, once the file has ended.
    span: Option<Span>,
    logs: Option<Vec<LogSpan>>,
    error: Option<String>,
}

/// The chunks of a piece of a file.
#[derive(Default)]
pub struct FilePiece {
    chunks: u64,
    /// How many chunks are all zeros.
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
    fn add_chunk(
        &mut self,
        chunk: &[u8],
        index: u64,
        promised: PromisedIds,
        reader: &mut Option<EventIdReader>,
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
        let summary = ChunkSummary::of(chunk, index, promised, interrupt)?;
        self.damaged += u64::from(summary.records.error.is_some());
        self.order.add(ChunkOrder::of(&summary, index));
        self.records.join(summary.records);
        Ok(())
    }

    /// Adds the chunks that follow.
    fn join(&mut self, next: FilePiece) {
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
    type Piece = FilePiece;

    fn worker(&self) -> FileWorker {
        FileWorker(self.reads_events.then(EventIdReader::new))
    }

    fn look(
        FileWorker(reader): &mut FileWorker,
        slots: Slots<'_>,
        interrupt: Interrupt<'_>,
    ) -> Result<FilePiece, SlotsError> {
        let mut piece = FilePiece::default();
        for (index, chunk, promised) in slots.chunks() {
            interrupt.check()?;
            piece.add_chunk(chunk, index, promised, reader, interrupt)?;
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
            row.pieces.join(piece);
        }
    }

    fn end(&mut self, failure: Option<&str>) {
        self.is_open = false;
        if let Some(row) = self.rows.last_mut() {
            row.span = std::mem::take(&mut row.pieces.records.runs).span();
            row.logs = match self.reads_events && row.header.is_some() {
                true => std::mem::take(&mut row.pieces.event_ids).spans(),
                false => None,
            };
            let first = row.error.take().or(row.pieces.records.error.take());
            row.error = failure.map(str::to_owned).or(first);
        }
    }

    fn join(&mut self, _worker: FileWorker) -> Result<(), TooManyEvents> {
        Ok(())
    }

    fn rows(&mut self, _last: bool) -> Vec<FileRow> {
        match self.is_open {
            true => Vec::new(),
            false => std::mem::take(&mut self.rows),
        }
    }
}

/// What a thread needs to look at pieces for a [`FileReport`].
pub struct FileWorker(Option<EventIdReader>);

impl Row for FileRow {
    const COLUMNS: &'static [ReportColumn<Self>] = &[
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
            about: "Whether the newest records have replaced the oldest: the first chunk starts above record ID 1, or a chunk has lower IDs than the one before it.",
            value: Value::Bool(|row| row.header.map(|_| row.pieces.order.has_wrapped())),
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
            about: "The ID of the next record, according to the header.",
            value: Value::UInt64(|row| row.header.map(|header| header.next_record_id)),
        },
        ReportColumn {
            name: "header_chunks",
            about: "The number of chunks, according to the header.",
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
            about: "How many chunks the file has room for. A chunk that is cut short counts.",
            value: Value::UInt64(|row| row.header.map(|_| row.pieces.chunks)),
        },
        ReportColumn {
            name: "unused_chunks",
            about: "How many of these chunks are all zeros.",
            value: Value::UInt64(|row| row.header.map(|_| row.pieces.unused)),
        },
        ReportColumn {
            name: "damaged_chunks",
            about: "How many of these chunks are damaged or do not match their checksums.",
            value: Value::UInt64(|row| row.header.map(|_| row.pieces.damaged)),
        },
        ReportColumn {
            name: "records",
            about: "How many records there are, by their frames. Only `read_evtx` finds records that cannot be decoded.",
            value: Value::UInt64(|row| row.header.map(|_| row.pieces.records.live)),
        },
        ReportColumn {
            name: "first_record_id",
            about: "The lowest record ID.",
            value: Value::UInt64(|row| row.span.map(|span| span.least)),
        },
        ReportColumn {
            name: "last_record_id",
            about: "The highest record ID.",
            value: Value::UInt64(|row| row.span.map(|span| span.greatest)),
        },
        ReportColumn {
            name: "missing_records",
            about: "How many IDs between these two have no record. NULL if there are more than 262,143 gaps.",
            value: Value::UInt64(|row| row.span?.missing),
        },
        ReportColumn {
            name: "first_written",
            about: "The earliest time at which a record was written, UTC.",
            value: Value::Time(|row| row.pieces.records.times.map(|(first, _)| first)),
        },
        ReportColumn {
            name: "last_written",
            about: "The latest time at which a record was written, UTC.",
            value: Value::Time(|row| row.pieces.records.times.map(|(_, last)| last)),
        },
        ReportColumn {
            name: "slack_records",
            about: "How many sound records are not live: left over from an older use of the chunk, or from another file in a chunk that was never written. `recover := true` returns them, except copies of other records.",
            value: Value::UInt64(|row| row.header.map(|_| row.pieces.records.slack)),
        },
        ReportColumn {
            name: EVENT_RECORD_IDS,
            about: "For each channel and computer: the number of records, the lowest and the highest `event_record_id`, and how many IDs between these have no record. An exported log has new record IDs, but keeps these. NULL if there are more gaps, or more channels and computers, than in any real log.",
            value: Value::LogSpans(|row| row.logs.as_deref()),
        },
        ReportColumn {
            name: "error",
            about: "NULL, or why the file could not be read to its end, or its first damage.",
            value: Value::Text(|row| row.error.as_deref().map(Into::into)),
        },
    ];
}
