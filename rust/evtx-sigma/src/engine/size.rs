//! How large all rules of a set may be together.

use super::formula::LONG;
use crate::condition::Condition;
use crate::error::Problem;
use crate::limits::Limits;
use crate::matcher::Matcher;
use crate::rule::Rule;

/// How much of what is limited the rules of a set have.
#[derive(Debug, Default)]
pub(super) struct Size {
    needles: usize,
    bytes: usize,
    regex_bytes: usize,
    terms: usize,
    memory: usize,
}

impl Size {
    /// Adds a rule, unless the set has no room for it.
    pub(super) fn add(&mut self, rule: &Rule) -> Result<(), Problem> {
        let mut with = Size {
            regex_bytes: self.regex_bytes + rule.regex_bytes(),
            terms: self.terms + terms(&rule.condition),
            memory: self.memory + rule.bytes(),
            ..*self
        };
        let items = rule
            .detections
            .iter()
            .flat_map(|detection| detection.any.iter().flatten());
        for matcher in items.flat_map(|item| &item.any) {
            with.needles += 1;
            with.bytes += match matcher {
                Matcher::Text { pattern, .. } => pattern.needles().map(str::len).max().unwrap_or(0).min(LONG),
                Matcher::Regex(expression) => expression.as_str().len(),
                _ => 0,
            };
        }
        let limits = [
            (with.needles, Limits::SET_NEEDLES, "needles"),
            (with.bytes, Limits::SET_NEEDLE_BYTES, "bytes of needles"),
            (
                with.regex_bytes,
                Limits::SET_REGEX_BYTES,
                "bytes of memory of regular expressions",
            ),
            (with.terms, Limits::SET_CONDITION_TERMS, "names in conditions"),
            (with.memory, Limits::SET_BYTES, "bytes of memory"),
        ];
        for (amount, limit, what) in limits {
            if amount > limit {
                return Err(Problem::SetLimit { what, limit });
            }
        }
        *self = with;
        Ok(())
    }
}

/// How many names a condition has.
fn terms(condition: &Condition) -> usize {
    match condition {
        Condition::Detection(_) => 1,
        Condition::Not(inner) => terms(inner),
        Condition::All(parts) | Condition::Any(parts) => parts.iter().map(terms).sum(),
    }
}
