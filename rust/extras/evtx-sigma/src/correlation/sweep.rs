//! Finds the bursts of all correlations.

use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashSet;

use super::burst::{Burst, Bursts};
use super::events::{Events, Found};
use super::fields::Target;
use super::hits::Hits;
use super::model::{Correlation, CorrelationKind};
use super::order::sort;
use super::resolve::Correlations;
use super::sums::millionths;
use super::table::Table;
use super::windows::{Entry, NO_VALUE, windows};
use crate::error::Problem;
use crate::limits::Limits;

/// Bursts, and what is wrong with correlations, by their index.
pub type BurstsAndProblems = (Vec<Burst>, Vec<(u32, Problem)>);

impl Correlations {
    /// Finds the bursts of the correlations that are not silent, sorted by location and correlation. Also returns what
    /// is wrong with correlations: those with too many hits have no bursts, and of those with too many bursts, some are
    /// left out. `hits` are those of all threads, in any order.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub fn sweep(&self, hits: Vec<Hits>, interrupt: Interrupt<'_>) -> Result<BurstsAndProblems, Interrupted> {
        let mut sweep = Sweep {
            correlations: self,
            table: &Table::new(self, hits, interrupt)?,
            found: self.all().iter().map(|_| Found::default()).collect(),
            problems: self.all().iter().map(|_| None).collect(),
            bursts: Vec::new(),
            bytes: 0,
            interrupt,
        };
        for index in &self.order {
            let swept = sweep.correlation(*index)?;
            sweep.problems[*index as usize] = swept.err();
        }
        let Sweep { bursts, problems, .. } = sweep;
        let mut order: Vec<_> = (0..bursts.len() as u32)
            .map(|index| {
                (
                    bursts[index as usize].location,
                    bursts[index as usize].correlation,
                    index,
                )
            })
            .collect();
        sort(&mut order, interrupt)?;
        let mut taken: Vec<_> = bursts.into_iter().map(Some).collect();
        let bursts = order
            .iter()
            .filter_map(|(.., index)| taken[*index as usize].take())
            .collect();
        let problems = problems.into_iter().enumerate();
        let problems = problems.filter_map(|(index, problem)| Some((index as u32, problem?)));
        Ok((bursts, problems.collect()))
    }
}

struct Sweep<'a> {
    correlations: &'a Correlations,
    table: &'a Table,
    /// By correlation, what others need.
    found: Vec<Found>,
    problems: Vec<Option<Problem>>,
    bursts: Vec<Burst>,
    /// The bytes that the bursts take.
    bytes: usize,
    interrupt: Interrupt<'a>,
}

/// Whether a correlation could be swept, unless it was interrupted.
type Swept = Result<Result<(), Problem>, Interrupted>;

const TOO_MANY: Problem = Problem::limit(
    "hits of a correlation, or the memory for them is used up; choose fewer rules or files",
    Limits::HITS,
);

impl Sweep<'_> {
    fn correlation(&mut self, index: u32) -> Swept {
        let correlation = &self.correlations.all()[index as usize];
        let mut events = Events::default();
        let mut entries = match self.entries(index, &mut events)? {
            Ok(entries) => entries,
            Err(problem) => return Ok(Err(problem)),
        };
        sort(&mut entries, self.interrupt)?;
        if correlation.counts_records() && correlation.references.len() > 1 {
            entries = self.distinct_records(index, &entries)?;
        }
        let numbers = self.numbers(correlation, &mut entries)?;
        let bursts = Bursts {
            table: self.table,
            correlations: self.correlations,
            index,
            events: &events,
            interrupt: self.interrupt,
        };
        let is_used = self.correlations.targets.iter().flatten();
        let is_used = is_used.into_iter().any(|target| *target == Target::Correlation(index));
        let is_shown = !self.correlations.is_silent_correlation(index);
        let (mut found, mut count, mut problem) = (Found::default(), 0, None);
        let (all, bytes) = (&mut self.bursts, &mut self.bytes);
        windows(
            correlation,
            &entries,
            numbers,
            self.interrupt,
            &mut |entries, number| {
                if is_used && problem.is_none() && !bursts.keep(entries, &mut found)? {
                    problem = Some(TOO_MANY);
                }
                if !is_shown {
                    return Ok(());
                }
                count += 1;
                if count > Limits::BURSTS {
                    problem.get_or_insert(Problem::limit("bursts of a correlation", Limits::BURSTS));
                    return Ok(());
                }
                if *bytes >= Limits::BURST_BYTES {
                    problem.get_or_insert(Problem::limit("bytes of all bursts", Limits::BURST_BYTES));
                    return Ok(());
                }
                let burst = bursts.burst(entries, number)?;
                *bytes += burst.bytes();
                all.push(burst);
                Ok(())
            },
        )?;
        self.found[index as usize] = found;
        Ok(problem.map_or(Ok(()), Err))
    }

    /// The hits of a correlation, not sorted.
    fn entries(&self, index: u32, events: &mut Events) -> Result<Result<Vec<Entry>, Problem>, Interrupted> {
        let mut entries = Vec::new();
        for (reference, target) in self.correlations.targets[index as usize].iter().enumerate() {
            let reference = reference as u16;
            let is_full = match *target {
                Target::Rule(rule) => !self.hits_of(rule, index, reference, &mut entries)?,
                Target::Correlation(other) => {
                    if let Some(problem) = &self.problems[other as usize] {
                        let title = &self.correlations.all()[other as usize].about.title;
                        let why = format!("this correlation refers to \"{title}\", of which {problem}");
                        return Ok(Err(Problem::text(why)));
                    }
                    let of = (self.table, self.correlations, index);
                    !events.add(&self.found[other as usize], reference, of, &mut entries, self.interrupt)?
                }
            };
            if is_full {
                return Ok(Err(TOO_MANY));
            }
        }
        Ok(Ok(entries))
    }

    /// Adds the hits of a rule. Returns whether there is room.
    fn hits_of(&self, rule: u32, index: u32, reference: u16, entries: &mut Vec<Entry>) -> Result<bool, Interrupted> {
        let Some(base) = self.correlations.base(rule) else {
            return Ok(true);
        };
        let Some(one) = self.correlations.plans[base as usize].of(index) else {
            return Ok(true);
        };
        let count = self.table.count(base);
        if self.table.has_too_many(base) || entries.len() + count > Limits::HITS {
            return Ok(false);
        }
        entries.reserve_exact(count);
        for (step, hit) in self.table.hits(base).enumerate() {
            self.interrupt.check_step(step)?;
            entries.push(Entry {
                group: self.table.number(hit, one.group),
                time: self.table.row(hit).0.time,
                reference,
                source: hit,
                value: one.value.map_or(NO_VALUE, |list| self.table.value(hit, list)),
            });
        }
        Ok(true)
    }

    /// Keeps one hit of each record, that of the first reference.
    fn distinct_records(&self, index: u32, entries: &[Entry]) -> Result<Vec<Entry>, Interrupted> {
        let targets = &self.correlations.targets[index as usize];
        let mut kept = Vec::with_capacity(entries.len());
        let mut locations = HashSet::new();
        for same in entries.chunk_by(|one, other| (one.group, one.time) == (other.group, other.time)) {
            locations.clear();
            for (step, entry) in same.iter().enumerate() {
                self.interrupt.check_step(step)?;
                let is_rule = matches!(targets[usize::from(entry.reference)], Target::Rule(_));
                if same.len() == 1 || !is_rule || locations.insert(self.table.row(entry.source).0.location) {
                    kept.push(*entry);
                }
            }
        }
        Ok(kept)
    }

    /// For correlations of numbers, replaces values by ranks. Returns the numbers, sorted and distinct.
    fn numbers(&self, correlation: &Correlation, entries: &mut [Entry]) -> Result<Vec<i128>, Interrupted> {
        let is_numeric = !matches!(
            correlation.kind,
            CorrelationKind::EventCount
                | CorrelationKind::ValueCount
                | CorrelationKind::ValueShare { .. }
                | CorrelationKind::Temporal { .. }
                | CorrelationKind::TemporalOrdered
        );
        if !is_numeric {
            return Ok(Vec::new());
        }
        let mut values = Vec::with_capacity(entries.len());
        values.extend(entries.iter().map(|entry| entry.value));
        sort(&mut values, self.interrupt)?;
        values.dedup();
        let mut parsed = Vec::with_capacity(values.len());
        for (step, value) in values.iter().enumerate() {
            self.interrupt.check_step(step)?;
            let texts = (*value != NO_VALUE).then(|| self.table.texts(*value));
            parsed.push(texts.and_then(|texts| millionths(texts.first()?.as_deref()?)));
        }
        let mut numbers = Vec::with_capacity(parsed.len());
        numbers.extend(parsed.iter().flatten());
        sort(&mut numbers, self.interrupt)?;
        numbers.dedup();
        for (step, entry) in entries.iter_mut().enumerate() {
            self.interrupt.check_step(step)?;
            let number = values.binary_search(&entry.value).ok().and_then(|index| parsed[index]);
            let rank = number.map(|number| numbers.partition_point(|known| *known < number) as u32);
            entry.value = rank.unwrap_or(NO_VALUE);
        }
        Ok(numbers)
    }
}
