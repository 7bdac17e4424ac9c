//! The report on chunks.

use std::sync::Arc;

use evtx_events::{Slots, SlotsError};
use evtx_format::container::chunk::{CHUNK_SIZE, ChunkHeader, template_count};
use evtx_format::container::header::FileHeader;
use evtx_format::{Interrupt, printable};

use crate::id_ranges::Span;
use crate::report::Report;
use crate::summary::{ChunkSummary, RecordSummary, offset};
use crate::table::columns;

/// A report on chunks, with one row for each slot of a chunk, and one for each file that cannot be read to its end.
#[derive(Default)]
pub struct ChunkReport {
    /// The path of the current file.
    filename: Arc<str>,
    rows: Vec<ChunkRow>,
}

/// A row of a [`ChunkReport`].
#[derive(Default)]
pub struct ChunkRow {
    filename: Arc<str>,
    /// The index of the chunk in the file; `None` in the row of a file that cannot be read.
    index: Option<u64>,
    /// Whether the chunk was ever used; `None` in the row of a file that cannot be read.
    is_used: Option<bool>,
    header: Option<ChunkHeader>,
    records: RecordSummary,
    /// The computed CRC32 of the header, and that of the records.
    checksums: (Option<u32>, Option<u32>),
    /// How many template definitions the table leads to; `None` if the header cannot be read.
    templates: Option<u32>,
    /// The span of the record IDs.
    span: Option<Span>,
}

impl Report for ChunkReport {
    type Row = ChunkRow;
    type Worker = ();
    type BlockResult = Vec<ChunkRow>;

    fn worker(&self) {}

    fn look((): &mut (), slots: Slots<'_>, interrupt: Interrupt<'_>) -> Result<Vec<ChunkRow>, SlotsError> {
        let (mut rows, first_unused) = (Vec::new(), slots.first_unused());
        for (index, chunk, promised) in slots.chunks() {
            interrupt.check()?;
            let is_used = index < first_unused;
            let ChunkSummary {
                header, mut records, ..
            } = if is_used {
                ChunkSummary::of(chunk, index, promised, false, interrupt)?
            } else {
                ChunkSummary::default()
            };
            rows.push(ChunkRow {
                filename: Arc::default(),
                index: Some(index),
                is_used: Some(is_used),
                header,
                checksums: (
                    header.and_then(|header| header.computed_header_checksum(chunk)),
                    header.and_then(|header| header.computed_records_checksum(chunk)),
                ),
                templates: header.map(|_| template_count(chunk) as u32),
                span: std::mem::take(&mut records.ranges).span(),
                records,
            });
        }
        Ok(rows)
    }

    fn start(&mut self, filename: &str, _size: u64, _header: Option<FileHeader>) {
        self.filename = filename.into();
    }

    fn add(&mut self, block: Vec<ChunkRow>) {
        let filename = &self.filename;
        self.rows.extend(block.into_iter().map(|row| ChunkRow {
            filename: Arc::clone(filename),
            ..row
        }));
    }

    fn end(&mut self, failure: Option<&str>) {
        if let Some(failure) = failure {
            let mut row = ChunkRow::default();
            row.records.error = Some(failure.to_owned());
            self.add(vec![row]);
        }
    }

    fn rows(&mut self, _last: bool) -> Vec<ChunkRow> {
        std::mem::take(&mut self.rows)
    }
}

columns! { ChunkRow:
    /// The path of the file.
    filename: Text(|row| Some((*row.filename).into()));
    /// The index of the chunk in the file, from 0. NULL for a file that is not an EVTX log.
    chunk_index: UInt64(|row| row.index);
    /// Where the chunk starts in the file, in bytes.
    chunk_offset: UInt64(|row| row.index.map(offset));
    /// Whether the chunk was ever used. Unused chunks are all zeros, and so is the file after them. Zeros elsewhere, or in a
    /// chunk that the file header counts, are damage.
    is_used: Bool(|row| row.is_used);
    /// The chunk header's flags: 4 no checksums.
    flags: UInt32(|row| row.header.map(|header| header.flags));
    /// The number of its first record, counted from the start of the log, according to the chunk header.
    first_record_number: UInt64(|row| row.header.map(|header| header.first_record_number));
    /// The number of its last record, according to the chunk header.
    last_record_number: UInt64(|row| row.header.map(|header| header.last_record_number));
    /// The ID of its first record, according to the chunk header.
    header_first_record_id: UInt64(|row| row.header.map(|header| header.first_record_id));
    /// The ID of its last record, according to the chunk header.
    header_last_record_id: UInt64(|row| row.header.map(|header| header.last_record_id));
    /// Where its last record starts in the chunk, in bytes, according to the chunk header.
    last_record_offset: UInt32(|row| row.header.map(|header| header.last_record));
    /// Where its free space starts in the chunk, in bytes, according to the chunk header.
    free_space_offset: UInt32(|row| row.header.map(|header| header.free_space));
    /// How many bytes of the chunk are free space, according to the chunk header.
    free_bytes: UInt32(|row| row.header.map(|header| (CHUNK_SIZE as u32).saturating_sub(header.free_space)));
    /// The CRC32 that the chunk header states for itself.
    stored_header_checksum: UInt32(|row| row.header.map(|header| header.header_checksum));
    /// The CRC32 of the chunk header's bytes.
    computed_header_checksum: UInt32(|row| row.checksums.0);
    /// The CRC32 that the chunk header states for the records.
    stored_records_checksum: UInt32(|row| row.header.map(|header| header.records_checksum));
    /// The CRC32 of the records' bytes. NULL if the free space is out of range.
    computed_records_checksum: UInt32(|row| row.checksums.1);
    /// How many template definitions the chunk's table leads to.
    templates: UInt32(|row| row.templates);
    /// How many records there are.
    records: UInt64(|row| row.is_used.map(|_| row.records.live));
    /// The lowest record ID.
    first_record_id: UInt64(|row| row.span.map(|span| span.least));
    /// The highest record ID.
    last_record_id: UInt64(|row| row.span.map(|span| span.greatest));
    /// How many IDs between these two have no record. NULL if there are more than 262,143 gaps.
    missing_records: UInt64(|row| row.span?.missing);
    /// The earliest time at which a record was written, UTC.
    first_written: Time(|row| row.records.times.map(|(first, _)| first));
    /// The latest time at which a record was written, UTC.
    last_written: Time(|row| row.records.times.map(|(_, last)| last));
    /// How many valid records are left over from an older use of the chunk or the disk. `recover := true` returns them,
    /// except copies of other records.
    slack_records: UInt64(|row| row.is_used.map(|_| row.records.slack));
    /// NULL, or the first damage in the chunk, or why the file could not be read.
    error: Text(|row| row.records.error.as_deref().map(printable));
}
