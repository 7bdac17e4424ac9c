//! Rows with the columns of `read_evtx`.

use std::sync::Arc;

use arrow_array::builder::{MapBuilder, MapFieldNames, StringViewBuilder};
use arrow_array::{
    ArrayRef, FixedSizeBinaryArray, RecordBatch, RecordBatchOptions, StringViewArray, TimestampNanosecondArray,
    UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use evtx_format::Numbering;

use crate::sources::COLUMNS;

/// A name, unless the field has none, and a value, unless it is null.
pub(crate) type Pair = (Option<String>, Option<String>);

/// A value of a column.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Cell {
    #[default]
    Null,
    Text(String),
    Number(u64),
    /// In nanoseconds since 1970.
    Time(i64),
    Guid([u8; 16]),
    Fields(Vec<Pair>),
}

/// The values of a row, by column.
pub(crate) type Row = Vec<Cell>;

/// The schema of the rows.
pub fn event_schema() -> SchemaRef {
    Arc::new(Schema::new(COLUMNS.iter().cloned().collect::<Vec<_>>()))
}

/// Rows as a batch with the columns that have these indexes.
///
/// # Errors
/// The error of Arrow if it refuses an array of the batch.
pub(crate) fn batch(rows: &[Row], projection: &[usize]) -> Result<RecordBatch, ArrowError> {
    let arrays = projection.iter().map(|&column| array(rows, column));
    let arrays = arrays.collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let schema = Arc::new(event_schema().project(projection)?);
    RecordBatch::try_new_with_options(schema, arrays, &options)
}

fn array(rows: &[Row], column: usize) -> Result<ArrayRef, ArrowError> {
    let numbers = || {
        rows.iter().map(move |row| {
            if let Cell::Number(number) = row[column] {
                Some(number)
            } else {
                None
            }
        })
    };
    macro_rules! whole {
        ($array:ty) => {
            Arc::new(<$array>::from_iter(
                numbers().map(|number| number?.try_into().ok()),
            ))
        };
    }
    Ok(match COLUMNS[column].data_type() {
        DataType::UInt8 => whole!(UInt8Array),
        DataType::UInt16 => whole!(UInt16Array),
        DataType::UInt32 => whole!(UInt32Array),
        DataType::UInt64 => whole!(UInt64Array),
        DataType::Timestamp(..) => {
            let time = |row: &Row| {
                if let Cell::Time(nanos) = row[column] {
                    Some(nanos)
                } else {
                    None
                }
            };
            Arc::new(TimestampNanosecondArray::from_iter(rows.iter().map(time)))
        }
        DataType::FixedSizeBinary(_) => {
            let guid = |row: &Row| {
                if let Cell::Guid(bytes) = row[column] {
                    Some(bytes)
                } else {
                    None
                }
            };
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                rows.iter().map(guid),
                16,
            )?)
        }
        DataType::Map(..) => maps(rows.iter().map(|row| &row[column]))?,
        _ => {
            let texts = rows.iter().map(|row| {
                if let Cell::Text(text) = &row[column] {
                    Some(text.as_str())
                } else {
                    None
                }
            });
            Arc::new(StringViewArray::from_iter(texts))
        }
    })
}

/// Unnamed values are `param1` and so on. A name that occurs again gets a number.
fn maps<'c>(cells: impl Iterator<Item = &'c Cell>) -> Result<ArrayRef, ArrowError> {
    let names = MapFieldNames {
        entry: "entries".to_owned(),
        key: "key".to_owned(),
        value: "value".to_owned(),
    };
    let mut maps = MapBuilder::new(Some(names), StringViewBuilder::new(), StringViewBuilder::new());
    for cell in cells {
        let (mut taken, mut unnamed) = (Numbering::new(str::to_owned), 0);
        let fields = if let Cell::Fields(fields) = cell {
            Some(fields)
        } else {
            None
        };
        for (name, value) in fields.into_iter().flatten() {
            unnamed += usize::from(name.is_none());
            let name = name.clone().unwrap_or_else(|| format!("param{unnamed}"));
            maps.keys().append_value(taken.take(name).0);
            maps.values().append_option(value.as_deref());
        }
        maps.append(fields.is_some())?;
    }
    Ok(Arc::new(maps.finish()))
}
