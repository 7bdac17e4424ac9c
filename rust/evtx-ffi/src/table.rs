//! The columns of a call through the C ABI.

use std::ffi::c_char;

use arrow_schema::ffi::FFI_ArrowSchema;
use evtx_arrow::{Catalog, EventReport, Options, Table};
use evtx_scan::read_sample;

use crate::boundary::{entry, export_schema, free, put, release};
use crate::events::{self, EvtxEvents};
use crate::options::EvtxOptions;
use crate::paths::EvtxPaths;
use crate::report::duckdb_type;
use crate::storage::EvtxStorage;

/// The columns of a call.
pub struct EvtxTable(pub(crate) Table);

/// The table of all events.
///
/// # Safety
/// `out` can be written. The caller frees the table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_table_new(options: EvtxOptions, out: *mut *mut EvtxTable) -> *mut c_char {
    entry(|| {
        let table = Box::new(EvtxTable(Table::from(Options::try_from(options)?)));
        // SAFETY: the caller's promise.
        unsafe { put(out, Box::into_raw(table)) };
        Ok(())
    })
}

/// The table of some events, with a column for each of their fields that so many of the files have, evenly spread; below 0, all.
///
/// # Safety
/// `events` and `paths` are valid, `storage` does what is said of it, `out` can be written. The caller frees the table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_table_of_events(
    options: EvtxOptions,
    events: *const EvtxEvents,
    paths: *const EvtxPaths,
    sample_size: i64,
    storage: EvtxStorage,
    out: *mut *mut EvtxTable,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let (events, paths) = unsafe { (events::events(&*events)?, &*paths) };
        let mut report = EventReport::new(Catalog::new(Some(events.clone())), duckdb_type);
        let sample_size = usize::try_from(sample_size).ok();
        // SAFETY: the caller's promise.
        unsafe {
            storage.during(|storage, interrupt| read_sample(&mut report, storage, &paths.0, sample_size, interrupt))
        }?;
        let table = Table::of_events(options.try_into()?, events, &report.catalog.fields());
        // SAFETY: the caller's promise.
        unsafe { put(out, Box::into_raw(Box::new(EvtxTable(table)))) };
        Ok(())
    })
}

/// Frees a table. Scans and filters keep what they need of it.
///
/// # Safety
/// `table` is null or came from a function of this library, and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_table_free(table: *mut EvtxTable) {
    // SAFETY: the caller's promise.
    release(|| unsafe { free(table) });
}

/// How many columns a table has.
///
/// # Safety
/// `table` is valid, `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_table_columns(table: *const EvtxTable, out: *mut u64) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let columns = unsafe { &*table }.0.schema().fields().len();
        // SAFETY: the caller's promise.
        unsafe { put(out, columns as u64) };
        Ok(())
    })
}

/// The columns of a table.
///
/// # Safety
/// `table` is valid, `out` can be written. The caller releases the schema.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_table_schema(table: *const EvtxTable, out: *mut FFI_ArrowSchema) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let schema = export_schema(&unsafe { &*table }.0.schema())?;
        // SAFETY: the caller's promise.
        unsafe { put(out, schema) };
        Ok(())
    })
}
