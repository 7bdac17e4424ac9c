//! Which rules an event matches.

use std::sync::Arc;

use super::set::{Kind, RuleSet};
use super::values::{Decoded, Values};
use crate::evaluate::Matched;
use crate::logsource::Renamed;

/// What a thread keeps between events.
#[derive(Debug)]
pub struct Matching {
    rules: Arc<RuleSet>,
}

/// A rule that an event matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Its index in [`RuleSet::rules`].
    pub rule: u32,
    /// The fields that made it true, by the names that the rule has for them.
    pub matched: Matched,
}

/// The caller stopped the work before all rules were decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the search for matching rules was stopped")]
pub struct Stopped;

impl Matching {
    /// A thread's part of the work on these rules.
    pub fn new(rules: Arc<RuleSet>) -> Matching {
        Matching { rules }
    }

    /// Adds the rules that an event matches, in the order of the rules, each at most once. `kind` is the event's, and
    /// comes from the set of rules that this was made with.
    ///
    /// # Errors
    /// [`Stopped`] as soon as `stop` gives `true`. It is asked after each bounded piece of work; `found` can have some
    /// of the rules then.
    pub fn matches(
        &mut self,
        kind: &Kind,
        values: &dyn Values,
        stop: &dyn Fn() -> bool,
        found: &mut Vec<Match>,
    ) -> Result<(), Stopped> {
        let event = Decoded::new(&kind.names, &kind.known, values);
        let mut last = None;
        for &(rule, alternative) in &kind.left {
            if stop() {
                return Err(Stopped);
            }
            let one = &self.rules.rules()[rule as usize];
            let alternative = &one.alternatives[alternative as usize];
            if last == Some(rule) || !alternative.takes(&event) {
                continue;
            }
            let event = &event;
            if let Some(matched) = one.rule.matches(&Renamed { event, alternative }) {
                last = Some(rule);
                found.push(Match { rule, matched });
            }
        }
        Ok(())
    }
}
