//! Reports on whole files through the C ABI.

use std::ffi::c_char;

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::{Array, StructArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field};
use evtx_arrow::{Catalog, ChunkReport, EventReport, FileReport, Report};

use crate::boundary::{Code, bytes, entry, export_schema, free, put, release, text};
use crate::events::{EvtxEvents, events};
use crate::interrupt::EvtxInterrupt;

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
}

impl Code for EvtxReportKind {
    const ALL: &[Self] = &[EvtxReportKind::Events, EvtxReportKind::Files, EvtxReportKind::Chunks];
    const WHAT: &str = "kind of report";
}

/// A report on files.
pub struct EvtxReport(AnyReport);

enum AnyReport {
    Events(Box<EventReport>),
    Other(Box<dyn Report>),
}

impl EvtxReport {
    fn report(&mut self) -> &mut dyn Report {
        match &mut self.0 {
            AnyReport::Events(report) => &mut **report,
            AnyReport::Other(report) => &mut **report,
        }
    }

    /// What a report of events has found.
    pub(crate) fn catalog(&self) -> Option<&Catalog> {
        match &self.0 {
            AnyReport::Events(report) => Some(&report.catalog),
            AnyReport::Other(_) => None,
        }
    }
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

/// A report of a kind, an `EvtxReportKind`; `events` limits one of events to these, if it is not null.
///
/// # Safety
/// `events` is null or valid, `out` can be written. The caller frees the report.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_report_new(
    kind: u32,
    events: *const EvtxEvents,
    out: *mut *mut EvtxReport,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let events = unsafe { events.as_ref().map(|events| self::events(events)).transpose()? };
        let report = match EvtxReportKind::decode(kind)? {
            EvtxReportKind::Events => AnyReport::Events(Box::new(EventReport::new(Catalog::new(events), duckdb_type))),
            EvtxReportKind::Files => AnyReport::Other(Box::new(FileReport::default())),
            EvtxReportKind::Chunks => AnyReport::Other(Box::new(ChunkReport::default())),
        };
        // SAFETY: the caller's promise.
        unsafe { put(out, Box::into_raw(Box::new(EvtxReport(report)))) };
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

/// The columns of a report.
///
/// # Safety
/// `report` is valid and not in use elsewhere, `out` can be written. The caller releases the schema.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_report_schema(report: *mut EvtxReport, out: *mut FFI_ArrowSchema) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let schema = export_schema(&unsafe { &mut *report }.report().schema())?;
        // SAFETY: the caller's promise.
        unsafe { put(out, schema) };
        Ok(())
    })
}

/// Begins a file of `size` bytes.
///
/// # Safety
/// `report` is valid and not in use elsewhere, `filename` is text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_report_start(
    report: *mut EvtxReport,
    filename: *const c_char,
    filename_len: usize,
    size: u64,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let (report, filename) = unsafe { (&mut *report, text(filename, filename_len)?) };
        report.report().start(filename, size);
        Ok(())
    })
}

/// Takes the next bytes of the file: first its header alone, 4,096 bytes or as many as there are, then whole chunks, of
/// which the last may be cut short. An error says why the rest of the file cannot be read.
///
/// # Safety
/// `report` is valid and not in use elsewhere, `data` points to `len` bytes, `interrupt` can be asked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_report_push(
    report: *mut EvtxReport,
    data: *const u8,
    len: usize,
    interrupt: EvtxInterrupt,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let (report, bytes) = unsafe { (&mut *report, bytes(data, len)) };
        // SAFETY: the caller's promise.
        let pushed = unsafe { interrupt.during(|interrupt| report.report().push(bytes, interrupt)) };
        pushed.map_err(|error| error.to_string())
    })
}

/// Ends the file. `failure` says why the rest of it was not read; null if all was.
///
/// # Safety
/// `report` is valid and not in use elsewhere, `failure` is null or text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_report_end(
    report: *mut EvtxReport,
    failure: *const c_char,
    failure_len: usize,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let report = unsafe { &mut *report };
        let failure = match failure.is_null() {
            true => None,
            // SAFETY: the caller's promise.
            false => Some(unsafe { text(failure, failure_len) }?),
        };
        report.report().end(failure);
        Ok(())
    })
}

/// Hands out the rows since the last time, as a struct array of the report's schema. `rows` receives their number; if that
/// is 0, `out` is left alone. `last` says that no file follows.
///
/// # Safety
/// `report` is valid and not in use elsewhere, `out` and `rows` can be written. The caller releases the array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_report_flush(
    report: *mut EvtxReport,
    last: bool,
    out: *mut FFI_ArrowArray,
    rows: *mut usize,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let report = unsafe { &mut *report };
        let batch = report.report().batch(last).map_err(|error| error.to_string())?;
        let batch = batch.filter(|batch| batch.num_rows() > 0);
        // SAFETY: the caller's promise.
        unsafe { put(rows, batch.as_ref().map_or(0, |batch| batch.num_rows())) };
        if let Some(batch) = batch {
            let array = FFI_ArrowArray::new(&StructArray::from(batch).to_data());
            // SAFETY: the caller's promise.
            unsafe { put(out, array) };
        }
        Ok(())
    })
}
