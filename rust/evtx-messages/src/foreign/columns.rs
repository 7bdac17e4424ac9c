//! The columns of rows by name.

use crate::sqlite::{Cell, Row, Table};

/// The columns of a table by name.
pub(super) struct Columns<'t>(pub(super) &'t Table);

impl Columns<'_> {
    fn get<'r>(&self, row: &'r Row, name: &str) -> Option<&'r Cell> {
        let index = self.0.columns.iter().position(|column| column == name)?;
        row.cells.get(index)
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
