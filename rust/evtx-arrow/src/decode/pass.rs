//! What becomes a row: the records, their matches of rules, or the bursts that end with them.

use std::collections::BTreeMap;

use crate::detect::Detector;
use crate::findings::FoundBurst;
use crate::scan::Scan;

/// What a decoder makes rows of.
pub(super) enum Pass {
    /// Each record is a row.
    Records,
    /// Each match of a rule is a row, with its record.
    Matches(Box<Detector>),
    /// Each burst is a row, with its last record. The scan has all matches by then.
    Bursts(BurstEnds),
}

/// The bursts of a file that have no row yet, by the file offset of their last record.
pub(super) type BurstEnds = BTreeMap<u64, Vec<FoundBurst>>;

impl Pass {
    /// The first pass of a scan.
    pub(super) fn first(scan: &Scan) -> Self {
        match &scan.rules {
            None => Pass::Records,
            Some(rules) => Pass::Matches(Detector::new(scan, rules).into()),
        }
    }
}
