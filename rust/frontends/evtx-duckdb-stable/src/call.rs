//! For all callbacks: errors and panics, and data that DuckDB keeps.

use std::ffi::{CString, c_char, c_void};

use evtx_ffi::{EvtxError, EvtxFailure, entry, release};

use crate::api::*;
use crate::types::c_text;

/// Runs Rust code. Returns the message of its error or its panic.
///
/// The code must not call what throws C++ exceptions: functions that reserve memory of vectors. An exception cannot pass
/// through code that catches panics.
pub(crate) fn caught<T>(body: impl FnOnce() -> Result<T, EvtxError>) -> Result<T, CString> {
    let mut result = None;
    let failure = entry(|| {
        result = Some(body()?);
        Ok(())
    });
    let message = |failure: EvtxFailure| failure.map_or_else(CString::default, |error| c_text(error.text()));
    result.ok_or_else(|| message(failure))
}

/// Runs Rust code of a callback, as [`caught`] does. Its message becomes the error of the statement.
pub(crate) fn guarded<I, T>(
    set_error: unsafe fn(I, *const c_char),
    info: I,
    body: impl FnOnce() -> Result<T, EvtxError>,
) -> Option<T> {
    // SAFETY: DuckDB passes the info of the callback.
    caught(body)
        .inspect_err(|why| unsafe { set_error(info, why.as_ptr()) })
        .ok()
}

/// Runs statements with a connection of their own. An open one would keep the database open.
pub(crate) fn with_connection<T>(
    database: duckdb_database,
    work: impl FnOnce(duckdb_connection) -> Result<T, String>,
) -> Result<T, String> {
    let mut connection = std::ptr::null_mut();
    // SAFETY: the database is open.
    if unsafe { duckdb_connect(database, &mut connection) } != 0 {
        return Err("DuckDB does not let the extension connect".to_owned());
    }
    let done = work(connection);
    // SAFETY: the connection is closed once.
    unsafe { duckdb_disconnect(&mut connection) };
    done
}

/// The outcome of a registration, by DuckDB's state.
pub(crate) fn registered(state: u32, what: &str, name: &str) -> Result<(), String> {
    match state {
        0 => Ok(()),
        _ => Err(format!("DuckDB refused to register the {what} {name}")),
    }
}

/// Data for DuckDB, to be freed by [`delete`].
pub(crate) fn boxed<T>(data: T) -> *mut c_void {
    Box::into_raw(Box::new(data)).cast()
}

/// A callback that frees data.
pub(crate) fn delete<T>() -> duckdb_delete_callback_t {
    unsafe extern "C" fn delete<T>(data: *mut c_void) {
        // SAFETY: `boxed` made it of a `T`, and DuckDB frees it once.
        release(|| drop(unsafe { Box::from_raw(data.cast::<T>()) }));
    }
    Some(delete::<T>)
}
