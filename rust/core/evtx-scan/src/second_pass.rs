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
    /// It is the last worker. It reads this log, if it can be opened again; then the index of the next block.
    Reading(Option<(usize, Option<Arc<OpenLog>>, u64)>),
    /// Nothing: another worker reads again, or all was read.
    Done,
}

/// The next block of a log that is read again, of those that are wanted.
pub(crate) fn next_block(
    reading: &mut Option<(usize, Option<Arc<OpenLog>>, u64)>,
    wants: impl Fn(Range<u64>) -> bool,
) -> Option<(usize, Arc<OpenLog>, Block)> {
    let (file, log, next) = reading.as_mut()?;
    let log = log.as_ref()?;
    while let Some(block) = log.layout.block(*next) {
        *next += 1;
        if wants(block.offset..block.offset + block.len) {
            return Some((*file, Arc::clone(log), block));
        }
    }
    None
}
