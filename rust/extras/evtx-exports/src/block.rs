//! Records of a file that were read, as rows.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use evtx_arrow::DecodeError;
use evtx_format::{Interrupt, printable};
use evtx_scan::ScanError;

use crate::event::Event;
use crate::fields::Declarations;
use crate::json::Json;
use crate::records::{Table, read_record};
use crate::rows::{Cell, array, column, event_schema};
use crate::sources::Source;
use crate::values::Times;
use crate::xml::XmlRows;

/// The most rows of a batch, and the bytes of records after which it ends.
const BATCH_ROWS: usize = 2048;
const BATCH_BYTES: usize = 2 << 20;

/// Whole records of a file.
#[derive(Default)]
pub(crate) struct Block {
    /// Its position in the order of all rows.
    pub(crate) index: u64,
    pub(crate) filename: Arc<str>,
    /// The header, if the records are rows of CSV.
    pub(crate) table: Option<Arc<Table>>,
    /// `None` if no record can be read.
    pub(crate) source: Option<&'static Source>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: VecDeque<Record>,
}

/// A record that will be a row, or what cannot be read.
pub(crate) struct Record {
    /// The number of its line, and the offset of the line in the file; `None` for the file as a whole.
    pub(crate) place: Option<(u64, u64)>,
    /// Where it is in the bytes of the block, or why it cannot be read.
    pub(crate) text: Result<Range<usize>, String>,
}

impl Record {
    pub(crate) fn unread(place: Option<(u64, u64)>, why: String) -> Self {
        Record { place, text: Err(why) }
    }
}

impl Block {
    /// A record as JSON, or why it cannot be read.
    pub(crate) fn read(&self, record: &Record) -> Result<Json<'_>, String> {
        read_record(&self.bytes[record.text.clone()?], self.table.as_deref())
    }

    /// The next rows, with the columns that have these indexes; `None` at the end.
    pub(crate) fn next(
        &mut self,
        times: &Times,
        projection: &[usize],
        declarations: &mut Declarations,
        interrupt: Interrupt<'_>,
    ) -> Result<Option<RecordBatch>, ScanError> {
        let (mut rows, mut reasons, mut places, mut xml) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut bytes = 0;
        while rows.len() < BATCH_ROWS
            && bytes < BATCH_BYTES
            && let Some(record) = self.records.pop_front()
        {
            interrupt.check()?;
            bytes += record.text.as_ref().map_or(0, Range::len);
            let event = match (self.read(&record), self.source) {
                (Ok(json), Some(source)) => source.read(&json, times, declarations),
                (Ok(_), None) => Event::none(None),
                (Err(why), _) => Event::none(Some(why)),
            };
            xml.extend(event.xml.map(|xml| (rows.len(), xml)));
            reasons.push(event.why);
            rows.push(event.row);
            places.push(record.place);
        }
        if rows.is_empty() {
            return Ok(None);
        }
        let of_xml = (!xml.is_empty())
            .then(|| XmlRows::read(&rows, &xml, interrupt))
            .transpose()?;
        for (row, why) in of_xml.iter().flat_map(|(_, reasons)| reasons) {
            reasons[*row].get_or_insert_with(|| why.clone());
        }
        let path = printable(&self.filename);
        for ((row, place), why) in rows.iter_mut().zip(places).zip(&reasons) {
            row[column("filename")] = Cell::Text(self.filename.to_string());
            if let Some(why) = why {
                let at = place.map(|(line, offset)| format!(": cannot read line {line} at byte {offset}"));
                let at = at.unwrap_or_default();
                row[column("error")] = Cell::Text(format!("{path}{at}: {}", printable(why)));
            }
        }
        let arrays = projection.iter().map(|&column| match &of_xml {
            Some((xml, _)) => xml.array(&rows, column),
            None => array(&rows, column),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = arrays.collect::<Result<_, _>>().and_then(|arrays| {
            RecordBatch::try_new_with_options(event_schema().project(projection)?.into(), arrays, &options)
        });
        Ok(Some(batch.map_err(DecodeError::from)?))
    }
}
