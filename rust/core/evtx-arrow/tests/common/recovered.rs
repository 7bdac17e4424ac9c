//! Rows of recovered logs.

use super::{cell, column, read};
use evtx_arrow::Options;

/// What the tests of recovery read.
pub(crate) const RECOVER: Options = Options {
    xml: true,
    location: true,
    recover: true,
    ..Options::NONE
};

/// A row of a recovered log.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) id: Option<u64>,
    pub(crate) recovered: Option<bool>,
    pub(crate) offset: Option<u64>,
    pub(crate) xml: Option<String>,
    pub(crate) error: Option<String>,
}

/// The rows of a log, with the options that the tests of recovery need.
pub(crate) fn rows(file: &[u8], options: Options) -> Vec<Row> {
    let names: &[&str] = if options.recover {
        &["record_id", "recovered", "record_offset", "xml", "error"]
    } else {
        &["record_id", "record_offset", "xml", "error"]
    };
    let projection: Vec<usize> = names.iter().map(|name| column(&options, name)).collect();
    let batches = read(file, "log", options, &projection).expect("a log");
    let row = |(batch, row)| {
        let number = |name| cell(batch, name, row).map(|number| number.parse().expect("a number"));
        let recovered = |_| cell(batch, "recovered", row).map(|recovered| recovered == "true");
        Row {
            id: number("record_id"),
            recovered: Some(()).filter(|()| options.recover).and_then(recovered),
            offset: number("record_offset"),
            xml: cell(batch, "xml", row),
            error: cell(batch, "error", row),
        }
    };
    batches
        .iter()
        .flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)))
        .map(row)
        .collect()
}
