//! What facts are made of, and what they are.

use std::borrow::Cow;
use std::cmp::Ordering;

use evtx_codes::LEVELS;
use evtx_format::search::lower_case;

pub(crate) use evtx_events::last;

use crate::runs::SECOND;

/// A record that a fact cites. Records are ordered by their members, and what is not known comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Record<'a> {
    /// The file.
    pub file: Option<&'a str>,
    /// The ID of the record.
    pub record_id: Option<u64>,
    /// The ID of the event.
    pub event_id: Option<u32>,
    /// The time stamp.
    pub time: Option<i64>,
}

impl Ord for Record<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |of: &Self| (last(of.file), last(of.record_id), last(of.event_id), last(of.time));
        // The closure has one lifetime for both.
        let (one, other): (_, (_, _, _, _)) = (key(self), key(other));
        one.cmp(&other)
    }
}

impl PartialOrd for Record<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Reasons to doubt a fact, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Doubts(u8);

impl Doubts {
    /// The texts of the bits, in alphabetical order.
    const TEXTS: [&'static str; 3] = [
        "another record has the place of this one",
        "claims to be this machine",
        "the order of the records suggests another time",
    ];

    fn new(doubts: [bool; 3]) -> Self {
        Doubts((0..3).filter(|&bit| doubts[bit]).map(|bit| 1 << bit).sum())
    }

    pub(crate) fn claims_own_name(self) -> bool {
        self.0 & 2 != 0
    }

    pub(crate) fn without_claim(self) -> Self {
        Doubts(self.0 & !2)
    }

    fn texts(self) -> Vec<&'static str> {
        let all = Self::TEXTS.iter().enumerate();
        all.filter(|(bit, _)| self.0 >> bit & 1 != 0)
            .map(|(_, text)| *text)
            .collect()
    }
}

/// The longest move of a time that raises no doubt, in nanoseconds. A correction of the clock moves all records before it.
const CORRECTION: u64 = 300 * SECOND;

/// Whether the order of the records moves a time.
fn is_moved(log_time: Option<i64>, time: Option<i64>) -> bool {
    let apart = log_time.zip(time);
    apart.is_some_and(|(log_time, time)| log_time.abs_diff(time) > CORRECTION)
}

/// An event with a topic, as the list of events has it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EventRow<'a> {
    pub(crate) record: Record<'a>,
    /// The machine, by its last name.
    pub(crate) computer: Option<&'a str>,
    /// The time by the clock as it was set last.
    pub(crate) log_time: Option<i64>,
    /// The number of the event in its log.
    pub(crate) number: Option<u64>,
    /// A number for all that the record says.
    pub(crate) digest: Option<u64>,
    pub(crate) provider: &'a str,
    pub(crate) event: Option<&'a str>,
    pub(crate) topic: &'a str,
    pub(crate) level: &'a str,
    pub(crate) account: Option<&'a str>,
    pub(crate) account_sid: Option<&'a str>,
    pub(crate) source: Option<&'a str>,
    pub(crate) target: Option<&'a str>,
    pub(crate) detail: Option<&'a str>,
    pub(crate) process: Option<&'a str>,
    pub(crate) logon_type: Option<&'a str>,
    /// The times of a clock before and after it was set.
    pub(crate) clock: Option<[i64; 2]>,
    /// Whether Windows woke then, and nobody set the clock.
    pub(crate) is_woken: bool,
    /// The time zone that Windows reports.
    pub(crate) zone: Option<&'a str>,
    /// The version of Windows that starts.
    pub(crate) version: Option<&'a str>,
    /// Whether another record has the place of this one.
    pub(crate) is_contested: bool,
    /// Whether the source has the name of this machine.
    pub(crate) claims_own_name: bool,
}

/// The events of a start of Windows, with their providers in lower case.
const STARTS: [(u32, &str); 4] = [
    (12, "microsoft-windows-kernel-general"),
    (6005, "eventlog"),
    (4608, "microsoft-windows-security-auditing"),
    (4826, "microsoft-windows-security-auditing"),
];

/// The events of the topic of failed logons that are one each. The others only sum them up.
const FAILURES: [u32; 10] = [4, 140, 1035, 4625, 4768, 4771, 4776, 18456, 20271, 33205];

impl<'a> EventRow<'a> {
    /// The place of the event in the order of all.
    pub(crate) fn place(&self) -> impl Ord + use<'a> {
        let Record { event_id, time, .. } = self.record;
        let log = (last(self.computer), last(self.log_time));
        (log, last(self.number), last(time), last(event_id), last(self.digest))
    }

    pub(crate) fn id(&self) -> u32 {
        self.record.event_id.unwrap_or_default()
    }

    pub(crate) fn is_start(&self) -> bool {
        STARTS
            .iter()
            .any(|&(id, provider)| id == self.id() && provider == lower_case(self.provider))
    }

    pub(crate) fn is_failure(&self) -> bool {
        self.topic == "failed logons" && FAILURES.contains(&self.id())
    }

    /// Whether somebody connected to Remote Desktop (131). Such events only tell where failures come from.
    pub(crate) fn is_connection(&self) -> bool {
        self.id() == 131 && self.event.is_some_and(|event| event.starts_with("RDP "))
    }

    pub(crate) fn doubts(&self) -> Doubts {
        let is_moved = is_moved(self.log_time, self.record.time);
        Doubts::new([self.is_contested, self.claims_own_name, is_moved])
    }
}

/// A logon.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogonRow<'a> {
    pub(crate) record: Record<'a>,
    pub(crate) computer: Option<&'a str>,
    pub(crate) log_time: Option<i64>,
    pub(crate) account: Option<&'a str>,
    pub(crate) account_sid: Option<&'a str>,
    pub(crate) source: Option<&'a str>,
    pub(crate) kind: &'a str,
    /// The name of the type of logon.
    pub(crate) logon_type: Option<&'a str>,
    pub(crate) method: Option<&'a str>,
    pub(crate) is_accepted: bool,
    pub(crate) is_contested: bool,
    pub(crate) claims_own_name: bool,
    /// The name that the client gave, if the source is an address that another record has, or the name is a former one of this machine.
    pub(crate) client: Option<&'a str>,
    /// The record of another event that has the address.
    pub(crate) addressing: Option<Record<'a>>,
    /// Whether it is a logon over the network that opens a session of Remote Desktop.
    pub(crate) is_opening: bool,
}

impl<'a> LogonRow<'a> {
    /// The source, and the name that the client gave.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        [self.source, self.client].into_iter().flatten()
    }

    /// The place of the logon in the order of all.
    pub(crate) fn place(&self) -> impl Ord + use<'a> {
        (last(self.computer), last(self.log_time), self.record)
    }

    pub(crate) fn doubts(&self) -> Doubts {
        let is_moved = is_moved(self.log_time, self.record.time);
        Doubts::new([self.is_contested, self.claims_own_name, is_moved])
    }
}

/// A record that marks how time goes on in its log.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mark<'a> {
    pub(crate) record: Record<'a>,
    /// The machine, by its last name.
    pub(crate) computer: Option<&'a str>,
    /// Its name in the record.
    pub(crate) name: Option<&'a str>,
    pub(crate) channel: Option<&'a str>,
    pub(crate) log_time: Option<i64>,
}

/// Something that happened.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)] // the columns of evtx_facts
pub struct Fact<'a> {
    pub computer: Option<&'a str>,
    pub topic: &'a str,
    pub level: &'a str,
    pub fact: Cow<'a, str>,
    pub first: Option<i64>,
    pub last: Option<i64>,
    pub events: u64,
    pub account: Option<&'a str>,
    pub account_sid: Option<&'a str>,
    pub source: Option<&'a str>,
    pub target: Option<&'a str>,
    pub detail: Option<Cow<'a, str>>,
    /// At most ten records.
    pub evidence: Vec<Record<'a>>,
    pub doubts: Vec<&'static str>,
}

/// How many records of a run are cited from its start. The last one comes with them.
pub(crate) const CITED: usize = 9;

impl<'a> Fact<'a> {
    /// A fact about records that follow each other: their times, how many there are, their evidence and doubts.
    pub(crate) fn of(topic: &'a str, rows: &[&EventRow<'a>]) -> Self {
        let records = rows.iter().map(|row| row.record);
        Fact {
            computer: rows.first().and_then(|row| row.computer),
            ..Fact::of_records(topic, records, rows.iter().map(|row| row.doubts()))
        }
    }

    /// The same of any records.
    pub(crate) fn of_records(
        topic: &'a str,
        records: impl Iterator<Item = Record<'a>> + Clone,
        doubts: impl Iterator<Item = Doubts>,
    ) -> Self {
        let times = records.clone().filter_map(|record| record.time);
        let bits = doubts.fold(0, |bits, doubts| bits | doubts.0);
        Fact {
            topic,
            level: "info",
            first: times.clone().min(),
            last: times.max(),
            events: records.clone().count() as u64,
            evidence: records.clone().take(CITED).chain(records.last()).collect(),
            doubts: Doubts(bits).texts(),
            ..Fact::default()
        }
    }
}

/// The higher of two levels.
pub(crate) fn higher<'a>(one: &'a str, other: &'a str) -> &'a str {
    let rank = |level| LEVELS.iter().position(|&known| known == level);
    if rank(other) > rank(one) { other } else { one }
}

/// Texts without those that repeat, in order, joined; `None` if there is none.
pub(crate) fn joined<'t>(texts: impl Iterator<Item = &'t str>) -> Option<String> {
    let mut texts: Vec<_> = texts.collect();
    texts.sort_unstable();
    texts.dedup();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// A number of seconds in words, with its two largest units: 3 d 4 h, 2 h 5 min, 45 s.
pub(crate) fn duration(seconds: f64) -> String {
    // The time between two records has at most 12 digits.
    let whole = seconds.round_ties_even() as i64;
    let units = [(86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")];
    match units.into_iter().find(|&(unit, ..)| seconds >= unit as f64) {
        Some((unit, name, part, of_part)) => format!("{} {name} {} {of_part}", whole / unit, whole % unit / part),
        None => format!("{whole} s"),
    }
}

/// The program of a path, or what follows the domain of a name.
pub(crate) fn last_part(path: &str) -> &str {
    path.rsplit('\\').next().unwrap_or_default()
}

/// The name of an account without its domain, in lower case.
pub(crate) fn plain_name(account: &str) -> String {
    lower_case(last_part(account).split('@').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        let of = |seconds| duration(seconds);
        assert_eq!(
            [of(45.0), of(7_500.0), of(273_600.0), of(59.6), of(61.2)],
            ["45 s", "2 h 5 min", "3 d 4 h", "60 s", "1 min 1 s"]
        );
    }

    #[test]
    fn names_of_accounts_lose_their_domain() {
        for account in [r"NORTHWIND\Anna", "anna@northwind.example", r"A@B\ANNA", "anna@b@c"] {
            assert_eq!(plain_name(account), "anna", "{account}");
        }
    }

    #[test]
    fn what_is_unknown_comes_last() {
        let known = Record {
            file: Some("b"),
            ..Record::default()
        };
        assert!(known < Record::default());
    }
}
