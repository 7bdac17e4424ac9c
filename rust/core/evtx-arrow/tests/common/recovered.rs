//! Rows of recovered logs.

use super::{AsTable, cell, column, read};
use evtx_arrow::{Options, Table};
use evtx_recovery::recover;

/// A table with what is recovered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recovering<T>(pub(crate) T);

impl<T: AsTable> AsTable for Recovering<T> {
    fn table(&self) -> Table {
        recover(self.0.table())
    }
}

/// What the tests of recovery read.
pub(crate) const RECOVER: Recovering<Options> = Recovering(LIVE);

/// The same without recovery.
pub(crate) const LIVE: Options = Options {
    xml: true,
    location: true,
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

/// Whether a table has what is recovered.
pub(crate) fn recovers(table: &impl AsTable) -> bool {
    table.table().schema().index_of("recovered").is_ok()
}

/// The rows of a log, with the options that the tests of recovery need.
pub(crate) fn rows(file: &[u8], table: impl AsTable) -> Vec<Row> {
    let recovers = recovers(&table);
    let names = ["record_id", "record_offset", "xml", "error"];
    let names = names.into_iter().chain(recovers.then_some("recovered"));
    let projection: Vec<usize> = names.map(|name| column(&table, name)).collect();
    let batches = read(file, "log", table, &projection).expect("a log");
    let row = |(batch, row)| {
        let number = |name| cell(batch, name, row).map(|number| number.parse().expect("a number"));
        let recovered = |_| cell(batch, "recovered", row).map(|recovered| recovered == "true");
        Row {
            id: number("record_id"),
            recovered: Some(()).filter(|()| recovers).and_then(recovered),
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
