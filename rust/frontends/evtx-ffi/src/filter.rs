//! The predicates of a query, as nodes in postfix order.

use evtx_arrow::{Comparison, Expression, Literal, Pattern};

use crate::boundary::{EvtxSlice, EvtxText};

/// The kind of a node. Its children are the last nodes before it that are not children of another node.
#[repr(u32)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EvtxNodeKind {
    /// Something that the core does not know. No children.
    #[default]
    Unknown,
    /// A column: `number` is its index in the schema. No children.
    Column,
    /// An unsigned constant: `number`. Like the other constants, it has no children.
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
    /// An operator or a function of the children: `bytes` are its name in SQL.
    Operation,
}

/// A node of a condition.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct EvtxNode<'a> {
    /// Its kind.
    pub kind: EvtxNodeKind,
    /// How many children it has.
    pub children: u32,
    /// A number, if the kind has one.
    pub number: u64,
    /// A text, a name or a GUID, if the kind has one.
    pub bytes: EvtxText<'a>,
}

/// The most levels of a condition. A node with more levels is unknown, so that walks over conditions may recurse.
const MAX_DEPTH: usize = 100;

/// The conditions that nodes in postfix order describe.
///
/// # Errors
/// A text if a node has too few children, a text that is not UTF-8, or a GUID that does not have 16 bytes.
pub(crate) fn conditions(nodes: EvtxSlice<'_, EvtxNode<'_>>) -> Result<Vec<Expression>, String> {
    // The expressions that are not yet children of a node, each with its number of levels.
    let mut stack: Vec<(Expression, usize)> = Vec::new();
    for node in nodes.get() {
        let first = stack.len().checked_sub(node.children as usize);
        let children = stack.split_off(first.ok_or("a node of a condition has too few children")?);
        let (children, depths): (Vec<_>, Vec<_>) = children.into_iter().unzip();
        let depth = 1 + depths.into_iter().max().unwrap_or_default();
        stack.push(match expression(node, children)? {
            known if known != Expression::Unknown && depth <= MAX_DEPTH => (known, depth),
            _ => (Expression::Unknown, 1),
        });
    }
    Ok(stack.into_iter().map(|(condition, _)| condition).collect())
}

/// The expression for a node with these children. Unknown if the node is an operation that does not take them.
fn expression(node: &EvtxNode<'_>, children: Vec<Expression>) -> Result<Expression, String> {
    let constant = match node.kind {
        EvtxNodeKind::Unknown => return Ok(Expression::Unknown),
        EvtxNodeKind::Column => {
            let column = usize::try_from(node.number);
            return Ok(column.map_or(Expression::Unknown, Expression::Column));
        }
        EvtxNodeKind::Operation => {
            return Ok(operation(node.bytes.text()?, children).unwrap_or(Expression::Unknown));
        }
        EvtxNodeKind::Number => Literal::Number(node.number),
        EvtxNodeKind::Integer => Literal::Integer(node.number.cast_signed()),
        EvtxNodeKind::Instant => Literal::Instant(node.number.cast_signed()),
        EvtxNodeKind::Bool => Literal::Bool(node.number != 0),
        EvtxNodeKind::Text => Literal::Text(node.bytes.text()?.into()),
        EvtxNodeKind::Uuid => Literal::Uuid(node.bytes.get().try_into().map_err(|_| "a GUID has 16 bytes")?),
    };
    Ok(Expression::Constant(constant))
}

/// The expression for an operator or a function of SQL; `None` if the core does not know it with these children.
fn operation(name: &str, children: Vec<Expression>) -> Option<Expression> {
    let one = |children: Vec<Expression>| Some(Box::new(<[_; 1]>::try_from(children).ok()?.into_iter().next()?));
    let two = |children: Vec<Expression>| Some(Box::new(<[_; 2]>::try_from(children).ok()?));
    let not = |expression| Expression::Not(Box::new(expression));
    let is_in = |children: Vec<Expression>| {
        let mut children = children.into_iter();
        Some(Expression::In(Box::new(children.next()?), children.collect()))
    };
    Some(match name {
        "AND" => Expression::And(children),
        "OR" => Expression::Or(children),
        "NOT" => Expression::Not(one(children)?),
        "IS NULL" => Expression::IsNull(one(children)?),
        "IS NOT NULL" => not(Expression::IsNull(one(children)?)),
        "IS DISTINCT FROM" => Expression::distinct_from(children.try_into().ok()?),
        "IS NOT DISTINCT FROM" => not(Expression::distinct_from(children.try_into().ok()?)),
        "BETWEEN" => Expression::between(children.try_into().ok()?),
        "IN" => is_in(children)?,
        "NOT IN" => not(is_in(children)?),
        "map_extract_value" => match <[_; 2]>::try_from(children).ok()? {
            [Expression::Column(column), Expression::Constant(Literal::Text(key))] => Expression::Entry(column, key),
            _ => return None,
        },
        "lower" | "lcase" => Expression::Lower(one(children)?),
        "~~" | "like_escape" => like(children, false)?,
        "~~*" | "ilike_escape" => like(children, true)?,
        "!~~" | "not_like_escape" => not(like(children, false)?),
        "!~~*" | "not_ilike_escape" => not(like(children, true)?),
        name => Expression::Compare(comparison(name)?, two(children)?),
    })
}

/// The comparison for an operator or a function of SQL. DuckDB rewrites a simple LIKE as one of the last three.
fn comparison(name: &str) -> Option<Comparison> {
    Some(match name {
        "=" => Comparison::Equal,
        "<>" => Comparison::NotEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        "prefix" | "starts_with" | "^@" => Comparison::Prefix,
        "suffix" | "ends_with" => Comparison::Suffix,
        "contains" => Comparison::Contains,
        _ => return None,
    })
}

/// The expression for LIKE or ILIKE. The children are a text, a pattern, and optionally an escape character or ''.
fn like(children: Vec<Expression>, ignores_case: bool) -> Option<Expression> {
    let mut children = children.into_iter();
    let value = Box::new(children.next()?);
    let mut texts = children.map(|child| match child {
        Expression::Constant(Literal::Text(text)) => Some(text),
        _ => None,
    });
    let text = texts.next()??;
    let escape = match texts.next() {
        None => None,
        Some(escape) => {
            let escape = escape?;
            let mut letters = escape.chars();
            let letter = letters.next();
            if letters.next().is_some() {
                return None;
            }
            letter
        }
    };
    Some(Expression::Matches(
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

    use super::*;

    fn leaf(kind: EvtxNodeKind, number: u64) -> EvtxNode<'static> {
        EvtxNode {
            kind,
            number,
            ..EvtxNode::default()
        }
    }

    fn text(text: &str) -> EvtxNode<'_> {
        EvtxNode {
            bytes: EvtxText::of(text),
            ..leaf(EvtxNodeKind::Text, 0)
        }
    }

    fn operation(name: &str, children: u32) -> EvtxNode<'_> {
        EvtxNode {
            kind: EvtxNodeKind::Operation,
            children,
            ..text(name)
        }
    }

    /// How many predicates are made of some nodes.
    fn count(nodes: &[EvtxNode<'_>]) -> Result<usize, String> {
        count_for(Options::default(), nodes)
    }

    fn count_for(options: Options, nodes: &[EvtxNode<'_>]) -> Result<usize, String> {
        let (table, conditions) = (options.into(), conditions(EvtxSlice::borrowed(nodes))?);
        let predicates = conditions
            .iter()
            .filter_map(|condition| Predicate::implied(&table, condition));
        Ok(predicates.count())
    }

    #[test]
    fn nodes_become_predicates() {
        let column = leaf(EvtxNodeKind::Column, 0);
        let number = |number| leaf(EvtxNodeKind::Number, number);
        let compared = [column, number(5), operation("<", 2)];
        assert_eq!(count(&compared), Ok(1));
        assert_eq!(count(&[compared, compared].concat()), Ok(2));
        let either = [&compared[..], &[leaf(EvtxNodeKind::Unknown, 0), operation("OR", 2)]].concat();
        assert_eq!(count(&either), Ok(0), "nothing is known of the other");
        let between = [column, number(1), number(2), operation("BETWEEN", 3)];
        assert_eq!(count(&between), Ok(1));
        assert_eq!(count(&[&between[..], &[operation("NOT", 1)]].concat()), Ok(0));
        let other = leaf(EvtxNodeKind::Column, 77);
        assert_eq!(count(&[other, number(1), operation("=", 2)]), Ok(0));
        assert_eq!(count(&[column, number(5), operation("", 2)]), Ok(0), "no such operator");
    }

    #[test]
    fn comparisons_have_an_operator_or_function() {
        assert_eq!(comparison(">="), Some(Comparison::GreaterOrEqual));
        assert_eq!(comparison("^@"), Some(Comparison::Prefix));
        assert_eq!(comparison("~~"), None);
    }

    #[test]
    fn patterns_become_searches() {
        let options = Options {
            text: true,
            ..Options::default()
        };
        let index = evtx_arrow::schema(&options).index_of("text").expect("a column");
        let column = leaf(EvtxNodeKind::Column, index as u64);
        let (text_column, lowered) = ([column], [column, operation("lower", 1)]);
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
            (&lowered, &["$"], "<", 0),
        ] {
            let mut nodes = value.to_vec();
            nodes.extend(texts.iter().map(|it| text(it)));
            nodes.push(operation(name, 1 + texts.len() as u32));
            assert_eq!(count_for(options, &nodes), Ok(predicates), "{name} {texts:?}");
        }
    }

    #[test]
    fn malformed_nodes_are_errors() {
        assert!(count(&[operation("AND", 1)]).is_err());
        assert!(count(&[leaf(EvtxNodeKind::Uuid, 0)]).is_err());
        for kind in [EvtxNodeKind::Text, EvtxNodeKind::Operation] {
            let bytes = EvtxSlice::borrowed(b"\xff");
            assert!(count(&[EvtxNode { bytes, ..leaf(kind, 0) }]).is_err());
        }
    }

    #[test]
    fn conditions_that_are_too_deep_are_unknown() {
        let number = leaf(EvtxNodeKind::Number, 5);
        let mut nodes = vec![leaf(EvtxNodeKind::Column, 0), number, operation("<", 2)];
        nodes.extend([operation("NOT", 1)].repeat(60));
        assert_eq!(count(&nodes), Ok(1));
        nodes.extend([operation("NOT", 1)].repeat(100_000));
        assert_eq!(count(&nodes), Ok(0));
    }
}
