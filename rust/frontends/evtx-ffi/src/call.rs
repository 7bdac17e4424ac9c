//! A call: the files and columns that a statement reads.

use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use evtx_archive::ArchiveStorage;
use evtx_arrow::OnError;
use evtx_detect::enum_of;
use evtx_format::Interrupt;
use evtx_query::{FolderColumn, ScanCall};
use evtx_scan::{ScanError, Storage, estimate_records};
use jiff::civil::{Date, DateTime, date};

use crate::arguments::EvtxArguments;
use crate::boundary::{
    EvtxError, EvtxErrorKind, EvtxFailure, EvtxOwned, EvtxSlice, EvtxText, entry, export_schema, produce, release,
    required, texts,
};
use crate::filter::EvtxNode;
use crate::paths::EvtxPaths;
use crate::planned::Planned;
use crate::report::{ReportFunction, report_of};
use crate::storage::EvtxStorage;
use crate::values::{EvtxValue, SqlValue};

/// A call of a statement: its options, its files, and the columns of its rows.
pub struct EvtxCall {
    /// What it reads and how.
    pub(crate) call: ScanCall,
    /// The columns: those of the logs, then those of the folders.
    pub schema: SchemaRef,
    /// The report that makes the rows, unless they are records.
    pub(crate) report: Option<ReportFunction>,
    /// An estimate of how many records the files have; 0 if the rows are not records.
    pub records: u64,
    /// The columns of a COPY, by their indexes among those of the logs.
    pub copied: Vec<u64>,
    /// Its hints.
    pub(crate) planned: Planned,
}

/// A setting: its name, its description, and whether it is true or false, and true by default. Otherwise it is a text, and
/// empty by default.
pub type Setting = (&'static str, &'static str, bool);

/// The setting that names a catalog of messages for calls that name none.
pub const MESSAGES: Setting = (
    "evtx_messages",
    "The path of a catalog of messages, for every call without the argument messages",
    false,
);

/// The most threads of a scan. DuckDB starts no more of them than it has.
const MAX_THREADS: u64 = 1024;

impl EvtxCall {
    /// The settings whose values a call takes.
    pub const SETTINGS: [&str; 5] = [
        MESSAGES.0,
        "memory_limit",
        "temp_directory",
        "max_temp_directory_size",
        "threads",
    ];

    /// A call of a statement with the values of [`SETTINGS`](Self::SETTINGS). `files` is a path, a glob, a folder, or a list of
    /// them. `table` has the names of the columns of a COPY: each gets the column of the logs with its name.
    ///
    /// # Errors
    /// What is wrong with the arguments, the files or the table.
    pub fn bind(
        mut arguments: EvtxArguments,
        [messages, memory, folder, disk, threads]: [&str; 5],
        files: Option<&SqlValue>,
        table: &[&str],
        storage: &dyn Storage,
        interrupt: Interrupt<'_>,
    ) -> Result<Self, EvtxError> {
        arguments.arguments.default_messages(messages);
        table.iter().for_each(|name| arguments.arguments.require(name));
        let mut paths = EvtxPaths::new(&arguments, memory, folder, disk);
        if let Some(files) = files {
            paths.expand_all(&arguments, files, storage, interrupt)?;
            arguments.texts.extend(["\n", &files.text]);
        }
        let threads = threads.parse().unwrap_or(1);
        let mut call = EvtxCall::new(&arguments, paths, threads, storage, interrupt)?;
        let known = call.schema.fields();
        let copied = table.iter().map(|name| {
            let index = known.iter().position(|known| known.name().eq_ignore_ascii_case(name));
            index.map(|index| index as u64).ok_or_else(|| {
                let caller = &arguments.caller;
                let why = format!("{caller}: the table has a column \"{name}\", but the log has none with that name");
                EvtxError::new(EvtxErrorKind::Binder, why)
            })
        });
        call.copied = copied.collect::<Result<_, _>>()?;
        Ok(call)
    }

    /// A call of arguments and files. If the columns depend on the files, at most `threads` threads sample these.
    ///
    /// # Errors
    /// What is wrong with the arguments or the files.
    pub fn new(
        arguments: &EvtxArguments,
        paths: EvtxPaths,
        threads: usize,
        storage: &dyn Storage,
        interrupt: Interrupt<'_>,
    ) -> Result<Self, ScanError> {
        let planned = Planned::new(format!("{}{}", arguments.caller, arguments.texts));
        let EvtxArguments { arguments, caller, .. } = arguments;
        let EvtxPaths {
            paths,
            archives,
            memory,
        } = paths;
        let with_archives = ArchiveStorage::new(storage, &archives);
        let call = arguments.call(paths, threads, memory, &with_archives, caller, interrupt)?;
        let report = report_of(arguments.query());
        let (schema, records) = match &report {
            Some(report) => (Arc::clone(&report.schema), 0),
            None => (call.table.schema(), estimate_records(storage, &call.paths, interrupt)?),
        };
        let mut fields = schema.fields().to_vec();
        for column in &call.folders {
            let mut name = column.name.clone();
            while fields.iter().any(|field| field.name().eq_ignore_ascii_case(&name)) {
                name.insert_str(0, "hive_");
            }
            fields.push(Field::new(name, column.value_type.clone(), true).into());
        }
        Ok(EvtxCall {
            call,
            schema: Schema::new(fields).into(),
            report,
            records,
            copied: Vec::new(),
            planned,
        })
    }

    /// The most threads of a scan. With `on_error := 'fail'`, one thread reads the files in order to report the first damage.
    /// Otherwise DuckDB uses as many threads as it has: an idle thread costs little, and only opening the files would tell
    /// the number of blocks.
    pub fn max_threads(&self) -> u64 {
        match self.call.options.on_error {
            OnError::Fail => 1,
            _ => MAX_THREADS,
        }
    }
}

/// The value of a column of folders for a file, in as many rows.
pub(crate) fn folder_values(column: &FolderColumn, file: usize, rows: usize) -> ArrayRef {
    let text = column.values.get(file).and_then(Option::as_deref);
    let epoch = date(1970, 1, 1);
    let days = |text: &str| Some(epoch.until(text.parse::<Date>().ok()?).ok()?.get_days());
    let micros = |text: &str| {
        let since = text.parse::<DateTime>().ok()?.duration_since(epoch.into());
        i64::try_from(since.as_micros()).ok()
    };
    match column.value_type {
        DataType::Date32 => Arc::new(Date32Array::from(vec![text.and_then(days); rows])),
        DataType::Timestamp(..) => Arc::new(TimestampMicrosecondArray::from(vec![text.and_then(micros); rows])),
        DataType::Int64 => Arc::new(Int64Array::from(vec![text.and_then(|text| text.parse().ok()); rows])),
        _ => Arc::new(StringArray::from(vec![text; rows])),
    }
}

/// Makes a call, as [`EvtxCall::bind`] says, and takes over the arguments. `files` has no value if the function reads none.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_call_new(
    arguments: EvtxOwned<EvtxArguments>,
    settings: EvtxSlice<'_, EvtxText<'_>>,
    files: EvtxSlice<'_, EvtxValue<'_>>,
    table: EvtxSlice<'_, EvtxText<'_>>,
    storage: EvtxStorage,
    out: Option<&mut EvtxOwned<EvtxCall>>,
) -> EvtxFailure {
    produce(out, || {
        let arguments = *required(arguments)?;
        let settings = required(texts(settings)?.try_into().ok())?;
        let (files, table) = (SqlValue::next(&mut files.get().iter())?, texts(table)?);
        let call = storage.during(|storage, interrupt| {
            EvtxCall::bind(arguments, settings, files.as_ref(), &table, storage, interrupt)
        });
        Ok(Some(call?.into()))
    })
}

/// Frees a call. Scans keep what they need of it.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_call_free(call: EvtxOwned<EvtxCall>) {
    release(|| drop(call));
}

/// Removes the hints of a call.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_call_clear_hints(call: Option<&EvtxCall>) -> EvtxFailure {
    entry(|| {
        required(call)?.planned.clear_hints();
        Ok(())
    })
}

/// Adds a node to the hints of a call, conditions that all must be true. If it fails, or before each condition is complete,
/// the call must not be run.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_call_hint(call: Option<&EvtxCall>, node: EvtxNode<'_>) -> EvtxFailure {
    entry(|| Ok(required(call)?.planned.hint(&node)?))
}

/// Returns the schema of the columns: those of the logs, then those of the folders.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_call_schema(call: Option<&EvtxCall>, out: Option<&mut FFI_ArrowSchema>) -> EvtxFailure {
    produce(out, || export_schema(&required(call)?.schema))
}

/// Returns the name of the type of a column that is an enum, until the call is freed; null for another column. The rows
/// of the column have the numbers of values, in 8 bits.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_call_enum<'a>(
    call: Option<&'a EvtxCall>,
    column: usize,
    out: Option<&mut EvtxText<'a>>,
) -> EvtxFailure {
    produce(out, || {
        let field = required(call)?.schema.fields().get(column);
        Ok(EvtxText::of_option(field.and_then(|field| enum_of(field))))
    })
}

/// The properties of a call.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct EvtxCallInfo<'a> {
    /// An estimate of how many records the files have; 0 if the rows are not records.
    pub records: u64,
    /// The most threads of a scan.
    pub max_threads: u64,
    /// The columns of a COPY, by their indexes among those of the logs. Valid until the call is freed.
    pub copied: EvtxSlice<'a, u64>,
    /// Which files were not sampled, and which rules did not load; null for nothing. Valid until the call is freed.
    pub warning: EvtxText<'a>,
}

/// Returns the properties of a call.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_call_info<'a>(call: Option<&'a EvtxCall>, out: Option<&mut EvtxCallInfo<'a>>) -> EvtxFailure {
    produce(out, || {
        let call = required(call)?;
        Ok(EvtxCallInfo {
            records: call.records,
            max_threads: call.max_threads(),
            copied: EvtxSlice::borrowed(&call.copied),
            warning: EvtxText::of_option(call.call.warning.as_deref()),
        })
    })
}
