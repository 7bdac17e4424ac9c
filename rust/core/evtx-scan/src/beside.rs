//! What of a scan is read besides its blocks: what is beside a log, for extra columns, and other logs, for recovery.

use std::fmt::Debug;

use evtx_arrow::Beside;

use crate::scan_path::ScanPath;
use crate::storage::{Call, ScanError, StorageError};

/// Finds what is beside the logs of a scan.
pub trait BesideLogs: Debug + Send + Sync {
    /// What is beside a log; `None` if there is nothing that can be read.
    ///
    /// # Errors
    /// Those that end a scan.
    fn find(&self, call: Call<'_>, log: &ScanPath) -> Result<Option<Beside>, StorageError>;
}

/// Reads the logs of a scan if its recovery needs more of them than blocks.
pub trait ReadsLogs: Debug + Send + Sync {
    /// Reads them, or waits until another thread has read them. `logs` are the files of the scan.
    ///
    /// # Errors
    /// Those that end a scan.
    fn read(&self, call: Call<'_>, logs: &[ScanPath]) -> Result<(), ScanError>;
}
