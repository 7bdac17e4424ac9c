//! Rows that DuckDB passes, as Arrow arrays.

use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, ListArray, PrimitiveArray, RecordBatch, StringArray,
    StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use evtx_ffi::{EvtxError, EvtxVector};

use crate::api::*;
use crate::types::LogicalType;
use crate::vectors::lend;

/// A chunk whose rows follow each other in all its vectors, and so do the items of lists.
pub(crate) struct Rows {
    chunk: duckdb_data_chunk,
    /// The rows of DuckDB's chunk that it has: all.
    selection: duckdb_selection_vector,
    count: u64,
}

impl Drop for Rows {
    fn drop(&mut self) {
        // SAFETY: both are destroyed once.
        unsafe {
            duckdb_destroy_data_chunk(&mut self.chunk);
            duckdb_destroy_selection_vector(self.selection);
        }
    }
}

impl Rows {
    /// Copies columns of a chunk, by their places, with their types. In DuckDB's chunk, the items of a list can be anywhere, and the API does
    /// not say where. A C++ exception passes through if DuckDB has no more memory.
    pub(crate) fn copy(input: duckdb_data_chunk, columns: &[(u64, LogicalType)]) -> Self {
        // SAFETY: DuckDB passes a chunk.
        let count = unsafe { duckdb_data_chunk_get_size(input) };
        Rows::pick(input, columns, &(0..count as u32).collect::<Vec<_>>())
    }

    /// The same for some rows of the chunk.
    pub(crate) fn pick(input: duckdb_data_chunk, columns: &[(u64, LogicalType)], rows: &[u32]) -> Self {
        let mut types: Vec<duckdb_logical_type> = columns.iter().map(|(_, known)| known.0).collect();
        // SAFETY: both chunks have a vector for each type, and room for the rows of a chunk.
        unsafe {
            let count = rows.len() as u64;
            let chunk = duckdb_create_data_chunk(types.as_mut_ptr(), types.len() as u64);
            let selection = duckdb_create_selection_vector(count);
            let copy = Rows {
                chunk,
                selection,
                count,
            };
            duckdb_selection_vector_get_data_ptr(selection).copy_from_nonoverlapping(rows.as_ptr(), rows.len());
            for (to, (from, _)) in (0..).zip(columns) {
                let from = duckdb_data_chunk_get_vector(input, *from);
                duckdb_vector_copy_sel(from, copy.vector(to), selection, count, 0, 0);
            }
            copy
        }
    }

    /// A vector of the copy.
    pub(crate) fn vector(&self, column: u64) -> duckdb_vector {
        // SAFETY: callers ask for the columns that were copied.
        unsafe { duckdb_data_chunk_get_vector(self.chunk, column) }
    }

    /// The rows as a batch. The columns have the types of the schema.
    pub(crate) fn batch(&self, schema: &SchemaRef) -> Result<RecordBatch, EvtxError> {
        let columns = schema.fields().iter().enumerate().map(|(column, field)| {
            // SAFETY: the chunk has a vector for each column, whose type is that of the field.
            unsafe { array(self.vector(column as u64), self.count as usize, field.data_type()) }
        });
        let columns = columns.collect::<Result<_, _>>()?;
        RecordBatch::try_new(Arc::clone(schema), columns).map_err(refused)
    }
}

fn refused(error: ArrowError) -> EvtxError {
    error.to_string().into()
}

/// A vector as an array.
///
/// # Safety
/// The vector has the type, and so many rows, which follow each other.
unsafe fn array(vector: duckdb_vector, rows: usize, wanted: &DataType) -> Result<ArrayRef, EvtxError> {
    // SAFETY: by the contract of this function. Each value is read as what the vector has.
    unsafe {
        let values = lend(vector, rows);
        Ok(match wanted {
            DataType::Utf8 => {
                let texts = (0..rows).map(|row| values.text(row));
                Arc::new(texts.collect::<Result<StringArray, _>>()?)
            }
            DataType::Binary => Arc::new((0..rows).map(|row| values.bytes(row)).collect::<BinaryArray>()),
            DataType::Boolean => {
                let flag = |row| Some(values.value::<u8>(row)? != 0);
                Arc::new((0..rows).map(flag).collect::<BooleanArray>())
            }
            DataType::UInt8 => numbers::<UInt8Type>(&values),
            DataType::UInt16 => numbers::<UInt16Type>(&values),
            DataType::UInt32 => numbers::<UInt32Type>(&values),
            DataType::FixedSizeBinary(16) => {
                // DuckDB flips the first bit, so that UUIDs sort as signed numbers.
                let uuid = |row| Some((values.value::<u128>(row)? ^ 1 << 127).to_be_bytes());
                let uuids = FixedSizeBinaryArray::try_from_sparse_iter_with_size((0..rows).map(uuid), 16);
                Arc::new(uuids.map_err(refused)?)
            }
            DataType::Struct(fields) => {
                let columns = fields.iter().enumerate().map(|(index, field)| {
                    let child = duckdb_struct_vector_get_child(vector, index as u64);
                    array(child, rows, field.data_type())
                });
                let nulls = (0..rows).map(|row| values.value::<()>(row).is_some()).collect();
                let columns = columns.collect::<Result<_, _>>()?;
                Arc::new(StructArray::try_new(fields.clone(), columns, Some(nulls)).map_err(refused)?)
            }
            DataType::List(item) => {
                // Where the items of each row start, and how many there are.
                let places: Vec<Option<[u64; 2]>> = (0..rows).map(|row| values.value(row)).collect();
                let offsets =
                    OffsetBuffer::from_lengths(places.iter().map(|place| place.map_or(0, |[_, len]| len as usize)));
                let mut starts = places.iter().zip(offsets.iter());
                if !starts.all(|(place, &start)| place.is_none_or(|[own, _]| own == start as u64)) {
                    return Err("DuckDB copied the items of a list in another order".into());
                }
                let child = duckdb_list_vector_get_child(vector);
                let items = array(child, duckdb_list_vector_get_size(vector) as usize, item.data_type())?;
                let nulls = places.iter().map(Option::is_some).collect();
                Arc::new(ListArray::try_new(Arc::clone(item), offsets, items, Some(nulls)).map_err(refused)?)
            }
            other => return Err(format!("no array of {other} is made of a vector").into()),
        })
    }
}

fn numbers<T: ArrowPrimitiveType>(values: &EvtxVector) -> ArrayRef {
    // SAFETY: the caller asks for the type of the vector.
    let number = |row| unsafe { values.value::<T::Native>(row) };
    Arc::new((0..values.rows).map(number).collect::<PrimitiveArray<T>>())
}
