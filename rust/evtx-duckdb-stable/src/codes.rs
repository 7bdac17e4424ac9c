//! The functions of codes.

use evtx_codes::Lookup;
use evtx_ffi::{CODE_FUNCTIONS, EvtxVector, answers};
use evtx_format::Interrupt;

use crate::api::*;
use crate::call::{boxed, delete, guarded, registered};
use crate::types::{LogicalType, c_text, id};
use crate::vectors::{lend, write_result};

/// A function, by its number, and whether its code is a HUGEINT.
struct Function {
    number: usize,
    takes_number: bool,
}

unsafe extern "C-unwind" fn exec(info: duckdb_function_info, input: duckdb_data_chunk, output: duckdb_vector) {
    let answered = guarded(duckdb_scalar_function_set_error, info, || {
        // SAFETY: the function has what is known of it as its data.
        let function = unsafe { &*duckdb_scalar_function_get_extra_info(info).cast::<Function>() };
        let argument = |index| {
            // SAFETY: the chunk has a vector for each argument.
            unsafe {
                let vector = duckdb_data_chunk_get_vector(input, index);
                lend(vector, duckdb_data_chunk_get_size(input) as usize)
            }
        };
        let codes = EvtxVector {
            is_number: function.takes_number,
            ..argument(1)
        };
        answers(function.number, argument(0), codes, Interrupt::NEVER)
    });
    if let Some(arrays) = answered {
        write_result(info, &arrays, output);
    }
}

/// Registers the functions, each for text and for numbers.
pub(crate) fn register(connection: duckdb_connection) -> Result<(), String> {
    let (text, integer) = (LogicalType::new(id::VARCHAR), LogicalType::new(id::HUGEINT));
    let list = LogicalType::list(&text);
    for (number, (lookup, name, ..)) in CODE_FUNCTIONS.iter().enumerate() {
        let c_name = c_text(name);
        let result = if *lookup == Lookup::Names { &list } else { &text };
        // SAFETY: every object is what the function takes, and is destroyed once.
        let state = unsafe {
            let mut set = duckdb_create_scalar_function_set(c_name.as_ptr());
            for takes_number in [false, true] {
                let code = if takes_number { &integer } else { &text };
                let data = Function { number, takes_number };
                let mut function = duckdb_create_scalar_function();
                duckdb_scalar_function_set_name(function, c_name.as_ptr());
                duckdb_scalar_function_add_parameter(function, text.0);
                duckdb_scalar_function_add_parameter(function, code.0);
                duckdb_scalar_function_set_return_type(function, result.0);
                duckdb_scalar_function_set_extra_info(function, boxed(data), delete::<Function>());
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
