//! The function that writes the fields of an event as one line.

use arrow_schema::{DataType, Field};
use evtx_ffi::{DETAILS_FUNCTION, EvtxEvents, EvtxPairs};
use evtx_format::Interrupt;

use crate::api::*;
use crate::call::{guarded, registered};
use crate::rows::Rows;
use crate::types::{LogicalType, c_text, id};
use crate::vectors::{lend, write_result};

/// The types of the lists: of fields, and of values to leave out.
fn list_types() -> [LogicalType; 2] {
    let text = |name| Field::new(name, DataType::Utf8, true);
    let field = DataType::Struct(vec![text("key"), text("value")].into());
    [field, DataType::Utf8].map(|item| LogicalType::list(&LogicalType::of(&Field::new_list_field(item, true))))
}

unsafe extern "C-unwind" fn exec(info: duckdb_function_info, input: duckdb_data_chunk, output: duckdb_vector) {
    let [fields, shown] = list_types();
    let copy = Rows::copy(input, &[(2, fields), (4, shown)]);
    let details = guarded(duckdb_scalar_function_set_error, info, || {
        // SAFETY: the chunk has a vector for each argument, of the type that the function declares.
        unsafe {
            let rows = duckdb_data_chunk_get_size(input) as usize;
            let argument = |index| lend(duckdb_data_chunk_get_vector(input, index), rows);
            let [fields, shown] = [0, 1].map(|column| copy.vector(column));
            let items = |list, item| lend(item, duckdb_list_vector_get_size(list) as usize);
            let [entries, texts] = [fields, shown].map(|list| duckdb_list_vector_get_child(list));
            let events = EvtxEvents {
                providers: argument(0),
                ids: argument(1),
                fields: EvtxPairs {
                    lists: lend(fields, rows),
                    keys: items(fields, duckdb_struct_vector_get_child(entries, 0)),
                    values: items(fields, duckdb_struct_vector_get_child(entries, 1)),
                },
                roots: argument(3),
                shown: lend(shown, rows),
                texts: items(shown, texts),
            };
            events.details(Interrupt::NEVER)
        }
    });
    if let Some(arrays) = details {
        write_result(info, &arrays, output);
    }
}

/// Registers the function.
pub(crate) fn register(connection: duckdb_connection) -> Result<(), String> {
    let (name, text, number) = (
        DETAILS_FUNCTION.0,
        LogicalType::new(id::VARCHAR),
        LogicalType::new(id::UINTEGER),
    );
    let [fields, shown] = list_types();
    // SAFETY: every object is what the function takes, and is destroyed once.
    let state = unsafe {
        let mut function = duckdb_create_scalar_function();
        duckdb_scalar_function_set_name(function, c_text(name).as_ptr());
        for parameter in [&text, &number, &fields, &text, &shown] {
            duckdb_scalar_function_add_parameter(function, parameter.0);
        }
        duckdb_scalar_function_set_return_type(function, text.0);
        duckdb_scalar_function_set_function(function, scalar_callback(exec));
        let state = duckdb_register_scalar_function(connection, function);
        duckdb_destroy_scalar_function(&mut function);
        state
    };
    registered(state, "function", name)
}
