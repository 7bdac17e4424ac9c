//! The functions of codes.

use evtx_ffi::{EvtxCodeFunction, EvtxVector, answers, definitions};
use evtx_format::Interrupt;

use crate::api::*;
use crate::call::{guarded, lent, registered};
use crate::types::{LogicalType, c_text, id};
use crate::vectors::{lend, write_result};

unsafe extern "C-unwind" fn exec(info: duckdb_function_info, input: duckdb_data_chunk, output: duckdb_vector) {
    let answered = guarded(duckdb_scalar_function_set_error, info, || {
        // SAFETY: the function has what is known of it as its data.
        let function = unsafe { &*duckdb_scalar_function_get_extra_info(info).cast::<EvtxCodeFunction>() };
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

/// Registers the functions.
pub(crate) fn register(connection: duckdb_connection) -> Result<(), String> {
    let functions = definitions().code_functions.get();
    let (text, number) = (LogicalType::new(id::VARCHAR), LogicalType::new(id::HUGEINT));
    let list = LogicalType::list(&text);
    for overloads in functions.chunk_by(|one, two| one.number == two.number) {
        let name = overloads[0].function.name.text()?;
        let c_name = c_text(name);
        // SAFETY: every object is what the function takes, and is destroyed once.
        let state = unsafe {
            let mut set = duckdb_create_scalar_function_set(c_name.as_ptr());
            for code in overloads {
                let mut function = duckdb_create_scalar_function();
                duckdb_scalar_function_set_name(function, c_name.as_ptr());
                duckdb_scalar_function_add_parameter(function, text.0);
                duckdb_scalar_function_add_parameter(function, if code.takes_number { number.0 } else { text.0 });
                duckdb_scalar_function_set_return_type(function, if code.is_list { list.0 } else { text.0 });
                duckdb_scalar_function_set_extra_info(function, lent(code), None);
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
