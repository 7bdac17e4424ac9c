//! EVTX logs as Arrow streams for Python: the native part of the package `evtx_arrow`.
//!
//! [`NativeScan`](scan::NativeScan) holds what a scan reads. Each of its streams is a scan of `evtx-scan` behind the
//! Arrow C stream interface, so that every library that knows this interface reads it without a copy.
//!
//! - Local files are read by threads of the stream. Python's file systems are read on the thread that reads the stream.
//! - No lock of the interpreter is held while logs are decoded.
//! - Threads of the stream never call Python.
#![forbid(unsafe_code)]

mod signals;
mod errors;
mod storage;
mod types;
mod values;
mod conditions;
mod stream;
mod scan;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::errors::EvtxError;
    #[pymodule_export]
    use super::scan::{NativeScan, open, options};
}
