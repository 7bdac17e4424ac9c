//! Times without events, and records with a time that cannot be.

use evtx_format::{Interrupt, Interrupted};
use hashbrown::{HashMap, HashSet};

use crate::rows::{EventRow, Fact, Mark, Record, last};
use crate::runs::{DAY, SECOND, is_within, sort};

/// A record with a time that is far from those of its neighbours, among its two.
#[derive(Debug, Clone, Copy)]
struct Broken<'m, 'a> {
    before: Record<'a>,
    mark: &'m Mark<'a>,
    after: Record<'a>,
}

/// Whether a time is outside of those of its neighbours, of which some may not count.
fn is_outside(time: Option<i64>, near: impl Iterator<Item = Option<i64>> + Clone) -> bool {
    let near = near.flatten();
    time < near.clone().min() || near.max().is_some_and(|latest| time > Some(latest))
}

/// The places of the neighbours of a record in a log of so many: the two before it and the two after it.
fn neighbours(at: usize, records: usize) -> impl Iterator<Item = usize> + Clone {
    (at.saturating_sub(2)..(at + 3).min(records)).filter(move |&other| other != at)
}

/// The records of a log, in its order, whose time cannot be: no other record is within a month, and those around it have other times.
fn broken<'m, 'a>(log: &[&'m Mark<'a>]) -> Vec<Broken<'m, 'a>> {
    let mut times: Vec<_> = log.iter().filter_map(|mark| mark.record.time).collect();
    times.sort_unstable();
    let is_lonely = |time: i64| {
        let at = times.partition_point(|&other| other < time);
        let others = [at.checked_sub(1), Some(at + 1)]
            .into_iter()
            .flatten()
            .filter_map(|at| times.get(at));
        others.into_iter().all(|&other| other.abs_diff(time) > 30 * DAY)
    };
    let time = |at: usize| log[at].record.time;
    // The first and the last may have any time.
    let lonely: Vec<_> = (1..log.len().max(1) - 1)
        .filter(|&at| time(at).is_some_and(is_lonely))
        .collect();
    let is_far = |&&at: &&usize| is_outside(time(at), neighbours(at, log.len()).map(time));
    let far: HashSet<usize> = lonely.iter().filter(is_far).copied().collect();
    let near = |at: usize| neighbours(at, log.len()).map(|at| time(at).filter(|_| !far.contains(&at)));
    let broken = lonely
        .into_iter()
        .filter(|&at| far.contains(&at) || is_outside(time(at), near(at)));
    let of_log = |at: usize| Broken {
        before: log[at - 1].record,
        mark: log[at],
        after: log[at + 1].record,
    };
    broken.map(of_log).collect()
}

/// The spans that the clock of a machine jumped over, by their starts, each with the latest end so far.
type Jumps<'a> = HashMap<Option<&'a str>, Vec<(i64, i64)>>;

fn jumps<'a>(events: &[EventRow<'a>]) -> Jumps<'a> {
    let mut found = Jumps::new();
    for row in events {
        if let Some([old, new]) = row.clock {
            let span = (
                old.min(new).saturating_sub(60 * SECOND as i64),
                old.max(new).saturating_add(60 * SECOND as i64),
            );
            found.entry(row.computer).or_default().push(span);
        }
    }
    for spans in found.values_mut() {
        spans.sort_unstable();
        (1..spans.len()).for_each(|at| spans[at].1 = spans[at].1.max(spans[at - 1].1));
    }
    found
}

pub(crate) fn facts<'a>(
    events: &[EventRow<'a>],
    marks: &[Mark<'a>],
    interrupt: Interrupt<'_>,
) -> Result<Vec<Fact<'a>>, Interrupted> {
    let mut in_order: Vec<_> = marks.iter().collect();
    let place = |mark: &&Mark<'a>| (last(mark.record.file), last(mark.record.record_id), mark.record);
    sort(&mut in_order, place, interrupt)?;
    let jumps = jumps(events);
    let mut all = Vec::new();
    for log in in_order.chunk_by(|one, next| one.record.file == next.record.file) {
        interrupt.check()?;
        all.extend(broken(log).into_iter().filter(|Broken { mark, .. }| {
            let spans = jumps.get(&mark.computer).map_or(&[][..], Vec::as_slice);
            let before = &spans[..spans.partition_point(|&(start, _)| Some(start) <= mark.record.time)];
            mark.computer.is_some() && before.last().is_none_or(|&(_, end)| Some(end) < mark.record.time)
        }));
    }
    let records: HashSet<_> = all.iter().map(|broken| broken.mark.record).collect();
    let mut sound: Vec<_> = marks
        .iter()
        .filter(|mark| mark.computer.is_some() && !records.contains(&mark.record))
        .collect();
    sort(
        &mut sound,
        |mark| (mark.computer, last(mark.log_time), mark.record),
        interrupt,
    )?;
    let mut found = Vec::new();
    for (step, pair) in sound.windows(2).enumerate() {
        interrupt.check_step(step)?;
        let &[mark, next] = pair else { continue };
        if mark.computer != next.computer || is_within(DAY - 1, mark.log_time, next.log_time) {
            continue;
        }
        let Some((since, until)) = mark.log_time.zip(next.log_time) else {
            continue;
        };
        let days = until.abs_diff(since) / DAY;
        found.push(Fact {
            computer: mark.computer,
            topic: "gaps",
            level: if days >= 3 { "low" } else { "info" },
            fact: format!("No events for {days} day{}", if days == 1 { "" } else { "s" }).into(),
            first: mark.record.time,
            last: next.record.time,
            evidence: vec![mark.record, next.record],
            ..Fact::default()
        });
    }
    // Copies of a log have the same record.
    all.sort_unstable_by_key(|Broken { mark, .. }| mark.record);
    let mut known = HashSet::new();
    let key = |mark: &Mark<'a>| {
        (
            mark.computer,
            mark.record.record_id,
            mark.record.event_id,
            mark.record.time,
        )
    };
    let broken = all.into_iter().filter(|Broken { mark, .. }| known.insert(key(mark)));
    found.extend(broken.map(|Broken { before, mark, after }| Fact {
        computer: mark.computer,
        level: "low",
        fact: "Record with a time that cannot be".into(),
        evidence: vec![before, mark.record, after],
        ..Fact::of_records("clock", [mark.record].into_iter(), std::iter::empty())
    }));
    Ok(found)
}
