//! Limits of rules.

use crate::error::Problem;

/// The limits of a text of rules, of a rule, and of a set of rules. They bound memory and the work of an evaluation.
///
/// In 2026, SigmaHQ's largest rule has 295,078 bytes, and 4,432 needles of 219,165 bytes.
#[derive(Debug)]
pub struct Limits;

impl Limits {
    /// Bytes of the text of a file of rules, 1 MiB.
    pub const TEXT: usize = 1 << 20;
    /// Documents of a text.
    pub const DOCUMENTS: usize = 10_000;
    /// Bytes of memory of the values of a text after its aliases are replaced, 32 MiB.
    pub const VALUES: usize = 32 << 20;
    /// Nested lists and maps of YAML.
    pub const NESTING: usize = 32;
    /// Needles of a rule, after its modifiers are applied.
    pub const NEEDLES: usize = 20_000;
    /// Bytes of all needles of a rule, 4 MiB.
    pub const NEEDLE_BYTES: usize = 4 << 20;
    /// Regular expressions of a rule.
    pub const REGEXES: usize = 32;
    /// Modifiers of a field.
    pub const MODIFIERS: usize = 16;
    /// Placeholders in a value.
    pub const PLACEHOLDERS: usize = 64;
    /// Detections of a rule.
    pub const DETECTIONS: usize = 1000;
    /// Log sources of a rule.
    pub const LOG_SOURCES: usize = 64;
    /// Tags of a rule.
    pub const TAGS: usize = 1000;
    /// Names in the condition of a rule, after `1 of` and `all of` are replaced by names.
    pub const CONDITION_TERMS: usize = 10_000;
    /// How many times as much as one rule all rules of a text may have.
    pub const RULES: usize = 8;
    /// Texts and wildcards in one value.
    pub const SEGMENTS: usize = 256;
    /// Bytes of the texts of a value with wildcards between them. They bound the work for each byte of a text.
    pub const WILDCARD_BYTES: usize = 512;
    /// Bytes of a regular expression. In 2026, SigmaHQ's longest has 217.
    pub const REGEX_TEXT: usize = 4096;
    /// Characters in the classes of a regular expression. A range, a Unicode class and an operation on classes count for at
    /// most 4,096.
    pub const REGEX_CLASS_CHARACTERS: usize = 16 * 4096;
    /// Characters and ranges of a regular expression after its repetitions are written out. About 32,000 of them make a
    /// program of 1 MiB.
    pub const REGEX_STATES: usize = 1 << 16;
    /// Bytes of the program of a regular expression, and of its cache, 1 MiB. SigmaHQ has some above 256 KiB.
    pub const REGEX: usize = 1 << 20;
    /// Bytes of memory of all regular expressions of a rule, 2 MiB. A rule of SigmaHQ has at most 1 MB.
    pub const REGEX_BYTES: usize = 2 << 20;
    /// Needles of all rules of a [`RuleSet`](crate::RuleSet).
    pub const SET_NEEDLES: usize = 250_000;
    /// Bytes of these needles, counting at most 64 of each, 4 MiB. Their automata take about 10 times as much.
    pub const SET_NEEDLE_BYTES: usize = 4 << 20;
    /// Names in the conditions of all rules of a set.
    pub const SET_CONDITION_TERMS: usize = 1_000_000;
    /// Bytes of memory of all rules of a set, 256 MiB, as [`Rule::bytes`](crate::Rule::bytes) counts them.
    pub const SET_BYTES: usize = 256 << 20;
    /// Bytes of memory of all regular expressions of a set, 64 MiB.
    pub const SET_REGEX_BYTES: usize = 64 << 20;
    /// Nested parentheses and `not` of a condition.
    pub const CONDITION_NESTING: usize = 64;
    /// Filters of a set.
    pub const FILTERS: usize = 1000;
    /// Correlations of a set. Each uses memory for the hits of its rules.
    pub const CORRELATIONS: usize = 1000;
    /// Rules and correlations that a correlation refers to.
    pub const REFERENCES: usize = 64;
    /// Fields of `group-by` or `field`.
    pub const GROUP_FIELDS: usize = 16;
    /// Aliases of a correlation.
    pub const ALIASES: usize = 64;
    /// Correlations that a rule is part of, directly or by others. So this also limits how deep correlations refer to
    /// correlations.
    pub const CORRELATIONS_OF_RULE: usize = 64;
    /// Hits of a correlation, and of a rule for all correlations. Those with more have no bursts.
    pub const HITS: usize = 10_000_000;
    /// Bytes of the distinct texts of groups and values that a thread keeps, 256 MiB.
    pub const HIT_TEXTS: usize = 256 << 20;
    /// Bytes of a value of a group or of a field that is counted. The rest of the text is ignored.
    pub const HIT_TEXT: usize = 1024;
    /// Records that a burst has.
    pub const BURST_RECORDS: usize = 100;
    /// Values that a burst has.
    pub const BURST_VALUES: usize = 100;
    /// Bursts of a correlation. Those after them are left out.
    pub const BURSTS: usize = 1_000_000;
    /// Bytes of all bursts together, 256 MiB. Those after them are left out.
    pub const BURST_BYTES: usize = 256 << 20;
}

/// What is left for the rule that is being loaded, and for the rules of its text.
#[derive(Debug)]
pub(crate) struct Budget([Left; 5]);

// The indices of what is limited.
const NEEDLES: usize = 0;
const BYTES: usize = 1;
const REGEXES: usize = 2;
const REGEX_BYTES: usize = 3;
const TERMS: usize = 4;

/// How much of something is left.
#[derive(Debug)]
struct Left {
    what: &'static str,
    /// How much a rule may have.
    limit: usize,
    of_rule: usize,
    of_text: usize,
}

impl Default for Budget {
    fn default() -> Self {
        let limits = [
            ("needles of a rule", Limits::NEEDLES),
            ("bytes of the needles of a rule", Limits::NEEDLE_BYTES),
            ("regular expressions of a rule", Limits::REGEXES),
            (
                "bytes of memory of the regular expressions of a rule",
                Limits::REGEX_BYTES,
            ),
            ("names in a condition", Limits::CONDITION_TERMS),
        ];
        Budget(limits.map(|(what, limit)| Left {
            what,
            limit,
            of_rule: limit,
            of_text: limit * Limits::RULES,
        }))
    }
}

impl Budget {
    /// Begins the next rule of the text.
    pub(crate) fn next_rule(&mut self) {
        self.0.iter_mut().for_each(|left| left.of_rule = left.limit);
    }

    /// Takes a needle with this number of bytes.
    pub(crate) fn take_needle(&mut self, bytes: usize) -> Result<(), Problem> {
        self.0[NEEDLES].take(1)?;
        self.0[BYTES].take(bytes)
    }

    /// Checks that a number of needles, each of some bytes, can still be taken.
    pub(crate) fn has_room(&self, needles: usize, bytes: usize) -> Result<(), Problem> {
        self.0[NEEDLES].after(needles)?;
        self.0[BYTES].after(needles.saturating_mul(bytes)).map(|_| ())
    }

    /// Takes a regular expression, which `compile` returns with its bytes. Refused ones count for the text, too.
    pub(crate) fn take_regex<T>(
        &mut self,
        compile: impl FnOnce() -> (usize, Result<T, Problem>),
    ) -> Result<T, Problem> {
        self.0[REGEXES].take(1)?;
        self.0[REGEX_BYTES].after(1)?;
        let (bytes, regex) = compile();
        let taken = self.0[REGEX_BYTES].take(bytes);
        if taken.is_err() {
            self.0[REGEX_BYTES].of_text = self.0[REGEX_BYTES].of_text.saturating_sub(bytes);
        }
        taken.and(regex)
    }

    /// Takes a name in a condition.
    pub(crate) fn take_term(&mut self) -> Result<(), Problem> {
        self.0[TERMS].take(1)
    }
}

impl Left {
    fn take(&mut self, amount: usize) -> Result<(), Problem> {
        (self.of_rule, self.of_text) = self.after(amount)?;
        Ok(())
    }

    /// What would be left for the rule and the text.
    fn after(&self, amount: usize) -> Result<(usize, usize), Problem> {
        let &Left { what, limit, .. } = self;
        let of_rule = self.of_rule.checked_sub(amount).ok_or(Problem::limit(what, limit))?;
        let rules = Limits::RULES;
        let why = || format!("the limit for all rules of a text is {rules} times {limit} {what}");
        let of_text = self.of_text.checked_sub(amount).ok_or_else(|| Problem::text(why()))?;
        Ok((of_rule, of_text))
    }
}
