//! The hits that a thread collects.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use evtx_format::boundary;

use super::model::RecordLocation;
use super::resolve::Correlations;
use super::texts::{Texts, encode};
use crate::limits::Limits;

/// The hits of rules that one thread collected.
pub struct Hits {
    pub(super) correlations: Arc<Correlations>,
    /// By the index of a plan.
    pub(super) rules: Vec<RuleHits>,
    pub(super) texts: Texts,
    /// The number of hits that all threads keep.
    kept: Arc<AtomicUsize>,
    text: String,
    list: Vec<u8>,
}

/// The hits of a rule.
#[derive(Default)]
pub(super) struct RuleHits {
    pub(super) rows: Vec<Row>,
    /// For each hit, the numbers of the texts of all lists of fields.
    pub(super) numbers: Vec<u32>,
    /// How many hits there were, also after a limit.
    pub(super) count: u64,
    /// Whether a hit was dropped because the hits take too much memory.
    pub(super) is_cut: bool,
}

/// What is known of a hit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) time: i64,
    pub(super) location: RecordLocation,
}

impl Hits {
    /// No hits yet. All threads that share `kept` keep at most [`Limits::HITS`] together.
    pub fn new(correlations: Arc<Correlations>, kept: Arc<AtomicUsize>) -> Hits {
        let rules = correlations.plans.iter().map(|_| RuleHits::default()).collect();
        Hits {
            correlations,
            rules,
            texts: Texts::default(),
            kept,
            text: String::new(),
            list: Vec::new(),
        }
    }

    /// Adds the hit of a rule, if the rule is a base of a correlation. `time` is in ns since 1970. `text` appends the text
    /// of a field of the event, by the name that the rule has for it, and returns whether there is one.
    pub fn push(
        &mut self,
        rule: u32,
        time: i64,
        location: RecordLocation,
        text: &mut dyn FnMut(&str, &mut String) -> bool,
    ) {
        let Some(base) = self.correlations.base(rule) else {
            return;
        };
        let plan = &self.correlations.plans[base as usize];
        let hits = &mut self.rules[base as usize];
        hits.count += 1;
        if hits.count > Limits::HITS as u64 {
            return;
        }
        let is_full = self.texts.size() > Limits::HIT_TEXTS;
        if is_full || self.kept.fetch_add(1, Ordering::Relaxed) >= Limits::HITS {
            hits.is_cut = true;
            return;
        }
        reserve(&mut hits.rows, 1);
        reserve(&mut hits.numbers, plan.lists.len());
        hits.rows.push(Row { time, location });
        for fields in &plan.lists {
            self.list.clear();
            for field in fields {
                self.text.clear();
                let is_there = text(field, &mut self.text);
                self.text.truncate(boundary(&self.text, Limits::HIT_TEXT));
                encode(&mut self.list, is_there.then_some(self.text.as_str()));
            }
            hits.numbers.push(self.texts.number(&self.list));
        }
    }

    /// The bytes of memory that they take.
    pub fn bytes(&self) -> usize {
        let of_rule = |hits: &RuleHits| hits.rows.capacity() * size_of::<Row>() + hits.numbers.capacity() * 4;
        self.rules.iter().map(of_rule).sum::<usize>() + self.texts.size()
    }
}

/// Grows by an eighth, so that memory is never much more than what is used.
fn reserve<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact((list.len() / 8).max(64).max(more));
    }
}
