//! Why a scan ends early.

use arrow_schema::ArrowError;
use evtx_format::Interrupted;

use crate::scan::Poisoned;

/// Why a scan ends early.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A log is damaged, and `on_error` is `fail`. The text names the file, the chunk and the file offset.
    #[error("{0}")]
    Damaged(String),
    /// Arrow refused an array of the batch.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// The caller has interrupted the scan.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// Another thread of the scan panicked.
    #[error(transparent)]
    Poisoned(#[from] Poisoned),
}
