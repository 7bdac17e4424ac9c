//! What the records of an hour say of their log, and those at its ends, which tell how time goes on: there can be any number of records.

use std::borrow::Cow;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::machines::ComputerName;
use crate::order::{least, widen};
use crate::stamp::Columns;

/// An hour, in nanoseconds.
const HOUR: i64 = 3_600_000_000_000;

/// How far the first record of an hour may be from its least time, in nanoseconds, and still tell nothing else.
const NEAR: i64 = 300_000_000_000;

/// How many records of an hour are kept until those at its ends are chosen.
const KEPT: usize = 12;

/// A record at the end of an hour.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)] // the columns of read_evtx
pub struct HourEnd<'a> {
    pub time: i64,
    pub record_id: Option<u64>,
    pub event_record_id: Option<u64>,
    pub event_id: Option<u32>,
    pub provider: Option<Cow<'a, str>>,
}

/// The records of a log within an hour that have the same name of a computer, or those without a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogHour<'a> {
    /// The file.
    pub filename: Option<Cow<'a, str>>,
    /// The name of the computer.
    pub computer: Option<Cow<'a, str>>,
    /// The channel.
    pub channel: Option<Cow<'a, str>>,
    /// The number of the hour.
    hour: Option<i64>,
    records: u64,
    numbers: [Option<u64>; 2],
    times: [Option<i64>; 2],
    shifts: [Option<i128>; 2],
    /// The records at its ends. Two of each, or else a broken time between them would weigh as much.
    pub ends: Vec<HourEnd<'a>>,
}

impl<'a> LogHour<'a> {
    /// The file, the computer, the channel and the hour.
    fn key(&self) -> Key<'a> {
        (
            [&self.filename, &self.computer, &self.channel].map(Option::clone),
            self.hour,
        )
    }

    /// Adds what other records of the hour say.
    fn widen(&mut self, records: u64, numbers: [Option<u64>; 2], times: [Option<i64>; 2], shifts: [Option<i128>; 2]) {
        let end = |numbers: [Option<u64>; 2], times: [Option<i64>; 2], at: usize| Some((numbers[at]?, times[at]));
        let low = least(end(self.numbers, self.times, 0), end(numbers, times, 0));
        let high = end(self.numbers, self.times, 1).max(end(numbers, times, 1));
        self.records = self.records.saturating_add(records);
        self.numbers = [low, high].map(|end| end.map(|(number, _)| number));
        self.times = [low, high].map(|end| end.and_then(|(_, time)| time));
        widen(&mut self.shifts, shifts);
    }

    /// Adds a record that may be at its ends.
    fn keep(&mut self, end: HourEnd<'a>) {
        self.ends.push(end);
        if self.ends.len() > KEPT {
            self.choose(0);
        }
    }

    /// Leaves of the records those at its ends. The first and the last in the order of the log are among them if their times are further
    /// than this from the others.
    fn choose(&mut self, distance: i64) {
        self.ends.sort_unstable();
        self.ends.dedup();
        let [Some(earliest), Some(latest)] = [self.ends.first(), self.ends.last()].map(|end| Some(end?.time)) else {
            return;
        };
        let placed = || self.ends.iter().enumerate().filter(|(_, end)| end.record_id.is_some());
        let first = placed()
            .min_by_key(|(_, end)| end.record_id)
            .filter(|(_, end)| end.time.saturating_sub(earliest) > distance);
        let last = placed()
            .max_by_key(|(_, end)| end.record_id)
            .filter(|(_, end)| latest.saturating_sub(end.time) > distance);
        let [first, last] = [first, last].map(|end| end.map(|(at, _)| at));
        let count = self.ends.len();
        let mut at = 0..;
        self.ends.retain(|_| {
            at.next()
                .is_some_and(|at| at < 2 || at + 2 >= count || [first, last].contains(&Some(at)))
        });
    }

    /// What it says of the name of the computer.
    pub fn name(&self) -> Option<ComputerName<'_>> {
        Some(ComputerName {
            file: self.filename.as_deref().unwrap_or_default(),
            computer: self.computer.as_deref()?,
            channel: self.channel.as_deref(),
            records: self.records,
            numbers: self.numbers,
            times: self.times,
            shifts: self.shifts,
            ..ComputerName::default()
        })
    }
}

/// The file, the computer, the channel and the hour.
type Key<'a> = ([Option<Cow<'a, str>>; 3], Option<i64>);

/// The hours of some logs.
#[derive(Debug, Default)]
pub struct LogHours<'a> {
    hours: Vec<LogHour<'a>>,
    places: HashMap<Key<'a>, usize>,
    /// The place of the last that was used. Most records are of the same hour as the one before them.
    last: usize,
}

impl<'a> LogHours<'a> {
    fn hour(&mut self, key: Key<'a>) -> &mut LogHour<'a> {
        if self.hours.get(self.last).is_none_or(|hour| hour.key() != key) {
            let hours = &mut self.hours;
            self.last = *self.places.entry(key).or_insert_with_key(|key| {
                let ([filename, computer, channel], hour) = key.clone();
                hours.push(LogHour {
                    filename,
                    computer,
                    channel,
                    hour,
                    ..LogHour::default()
                });
                hours.len() - 1
            });
        }
        &mut self.hours[self.last]
    }

    /// Adds a record. Without the ends of hours, all records of a log are of one.
    pub fn add(&mut self, filename: Option<&'a str>, record_id: Option<u64>, of: &Columns<'a>, has_ends: bool) {
        let (time, number) = (of.time_created, of.event_record_id);
        let shift = number
            .zip(record_id)
            .map(|(number, id)| i128::from(number) - i128::from(id));
        let texts = [filename, of.computer, of.channel].map(|text| text.map(Cow::Borrowed));
        let end = time.filter(|_| has_ends);
        let hour = self.hour((texts, end.map(|time| time.div_euclid(HOUR))));
        hour.widen(1, [number; 2], [number.and(time); 2], [shift; 2]);
        if let Some(time) = end {
            hour.keep(HourEnd {
                time,
                record_id,
                event_record_id: number,
                event_id: of.event_id,
                provider: of.provider.map(Cow::Borrowed),
            });
        }
    }

    /// A line for each hour.
    pub fn into_lines(self) -> impl Iterator<Item = String> {
        self.hours.into_iter().filter_map(|mut hour| {
            hour.choose(0);
            serde_json::to_string(&hour).ok()
        })
    }

    /// Adds the hour of such a line.
    ///
    /// # Errors
    /// If it is none.
    pub fn read(&mut self, line: &str) -> Result<(), String> {
        let read: LogHour<'_> =
            serde_json::from_str(line).map_err(|error| format!("not of evtx_log_hours: {error}"))?;
        let hour = self.hour(read.key());
        hour.widen(read.records, read.numbers, read.times, read.shifts);
        read.ends.into_iter().for_each(|end| hour.keep(end));
        Ok(())
    }

    /// The hours.
    pub fn into_hours(mut self) -> Vec<LogHour<'a>> {
        self.hours.iter_mut().for_each(|hour| hour.choose(NEAR));
        self.hours
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours<'a>(records: impl Iterator<Item = (Option<u64>, Option<i64>)>) -> LogHours<'a> {
        let mut hours = LogHours::default();
        for (number, time) in records {
            let of = Columns {
                computer: Some("pc"),
                channel: Some("a \"b\""),
                event_record_id: number.map(|number| number + 3),
                time_created: time,
                ..Columns::default()
            };
            hours.add(Some("log"), number, &of, true);
        }
        hours
    }

    fn ends(hour: &LogHour<'_>) -> Vec<i64> {
        hour.ends.iter().map(|end| end.time).collect()
    }

    #[test]
    fn an_hour_has_its_ends_and_those_of_its_log() {
        // The clock was set back by more than half an hour.
        let second = |at: u64| at as i64 * 3 + if at > 600 { -1_600 } else { 600 };
        let records = (0..1_000).map(|at| (Some(at), Some(second(at) * 1_000_000_000)));
        let records: Vec<_> = records
            .chain([(Some(1_000), None), (None, Some(0)), (None, None)])
            .collect();
        let [whole, lines] = [&records[..], &[]].map(|records| hours(records.iter().copied()));
        let mut lines = lines;
        for part in records.chunks(7) {
            for line in hours(part.iter().copied()).into_lines() {
                lines.read(&line).expect("a line");
            }
        }
        let [mut whole, mut parts] = [whole, lines].map(LogHours::into_hours);
        for hours in [&mut whole, &mut parts] {
            hours.sort_by_key(|hour| hour.hour);
        }
        assert_eq!(whole, parts);
        let [without, hour] = &whole[..] else {
            panic!("{whole:?}")
        };
        let names = [without, hour].map(|hour| hour.name().expect("a name"));
        assert_eq!(
            names.map(|name| (name.records, name.numbers, name.times)),
            [
                (2, [Some(1_003); 2], [None; 2]),
                (
                    1_001,
                    [Some(3), Some(1_002)],
                    [Some(600_000_000_000), Some(1_397_000_000_000)]
                ),
            ]
        );
        assert_eq!((names[0].shifts, ends(without)), ([Some(3); 2], vec![]));
        assert_eq!(
            ends(hour),
            [0, 203, 600, 1_397, 2_397, 2_400].map(|second| second * 1_000_000_000)
        );
        assert!(LogHours::default().read("{}").is_err());
    }
}
