//! The lines of exports as a table.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use evtx_format::printable;

use crate::table::{self, columns};

/// A line of a file, or what of the file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // the columns below describe them
pub struct LineRow {
    pub json: Option<String>,
    /// The number of the line and its offset; `None` for the file as a whole.
    pub place: Option<(u64, u64)>,
    /// Why it cannot be read, or what is odd about it.
    pub why: Option<String>,
    pub filename: Arc<str>,
}

impl LineRow {
    /// The start of an error about the line, without a colon.
    pub fn place(&self) -> String {
        let path = printable(&self.filename);
        match self.place {
            Some((line, offset)) => format!("{path}: cannot read line {line} at byte {offset}"),
            None => path.into_owned(),
        }
    }
}

// The first column is that of a query that only counts rows: it takes no look at the lines.
columns! { LineRow:
    /// The number of the line, from 1.
    line_number: UInt64(|row| row.place.map(|(line, _)| line));
    /// Where the line starts in the file, in bytes.
    line_offset: UInt64(|row| row.place.map(|(_, offset)| offset));
    /// How an error about the line starts: `x.jsonl: cannot read line 7 at byte 1200`.
    place: Text(|row| Some(row.place().into()));
    /// The line, without NULs in its texts. NULL if it is not JSON.
    json: Text(|row| row.json.as_deref().map(Into::into));
    /// NULL, or what is wrong with the line: it is not JSON or too long, or a name occurs twice.
    error: Text(|row| row.why.as_ref().map(|why| format!("{}: {}", row.place(), printable(why)).into()));
    /// The path of the file.
    filename: Text(|row| Some((&*row.filename).into()));
}

/// The schema of the table of lines.
pub fn line_schema() -> SchemaRef {
    table::schema::<LineRow>()
}

/// Rows as a batch.
///
/// # Errors
/// The error of Arrow if it refuses an array of the batch.
pub fn line_batch(rows: &[LineRow]) -> Result<RecordBatch, ArrowError> {
    table::batch(rows)
}
