//! What the tests of scans share.

use std::path::Path;

use evtx_scan::ScanError;

/// The folder of the samples.
pub(crate) const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../samples");

/// The bytes of a sample.
pub(crate) fn sample(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(SAMPLES).join(name)).expect("a sample")
}

/// Does the same work on so many threads. Returns the error of the first that has one. A single thread is the caller's,
/// which may measure its processor time.
pub(crate) fn on_threads(threads: usize, work: impl Fn() -> Result<(), ScanError> + Sync) -> Result<(), ScanError> {
    if threads == 1 {
        return work();
    }
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("no panic"))
    })
}
