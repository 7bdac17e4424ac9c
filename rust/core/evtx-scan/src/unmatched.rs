//! What a scan says if nothing that it finds has the providers that the caller named.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use evtx_catalog::similar_providers;

/// The providers that a scan was asked for, and whether it has found a row of them.
#[derive(Debug)]
pub(crate) struct Unmatched {
    providers: Vec<String>,
    /// What a row is, such as a record.
    row: &'static str,
    workers: AtomicUsize,
    has_records: AtomicBool,
}

impl Unmatched {
    pub(crate) fn new(providers: Vec<String>, row: &'static str) -> Self {
        Unmatched {
            providers,
            row,
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

    /// Ends the part of a worker. If it is the last one and nobody has found a record, returns a text on providers with
    /// similar names, if there are some: other names can be right in logs that have no such records.
    pub(crate) fn leave(&self) -> Option<String> {
        let is_last = self.workers.fetch_sub(1, Ordering::AcqRel) == 1;
        if !is_last || self.has_records.swap(true, Ordering::AcqRel) {
            return None;
        }
        let advice = self.providers.iter().filter_map(|name| {
            let similar = similar_providers(name);
            (!similar.is_empty()).then(|| {
                format!(
                    "no {} was found for the provider '{name}', but there are {}",
                    self.row,
                    similar.join(", ")
                )
            })
        });
        let advice: Vec<_> = advice.collect();
        (!advice.is_empty()).then(|| format!("{}. The name of a log is its channel", advice.join("; ")))
    }
}
