//! The place of each record among those of its machine: when it was written, and whether another record claims the place.

use std::collections::BTreeMap;

use evtx_format::search::lower_case;
use evtx_format::{Interrupt, Interrupted};
use hashbrown::{HashMap, HashSet};

use crate::clock::{Timed, log_times};
use crate::order::{last, sort, widen};

const SECOND: i64 = 1_000_000_000;

/// If Windows woke at most so long before or after the new time of a clock, nobody set the clock. In nanoseconds.
const WOKEN: i64 = 60 * SECOND;

/// A record of a log. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogRecord<'a> {
    /// A number for all that the record says. Copies of a record have the same.
    pub digest: i128,
    /// The machine.
    pub machine: Option<&'a str>,
    /// The channel, or else the provider.
    pub channel: Option<&'a str>,
    /// The file.
    pub file: Option<&'a str>,
    /// The ID of the record.
    pub record_id: Option<u64>,
    /// The number of its event in the log.
    pub number: Option<u64>,
    /// The time stamp.
    pub time: Option<i64>,
    /// The times before and after, if it says that the clock was set.
    pub change: [Option<i64>; 2],
    /// When Windows woke, if it says so.
    pub wake_time: Option<i64>,
    /// Whether it is written long after its time.
    pub is_late: bool,
}

/// The place of a record, and of its copies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// The machine.
    pub machine: Option<&'a str>,
    /// The time by the clock of the machine as it was set last.
    pub log_time: Option<i64>,
    /// Whether another record has its number, in a log of the same time.
    pub is_contested: bool,
    /// Whether Windows woke then, and nobody set the clock.
    pub is_woken: bool,
}

/// A log, and the records in it.
#[derive(Debug, Default)]
struct Log {
    records: usize,
    /// By the difference between the number of a record and that of its event: how many there are, and their first and last time.
    shifts: HashMap<i128, (usize, [Option<i64>; 2])>,
}

/// The copies of a record.
#[derive(Debug)]
struct Copies<'a> {
    place: Place<'a>,
    /// How many records the log has whose copy says when the record was written.
    records: usize,
    channel: usize,
    number: Option<u64>,
    /// The span of the logs of the copies.
    span: [Option<i64>; 2],
    /// The span of the times of the copies.
    times: [Option<i64>; 2],
}

/// The records that tell of a change of the clock when Windows woke. While Windows sleeps, or the machine that it runs in, time goes
/// on, and what is written when it wakes looks as if somebody had set the clock.
fn woken(records: &[LogRecord<'_>]) -> HashSet<i128> {
    let mut wakes: HashMap<&str, Vec<i64>> = HashMap::new();
    for record in records {
        if let Some((machine, wake)) = record.machine.zip(record.wake_time) {
            wakes.entry(machine).or_default().push(wake);
        }
    }
    wakes.values_mut().for_each(|wakes| wakes.sort_unstable());
    let is_woken = |record: &&LogRecord<'_>| {
        let known = record
            .machine
            .and_then(|machine| wakes.get(machine))
            .zip(record.change[1]);
        known.is_some_and(|(wakes, new)| {
            let until = new.saturating_add(WOKEN);
            let before = wakes[..wakes.partition_point(|&wake| wake <= until)].last();
            before.is_some_and(|wake| until.abs_diff(*wake) <= 2 * WOKEN as u64)
        })
    };
    records.iter().filter(is_woken).map(|record| record.digest).collect()
}

/// The places of records, by their digests.
///
/// # Errors
/// [`Interrupted`].
pub fn places<'a>(
    records: &[LogRecord<'a>],
    interrupt: Interrupt<'_>,
) -> Result<HashMap<i128, Place<'a>>, Interrupted> {
    let woken = woken(records);
    let mut channels: HashMap<Option<&str>, usize> = HashMap::new();
    let mut folded: HashMap<Option<String>, usize> = HashMap::new();
    for record in records {
        channels.entry(record.channel).or_insert_with(|| {
            let next = folded.len();
            *folded.entry(record.channel.map(lower_case)).or_insert(next)
        });
    }
    let mut in_order: Vec<(&LogRecord<'a>, usize)> = records
        .iter()
        .map(|record| (record, channels[&record.channel]))
        .collect();
    let place = |(record, channel): &(&LogRecord<'a>, usize)| {
        let log = (last(record.machine), last(record.file), *channel);
        let at = last(record.record_id.or(record.number));
        (
            log,
            at,
            last(record.time),
            record.change.map(last),
            record.is_late,
            record.digest,
        )
    };
    sort(&mut in_order, place, interrupt)?;

    let mut found: HashMap<i128, Copies<'a>> = HashMap::new();
    for of_machine in in_order.chunk_by(|(one, _), (next, _)| one.machine == next.machine) {
        add_machine(&mut found, of_machine, &woken, interrupt)?;
    }
    contest(&mut found, interrupt)?;
    Ok(found
        .into_iter()
        .map(|(digest, copies)| (digest, copies.place))
        .collect())
}

/// Adds the records of a machine, which follow each other in their logs.
fn add_machine<'a>(
    found: &mut HashMap<i128, Copies<'a>>,
    records: &[(&LogRecord<'a>, usize)],
    woken: &HashSet<i128>,
    interrupt: Interrupt<'_>,
) -> Result<(), Interrupted> {
    let mut logs: Vec<Log> = Vec::new();
    let mut timed = Vec::with_capacity(records.len());
    for of_log in records.chunk_by(|(one, channel), (next, other)| (one.file, channel) == (next.file, other)) {
        timed.extend(of_log.iter().map(|(record, _)| {
            Timed {
                log: logs.len() as u64,
                number: record.number,
                time: record.time,
                change: record.change[0]
                    .zip(record.change[1])
                    .filter(|_| !woken.contains(&record.digest)),
                is_late: record.is_late,
            }
        }));
        logs.push(Log {
            records: of_log.len(),
            ..Log::default()
        });
    }
    let times = log_times(&timed, interrupt)?;
    let shift = |record: &LogRecord<'_>| Some(i128::from(record.number?) - i128::from(record.record_id?));
    for (at, (record, _)) in records.iter().enumerate() {
        if let Some(shift) = shift(record) {
            let (count, span) = logs[timed[at].log as usize].shifts.entry(shift).or_default();
            *count += 1;
            widen(span, [times[at]; 2]);
        }
    }
    for (at, (record, channel)) in records.iter().enumerate() {
        interrupt.check_step(at)?;
        let log = &logs[timed[at].log as usize];
        // A log that was cleared has each number again later, and a log of forwarded events has those from before and after. An
        // export numbers records anew. In the other logs, most numbers of records differ from those of their events by the same.
        let span = shift(record).and_then(|shift| log.shifts.get(&shift));
        let span = span.filter(|(count, _)| 2 * count > log.records).map(|(_, span)| *span);
        let copies = found.entry(record.digest).or_insert_with(|| Copies {
            place: Place {
                machine: record.machine,
                is_woken: woken.contains(&record.digest),
                ..Place::default()
            },
            records: 0,
            channel: *channel,
            number: record.number,
            span: [None; 2],
            times: [None; 2],
        });
        // The largest log knows best when the record was written.
        let (is_larger, is_as_large) = (log.records > copies.records, log.records == copies.records);
        if times[at].is_some() && (is_larger || is_as_large && times[at] < copies.place.log_time) {
            (copies.records, copies.place.log_time) = (log.records, times[at]);
        }
        widen(&mut copies.span, span.unwrap_or_default());
        widen(&mut copies.times, [times[at]; 2]);
    }
    Ok(())
}

/// The start and the end of the span in which a record claims its place, and its digest.
type Claim = (Option<i64>, Option<i64>, i128);

/// Tells which records have a number that another one has, in a log of the same time.
fn contest(found: &mut HashMap<i128, Copies<'_>>, interrupt: Interrupt<'_>) -> Result<(), Interrupted> {
    let mut claims: BTreeMap<_, Vec<Claim>> = BTreeMap::new();
    for (&digest, copies) in &*found {
        if let Some(number) = copies.number {
            let [start, end] = [0, 1].map(|at| copies.span[at].or(copies.times[at]));
            let of = claims
                .entry((copies.place.machine, copies.channel, number))
                .or_default();
            of.push((start, end, digest));
        }
    }
    for (step, mut claims) in claims.into_values().filter(|claims| claims.len() > 1).enumerate() {
        interrupt.check_step(step)?;
        claims.sort_unstable_by_key(|&(start, end, digest)| (last(start), last(end), digest));
        let mut highest = None;
        for (at, &(start, end, digest)) in claims.iter().enumerate() {
            let reaches = start.is_some() && highest >= start;
            let is_reached = claims.get(at + 1).is_some_and(|next| next.0.is_some() && next.0 <= end);
            highest = highest.max(end);
            if let Some(copies) = found.get_mut(&digest) {
                copies.place.is_contested = reaches || is_reached;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(file: &'static str, digest: i128, number: u64, second: i64) -> LogRecord<'static> {
        LogRecord {
            digest,
            machine: Some("pc"),
            channel: Some("System"),
            file: Some(file),
            record_id: Some(number),
            number: Some(number),
            time: Some(second * SECOND),
            ..LogRecord::default()
        }
    }

    fn places_of(records: &[LogRecord<'static>]) -> HashMap<i128, Place<'static>> {
        places(records, Interrupt::NEVER).expect("no interrupt")
    }

    #[test]
    fn another_record_claims_the_place() {
        let log = [record("a", 1, 1, 10), record("a", 2, 2, 20), record("a", 3, 3, 30)];
        let contested = |other: &[LogRecord<'static>]| {
            let found = places_of(&[&log[..], other].concat());
            let digests = found
                .iter()
                .filter(|(_, place)| place.is_contested)
                .map(|(digest, _)| *digest);
            let mut digests: Vec<_> = digests.collect();
            digests.sort_unstable();
            digests
        };
        // A copy claims nothing, and neither does a record of a log that was cleared before.
        assert_eq!(contested(&[record("b", 2, 2, 20)]), []);
        assert_eq!(contested(&[record("b", 8, 2, 90)]), []);
        assert_eq!(contested(&[record("b", 8, 2, 15)]), [2, 8]);
        let other_case = LogRecord {
            channel: Some("SYSTEM"),
            ..record("b", 8, 2, 15)
        };
        assert_eq!(contested(&[other_case]), [2, 8]);
    }

    #[test]
    fn the_largest_log_tells_when() {
        let alone = record("b", 2, 2, 20);
        let set = LogRecord {
            change: [Some(20 * SECOND), Some(5 * SECOND)],
            ..record("a", 3, 3, 5)
        };
        let found = places_of(&[record("a", 1, 1, 10), record("a", 2, 2, 20), set, alone]);
        assert_eq!(found[&2].log_time, Some(5 * SECOND));
        // Nobody set the clock if Windows woke.
        let woke = LogRecord {
            wake_time: Some(6 * SECOND),
            ..set
        };
        let found = places_of(&[record("a", 1, 1, 1), record("a", 2, 2, 2), woke]);
        assert!(found[&3].is_woken && !found[&2].is_woken);
        assert_eq!(found[&2].log_time, Some(2 * SECOND));
    }
}
