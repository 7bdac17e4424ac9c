//! The argument that recovers records.

use evtx_scan::arguments;

/// The settings of recovery.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecoverySettings {
    /// Whether records are recovered.
    pub recover: bool,
}

arguments! {
    /// The argument.
    pub OF_RECOVERY of RecoverySettings:
    /// Adds records in free space and in damaged chunks, stray chunks, and the chunks and records in files that are not logs.
    recover = Some("false"), Flag(|all| &mut all.recover);
}
