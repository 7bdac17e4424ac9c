//! Errors of a scan as exceptions of Python, and as errors of an Arrow stream.

use std::ffi::CString;
use std::io;

use arrow_schema::ArrowError;
use evtx_scan::ScanError;
use pyo3::exceptions::{
    PyFileNotFoundError, PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyUserWarning, PyValueError,
};
use pyo3::prelude::*;

use crate::signals::Signals;

pyo3::create_exception!(
    evtx_arrow,
    EvtxError,
    PyValueError,
    "A file is not an EVTX log, or is damaged and on_error is \"fail\". The text names the file."
);

/// The exception for an error of a call.
pub(crate) fn exception(error: ScanError, signals: &Signals) -> PyErr {
    let text = error.to_string();
    match error {
        ScanError::Interrupted(_) => signals.take().unwrap_or_else(|| PyKeyboardInterrupt::new_err(())),
        ScanError::Input(_) => PyValueError::new_err(text),
        ScanError::NoFiles(_) => PyFileNotFoundError::new_err(text),
        ScanError::Storage(_) => PyOSError::new_err(text),
        ScanError::File(_) | ScanError::Refused { .. } => EvtxError::new_err(text),
        ScanError::Decode(_) => PyRuntimeError::new_err(text),
    }
}

/// Shows a warning to the caller, if there is one.
pub(crate) fn warn(py: Python<'_>, warning: Option<&str>) -> PyResult<()> {
    let Some(warning) = warning else { return Ok(()) };
    let text = CString::new(warning.replace('\0', " "))?;
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 2)
}

/// The error of a stream. A stream has no exceptions, so Ctrl-C is raised in Python again.
pub(crate) fn stream_error(error: &ScanError, signals: &Signals) -> ArrowError {
    let text = error.to_string();
    match error {
        ScanError::Interrupted(_) => {
            let why = signals
                .take()
                .and_then(|error| Python::try_attach(|py| raise_again(py, &error)));
            ArrowError::ExternalError(why.unwrap_or(text).into())
        }
        ScanError::Storage(_) | ScanError::NoFiles(_) => ArrowError::IoError(text.clone(), io::Error::other(text)),
        _ => ArrowError::ExternalError(text.into()),
    }
}

/// Raises the exception of Ctrl-C again, as soon as Python code runs. Returns its text.
fn raise_again(py: Python<'_>, error: &PyErr) -> String {
    let text = format!("interrupted: {error}");
    // No Python code may run after this, or it would get the exception.
    if error.is_instance_of::<PyKeyboardInterrupt>(py)
        && let Err(failed) = py
            .import("_thread")
            .and_then(|module| module.call_method0("interrupt_main"))
    {
        return format!("{text}; {failed}");
    }
    text
}
