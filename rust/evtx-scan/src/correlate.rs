//! Correlations: the matches that the workers of a scan collect, and the bursts in them, which are rows after all others.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::vec::IntoIter;

use evtx_detect::{BurstEnds, FoundBurst, Rules};
use evtx_format::container::layout::Block;
use evtx_format::{Interrupt, Interrupted};
use evtx_sigma::{Burst, Hits};

use crate::file::FileVersion;
use crate::log::OpenLog;
use crate::scan_path::ScanPath;

/// The matches of all workers.
#[derive(Default)]
pub(crate) struct Collected(Mutex<Collecting>);

#[derive(Default)]
struct Collecting {
    hits: Vec<Hits>,
    /// How many workers still collect.
    workers: usize,
    /// The versions of the files that they have read.
    versions: BTreeMap<usize, FileVersion>,
}

impl Collected {
    pub(crate) fn join(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).workers += 1;
    }

    /// Notes the version of a file whose matches are collected.
    pub(crate) fn note(&self, file: usize, version: FileVersion) {
        let mut collecting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        collecting.versions.insert(file, version);
    }

    /// Whether a file has another version than when its matches were collected, and no row says so yet.
    pub(crate) fn is_changed(&self, file: usize, version: FileVersion) -> bool {
        let collecting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        collecting
            .versions
            .get(&file)
            .is_some_and(|&before| before.1 != i64::MIN && before != version)
    }

    /// Takes what a worker has collected. The last worker gets the matches of all.
    pub(crate) fn leave(&self, hits: Option<Hits>) -> Option<Vec<Hits>> {
        let mut collecting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        collecting.hits.extend(hits);
        collecting.workers = collecting.workers.saturating_sub(1);
        (collecting.workers == 0).then(|| std::mem::take(&mut collecting.hits))
    }
}

/// The bursts that are not rows yet, by file.
pub(crate) struct Bursts {
    left: IntoIter<Burst>,
    /// The paths of files, as rows have them.
    names: BTreeMap<u32, Arc<str>>,
    /// What is wrong with correlations as a whole: the path of the rule's file, and the text.
    pub(crate) refused: Vec<(Arc<str>, String)>,
    /// The file that is read, its log if it can be opened again, and the index of its next block.
    pub(crate) reading: Option<(usize, Option<Arc<OpenLog>>, u64)>,
}

impl Bursts {
    /// The bursts in some matches.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub(crate) fn find(rules: &Rules, hits: Vec<Hits>, interrupt: Interrupt<'_>) -> Result<Self, Interrupted> {
        let (bursts, refused) = rules.bursts(hits, interrupt)?;
        Ok(Bursts {
            left: bursts.into_iter(),
            names: BTreeMap::new(),
            refused,
            reading: None,
        })
    }

    /// The next file with bursts, and these by the file offset of their last record.
    pub(crate) fn next_file(&mut self, paths: &[ScanPath]) -> Option<(usize, BurstEnds)> {
        let file = self.left.as_slice().first()?.place.file;
        let mut of_file: BurstEnds = BTreeMap::new();
        while self
            .left
            .as_slice()
            .first()
            .is_some_and(|burst| burst.place.file == file)
            && let Some(burst) = self.left.next()
        {
            let names = &mut self.names;
            let mut name = |file: u32| {
                Arc::clone(
                    names
                        .entry(file)
                        .or_insert_with(|| paths[file as usize].path.as_str().into()),
                )
            };
            let files = burst.records.iter().map(|(_, place)| name(place.file)).collect();
            of_file
                .entry(burst.place.offset)
                .or_default()
                .push(FoundBurst { burst, files });
        }
        Some((file as usize, of_file))
    }

    /// The next block of the file that is read in which a burst ends.
    pub(crate) fn next_block(
        &mut self,
        has_bursts: impl Fn(Range<u64>) -> bool,
    ) -> Option<(usize, Arc<OpenLog>, Block)> {
        let (file, log, next) = self.reading.as_mut()?;
        let log = log.as_ref()?;
        while let Some(block) = log.layout.block(*next) {
            *next += 1;
            if has_bursts(block.offset..block.offset + block.len) {
                return Some((*file, Arc::clone(log), block));
            }
        }
        None
    }
}
