//! Records of a file that were read, as lines of JSON or as events.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use encoding_rs::Encoding;
use evtx_archive::len_in_file;
use evtx_format::{Interrupt, printable};
use evtx_reports::{JsonCheck, JsonTypes, LineRow, check_json, without_nuls};
use evtx_scan::ScanError;
use memchr::memchr_iter;

use crate::event::Events;
use crate::records::{Shape, row_as_json};
use crate::rows::{Cell, batch};
use crate::settings::SourceSettings;
use crate::sources::{COLUMNS, Source, column};
use crate::xml::fill;

/// The most bytes of a line as UTF-8. A record of a log has at most 64 KiB. DuckDB takes up to 150 bytes of memory for each
/// byte of a line, and does not look for an interrupt in between.
pub(crate) const MAX_LINE: usize = 2 << 20;
/// The most rows of a batch, and the bytes of lines after which it ends.
const BATCH_ROWS: usize = 2048;
const BATCH_BYTES: usize = 2 << 20;

/// What the rows are.
pub(crate) enum Rows {
    /// Lines of JSON.
    Lines(Wanted),
    Events(SourceSettings),
}

/// Which columns are wanted that need a look at the lines.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) json: bool,
    pub(crate) error: bool,
}

pub(crate) fn too_long() -> String {
    format!("it has more than {} MiB", MAX_LINE >> 20)
}

/// Whole records of a file, with their place in the order of all rows.
pub(crate) struct Block {
    pub(crate) index: u64,
    pub(crate) filename: Arc<str>,
    pub(crate) encoding: Option<&'static Encoding>,
    pub(crate) shape: Shape,
    pub(crate) header: Arc<[String]>,
    pub(crate) source: Option<&'static Source>,
    /// Rows that come before those of the records.
    pub(crate) problems: VecDeque<LineRow>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: VecDeque<Range<usize>>,
    /// How far the bytes were read, the number of the line there, and its offset in the file.
    pub(crate) at: usize,
    pub(crate) line: u64,
    pub(crate) offset: u64,
}

impl Block {
    /// The next rows, whose `json` is the record; none at the end. That of an event is not checked yet.
    pub(crate) fn rows(&mut self, rows: &Rows, interrupt: Interrupt<'_>) -> Result<Vec<LineRow>, ScanError> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        while found.len() < BATCH_ROWS && bytes < BATCH_BYTES {
            if let Some(row) = self.problems.pop_front() {
                found.push(row);
                continue;
            }
            let Some(record) = self.records.pop_front() else { break };
            self.pass(record.start);
            let place = (self.line, self.offset);
            // The time for empty lines counts, too.
            bytes += record.len();
            self.pass(record.end);
            let record = self.bytes[record].trim_ascii();
            if record.is_empty() {
                continue;
            }
            let (json, why) = match rows {
                Rows::Lines(wanted) if wanted.json || wanted.error => {
                    let (json, why) = checked(record, wanted.error.then_some(&JsonTypes::default()), interrupt)?;
                    (json.filter(|_| wanted.json).map(Cow::into_owned), why)
                }
                Rows::Lines(..) => (None, None),
                Rows::Events(_) => match text(record) {
                    Ok(text) => match self.shape {
                        Shape::Csv(separator, _) => split(row_as_json(text, separator, &self.header)),
                        _ => split(plain(text, interrupt)?.map(Cow::into_owned)),
                    },
                    Err(why) => (None, Some(why)),
                },
            };
            found.push(LineRow {
                json,
                place: Some(place),
                why,
                filename: Arc::clone(&self.filename),
            });
        }
        Ok(found)
    }

    /// Counts the lines and the bytes up to a place.
    fn pass(&mut self, end: usize) {
        let passed = &self.bytes[self.at..end];
        self.line += memchr_iter(b'\n', passed).count() as u64;
        self.offset += len_in_file(passed, self.encoding);
        self.at = end;
    }

    /// The events in some rows.
    pub(crate) fn events(
        &self,
        settings: &SourceSettings,
        events: &mut Events,
        rows: &[LineRow],
        projection: &[usize],
        interrupt: Interrupt<'_>,
    ) -> Result<Result<RecordBatch, ArrowError>, ScanError> {
        let (error, filename) = (
            column("error").unwrap_or_default(),
            column("filename").unwrap_or_default(),
        );
        let (mut found, mut reasons, mut xml) = (Vec::new(), Vec::new(), Vec::new());
        for line in rows {
            let (mut row, why, own) = match (&line.json, self.source) {
                (Some(json), Some(source)) => events.row(source, &settings.times, json, interrupt)?,
                _ => (vec![Cell::Null; COLUMNS.len()], None, None),
            };
            row[filename] = Cell::Text(line.filename.to_string());
            xml.extend(own.map(|own| (found.len(), own)));
            reasons.push(line.why.clone().or(why));
            found.push(row);
        }
        for (row, why) in fill(&mut found, &xml, interrupt)? {
            reasons[row].get_or_insert(why);
        }
        for ((row, line), why) in found.iter_mut().zip(rows).zip(&reasons) {
            if let Some(why) = why {
                row[error] = Cell::Text(format!("{}: {}", line.place(), printable(why)));
            }
        }
        Ok(batch(&found, projection))
    }
}

fn split<T>(read: Result<T, String>) -> (Option<T>, Option<String>) {
    match read {
        Ok(read) => (Some(read), None),
        Err(why) => (None, Some(why)),
    }
}

/// A record as text.
fn text(record: &[u8]) -> Result<&str, String> {
    if record.len() > MAX_LINE {
        return Err(too_long());
    }
    str::from_utf8(record).map_err(|error| format!("it is not UTF-8 after {} bytes", error.valid_up_to()))
}

/// JSON without NULs in its texts, or why it is not JSON.
fn plain<'l>(text: &'l str, interrupt: Interrupt<'_>) -> Result<Result<Cow<'l, str>, String>, ScanError> {
    let json = without_nuls(text);
    // The escape of a NUL outside of a text is not JSON.
    if matches!(json, Cow::Owned(_))
        && let JsonCheck::NotJson(why) = check_json(text, None, interrupt)?
    {
        return Ok(Err(why));
    }
    Ok(Ok(json))
}

/// A line without NULs if it is JSON, and what is wrong with it.
fn checked<'l>(
    line: &'l [u8],
    types: Option<&JsonTypes>,
    interrupt: Interrupt<'_>,
) -> Result<(Option<Cow<'l, str>>, Option<String>), ScanError> {
    let json = match text(line).map(|text| plain(text, interrupt)) {
        Ok(json) => json?,
        Err(why) => Err(why),
    };
    Ok(match json {
        Ok(json) => match check_json(&json, types, interrupt)? {
            JsonCheck::Valid => (Some(json), None),
            JsonCheck::Odd(why) => (Some(json), Some(why)),
            JsonCheck::NotJson(why) => (None, Some(why)),
        },
        Err(why) => (None, Some(why)),
    })
}
