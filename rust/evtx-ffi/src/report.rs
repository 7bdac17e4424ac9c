//! Reports through the C ABI, and the table functions that give them.

use std::ffi::c_char;

use arrow_array::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field};
use evtx_arrow::{Catalog, ChunkReport, DeclaredEventReport, EventReport, FileReport, Report};
use evtx_scan::ReportScan;

use crate::boundary::{EvtxFunction, entry, export_schema, free, hand_out, put, put_entry, put_text, release};
use crate::paths::EvtxPaths;
use crate::storage::EvtxStorage;

/// A report on files that is being read.
pub struct EvtxReport {
    scan: ReportScan<Box<dyn Report>>,
}

/// The name of the SQL type as which DuckDB imports a column.
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
        DataType::Struct(fields) => {
            let fields = fields
                .iter()
                .map(|field| format!("{} {}", field.name(), duckdb_type(field)));
            return format!("STRUCT({})", fields.collect::<Vec<_>>().join(", "));
        }
        DataType::Map(..) => "MAP(VARCHAR, VARCHAR)",
        _ if field.extension_type_name() == Some("arrow.json") => "JSON",
        _ => "VARCHAR",
    };
    name.to_owned()
}

/// A table function that gives a report.
struct ReportFunction {
    name: &'static str,
    /// What it gives, in a sentence or two. DuckDB shows it in `duckdb_functions()`.
    description: &'static str,
    /// A statement with it.
    example: &'static str,
    /// Whether its one argument is a path, a glob, or a list of them. If not, it has no argument.
    takes_files: bool,
    /// Makes an empty report.
    make: fn() -> Box<dyn Report>,
}

/// The table functions of all reports.
const REPORTS: &[ReportFunction] = &[
    ReportFunction {
        name: "evtx_schema",
        description: "Tells which events Windows event logs (EVTX) hold: a row per field of each provider, event ID, \
                      version and channel, with the type that its template declares, the type of its column in \
                      read_evtx(..., event_id := ...), and how many records there are.",
        example: "SELECT provider, event_id, any_value(records), list(field_name ORDER BY field_position) FROM \
                  evtx_schema('logs/**/*.evtx') GROUP BY ALL",
        takes_files: true,
        make: || Box::new(EventReport::new(Catalog::new(None), duckdb_type)),
    },
    ReportFunction {
        name: "evtx_file_metadata",
        description: "Tells of each Windows event log (EVTX) what its header says and what is in it: flags, checksums \
                      as stored and as computed, chunks, records, the span of record IDs and what is missing in it, \
                      the span of time, what is damaged.",
        example: "SELECT filename, records, missing_records, is_dirty FROM evtx_file_metadata('logs/**/*.evtx')",
        takes_files: true,
        make: || Box::<FileReport>::default(),
    },
    ReportFunction {
        name: "evtx_chunk_metadata",
        description: "Tells of each chunk of Windows event logs (EVTX) what its header says and what is in it: record \
                      numbers and IDs, free space, checksums as stored and as computed, templates, the span of time, \
                      what is damaged.",
        example: "SELECT chunk_index, first_record_id, last_record_id, records, error FROM \
                  evtx_chunk_metadata('Security.evtx')",
        takes_files: true,
        make: || Box::<ChunkReport>::default(),
    },
    ReportFunction {
        name: "evtx_event_catalog",
        description: "Tells what Windows' providers and Sysmon declare for their events, whether a log has them or \
                      not: a row per field of each provider, event ID and version, with its type in templates and \
                      that of its column in read_evtx(..., event_id := ...).",
        example: "SELECT version, list(field_name ORDER BY field_position) FROM evtx_event_catalog() WHERE provider = \
                  'Microsoft-Windows-Security-Auditing' AND event_id = 4624 GROUP BY ALL",
        takes_files: false,
        make: || Box::new(DeclaredEventReport::new(duckdb_type)),
    },
];

/// An empty report, by its index in [`REPORTS`].
fn report_of(index: usize) -> Result<Box<dyn Report>, &'static str> {
    let function = REPORTS.get(index).ok_or("there is no such report")?;
    Ok((function.make)())
}

/// A table function that gives a report.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvtxReportFunction {
    /// Its name, description and example.
    pub function: EvtxFunction,
    /// Whether its one argument is the files. If not, it has no argument.
    pub takes_files: bool,
    /// Its index, for [`evtx_report_new`] and [`evtx_report_schema`].
    pub index: usize,
}

/// The table function with this index in the list of reports. `known` receives whether there is one; if not, `out` is
/// not written.
///
/// # Safety
/// `out` and `known` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_report_function(
    index: usize,
    out: *mut EvtxReportFunction,
    known: *mut bool,
) -> *mut c_char {
    entry(|| {
        let function = REPORTS.get(index).map(|found| EvtxReportFunction {
            function: EvtxFunction::borrowed(found.name, found.description, found.example),
            takes_files: found.takes_files,
            index,
        });
        // SAFETY: the caller's promise.
        unsafe { put_entry(function, out, known) };
        Ok(())
    })
}

/// A new report on files, by its index as in [`evtx_report_function`]. The paths are copied.
///
/// # Safety
/// `paths` is valid, or null for a report that takes no files; `out` can be written. The caller frees the report.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_report_new(
    index: usize,
    paths: *const EvtxPaths,
    out: *mut *mut EvtxReport,
) -> *mut c_char {
    entry(|| {
        let report = report_of(index)?;
        // SAFETY: the caller's promise.
        let paths = unsafe { paths.as_ref() }.map_or_else(Vec::new, |paths| paths.0.clone());
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

/// The Arrow schema of a report, by its index as in [`evtx_report_function`].
///
/// # Safety
/// `out` can be written. The caller releases the schema.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_report_schema(index: usize, out: *mut FFI_ArrowSchema) -> *mut c_char {
    entry(|| {
        let schema = export_schema(&report_of(index)?.schema())?;
        // SAFETY: the caller's promise.
        unsafe { put(out, schema) };
        Ok(())
    })
}

/// Hands out the next rows, as a struct array of the report's schema. `rows` receives their number. If it is 0, the
/// report is at its end, and `out` is not written.
///
/// # Safety
/// `report` is valid and not in use elsewhere, `storage` does what [`EvtxStorage`] says, `out` and `rows` can be
/// written. The caller releases the array.
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

/// The path that is being read, as UTF-8. It stays valid until the report is used again or freed. If no path is being
/// read, `data` receives null, and `len` 0.
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
