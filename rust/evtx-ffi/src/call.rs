//! A call: the files and columns that a statement reads.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use arrow_schema::ffi::FFI_ArrowSchema;
use evtx_archive::ArchiveStorage;
use evtx_arrow::{ENUMS, OnError, enum_of};
use evtx_format::Interrupt;
use evtx_scan::{FolderColumn, FolderType, ScanCall, ScanError, Storage, estimate_records};

use crate::arguments::EvtxArguments;
use crate::boundary::{EvtxFailure, EvtxOwned, EvtxSlice, EvtxText, export_schema, produce, release, required};
use crate::paths::EvtxPaths;
use crate::report::{ReportFunction, report_of};
use crate::storage::EvtxStorage;

/// A call of a statement: its options, its files, and the columns of its rows.
pub struct EvtxCall {
    /// What it reads and how, with the columns of its folders.
    pub call: ScanCall,
    /// The columns of the logs.
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
        Ok(EvtxCall {
            call,
            schema,
            report,
            records,
        })
    }

    /// Whether the first damage ends a scan with an error (`on_error := 'fail'`).
    pub fn fails(&self) -> bool {
        self.call.options.on_error == OnError::Fail
    }

    fn folder(&self, column: usize) -> Result<&FolderColumn, &'static str> {
        self.call.folders.get(column).ok_or("there is no such column")
    }
}

/// The type of a column of folders.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvtxFolderType {
    /// Dates.
    Date,
    /// Times without a time zone, to microseconds.
    Timestamp,
    /// Signed 64-bit integers.
    Integer,
    /// Text.
    Text,
}

/// A type that is an enum.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxEnum {
    /// Its name.
    pub name: EvtxText<'static>,
    /// Its values.
    pub values: EvtxSlice<'static, EvtxText<'static>>,
}

/// All types that are enums.
pub(crate) fn enums() -> EvtxSlice<'static, EvtxEnum> {
    let enums = ENUMS.iter().map(|(name, values)| EvtxEnum {
        name: EvtxText::of(name),
        values: EvtxSlice::leaked(values.iter().map(|value| EvtxText::of(value)).collect::<Vec<_>>()),
    });
    EvtxSlice::leaked(enums.collect::<Vec<_>>())
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

/// Returns the schema of the columns of the logs, without those of the folders.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_call_schema(call: Option<&EvtxCall>, out: Option<&mut FFI_ArrowSchema>) -> EvtxFailure {
    produce(out, || export_schema(&required(call)?.schema))
}

/// Returns the name of the type of a column of the logs that is an enum, until the call is freed; null for another
/// column. The rows of the column have the numbers of values, in 8 bits.
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
    /// How many columns the logs have.
    pub columns: usize,
    /// How many columns the folders have. They follow those of the logs.
    pub folders: usize,
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
            columns: call.schema.fields().len(),
            folders: call.call.folders.len(),
            records: call.records,
            fails: call.fails(),
            warning: EvtxText::of_option(call.call.warning.as_deref()),
        })
    })
}

/// A column of folders.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxFolder<'a> {
    /// Its name, valid until the call is freed.
    pub name: EvtxText<'a>,
    /// The type of its values.
    pub value_type: EvtxFolderType,
}

/// Returns the column of folders with an index.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_call_folder<'a>(
    call: Option<&'a EvtxCall>,
    column: usize,
    out: Option<&mut EvtxFolder<'a>>,
) -> EvtxFailure {
    produce(out, || {
        let column = required(call)?.folder(column)?;
        Ok(EvtxFolder {
            name: EvtxText::of(&column.name),
            value_type: match column.value_type {
                FolderType::Date => EvtxFolderType::Date,
                FolderType::Timestamp => EvtxFolderType::Timestamp,
                FolderType::Integer => EvtxFolderType::Integer,
                FolderType::Text => EvtxFolderType::Text,
            },
        })
    })
}

/// Returns the value of a column of folders for a file, as text, until the call is freed; null for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_call_folder_value<'a>(
    call: Option<&'a EvtxCall>,
    column: usize,
    path: usize,
    out: Option<&mut EvtxText<'a>>,
) -> EvtxFailure {
    produce(out, || {
        let value = required(call)?.folder(column)?.values.get(path);
        Ok(EvtxText::of_option(value.ok_or("there is no such file")?.as_deref()))
    })
}
