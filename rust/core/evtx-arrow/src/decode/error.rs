//! Why a scan ends early.

use arrow_schema::ArrowError;
use evtx_format::Interrupted;

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
    /// A thread of the scan panicked while it changed the shared plans or keys, which cannot be trusted now.
    #[error("another thread of this scan panicked, so the scan cannot continue")]
    Poisoned,
}
