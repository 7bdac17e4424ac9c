//! The columns of `System` that repeat: level, task, provider, channel, computer and others.
//!
//! A log has few distinct rows of these columns. So each row is stored once, and each record has the index of its row. A
//! record whose values have the same bytes as those of an earlier record shares its row, without reading the columns.

use arrow_array::{Array, ArrayRef};
use arrow_schema::ArrowError;
use evtx_format::binxml::instance::ValueTable;

use super::column::ColumnBuilder;
use super::gather::gather;
use super::value::ValueBuilder;
use crate::arrays::{MakeArrays, take};
use crate::plan::{Compiled, PathId, Projection};
use crate::record::PathValues;

/// The size of the hash table of row memos: a power of two.
const SEEN: usize = 4096;

// The most rows that are kept from batch to batch, and the most bytes of their source values and of their text.
const MAX_ROWS: u32 = 1024;
const MAX_KEPT: usize = 1 << 20;

/// The most bytes of values in a row memo.
const MAX_BYTES: usize = 4096;

/// The shared columns of `System`, kept from batch to batch, and the rows of a batch as indices into them.
#[derive(Debug, Default)]
pub(crate) struct SystemRows {
    columns: Vec<SystemColumn>,
    len: u32,
    /// By row of the batch: the index of its row in the columns.
    rows: Vec<u32>,
    seen: Box<[RowMemo]>,
    /// The descriptors and values of the row memos, range by range.
    bytes: Vec<u8>,
    text: usize,
}

#[derive(Debug)]
struct SystemColumn {
    index: usize,
    path: PathId,
    builder: ValueBuilder,
    /// Its rows when the last batch ended.
    array: Option<ArrayRef>,
}

#[derive(Debug, Clone, Copy, Default)]
struct RowMemo {
    /// The number of the template; 0 for an unused memo.
    template: u64,
    /// The range of the values in `SystemRows::bytes`.
    start: usize,
    len: usize,
    row: u32,
}

impl SystemRows {
    /// Moves the columns whose rows are shared out of the builders of a scan.
    pub(crate) fn take(projection: &Projection, builders: &mut Vec<ColumnBuilder>) -> Self {
        let mut columns = Vec::new();
        if projection.shares_system() {
            let all = std::mem::take(builders).into_iter().enumerate();
            for (index, builder) in all {
                match builder {
                    ColumnBuilder::Path(path, builder) if projection.paths[path.0].repeats() => {
                        columns.push(SystemColumn {
                            index,
                            path,
                            builder,
                            array: None,
                        });
                    }
                    other => builders.push(other),
                }
            }
        }
        SystemRows {
            seen: vec![RowMemo::default(); if columns.is_empty() { 0 } else { SEEN }].into(),
            columns,
            ..SystemRows::default()
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Appends the row of a record, given the template of its event and its values.
    #[inline]
    pub(crate) fn push(
        &mut self,
        event: Option<(&Compiled, ValueTable<'_>)>,
        record: &PathValues<'_, '_>,
    ) -> Result<(), ArrowError> {
        if let Some(row) = event.and_then(|(template, values)| self.find(template, values)) {
            self.rows.push(row);
            return Ok(());
        }
        self.push_new(Some(record))
    }

    /// Appends a new row with the values of a record, or with NULLs.
    #[inline(never)]
    pub(crate) fn push_new(&mut self, record: Option<&PathValues<'_, '_>>) -> Result<(), ArrowError> {
        for column in &mut self.columns {
            let found = record.and_then(|record| record.get(column.path));
            column.builder.push(found.as_ref())?;
        }
        self.rows.push(self.len);
        self.len += 1;
        self.text = self.columns.iter().map(|column| column.builder.bytes()).sum();
        Ok(())
    }

    /// The row of an earlier record with the same values. If there is none, notes that the next new row has them.
    #[inline]
    fn find(&mut self, template: &Compiled, values: ValueTable<'_>) -> Option<u32> {
        let ranges = template.system.as_ref()?;
        let (hash, len) = ranges.hash(template.number, values)?;
        let seen = self.seen.get_mut((hash >> 32) as usize % SEEN)?;
        if seen.template == template.number
            && seen.len == len
            && let Some(known) = self.bytes.get(seen.start..seen.start + len)
            && ranges.matches(values, known)
        {
            return Some(seen.row);
        }
        if len <= MAX_BYTES {
            *seen = RowMemo {
                template: template.number,
                start: self.bytes.len(),
                len,
                row: self.len,
            };
            ranges.keep(values, &mut self.bytes);
        }
        None
    }

    pub(crate) fn text(&self) -> usize {
        self.text
    }

    /// Ends the batch. Returns the arrays with the index of their column among all columns, in order.
    pub(crate) fn finish(&mut self, make: MakeArrays) -> Result<Vec<(usize, ArrayRef)>, ArrowError> {
        let rows = take(&mut self.rows);
        let len = self.len as usize;
        let columns = self.columns.iter_mut().map(|column| {
            let known = match column.array.take() {
                Some(array) if array.len() == len => array,
                _ => column.builder.finish_cloned(make)?,
            };
            let array = gather(&known, &rows, make)?;
            column.array = Some(known);
            Ok((column.index, array))
        });
        let columns = columns.collect::<Result<_, ArrowError>>()?;
        if self.len > MAX_ROWS || self.bytes.len().max(self.text) > MAX_KEPT {
            self.forget(make)?;
        }
        Ok(columns)
    }

    #[cold]
    fn forget(&mut self, make: MakeArrays) -> Result<(), ArrowError> {
        for column in &mut self.columns {
            column.builder.finish(make)?;
            column.array = None;
        }
        self.len = 0;
        self.seen.fill(RowMemo::default());
        self.bytes.clear();
        self.text = 0;
        Ok(())
    }
}
