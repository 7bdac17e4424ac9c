//! The limits of all rules of a set together.

use crate::condition::Condition;
use crate::error::Problem;
use crate::limits::Limits;
use crate::matcher::Matcher;
use crate::rule::Rule;

const LIMITS: [(usize, &str); 5] = [
    (Limits::SET_NEEDLES, "needles"),
    (Limits::SET_NEEDLE_BYTES, "bytes of needles"),
    (Limits::SET_REGEX_BYTES, "bytes of memory of regular expressions"),
    (Limits::SET_CONDITION_TERMS, "names in conditions"),
    (Limits::SET_BYTES, "bytes of memory"),
];

/// The most bytes of a needle that count.
const NEEDLE: usize = 64;

/// What the rules of a set have, in the order of [`LIMITS`].
#[derive(Debug, Default)]
pub(super) struct Size([usize; LIMITS.len()]);

impl Size {
    /// What one rule has.
    pub(super) fn of(rule: &Rule) -> Size {
        let bytes = rule.matchers().map(|matcher| match matcher {
            Matcher::Text { pattern, .. } => pattern.needles().map(str::len).max().unwrap_or(0).min(NEEDLE),
            Matcher::Regex(expression) => expression.as_str().len(),
            _ => 0,
        });
        Size([
            rule.matchers().count(),
            bytes.sum(),
            rule.regex_bytes(),
            terms(&rule.condition),
            rule.bytes(),
        ])
    }

    /// What this has more than another one.
    pub(super) fn without(&self, other: &Size) -> Size {
        let mut more = self.0;
        more.iter_mut()
            .zip(other.0)
            .for_each(|(more, other)| *more = more.saturating_sub(other));
        Size(more)
    }

    /// Adds something several times, if the set has room for it.
    pub(super) fn add(&mut self, more: &Size, times: usize) -> Result<(), Problem> {
        let mut with = more.0;
        for (at, (limit, what)) in LIMITS.into_iter().enumerate() {
            with[at] = with[at].saturating_mul(times).saturating_add(self.0[at]);
            if with[at] > limit {
                let why = format!("with this rule, all rules together have more than {limit} {what}");
                return Err(Problem::text(why));
            }
        }
        self.0 = with;
        Ok(())
    }
}

/// The number of names in a condition.
fn terms(condition: &Condition) -> usize {
    match condition {
        Condition::Detection(_) => 1,
        Condition::Not(inner) => terms(inner),
        Condition::All(parts) | Condition::Any(parts) => parts.iter().map(terms).sum(),
    }
}
