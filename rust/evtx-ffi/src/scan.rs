//! The C ABI of scans and their workers.

use std::ffi::c_char;
use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::{DictionaryArray, StringViewArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Fields, Schema, SchemaRef};
use evtx_arrow::MakeArrays;
use evtx_format::Interrupt;
use evtx_scan::{FileScan, ReportRows, ReportThreads, ScanError, Storage, Worker};

use crate::boundary::{entry, export_schema, free, hand_out, put, put_text, release, size, text};
use crate::call::EvtxCall;
use crate::planned::EvtxPlanned;
use crate::storage::EvtxStorage;

/// A scan, which the threads of a query share: of the records of files, or for a report on them.
pub struct EvtxScan(Source);

enum Source {
    Records(Arc<FileScan>, FileIndices),
    /// With the schema of its batches.
    Report(Box<dyn ReportThreads>, SchemaRef),
}

/// By index of the file in the scan: its index among the files of the call.
type FileIndices = Arc<[usize]>;

/// A thread's part of a scan.
pub struct EvtxWorker(Part);

enum Part {
    Records(Box<Worker>, FileIndices),
    Report(Box<dyn ReportRows>),
}

/// The columns that have these indexes, of `count` columns. Indexes behind the last column are left out. If none is
/// left, it is the first column, because a batch needs a column to have rows.
///
/// # Safety
/// `columns` points to `column_count` indexes.
pub(crate) unsafe fn projection(columns: *const u64, column_count: usize, count: usize) -> Vec<usize> {
    let columns = match column_count {
        0 => &[],
        // SAFETY: the caller's promise.
        _ => unsafe { std::slice::from_raw_parts(columns, column_count) },
    };
    let columns = columns.iter().filter_map(|&column| usize::try_from(column).ok());
    let mut columns: Vec<usize> = columns.filter(|&column| column < count).collect();
    if columns.is_empty() {
        columns.push(0);
    }
    columns
}

// Which objects threads may share. The compiler checks the Rust types; C++ has to obey the same rules.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    const fn handed_on<T: Send>() {}
    // The threads of a query use these at the same time, and the last one frees them.
    shared::<EvtxScan>();
    shared::<EvtxCall>();
    shared::<EvtxPlanned>();
    // One thread at a time uses these, and DuckDB can move the work to another thread.
    handed_on::<EvtxWorker>();
};

/// Makes a scan of a call.
///
/// - `columns` are indexes in the schema of the call, in the order of the scan. Indexes behind the last column are left
///   out. If none is left, the scan has the first column, because a batch needs a column to have rows.
/// - `planned` has the hints of the query. Files and records that the hints exclude are left out. It may be null.
/// - `memory` is DuckDB's `memory_limit` as text, as `24.9 GiB`. The messages beside the logs may take a quarter of it
///   together.
///
/// # Safety
/// `call` is valid, `columns` points to `column_count` indexes, `planned` is null or valid, `memory` is text, `out` can
/// be written. The caller frees the scan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_scan_new(
    call: *const EvtxCall,
    columns: *const u64,
    column_count: usize,
    planned: *const EvtxPlanned,
    memory: *const c_char,
    memory_len: usize,
    out: *mut *mut EvtxScan,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let (EvtxCall { call, schema, report }, planned) = unsafe { (&*call, planned.as_ref()) };
        // SAFETY: the caller's promise.
        let columns = unsafe { projection(columns, column_count, schema.fields().len()) };
        if let Some(report) = report {
            let schema = schema.project(&columns).map_err(|error| error.to_string())?;
            let source = Source::Report((report.make)(call, &columns), schema.into());
            // SAFETY: the caller's promise.
            unsafe { put(out, Box::into_raw(Box::new(EvtxScan(source)))) };
            return Ok(());
        }
        // SAFETY: the caller's promise.
        let memory = unsafe { text(memory, memory_len)? };
        let hints = planned.map(EvtxPlanned::run).unwrap_or_default();
        let conditions = hints.conditions()?;
        let (scan, indices) = call.scan(&columns, &conditions, size(memory) / 4);
        let source = Source::Records(Arc::new(scan), indices);
        // SAFETY: the caller's promise.
        unsafe { put(out, Box::into_raw(Box::new(EvtxScan(source)))) };
        Ok(())
    })
}

/// Frees a scan. Workers keep what they need of it.
///
/// # Safety
/// `scan` is null or came from [`evtx_scan_new`], and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_scan_free(scan: *mut EvtxScan) {
    // SAFETY: the caller's promise.
    release(|| unsafe { free(scan) });
}

/// Writes the share of a scan that was handed out to workers, 0 to 1.
///
/// # Safety
/// `scan` is valid, `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_scan_progress(scan: *const EvtxScan, out: *mut f64) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let progress = match unsafe { &(*scan).0 } {
            Source::Records(scan, _) => scan.progress(),
            Source::Report(report, _) => report.progress(),
        };
        // SAFETY: the caller's promise.
        unsafe { put(out, progress) };
        Ok(())
    })
}

/// Writes the schema of the batches of a scan. Maps in it are lists of their entries, which have the same layout in
/// memory.
///
/// # Safety
/// `scan` is valid, `out` can be written. The caller releases the schema.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_scan_schema(scan: *const EvtxScan, out: *mut FFI_ArrowSchema) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let schema = match unsafe { &(*scan).0 } {
            Source::Records(scan, _) => scan.scan().schema(),
            Source::Report(_, schema) => Arc::clone(schema),
        };
        let fields = schema.fields().iter().map(|field| match field.data_type() {
            DataType::Map(entries, _) => {
                let list = DataType::List(Arc::clone(entries));
                Arc::new(field.as_ref().clone().with_data_type(list))
            }
            _ => Arc::clone(field),
        });
        let schema = export_schema(&Arc::new(Schema::new(fields.collect::<Fields>())))?;
        // SAFETY: the caller's promise.
        unsafe { put(out, schema) };
        Ok(())
    })
}

/// Makes the arrays of a decoder. A build with debug assertions checks each value once more; others trust the builders.
const ARRAYS: MakeArrays = if cfg!(debug_assertions) {
    MakeArrays::CHECKED
} else {
    TRUSTED
};

const TRUSTED: MakeArrays = MakeArrays {
    strings: |strings| {
        let (views, buffers, nulls) = strings.into_parts();
        // SAFETY: `Strings` guarantees valid views and UTF-8. The tests of `evtx-arrow` check the arrays of the same
        // logs.
        Ok(unsafe { StringViewArray::new_unchecked(views, buffers.into(), nulls) })
    },
    dictionary: |indices| {
        let (indices, values) = indices.into_parts();
        // SAFETY: `Indices` guarantees that each index is that of a value.
        Ok(unsafe { DictionaryArray::new_unchecked(indices, values) })
    },
};

/// Makes a worker: a thread's part of a scan.
///
/// # Safety
/// `scan` is valid, `out` can be written. The caller frees the worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_worker_new(scan: *const EvtxScan, out: *mut *mut EvtxWorker) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let part = match unsafe { &(*scan).0 } {
            Source::Records(scan, indices) => Part::Records(Worker::new(scan, ARRAYS).into(), Arc::clone(indices)),
            Source::Report(report, _) => Part::Report(report.thread()),
        };
        // SAFETY: the caller's promise.
        unsafe { put(out, Box::into_raw(Box::new(EvtxWorker(part)))) };
        Ok(())
    })
}

/// Frees a worker. Batches that it gave stay valid.
///
/// # Safety
/// `worker` is null or came from [`evtx_worker_new`], and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_worker_free(worker: *mut EvtxWorker) {
    // SAFETY: the caller's promise.
    release(|| unsafe { free(worker) });
}

/// The origin of the rows of a batch.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct EvtxPlace {
    /// How many rows the batch has; 0 at the end of the scan.
    pub rows: usize,
    /// The index of their file among the files of the call.
    pub path: usize,
    /// The position of their block, or of their batch, in the order of all rows. The positions that one worker returns never fall.
    pub index: u64,
}

/// Writes the next rows to `out`, as a struct array of the scan's schema, and their origin to `place`. Does not write
/// `out` at the end of the scan.
///
/// # Safety
/// `worker` is valid and not in use elsewhere, `storage` does what [`EvtxStorage`] says, `out` and `place` can be
/// written. The caller releases the array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_worker_next(
    worker: *mut EvtxWorker,
    storage: EvtxStorage,
    out: *mut FFI_ArrowArray,
    place: *mut EvtxPlace,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let part = unsafe { &mut (*worker).0 };
        let mut found = EvtxPlace::default();
        let next = |storage: &dyn Storage, interrupt: Interrupt<'_>| {
            Ok::<_, ScanError>(match part {
                Part::Records(worker, indices) => worker.next(storage, interrupt)?.map(|batch| {
                    (found.path, found.index) = (indices[batch.file], batch.index);
                    batch.rows
                }),
                Part::Report(worker) => worker.next(storage, interrupt)?.map(|batch| {
                    found.index = batch.index;
                    batch.rows
                }),
            })
        };
        // SAFETY: the caller's promise.
        let rows = unsafe { storage.during(next) }?;
        // SAFETY: the caller's promise, and `found` is a local.
        unsafe {
            hand_out(rows, out, &mut found.rows);
            put(place, found);
        }
        Ok(())
    })
}

/// Writes the path of the file that the worker reads: text without a NUL at its end, which is valid until the worker is
/// used or freed. `len` receives 0 if there is no file.
///
/// # Safety
/// `worker` is valid, `data` and `len` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_worker_reading(
    worker: *const EvtxWorker,
    data: *mut *const c_char,
    len: *mut usize,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let path = match unsafe { &(*worker).0 } {
            Part::Records(worker, _) => worker.reading(),
            Part::Report(worker) => worker.reading(),
        };
        // SAFETY: the caller's promise.
        unsafe { put_text(path, data, len) };
        Ok(())
    })
}
