//! The C ABI of a call: the files and columns that a statement reads.

use std::ffi::c_char;

use std::sync::Arc;

use arrow_schema::SchemaRef;
use arrow_schema::ffi::FFI_ArrowSchema;
use evtx_archive::ArchiveStorage;
use evtx_arrow::{ENUMS, OnError, enum_of};
use evtx_format::Interrupt;
use evtx_scan::{FolderColumn, FolderType, Function, ScanCall, Storage, estimate_records};

use crate::arguments::EvtxArguments;
use crate::boundary::{Code, entry, export_schema, free, put, put_text, release};
use crate::paths::EvtxPaths;
use crate::report::{ReportFunction, report_of};
use crate::storage::EvtxStorage;

/// A call of a statement: its options, its files, and the columns of its rows.
pub struct EvtxCall {
    pub(crate) call: ScanCall,
    pub(crate) schema: SchemaRef,
    /// The report that gives the rows, if these are not records.
    pub(crate) report: Option<ReportFunction>,
}

impl EvtxCall {
    fn new(call: ScanCall, function: Function) -> Self {
        let report = report_of(function);
        EvtxCall {
            schema: report
                .as_ref()
                .map_or_else(|| call.table.schema(), |report| Arc::clone(&report.schema)),
            call,
            report,
        }
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

impl Code for EvtxFolderType {
    const ALL: &[Self] = &[
        EvtxFolderType::Date,
        EvtxFolderType::Timestamp,
        EvtxFolderType::Integer,
        EvtxFolderType::Text,
    ];
    const WHAT: &str = "type of folders";
}

/// Makes a call of arguments and files. Moves the files out of `paths`, which is empty afterwards. Reads a sample of
/// the files if the columns depend on them, with so many `threads` at most.
///
/// # Safety
/// `arguments` is valid, `paths` is valid and not in use elsewhere, `storage` does what [`EvtxStorage`] says, `out` can
/// be written. The caller frees the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_call_new(
    arguments: *const EvtxArguments,
    paths: *mut EvtxPaths,
    threads: usize,
    storage: EvtxStorage,
    out: *mut *mut EvtxCall,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let (arguments, paths) = unsafe { (&*arguments, &mut *paths) };
        let (paths, archives) = (std::mem::take(&mut paths.0), &paths.2);
        // SAFETY: the caller's promise.
        let call = unsafe {
            storage.during(|storage, interrupt| {
                let storage = ArchiveStorage::new(storage, archives);
                arguments.0.call(paths, threads, &storage, interrupt)
            })
        };
        let call = Box::new(EvtxCall::new(call?, arguments.0.function()));
        // SAFETY: the caller's promise.
        unsafe { put(out, Box::into_raw(call)) };
        Ok(())
    })
}

/// Frees a call. Scans keep what they need of it.
///
/// # Safety
/// `call` is null or came from [`evtx_call_new`], and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_call_free(call: *mut EvtxCall) {
    // SAFETY: the caller's promise.
    release(|| unsafe { free(call) });
}

/// Writes the schema of the columns of the logs, without those of the folders.
///
/// # Safety
/// `call` is valid, `out` can be written. The caller releases the schema.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_call_schema(call: *const EvtxCall, out: *mut FFI_ArrowSchema) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let schema = export_schema(&unsafe { &*call }.schema)?;
        // SAFETY: the caller's promise.
        unsafe { put(out, schema) };
        Ok(())
    })
}

/// Writes a text of a type that is an enum: its name for `value` 0, and its values from 1 on. It is text without a NUL at
/// its end, and valid for good. `data` receives null if there is none.
///
/// # Safety
/// `data` and `len` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_enum(
    index: usize,
    value: usize,
    data: *mut *const c_char,
    len: *mut usize,
) -> *mut c_char {
    entry(|| {
        let text = ENUMS.get(index).and_then(|(name, values)| match value.checked_sub(1) {
            None => Some(*name),
            Some(value) => values.get(value).copied(),
        });
        // SAFETY: the caller's promise.
        unsafe { put_text(text, data, len) };
        Ok(())
    })
}

/// Writes the name of the type of a column that is an enum: text without a NUL at its end, which the call keeps. The
/// column has its numbers, in 8 bits. `data` receives null for another column.
///
/// # Safety
/// `call` is valid, `data` and `len` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_call_enum(
    call: *const EvtxCall,
    column: usize,
    data: *mut *const c_char,
    len: *mut usize,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let field = unsafe { &*call }.schema.fields().get(column);
        // SAFETY: the caller's promise.
        unsafe { put_text(field.and_then(|field| enum_of(field)), data, len) };
        Ok(())
    })
}

/// Writes what the caller should know about a call: what of the files was not read to find the columns, if that was not
/// asked for, and that rules did not load. It is text without a NUL at its end, which the call keeps. `data` receives
/// null if there is nothing to tell.
///
/// # Safety
/// `call` is valid, `data` and `len` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_call_warning(
    call: *const EvtxCall,
    data: *mut *const c_char,
    len: *mut usize,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        unsafe { put_text((*call).call.warning.as_deref(), data, len) };
        Ok(())
    })
}

/// The numbers of a call, and its handling of damage.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct EvtxCallInfo {
    /// How many columns the logs have.
    pub columns: usize,
    /// How many columns the folders have. They follow those of the logs.
    pub folders: usize,
    /// How many files there are.
    pub paths: usize,
    /// Whether the first damage ends a scan with an error (`on_error := 'fail'`).
    pub fails: bool,
}

/// Writes the info of a call.
///
/// # Safety
/// `call` is valid, `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_call_info(call: *const EvtxCall, out: *mut EvtxCallInfo) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let (call, schema) = unsafe { (&(*call).call, &(*call).schema) };
        let info = EvtxCallInfo {
            columns: schema.fields().len(),
            folders: call.folders.len(),
            paths: call.paths.len(),
            fails: call.options.on_error == OnError::Fail,
        };
        // SAFETY: the caller's promise.
        unsafe { put(out, info) };
        Ok(())
    })
}

/// Writes an estimate of how many records the files have; 0 if the rows are not records.
///
/// # Safety
/// `call` is valid, `storage` does what [`EvtxStorage`] says, `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_call_estimate(call: *const EvtxCall, storage: EvtxStorage, out: *mut u64) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let EvtxCall { call, report, .. } = unsafe { &*call };
        let estimate = |storage: &dyn Storage, interrupt: Interrupt<'_>| match report {
            Some(_) => Ok(0),
            None => estimate_records(storage, &call.paths, interrupt),
        };
        // SAFETY: the caller's promise.
        let records = unsafe { storage.during(estimate) };
        // SAFETY: the caller's promise.
        unsafe { put(out, records?) };
        Ok(())
    })
}

/// Writes the type of the column of folders with an index, an `EvtxFolderType`.
///
/// # Safety
/// `call` is valid, `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_call_folder_type(call: *const EvtxCall, column: usize, out: *mut u32) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let column = unsafe { &*call }.folder(column)?;
        let value_type = match column.value_type {
            FolderType::Date => EvtxFolderType::Date,
            FolderType::Timestamp => EvtxFolderType::Timestamp,
            FolderType::Integer => EvtxFolderType::Integer,
            FolderType::Text => EvtxFolderType::Text,
        };
        // SAFETY: the caller's promise.
        unsafe { put(out, value_type as u32) };
        Ok(())
    })
}

/// Writes the name of the column of folders with an index: text without a NUL at its end, which the call keeps.
///
/// # Safety
/// `call` is valid, `data` and `len` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_call_folder_name(
    call: *const EvtxCall,
    column: usize,
    data: *mut *const c_char,
    len: *mut usize,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let column = unsafe { &*call }.folder(column)?;
        // SAFETY: the caller's promise.
        unsafe { put_text(Some(&column.name), data, len) };
        Ok(())
    })
}

/// Writes the value of a column of folders for the file with an index: text without a NUL at its end, which the call
/// keeps. `data` receives null for NULL.
///
/// # Safety
/// `call` is valid, `data` and `len` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_call_folder_value(
    call: *const EvtxCall,
    column: usize,
    path: usize,
    data: *mut *const c_char,
    len: *mut usize,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let column = unsafe { &*call }.folder(column)?;
        let value = column.values.get(path).ok_or("there is no such file")?.as_deref();
        // SAFETY: the caller's promise.
        unsafe { put_text(value, data, len) };
        Ok(())
    })
}
