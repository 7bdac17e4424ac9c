//! Logs that `COPY ... TO` writes.
//!
//! [`LogRows`] takes rows in their order. Threads can make their chunks before, of many rows at once: each
//! [`LogSegment`] has the chunks of some of them.

use std::collections::{BTreeSet, HashSet};

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use evtx_writer::{CutRecord, LogWriter};

/// The column that holds the records.
const RECORD: &str = "record";

/// How a log is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Whether records keep their IDs. Otherwise they get IDs from 1 on.
    pub keep_ids: bool,
}

/// Makes a log of the rows of a table with a column `record`, as `read_evtx` returns it. Other columns are not needed.
#[derive(Debug, Default)]
pub struct LogRows {
    log: LogWriter,
    options: LogOptions,
    last_id: Option<u64>,
    rows: u64,
    marks: LogMarks,
}

/// The marks of the records of a log. Without a marked record, no entries.
#[derive(Debug, Default)]
pub struct LogMarks {
    /// The entries of the user, with the lines of each record once.
    pub entries: BTreeSet<Box<str>>,
    /// Those of the pseudonyms.
    pub pseudonyms: HashSet<u64>,
    /// Whether a record has no mark.
    pub has_others: bool,
}

/// Rows that follow each other in a log, with the chunks that they fill.
#[derive(Debug, Default)]
pub struct LogSegment {
    rows: LogRows,
    first_id: Option<u64>,
    /// How many rows the full chunks have, and the ID of the last one.
    full: (u64, Option<u64>),
    /// The rows after them.
    rest: Vec<RecordBatch>,
    /// Whether a row cannot be written. It is in `rest`, so whoever appends that gets its error, and knows its number.
    is_stopped: bool,
}

/// The records of a batch.
struct Records<'a>(&'a dyn Array);

impl LogRows {
    /// A log without records.
    pub fn new(options: LogOptions) -> Self {
        LogRows {
            log: LogWriter::new(1),
            options,
            ..LogRows::default()
        }
    }

    /// The marks of the records.
    pub fn take_marks(&mut self) -> LogMarks {
        std::mem::take(&mut self.marks)
    }

    /// Checks that a table has the column.
    ///
    /// # Errors
    /// A text that names it.
    pub fn check(names: &[&str]) -> Result<(), String> {
        if names.iter().any(|name| name.eq_ignore_ascii_case(RECORD)) {
            Ok(())
        } else {
            Err(format!(
                "a log needs a column \"{RECORD}\", as in FROM read_evtx(..., record := true)"
            ))
        }
    }

    /// Adds the records of a batch.
    ///
    /// # Errors
    /// A text that names the row, counted from 1, and what is wrong with it.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), String> {
        let records = Records::of(batch)?;
        (0..batch.num_rows()).try_for_each(|row| self.push_row(&records, row))
    }

    /// Adds rows, with the chunks that are made of them.
    ///
    /// # Errors
    /// Those of [`push`](Self::push).
    pub fn append(&mut self, segment: LogSegment) -> Result<(), String> {
        let (rows, last_id) = segment.full;
        if let Some(first_id) = segment.first_id.filter(|_| rows > 0) {
            self.check_id(self.rows + 1, first_id)?;
            self.log.append(segment.rows.log, self.options.keep_ids);
            self.rows += rows;
            self.last_id = last_id;
        }
        self.marks.entries.extend(segment.rows.marks.entries);
        self.marks.pseudonyms.extend(segment.rows.marks.pseudonyms);
        self.marks.has_others |= segment.rows.marks.has_others;
        segment.rest.iter().try_for_each(|batch| self.push(batch))
    }

    fn push_row(&mut self, records: &Records<'_>, row: usize) -> Result<(), String> {
        self.rows += 1;
        let at = self.rows;
        let bytes = records.get(row)?.ok_or_else(|| {
            format!("row {at} has no record. A damaged record is NULL: leave it out with WHERE record IS NOT NULL")
        })?;
        let record = CutRecord::new(bytes).map_err(|why| format!("row {at}: the record cannot be written: {why}"))?;
        self.check_id(at, record.id)?;
        self.marks.has_others |= record.marks.is_none();
        if let Some(marks) = record.marks {
            if !self.marks.entries.contains(marks.entries) {
                _ = self.marks.entries.insert(marks.entries.into());
            }
            self.marks.pseudonyms.extend(marks.pseudonyms());
        }
        let written = if self.options.keep_ids {
            self.log.write_cut_with_id(record)
        } else {
            self.log.write_cut(record).map(drop)
        };
        written.map_err(|why| format!("row {at}: record {} cannot be written: {why}", record.id))?;
        self.last_id = Some(record.id);
        Ok(())
    }

    /// Checks that the ID of a row is above that of the row before it, if rows keep their IDs.
    fn check_id(&self, row: u64, id: u64) -> Result<(), String> {
        match self.last_id.filter(|last| self.options.keep_ids && *last >= id) {
            Some(last) => Err(format!(
                "row {row}: the record has the ID {id}, after {last}. With KEEP_IDS they must rise: write a log for each \
                 log, with ORDER BY record_id"
            )),
            None => Ok(()),
        }
    }

    /// Takes the chunks that are finished, and the offset in the file at which they belong, in bytes.
    pub fn take_chunks(&mut self) -> (u64, Vec<u8>) {
        self.log.take_chunks()
    }

    /// The last parts of the file: the chunks that were not taken, and the header, each with its offset in bytes.
    pub fn finish(&mut self) -> Vec<(u64, Vec<u8>)> {
        self.log.end();
        let chunks = self.log.take_chunks();
        vec![chunks, (0, self.log.header())]
    }
}

impl LogSegment {
    /// No rows. The options are those of the log.
    pub fn new(options: LogOptions) -> Self {
        LogSegment {
            rows: LogRows::new(options),
            ..LogSegment::default()
        }
    }

    /// Adds the rows of a batch. What is wrong with them is found when the segment is appended.
    pub fn push(&mut self, batch: RecordBatch) {
        let mut start = 0;
        match Records::of(&batch) {
            Ok(records) if !self.is_stopped => {
                for row in 0..batch.num_rows() {
                    let (chunks, before) = (self.rows.log.chunks(), (self.rows.rows, self.rows.last_id));
                    self.is_stopped = self.rows.push_row(&records, row).is_err();
                    if self.rows.log.chunks() > chunks {
                        self.full = before;
                        self.rest.clear();
                        start = row;
                    }
                    if self.is_stopped {
                        break;
                    }
                    self.first_id = self.first_id.or(self.rows.last_id);
                }
            }
            _ => self.is_stopped = true,
        }
        self.rest.push(batch.slice(start, batch.num_rows() - start));
    }
}

impl<'a> Records<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self, String> {
        let schema = batch.schema();
        let mut fields = schema.fields().iter();
        let index = fields.position(|field| field.name().eq_ignore_ascii_case(RECORD));
        let index = index.ok_or("the rows have no column of records")?;
        Ok(Records(batch.column(index)))
    }

    /// The record of a row; `None` for NULL.
    fn get(&self, row: usize) -> Result<Option<&'a [u8]>, String> {
        let Records(column) = self;
        if column.is_null(row) {
            return Ok(None);
        }
        match column.data_type() {
            DataType::Binary => Ok(Some(column.as_binary::<i32>().value(row))),
            DataType::LargeBinary => Ok(Some(column.as_binary::<i64>().value(row))),
            DataType::BinaryView => Ok(Some(column.as_binary_view().value(row))),
            other => Err(format!("\"{RECORD}\" is a BLOB, not {other}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::BinaryArray;
    use evtx_writer::{Cutter, Element, Fragment, Stream};

    use super::*;

    fn options(keep_ids: bool) -> LogOptions {
        LogOptions { keep_ids }
    }

    /// Records with rising IDs, of all sizes, as batches.
    fn batches() -> Vec<RecordBatch> {
        let mut log = LogWriter::new(1);
        let (mut cutter, mut records) = (Cutter::default(), Vec::new());
        for number in 0..3_000_usize {
            let text = "x".repeat(number * 7_919 % 9_000);
            let stream = Stream::new(vec![Fragment::Element(Element::new("Event").text(text))]);
            log.write_stream(number as u64, &stream).expect("it fits");
            log.end_chunk();
            let (_, chunk) = log.take_chunks();
            cutter.begin_chunk();
            let size = u32::from_le_bytes([chunk[516], chunk[517], chunk[518], chunk[519]]) as usize;
            let cut = cutter.cut(&chunk, 3 * number as u64, number as u64, 536..512 + size - 4);
            records.push(cut.expect("it is valid").to_vec());
        }
        let batch = |records: &[Vec<u8>]| {
            let column: BinaryArray = records.iter().map(Some).collect();
            RecordBatch::try_from_iter([("Record", Arc::new(column) as _)]).expect("a batch")
        };
        records.chunks(70).map(batch).collect()
    }

    fn file(mut log: LogRows) -> Vec<u8> {
        let mut file = Vec::new();
        for (offset, bytes) in log.finish() {
            file.resize(file.len().max(offset as usize + bytes.len()), 0);
            file[offset as usize..][..bytes.len()].copy_from_slice(&bytes);
        }
        file
    }

    /// The ID and the time of each record.
    fn records(file: &[u8]) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        for chunk in file[4096..].chunks(1 << 16) {
            let number = |at: usize| u64::from_le_bytes(chunk[at..at + 8].try_into().expect("eight bytes"));
            let free = (number(48) & 0xffff_ffff) as usize;
            assert_eq!(number(8), found.len() as u64 + 1, "the number of its first record");
            assert_eq!(number(24), number(520), "the ID of its first record");
            let mut at = 512;
            while at < free {
                let size = (number(at) >> 32) as usize;
                found.push((number(at + 8), number(at + 16)));
                at += size;
            }
            assert_eq!(number(16), found.len() as u64, "the number of its last record");
            assert_eq!(Some(number(32)), found.last().map(|(id, _)| *id));
        }
        found
    }

    #[test]
    fn segments_make_the_same_records_as_rows() {
        let batches = batches();
        for keeps_ids in [false, true] {
            let mut rows = LogRows::new(options(keeps_ids));
            batches
                .iter()
                .for_each(|batch| rows.push(batch).expect("they are valid"));
            let expected = records(&file(rows));
            assert_eq!(expected.len(), 3_000);
            assert_eq!(expected[2_999].0, if keeps_ids { 8_997 } else { 3_000 });
            for size in [1, 3, 20] {
                let mut log = LogRows::new(options(keeps_ids));
                for batches in batches.chunks(size) {
                    let mut segment = LogSegment::new(options(keeps_ids));
                    batches.iter().for_each(|batch| segment.push(batch.clone()));
                    log.append(segment).expect("they are valid");
                }
                assert_eq!(records(&file(log)), expected, "{size}");
            }
        }
    }

    #[test]
    fn errors_of_segments_count_rows_as_the_log_does() {
        let mut batches = batches();
        let bad: BinaryArray = [Some(b"x")].into_iter().collect();
        batches.insert(
            7,
            RecordBatch::try_from_iter([("record", Arc::new(bad) as _)]).expect("a batch"),
        );
        let append = |batches: &[RecordBatch], keeps_ids| {
            let mut log = LogRows::new(options(keeps_ids));
            batches.chunks(3).try_for_each(|batches| {
                let mut segment = LogSegment::new(options(keeps_ids));
                batches.iter().for_each(|batch| segment.push(batch.clone()));
                log.append(segment)
            })
        };
        let error = append(&batches, false).expect_err("a bad record");
        assert!(error.starts_with("row 491: the record cannot be written"), "{error}");
        batches.remove(7);
        batches.swap(0, 9);
        let error = append(&batches, true).expect_err("IDs that fall");
        assert!(
            error.starts_with("row 71: the record has the ID 210, after 2097"),
            "{error}"
        );
    }
}
