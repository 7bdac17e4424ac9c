//! Errors in rules, with line and column.

use std::borrow::Cow;
use std::fmt;

/// A place in the text of a rule. Both numbers count from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
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

/// Why a text cannot be loaded, and where: one sentence with line and column. The caller adds the name of the file.
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
#[allow(missing_docs)] // the messages say it
pub enum Problem {
    #[error("the limit is {limit} {what}")]
    Limit { what: &'static str, limit: usize },
    #[error("this text contains no rule")]
    NoRule,
    #[error("\"{0}\" is missing")]
    Missing(&'static str),
    #[error("there is no {what} \"{name}\"; use {known}")]
    Unknown {
        what: &'static str,
        name: String,
        known: String,
    },
    #[error("{0} is empty")]
    Empty(&'static str),
    #[error("{0}")]
    Text(Cow<'static, str>),
    #[error("this regular expression {0}")]
    Regex(String),
    #[error("the condition names \"{0}\", but this rule has no such detection")]
    UnknownDetection(String),
    #[error("unmapped log source: {0}")]
    UnmappedLogSource(String),
    /// Nobody sees it: the caller checks for an interrupt after it has loaded something.
    #[error("interrupted")]
    Interrupted,
}

impl Problem {
    /// Any other problem, in a sentence.
    pub(crate) fn text(why: impl Into<Cow<'static, str>>) -> Problem {
        Problem::Text(why.into())
    }

    /// More than so many of something.
    pub const fn limit(what: &'static str, limit: usize) -> Problem {
        Problem::Limit { what, limit }
    }

    /// The error of this problem at a place.
    pub(crate) fn at(self, position: Position) -> LoadError {
        LoadError {
            position,
            problem: self,
        }
    }
}
