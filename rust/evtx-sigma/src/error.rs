//! The errors of rules: what is wrong, at which line and column.

use std::fmt;

/// A place in the text of a rule. Both count from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why a text is no rule, and where.
///
/// `Display` writes one sentence with line and column, without the name of the file, which only the caller knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {problem}")]
pub struct LoadError {
    /// Where it is.
    pub position: Position,
    /// What it is.
    pub problem: Problem,
}

/// What is wrong with a rule or a table of log sources.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A number is no event ID. Holds the number.
    #[error("{0} is no event ID, which is a number from 0 to 4294967295")]
    EventId(i128),
    /// The text is no YAML. Holds what the parser says.
    #[error("this is no YAML: {0}")]
    Yaml(String),
    /// Something is more than [`Limits`](crate::Limits) allows.
    #[error("the limit is {limit} {what}")]
    Limit {
        /// What is limited.
        what: &'static str,
        /// How much of it is allowed.
        limit: usize,
    },
    /// The rules of a text together have more than [`Limits`](crate::Limits) allows.
    #[error("the limit for all rules of a text is {rules} times {limit} {what}")]
    TextLimit {
        /// What is limited.
        what: &'static str,
        /// How much of it a rule may have.
        limit: usize,
        /// How many times as much the rules of a text may have.
        rules: usize,
    },
    /// The rules of a set together have more than [`Limits`](crate::Limits) allows, with this one.
    #[error("with this rule, all rules together have more than {limit} {what}")]
    SetLimit {
        /// What is limited.
        what: &'static str,
        /// How much of it all rules may have.
        limit: usize,
    },
    /// An alias stands inside of what it stands for.
    #[error("this alias is inside of the value that it stands for")]
    EndlessAlias,
    /// A map has a key twice.
    #[error("the key \"{0}\" is here twice")]
    KeyTwice(String),
    /// A key is a list, a map or NULL.
    #[error("a key is a text or a number")]
    KeyKind,
    /// The key of YAML 1.1 that takes over the keys of other maps.
    #[error("the merge key \"<<\" is no part of YAML 1.2")]
    MergeKey,
    /// The text has no document.
    #[error("there is no rule in this text")]
    NoRule,
    /// A key that a rule or a table needs is not there.
    #[error("\"{0}\" is missing")]
    Missing(&'static str),
    /// A value is of another kind than its key needs.
    #[error("{what} is {expected}, but this is {found}")]
    Kind {
        /// What has the value.
        what: String,
        /// What it may be.
        expected: &'static str,
        /// What stands there.
        found: &'static str,
    },
    /// A level, status or key that the specification does not have.
    #[error("there is no {what} \"{name}\"; there is {known}")]
    Unknown {
        /// `level`, `status` or `key`.
        what: &'static str,
        /// What stands there.
        name: String,
        /// What there is.
        known: &'static str,
    },
    /// The document is of a kind that has no place in a scan of single events.
    #[error("{0}")]
    NotSupported(&'static str),
    /// A list or map that needs a member has none.
    #[error("{0} is empty")]
    Empty(&'static str),
    /// A modifier that the specification does not have.
    #[error("there is no modifier \"{0}\"")]
    UnknownModifier(String),
    /// Two modifiers, or a modifier and a list of keywords, do not go together. Holds why.
    #[error("{0}")]
    Modifiers(String),
    /// A modifier does not take such a value. Holds why.
    #[error("{0}")]
    Value(String),
    /// A regular expression that does not compile. Holds why.
    #[error("this regular expression {0}")]
    Regex(String),
    /// A placeholder that nobody gave values for.
    #[error("the placeholder %{0}% has no values")]
    Placeholder(String),
    /// A condition that does not parse. Holds why.
    #[error("{0}")]
    Condition(String),
    /// A condition names a detection that is not there.
    #[error("the condition names \"{0}\", which is no detection of this rule")]
    UnknownDetection(String),
    /// No detection has a name that the pattern of a condition takes.
    #[error("no detection of this rule has a name like \"{0}\"")]
    NoSuchDetections(String),
    /// No log source of the table is the rule's.
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
