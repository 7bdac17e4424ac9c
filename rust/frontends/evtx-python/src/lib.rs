//! EVTX logs as Arrow streams for Python: the native part of the package `evtx_arrow`.
//!
//! A [`NativeScan`](scan::NativeScan) makes streams. Each is a scan of `evtx-scan` with the Arrow C stream interface, so
//! libraries with this interface read it without a copy.
//! [`NativeMatches`](sigma::NativeMatches) makes streams of the Sigma rules that the events of any such stream match.
//!
//! - Threads of the stream read local files, and never call Python. The thread that reads the stream reads Python's file
//!   systems.
//! - The lock of the interpreter is not held while logs are decoded.
#![forbid(unsafe_code)]

mod signals;
mod errors;
mod storage;
mod types;
mod values;
mod codes;
mod conditions;
mod stream;
mod scan;
mod events;
mod sigma;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::codes::look_up;
    #[pymodule_export]
    use super::errors::EvtxError;
    #[pymodule_export]
    use super::scan::{NativeScan, open};
    #[pymodule_export]
    use super::sigma::{NativeMatches, NativeRules, load_rules};
    #[pymodule_export]
    use super::values::scan_arguments;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
