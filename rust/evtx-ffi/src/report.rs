//! Reports through the C ABI, and the table functions that give them.

use std::ffi::c_char;

use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field, SchemaRef};
use evtx_arrow::{ChunkReport, DeclaredEventReport, EventReport, FileReport, Report};
use evtx_scan::{ReportScan, ReportThreads, ScanPath};

use crate::boundary::{EvtxFunction, entry, export_schema, put, put_entry};
use crate::paths::EvtxPaths;
use crate::scan::{EvtxScan, projection};

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
    schema: fn() -> SchemaRef,
    make: fn(Vec<ScanPath>, &[usize]) -> Box<dyn ReportThreads>,
}

/// The report on some files, with the columns that have these indexes.
fn scan<R: Report + 'static>(report: R, paths: Vec<ScanPath>, columns: &[usize]) -> Box<dyn ReportThreads> {
    Box::new(ReportScan::new(report, paths, columns))
}

/// The table functions of all reports.
const REPORTS: &[ReportFunction] = &[
    ReportFunction {
        name: "evtx_schema",
        description: "Tells which events Windows event logs (EVTX) hold: a row per field of each provider, event ID, \
                      version and channel, with the type that its template declares, the type of its column in \
                      read_evtx(..., event_id := ...), and how many records there are.",
        example: "SELECT DISTINCT field_name, column_type FROM evtx_schema('logs/**/*.evtx') WHERE event_id = 4624",
        takes_files: true,
        schema: || EventReport::new(duckdb_type).schema(),
        make: |paths, columns| scan(EventReport::new(duckdb_type), paths, columns),
    },
    ReportFunction {
        name: "evtx_file_metadata",
        description: "Tells of each Windows event log (EVTX) what its header says and what is in it: flags, checksums \
                      as stored and as computed, chunks, records, the span of record IDs and what is missing in it, \
                      the span of time, what is damaged.",
        example: "SELECT filename, records, missing_records, is_dirty FROM evtx_file_metadata('logs/**/*.evtx')",
        takes_files: true,
        schema: || FileReport::default().schema(),
        make: |paths, columns| scan(FileReport::of_columns(columns), paths, columns),
    },
    ReportFunction {
        name: "evtx_chunk_metadata",
        description: "Tells of each chunk of Windows event logs (EVTX) what its header says and what is in it: record \
                      numbers and IDs, free space, checksums as stored and as computed, templates, the span of time, \
                      what is damaged.",
        example: "SELECT chunk_index, first_record_id, last_record_id, records, error FROM \
                  evtx_chunk_metadata('Security.evtx')",
        takes_files: true,
        schema: || ChunkReport::default().schema(),
        make: |paths, columns| scan(ChunkReport::default(), paths, columns),
    },
    ReportFunction {
        name: "evtx_event_catalog",
        description: "Tells what Windows' providers and Sysmon declare for their events, whether a log has them or \
                      not: a row per field of each provider, event ID and version, with its type in templates and \
                      that of its column in read_evtx(..., event_id := ...).",
        example: "SELECT version, list(field_name ORDER BY field_position) FROM evtx_event_catalog() WHERE provider = \
                  'Microsoft-Windows-Security-Auditing' AND event_id = 4624 GROUP BY ALL",
        takes_files: false,
        schema: || DeclaredEventReport::new(duckdb_type).schema(),
        make: |paths, columns| scan(DeclaredEventReport::new(duckdb_type), paths, columns),
    },
];

fn report_of(index: usize) -> Result<&'static ReportFunction, &'static str> {
    REPORTS.get(index).ok_or("there is no such report")
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

/// Makes a scan for the report with an index in the list of [`evtx_report_function`], on files. `columns` are indexes in
/// its schema, as for [`evtx_scan_new`](crate::evtx_scan_new).
///
/// # Safety
/// `paths` is valid, or null for a report that takes no files; `columns` points to `column_count` indexes; `out` can be
/// written. The caller frees the scan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_report_new(
    index: usize,
    paths: *const EvtxPaths,
    columns: *const u64,
    column_count: usize,
    out: *mut *mut EvtxScan,
) -> *mut c_char {
    entry(|| {
        let report = report_of(index)?;
        let schema = (report.schema)();
        // SAFETY: the caller's promise.
        let paths = unsafe { paths.as_ref() }.map_or_else(Vec::new, |paths| paths.0.clone());
        // SAFETY: the caller's promise.
        let columns = unsafe { projection(columns, column_count, schema.fields().len()) };
        let schema = schema.project(&columns).map_err(|error| error.to_string())?;
        let scan = EvtxScan::of_report((report.make)(paths, &columns), schema.into());
        // SAFETY: the caller's promise.
        unsafe { put(out, Box::into_raw(Box::new(scan))) };
        Ok(())
    })
}

/// The columns of the report with an index.
///
/// # Safety
/// `out` can be written. The caller releases the schema.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_report_schema(index: usize, out: *mut FFI_ArrowSchema) -> *mut c_char {
    entry(|| {
        let schema = export_schema(&(report_of(index)?.schema)())?;
        // SAFETY: the caller's promise.
        unsafe { put(out, schema) };
        Ok(())
    })
}
