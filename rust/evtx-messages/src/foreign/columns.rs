//! The columns of rows by name.

use crate::sqlite::{Cell, Row, Table};

/// The columns of a table by name.
#[derive(Debug)]
pub(super) struct Columns(pub(super) Table);

impl Columns {
    fn get<'r>(&self, row: &'r Row, name: &str) -> Option<&'r Cell> {
        row.cells.get(*self.0.columns.get(name)?)
    }

    pub(super) fn text<'r>(&self, row: &'r Row, name: &str) -> Option<&'r str> {
        self.get(row, name)?.text().filter(|text| !text.is_empty())
    }

    pub(super) fn integer<T: TryFrom<i64>>(&self, row: &Row, name: &str) -> Option<T> {
        self.get(row, name)?
            .integer()
            .and_then(|number| T::try_from(number).ok())
    }
}
