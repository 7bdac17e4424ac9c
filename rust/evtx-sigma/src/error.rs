//! Errors in rules, with line and column.

use std::fmt;

/// A place in the text of a rule. Both numbers count from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl Position {
    pub(crate) const START: Position = Position { line: 1, column: 1 };
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why a text cannot be loaded, and where.
///
/// `Display` writes one sentence with line and column, without the name of the file, which only the caller knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {problem}")]
pub struct LoadError {
    /// Where.
    pub position: Position,
    /// What.
    pub problem: Problem,
}

/// What is wrong with a rule or a table of log sources.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// This number is not an event ID.
    #[error("{0} is not an event ID, which is a number from 0 to 4294967295")]
    EventId(i128),
    /// The text is not YAML. Holds the message of the parser.
    #[error("this is not valid YAML: {0}")]
    Yaml(String),
    /// Something exceeds [`Limits`](crate::Limits).
    #[error("the limit is {limit} {what}")]
    Limit {
        /// What is limited.
        what: &'static str,
        /// How much of it is allowed.
        limit: usize,
    },
    /// The rules of a text together exceed [`Limits`](crate::Limits).
    #[error("the limit for all rules of a text is {rules} times {limit} {what}")]
    TextLimit {
        /// What is limited.
        what: &'static str,
        /// How much of it a rule may have.
        limit: usize,
        /// How many times as much the rules of a text may have.
        rules: usize,
    },
    /// With this rule, the rules of a set together exceed [`Limits`](crate::Limits).
    #[error("with this rule, all rules together have more than {limit} {what}")]
    SetLimit {
        /// What is limited.
        what: &'static str,
        /// How much of it all rules may have.
        limit: usize,
    },
    /// An alias is inside the value that it stands for.
    #[error("this alias is inside the value that it stands for")]
    EndlessAlias,
    /// A map has this key twice.
    #[error("the key \"{0}\" appears twice")]
    KeyTwice(String),
    /// A key is a list, a map or NULL.
    #[error("a key must be a text or a number")]
    KeyType,
    /// The key of YAML 1.1 that takes over the keys of other maps.
    #[error("the merge key \"<<\" is not part of YAML 1.2")]
    MergeKey,
    /// The text has no document.
    #[error("this text contains no rule")]
    NoRule,
    /// A required key is missing.
    #[error("\"{0}\" is missing")]
    Missing(&'static str),
    /// A value has another type than its key needs.
    #[error("{what} must be {expected}, but this is {found}")]
    Type {
        /// What has the value.
        what: String,
        /// What it may be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A level, status or key that the specification does not define.
    #[error("there is no {what} \"{name}\"; use {known}")]
    Unknown {
        /// `level`, `status` or `key`.
        what: &'static str,
        /// The unknown name.
        name: String,
        /// The known names.
        known: String,
    },
    /// A document of a kind that a scan of single events cannot use.
    #[error("{0}")]
    NotSupported(&'static str),
    /// A list or map that needs a member has none.
    #[error("{0} is empty")]
    Empty(&'static str),
    /// A modifier that the specification does not define.
    #[error("there is no modifier \"{0}\"")]
    UnknownModifier(String),
    /// Modifiers do not go together, or with keywords. Holds why.
    #[error("{0}")]
    Modifiers(String),
    /// A modifier does not take such a value. Holds why.
    #[error("{0}")]
    Value(String),
    /// A regular expression does not compile. Holds why.
    #[error("this regular expression {0}")]
    Regex(String),
    /// This placeholder has no values.
    #[error("the placeholder %{0}% has no values")]
    Placeholder(String),
    /// A condition does not parse. Holds why.
    #[error("{0}")]
    Condition(String),
    /// The condition names this detection, which the rule does not have.
    #[error("the condition names \"{0}\", but this rule has no such detection")]
    UnknownDetection(String),
    /// No detection matches this pattern of the condition.
    #[error("this rule has no detection with a name like \"{0}\"")]
    NoSuchDetections(String),
    /// The table has no entry for this log source.
    #[error("unmapped log source: {0}")]
    UnmappedLogSource(String),
}

impl Problem {
    /// The error of this problem at a place.
    pub(crate) fn at(self, position: Position) -> LoadError {
        LoadError {
            position,
            problem: self,
        }
    }
}
