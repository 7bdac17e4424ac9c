//! `COPY ... TO file (FORMAT evtx_messages)`: a catalog of messages.
//!
//! The stable API names no columns, so they are known by their places: those of `evtx_message_catalog`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use evtx_ffi::definitions;
use evtx_format::Interrupt;
use evtx_reports::{CatalogRows, message_schema};

use crate::api::{Connection, CopyBindInfo, CopyFinalizeInfo, CopyInitInfo, CopySinkInfo, DataChunk, api};
use crate::call::{boxed, delete, guarded, registered};
use crate::rows::Rows;
use crate::storage::{Context, Files};
use crate::types::{LogicalType, Value, c_text, text_of};

/// A file that is written.
struct File {
    path: String,
    catalog: Mutex<CatalogRows>,
}

impl File {
    fn catalog(&self) -> MutexGuard<'_, CatalogRows> {
        self.catalog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The types of the columns.
fn types() -> Vec<LogicalType> {
    let schema = message_schema();
    schema.fields().iter().map(|field| LogicalType::of(field)).collect()
}

unsafe extern "C" fn bind(info: CopyBindInfo) {
    guarded(api().copy_function_bind_set_error, info, || {
        let caller = format!("COPY TO (FORMAT {})", definitions().catalog_format.text()?);
        // SAFETY: DuckDB passes the info of the bind, and the columns have these indexes.
        let (options, found) = unsafe {
            let columns = 0..(api().copy_function_bind_get_column_count)(info);
            let found = columns.map(|index| LogicalType((api().copy_function_bind_get_column_type)(info, index)));
            let options = Value::owned((api().copy_function_bind_get_options)(info));
            (options, found.collect::<Vec<_>>())
        };
        if options.is_some_and(|options| !options.is_null()) {
            return Err(format!("{caller}: there is no option of this format").into());
        }
        let known = types();
        if found.len() == known.len() && found.iter().zip(&known).all(|(found, known)| found.is(known)) {
            return Ok(());
        }
        Err(format!(
            "{caller}: DuckDB's stable C API does not name columns. Pass all columns of evtx_message_catalog(...), in their \
             order and with their types"
        )
        .into())
    });
}

unsafe extern "C" fn init(info: CopyInitInfo) {
    guarded(api().copy_function_global_init_set_error, info, || {
        // SAFETY: the path belongs to DuckDB, and the data is deleted as what it is.
        unsafe {
            let path = text_of((api().copy_function_global_init_get_file_path)(info));
            let catalog = Mutex::default();
            let file = boxed(File { path, catalog });
            (api().copy_function_global_init_set_global_state)(info, file, delete::<File>());
        }
        Ok(())
    });
}

unsafe extern "C-unwind" fn sink(info: CopySinkInfo, input: DataChunk) {
    let rows = Rows::copy(input, &types());
    guarded(api().copy_function_sink_set_error, info, || {
        // SAFETY: the data is that of the begin.
        let file = unsafe { &*(api().copy_function_sink_get_global_state)(info).cast::<File>() };
        Ok(file.catalog().push(&rows.batch(&message_schema())?)?)
    });
}

unsafe extern "C" fn finalize(info: CopyFinalizeInfo) {
    guarded(api().copy_function_finalize_set_error, info, || {
        // SAFETY: as in `sink`. The context belongs to the caller.
        let (file, context) = unsafe {
            let file = &*(api().copy_function_finalize_get_global_state)(info).cast::<File>();
            let context = Context::owned((api().copy_function_finalize_get_client_context)(info));
            (file, context)
        };
        let bytes = std::mem::take(&mut *file.catalog()).finish(Interrupt::NEVER)?;
        Ok(Files::new(&context).write(&file.path, &bytes)?)
    });
}

/// Registers the format.
pub(crate) fn register(connection: Connection) -> Result<(), String> {
    let format = definitions().catalog_format.text()?;
    // SAFETY: every object is what the function takes, and is destroyed once.
    let state = unsafe {
        let mut copy = (api().create_copy_function)();
        (api().copy_function_set_name)(copy, c_text(format).as_ptr());
        (api().copy_function_set_bind)(copy, bind);
        (api().copy_function_set_global_init)(copy, init);
        (api().copy_function_set_sink)(copy, sink);
        (api().copy_function_set_finalize)(copy, finalize);
        let state = (api().register_copy_function)(connection, copy);
        (api().destroy_copy_function)(&mut copy);
        state
    };
    registered(state, "format", format)
}
