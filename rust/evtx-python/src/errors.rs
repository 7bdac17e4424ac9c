//! Errors of a scan as exceptions of Python, and as errors of an Arrow stream.

use std::io;

use arrow_schema::ArrowError;
use evtx_scan::ScanError;
use pyo3::exceptions::{PyFileNotFoundError, PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::signals::Signals;

pyo3::create_exception!(
    evtx_arrow,
    EvtxError,
    PyValueError,
    "A file that is no Windows event log, or a damaged one with on_error=\"fail\". The text names the file."
);

/// The exception for an error of a call.
pub(crate) fn exception(error: ScanError, signals: &Signals) -> PyErr {
    let text = error.to_string();
    match error {
        ScanError::Interrupted(_) => signals.take().unwrap_or_else(|| PyKeyboardInterrupt::new_err(())),
        ScanError::Input(_) => PyValueError::new_err(text),
        ScanError::NoFiles(_) => PyFileNotFoundError::new_err(text),
        ScanError::Storage(_) => PyOSError::new_err(text),
        ScanError::File(_) => EvtxError::new_err(text),
        ScanError::Decode(_) => PyRuntimeError::new_err(text),
    }
}

/// The error of a stream. An interrupt by Ctrl-C is raised again in Python, since a stream has no exceptions.
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

/// Raises what Ctrl-C has raised again, once Python runs. Returns its text.
fn raise_again(py: Python<'_>, error: &PyErr) -> String {
    let kind = error
        .get_type(py)
        .name()
        .map_or_else(|_| String::new(), |name| name.to_string());
    let text = format!("interrupted: {kind}: {}", error.value(py));
    // No code of Python may run behind this: it would get the exception.
    if error.is_instance_of::<PyKeyboardInterrupt>(py)
        && let Err(failed) = py
            .import("_thread")
            .and_then(|module| module.call_method0("interrupt_main"))
    {
        return format!("{text}; {failed}");
    }
    text
}
