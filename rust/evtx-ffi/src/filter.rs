//! The conditions of a query through the C ABI, as nodes in postfix order.

use evtx_arrow::{Comparison, Expression, Literal, Pattern};

use crate::boundary::{Code, bytes};

/// The kind of a node of a condition. The children of a node stand before it. They are the last nodes that are not
/// children of another node yet.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvtxNodeKind {
    /// Something that the core does not know. No children.
    Unknown,
    /// A column: `number` is its index in the schema. No children.
    Column,
    /// An unsigned constant: `number`. Like the other constants, it has no children.
    Number,
    /// A signed constant: `number` has the bits of an i64.
    Integer,
    /// A time: `number` has the bits of an i64, in nanoseconds since 1970-01-01 UTC.
    Instant,
    /// A GUID: the bytes of the node are its 16 bytes, in the order of its text.
    Uuid,
    /// A text: the bytes of the node, in UTF-8.
    Text,
    /// True or false: `number` is 1 or 0.
    Bool,
    /// An operator or a function of the children: the bytes of the node are its name in SQL.
    Operation,
}

impl Code for EvtxNodeKind {
    const ALL: &[Self] = {
        use EvtxNodeKind::*;
        &[Unknown, Column, Number, Integer, Instant, Uuid, Text, Bool, Operation]
    };
    const WHAT: &str = "kind of node";
}

/// A node of a condition.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvtxNode {
    /// An `EvtxNodeKind`.
    pub kind: u32,
    /// How many children it has.
    pub children: u32,
    /// A number, if the kind has one.
    pub number: u64,
    /// Where the bytes of the node start in [`EvtxHints::bytes`].
    pub start: u64,
    /// How many bytes the node has.
    pub len: u64,
}

/// The predicates of a query, as far as the caller can express them: conditions that all have to be true, as nodes in
/// postfix order.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxHints {
    /// The nodes, `node_count` of them.
    pub nodes: *const EvtxNode,
    /// How many nodes there are.
    pub node_count: usize,
    /// The texts and GUIDs of the nodes, `len` bytes of them.
    pub bytes: *const u8,
    /// How many bytes there are.
    pub len: usize,
}

/// An owned copy of [`EvtxHints`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    /// The nodes, in postfix order.
    pub(crate) nodes: Vec<EvtxNode>,
    /// The texts and GUIDs of the nodes.
    pub(crate) bytes: Vec<u8>,
}

impl EvtxHints {
    /// Copies the nodes and bytes.
    ///
    /// # Safety
    /// `nodes` and `bytes` point to as many nodes and bytes as their counts say.
    pub(crate) unsafe fn to_owned(self) -> Hints {
        let nodes = match self.node_count {
            0 => &[],
            // SAFETY: the caller's promise.
            count => unsafe { std::slice::from_raw_parts(self.nodes, count) },
        };
        // SAFETY: the caller's promise.
        let bytes = unsafe { bytes(self.bytes, self.len) };
        Hints {
            nodes: nodes.to_vec(),
            bytes: bytes.to_vec(),
        }
    }
}

/// The most levels of a condition. A node with more levels is unknown, so that walks over conditions may recurse.
const MAX_DEPTH: usize = 100;

/// Builds conditions from nodes in postfix order.
struct Builder<'b> {
    bytes: &'b [u8],
    /// The expressions that are not children of a node so far, each with its number of levels.
    stack: Vec<(Expression, usize)>,
}

impl Builder<'_> {
    /// Adds a node, which takes its children from the stack.
    ///
    /// # Errors
    /// A text if the node is malformed: its kind is unknown, its children or bytes are missing, or its text is not
    /// UTF-8.
    fn push(&mut self, node: &EvtxNode) -> Result<(), String> {
        let kind = EvtxNodeKind::decode(node.kind)?;
        let count = node.children as usize;
        let first = self
            .stack
            .len()
            .checked_sub(count)
            .ok_or("a node has too few children")?;
        let (children, depths): (Vec<_>, Vec<_>) = self.stack.split_off(first).into_iter().unzip();
        let depth = 1 + depths.into_iter().max().unwrap_or_default();
        let expression = match depth > MAX_DEPTH {
            true => Expression::Unknown,
            false => self.expression(kind, node, children)?,
        };
        let depth = if expression == Expression::Unknown { 1 } else { depth };
        self.stack.push((expression, depth));
        Ok(())
    }

    /// The bytes of a node.
    fn bytes(&self, node: &EvtxNode) -> Result<&[u8], String> {
        let range = usize::try_from(node.start).ok().zip(usize::try_from(node.len).ok());
        let range = range.and_then(|(start, len)| self.bytes.get(start..start.checked_add(len)?));
        range.ok_or_else(|| "a node's bytes are not there".to_owned())
    }

    /// The bytes of a node as text.
    fn text(&self, node: &EvtxNode) -> Result<Box<str>, String> {
        let text = std::str::from_utf8(self.bytes(node)?);
        text.map(Into::into)
            .map_err(|error| format!("text that is no UTF-8: {error}"))
    }

    /// The expression for a node with these children. Unknown if the node is an operation that does not take them.
    fn expression(&self, kind: EvtxNodeKind, node: &EvtxNode, children: Vec<Expression>) -> Result<Expression, String> {
        let constant = match kind {
            EvtxNodeKind::Unknown => return Ok(Expression::Unknown),
            EvtxNodeKind::Column => {
                let column = usize::try_from(node.number);
                return Ok(column.map_or(Expression::Unknown, Expression::Column));
            }
            EvtxNodeKind::Operation => {
                let name = self.text(node)?;
                return Ok(operation(&name, children).unwrap_or(Expression::Unknown));
            }
            EvtxNodeKind::Number => Literal::Number(node.number),
            EvtxNodeKind::Integer => Literal::Integer(node.number.cast_signed()),
            EvtxNodeKind::Instant => Literal::Instant(node.number.cast_signed()),
            EvtxNodeKind::Bool => Literal::Bool(node.number != 0),
            EvtxNodeKind::Text => Literal::Text(self.text(node)?),
            EvtxNodeKind::Uuid => Literal::Uuid(self.bytes(node)?.try_into().map_err(|_| "a GUID has 16 bytes")?),
        };
        Ok(Expression::Constant(constant))
    }
}

/// The expression for an operator or a function of SQL; `None` if the core does not know it, or not with these
/// children.
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
        "IS DISTINCT FROM" => Expression::DistinctFrom(two(children)?),
        "IS NOT DISTINCT FROM" => not(Expression::DistinctFrom(two(children)?)),
        "BETWEEN" => Expression::Between(Box::new(children.try_into().ok()?)),
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

/// The comparison for an operator or a function of SQL; `None` if there is none. DuckDB rewrites a LIKE that searches for
/// a prefix, a suffix or a part as one of the last three.
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

/// The expression for LIKE or ILIKE. The children are a text, a pattern, and the escape character if there is one.
fn like(children: Vec<Expression>, ignores_case: bool) -> Option<Expression> {
    let mut children = children.into_iter();
    let value = children.next()?;
    let mut text = || match children.next()? {
        Expression::Constant(Literal::Text(text)) => Some(text),
        _ => None,
    };
    let pattern = text()?;
    let escape = match children.len() {
        0 => None,
        _ => Some(text_of_escape(children.next()?)?),
    };
    Some(Expression::Matches(
        Box::new(value),
        Pattern {
            text: pattern,
            escape: escape.flatten(),
            ignores_case,
        },
    ))
}

/// The escape character; the inner `None` if the text is empty, so that there is none. The outer `None` if the value is
/// no text, or has more than one character.
fn text_of_escape(value: Expression) -> Option<Option<char>> {
    let Expression::Constant(Literal::Text(text)) = value else {
        return None;
    };
    let mut chars = text.chars();
    let escape = chars.next();
    chars.next().is_none().then_some(escape)
}

impl Hints {
    /// The conditions, all of which have to be true.
    ///
    /// # Errors
    /// A text if a node is malformed.
    pub(crate) fn conditions(&self) -> Result<Vec<Expression>, String> {
        let mut builder = Builder {
            bytes: &self.bytes,
            stack: Vec::new(),
        };
        self.nodes.iter().try_for_each(|node| builder.push(node))?;
        Ok(builder.stack.into_iter().map(|(condition, _)| condition).collect())
    }
}

#[cfg(test)]
mod tests {
    use evtx_arrow::{Options, Predicate};

    use super::*;

    /// The bytes of all nodes: names of operators and functions, and patterns.
    const NAMES: &str = "< = AND OR NOT BETWEEN lower !~~* ~~ ilike_escape contains %a_b% %a$%% $ $$";

    fn leaf(kind: EvtxNodeKind, number: u64) -> EvtxNode {
        EvtxNode {
            kind: kind as u32,
            children: 0,
            number,
            start: 0,
            len: 0,
        }
    }

    fn operation(name: &str, children: u32) -> EvtxNode {
        EvtxNode {
            children,
            start: NAMES.find(name).expect("a name") as u64,
            len: name.len() as u64,
            ..leaf(EvtxNodeKind::Operation, 0)
        }
    }

    /// How many predicates are made of some nodes.
    fn count(nodes: &[EvtxNode]) -> Result<usize, String> {
        count_for(Options::default(), nodes)
    }

    fn count_for(options: Options, nodes: &[EvtxNode]) -> Result<usize, String> {
        let hints = Hints {
            nodes: nodes.to_vec(),
            bytes: NAMES.into(),
        };
        let (table, conditions) = (options.into(), hints.conditions()?);
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
        let unnamed = EvtxNode {
            len: 0,
            ..operation("<", 2)
        };
        assert_eq!(count(&[column, number(5), unnamed]), Ok(0), "no such operator");
    }

    #[test]
    fn comparisons_have_an_operator_or_function() {
        assert_eq!(comparison(">="), Some(Comparison::GreaterOrEqual));
        assert_eq!(comparison("^@"), Some(Comparison::Prefix));
        assert_eq!(comparison("~~"), None);
    }

    #[test]
    fn patterns_become_searches() {
        let text = |text: &str| EvtxNode {
            start: NAMES.find(text).expect("a text") as u64,
            len: text.len() as u64,
            ..leaf(EvtxNodeKind::Text, 0)
        };
        let options = Options {
            text: true,
            ..Options::default()
        };
        let index = evtx_arrow::schema(&options).index_of("text").expect("a column");
        let column = leaf(EvtxNodeKind::Column, index as u64);
        let count = |nodes: &[EvtxNode]| count_for(options, nodes);
        let small = [column, operation("lower", 1)];
        assert_eq!(count(&[column, text("%a_b%"), operation("~~", 2)]), Ok(1));
        assert_eq!(count(&[column, text("%a_b%"), operation("~~*", 2)]), Ok(1));
        assert_eq!(
            count(&[column, text("%a_b%"), operation("!~~*", 2)]),
            Ok(0),
            "the search holds for more"
        );
        assert_eq!(
            count(&[column, text("%a$%%"), text("$"), operation("ilike_escape", 3)]),
            Ok(1)
        );
        assert_eq!(
            count(&[column, text("%a$%%"), text("$$"), operation("ilike_escape", 3)]),
            Ok(0)
        );
        assert_eq!(
            count(&[&small[..], &[text("%a_b%"), operation("~~", 2)]].concat()),
            Ok(1)
        );
        assert_eq!(
            count(&[&small[..], &[text("$"), operation("contains", 2)]].concat()),
            Ok(1)
        );
        assert_eq!(count(&[&small[..], &[text("$"), operation("<", 2)]].concat()), Ok(0));
        assert_eq!(count(&[column, operation("~~", 1)]), Ok(0));
    }

    #[test]
    fn what_is_no_condition_is_an_error() {
        assert!(count(&[operation("AND", 1)]).is_err());
        let unknown_kind = EvtxNode {
            kind: 99,
            ..leaf(EvtxNodeKind::Unknown, 0)
        };
        assert_eq!(count(&[unknown_kind]), Err("99 is no kind of node".to_owned()));
        for kind in [EvtxNodeKind::Text, EvtxNodeKind::Operation] {
            let beyond = EvtxNode {
                start: u64::MAX,
                len: 2,
                ..leaf(kind, 0)
            };
            assert!(count(&[beyond]).is_err());
        }
        assert!(count(&[leaf(EvtxNodeKind::Uuid, 0)]).is_err());
    }

    #[test]
    fn what_lies_too_deep_is_unknown() {
        let number = leaf(EvtxNodeKind::Number, 5);
        let mut nodes = vec![leaf(EvtxNodeKind::Column, 0), number, operation("<", 2)];
        nodes.extend([operation("NOT", 1)].repeat(60));
        assert_eq!(count(&nodes), Ok(1));
        nodes.extend([operation("NOT", 1)].repeat(100_000));
        assert_eq!(count(&nodes), Ok(0));
    }
}
