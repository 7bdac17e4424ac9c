//! The functions that redact records.

use std::sync::Arc;

use evtx_ffi::{EvtxPairs, EvtxRedaction, EvtxRedactor, EvtxVector, REDACT_FUNCTIONS};

use crate::api::*;
use crate::call::{boxed, delete, guarded, registered};
use crate::interrupts::{Interrupts, Probe};
use crate::rows::Rows;
use crate::storage::Context;
use crate::types::{LogicalType, c_text, id};
use crate::vectors::{lend, write_result};

/// A function, by its number.
struct Function {
    number: usize,
    probe: Option<Arc<Probe>>,
}

/// What a thread keeps between chunks.
struct State {
    redactor: EvtxRedactor,
    interrupts: Interrupts,
}

fn map_type() -> LogicalType {
    let text = LogicalType::new(id::VARCHAR);
    LogicalType::map(&text, &text)
}

/// For each row of a vector of maps, its index among those that differ from the map before, and the rows of these.
fn different(maps: EvtxVector) -> (Vec<u32>, Vec<u32>) {
    let (mut indexes, mut rows, mut last) = (Vec::with_capacity(maps.rows), Vec::new(), None);
    for row in 0..maps.rows {
        // SAFETY: a map is the index of its first entry and their count.
        let map = unsafe { maps.value::<[u64; 2]>(row) };
        if last != Some(map) {
            last = Some(map);
            rows.push(row as u32);
        }
        indexes.push(rows.len() as u32 - 1);
    }
    (indexes, rows)
}

unsafe extern "C" fn init(info: duckdb_init_info) {
    guarded(duckdb_scalar_function_init_set_error, info, || {
        // SAFETY: the function has this data. The state is deleted as what it is.
        unsafe {
            let function = &*duckdb_scalar_function_init_get_extra_info(info).cast::<Function>();
            let state = State {
                redactor: EvtxRedactor::new(function.number),
                interrupts: Interrupts::new(Context::of_init(info), function.probe.clone()),
            };
            duckdb_scalar_function_init_set_state(info, boxed(state), delete::<State>());
        }
        Ok(())
    });
}

unsafe extern "C-unwind" fn exec(info: duckdb_function_info, input: duckdb_data_chunk, output: duckdb_vector) {
    // SAFETY: the chunk has a vector for each argument.
    let (records, maps, rows) = unsafe {
        let vector = |index| duckdb_data_chunk_get_vector(input, index);
        (vector(0), vector(1), duckdb_data_chunk_get_size(input) as usize)
    };
    // The entries of a map can be anywhere in DuckDB's vector, and a map that is the same in each row can be large.
    let (indexes, different) = different(lend(maps, rows));
    let copy = Rows::pick(input, &[(1, map_type())], &different);
    // SAFETY: a map has entries, which have keys and values.
    let (count, [keys, values]) = unsafe {
        let entries = duckdb_list_vector_get_child(copy.vector(0));
        let count = duckdb_list_vector_get_size(copy.vector(0)) as usize;
        (
            count,
            [0, 1].map(|index| duckdb_struct_vector_get_child(entries, index)),
        )
    };
    let redacted = guarded(duckdb_scalar_function_set_error, info, || {
        let vectors = EvtxRedaction {
            records: lend(records, rows),
            replacements: EvtxPairs {
                lists: EvtxVector {
                    selection: indexes.as_ptr(),
                    rows,
                    ..lend(copy.vector(0), rows)
                },
                keys: lend(keys, count),
                values: lend(values, count),
            },
        };
        // SAFETY: the state is that of this thread, and the vectors are those of the types.
        unsafe {
            let State { redactor, interrupts } = &mut *duckdb_scalar_function_get_state(info).cast();
            interrupts.during(|interrupt| redactor.redact(&vectors, interrupt))
        }
    });
    if let Some(arrays) = redacted {
        write_result(info, &arrays, output);
    }
}

/// Registers the functions.
pub(crate) fn register(connection: duckdb_connection, probe: Option<&Arc<Probe>>) -> Result<(), String> {
    let record = LogicalType::new(id::BLOB);
    for (number, (_, name, ..)) in REDACT_FUNCTIONS.iter().enumerate() {
        let c_name = c_text(name);
        // SAFETY: every object is what the function takes, and is destroyed once.
        let state = unsafe {
            let mut set = duckdb_create_scalar_function_set(c_name.as_ptr());
            let mut function = duckdb_create_scalar_function();
            duckdb_scalar_function_set_name(function, c_name.as_ptr());
            duckdb_scalar_function_add_parameter(function, record.0);
            duckdb_scalar_function_add_parameter(function, map_type().0);
            duckdb_scalar_function_set_return_type(function, record.0);
            let probe = probe.cloned();
            duckdb_scalar_function_set_extra_info(function, boxed(Function { number, probe }), delete::<Function>());
            duckdb_scalar_function_set_init(function, Some(init));
            duckdb_scalar_function_set_function(function, scalar_callback(exec));
            duckdb_add_scalar_function_to_set(set, function);
            duckdb_destroy_scalar_function(&mut function);
            let state = duckdb_register_scalar_function_set(connection, set);
            duckdb_destroy_scalar_function_set(&mut set);
            state
        };
        registered(state, "function", name)?;
    }
    Ok(())
}
