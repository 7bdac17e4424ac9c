//! The table functions, `COPY ... FROM`, and tables whose names are paths of logs.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use evtx_ffi::{EvtxArguments, EvtxCall, EvtxError, EvtxScan, EvtxWorker, PATH_ENDINGS, about, argument_type};
use evtx_query::Query;
use evtx_scan::{Argument, ends_with};

use crate::api::*;
use crate::call::{boxed, delete, guarded, registered};
use crate::interrupts::{Interrupts, Probe};
use crate::storage::{Context, Files};
use crate::types::{LogicalType, Value, c_text, id, text_of};
use crate::vectors::rooms;

/// The user data of a table function.
struct Function {
    query: Query,
    probe: Option<Arc<Probe>>,
}

/// A call of a function.
struct Bound {
    call: EvtxCall,
    files: Files,
    interrupts: Interrupts,
    /// DuckDB's `memory_limit`.
    memory: String,
}

/// A scan, which the threads of a statement share.
struct Shared {
    scan: EvtxScan,
    /// The vectors of its columns in a chunk. DuckDB adds one of its own for statements that only count rows.
    vectors: Vec<u64>,
}

/// A thread of a scan, from its first rows on.
#[derive(Default)]
struct Thread(Option<EvtxWorker>);

// Threads of DuckDB share the first two, and one thread at a time has the third.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    const fn handed_on<T: Send>() {}
    shared::<Bound>();
    shared::<Shared>();
    handed_on::<Thread>();
};

/// The columns of a call.
fn columns(call: &EvtxCall) -> impl Iterator<Item = (&str, LogicalType)> {
    let fields = call.schema.fields().iter();
    fields.map(|field| (field.name().as_str(), LogicalType::of(field)))
}

/// Binds a call with these arguments and the named ones. `table` has the names of the columns of a COPY.
fn bound(info: duckdb_bind_info, mut arguments: EvtxArguments, table: &[&str]) -> Result<Bound, EvtxError> {
    for argument in arguments.arguments.query().arguments() {
        // SAFETY: the function has a parameter with this name.
        let value = unsafe { duckdb_bind_get_named_parameter(info, c_text(argument.name).as_ptr()) };
        if let Some(value) = Value::owned(value) {
            arguments.set(argument.name, &value.to_sql())?;
        }
    }
    // SAFETY: DuckDB passes the info of the bind. A function without files has no first parameter.
    let paths = Value::owned(unsafe { duckdb_bind_get_parameter(info, 0) }).map(|paths| paths.to_sql());
    let context = Context::of(info);
    let settings = EvtxCall::SETTINGS.map(|name| context.setting(&c_text(name)));
    let settings = settings.each_ref().map(String::as_str);
    let files = Files::new(&context);
    let memory = context.setting(c"memory_limit");
    let interrupts = Interrupts::new(context, Function::of(info).probe.clone());
    let call =
        interrupts.during(|interrupt| EvtxCall::bind(arguments, settings, paths.as_ref(), table, &files, interrupt))?;
    Ok(Bound {
        call,
        files,
        interrupts,
        memory,
    })
}

unsafe extern "C" fn bind(info: duckdb_bind_info) {
    guarded(duckdb_bind_set_error, info, || {
        let query = Function::of(info).query;
        let bound = bound(info, EvtxArguments::new(query, about(query)[0].to_owned()), &[])?;
        for (name, column_type) in columns(&bound.call) {
            // SAFETY: the name ends with a NUL, and the type is one.
            unsafe { duckdb_bind_add_result_column(info, c_text(name).as_ptr(), column_type.0) };
        }
        if bound.call.records > 0 {
            // SAFETY: DuckDB passes the info of the bind.
            unsafe { duckdb_bind_set_cardinality(info, bound.call.records, false) };
        }
        // SAFETY: likewise, and the data is deleted as what it is.
        unsafe { duckdb_bind_set_bind_data(info, boxed(bound), delete::<Bound>()) };
        Ok(())
    });
}

/// Binds `COPY table FROM`: each column of the table gets the column of the log with its name.
unsafe extern "C" fn bind_copy(info: duckdb_bind_info) {
    guarded(duckdb_bind_set_error, info, || {
        // SAFETY: the table has columns with these indexes, whose names belong to DuckDB.
        let (names, types): (Vec<String>, Vec<LogicalType>) = unsafe {
            (0..duckdb_table_function_bind_get_result_column_count(info))
                .map(|index| {
                    (
                        text_of(duckdb_table_function_bind_get_result_column_name(info, index)),
                        LogicalType(duckdb_table_function_bind_get_result_column_type(info, index)),
                    )
                })
                .unzip()
        };
        let arguments = EvtxArguments::of_copy();
        let caller = arguments.caller.clone();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let bound = bound(info, arguments, &names)?;
        let known: Vec<_> = columns(&bound.call).collect();
        for ((name, wanted), &index) in names.iter().zip(&types).zip(&bound.call.copied) {
            if !known[index as usize].1.is(wanted) {
                let why = format!(
                    "{caller}: the column \"{name}\" of the table has another type than that of the log, and DuckDB's \
                     stable C API cannot convert it. Use INSERT INTO ... SELECT ... FROM read_evtx(...)"
                );
                return Err(why.into());
            }
        }
        // SAFETY: the data is deleted as what it is.
        unsafe { duckdb_bind_set_bind_data(info, boxed(bound), delete::<Bound>()) };
        Ok(())
    });
}

unsafe extern "C" fn init(info: duckdb_init_info) {
    guarded(duckdb_init_set_error, info, || {
        // SAFETY: the data is that of the bind, and the indexes are those of columns.
        let (bound, columns) = unsafe {
            let bound = &*duckdb_init_get_bind_data(info).cast::<Bound>();
            let count = duckdb_init_get_column_count(info);
            let columns = (0..count).map(|index| duckdb_init_get_column_index(info, index));
            (bound, columns.collect::<Vec<u64>>())
        };
        // The columns of a COPY are those of the table.
        let columns = match &bound.call.copied[..] {
            [] => columns,
            copied => columns.iter().map(|&index| copied[index as usize]).collect(),
        };
        let known = bound.call.schema.fields().len() as u64;
        let vectors = (0..).zip(&columns).filter(|(_, index)| **index < known);
        let shared = Shared {
            scan: EvtxScan::new(&bound.call, &columns, &bound.memory),
            vectors: vectors.map(|(vector, _)| vector).collect(),
        };
        // SAFETY: DuckDB passes the info of the begin, and the data is deleted as what it is.
        unsafe {
            duckdb_init_set_max_threads(info, bound.call.max_threads());
            duckdb_init_set_init_data(info, boxed(shared), delete::<Shared>());
        }
        Ok(())
    });
}

unsafe extern "C" fn init_thread(info: duckdb_init_info) {
    guarded(duckdb_init_set_error, info, || {
        // SAFETY: the data is deleted as what it is.
        unsafe { duckdb_init_set_init_data(info, boxed(Thread::default()), delete::<Thread>()) };
        Ok(())
    });
}

unsafe extern "C-unwind" fn exec(info: duckdb_function_info, output: duckdb_data_chunk) {
    let next = guarded(duckdb_function_set_error, info, || {
        // SAFETY: the data is that of the bind, of the begin and of this thread.
        let (bound, shared, thread) = unsafe {
            (
                &*duckdb_function_get_bind_data(info).cast::<Bound>(),
                &*duckdb_function_get_init_data(info).cast::<Shared>(),
                &mut *duckdb_function_get_local_init_data(info).cast::<Thread>(),
            )
        };
        let worker = thread.0.get_or_insert_with(|| shared.scan.worker());
        let next = bound
            .interrupts
            .during(|interrupt| worker.next(&bound.files, interrupt, false));
        let (arrays, place) = next?.unwrap_or_default();
        // SAFETY: the chunk has a vector for each column.
        let vectors = shared
            .vectors
            .iter()
            .map(|&index| unsafe { duckdb_data_chunk_get_vector(output, index) });
        Ok((arrays, vectors.collect::<Vec<_>>(), place.rows as u64))
    });
    let Some((arrays, vectors, rows)) = next.filter(|(.., rows)| *rows > 0) else {
        return;
    };
    let rooms = rooms(&arrays, vectors);
    guarded(duckdb_function_set_error, info, || {
        // SAFETY: each room is that of the vector of its array, and the chunk has room for a batch.
        unsafe {
            arrays.write(&rooms);
            duckdb_data_chunk_set_size(output, rows);
        }
        Ok(())
    });
}

/// Replaces a table whose name is the path of a log by a call of the first table function.
unsafe extern "C" fn replace(info: duckdb_replacement_scan_info, name: *const c_char, _: *mut c_void) {
    evtx_ffi::release(|| {
        // SAFETY: DuckDB passes a name.
        let path = unsafe { text_of(name) };
        if !PATH_ENDINGS.iter().any(|end| ends_with(&path, end)) {
            return;
        }
        let [name, ..] = about(Query::Records);
        // SAFETY: DuckDB passes the info of the replacement, and copies the value.
        unsafe {
            duckdb_replacement_scan_set_function_name(info, c_text(name).as_ptr());
            duckdb_replacement_scan_add_parameter(info, Value::of(&path).0);
        }
    });
}

impl Function {
    /// The function of a bind.
    fn of<'i>(info: duckdb_bind_info) -> &'i Self {
        // SAFETY: `function` set the data, and the function outlives its bind.
        unsafe { &*duckdb_bind_get_extra_info(info).cast() }
    }
}

/// A table function with the arguments of a query.
fn function(
    query: Query,
    name: &str,
    bind: unsafe extern "C" fn(duckdb_bind_info),
    data: Function,
) -> duckdb_table_function {
    // SAFETY: every object is what the function takes.
    unsafe {
        let function = duckdb_create_table_function();
        duckdb_table_function_set_name(function, c_text(name).as_ptr());
        duckdb_table_function_set_extra_info(function, boxed(data), delete::<Function>());
        if query.files().is_some() {
            duckdb_table_function_add_parameter(function, LogicalType::new(id::ANY).0);
        }
        for argument in query.arguments() {
            let Argument { name, kind, .. } = argument;
            let argument_type = LogicalType::with_name(argument_type(*kind).unwrap_or("ANY"));
            duckdb_table_function_add_named_parameter(function, c_text(name).as_ptr(), argument_type.0);
        }
        duckdb_table_function_set_bind(function, Some(bind));
        duckdb_table_function_set_init(function, Some(init));
        duckdb_table_function_set_local_init(function, Some(init_thread));
        duckdb_table_function_set_function(function, table_callback(exec));
        function
    }
}

/// Registers the table functions.
pub(crate) fn register(connection: duckdb_connection, probe: Option<&Arc<Probe>>) -> Result<(), String> {
    for query in Query::ALL {
        let [name, ..] = about(query);
        let data = Function {
            query,
            probe: probe.cloned(),
        };
        let mut function = function(query, name, bind, data);
        // SAFETY: as in `function`.
        let state = unsafe {
            duckdb_table_function_supports_projection_pushdown(function, true);
            let state = duckdb_register_table_function(connection, function);
            duckdb_destroy_table_function(&mut function);
            state
        };
        registered(state, "function", name)?;
    }
    Ok(())
}

/// The table function of `COPY ... FROM` with a format. The caller destroys it.
pub(crate) fn copy_from(format: &str, probe: Option<Arc<Probe>>) -> duckdb_table_function {
    function(
        Query::Records,
        format,
        bind_copy,
        Function {
            query: Query::Records,
            probe,
        },
    )
}

/// Registers the replacement of tables.
pub(crate) fn register_replacement(database: duckdb_database) {
    // SAFETY: the replacement has no data.
    unsafe { duckdb_add_replacement_scan(database, Some(replace), std::ptr::null_mut(), None) };
}
