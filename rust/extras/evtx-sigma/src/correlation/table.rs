//! The hits of all threads together.

use evtx_format::{Interrupt, Interrupted};

use super::fields::RulePlan;
use super::hits::{Hits, Row, RuleHits};
use super::resolve::Correlations;
use super::texts::Texts;
use super::windows::NO_VALUE;
use crate::limits::Limits;

/// The hits of all threads, numbered.
pub(super) struct Table {
    threads: Vec<Thread>,
    /// The hits of one rule and thread, by their first number.
    segments: Vec<Segment>,
    texts: Texts,
    /// By the index of a plan: whether there are too many hits.
    too_many: Vec<bool>,
}

struct Thread {
    rules: Vec<RuleHits>,
    /// The number in `Table::texts` of each number of the thread.
    numbers: Vec<u32>,
}

struct Segment {
    start: u32,
    thread: usize,
    plan: usize,
    rule: u32,
}

impl Table {
    pub(super) fn new(
        correlations: &Correlations,
        hits: Vec<Hits>,
        interrupt: Interrupt<'_>,
    ) -> Result<Table, Interrupted> {
        let mut table = Table {
            threads: Vec::new(),
            segments: Vec::new(),
            texts: Texts::default(),
            too_many: vec![false; correlations.plans.len()],
        };
        let mut counts = vec![0_u64; correlations.plans.len()];
        for hits in hits {
            for (plan, rule) in hits.rules.iter().enumerate() {
                counts[plan] += rule.count;
                table.too_many[plan] |= rule.is_cut || counts[plan] > Limits::HITS as u64;
            }
            table.add(hits, interrupt)?;
        }
        let mut start = 0_u32;
        for (plan, of_plan) in correlations.plans.iter().enumerate() {
            for (thread, of_thread) in table.threads.iter_mut().enumerate() {
                let hits = &mut of_thread.rules[plan];
                let length = hits.rows.len() as u32;
                match start.checked_add(length) {
                    Some(end) if !table.too_many[plan] => {
                        let rule = of_plan.rule;
                        table.segments.push(Segment {
                            start,
                            thread,
                            plan,
                            rule,
                        });
                        start = end;
                    }
                    _ => {
                        table.too_many[plan] = true;
                        *hits = RuleHits::default();
                    }
                }
            }
        }
        Ok(table)
    }

    /// Takes the hits of a thread.
    fn add(&mut self, hits: Hits, interrupt: Interrupt<'_>) -> Result<(), Interrupted> {
        let Hits { rules, texts, .. } = hits;
        let mut numbers = Vec::new();
        if self.threads.is_empty() {
            numbers.extend(0..texts.len() as u32);
            self.texts = texts;
        } else {
            for number in 0..texts.len() as u32 {
                interrupt.check_step(number as usize)?;
                numbers.push(self.texts.number(texts.list(number)));
            }
        }
        self.threads.push(Thread { rules, numbers });
        Ok(())
    }

    /// Whether a rule, by the index of its plan, has too many hits.
    pub(super) fn has_too_many(&self, plan: u32) -> bool {
        self.too_many[plan as usize]
    }

    /// The hits of a rule, by the index of its plan.
    pub(super) fn hits(&self, plan: u32) -> impl Iterator<Item = u32> {
        let segments = self
            .segments
            .iter()
            .filter(move |segment| segment.plan == plan as usize);
        segments.flat_map(|segment| {
            let rows = self.threads[segment.thread].rules[segment.plan].rows.len() as u32;
            segment.start..segment.start + rows
        })
    }

    /// How many hits a rule has.
    pub(super) fn count(&self, plan: u32) -> usize {
        self.threads
            .iter()
            .map(|thread| thread.rules[plan as usize].rows.len())
            .sum()
    }

    fn find(&self, hit: u32) -> (&Segment, &RuleHits, usize) {
        // Segments without hits have the same start as the one after them.
        let after = self.segments.partition_point(|segment| segment.start <= hit);
        let segment = &self.segments[after - 1];
        let hits = &self.threads[segment.thread].rules[segment.plan];
        (segment, hits, (hit - segment.start) as usize)
    }

    /// A hit, and its rule.
    pub(super) fn row(&self, hit: u32) -> (Row, u32) {
        let (segment, hits, index) = self.find(hit);
        (hits.rows[index], segment.rule)
    }

    /// The plan of a hit's rule.
    pub(super) fn plan<'a>(&self, correlations: &'a Correlations, hit: u32) -> &'a RulePlan {
        &correlations.plans[self.find(hit).0.plan]
    }

    /// The number of the texts of a list of fields.
    pub(super) fn number(&self, hit: u32, list: u16) -> u32 {
        let (segment, hits, index) = self.find(hit);
        let lists = hits.numbers.len() / hits.rows.len();
        self.threads[segment.thread].numbers[hits.numbers[index * lists + usize::from(list)] as usize]
    }

    /// As [`number`](Self::number), or [`NO_VALUE`] if one of the texts is missing.
    pub(super) fn value(&self, hit: u32, list: u16) -> u32 {
        let number = self.number(hit, list);
        if self.texts.is_complete(number) {
            number
        } else {
            NO_VALUE
        }
    }

    /// The texts of a number.
    pub(super) fn texts(&self, number: u32) -> Vec<Option<String>> {
        self.texts.texts(number)
    }
}
