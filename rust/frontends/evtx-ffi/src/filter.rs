//! The predicates of a query, which the caller builds from the leaves up.

use evtx_arrow::{Comparison, Expression, Literal};
use evtx_format::search::Pattern;

use crate::boundary::EvtxText;

/// The kind of a node: a leaf, or an operation on the last nodes before it that are not operands of another node.
#[repr(u32)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the operators of SQL have their own names")]
pub enum EvtxNodeKind {
    /// A leaf that the core does not know.
    #[default]
    Unknown,
    /// A column: `number` is its index in the schema.
    Column,
    /// An unsigned constant: `number`.
    Number,
    /// A signed constant: `number` has the bits of an i64.
    Integer,
    /// A time: `number` has the bits of an i64, in nanoseconds since 1970-01-01 UTC.
    Instant,
    /// A GUID: `bytes` are its 16 bytes, in the order of its text.
    Uuid,
    /// A text: `bytes`, in UTF-8.
    Text,
    /// True or false: `number` is 1 or 0.
    Bool,
    /// A function: `bytes` are its name in SQL.
    Function,
    // Operators of SQL.
    And,
    Or,
    Not,
    IsNull,
    IsNotNull,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    IsDistinctFrom,
    IsNotDistinctFrom,
    Between,
    In,
    NotIn,
}

/// A node of a condition.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct EvtxNode<'a> {
    /// Its kind.
    pub kind: EvtxNodeKind,
    /// How many operands it has.
    pub operands: u32,
    /// A number, if the kind has one.
    pub number: u64,
    /// A text, a name or a GUID, if the kind has one.
    pub bytes: EvtxText<'a>,
}

/// The most levels of a condition. A node with more levels is unknown, so that walks over conditions may recurse.
const MAX_DEPTH: usize = 100;

/// The conditions that some nodes describe: the expressions that are not operands of another node so far, each with its
/// number of levels.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Conditions(Vec<(Expression, usize)>);

impl Conditions {
    /// Adds a node.
    ///
    /// # Errors
    /// A text if there are too few operands, a text is not UTF-8, or a GUID does not have 16 bytes.
    pub(crate) fn push(&mut self, node: &EvtxNode<'_>) -> Result<(), String> {
        let first = self.0.len().checked_sub(node.operands as usize);
        let operands = self
            .0
            .split_off(first.ok_or("a node of a condition has too few operands")?);
        let (operands, depths): (Vec<_>, Vec<_>) = operands.into_iter().unzip();
        let depth = 1 + depths.into_iter().max().unwrap_or_default();
        self.0.push(match expression(node, operands)? {
            Some(known) if depth <= MAX_DEPTH => (known, depth),
            _ => (Expression::Unknown, 1),
        });
        Ok(())
    }

    pub(crate) fn expressions(&self) -> Vec<Expression> {
        self.0.iter().map(|(condition, _)| condition.clone()).collect()
    }
}

/// The expression for a node; `None` if the core does not know the operation with these operands.
fn expression(node: &EvtxNode<'_>, operands: Vec<Expression>) -> Result<Option<Expression>, String> {
    let constant = match node.kind {
        EvtxNodeKind::Unknown => return Ok(None),
        EvtxNodeKind::Column => return Ok(usize::try_from(node.number).ok().map(Expression::Column)),
        EvtxNodeKind::Function => return Ok(function(node.bytes.text()?, operands)),
        EvtxNodeKind::Number => Literal::Number(node.number),
        EvtxNodeKind::Integer => Literal::Integer(node.number.cast_signed()),
        EvtxNodeKind::Instant => Literal::Instant(node.number.cast_signed()),
        EvtxNodeKind::Bool => Literal::Bool(node.number != 0),
        EvtxNodeKind::Text => Literal::Text(node.bytes.text()?.into()),
        EvtxNodeKind::Uuid => Literal::Uuid(node.bytes.get().try_into().map_err(|_| "a GUID has 16 bytes")?),
        operator => return Ok(operation(operator, operands)),
    };
    Ok(Some(Expression::Constant(constant)))
}

fn one(operands: Vec<Expression>) -> Option<Box<Expression>> {
    let [operand] = operands.try_into().ok()?;
    Some(Box::new(operand))
}

fn compare(comparison: Comparison, operands: Vec<Expression>) -> Option<Expression> {
    Some(Expression::Compare(comparison, Box::new(operands.try_into().ok()?)))
}

fn not(expression: Expression) -> Expression {
    Expression::Not(Box::new(expression))
}

/// The expression for an operator of SQL.
fn operation(operator: EvtxNodeKind, mut operands: Vec<Expression>) -> Option<Expression> {
    use EvtxNodeKind as Kind;
    Some(match operator {
        Kind::And => Expression::And(operands),
        Kind::Or => Expression::Or(operands),
        Kind::Not => not(*one(operands)?),
        Kind::IsNull => Expression::IsNull(one(operands)?),
        Kind::IsNotNull => not(Expression::IsNull(one(operands)?)),
        Kind::IsDistinctFrom => Expression::distinct_from(operands.try_into().ok()?),
        Kind::IsNotDistinctFrom => not(Expression::distinct_from(operands.try_into().ok()?)),
        Kind::Between => Expression::between(operands.try_into().ok()?),
        Kind::In | Kind::NotIn if operands.is_empty() => return None,
        Kind::In => Expression::In(Box::new(operands.remove(0)), operands),
        Kind::NotIn => not(Expression::In(Box::new(operands.remove(0)), operands)),
        Kind::Equal => compare(Comparison::Equal, operands)?,
        Kind::NotEqual => compare(Comparison::NotEqual, operands)?,
        Kind::Less => compare(Comparison::Less, operands)?,
        Kind::LessOrEqual => compare(Comparison::LessOrEqual, operands)?,
        Kind::Greater => compare(Comparison::Greater, operands)?,
        Kind::GreaterOrEqual => compare(Comparison::GreaterOrEqual, operands)?,
        _ => return None,
    })
}

/// The expression for a function of SQL. DuckDB rewrites a simple LIKE as `prefix`, `suffix` or `contains`.
fn function(name: &str, operands: Vec<Expression>) -> Option<Expression> {
    Some(match name {
        "map_extract_value" => match <[_; 2]>::try_from(operands).ok()? {
            [Expression::Column(column), Expression::Constant(Literal::Text(key))] => Expression::Entry(column, key),
            _ => return None,
        },
        "lower" | "lcase" => Expression::Lower(one(operands)?),
        "prefix" | "starts_with" | "^@" => compare(Comparison::Prefix, operands)?,
        "suffix" | "ends_with" => compare(Comparison::Suffix, operands)?,
        "contains" => compare(Comparison::Contains, operands)?,
        "~~" | "like_escape" => like(operands, false)?,
        "~~*" | "ilike_escape" => like(operands, true)?,
        "!~~" | "not_like_escape" => not(like(operands, false)?),
        "!~~*" | "not_ilike_escape" => not(like(operands, true)?),
        _ => return None,
    })
}

/// The expression for LIKE or ILIKE of a text, a pattern, and optionally an escape character or ''.
fn like(operands: Vec<Expression>, ignores_case: bool) -> Option<Expression> {
    let mut operands = operands.into_iter();
    let value = Box::new(operands.next()?);
    let texts = operands.map(|operand| match operand {
        Expression::Constant(Literal::Text(text)) => Some(text),
        _ => None,
    });
    let mut texts = texts.collect::<Option<Vec<_>>>()?.into_iter();
    let text = texts.next()?;
    let escape = texts.next().unwrap_or_default();
    let mut letters = escape.chars();
    let escape = letters.next();
    letters.next().is_none().then_some(Expression::Matches(
        value,
        Pattern {
            text,
            escape,
            ignores_case,
        },
    ))
}

#[cfg(test)]
mod tests {
    use evtx_arrow::{Options, Predicate};

    use super::EvtxNodeKind as Kind;
    use super::*;
    use crate::boundary::EvtxSlice;

    fn leaf(kind: Kind, number: u64) -> EvtxNode<'static> {
        EvtxNode {
            kind,
            number,
            ..EvtxNode::default()
        }
    }

    fn text(text: &str) -> EvtxNode<'_> {
        EvtxNode {
            bytes: EvtxText::of(text),
            ..leaf(Kind::Text, 0)
        }
    }

    fn operator(kind: Kind, operands: u32) -> EvtxNode<'static> {
        EvtxNode {
            operands,
            ..leaf(kind, 0)
        }
    }

    fn function(name: &str, operands: u32) -> EvtxNode<'_> {
        EvtxNode {
            kind: Kind::Function,
            operands,
            ..text(name)
        }
    }

    /// How many predicates are made of some nodes.
    fn count(nodes: &[EvtxNode<'_>]) -> Result<usize, String> {
        count_for(Options::default(), nodes)
    }

    fn count_for(options: Options, nodes: &[EvtxNode<'_>]) -> Result<usize, String> {
        let (table, mut conditions) = (options.into(), Conditions::default());
        nodes.iter().try_for_each(|node| conditions.push(node))?;
        let implied = |condition| Predicate::implied(&table, &condition);
        Ok(conditions.expressions().into_iter().filter_map(implied).count())
    }

    #[test]
    fn nodes_become_predicates() {
        let column = leaf(Kind::Column, 0);
        let number = |number| leaf(Kind::Number, number);
        let compared = [column, number(5), operator(Kind::Less, 2)];
        assert_eq!(count(&compared), Ok(1));
        assert_eq!(count(&[compared, compared].concat()), Ok(2));
        let either = [&compared[..], &[leaf(Kind::Unknown, 0), operator(Kind::Or, 2)]].concat();
        assert_eq!(count(&either), Ok(0), "nothing is known of the other");
        let between = [column, number(1), number(2), operator(Kind::Between, 3)];
        assert_eq!(count(&between), Ok(1));
        assert_eq!(count(&[&between[..], &[operator(Kind::Not, 1)]].concat()), Ok(0));
        let other = leaf(Kind::Column, 77);
        assert_eq!(count(&[other, number(1), operator(Kind::Equal, 2)]), Ok(0));
        assert_eq!(count(&[column, number(5), function("", 2)]), Ok(0), "no such function");
    }

    #[test]
    fn patterns_become_searches() {
        let options = Options {
            text: true,
            ..Options::default()
        };
        let index = evtx_arrow::schema(&options).index_of("text").expect("a column");
        let column = leaf(Kind::Column, index as u64);
        let (text_column, lowered) = ([column], [column, function("lower", 1)]);
        for (value, texts, name, predicates) in [
            (&text_column[..], &["%a_b%"][..], "~~", 1),
            (&text_column, &["%a_b%"], "~~*", 1),
            // The search holds for more.
            (&text_column, &["%a_b%"], "!~~*", 0),
            (&text_column, &["%a$%%", "$"], "ilike_escape", 1),
            (&text_column, &["%a$%%", "$$"], "ilike_escape", 0),
            (&text_column, &[], "~~", 0),
            (&lowered, &["%a_b%"], "~~", 1),
            (&lowered, &["$"], "contains", 1),
            (&lowered, &["$"], "upper", 0),
        ] {
            let mut nodes = value.to_vec();
            nodes.extend(texts.iter().map(|it| text(it)));
            nodes.push(function(name, 1 + texts.len() as u32));
            assert_eq!(count_for(options, &nodes), Ok(predicates), "{name} {texts:?}");
        }
    }

    #[test]
    fn malformed_nodes_are_errors() {
        assert!(count(&[operator(Kind::And, 1)]).is_err());
        assert!(count(&[leaf(Kind::Uuid, 0)]).is_err());
        for kind in [Kind::Text, Kind::Function] {
            let bytes = EvtxSlice::borrowed(b"\xff");
            assert!(count(&[EvtxNode { bytes, ..leaf(kind, 0) }]).is_err());
        }
    }

    #[test]
    fn conditions_that_are_too_deep_are_unknown() {
        let number = leaf(Kind::Number, 5);
        let mut nodes = vec![leaf(Kind::Column, 0), number, operator(Kind::Less, 2)];
        nodes.extend([operator(Kind::Not, 1)].repeat(60));
        assert_eq!(count(&nodes), Ok(1));
        nodes.extend([operator(Kind::Not, 1)].repeat(100_000));
        assert_eq!(count(&nodes), Ok(0));
    }
}
