//! Bursts: what correlations find.

use std::collections::BTreeSet;

use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashSet;

use super::events::{Events, Found};
use super::fields::Target;
use super::hits::Row;
use super::model::{Correlation, CorrelationKind, RecordLocation};
use super::resolve::Correlations;
use super::table::Table;
use super::windows::{Entry, NO_VALUE};
use crate::limits::Limits;

/// Hits that together meet the condition of a correlation.
#[derive(Debug, Clone, PartialEq)]
pub struct Burst {
    /// The index of the correlation.
    pub correlation: u32,
    /// The time of the first hit, in ns since 1970.
    pub first: i64,
    /// The time of the last hit, in ns since 1970.
    pub last: i64,
    /// The number of hits: of events, or for a correlation of correlations, of their bursts.
    pub count: u64,
    /// The sum, average, percentile, or number of values that met the condition.
    pub value: Option<f64>,
    /// The distinct values that were counted, in the order of their bytes, at most [`Limits::BURST_VALUES`].
    pub values: Vec<String>,
    /// The fields of `group-by` and what all hits have there.
    pub group: Vec<(String, Option<String>)>,
    /// The index of the rule and the location of each record, in the order of time. At most [`Limits::BURST_RECORDS`].
    pub records: Vec<(u32, RecordLocation)>,
    /// The location of the last record.
    pub location: RecordLocation,
}

impl Burst {
    /// The bytes of memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        let values = self.values.iter().map(|value| size_of::<String>() + value.len());
        let group = self.group.iter();
        let group = group.map(|(field, value)| 48 + field.len() + value.as_ref().map_or(0, String::len));
        let records = self.records.len() * size_of::<(u32, RecordLocation)>();
        size_of::<Burst>() + records + values.chain(group).sum::<usize>()
    }
}

/// Makes the bursts of a correlation from the hits of its windows.
pub(super) struct Bursts<'a> {
    pub(super) table: &'a Table,
    pub(super) correlations: &'a Correlations,
    pub(super) index: u32,
    pub(super) events: &'a Events,
    pub(super) interrupt: Interrupt<'a>,
}

/// A record of a burst, sorted by time.
type Record = (i64, RecordLocation, u32);

impl Bursts<'_> {
    fn correlation(&self) -> &Correlation {
        &self.correlations.all()[self.index as usize]
    }

    /// Makes a burst. There is at least one hit.
    pub(super) fn burst(&self, entries: &[Entry], number: f64) -> Result<Burst, Interrupted> {
        let correlation = self.correlation();
        let counts = match correlation.kind {
            CorrelationKind::EventCount | CorrelationKind::Temporal { .. } | CorrelationKind::TemporalOrdered => None,
            _ => Some(number),
        };
        let (first, last) = self.times(entries)?;
        let (records, location) = self.records(entries)?;
        let values = match correlation.kind {
            CorrelationKind::ValueCount => self.values(entries)?,
            _ => Vec::new(),
        };
        let group = self.table.texts(entries[0].group);
        Ok(Burst {
            correlation: self.index,
            first,
            last,
            count: entries.len() as u64,
            value: counts,
            values,
            group: correlation.group_by.iter().cloned().zip(group).collect(),
            records,
            location,
        })
    }

    /// Keeps a burst for other correlations. Returns whether there is room.
    pub(super) fn keep(&self, entries: &[Entry], found: &mut Found) -> Result<bool, Interrupted> {
        let start = found.leaves.len();
        for (index, entry) in entries.iter().enumerate() {
            self.interrupt.check_step(index)?;
            let leaves = self.leaves(entry);
            if found.leaves.len() + leaves.len() > Limits::HITS {
                return Ok(false);
            }
            found.leaves.extend_from_slice(leaves);
        }
        let (first, last) = self.times(entries)?;
        found.bursts.push((first, last, start..found.leaves.len()));
        Ok(true)
    }

    /// The time of the first and the last hit.
    fn times(&self, entries: &[Entry]) -> Result<(i64, i64), Interrupted> {
        let mut times = (i64::MAX, i64::MIN);
        for (index, entry) in entries.iter().enumerate() {
            self.interrupt.check_step(index)?;
            let (first, last) = match self.target(entry) {
                Target::Rule(_) => (entry.time, entry.time),
                Target::Correlation(_) => self.events.times(entry.source),
            };
            times = (times.0.min(first), times.1.max(last));
        }
        Ok(times)
    }

    fn target(&self, entry: &Entry) -> Target {
        self.correlations.targets[self.index as usize][usize::from(entry.reference)]
    }

    /// The hits of rules that an entry stands for.
    fn leaves<'b>(&'b self, entry: &'b Entry) -> &'b [u32] {
        match self.target(entry) {
            Target::Rule(_) => std::slice::from_ref(&entry.source),
            Target::Correlation(_) => self.events.leaves(entry.source),
        }
    }

    /// The first records, and the location of the last one.
    fn records(&self, entries: &[Entry]) -> Result<(Vec<(u32, RecordLocation)>, RecordLocation), Interrupted> {
        let mut records: BTreeSet<Record> = BTreeSet::new();
        let mut last: Option<Record> = None;
        let latest = entries.last().map_or(i64::MIN, |entry| entry.time);
        let mut steps = 0_usize;
        for entry in entries {
            let is_full = records.len() >= Limits::BURST_RECORDS;
            let is_rule = matches!(self.target(entry), Target::Rule(_));
            let is_later = records.last().is_some_and(|(time, ..)| *time < entry.time);
            // Most hits of a long window are neither among the first nor the last.
            let hits = if is_full && is_rule && is_later && entry.time < latest {
                &[]
            } else {
                self.leaves(entry)
            };
            steps += 1;
            for hit in hits {
                steps += 1;
                self.interrupt.check_step(steps)?;
                let (Row { time, location }, rule) = self.table.row(*hit);
                let record = (time, location, rule);
                last = last.max(Some(record));
                if records.len() < Limits::BURST_RECORDS || records.last().is_some_and(|known| record < *known) {
                    records.insert(record);
                }
                if records.len() > Limits::BURST_RECORDS {
                    records.pop_last();
                }
            }
        }
        let location = last.map_or(RecordLocation::NONE, |(_, location, _)| location);
        let records = records
            .into_iter()
            .map(|(_, location, rule)| (rule, location))
            .collect();
        Ok((records, location))
    }

    fn values(&self, entries: &[Entry]) -> Result<Vec<String>, Interrupted> {
        let mut known = HashSet::new();
        let mut values = BTreeSet::new();
        for (index, entry) in entries.iter().enumerate() {
            self.interrupt.check_step(index)?;
            if entry.value == NO_VALUE || !known.insert(entry.value) {
                continue;
            }
            let texts = self.table.texts(entry.value).into_iter().flatten();
            values.insert(texts.collect::<Vec<_>>().join(", "));
            if values.len() > Limits::BURST_VALUES {
                values.pop_last();
            }
        }
        Ok(values.into_iter().collect())
    }
}
