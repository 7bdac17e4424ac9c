//! Vectors for the core, and its arrays, written into vectors.

use evtx_ffi::{EvtxArrays, EvtxRoom, EvtxVector};

use crate::api::*;
use crate::call::guarded;

/// The memory for arrays in vectors of their types, which have room for the rows of a batch. A C++ exception passes
/// through if DuckDB has no more memory.
pub(crate) fn rooms(arrays: &EvtxArrays, vectors: impl IntoIterator<Item = duckdb_vector>) -> Vec<EvtxRoom> {
    let mut rooms = Vec::with_capacity(arrays.needs().len());
    for vector in vectors {
        add(arrays, vector, &mut rooms);
    }
    rooms
}

/// A vector for the core. Its rows follow each other.
pub(crate) fn lend(vector: duckdb_vector, rows: usize) -> EvtxVector {
    // SAFETY: DuckDB passes vectors with data.
    unsafe {
        EvtxVector {
            data: duckdb_vector_get_data(vector),
            validity: duckdb_vector_get_validity(vector),
            selection: std::ptr::null(),
            rows,
        }
    }
}

/// Writes the result of a scalar function.
pub(crate) fn write_result(info: duckdb_function_info, arrays: &EvtxArrays, output: duckdb_vector) {
    let rooms = rooms(arrays, [output]);
    guarded(duckdb_scalar_function_set_error, info, || {
        // SAFETY: each room is that of the vector of its array.
        unsafe { arrays.write(&rooms) };
        Ok(())
    });
}

/// Adds the room of the vector of the next array, and those of its items or fields.
fn add(arrays: &EvtxArrays, vector: duckdb_vector, rooms: &mut Vec<EvtxRoom>) {
    let need = arrays.needs()[rooms.len()];
    let (mut data, mut validity, mut heap) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the vector has the type of the array, and room for its rows.
    unsafe {
        if need.has_data {
            data = duckdb_vector_get_data(vector);
        }
        if need.has_nulls {
            duckdb_vector_ensure_validity_writable(vector);
            validity = duckdb_vector_get_validity(vector);
        }
        // The API copies a text into the heap of a vector, but gives no access to that heap. So all bytes become one
        // text of the first row: a length in 4 bytes, the first 4 bytes, and where they are. Each row then refers to
        // its part.
        if need.heap > MAX_INLINE {
            let bytes = arrays.heap(rooms.len());
            duckdb_unsafe_vector_assign_string_element_len(vector, 0, bytes.as_ptr().cast(), bytes.len() as u64);
            heap = data.cast::<*mut u8>().add(1).read();
        }
        rooms.push(EvtxRoom {
            data,
            validity,
            heap,
            is_filled: true,
        });
        if !need.has_data {
            for field in 0..need.children {
                add(arrays, duckdb_struct_vector_get_child(vector, field as u64), rooms);
            }
        } else if need.children > 0 {
            // The items of a list, or the entries of a map.
            let items = arrays.needs()[rooms.len()].rows as u64;
            duckdb_list_vector_reserve(vector, items);
            duckdb_list_vector_set_size(vector, items);
            add(arrays, duckdb_list_vector_get_child(vector), rooms);
        }
    }
}

/// The most bytes of a text that is stored without a pointer.
const MAX_INLINE: usize = 12;
