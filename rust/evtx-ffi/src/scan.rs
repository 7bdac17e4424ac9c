//! Scans and their workers through the C ABI.

use std::ffi::c_char;
use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::{DictionaryArray, StringViewArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Fields, Schema};
use evtx_arrow::{MakeArrays, Scan};
use evtx_scan::{FileScan, MessageFinder, Worker};

use crate::boundary::{entry, export_schema, free, hand_out, put, put_text, release, text};
use crate::call::EvtxCall;
use crate::filter::predicates;
use crate::planned::EvtxPlanned;
use crate::report::EvtxReport;
use crate::storage::EvtxStorage;

/// What the threads of a query share.
pub struct EvtxScan {
    scan: Arc<FileScan>,
    /// By file of the scan: its index among the paths of the call.
    indices: Arc<[usize]>,
}

/// A thread of a scan.
pub struct EvtxWorker {
    worker: Worker,
    indices: Arc<[usize]>,
}

// Which threads have what. The compiler checks it of the types; C++ has to keep to it.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    const fn handed_on<T: Send>() {}
    // A query's threads read these at once, and the last to go frees them.
    shared::<EvtxScan>();
    shared::<EvtxCall>();
    shared::<EvtxPlanned>();
    // These are one thread's at a time, and DuckDB can go on with its work in another.
    handed_on::<EvtxWorker>();
    handed_on::<EvtxReport>();
};

/// The bytes that a size stands for; 0 if it is none.
fn size(text: &str) -> u64 {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let power = units.iter().position(|known| unit == *known);
    let bytes = number.parse::<f64>().ok().zip(power);
    bytes.map_or(0, |(number, power)| (number * 1024_f64.powi(power as i32)) as u64)
}

/// A scan of the columns with these indexes in the schema of a call, in this order, and of the files that may have rows
/// which the query wants, of which `planned` was told. Those that the call does not have are left out; if none is left,
/// there is the first one, as something has to say how many rows there are. Messages that stand beside the logs may
/// take a quarter of a size of memory together, which is as DuckDB writes it: `24.9 GiB`.
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
        let columns = match column_count {
            0 => &[],
            // SAFETY: the caller's promise.
            _ => unsafe { std::slice::from_raw_parts(columns, column_count) },
        };
        // SAFETY: the caller's promise.
        let (call, planned, memory) = unsafe { (&(*call).0, planned.as_ref(), text(memory, memory_len)?) };
        let hints = planned.map(EvtxPlanned::run).unwrap_or_default();
        let predicates = predicates(&call.table, &hints.nodes, &hints.bytes)?;
        let paths = &call.paths;
        let count = call.table.schema().fields().len();
        let columns = columns.iter().filter_map(|&column| usize::try_from(column).ok());
        let mut columns: Vec<usize> = columns.filter(|&column| column < count).collect();
        if columns.is_empty() {
            columns.push(0);
        }
        let is_kept = |index: usize| {
            let name = &paths[index].path;
            hints.keeps(index) && !predicates.iter().any(|predicate| predicate.drops_file(name))
        };
        let indices: Arc<[usize]> = (0..paths.len()).filter(|&index| is_kept(index)).collect();
        let kept = indices.iter().map(|&index| paths[index].clone()).collect();
        let finder = MessageFinder::new(&call.messages, size(memory) / 4);
        let scan = Arc::new(Scan::filtered(call.table.clone(), &columns, &predicates));
        let scan = Arc::new(FileScan::new(scan, kept, Some(finder)));
        // SAFETY: the caller's promise.
        unsafe { put(out, Box::into_raw(Box::new(EvtxScan { scan, indices }))) };
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

/// The share of a scan that was handed out to workers, 0 to 1.
///
/// # Safety
/// `scan` is valid, `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_scan_progress(scan: *const EvtxScan, out: *mut f64) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let progress = unsafe { &*scan }.scan.progress();
        // SAFETY: the caller's promise.
        unsafe { put(out, progress) };
        Ok(())
    })
}

/// The schema of the batches of a scan, but with maps as lists of their entries: the two are the same in memory.
///
/// # Safety
/// `scan` is valid, `out` can be written. The caller releases the schema.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_scan_schema(scan: *const EvtxScan, out: *mut FFI_ArrowSchema) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let schema = unsafe { &*scan }.scan.scan().schema();
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

/// Makes the arrays of a decoder: in a build that checks what it can, as `evtx-arrow` does, else without another look
/// at each value.
const ARRAYS: MakeArrays = if cfg!(debug_assertions) {
    MakeArrays::CHECKED
} else {
    TRUSTED
};

const TRUSTED: MakeArrays = MakeArrays {
    strings: |strings| {
        let (views, buffers, nulls) = strings.into_parts();
        // SAFETY: by what holds for all `Strings`. The tests of `evtx-arrow` read the same logs with all of it checked.
        Ok(unsafe { StringViewArray::new_unchecked(views, buffers.into(), nulls) })
    },
    dictionary: |indices| {
        let (indices, values) = indices.into_parts();
        // SAFETY: likewise, for all `Indices`.
        Ok(unsafe { DictionaryArray::new_unchecked(indices, values) })
    },
};

/// A thread of a scan.
///
/// # Safety
/// `scan` is valid, `out` can be written. The caller frees the worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_worker_new(scan: *const EvtxScan, out: *mut *mut EvtxWorker) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let scan = unsafe { &*scan };
        let worker = EvtxWorker {
            worker: Worker::new(&scan.scan, ARRAYS),
            indices: Arc::clone(&scan.indices),
        };
        // SAFETY: the caller's promise.
        unsafe { put(out, Box::into_raw(Box::new(worker))) };
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

/// Where the rows of a batch are from.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct EvtxPlace {
    /// How many rows there are. At the end of the scan none.
    pub rows: usize,
    /// The index of their file among the paths of the call.
    pub path: usize,
    /// Their position in the order of all rows. Those of a worker rise.
    pub index: u64,
}

/// Hands out the next rows, as a struct array of the scan's schema. At the end of the scan `out` is left alone.
///
/// # Safety
/// `worker` is valid and not in use elsewhere, `storage` does what is said of it, `out` and `place` can be written. The
/// caller releases the array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_worker_next(
    worker: *mut EvtxWorker,
    storage: EvtxStorage,
    out: *mut FFI_ArrowArray,
    place: *mut EvtxPlace,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let worker = unsafe { &mut *worker };
        // SAFETY: the caller's promise.
        let next = unsafe { storage.during(|storage, interrupt| worker.worker.next(storage, interrupt)) }?;
        let mut found = EvtxPlace::default();
        let rows = next.map(|batch| {
            found.path = worker.indices[batch.file];
            found.index = batch.index;
            batch.rows
        });
        // SAFETY: the caller's promise, and `found` is a local.
        unsafe {
            hand_out(rows, out, &mut found.rows);
            put(place, found);
        }
        Ok(())
    })
}

/// The path that is being read, as text without a NUL, which is there until the worker is used or freed; `len` receives
/// 0 if there is none.
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
        let path = unsafe { &*worker }.worker.reading();
        // SAFETY: the caller's promise.
        unsafe { put_text(path, data, len) };
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_duckdb_writes_them() {
        assert_eq!(size("24.9 GiB"), 26_736_171_417);
        assert_eq!(
            (size("512 bytes"), size("1.0 MiB"), size("2.5 KiB")),
            (512, 1 << 20, 2560)
        );
        assert_eq!((size("80% of RAM"), size(""), size("-1 KiB")), (0, 0, 0));
    }
}
