//! The columns about rules.

/// A property of the rule that an event matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleColumn {
    /// Its ID, text.
    Id,
    /// Its title, text.
    Title,
    /// Its level, as an index in [`Level::ALL`](evtx_sigma::Level::ALL). UInt8.
    Level,
    /// Its status, text.
    Status,
    /// Its tags, a list of texts.
    Tags,
    /// The path of the file that it was read from.
    File,
}

/// A column of a table of matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchColumn {
    /// A property of the rule.
    Rule(RuleColumn),
    /// The fields that made the rule true: a map from names to texts.
    Matched,
    /// The burst of a correlation.
    Correlation,
}
