//! The windows of a correlation, and their numbers.

use std::collections::BTreeMap;

use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashMap;

use super::model::{Correlation, CorrelationKind};
use super::sums::Numbers;

/// A hit of a correlation. They are sorted by group, time and reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) group: u32,
    pub(super) time: i64,
    /// The index of the reference.
    pub(super) reference: u16,
    /// The hit of a rule, or the event of a correlation.
    pub(super) source: u32,
    /// The number of the value, or the rank of the number, or [`NO_VALUE`].
    pub(super) value: u32,
}

/// The value of a hit that has none.
pub(super) const NO_VALUE: u32 = u32::MAX;

/// Takes the hits of a burst, and its number.
pub(super) type OnBurst<'a> = dyn FnMut(&[Entry], f64) -> Result<(), Interrupted> + 'a;

/// Calls `burst` with the hits of each window that meets the condition, and its number.
pub(super) fn windows(
    correlation: &Correlation,
    entries: &[Entry],
    numbers: Vec<i128>,
    interrupt: Interrupt<'_>,
    burst: &mut OnBurst<'_>,
) -> Result<(), Interrupted> {
    let chains = match correlation.kind {
        CorrelationKind::TemporalOrdered => chains(correlation, entries, interrupt)?,
        _ => Vec::new(),
    };
    let mut state = State::new(correlation, numbers);
    let (mut left, mut right) = (0, 0);
    let mut steps = 0_usize;
    while let Some(first) = entries.get(left) {
        while let Some(entry) = entries.get(right).filter(|entry| is_within(correlation, first, entry)) {
            state.add(entry);
            right += 1;
            steps += 1;
            interrupt.check_step(steps)?;
        }
        let number = match chains.get(left) {
            Some(length) => Some(f64::from(*length)),
            None => state.number(),
        };
        let met = number.filter(|number| correlation.holds(*number));
        let next = match met {
            Some(number) => {
                burst(&entries[left..right], number)?;
                right
            }
            None => same_time(entries, left),
        };
        for entry in &entries[left..next] {
            state.remove(entry);
            steps += 1;
            interrupt.check_step(steps)?;
        }
        left = next;
    }
    Ok(())
}

/// Whether an entry belongs to the window that begins at the time of another.
fn is_within(correlation: &Correlation, first: &Entry, entry: &Entry) -> bool {
    let is_soon = |span: i64| entry.time.abs_diff(first.time) <= span.unsigned_abs();
    entry.group == first.group && correlation.timespan.is_none_or(is_soon)
}

/// The end of the entries with the same group and time.
fn same_time(entries: &[Entry], first: usize) -> usize {
    let is_same = |entry: &&Entry| (entry.group, entry.time) == (entries[first].group, entries[first].time);
    first + entries[first..].iter().take_while(is_same).count()
}

/// What is known of the hits of a window.
enum State {
    Events(u64),
    Values(HashMap<u32, u32>),
    References {
        counts: Vec<u32>,
        absent: usize,
    },
    Numbers(Numbers, CorrelationKind),
    Shares {
        values: HashMap<u32, u32>,
        /// How many values have each count.
        counts: BTreeMap<u32, u32>,
        total: u64,
        rarest: bool,
    },
}

impl State {
    fn new(correlation: &Correlation, numbers: Vec<i128>) -> Self {
        match correlation.kind {
            CorrelationKind::EventCount | CorrelationKind::TemporalOrdered => State::Events(0),
            CorrelationKind::ValueCount => State::Values(HashMap::new()),
            CorrelationKind::Temporal { absent } => State::References {
                counts: vec![0; correlation.references.len()],
                absent,
            },
            CorrelationKind::ValueShare { rarest } => State::Shares {
                values: HashMap::new(),
                counts: BTreeMap::new(),
                total: 0,
                rarest,
            },
            kind => State::Numbers(Numbers::new(numbers), kind),
        }
    }

    fn add(&mut self, entry: &Entry) {
        let has_value = entry.value != NO_VALUE;
        match self {
            State::Events(count) => *count += 1,
            State::References { counts, .. } => counts[usize::from(entry.reference)] += 1,
            State::Values(values) if has_value => *values.entry(entry.value).or_insert(0) += 1,
            State::Numbers(numbers, _) if has_value => numbers.add(entry.value),
            State::Shares {
                values, counts, total, ..
            } if has_value => {
                *total += 1;
                let count = values.entry(entry.value).or_insert(0);
                take_count(counts, *count);
                *count += 1;
                *counts.entry(*count).or_insert(0) += 1;
            }
            _ => {}
        }
    }

    fn remove(&mut self, entry: &Entry) {
        let has_value = entry.value != NO_VALUE;
        match self {
            State::Events(count) => *count -= 1,
            State::References { counts, .. } => counts[usize::from(entry.reference)] -= 1,
            State::Values(values) if has_value => take_value(values, entry.value),
            State::Numbers(numbers, _) if has_value => numbers.remove(entry.value),
            State::Shares {
                values, counts, total, ..
            } if has_value => {
                *total -= 1;
                let count = values.get(&entry.value).copied().unwrap_or(0);
                take_count(counts, count);
                take_value(values, entry.value);
                if count > 1 {
                    *counts.entry(count - 1).or_insert(0) += 1;
                }
            }
            _ => {}
        }
    }

    /// The number of the window. `None` if it has no values to compute it from.
    fn number(&self) -> Option<f64> {
        match self {
            State::Events(count) => Some(*count as f64),
            State::Values(values) => Some(values.len() as f64),
            State::References { counts, absent } => {
                let (present, forbidden) = counts.split_at(*absent);
                let is_clear = forbidden.iter().all(|count| *count == 0);
                let number = present.iter().filter(|count| **count > 0).count();
                Some(if is_clear { number as f64 } else { 0.0 })
            }
            State::Numbers(numbers, kind) => match kind {
                CorrelationKind::ValueSum => numbers.sum(),
                CorrelationKind::ValueAverage => numbers.average(),
                CorrelationKind::ValueMin => numbers.percentile(0.0),
                CorrelationKind::ValuePercentile(percent) => numbers.percentile(*percent),
                _ => numbers.percentile(100.0),
            },
            State::Shares {
                counts, total, rarest, ..
            } => {
                let count = if *rarest {
                    counts.keys().next()
                } else {
                    counts.keys().last()
                };
                count.map(|count| f64::from(*count) * 100.0 / *total as f64)
            }
        }
    }
}

/// Takes one from the number of a value, which is at least 1.
fn take_value(values: &mut HashMap<u32, u32>, value: u32) {
    if let Some(count) = values.get_mut(&value) {
        *count -= 1;
        if *count == 0 {
            values.remove(&value);
        }
    }
}

/// Takes one from the number of values with a count.
fn take_count(counts: &mut BTreeMap<u32, u32>, count: u32) {
    if let Some(number) = counts.get_mut(&count) {
        *number -= 1;
        if *number == 0 {
            counts.remove(&count);
        }
    }
}

/// For the first entry of each group and time: how many references, at most, have hits in their order in the window that
/// begins there.
///
/// This goes back in time. `ends` has the earliest end of a chain of each length that begins with each reference or a
/// later one.
fn chains(correlation: &Correlation, entries: &[Entry], interrupt: Interrupt<'_>) -> Result<Vec<u8>, Interrupted> {
    let references = correlation.references.len();
    const NEVER: i128 = i128::MAX;
    let mut lengths = vec![0; entries.len()];
    // A row for each length from 0 on, with one more column that has no chains.
    let mut ends = vec![vec![NEVER; references + 1]; references + 1];
    let mut longest = 0;
    for (index, entry) in entries.iter().enumerate().rev() {
        interrupt.check_step(index)?;
        if entries.get(index + 1).is_some_and(|after| after.group != entry.group) {
            ends[..=longest].iter_mut().for_each(|row| row.fill(NEVER));
            longest = 0;
        }
        let reference = usize::from(entry.reference);
        for length in (1..=(longest + 1).min(references)).rev() {
            let end = match length {
                1 => i128::from(entry.time),
                _ => ends[length - 1][reference + 1],
            };
            if end == NEVER {
                continue;
            }
            longest = longest.max(length);
            // Earlier references have earlier ends.
            let row = ends[length][..=reference].iter_mut().rev();
            row.take_while(|known| **known > end).for_each(|known| *known = end);
        }
        let span = correlation
            .timespan
            .map_or(NEVER - 1 - i128::from(u64::MAX), i128::from);
        let until = i128::from(entry.time) + span;
        let within = (1..=longest).rev().find(|length| ends[*length][0] <= until);
        lengths[index] = within.unwrap_or(0) as u8;
    }
    Ok(lengths)
}
