//! Rows with the columns of `read_evtx`.

use std::sync::{Arc, LazyLock};

use arrow_array::builder::{MapBuilder, MapFieldNames, StringDictionaryBuilder, StringViewBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, FixedSizeBinaryArray, StringViewArray, TimestampNanosecondArray, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, FieldRef, Schema, SchemaRef};
use evtx_format::Numbering;

/// The columns of `read_evtx` without an option.
pub(crate) static COLUMNS: LazyLock<Vec<FieldRef>> = LazyLock::new(|| {
    let columns = evtx_arrow::reference().into_iter();
    let always = columns.filter(|column| column.option.is_none());
    always.map(|column| column.field.into()).collect()
});

/// The index of a column.
pub(crate) fn column(name: &str) -> usize {
    let found = COLUMNS.iter().position(|column| column.name() == name);
    found.unwrap_or_else(|| unreachable!("read_evtx has no column {name}"))
}

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
    macro_rules! values {
        ($kind:ident) => {
            rows.iter().map(|row| match &row[column] {
                Cell::$kind(value) => Some(value),
                _ => None,
            })
        };
    }
    macro_rules! whole {
        ($array:ty) => {
            Arc::new(
                values!(Number)
                    .map(|number| (*number?).try_into().ok())
                    .collect::<$array>(),
            )
        };
    }
    Ok(match COLUMNS[column].data_type() {
        DataType::UInt8 => whole!(UInt8Array),
        DataType::UInt16 => whole!(UInt16Array),
        DataType::UInt32 => whole!(UInt32Array),
        DataType::UInt64 => whole!(UInt64Array),
        DataType::Timestamp(..) => Arc::new(
            values!(Time)
                .map(Option::<&i64>::copied)
                .collect::<TimestampNanosecondArray>(),
        ),
        DataType::FixedSizeBinary(size) => Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(
            values!(Guid),
            *size,
        )?),
        DataType::Map(..) => maps(values!(Fields))?,
        DataType::Dictionary(..) => {
            let texts = values!(Text).map(|text| text.map(String::as_str));
            Arc::new(texts.collect::<DictionaryArray<Int32Type>>())
        }
        _ => Arc::new(values!(Text).collect::<StringViewArray>()),
    })
}

/// Maps of fields. An unnamed value is `param1`, `param2`, and so on. A name that occurs again gets a number: `name_1`.
fn maps<'c>(rows: impl Iterator<Item = Option<&'c Vec<Pair>>>) -> Result<ArrayRef, ArrowError> {
    let names = MapFieldNames {
        entry: "entries".to_owned(),
        key: "key".to_owned(),
        value: "value".to_owned(),
    };
    let (keys, values) = (StringDictionaryBuilder::<Int32Type>::new(), StringViewBuilder::new());
    let mut maps = MapBuilder::new(Some(names), keys, values);
    for fields in rows {
        let (mut taken, mut unnamed) = (Numbering::new(str::to_owned), 0);
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
