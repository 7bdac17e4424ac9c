//! The Arrow types of a scan: those of the core, plain ones, and those of Spark.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMicrosecondType, TimestampNanosecondType, UInt64Type};
use arrow_array::{Array, ArrayRef, Decimal128Array, PrimitiveArray, RecordBatch, RecordBatchOptions, make_array};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use evtx_format::{named, named_enum};
use pyo3::PyResult;
use pyo3::exceptions::PyValueError;
use uuid::Uuid;

/// Spark has times in microseconds.
pub(crate) const NANOS_OF_SPARK: i128 = 1000;

named_enum! {
    /// Which types the columns have.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Types {
        /// Texts and JSON are Utf8 without dictionaries. 128-bit integers are decimals. All other types are native.
        Plain = "plain",
        /// The types of the core: texts are string views and dictionaries.
        Native = "native",
        /// Plain types that Spark has: no unsigned integers, times in microseconds and UTC, GUIDs as texts.
        Spark = "spark",
    }
}

/// Whether a field has 128-bit integers, for which Arrow has no type.
fn is_int128(field: &Field) -> bool {
    field.extension_type_name() == Some("arrow.opaque")
}

/// Whether a field has texts of any layout.
pub(crate) fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

impl Types {
    /// Those with a name, in any case.
    pub(crate) fn of(name: &str) -> PyResult<Self> {
        named("types", Types::ALL, name).map_err(PyValueError::new_err)
    }

    /// Converts a field of the core.
    fn field(self, field: &FieldRef) -> FieldRef {
        use DataType::{
            Decimal128, FixedSizeBinary, Int16, Int32, Int64, List, Map, Struct, Timestamp, UInt8, UInt16, UInt32,
            UInt64, Utf8,
        };
        if self == Types::Native {
            return Arc::clone(field);
        }
        let is_spark = self == Types::Spark;
        let data_type = match field.data_type() {
            data_type if is_text(data_type) => Utf8,
            List(item) => List(self.field(item)),
            Map(entries, sorted) => Map(self.field(entries), *sorted),
            Struct(fields) => Struct(fields.iter().map(|field| self.field(field)).collect()),
            FixedSizeBinary(_) if is_int128(field) => Decimal128(38, 0),
            FixedSizeBinary(_) if is_spark => Utf8,
            Timestamp(TimeUnit::Nanosecond, _) if is_spark => Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            UInt8 if is_spark => Int16,
            UInt16 if is_spark => Int32,
            UInt32 | UInt64 if is_spark => Int64,
            other => other.clone(),
        };
        let plain = field.as_ref().clone().with_data_type(data_type);
        // Libraries have few functions for the extension type `arrow.json`.
        Arc::new(if is_spark || is_int128(field) || is_text(field.data_type()) {
            plain.with_metadata(HashMap::new())
        } else {
            plain
        })
    }

    /// Converts a schema of the core.
    pub(crate) fn schema(self, schema: &Schema) -> SchemaRef {
        let fields = schema.fields().iter().map(|field| self.field(field));
        Arc::new(Schema::new(fields.collect::<Fields>()))
    }

    /// Converts rows of the core. `schema` is the result of [`schema`](Self::schema) for theirs.
    ///
    /// # Errors
    /// [`ArrowError`] if a batch has more than 2 GiB of text in a column.
    pub(crate) fn rows(self, rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let fields = rows.schema_ref().fields().iter().zip(schema.fields());
        let columns = rows.columns().iter().zip(fields);
        let columns = columns
            .map(|(column, (from, to))| convert(column, from, to))
            .collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
    }
}

/// The fields of the arrays in an array.
fn children(data_type: &DataType) -> Vec<&FieldRef> {
    match data_type {
        DataType::List(item) | DataType::Map(item, _) => vec![item],
        DataType::Struct(fields) => fields.iter().collect(),
        _ => Vec::new(),
    }
}

/// Converts an array of a field to the field that [`Types::field`] made of it.
fn convert(array: &ArrayRef, from: &FieldRef, to: &FieldRef) -> Result<ArrayRef, ArrowError> {
    use DataType::{Decimal128, FixedSizeBinary, Int64, List, Map, Struct, Timestamp, UInt64, Utf8};
    if from.data_type() == to.data_type() {
        return Ok(Arc::clone(array));
    }
    Ok(match (from.data_type(), to.data_type()) {
        (List(_) | Map(..) | Struct(_), data_type) => {
            let data = array.to_data();
            let fields = children(from.data_type()).into_iter().zip(children(data_type));
            let values = data.child_data().iter().zip(fields);
            let values = values.map(|(child, (from, to))| Ok(convert(&make_array(child.clone()), from, to)?.to_data()));
            let values = values.collect::<Result<_, ArrowError>>()?;
            let builder = data.into_builder().data_type(data_type.clone());
            make_array(builder.child_data(values).build()?)
        }
        (FixedSizeBinary(_), Decimal128(precision, scale)) => {
            let bytes = array.as_fixed_size_binary().iter();
            let numbers = bytes.map(|bytes| bytes.and_then(|bytes| Some(i128::from_le_bytes(bytes.try_into().ok()?))));
            let numbers: Decimal128Array = numbers.collect();
            Arc::new(numbers.with_precision_and_scale(*precision, *scale)?)
        }
        (FixedSizeBinary(_), Utf8) => {
            let mut texts = StringBuilder::with_capacity(array.len(), 36 * array.len());
            let mut room = Uuid::encode_buffer();
            for bytes in array.as_fixed_size_binary().iter() {
                let guid = bytes.and_then(|bytes| Uuid::from_slice(bytes).ok());
                texts.append_option(guid.map(|guid| &*guid.hyphenated().encode_lower(&mut room)));
            }
            Arc::new(texts.finish())
        }
        (Timestamp(..), Timestamp(..)) => {
            let nanos = array.as_primitive::<TimestampNanosecondType>();
            let micros: PrimitiveArray<TimestampMicrosecondType> =
                nanos.unary(|nanos| nanos.div_euclid(NANOS_OF_SPARK as i64));
            Arc::new(micros.with_timezone("UTC"))
        }
        (UInt64, Int64) => Arc::new(
            array
                .as_primitive::<UInt64Type>()
                .unary::<_, Int64Type>(u64::cast_signed),
        ),
        (_, to) => cast(array, to)?,
    })
}
