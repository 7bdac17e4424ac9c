//! When the records of a machine were written, by its clock as it was set last.
//!
//! Clocks are set, so the time stamps of a log can fall and repeat. In one log, the order of the records is known; time stamps
//! only place the logs relative to each other. Windows logs changes of the clock. Between two changes is an **epoch**, in
//! which the clock only rises. A record's time stamp, moved by all changes after its epoch, is its time by the final clock.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::iter;
use std::ops::Range;

use evtx_format::{Interrupt, Interrupted};

const SECOND: i64 = 1_000_000_000;
/// Smaller changes are corrections. A machine can log thousands of them.
const LEAST_CHANGE: u64 = SECOND as u64;
/// How many changes count. If there are more, those that move the clock most.
const MOST_CHANGES: usize = 1024;
/// How far apart two records of one change can be, and a record and its epoch.
const SLACK: i64 = 5 * SECOND;
/// A record about a change has about the new time. Otherwise, it does not count.
const NEAR: u64 = 300 * SECOND as u64;
/// How many pairs of a run and an epoch are compared per log.
const MOST_PAIRS: usize = 1 << 22;

/// How many runs of one length are compared for a record.
const MOST_ENDS: usize = 64;
/// The index of no record.
const NOTHING: usize = usize::MAX;

/// A record, as far as clocks are concerned. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Timed {
    /// A number for the log.
    pub(crate) log: u64,
    /// The number that its event had when it was written.
    pub(crate) number: Option<u64>,
    /// The time stamp.
    pub(crate) time: Option<i64>,
    /// If the record says that the clock was set: the times before and after.
    pub(crate) change: Option<(i64, i64)>,
    /// Whether it is written long after its time, as what the kernel says of its start. Its time counts, not its place.
    pub(crate) is_late: bool,
}

/// A change of the clock: the times before and after.
type Change = (i64, i64);

/// The times of a machine's records by its final clock. Records of a log are next to each other, in their order or, as in some
/// exports, in the opposite one. In their order, the times never fall. A record whose time fits nowhere gets that of the record before it, or else of the one after it.
///
/// # Errors
/// [`Interrupted`].
pub(crate) fn log_times(stamps: &[Timed], interrupt: Interrupt<'_>) -> Result<Vec<Option<i64>>, Interrupted> {
    let mut logs: Vec<Range<usize>> = Vec::new();
    for (at, stamp) in stamps.iter().enumerate() {
        match logs.last_mut() {
            Some(log) if stamps[log.start].log == stamp.log => log.end = at + 1,
            _ => logs.push(at..at + 1),
        }
    }
    let reversed: Vec<_> = logs
        .iter()
        .filter(|log| is_newest_first(&stamps[(*log).clone()]))
        .cloned()
        .collect();
    let mut in_order = Cow::Borrowed(stamps);
    for log in &reversed {
        in_order.to_mut()[log.clone()].reverse();
    }
    let stamps = &*in_order;
    let least = least_change(stamps);
    let own: Vec<Vec<(usize, Change)>> = logs.iter().map(|log| changes(&stamps[log.clone()], least)).collect();
    // What logs say decides, not their numbers.
    let mut told: Vec<Vec<Change>> = own
        .iter()
        .map(|own| own.iter().map(|&(_, change)| change).collect())
        .collect();
    told.sort_unstable_by(|one, other| (Reverse(one.len()), one).cmp(&(Reverse(other.len()), other)));
    told.dedup();
    let clock = Clock::of(told.iter().fold(Vec::new(), |all, own| merged(&all, own)));

    let mut times = vec![None; stamps.len()];
    for (log, own) in logs.into_iter().zip(own) {
        let of_log = clock.times(&stamps[log.clone()], &own, interrupt)?;
        let late = |at: usize| stamps[log.start + at].is_late;
        let of_log = nondecreasing(of_log, late, interrupt)?;
        times[log].copy_from_slice(&of_log);
    }
    for log in reversed {
        times[log].reverse();
    }
    Ok(times)
}

/// Whether nearly all numbers of events fall. Those of a log that was cleared fall only once.
fn is_newest_first(log: &[Timed]) -> bool {
    let (mut rises, mut falls, mut last) = (0_usize, 0_usize, None);
    for number in log.iter().filter_map(|stamp| stamp.number) {
        if let Some(last) = last {
            rises += usize::from(last < number);
            falls += usize::from(last > number);
        }
        last = Some(number);
    }
    falls > rises.saturating_mul(4)
}

/// Changes by less do not count.
fn least_change(stamps: &[Timed]) -> u64 {
    let mut moves: Vec<_> = stamps
        .iter()
        .filter_map(|stamp| stamp.change.map(|(old, new)| Reverse(old.abs_diff(new))))
        .collect();
    if moves.len() <= MOST_CHANGES {
        return LEAST_CHANGE;
    }
    let (_, &mut Reverse(least), _) = moves.select_nth_unstable(MOST_CHANGES);
    least.saturating_add(1).max(LEAST_CHANGE)
}

/// The changes that a log has, each with its record. Of records of one change, the first counts.
fn changes(stamps: &[Timed], least: u64) -> Vec<(usize, Change)> {
    let mut found: Vec<(usize, Change)> = Vec::new();
    // The highest time since the last change. If the clock has hardly risen, it cannot be set from the same time again.
    let mut highest = i64::MIN;
    for (at, stamp) in stamps.iter().enumerate() {
        let Some(time) = stamp.time else { continue };
        highest = highest.max(time);
        let Some(change @ (old, new)) = stamp.change else {
            continue;
        };
        let is_told = |&(_, last): &(usize, Change)| is_same(last, change) && highest <= new.saturating_add(SLACK);
        if old.abs_diff(new) >= least && time.abs_diff(new) <= NEAR && !found.last().is_some_and(is_told) {
            found.push((at, change));
            highest = time;
        }
    }
    found
}

/// Whether two records are about one change.
fn is_same(one: Change, other: Change) -> bool {
    one.0.abs_diff(other.0) <= SLACK as u64 && one.1.abs_diff(other.1) <= SLACK as u64
}

/// The changes of two logs in one order. Between two changes that only one of the logs has, the one that the clock reaches
/// first comes first.
fn merged(known: &[Change], own: &[Change]) -> Vec<Change> {
    let (mut known, mut own) = (known, own);
    let mut all: Vec<Change> = Vec::new();
    while let (&[a, ref after_a @ ..], &[b, ref after_b @ ..]) = (known, own) {
        let rank = |(old, new): Change| {
            let clock = all.last().map_or(i64::MIN, |last| last.1);
            (old.saturating_add(SLACK) < clock, old, new)
        };
        let is_one = is_same(a, b);
        let takes_known = is_one
            || after_a.iter().any(|&later| is_same(later, b))
            || !after_b.iter().any(|&later| is_same(a, later)) && rank(a) <= rank(b);
        if takes_known {
            all.push(a);
            known = after_a;
        } else {
            all.push(b);
        }
        if is_one || !takes_known {
            own = after_b;
        }
    }
    all.extend(known.iter().chain(own));
    all
}

/// The epochs of a machine: one more than it has changes.
struct Clock {
    changes: Vec<Change>,
    /// How much the clock was moved after each epoch.
    moves: Vec<i128>,
    /// The times between which the same epochs are possible, in order.
    bounds: Vec<i64>,
}

/// Consecutive records of a log that can be of the same epochs.
struct Run {
    end: usize,
    records: u64,
    time: Option<i64>,
    /// Whether the time falls where it begins.
    falls: bool,
    /// The epochs that the log's own records of changes leave.
    first: usize,
    last: usize,
}

impl Clock {
    fn of(changes: Vec<Change>) -> Self {
        let mut moves = vec![0];
        for &(old, new) in changes.iter().rev() {
            moves.push(moves.last().copied().unwrap_or(0) + i128::from(new) - i128::from(old));
        }
        moves.reverse();
        let ends = changes
            .iter()
            .flat_map(|&(old, new)| [old.saturating_add(SLACK + 1), new.saturating_sub(SLACK)]);
        let mut bounds: Vec<_> = ends.collect();
        bounds.sort_unstable();
        Clock { changes, moves, bounds }
    }

    /// Whether the clock can show a time in an epoch.
    fn shows(&self, epoch: usize, time: i64) -> bool {
        let is_after = epoch == 0 || time >= self.changes[epoch - 1].1.saturating_sub(SLACK);
        is_after
            && self
                .changes
                .get(epoch)
                .is_none_or(|next| time <= next.0.saturating_add(SLACK))
    }

    /// The time stamps of a log, moved by the changes after them.
    fn times(
        &self,
        stamps: &[Timed],
        own: &[(usize, Change)],
        interrupt: Interrupt<'_>,
    ) -> Result<Vec<Option<i64>>, Interrupted> {
        let mut times = Vec::with_capacity(stamps.len());
        let runs = self.runs(stamps, own);
        for (run, epoch) in runs.iter().zip(self.epochs(&runs, interrupt)?) {
            let moved = |time| {
                let moved = i128::from(time) + self.moves[epoch];
                moved.clamp(i64::MIN.into(), i64::MAX.into()) as i64
            };
            times.extend(stamps[times.len()..run.end].iter().map(|stamp| stamp.time.map(moved)));
        }
        Ok(times)
    }

    fn runs(&self, stamps: &[Timed], own: &[(usize, Change)]) -> Vec<Run> {
        // The changes that are the log's own: the record, and the epoch that begins with it.
        let mut from = 0;
        let found: Vec<(usize, usize)> = own
            .iter()
            .filter_map(|&(at, change)| {
                let found = from + self.changes[from..].iter().position(|&known| is_same(known, change))?;
                from = found + 1;
                Some((at, from))
            })
            .collect();
        let starts = iter::once((0, 0)).chain(found.iter().copied());
        let ends = found
            .iter()
            .map(|&(at, epoch)| (at, epoch - 1))
            .chain([(stamps.len(), self.changes.len())]);
        let mut runs: Vec<Run> = Vec::new();
        for ((start, first), (end, last)) in starts.zip(ends) {
            let first_run = runs.len();
            for (at, stamp) in stamps.iter().enumerate().take(end).skip(start) {
                let time = stamp.time.filter(|_| !stamp.is_late);
                let before = runs[first_run..].last().and_then(|run| run.time);
                let falls = time
                    .zip(before)
                    .is_some_and(|(time, before)| time < before.saturating_sub(SLACK));
                let place = |time| self.bounds.partition_point(|&bound| bound <= time);
                match runs[first_run..].last_mut() {
                    Some(run)
                        if !falls
                            && (time.is_none()
                                || run.time.is_none_or(|before| Some(place(before)) == time.map(place))) =>
                    {
                        run.end = at + 1;
                        run.records += u64::from(time.is_some());
                        run.time = time.or(run.time);
                    }
                    _ => runs.push(Run {
                        end: at + 1,
                        records: time.is_some().into(),
                        time,
                        falls,
                        first,
                        last,
                    }),
                }
            }
        }
        runs
    }

    /// The epoch of each run. They never fall. As few records as possible have a time that their epoch does not show, or that
    /// falls in it. Of several answers, each change is as late as possible.
    fn epochs(&self, runs: &[Run], interrupt: Interrupt<'_>) -> Result<Vec<usize>, Interrupted> {
        let epochs = self.moves.len();
        let mut found: Vec<usize> = runs.iter().map(|run| run.first).collect();
        if runs.len().saturating_mul(epochs) > MOST_PAIRS || runs.iter().all(|run| run.first == run.last) {
            return Ok(found);
        }
        // For each epoch of the last run: the cost, if there is an answer.
        let mut costs: Vec<Option<u64>> = vec![Some(0); epochs];
        let mut before: Vec<u16> = Vec::with_capacity(runs.len() * epochs);
        for (step, run) in runs.iter().enumerate() {
            interrupt.check_step(step)?;
            let mut lower: Option<(u64, usize)> = None;
            let mut next = vec![None; epochs];
            for epoch in 0..epochs {
                let same = costs[epoch].map(|cost| (cost + u64::from(run.falls), epoch));
                // Of equal costs, the lowest epoch.
                let best = [lower, same].into_iter().flatten().min();
                if (run.first..=run.last).contains(&epoch) {
                    let is_off = run.time.is_some_and(|time| !self.shows(epoch, time));
                    next[epoch] = best.map(|(cost, _)| cost + if is_off { run.records } else { 0 });
                }
                before.push(best.map_or(0, |(_, epoch)| epoch as u16));
                if let Some(cost) = costs[epoch] {
                    lower = [lower, Some((cost, epoch))].into_iter().flatten().min();
                }
            }
            costs = next;
        }
        let ends = costs
            .iter()
            .enumerate()
            .filter_map(|(epoch, cost)| Some(((*cost)?, epoch)));
        let mut epoch = ends.min().map_or(0, |(_, epoch)| epoch);
        for (at, found) in found.iter_mut().enumerate().rev() {
            *found = epoch;
            epoch = before[at * epochs + epoch].into();
        }
        Ok(found)
    }
}

/// Keeps as many times as possible that never fall, and that are close together. The others get the time before, or else the
/// one after.
fn nondecreasing(
    mut times: Vec<Option<i64>>,
    is_late: impl Fn(usize) -> bool,
    interrupt: Interrupt<'_>,
) -> Result<Vec<Option<i64>>, Interrupted> {
    if times.iter().all(Option::is_some) && times.is_sorted() {
        return Ok(times);
    }
    // The records with which runs of each length end: the one with the lowest time, and from each the one that was that before.
    let mut ends: Vec<usize> = Vec::new();
    let mut higher: Vec<usize> = Vec::with_capacity(times.len());
    let mut before: Vec<usize> = Vec::with_capacity(times.len());
    for (at, time) in times.iter().enumerate() {
        interrupt.check_step(at)?;
        let length = match time {
            Some(_) if !is_late(at) => ends.partition_point(|&end| times[end] <= *time),
            _ => usize::MAX,
        };
        let mut last = length
            .checked_sub(1)
            .and_then(|length| ends.get(length))
            .copied()
            .unwrap_or(NOTHING);
        for _ in 0..MOST_ENDS {
            match higher.get(last) {
                Some(&next) if times.get(next).is_some_and(|next| next <= time) => last = next,
                _ => break,
            }
        }
        before.push(last);
        higher.push(ends.get(length).copied().unwrap_or(NOTHING));
        if length == ends.len() {
            ends.push(at);
        } else if let Some(end) = ends.get_mut(length) {
            *end = at;
        }
    }
    let mut kept = vec![None; times.len()];
    let mut at = ends.last().copied().unwrap_or(NOTHING);
    while let Some(&time) = times.get(at) {
        kept[at] = time;
        at = before[at];
    }
    let mut last = kept.iter().copied().find(Option::is_some).flatten();
    for (at, (time, kept)) in times.iter_mut().zip(kept).enumerate() {
        last = kept.or(last);
        if time.is_none() || !is_late(at) {
            *time = last;
        }
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3600;
    const DAY: i64 = 24 * HOUR;

    /// The times of logs by the final clock, in seconds. A record is its time, and the old time if the clock was set.
    fn placed(logs: &[&[(i64, Option<i64>)]]) -> Vec<Vec<i64>> {
        let stamps: Vec<_> = logs
            .iter()
            .zip(0..)
            .flat_map(|(records, log)| {
                records.iter().map(move |&(time, old)| Timed {
                    log,
                    number: None,
                    time: Some(time * SECOND),
                    change: old.map(|old| (old * SECOND, time * SECOND)),
                    is_late: false,
                })
            })
            .collect();
        let times = log_times(&stamps, Interrupt::NEVER).unwrap();
        let mut times = times.into_iter().map(|time| time.unwrap() / SECOND);
        logs.iter()
            .map(|log| times.by_ref().take(log.len()).collect())
            .collect()
    }

    fn plain(times: &[i64]) -> Vec<(i64, Option<i64>)> {
        times.iter().map(|&time| (time, None)).collect()
    }

    #[test]
    fn a_broken_time_moves_only_its_own_record() {
        assert_eq!(
            placed(&[&plain(&[10, 20, 9 * DAY, 30, -5, 40])]),
            [[10, 20, 20, 30, 30, 40]]
        );
        assert_eq!(placed(&[&plain(&[9 * DAY, 10, 20])]), [[10, 10, 20]]);
        assert_eq!(placed(&[&plain(&[10, -9 * DAY, 20])]), [[10, 10, 20]]);
    }

    #[test]
    fn without_a_record_of_the_change_the_fewest_records_move() {
        assert_eq!(
            placed(&[&plain(&[HOUR, HOUR + 5, 10, 300, 301])]),
            [[10, 10, 10, 300, 301]]
        );
    }

    #[test]
    fn a_record_without_a_time_has_that_before_it() {
        let stamp = |time| Timed {
            log: 1,
            time,
            ..Timed::default()
        };
        let times = log_times(&[None, Some(5), None, Some(7)].map(stamp), Interrupt::NEVER);
        assert_eq!(times, Ok(vec![Some(5), Some(5), Some(5), Some(7)]));
        assert_eq!(log_times(&[stamp(None)], Interrupt::NEVER), Ok(vec![None]));
        assert_eq!(log_times(&[], Interrupt::NEVER), Ok(vec![]));
    }

    #[test]
    fn numbers_of_events_tell_that_a_log_has_its_newest_record_first() {
        let stamp = |number, hours: i64, old: Option<i64>| Timed {
            log: 1,
            number: Some(number),
            time: Some(hours * HOUR * SECOND),
            change: old.map(|old| (old * HOUR * SECOND, hours * HOUR * SECOND)),
            is_late: false,
        };
        let log = [
            stamp(11, 10, None),
            stamp(27, 8, Some(10)),
            stamp(300, 9, None),
            stamp(301, 9, None),
        ];
        let mut newest_first = log;
        newest_first.reverse();
        let times = log_times(&log, Interrupt::NEVER).unwrap();
        assert_eq!(times, [8, 8, 9, 9].map(|hours| Some(hours * HOUR * SECOND)));
        let mut reversed = log_times(&newest_first, Interrupt::NEVER).unwrap();
        reversed.reverse();
        assert_eq!(reversed, times);
        // Cleared twice, a log of forwarded events has numbers from before and after.
        let cleared = [4, 5, 1, 2, 1].map(|number| stamp(number, 1, None));
        assert!(!is_newest_first(&cleared));
    }

    #[test]
    fn a_record_that_is_written_late_has_its_own_time() {
        let stamp = |time, old: Option<i64>, is_late| Timed {
            log: 1,
            number: None,
            time: Some(time),
            change: old.map(|old| (old, time)),
            is_late,
        };
        let log = [
            stamp(2 * HOUR * SECOND, None, false),
            stamp(HOUR * SECOND, Some(2 * HOUR * SECOND), false),
            stamp(HOUR * SECOND - 5, None, true),
            stamp(HOUR * SECOND + 5, None, false),
        ];
        let times = log_times(&log, Interrupt::NEVER).unwrap();
        assert_eq!(times, [0, 0, -5, 5].map(|after| Some(HOUR * SECOND + after)));
    }

    #[test]
    fn a_clock_that_was_set_back_is_undone() {
        let log = [
            (10 * HOUR, None),
            (10 * HOUR + 5, None),
            (9 * HOUR + 10, Some(10 * HOUR + 10)),
            (9 * HOUR + 50, None),
        ];
        assert_eq!(
            placed(&[&log]),
            [[9 * HOUR, 9 * HOUR + 5, 9 * HOUR + 10, 9 * HOUR + 50]]
        );
    }

    #[test]
    fn a_clock_that_was_set_for_seconds_is_undone() {
        let log = [
            (100 * DAY, None),
            (10 * DAY, Some(100 * DAY + 5)),
            (10 * DAY + 1, None),
            (50 * DAY, Some(10 * DAY + 5)),
            (50 * DAY + 9, None),
        ];
        assert_eq!(
            placed(&[&log]),
            [[50 * DAY - 10, 50 * DAY - 5, 50 * DAY - 4, 50 * DAY, 50 * DAY + 9]]
        );
    }

    #[test]
    fn another_log_follows_the_same_clock() {
        // The hour ran twice, and a third time. Only the first log says when.
        let first = [
            (8 * HOUR, None),
            (9 * HOUR, Some(10 * HOUR)),
            (9 * HOUR + 600, Some(10 * HOUR + 600)),
        ];
        let other = plain(&[
            9 * HOUR + 1800,
            9 * HOUR + 2400,
            9 * HOUR + 1200,
            9 * HOUR + 900,
            11 * HOUR,
        ]);
        let expected = [
            vec![6 * HOUR, 8 * HOUR, 9 * HOUR + 600],
            vec![
                7 * HOUR + 1800,
                7 * HOUR + 2400,
                8 * HOUR + 1200,
                9 * HOUR + 900,
                11 * HOUR,
            ],
        ];
        assert_eq!(placed(&[&first, &other]), expected);
    }

    #[test]
    fn two_logs_can_each_miss_a_change() {
        let first = [(0, None), (2 * HOUR, Some(HOUR)), (4 * HOUR, None)];
        let other = [
            (0, None),
            (2 * HOUR, Some(HOUR)),
            (HOUR, Some(5 * HOUR)),
            (2 * HOUR, None),
        ];
        assert_eq!(
            placed(&[&first, &other]),
            [
                vec![-3 * HOUR, -2 * HOUR, 0],
                vec![-3 * HOUR, -2 * HOUR, HOUR, 2 * HOUR]
            ]
        );
    }

    #[test]
    fn a_change_that_a_log_has_twice_is_one() {
        let log = [
            (9 * HOUR, None),
            (9 * HOUR, Some(10 * HOUR)),
            (9 * HOUR, Some(10 * HOUR)),
            (10 * HOUR, None),
        ];
        assert_eq!(placed(&[&log]), [[8 * HOUR, 9 * HOUR, 9 * HOUR, 10 * HOUR]]);
        let twice = [
            (9 * HOUR, Some(10 * HOUR)),
            (10 * HOUR, None),
            (9 * HOUR, Some(10 * HOUR)),
        ];
        assert_eq!(placed(&[&twice]), [[8 * HOUR, 9 * HOUR, 9 * HOUR]]);
    }

    #[test]
    fn numbers_of_logs_and_copies_decide_nothing() {
        let one = [(0, None), (2 * HOUR, Some(HOUR)), (4 * HOUR, None)];
        let other = [(0, None), (9 * HOUR, Some(3 * HOUR)), (10 * HOUR, None)];
        let [a, b] = <[_; 2]>::try_from(placed(&[&one, &other])).unwrap();
        assert_eq!(placed(&[&other, &one, &one]), [b, a.clone(), a]);
    }

    #[test]
    fn of_too_many_changes_the_largest_count() {
        let corrections = (0..3000).map(|number| (number * HOUR, Some(number * HOUR + 2)));
        let log: Vec<_> = corrections.chain([(0, Some(3000 * HOUR)), (5, None)]).collect();
        let placed = placed(&[&log]);
        assert_eq!(placed[0][3000..], [0, 5]);
        assert_eq!(placed[0][2999], -HOUR);
    }
}
