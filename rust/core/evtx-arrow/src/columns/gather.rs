//! Arrays with chosen rows of another array. `take` of the crate `arrow-select` does the same for every type of Arrow,
//! and makes the extension 1 MB larger.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, Int32Array, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{ArrowError, DataType};

use crate::arrays::{Indices, MakeArrays, Strings};

/// The rows of an array with these indices. The array has one of the types of columns that repeat.
///
/// # Errors
/// If it has another type.
pub(super) fn gather(array: &dyn Array, rows: &[u32], make: MakeArrays) -> Result<ArrayRef, ArrowError> {
    let nulls = array.nulls().map(|nulls| {
        let is_valid = |row: usize| nulls.is_valid(rows[row] as usize);
        NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), is_valid))
    });
    Ok(match array.data_type() {
        DataType::UInt8 => Arc::new(numbers::<UInt8Type>(array, rows, nulls)),
        DataType::UInt16 => Arc::new(numbers::<UInt16Type>(array, rows, nulls)),
        DataType::UInt32 => Arc::new(numbers::<UInt32Type>(array, rows, nulls)),
        DataType::UInt64 => Arc::new(numbers::<UInt64Type>(array, rows, nulls)),
        &DataType::FixedSizeBinary(size) => {
            let fixed = array.as_fixed_size_binary();
            let mut bytes = Vec::with_capacity(rows.len() * size as usize);
            rows.iter()
                .for_each(|&row| bytes.extend_from_slice(fixed.value(row as usize)));
            Arc::new(FixedSizeBinaryArray::try_new(size, bytes.into(), nulls)?)
        }
        DataType::Utf8View => {
            let texts = array.as_string_view();
            let views: Vec<u128> = rows.iter().map(|&row| texts.views()[row as usize]).collect();
            let strings = Strings {
                views: views.into(),
                buffers: texts.data_buffers().to_vec(),
                nulls,
            };
            Arc::new((make.strings)(strings)?)
        }
        DataType::Dictionary(..) => {
            let names = array.as_dictionary::<Int32Type>();
            let keys: Int32Array = numbers::<Int32Type>(names.keys(), rows, nulls);
            Arc::new((make.dictionary)(Indices::new(keys, Arc::clone(names.values())))?)
        }
        other => {
            return Err(ArrowError::NotYetImplemented(format!(
                "a column of {other} that repeats"
            )));
        }
    })
}

fn numbers<T: ArrowPrimitiveType>(array: &dyn Array, rows: &[u32], nulls: Option<NullBuffer>) -> PrimitiveArray<T> {
    let values = array.as_primitive::<T>().values();
    let gathered: Vec<T::Native> = rows.iter().map(|&row| values[row as usize]).collect();
    PrimitiveArray::new(gathered.into(), nulls)
}
