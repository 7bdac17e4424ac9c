//! What a row source reads again, after all files: the logs, and their blocks.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use evtx_format::container::layout::Block;

use crate::file::FileVersion;
use crate::log::OpenLog;

/// The first pass of all workers.
#[derive(Default)]
pub(crate) struct FirstPass(Mutex<Progress>);

#[derive(Default)]
struct Progress {
    /// How many workers still read.
    workers: usize,
    /// The versions of the files that they have read.
    versions: BTreeMap<usize, FileVersion>,
}

impl FirstPass {
    /// Counts a worker that takes part.
    pub(crate) fn join(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).workers += 1;
    }

    /// Notes the version of a file that is read.
    pub(crate) fn note(&self, file: usize, version: FileVersion) {
        let mut progress = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        progress.versions.insert(file, version);
    }

    /// Whether a file has another version than when it was read, and no row says so yet.
    pub(crate) fn is_changed(&self, file: usize, version: FileVersion) -> bool {
        let progress = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        progress
            .versions
            .get(&file)
            .is_some_and(|&before| before.1 != i64::MIN && before != version)
    }

    /// Ends the part of a worker. Returns whether it is the last one.
    pub(crate) fn leave(&self) -> bool {
        let mut progress = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        progress.workers = progress.workers.saturating_sub(1);
        progress.workers == 0
    }
}

/// What a worker does for the second pass.
pub(crate) enum Again {
    /// Nothing yet: the first pass lasts.
    Later,
    /// It is the last worker, and reads this log, if there is one yet.
    Reading(Option<LogAgain>),
    /// Nothing: another worker reads again, or all was read.
    Done,
}

/// A log that is read again.
pub(crate) struct LogAgain {
    /// The index of its file.
    pub(crate) file: usize,
    /// `None` if it cannot be opened again.
    log: Option<Arc<OpenLog>>,
    /// The index of the next block.
    next: u64,
}

impl LogAgain {
    pub(crate) fn new(file: usize, log: Option<OpenLog>) -> Self {
        LogAgain {
            file,
            log: log.map(Arc::new),
            next: 0,
        }
    }

    /// The next block of those that are wanted.
    pub(crate) fn next_block(&mut self, wants: impl Fn(Range<u64>) -> bool) -> Option<(Arc<OpenLog>, Block)> {
        let log = self.log.as_ref()?;
        while let Some(block) = log.layout.block(self.next) {
            self.next += 1;
            if wants(block.offset..block.offset + block.len) {
                return Some((Arc::clone(log), block));
            }
        }
        None
    }
}
