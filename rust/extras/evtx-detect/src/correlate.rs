//! The second pass of a scan that correlates: it reads the last record of each burst again.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::vec::IntoIter;

use evtx_arrow::SecondPass;
use evtx_format::{Interrupt, Interrupted};
use evtx_sigma::{Burst, Hits};

use crate::detect::Detector;
use crate::findings::{FoundBurst, without_time};
use crate::rules::Rules;

/// What the threads of a scan have found for correlations.
#[derive(Default)]
pub(crate) struct Correlating {
    /// How many matches all threads keep.
    pub(crate) kept: Arc<AtomicUsize>,
    /// The matches of the threads that have ended, and by log how many events have no time.
    hits: Mutex<(Vec<Hits>, BTreeMap<u32, u64>)>,
}

impl fmt::Debug for Correlating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Correlating")
            .field("kept", &self.kept)
            .finish_non_exhaustive()
    }
}

/// The passes of one thread.
pub(crate) struct Passes {
    pub(crate) rules: Arc<Rules>,
    pub(crate) correlating: Arc<Correlating>,
    pub(crate) now: Pass,
}

/// What is a row.
pub(crate) enum Pass {
    /// Each match of a rule, with its record.
    Matches(Box<Detector>),
    /// Each burst, with its last record.
    Bursts(Box<Bursts>),
}

/// The bursts that are not rows yet.
#[derive(Default)]
pub(crate) struct Bursts {
    /// Those of the log that is read, by the file offset of their last record.
    pub(crate) of_log: BTreeMap<u64, Vec<FoundBurst>>,
    /// Those of the other logs, in order.
    others: IntoIter<Burst>,
    /// The paths of logs, as rows have them.
    paths: BTreeMap<u32, Arc<str>>,
    /// The correlations that could not be evaluated: the path of the file of each, and why.
    problems: Vec<(Arc<str>, String)>,
    /// By log, how many events were left out because they have no time.
    without_time: BTreeMap<u32, u64>,
}

impl SecondPass for Passes {
    fn begin(&mut self, is_last: bool, interrupt: Interrupt<'_>) -> Result<(), Interrupted> {
        let mut bursts = Bursts::default();
        if let Pass::Matches(detector) = &mut self.now {
            let mut hits = self.correlating.hits.lock().unwrap_or_else(PoisonError::into_inner);
            let (of_thread, without_time) = detector.take_hits();
            hits.0.extend(of_thread);
            for (log, count) in without_time {
                *hits.1.entry(log).or_default() += count;
            }
            if is_last {
                let (all, without_time) = std::mem::take(&mut *hits);
                drop(hits);
                bursts.without_time = without_time;
                let (found, problems) = self.rules.bursts(all, interrupt)?;
                bursts.others = found.into_iter();
                bursts.problems = problems;
            }
        }
        self.now = Pass::Bursts(bursts.into());
        Ok(())
    }

    fn next_log(&mut self, path: &dyn Fn(usize) -> Arc<str>) -> Option<usize> {
        let Pass::Bursts(bursts) = &mut self.now else {
            return None;
        };
        let Bursts {
            of_log, others, paths, ..
        } = &mut **bursts;
        let log = others.as_slice().first()?.location.file;
        while others
            .as_slice()
            .first()
            .is_some_and(|burst| burst.location.file == log)
            && let Some(burst) = others.next()
        {
            let locations = burst.records.iter().map(|(_, location)| location.file);
            let files = locations.map(|file| Arc::clone(paths.entry(file).or_insert_with(|| path(file as usize))));
            let files = files.collect();
            let ended = of_log.entry(burst.location.offset).or_default();
            ended.push(FoundBurst { burst, files });
        }
        Some(log as usize)
    }

    fn wants(&self, offsets: Range<u64>) -> bool {
        match &self.now {
            Pass::Bursts(bursts) => bursts.of_log.range(offsets).next().is_some(),
            Pass::Matches(_) => false,
        }
    }

    fn missed(&mut self) -> Option<String> {
        let Pass::Bursts(bursts) = &mut self.now else {
            return None;
        };
        let missed: usize = std::mem::take(&mut bursts.of_log).values().map(Vec::len).sum();
        (missed > 0).then(|| format!("{missed} bursts of correlations could not be read again"))
    }

    fn problems(&mut self, path: &dyn Fn(usize) -> Arc<str>) -> Vec<(Arc<str>, String)> {
        let Pass::Bursts(bursts) = &mut self.now else {
            return Vec::new();
        };
        let logs = std::mem::take(&mut bursts.without_time).into_iter();
        let left_out = logs.map(|(log, count)| (path(log as usize), without_time(count)));
        std::mem::take(&mut bursts.problems)
            .into_iter()
            .chain(left_out)
            .collect()
    }
}
