//! The columns of a report: names, descriptions, types, and values for a row.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, UInt32Builder};
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeBinaryArray, ListArray, RecordBatch, RecordBatchOptions, StringArray, StructArray,
    TimestampNanosecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use evtx_arrow::uuid_field;
use evtx_detect::level_field;
use evtx_messages::ValueMap;
use evtx_sigma::Level;

use crate::event_ids::LogSpan;

/// A value of a map, and its text.
pub(crate) type MapEntry = (u32, Arc<str>);

/// Declares the columns of a row in order: the description of each, its name, its type and its value for a row.
macro_rules! columns {
    ($row:ty: $($(#[doc = $about:literal])* $name:ident: $kind:ident($value:expr);)*) => {
        impl crate::table::Row for $row {
            const COLUMNS: &'static [crate::table::ReportColumn<Self>] = &[$(crate::table::ReportColumn {
                name: stringify!($name),
                about: concat!($($about),*).trim_ascii_start(),
                value: crate::table::Value::$kind($value),
            }),*];
        }
    };
}
pub(crate) use columns;

/// A row of a report.
pub trait Row: Sized + 'static {
    /// The columns, in order.
    const COLUMNS: &'static [ReportColumn<Self>];
}

/// A column of a report whose rows have type `R`.
pub struct ReportColumn<R> {
    /// Its name in the schema.
    pub(crate) name: &'static str,
    /// A sentence that describes it.
    pub(crate) about: &'static str,
    /// Its type, and its value for a row.
    pub(crate) value: Value<R>,
}

/// The type of a column, with the function that gives the value for a row. `None` is NULL.
pub(crate) enum Value<R> {
    Text(for<'r> fn(&'r R) -> Option<Cow<'r, str>>),
    Bool(fn(&R) -> Option<bool>),
    UInt8(fn(&R) -> Option<u8>),
    UInt16(fn(&R) -> Option<u16>),
    UInt32(fn(&R) -> Option<u32>),
    UInt64(fn(&R) -> Option<u64>),
    /// Nanoseconds since 1970-01-01 UTC.
    Time(fn(&R) -> Option<i64>),
    /// The 16 bytes of a GUID, in the order of its text.
    Uuid(fn(&R) -> Option<[u8; 16]>),
    /// The level of a rule.
    Level(fn(&R) -> Option<Level>),
    /// A list, never NULL.
    Texts(for<'r> fn(&'r R) -> &'r [String]),
    /// A list, never NULL.
    Numbers(for<'r> fn(&'r R) -> &'r [u32]),
    /// A list, never NULL.
    Names(for<'r> fn(&'r R) -> &'r [Arc<str>]),
    /// A list of structs.
    LogSpans(for<'r> fn(&'r R) -> Option<&'r [LogSpan]>),
    /// A list of structs, never NULL.
    Fields(for<'r> fn(&'r R) -> &'r [evtx_messages::Field]),
    /// A list of structs, never NULL.
    Maps(for<'r> fn(&'r R) -> &'r [Arc<ValueMap>]),
    /// A list of structs, never NULL.
    MapEntries(for<'r> fn(&'r R) -> &'r [MapEntry]),
}

impl<R> Value<R> {
    /// The column as a field of an Arrow schema. It can be NULL.
    fn field(&self, name: &str) -> Field {
        let data_type = match self {
            Value::Text(_) => DataType::Utf8,
            Value::Bool(_) => DataType::Boolean,
            Value::UInt8(_) => DataType::UInt8,
            Value::UInt16(_) => DataType::UInt16,
            Value::UInt32(_) => DataType::UInt32,
            Value::UInt64(_) => DataType::UInt64,
            Value::Time(_) => DataType::Timestamp(TimeUnit::Nanosecond, None),
            Value::Uuid(_) => return uuid_field(name),
            Value::Level(_) => return level_field(name),
            Value::Texts(_) | Value::Names(_) => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
            Value::Numbers(_) => DataType::List(Arc::new(Field::new_list_field(DataType::UInt32, true))),
            Value::LogSpans(_) => list_type::<LogSpan>(),
            Value::Fields(_) => list_type::<evtx_messages::Field>(),
            Value::Maps(_) => list_type::<Arc<ValueMap>>(),
            Value::MapEntries(_) => list_type::<MapEntry>(),
        };
        Field::new(name, data_type, true)
    }

    // What makes the arrays does not depend on the type of the rows: it is compiled once, not for each report.
    fn array(&self, rows: &[&R]) -> Result<ArrayRef, ArrowError> {
        fn all<'r, R, V>(rows: &[&'r R], value: impl Fn(&'r R) -> V) -> Vec<V> {
            rows.iter().map(|row| value(row)).collect()
        }
        Ok(match self {
            Value::Text(value) => texts(all(rows, value)),
            Value::Bool(value) => Arc::new(BooleanArray::from(all(rows, value))),
            Value::UInt8(value) => Arc::new(UInt8Array::from(all(rows, value))),
            Value::UInt16(value) => Arc::new(UInt16Array::from(all(rows, value))),
            Value::UInt32(value) => Arc::new(UInt32Array::from(all(rows, value))),
            Value::UInt64(value) => Arc::new(UInt64Array::from(all(rows, value))),
            Value::Time(value) => Arc::new(TimestampNanosecondArray::from(all(rows, value))),
            Value::Uuid(value) => uuids(all(rows, value))?,
            Value::Level(value) => Arc::new(UInt8Array::from(all(rows, |row| value(row).map(|level| level as u8)))),
            Value::Texts(value) => lists_of_texts(all(rows, |row| {
                value(row).iter().map(String::as_str).collect::<Vec<_>>()
            })),
            Value::Names(value) => lists_of_texts(all(rows, |row| value(row).iter().map(|name| &**name).collect())),
            Value::Numbers(value) => lists_of_numbers(all(rows, value)),
            Value::LogSpans(value) => lists_of_rows(&all(rows, value))?,
            Value::Fields(value) => lists_of_rows(&all(rows, |row| Some(value(row))))?,
            Value::Maps(value) => lists_of_rows(&all(rows, |row| Some(value(row))))?,
            Value::MapEntries(value) => lists_of_rows(&all(rows, |row| Some(value(row))))?,
        })
    }
}

fn texts(values: Vec<Option<Cow<'_, str>>>) -> ArrayRef {
    Arc::new(StringArray::from_iter(values))
}

fn uuids(values: Vec<Option<[u8; 16]>>) -> Result<ArrayRef, ArrowError> {
    let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(values.into_iter(), 16)?;
    Ok(Arc::new(array))
}

fn lists_of_texts(values: Vec<Vec<&str>>) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for texts in values {
        lists.append_value(texts.into_iter().map(Some));
    }
    Arc::new(lists.finish())
}

fn lists_of_numbers(values: Vec<&[u32]>) -> ArrayRef {
    let mut lists = ListBuilder::new(UInt32Builder::new());
    for numbers in values {
        lists.append_value(numbers.iter().copied().map(Some));
    }
    Arc::new(lists.finish())
}

/// The type of a column of lists of structs.
fn list_type<T: Row>() -> DataType {
    DataType::List(Arc::new(list_item::<T>()))
}

fn list_item<T: Row>() -> Field {
    Field::new_list_field(DataType::Struct(schema::<T>().fields().clone()), true)
}

/// Lists of structs as an array. `None` is NULL.
fn lists_of_rows<T: Row>(lists: &[Option<&[T]>]) -> Result<ArrayRef, ArrowError> {
    let items: Vec<&T> = lists.iter().copied().flatten().flatten().collect();
    let columns = T::COLUMNS.iter().map(|column| column.value.array(&items));
    let offsets = OffsetBuffer::from_lengths(lists.iter().map(|list| list.map_or(0, <[_]>::len)));
    let nulls = lists.iter().map(Option::is_some).collect();
    let fields = schema::<T>().fields().clone();
    let items = StructArray::try_new(fields, columns.collect::<Result<_, _>>()?, None)?;
    let item = Arc::new(list_item::<T>());
    Ok(Arc::new(ListArray::try_new(
        item,
        offsets,
        Arc::new(items),
        Some(nulls),
    )?))
}

columns! { LogSpan:
    channel: Text(|log| log.channel.as_deref().map(Into::into));
    computer: Text(|log| log.computer.as_deref().map(Into::into));
    records: UInt64(|log| Some(log.records));
    first_event_record_id: UInt64(|log| log.span.map(|span| span.least));
    last_event_record_id: UInt64(|log| log.span.map(|span| span.greatest));
    missing: UInt64(|log| log.span?.missing);
}

/// The schema of a report.
pub(crate) fn schema<R: Row>() -> SchemaRef {
    let fields = R::COLUMNS.iter().map(|column| column.value.field(column.name));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The rows as a batch.
pub(crate) fn batch<R: Row>(rows: &[R]) -> Result<RecordBatch, ArrowError> {
    let all: Vec<&R> = rows.iter().collect();
    let arrays = R::COLUMNS.iter().map(|column| column.value.array(&all));
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(schema::<R>(), arrays.collect::<Result<_, _>>()?, &options)
}
