//! Reports on whole files through the C ABI.

use std::ffi::c_char;

use arrow_array::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field};
use evtx_arrow::{Catalog, ChunkReport, DeclaredEventReport, EventReport, FileReport, Report};
use evtx_scan::ReportScan;

use crate::boundary::{Code, entry, export_schema, free, hand_out, put, put_text, release};
use crate::paths::EvtxPaths;
use crate::storage::EvtxStorage;

/// What is told of files.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvtxReportKind {
    /// The fields of each event, once all files were read.
    Events,
    /// The header of each file.
    Files,
    /// The header of each chunk.
    Chunks,
    /// The fields that providers declare for each event. It is about no files.
    DeclaredEvents,
}

impl Code for EvtxReportKind {
    const ALL: &[Self] = &[
        EvtxReportKind::Events,
        EvtxReportKind::Files,
        EvtxReportKind::Chunks,
        EvtxReportKind::DeclaredEvents,
    ];
    const WHAT: &str = "kind of report";
}

/// A report on files.
pub struct EvtxReport {
    scan: ReportScan<Box<dyn Report>>,
}

/// What DuckDB calls the type that a column has there.
pub(crate) fn duckdb_type(field: &Field) -> String {
    let name = match field.data_type() {
        DataType::List(item) => return format!("{}[]", duckdb_type(item)),
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INTEGER",
        DataType::Int64 => "BIGINT",
        DataType::UInt8 => "UTINYINT",
        DataType::UInt16 => "USMALLINT",
        DataType::UInt32 => "UINTEGER",
        DataType::UInt64 => "UBIGINT",
        DataType::Float32 => "FLOAT",
        DataType::Float64 => "DOUBLE",
        DataType::Boolean => "BOOLEAN",
        DataType::Binary => "BLOB",
        DataType::Timestamp(..) => "TIMESTAMP_NS",
        DataType::FixedSizeBinary(_) if field.extension_type_name() == Some("arrow.uuid") => "UUID",
        DataType::FixedSizeBinary(_) => "HUGEINT",
        DataType::Map(..) => "MAP(VARCHAR, VARCHAR)",
        _ if field.extension_type_name() == Some("arrow.json") => "JSON",
        _ => "VARCHAR",
    };
    name.to_owned()
}

fn report_of(kind: EvtxReportKind) -> Box<dyn Report> {
    match kind {
        EvtxReportKind::Events => Box::new(EventReport::new(Catalog::new(None), duckdb_type)),
        EvtxReportKind::Files => Box::<FileReport>::default(),
        EvtxReportKind::Chunks => Box::<ChunkReport>::default(),
        EvtxReportKind::DeclaredEvents => Box::new(DeclaredEventReport::new(duckdb_type)),
    }
}

/// A report of a kind, an `EvtxReportKind`, on files.
///
/// # Safety
/// `paths` is valid, `out` can be written. The caller frees the report.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_report_new(kind: u32, paths: *const EvtxPaths, out: *mut *mut EvtxReport) -> *mut c_char {
    entry(|| {
        let report = report_of(EvtxReportKind::decode(kind)?);
        // SAFETY: the caller's promise.
        let paths = unsafe { &*paths }.0.clone();
        let scan = ReportScan::new(report, paths);
        // SAFETY: the caller's promise.
        unsafe { put(out, Box::into_raw(Box::new(EvtxReport { scan }))) };
        Ok(())
    })
}

/// Frees a report. Batches that it gave stay valid.
///
/// # Safety
/// `report` is null or came from [`evtx_report_new`], and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_report_free(report: *mut EvtxReport) {
    // SAFETY: the caller's promise.
    release(|| unsafe { free(report) });
}

/// The columns of a report of a kind, an `EvtxReportKind`.
///
/// # Safety
/// `out` can be written. The caller releases the schema.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_report_schema(kind: u32, out: *mut FFI_ArrowSchema) -> *mut c_char {
    entry(|| {
        let schema = export_schema(&report_of(EvtxReportKind::decode(kind)?).schema())?;
        // SAFETY: the caller's promise.
        unsafe { put(out, schema) };
        Ok(())
    })
}

/// Hands out the next rows, as a struct array of the report's schema. `rows` receives their number; if that is 0, the
/// report is at its end and `out` is left alone.
///
/// # Safety
/// `report` is valid and not in use elsewhere, `storage` does what is said of it, `out` and `rows` can be written. The
/// caller releases the array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_report_next(
    report: *mut EvtxReport,
    storage: EvtxStorage,
    out: *mut FFI_ArrowArray,
    rows: *mut usize,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let report = unsafe { &mut *report };
        // SAFETY: the caller's promise.
        let batch = unsafe { storage.during(|storage, interrupt| report.scan.next(storage, interrupt)) }?;
        // SAFETY: the caller's promise.
        unsafe { hand_out(batch, out, rows) };
        Ok(())
    })
}

/// The path that is being read, as text without a NUL, which is there until the report is used or freed; `len` receives
/// 0 if there is none.
///
/// # Safety
/// `report` is valid, `data` and `len` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_report_reading(
    report: *const EvtxReport,
    data: *mut *const c_char,
    len: *mut usize,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let path = unsafe { &*report }.scan.reading();
        // SAFETY: the caller's promise.
        unsafe { put_text(path, data, len) };
        Ok(())
    })
}
