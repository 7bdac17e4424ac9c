//! Records of a file that were read, as lines of JSON or as events.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::ArrowError;
use encoding_rs::Encoding;
use evtx_archive::len_in_file;
use evtx_arrow::DecodeError;
use evtx_format::{Interrupt, printable};
use evtx_reports::{LineRow, line_batch};
use evtx_scan::ScanError;
use memchr::memchr_iter;

use crate::event::Event;
use crate::fields::Declarations;
use crate::records::{Table, read_record};
use crate::rows::{Cell, Row, array, event_schema};
use crate::settings::SourceSettings;
use crate::sources::{Source, column};
use crate::types::repeated;
use crate::xml::XmlRows;

/// The most rows of a batch, and the bytes of lines after which it ends.
const BATCH_ROWS: usize = 2048;
const BATCH_BYTES: usize = 2 << 20;

/// What the rows are.
pub(crate) enum Rows {
    /// Lines of JSON. Holds whether a column needs a look at them.
    Lines(bool),
    Events(SourceSettings),
}

/// A place in a file, and what is known of the records there.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) filename: Arc<str>,
    pub(crate) encoding: Option<&'static Encoding>,
    /// The number of the line, and its offset in the file.
    pub(crate) line: u64,
    pub(crate) offset: u64,
    /// The header, if the records are rows of CSV.
    pub(crate) table: Option<Arc<Table>>,
    pub(crate) source: Option<&'static Source>,
}

impl Place {
    /// Moves over some text.
    pub(crate) fn pass(&mut self, text: &[u8]) {
        self.line += memchr_iter(b'\n', text).count() as u64;
        self.offset += len_in_file(text, self.encoding);
    }

    /// A row for a record at this place, or for the whole file.
    pub(crate) fn row(&self, is_record: bool, why: Option<String>) -> LineRow {
        LineRow {
            json: None,
            place: is_record.then_some((self.line, self.offset)),
            why,
            filename: Arc::clone(&self.filename),
        }
    }
}

/// Whole records of a file.
pub(crate) struct Block {
    /// Its position in the order of all rows.
    pub(crate) index: u64,
    /// The place of the bytes that were not passed yet, and where they start.
    pub(crate) place: Place,
    pub(crate) at: usize,
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: VecDeque<Range<usize>>,
    /// Rows that come before those of the records.
    pub(crate) problems: VecDeque<LineRow>,
}

impl Block {
    /// The next rows, with the columns that have these indexes; `None` at the end.
    pub(crate) fn next(
        &mut self,
        rows: &Rows,
        projection: &[usize],
        declarations: &mut Declarations,
        interrupt: Interrupt<'_>,
    ) -> Result<Option<RecordBatch>, ScanError> {
        let lines = self.lines();
        if lines.is_empty() {
            return Ok(None);
        }
        let batch = match rows {
            Rows::Lines(are_read) => {
                let read = |(mut line, record): (LineRow, Option<Range<usize>>)| {
                    if let Some(record) = record.filter(|_| *are_read) {
                        let record = self.bytes[record].trim_ascii();
                        match read_record(record, None, interrupt)? {
                            Ok(json) => {
                                line.why = repeated(&json);
                                let text = String::from_utf8_lossy(record);
                                // Readers of logs leave NULs out.
                                let has_nuls = text.contains("\\u0000");
                                line.json = Some(if has_nuls { json.to_string() } else { text.into_owned() });
                            }
                            Err(why) => line.why = Some(why),
                        }
                    }
                    Ok(line)
                };
                let lines: Vec<LineRow> = lines.into_iter().map(read).collect::<Result<_, ScanError>>()?;
                line_batch(&lines).and_then(|batch| batch.project(projection))
            }
            Rows::Events(settings) => self.events(&lines, settings, projection, declarations, interrupt)?,
        };
        Ok(Some(batch.map_err(DecodeError::from)?))
    }

    /// The next rows as lines, each with its record.
    fn lines(&mut self) -> Vec<(LineRow, Option<Range<usize>>)> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        while found.len() < BATCH_ROWS && bytes < BATCH_BYTES {
            if let Some(problem) = self.problems.pop_front() {
                found.push((problem, None));
                continue;
            }
            let Some(record) = self.records.pop_front() else { break };
            self.place.pass(&self.bytes[self.at..record.start]);
            let line = self.place.row(true, None);
            // The time for empty lines counts, too.
            bytes += record.len();
            self.place.pass(&self.bytes[record.clone()]);
            self.at = record.end;
            if !self.bytes[record.clone()].trim_ascii().is_empty() {
                found.push((line, Some(record)));
            }
        }
        found
    }

    fn events(
        &self,
        lines: &[(LineRow, Option<Range<usize>>)],
        settings: &SourceSettings,
        projection: &[usize],
        declarations: &mut Declarations,
        interrupt: Interrupt<'_>,
    ) -> Result<Result<RecordBatch, ArrowError>, ScanError> {
        let (mut rows, mut reasons, mut xml): (Vec<Row>, Vec<_>, _) = (Vec::new(), Vec::new(), Vec::new());
        for (line, record) in lines {
            let table = self.place.table.as_deref();
            let read = |record: &Range<usize>| read_record(&self.bytes[record.clone()], table, interrupt);
            let event = match (record.as_ref().map(read).transpose()?, self.place.source) {
                (Some(Ok(json)), Some(source)) => source.read(&json, &settings.times, declarations, interrupt)?,
                (Some(Err(why)), _) => Event::none(Some(why)),
                _ => Event::none(line.why.clone()),
            };
            xml.extend(event.xml.map(|xml| (rows.len(), xml)));
            reasons.push(event.why);
            rows.push(event.row);
        }
        let of_xml = match xml[..] {
            [] => None,
            _ => Some(XmlRows::read(&rows, &xml, interrupt)?),
        };
        for (row, why) in of_xml.iter().flat_map(|(_, reasons)| reasons) {
            reasons[*row].get_or_insert_with(|| why.clone());
        }
        for ((row, (line, _)), why) in rows.iter_mut().zip(lines).zip(&reasons) {
            row[column("filename")] = Cell::Text(line.filename.to_string());
            if let Some(why) = why {
                row[column("error")] = Cell::Text(format!("{}: {}", line.place(), printable(why)));
            }
        }
        let arrays = projection.iter().map(|&column| match &of_xml {
            Some((xml, _)) => xml.array(&rows, column),
            None => array(&rows, column),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(arrays.collect::<Result<_, _>>().and_then(|arrays| {
            RecordBatch::try_new_with_options(event_schema().project(projection)?.into(), arrays, &options)
        }))
    }
}
