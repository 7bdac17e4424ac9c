//! Bursts as hits of other correlations.

use std::ops::Range;

use evtx_format::{Interrupt, Interrupted};

use super::hits::Row;
use super::model::RecordLocation;
use super::order::sort;
use super::resolve::Correlations;
use super::table::Table;
use super::windows::{Entry, NO_VALUE};
use crate::limits::Limits;

/// The bursts of a correlation that others refer to.
#[derive(Default)]
pub(super) struct Found {
    /// The time of the first and the last hit, and a part of `leaves`.
    pub(super) bursts: Vec<(i64, i64, Range<usize>)>,
    /// The hits of rules.
    pub(super) leaves: Vec<u32>,
}

/// The hits that a correlation has from others. A burst is a hit of each group that its records have for this correlation.
#[derive(Default)]
pub(super) struct Events {
    events: Vec<(i64, i64, Range<usize>)>,
    leaves: Vec<u32>,
}

/// A hit of a burst, by group, then in the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Leaf {
    group: u32,
    time: i64,
    location: RecordLocation,
    rule: u32,
    value: u32,
    hit: u32,
}

impl Events {
    /// The time of the first and the last hit of an event's burst.
    pub(super) fn times(&self, event: u32) -> (i64, i64) {
        let (first, last, _) = self.events[event as usize];
        (first, last)
    }

    /// The hits of rules of an event's burst that are in its group.
    pub(super) fn leaves(&self, event: u32) -> &[u32] {
        &self.leaves[self.events[event as usize].2.clone()]
    }

    /// Adds the bursts that were found for a reference. Returns whether there is room.
    pub(super) fn add(
        &mut self,
        found: &Found,
        reference: u16,
        of: (&Table, &Correlations, u32),
        entries: &mut Vec<Entry>,
        interrupt: Interrupt<'_>,
    ) -> Result<bool, Interrupted> {
        let (table, correlations, correlation) = of;
        for (first, last, range) in &found.bursts {
            interrupt.check()?;
            let mut leaves = Vec::with_capacity(range.len());
            for (index, hit) in found.leaves[range.clone()].iter().enumerate() {
                interrupt.check_step(index)?;
                let (Row { time, location }, rule) = table.row(*hit);
                let Some(one) = table.plan(correlations, *hit).of(correlation) else {
                    continue;
                };
                leaves.push(Leaf {
                    group: table.number(*hit, one.group),
                    time,
                    location,
                    rule,
                    value: one.value.map_or(NO_VALUE, |list| table.value(*hit, list)),
                    hit: *hit,
                });
            }
            sort(&mut leaves, interrupt)?;
            for group in leaves.chunk_by(|one, other| one.group == other.group) {
                if entries.len() >= Limits::HITS || self.leaves.len() + group.len() > Limits::HITS {
                    return Ok(false);
                }
                let start = self.leaves.len();
                self.leaves.extend(group.iter().map(|leaf| leaf.hit));
                entries.push(Entry {
                    group: group[0].group,
                    // As Hayabusa does, a burst is where it begins.
                    time: *first,
                    reference,
                    source: self.events.len() as u32,
                    // The value of a burst is that of its first record with one.
                    value: group
                        .iter()
                        .map(|leaf| leaf.value)
                        .find(|value| *value != NO_VALUE)
                        .unwrap_or(NO_VALUE),
                });
                self.events.push((*first, *last, start..self.leaves.len()));
            }
        }
        Ok(true)
    }
}
