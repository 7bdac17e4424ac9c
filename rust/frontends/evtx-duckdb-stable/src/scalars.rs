//! The scalar functions of the core.

use std::sync::Arc;

use arrow_schema::DataType;
use evtx_ffi::{Caller, EvtxArrays, EvtxVector, Scalar, ScalarFunction, scalar_functions};

use crate::api::*;
use crate::call::{boxed, delete, guarded, registered};
use crate::interrupts::{Interrupts, Probe};
use crate::rows::Rows;
use crate::storage::{Context, Files};
use crate::types::{LogicalType, c_text};
use crate::vectors::{lend, write_result};

/// A function as DuckDB keeps it.
struct Function {
    known: &'static ScalarFunction,
    probe: Option<Arc<Probe>>,
}

/// What a thread keeps between chunks.
struct State {
    scalar: Box<dyn Scalar>,
    files: Files,
    interrupts: Interrupts,
}

/// For each row of a vector of lists, its index among those that differ from the list before, and the rows of these.
fn different(lists: EvtxVector) -> (Vec<u32>, Vec<u32>) {
    let (mut indexes, mut rows, mut last) = (Vec::with_capacity(lists.rows), Vec::new(), None);
    for row in 0..lists.rows {
        // SAFETY: a list is the index of its first item and their count.
        let list = unsafe { lists.value::<[u64; 2]>(row) };
        if last != Some(list) {
            last = Some(list);
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
            let context = Context::of_init(info);
            let state = State {
                scalar: function.known.thread(),
                files: Files::new(&context),
                interrupts: Interrupts::new(context, function.probe.clone()),
            };
            duckdb_scalar_function_init_set_state(info, boxed(state), delete::<State>());
        }
        Ok(())
    });
}

/// Lends a vector whose lists follow each other, and after it the vectors of its items or fields.
///
/// # Safety
/// The vector has the type, and so many rows.
unsafe fn add(vector: duckdb_vector, rows: usize, data_type: &DataType, lent: &mut Vec<EvtxVector>) {
    lent.push(lend(vector, rows));
    // SAFETY: by the contract of this function.
    unsafe {
        match data_type {
            DataType::List(item) | DataType::Map(item, _) => {
                let items = duckdb_list_vector_get_size(vector) as usize;
                add(duckdb_list_vector_get_child(vector), items, item.data_type(), lent);
            }
            DataType::Struct(fields) => {
                for (index, field) in (0..).zip(fields) {
                    add(
                        duckdb_struct_vector_get_child(vector, index),
                        rows,
                        field.data_type(),
                        lent,
                    );
                }
            }
            _ => {}
        }
    }
}

unsafe extern "C-unwind" fn exec(info: duckdb_function_info, input: duckdb_data_chunk, output: duckdb_vector) {
    // SAFETY: the function has this data, and the chunk a vector for each parameter.
    let (function, rows) = unsafe {
        let function = &*duckdb_scalar_function_get_extra_info(info).cast::<Function>();
        (function, duckdb_data_chunk_get_size(input) as usize)
    };
    // The items of a list can be anywhere in DuckDB's vector, and a list that is the same in each row can be large.
    let (mut lent, mut copies) = (Vec::new(), Vec::new());
    for (index, parameter) in (0..).zip(&function.known.parameters) {
        // SAFETY: as above.
        unsafe {
            let vector = duckdb_data_chunk_get_vector(input, index);
            if !parameter.data_type().is_nested() {
                add(vector, rows, parameter.data_type(), &mut lent);
                continue;
            }
            let (indexes, different) = match parameter.data_type() {
                DataType::Struct(_) => (0..rows as u32).map(|row| (row, row)).unzip(),
                _ => different(lend(vector, rows)),
            };
            let copy = Rows::pick(input, &[(index, LogicalType::of(parameter))], &different);
            let list = lent.len();
            add(copy.vector(0), different.len(), parameter.data_type(), &mut lent);
            lent[list].selection = indexes.as_ptr();
            lent[list].rows = rows;
            copies.push((copy, indexes));
        }
    }
    let called = guarded(duckdb_scalar_function_set_error, info, || {
        // SAFETY: the state is that of this thread, and the vectors are those of the parameters.
        let State {
            scalar,
            files,
            interrupts,
        } = unsafe { &mut *duckdb_scalar_function_get_state(info).cast() };
        let storage = &*files;
        // SAFETY: as above.
        interrupts.during(|interrupt| unsafe { scalar.call(&lent, Caller { storage, interrupt }) })
    });
    if let Some(array) = called {
        write_result(info, &EvtxArrays::of(array), output);
    }
}

/// Registers the functions.
pub(crate) fn register(connection: duckdb_connection, probe: Option<&Arc<Probe>>) -> Result<(), String> {
    for overloads in scalar_functions().chunk_by(|a, b| a.name == b.name) {
        let name = overloads[0].name;
        let c_name = c_text(name);
        // SAFETY: every object is what the function takes, and is destroyed once.
        let state = unsafe {
            let mut set = duckdb_create_scalar_function_set(c_name.as_ptr());
            for known in overloads {
                let mut function = duckdb_create_scalar_function();
                duckdb_scalar_function_set_name(function, c_name.as_ptr());
                for parameter in &known.parameters {
                    duckdb_scalar_function_add_parameter(function, LogicalType::of(parameter).0);
                }
                duckdb_scalar_function_set_return_type(function, LogicalType::of(&known.result).0);
                duckdb_scalar_function_set_special_handling(function);
                if known.is_volatile() {
                    duckdb_scalar_function_set_volatile(function);
                }
                let probe = probe.cloned();
                duckdb_scalar_function_set_extra_info(function, boxed(Function { known, probe }), delete::<Function>());
                duckdb_scalar_function_set_init(function, Some(init));
                duckdb_scalar_function_set_function(function, scalar_callback(exec));
                duckdb_add_scalar_function_to_set(set, function);
                duckdb_destroy_scalar_function(&mut function);
            }
            let state = duckdb_register_scalar_function_set(connection, set);
            duckdb_destroy_scalar_function_set(&mut set);
            state
        };
        registered(state, "function", name)?;
    }
    Ok(())
}
