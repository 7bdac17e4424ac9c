//! Conditions as an engine has them.

use super::comparison::Comparison;
use super::search::Pattern;
use super::value::Literal;

/// A condition over the columns of a table, as SQL has it. What is of no use to a scan is [`Unknown`](Self::Unknown).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// Any value, or none.
    Unknown,
    /// The column with this index in the table's schema.
    Column(usize),
    /// The entry with this key of the map column with this index.
    Entry(usize, Box<str>),
    /// A constant that is not NULL.
    Constant(Literal),
    /// All of the conditions.
    And(Vec<Expression>),
    /// Any of the conditions.
    Or(Vec<Expression>),
    /// The condition's opposite; NULL where that is NULL.
    Not(Box<Expression>),
    /// Whether the value is NULL.
    IsNull(Box<Expression>),
    /// The first compared with the second.
    Compare(Comparison, Box<[Expression; 2]>),
    /// Whether the text matches a pattern.
    Like(Box<Expression>, Pattern),
    /// The text in small letters.
    Lower(Box<Expression>),
    /// Whether the two differ, where NULL is a value like others.
    DistinctFrom(Box<[Expression; 2]>),
    /// Whether the first lies from the second to the third. An engine may mean bounds that are left out themselves.
    Between(Box<[Expression; 3]>),
    /// Whether the value equals one of the others.
    In(Box<Expression>, Vec<Expression>),
}

impl Expression {
    /// A column compared with a constant.
    pub fn compare(column: usize, comparison: Comparison, literal: Literal) -> Self {
        Expression::Compare(
            comparison,
            Box::new([Expression::Column(column), Expression::Constant(literal)]),
        )
    }
}
