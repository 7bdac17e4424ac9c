//! Conditions, as an engine expresses them.

use evtx_format::search::Pattern;

use super::comparison::Comparison;
use super::value::Literal;

/// A condition over the columns of a table, or a value in one, in three-valued logic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// A value or condition that the caller cannot translate. It can be NULL.
    Unknown,
    /// The column with this index in the table's schema.
    Column(usize),
    /// The entry with this key of the map column with this index.
    Entry(usize, Box<str>),
    /// A constant that is not NULL.
    Constant(Literal),
    /// All of the conditions hold.
    And(Vec<Expression>),
    /// At least one of the conditions holds.
    Or(Vec<Expression>),
    /// The opposite of the condition; NULL where the condition is NULL.
    Not(Box<Expression>),
    /// Whether the value is NULL.
    IsNull(Box<Expression>),
    /// The first value compared with the second; NULL where one of them is NULL.
    Compare(Comparison, Box<[Expression; 2]>),
    /// Whether the text matches a pattern.
    Matches(Box<Expression>, Pattern),
    /// The text in lower case.
    Lower(Box<Expression>),
    /// Whether the value equals one of the values in the list.
    In(Box<Expression>, Vec<Expression>),
}

impl Expression {
    /// A column, by its index in the schema, compared with a constant.
    pub fn compare(column: usize, comparison: Comparison, literal: Literal) -> Self {
        Expression::Compare(
            comparison,
            Box::new([Expression::Column(column), Expression::Constant(literal)]),
        )
    }
    /// Whether a value differs from a constant, given in either order. NULL differs from every constant.
    pub fn distinct_from(sides: [Expression; 2]) -> Self {
        let column = match &sides {
            [column, Expression::Constant(_)] | [Expression::Constant(_), column] => column.clone(),
            _ => return Expression::Unknown,
        };
        Expression::Or(vec![
            Expression::IsNull(Box::new(column)),
            Expression::Compare(Comparison::NotEqual, Box::new(sides)),
        ])
    }

    /// Whether the first value is between the second and the third. It is unknown whether the range includes the bounds.
    pub fn between([value, lower, upper]: [Expression; 3]) -> Self {
        let compare = |comparison, bound| Expression::Compare(comparison, Box::new([value.clone(), bound]));
        Expression::And(vec![
            compare(Comparison::GreaterOrEqual, lower),
            compare(Comparison::LessOrEqual, upper),
            Expression::Unknown,
        ])
    }
}
