//! Rows with the columns of `read_evtx`.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, FixedSizeBinaryArray, StringViewArray, TimestampNanosecondArray, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};

use crate::field_maps::FieldMaps;
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

impl Cell {
    pub(crate) fn text(&self) -> Option<&str> {
        let Cell::Text(text) = self else { return None };
        Some(text)
    }

    pub(crate) fn number(&self) -> Option<u64> {
        let Cell::Number(number) = self else { return None };
        Some(*number)
    }

    fn time(&self) -> Option<i64> {
        let Cell::Time(nanos) = self else { return None };
        Some(*nanos)
    }

    fn guid(&self) -> Option<[u8; 16]> {
        let Cell::Guid(bytes) = self else { return None };
        Some(*bytes)
    }
}

/// The schema of the rows.
pub fn event_schema() -> SchemaRef {
    Arc::new(Schema::new(COLUMNS.to_vec()))
}

/// A column of some rows.
///
/// # Errors
/// The error of Arrow if it refuses the array.
pub(crate) fn array(rows: &[Row], column: usize) -> Result<ArrayRef, ArrowError> {
    let cells = rows.iter().map(|row| &row[column]);
    macro_rules! whole {
        ($array:ty) => {
            Arc::new(
                cells
                    .map(|cell| cell.number()?.try_into().ok())
                    .collect::<$array>(),
            )
        };
    }
    Ok(match COLUMNS[column].data_type() {
        DataType::UInt8 => whole!(UInt8Array),
        DataType::UInt16 => whole!(UInt16Array),
        DataType::UInt32 => whole!(UInt32Array),
        DataType::UInt64 => whole!(UInt64Array),
        DataType::Timestamp(..) => Arc::new(cells.map(Cell::time).collect::<TimestampNanosecondArray>()),
        DataType::FixedSizeBinary(size) => {
            let guids = cells.map(Cell::guid);
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(guids, *size)?)
        }
        DataType::Map(..) => {
            let mut maps = FieldMaps::default();
            for cell in cells {
                if let Cell::Fields(fields) = cell {
                    fields
                        .iter()
                        .for_each(|(name, value)| maps.push(name.as_deref(), value.as_deref()));
                }
                maps.end(matches!(cell, Cell::Fields(_)))?;
            }
            maps.finish()
        }
        DataType::Dictionary(..) => Arc::new(cells.map(Cell::text).collect::<DictionaryArray<Int32Type>>()),
        _ => Arc::new(cells.map(Cell::text).collect::<StringViewArray>()),
    })
}
