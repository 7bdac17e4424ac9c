//! Logs that `COPY ... TO` writes.

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use evtx_writer::{CutRecord, LogWriter};

/// The column that holds the records.
const RECORD: &str = "record";

/// Makes a log of the rows of a table with a column `record`, as `read_evtx` returns it. Other columns are not needed.
#[derive(Debug)]
pub struct LogRows {
    log: LogWriter,
    keeps_ids: bool,
    last_id: Option<u64>,
    rows: u64,
}

impl LogRows {
    /// A log without records. Records get IDs from 1 on, unless they keep their own.
    pub fn new(keeps_ids: bool) -> Self {
        LogRows {
            log: LogWriter::new(1),
            keeps_ids,
            last_id: None,
            rows: 0,
        }
    }

    /// Checks that a table has the column.
    ///
    /// # Errors
    /// A text that names it.
    pub fn check(names: &[&str]) -> Result<(), String> {
        match names.iter().any(|name| name.eq_ignore_ascii_case(RECORD)) {
            true => Ok(()),
            false => Err(format!(
                "a log needs a column \"{RECORD}\", as in FROM read_evtx(..., record := true)"
            )),
        }
    }

    /// Adds the records of a batch.
    ///
    /// # Errors
    /// A text that names the row, counted from 1, and what is wrong with it.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), String> {
        let schema = batch.schema();
        let mut fields = schema.fields().iter();
        let index = fields.position(|field| field.name().eq_ignore_ascii_case(RECORD));
        let column = batch.column(index.ok_or("the rows have no column of records")?);
        let bytes = |row: usize| match column.data_type() {
            DataType::Binary => Some(column.as_binary::<i32>().value(row)),
            DataType::LargeBinary => Some(column.as_binary::<i64>().value(row)),
            DataType::BinaryView => Some(column.as_binary_view().value(row)),
            _ => None,
        };
        for row in 0..batch.num_rows() {
            self.rows += 1;
            let at = self.rows;
            if column.is_null(row) {
                let advice = "A damaged record is NULL: leave it out with WHERE record IS NOT NULL";
                return Err(format!("row {at} has no record. {advice}"));
            }
            let bytes = bytes(row).ok_or_else(|| format!("\"{RECORD}\" is a BLOB, not {}", column.data_type()))?;
            let problem = |why| format!("row {at}: the record cannot be written: {why}");
            let record = CutRecord::new(bytes).map_err(problem)?;
            let last_id = self.last_id.filter(|_| self.keeps_ids);
            if let Some(last) = last_id.filter(|last| *last >= record.id) {
                let advice = "With KEEP_IDS they must rise: write a log for each log, with ORDER BY record_id";
                return Err(format!(
                    "row {at}: the record has the ID {}, after {last}. {advice}",
                    record.id
                ));
            }
            self.last_id = Some(record.id);
            let written = match self.keeps_ids {
                true => self.log.write_cut_with_id(record),
                false => self.log.write_cut(record).map(drop),
            };
            written.map_err(problem)?;
        }
        Ok(())
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
