//! What a rule may cost.

use crate::error::Problem;

/// The limits of one text of rules and of one rule. They bound memory, and the work of an evaluation.
///
/// SigmaHQ's largest rule, of 2026, has 295,078 bytes and 4,432 needles of 219,165 bytes.
#[derive(Debug)]
pub struct Limits;

impl Limits {
    /// Bytes of the text of a file of rules, 1 MiB.
    pub const TEXT: usize = 1 << 20;
    /// Bytes that the values of a text may take after its aliases are replaced, 32 MiB.
    pub const VALUES: usize = 32 << 20;
    /// How deep lists and maps of YAML may be in each other.
    pub const NESTING: usize = 32;
    /// Needles of a rule, after modifiers have made several of one value.
    pub const NEEDLES: usize = 20_000;
    /// Bytes of all needles of a rule, 4 MiB.
    pub const NEEDLE_BYTES: usize = 4 << 20;
    /// Texts and wildcards that one pattern consists of. The work of a pattern with `?` is its length times that of the
    /// text.
    pub const PIECES: usize = 256;
    /// Bytes of the program of one regular expression, 1 MiB; and of its cache while it runs.
    pub const REGEX: usize = 1 << 20;
    /// Regular expressions of a rule.
    pub const REGEXES: usize = 128;
    /// How deep parentheses and `not` of a condition may be in each other.
    pub const CONDITION_NESTING: usize = 64;
    /// Names in the condition of a rule, after `1 of` and `all of` have been replaced by names.
    pub const CONDITION_TERMS: usize = 10_000;
}

/// What is left for the rule that is being loaded.
#[derive(Debug)]
pub(crate) struct Budget {
    needles: usize,
    bytes: usize,
    regexes: usize,
    terms: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Budget {
            needles: Limits::NEEDLES,
            bytes: Limits::NEEDLE_BYTES,
            regexes: Limits::REGEXES,
            terms: Limits::CONDITION_TERMS,
        }
    }
}

impl Budget {
    /// Takes a needle of so many bytes.
    pub(crate) fn take_needle(&mut self, bytes: usize) -> Result<(), Problem> {
        take(&mut self.needles, 1, "needles of a rule", Limits::NEEDLES)?;
        take(
            &mut self.bytes,
            bytes,
            "bytes of the needles of a rule",
            Limits::NEEDLE_BYTES,
        )
    }

    /// Says whether so many needles of so many bytes could be taken, before they are made.
    pub(crate) fn has_room(&self, needles: usize, bytes: usize) -> Result<(), Problem> {
        take(&mut { self.needles }, needles, "needles of a rule", Limits::NEEDLES)?;
        let all = needles.saturating_mul(bytes);
        take(
            &mut { self.bytes },
            all,
            "bytes of the needles of a rule",
            Limits::NEEDLE_BYTES,
        )
    }

    /// Takes a regular expression.
    pub(crate) fn take_regex(&mut self) -> Result<(), Problem> {
        take(&mut self.regexes, 1, "regular expressions of a rule", Limits::REGEXES)
    }

    /// Takes a name of a condition.
    pub(crate) fn take_term(&mut self) -> Result<(), Problem> {
        take(&mut self.terms, 1, "names in a condition", Limits::CONDITION_TERMS)
    }
}

fn take(left: &mut usize, amount: usize, what: &'static str, limit: usize) -> Result<(), Problem> {
    *left = left.checked_sub(amount).ok_or(Problem::Limit { what, limit })?;
    Ok(())
}
