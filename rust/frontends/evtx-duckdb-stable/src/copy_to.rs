//! `COPY ... TO file (FORMAT evtx)` and `(FORMAT evtx_messages)`: logs, and catalogs of messages.
//!
//! The stable API names no columns, so they are known by their types: a log has one column of BLOBs, and a catalog all
//! columns of `evtx_message_catalog`, in their order.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use evtx_ffi::{CATALOG_FORMAT, EvtxCopy, EvtxError, EvtxExport, FORMAT};
use evtx_reports::message_schema;
use evtx_scan::LocalStorage;

use crate::api::*;
use crate::call::{boxed, delete, guarded, registered};
use crate::interrupts::{Interrupts, Probe};
use crate::rows::Rows;
use crate::storage::{Context, Files};
use crate::tables;
use crate::types::{LogicalType, Value, c_text, id, text_of};

/// A format.
struct Format {
    name: &'static str,
    probe: Option<Arc<Probe>>,
}

/// What a statement says.
struct Statement {
    probe: Option<Arc<Probe>>,
    format: &'static str,
    /// Names and values.
    options: Vec<(String, String)>,
    schema: SchemaRef,
    /// The columns that are needed: their places and types.
    columns: Vec<(u64, LogicalType)>,
    copy: EvtxCopy,
}

/// A file that is written.
struct Target {
    /// The open file, if it was begun. It is closed before a part of a file is removed.
    file: Option<File>,
    /// The path that it is written to.
    path: String,
    export: EvtxExport,
}

impl Target {
    /// Does a step of the work. Clients can keep a statement that has failed, so a failure removes the file at once.
    fn with(&mut self, step: impl FnOnce(&mut Self) -> Result<(), EvtxError>) -> Result<(), EvtxError> {
        step(self).inspect_err(|_| {
            self.file = None;
            self.export.abandon();
        })
    }

    /// Writes the parts that are ready.
    fn write(&mut self) -> Result<(), String> {
        loop {
            let (offset, bytes) = self.export.take();
            if bytes.is_empty() {
                return Ok(());
            }
            let problem = |error| format!("Cannot write \"{}\": {error}", self.path);
            let file = match &mut self.file {
                Some(file) => file,
                None => self.file.insert(File::create(&self.path).map_err(problem)?),
            };
            let placed = file.seek(SeekFrom::Start(offset));
            placed.and_then(|_| file.write_all(bytes)).map_err(problem)?;
        }
    }
}

/// The columns that a format needs of those of a statement.
fn columns(format: &str, found: Vec<LogicalType>) -> Result<(SchemaRef, Vec<(u64, LogicalType)>), EvtxError> {
    if format == FORMAT {
        let mut blobs = (0..).zip(found).filter(|(_, found)| found.id() == id::BLOB);
        let schema = Schema::new(vec![Field::new("record", DataType::Binary, true)]);
        return match (blobs.next(), blobs.next()) {
            (Some(record), None) => Ok((schema.into(), vec![record])),
            _ => Err("a log needs one column of BLOBs: \"record\", as in FROM read_evtx(..., record := true)".into()),
        };
    }
    let schema = message_schema();
    let known: Vec<LogicalType> = schema.fields().iter().map(|field| LogicalType::of(field)).collect();
    if found.len() != known.len() || !found.iter().zip(&known).all(|(found, known)| found.is(known)) {
        return Err(format!(
            "COPY TO (FORMAT {format}): DuckDB's stable C API does not name columns. Pass all columns of \
             evtx_message_catalog(...), in their order and with their types"
        )
        .into());
    }
    Ok((schema, (0..).zip(known).collect()))
}

unsafe extern "C" fn bind(info: duckdb_copy_function_bind_info) {
    guarded(duckdb_copy_function_bind_set_error, info, || {
        // SAFETY: DuckDB passes the info of the bind, the extra info is a format, and the columns have these indexes.
        let (format, options, found) = unsafe {
            let format = &*duckdb_copy_function_bind_get_extra_info(info).cast::<Format>();
            let found = (0..duckdb_copy_function_bind_get_column_count(info))
                .map(|index| LogicalType(duckdb_copy_function_bind_get_column_type(info, index)));
            let options = Value::owned(duckdb_copy_function_bind_get_options(info));
            (format, options, found.collect::<Vec<_>>())
        };
        let options = options.iter().flat_map(Value::fields);
        let text = |value: &Value| if value.is_null() { String::new() } else { value.text() };
        let mut statement = Statement {
            probe: format.probe.clone(),
            format: format.name,
            options: options
                .map(|(name, value)| (name.to_lowercase(), text(&value)))
                .collect(),
            schema: Schema::empty().into(),
            columns: Vec::new(),
            copy: EvtxCopy::default(),
        };
        EvtxExport::check_options(format.name, &statement.options())?;
        (statement.schema, statement.columns) = columns(format.name, found)?;
        // SAFETY: DuckDB passes the info of the bind, and the data is deleted as what it is.
        unsafe { duckdb_copy_function_bind_set_bind_data(info, boxed(statement), delete::<Statement>()) };
        Ok(())
    });
}

impl Statement {
    fn options(&self) -> Vec<[&str; 2]> {
        let options = self.options.iter();
        options.map(|(name, value)| [name.as_str(), value.as_str()]).collect()
    }
}

unsafe extern "C" fn init(info: duckdb_copy_function_global_init_info) {
    guarded(duckdb_copy_function_global_init_set_error, info, || {
        // SAFETY: the path and the data of the bind belong to DuckDB, and the context to the caller.
        let (path, statement, context) = unsafe {
            let path = text_of(duckdb_copy_function_global_init_get_file_path(info));
            let statement = &*duckdb_copy_function_global_init_get_bind_data(info).cast::<Statement>();
            let context = Context(duckdb_copy_function_global_init_get_client_context(info));
            (path, statement, context)
        };
        let fields = statement.schema.fields().iter();
        let names: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
        EvtxExport::check(statement.format, &path, &names, &statement.options())?;
        let memory = context.setting(c"memory_limit");
        let path = Files::new(&context).to_write(&path)?;
        let export = EvtxExport::new(
            statement.copy.clone(),
            statement.format,
            &statement.options(),
            &path,
            &memory,
        )?;
        let target = Target {
            file: None,
            path: export.path().to_owned(),
            export,
        };
        let target = boxed(Mutex::new(target));
        // SAFETY: DuckDB passes the info of the begin, and the data is deleted as what it is.
        unsafe { duckdb_copy_function_global_init_set_global_state(info, target, delete::<Mutex<Target>>()) };
        Ok(())
    });
}

unsafe extern "C-unwind" fn sink(info: duckdb_copy_function_sink_info, input: duckdb_data_chunk) {
    // SAFETY: the data is that of the bind, and the context belongs to the caller.
    let (statement, context) = unsafe {
        let statement = &*duckdb_copy_function_sink_get_bind_data(info).cast::<Statement>();
        (statement, Context(duckdb_copy_function_sink_get_client_context(info)))
    };
    let rows = Rows::copy(input, &statement.columns);
    guarded(duckdb_copy_function_sink_set_error, info, || {
        // SAFETY: the data is that of the begin.
        let target = unsafe { &*duckdb_copy_function_sink_get_global_state(info).cast::<Mutex<Target>>() };
        let interrupts = Interrupts::new(context, statement.probe.clone());
        let mut target = target.lock().unwrap_or_else(PoisonError::into_inner);
        target.with(|target| {
            let batch = rows.batch(&statement.schema)?;
            interrupts.during(|interrupt| target.export.push(&batch, interrupt))?;
            Ok(target.write()?)
        })
    });
}

unsafe extern "C" fn finalize(info: duckdb_copy_function_finalize_info) {
    guarded(duckdb_copy_function_finalize_set_error, info, || {
        // SAFETY: as in `sink`, and the context belongs to the caller.
        let (target, statement, context) = unsafe {
            let target = &*duckdb_copy_function_finalize_get_global_state(info).cast::<Mutex<Target>>();
            let statement = &*duckdb_copy_function_finalize_get_bind_data(info).cast::<Statement>();
            let context = Context(duckdb_copy_function_finalize_get_client_context(info));
            (target, statement, context)
        };
        let interrupts = Interrupts::new(context, statement.probe.clone());
        let mut target = target.lock().unwrap_or_else(PoisonError::into_inner);
        target.with(|target| {
            interrupts.during(|interrupt| target.export.finish(interrupt))?;
            target.write()?;
            target.file = None;
            interrupts.during(|interrupt| target.export.keep(&LocalStorage, interrupt))
        })
    });
}

/// Registers the formats.
pub(crate) fn register(connection: duckdb_connection, probe: Option<&Arc<Probe>>) -> Result<(), String> {
    for name in [FORMAT, CATALOG_FORMAT] {
        // SAFETY: every object is what the function takes, and is destroyed once. DuckDB copies the table function.
        let state = unsafe {
            let mut copy = duckdb_create_copy_function();
            duckdb_copy_function_set_name(copy, c_text(name).as_ptr());
            let probe = probe.cloned();
            let data = boxed(Format {
                name,
                probe: probe.clone(),
            });
            duckdb_copy_function_set_extra_info(copy, data, delete::<Format>());
            duckdb_copy_function_set_bind(copy, Some(bind));
            duckdb_copy_function_set_global_init(copy, Some(init));
            duckdb_copy_function_set_sink(copy, sink_callback(sink));
            duckdb_copy_function_set_finalize(copy, Some(finalize));
            if name == FORMAT {
                let mut from = tables::copy_from(name, probe);
                duckdb_copy_function_set_copy_from_function(copy, from);
                duckdb_destroy_table_function(&mut from);
            }
            let state = duckdb_register_copy_function(connection, copy);
            duckdb_destroy_copy_function(&mut copy);
            state
        };
        registered(state, "format", name)?;
    }
    Ok(())
}
