//! Scans and their workers.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, Schema};
use evtx_arrow::DecodeError;
use evtx_format::Interrupt;
use evtx_query::FolderColumn;
use evtx_reports::{ReportRows, ReportThreads};
use evtx_scan::{FileScan, ScanError, Storage, Worker};

use crate::boundary::{EvtxFailure, EvtxOwned, EvtxSlice, EvtxText, produce, release, required, size};
use crate::call::{EvtxCall, folder_values};
use crate::storage::EvtxStorage;
use crate::vectors::{ARRAYS, EvtxArrays};

/// A scan, which the threads of a query share: of the records of files, or for a report on them.
pub struct EvtxScan {
    source: Source,
    columns: Arc<Columns>,
}

/// The columns of a scan.
struct Columns {
    fields: Vec<FieldRef>,
    /// Those of folders, with their places among all columns.
    folders: Vec<(usize, FolderColumn)>,
}

enum Source {
    Records(Arc<FileScan>, FileIndices),
    Report(Box<dyn ReportThreads>),
}

/// By index of the file in the scan: its index among the files of the call.
type FileIndices = Arc<[usize]>;

/// A thread's share of a scan.
pub struct EvtxWorker {
    rows: Rows,
    columns: Arc<Columns>,
}

enum Rows {
    Records(Box<Worker>, FileIndices),
    Report(Box<dyn ReportRows>),
}

impl EvtxScan {
    /// A scan of a call. It leaves out files and records that the call's hints exclude.
    ///
    /// - `columns` are indexes in the schema of the call, in the order of the scan. Indexes after the last column are
    ///   ignored.
    /// - `memory` is DuckDB's `memory_limit`, such as `24.9 GiB`. The messages of the logs can take a quarter of it
    ///   together.
    pub fn new(call: &EvtxCall, columns: &[u64], memory: &str) -> Self {
        let hints = call.planned.run();
        let EvtxCall {
            call, schema, report, ..
        } = call;
        let all = schema.fields();
        let columns = columns.iter().filter_map(|&column| usize::try_from(column).ok());
        let columns = columns.filter(|&column| column < all.len());
        let (mut of_logs, mut fields, mut folders) = (Vec::new(), Vec::new(), Vec::new());
        for (place, column) in columns.enumerate() {
            fields.push(Arc::clone(&all[column]));
            match column.checked_sub(all.len() - call.folders.len()) {
                Some(folder) => folders.push((place, call.folders[folder].clone())),
                None => of_logs.push(column),
            }
        }
        // A batch needs a column to have rows.
        if of_logs.is_empty() {
            of_logs.push(0);
        }
        let source = match report {
            Some(report) => Source::Report((report.make)(call, &of_logs)),
            None => {
                let (scan, indices) = call.scan(&of_logs, &hints, size(memory) / 4);
                Source::Records(Arc::new(scan), indices)
            }
        };
        let columns = Arc::new(Columns { fields, folders });
        EvtxScan { source, columns }
    }

    /// A worker of the scan.
    pub fn worker(&self) -> EvtxWorker {
        let rows = match &self.source {
            Source::Records(scan, indices) => Rows::Records(Worker::new(scan, ARRAYS).into(), Arc::clone(indices)),
            Source::Report(report) => Rows::Report(report.thread()),
        };
        let columns = Arc::clone(&self.columns);
        EvtxWorker { rows, columns }
    }
}

impl EvtxWorker {
    /// The next rows, with an array for each column, and their place; `None` at the end of the scan. `keeps_order` says
    /// whether the engine restores the order of the rows by their places; the scan then reads longer runs.
    ///
    /// # Errors
    /// Those of [`Worker::next`] and [`ReportRows::next`].
    pub fn next(
        &mut self,
        storage: &dyn Storage,
        interrupt: Interrupt<'_>,
        keeps_order: bool,
    ) -> Result<Option<(EvtxArrays, EvtxPlace)>, ScanError> {
        let next = self.next_arrays(storage, interrupt, keeps_order)?;
        let fields = self.columns.fields.iter().cloned();
        Ok(next.map(|(arrays, place)| (EvtxArrays::new(arrays.into_iter().zip(fields)), place)))
    }

    /// The next rows as a record batch; `None` at the end of the scan.
    ///
    /// # Errors
    /// Those of [`EvtxWorker::next`].
    pub fn next_batch(
        &mut self,
        storage: &dyn Storage,
        interrupt: Interrupt<'_>,
    ) -> Result<Option<RecordBatch>, ScanError> {
        let next = self.next_arrays(storage, interrupt, true)?;
        let batch = |(arrays, _)| RecordBatch::try_new(Schema::new(self.columns.fields.clone()).into(), arrays);
        Ok(next.map(batch).transpose().map_err(DecodeError::from)?)
    }

    fn next_arrays(
        &mut self,
        storage: &dyn Storage,
        interrupt: Interrupt<'_>,
        keeps_order: bool,
    ) -> Result<Option<(Vec<ArrayRef>, EvtxPlace)>, ScanError> {
        let batch = match &mut self.rows {
            Rows::Records(worker, indices) => {
                worker.keep_order(keeps_order);
                let batch = worker.next(storage, interrupt)?;
                batch.map(|batch| (batch.rows, indices[batch.file], batch.index))
            }
            Rows::Report(worker) => {
                let batch = worker.next(storage, interrupt)?;
                batch.map(|batch| (batch.rows, 0, batch.index))
            }
        };
        let Some((batch, file, index)) = batch else {
            return Ok(None);
        };
        let (rows, mut arrays) = (batch.num_rows(), batch.columns().to_vec());
        for (place, column) in &self.columns.folders {
            arrays.insert(*place, folder_values(column, file, rows));
        }
        Ok(Some((arrays, EvtxPlace { rows, index })))
    }
}

// Which objects threads may share. The compiler checks the Rust types; C++ must obey the same rules.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    const fn handed_on<T: Send>() {}
    // The threads of a query use these at the same time, and the last one frees them.
    shared::<EvtxScan>();
    shared::<EvtxCall>();
    // One thread at a time uses these, and DuckDB can move the work to another thread.
    handed_on::<EvtxWorker>();
};

/// Makes a scan of a call, as [`EvtxScan::new`] says.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_scan_new(
    call: Option<&EvtxCall>,
    columns: EvtxSlice<'_, u64>,
    memory: EvtxText<'_>,
    out: Option<&mut EvtxOwned<EvtxScan>>,
) -> EvtxFailure {
    produce(out, || {
        let scan = EvtxScan::new(required(call)?, columns.get(), memory.text()?);
        Ok(Some(scan.into()))
    })
}

/// Frees a scan. Workers keep what they need of it.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_scan_free(scan: EvtxOwned<EvtxScan>) {
    release(|| drop(scan));
}

/// Returns the share of a scan that workers have taken, 0 to 1.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_scan_progress(scan: Option<&EvtxScan>, out: Option<&mut f64>) -> EvtxFailure {
    produce(out, || {
        Ok(match &required(scan)?.source {
            Source::Records(scan, _) => scan.progress(),
            Source::Report(report) => report.progress(),
        })
    })
}

/// Makes a worker.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_worker_new(scan: Option<&EvtxScan>, out: Option<&mut EvtxOwned<EvtxWorker>>) -> EvtxFailure {
    produce(out, || Ok(Some(required(scan)?.worker().into())))
}

/// Frees a worker. The batches that it returned stay valid.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_worker_free(worker: EvtxOwned<EvtxWorker>) {
    release(|| drop(worker));
}

/// The place of the rows of a batch.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EvtxPlace {
    /// How many rows the batch has; 0 at the end of the scan.
    pub rows: usize,
    /// The position of their run of blocks, or of their batch, among all rows. It never decreases within a worker.
    pub index: u64,
}

/// Makes the arrays of the next rows, one for each column of the scan, unless the scan ends. Returns their place.
/// `keeps_order` is that of [`EvtxWorker::next`].
#[unsafe(no_mangle)]
pub extern "C" fn evtx_worker_next(
    worker: Option<&mut EvtxWorker>,
    storage: EvtxStorage,
    keeps_order: bool,
    arrays: Option<&mut EvtxOwned<EvtxArrays>>,
    out: Option<&mut EvtxPlace>,
) -> EvtxFailure {
    produce(out, || {
        let (worker, arrays) = (required(worker)?, required(arrays)?);
        let next = storage.during(|storage, interrupt| worker.next(storage, interrupt, keeps_order))?;
        Ok(next.map_or_else(EvtxPlace::default, |(made, place)| {
            *arrays = Some(made.into());
            place
        }))
    })
}

/// Returns the path of the file that the worker reads, until the worker is used or freed; null if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_worker_reading<'a>(
    worker: Option<&'a EvtxWorker>,
    out: Option<&mut EvtxText<'a>>,
) -> EvtxFailure {
    produce(out, || {
        Ok(EvtxText::of_option(match &required(worker)?.rows {
            Rows::Records(worker, _) => worker.reading(),
            Rows::Report(worker) => worker.reading(),
        }))
    })
}
