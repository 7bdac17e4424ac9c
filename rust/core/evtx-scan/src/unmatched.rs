//! What a scan says if it finds no record.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Makes the text of a row for a scan without records; `None` if there is nothing to say.
pub type Advice = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// The advice of a scan, and whether the scan has found a record.
pub(crate) struct Unmatched {
    advice: Advice,
    workers: AtomicUsize,
    has_records: AtomicBool,
}

impl Unmatched {
    pub(crate) fn new(advice: Advice) -> Self {
        Unmatched {
            advice,
            workers: AtomicUsize::new(0),
            has_records: AtomicBool::new(false),
        }
    }

    /// Counts a worker that takes part.
    pub(crate) fn join(&self) {
        self.workers.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that a record was found.
    pub(crate) fn found(&self) {
        self.has_records.store(true, Ordering::Release);
    }

    /// Ends the part of a worker. Returns the advice if it is the last one and nobody has found a record.
    pub(crate) fn leave(&self) -> Option<String> {
        let is_last = self.workers.fetch_sub(1, Ordering::AcqRel) == 1;
        if !is_last || self.has_records.swap(true, Ordering::AcqRel) {
            return None;
        }
        (self.advice)()
    }
}
