//! What is beside a log, and extra columns read.

use std::fmt::Debug;

use evtx_arrow::Beside;

use crate::scan_path::ScanPath;
use crate::storage::{Call, StorageError};

/// Finds what is beside the logs of a scan.
pub trait BesideLogs: Debug + Send + Sync {
    /// What is beside a log; `None` if there is nothing that can be read.
    ///
    /// # Errors
    /// Those that end a scan.
    fn find(&self, call: Call<'_>, log: &ScanPath) -> Result<Option<Beside>, StorageError>;
}
