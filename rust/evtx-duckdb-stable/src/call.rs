//! For all callbacks: errors and panics, and data that DuckDB keeps.

use std::ffi::{c_char, c_void};

use evtx_ffi::{EvtxError, entry, release};

use crate::api::Delete;
use crate::types::c_text;

/// Runs Rust code of a callback. Its error or its panic becomes the error of the statement.
///
/// The code must not call what throws C++ exceptions: functions that reserve memory of vectors. An exception cannot pass
/// through code that catches panics.
pub(crate) fn guarded<I, T>(
    set_error: unsafe extern "C-unwind" fn(I, *const c_char),
    info: I,
    body: impl FnOnce() -> Result<T, EvtxError>,
) -> Option<T> {
    let mut result = None;
    let failure = entry(|| {
        result = Some(body()?);
        Ok(())
    });
    if let Some(error) = failure {
        let message = c_text(error.message.text().unwrap_or_default());
        // SAFETY: DuckDB passes the info of the callback.
        unsafe { set_error(info, message.as_ptr()) };
    }
    result
}

/// The outcome of a registration, by DuckDB's state.
pub(crate) fn registered(state: u32, what: &str, name: &str) -> Result<(), String> {
    match state {
        0 => Ok(()),
        _ => Err(format!("DuckDB refused to register the {what} {name}")),
    }
}

/// Data for DuckDB that nobody frees.
pub(crate) fn lent<T>(data: &'static T) -> *mut c_void {
    std::ptr::from_ref(data).cast_mut().cast()
}

/// Data for DuckDB, to be freed by [`delete`].
pub(crate) fn boxed<T>(data: T) -> *mut c_void {
    Box::into_raw(Box::new(data)).cast()
}

/// A callback that frees data.
pub(crate) fn delete<T>() -> Delete {
    unsafe extern "C" fn delete<T>(data: *mut c_void) {
        // SAFETY: `boxed` made it of a `T`, and DuckDB frees it once.
        release(|| drop(unsafe { Box::from_raw(data.cast::<T>()) }));
    }
    Some(delete::<T>)
}
