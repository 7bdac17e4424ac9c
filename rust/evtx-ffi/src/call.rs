//! A call: the files and columns that a statement reads.

use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use evtx_archive::ArchiveStorage;
use evtx_arrow::{OnError, enum_of};
use evtx_format::Interrupt;
use evtx_scan::{FolderColumn, ScanCall, ScanError, Storage, estimate_records};
use jiff::civil::{Date, DateTime, date};

use crate::arguments::EvtxArguments;
use crate::boundary::{EvtxFailure, EvtxOwned, EvtxText, export_schema, produce, release, required};
use crate::paths::EvtxPaths;
use crate::report::{ReportFunction, report_of};
use crate::storage::EvtxStorage;

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
}

impl EvtxCall {
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
        let EvtxArguments { arguments, caller } = arguments;
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
        })
    }

    /// Whether the first damage ends a scan with an error (`on_error := 'fail'`).
    pub fn fails(&self) -> bool {
        self.call.options.on_error == OnError::Fail
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

/// Makes a call, as [`EvtxCall::new`] says.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_call_new(
    arguments: Option<&EvtxArguments>,
    paths: EvtxOwned<EvtxPaths>,
    threads: usize,
    storage: EvtxStorage,
    out: Option<&mut EvtxOwned<EvtxCall>>,
) -> EvtxFailure {
    produce(out, || {
        let (arguments, paths) = (required(arguments)?, *required(paths)?);
        let call = storage.during(|storage, interrupt| EvtxCall::new(arguments, paths, threads, storage, interrupt));
        Ok(Some(call?.into()))
    })
}

/// Frees a call. Scans keep what they need of it.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_call_free(call: EvtxOwned<EvtxCall>) {
    release(|| drop(call));
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
    /// Whether the first damage ends a scan with an error (`on_error := 'fail'`).
    pub fails: bool,
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
            fails: call.fails(),
            warning: EvtxText::of_option(call.call.warning.as_deref()),
        })
    })
}
