//! The conditions of a query through the C ABI.

use evtx_arrow::{Comparison, Expression, Literal, Pattern};

use crate::boundary::{Code, bytes};

/// What a node of a condition is. Its children are the nodes before it that no other has.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvtxNodeKind {
    /// Whatever the core does not know. Without children.
    Unknown,
    /// The column `number`. Without children.
    Column,
    /// The unsigned number `number`. Without children, as all constants.
    Number,
    /// A signed number: `number` is the bits of an i64.
    Integer,
    /// A time: `number` is the bits of an i64, nanoseconds since 1970-01-01 UTC.
    Instant,
    /// A GUID: its 16 bytes, in the order of its text.
    Uuid,
    /// A text: its UTF-8 bytes.
    Text,
    /// A truth value: `number` is 0 or 1.
    Bool,
    /// An operator or a function of the children: the name that SQL has for it, as bytes.
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
    /// A number.
    pub number: u64,
    /// Where its bytes start among those of the condition.
    pub start: u64,
    /// How many bytes there are.
    pub len: u64,
}

/// The predicates of a query, as far as the caller can tell them: conditions that all have to be true, as nodes in
/// postfix order whose texts are among `len` bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxHints {
    /// The nodes, `node_count` of them.
    pub nodes: *const EvtxNode,
    /// How many there are.
    pub node_count: usize,
    /// The bytes, `len` of them.
    pub bytes: *const u8,
    /// How many there are.
    pub len: usize,
}

/// The same, owned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    pub(crate) nodes: Vec<EvtxNode>,
    pub(crate) bytes: Vec<u8>,
}

impl EvtxHints {
    /// # Safety
    /// The pointers are valid as far as their counts say.
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

/// Most levels of a condition. What lies deeper is unknown.
const MAX_DEPTH: usize = 100;

/// Builds conditions of nodes in postfix order.
struct Builder<'b> {
    bytes: &'b [u8],
    /// What no node has as its child so far, each with its number of levels.
    stack: Vec<(Expression, usize)>,
}

impl Builder<'_> {
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

    fn bytes(&self, node: &EvtxNode) -> Result<&[u8], String> {
        let range = usize::try_from(node.start).ok().zip(usize::try_from(node.len).ok());
        let range = range.and_then(|(start, len)| self.bytes.get(start..start.checked_add(len)?));
        range.ok_or_else(|| "a node's bytes are not there".to_owned())
    }

    fn text(&self, node: &EvtxNode) -> Result<Box<str>, String> {
        let text = std::str::from_utf8(self.bytes(node)?);
        text.map(Into::into)
            .map_err(|error| format!("text that is no UTF-8: {error}"))
    }

    /// The condition that a node is, given what its children are. One whose children are not what it takes is unknown.
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

/// What an operator or a function of SQL is to a scan; `None` for what the core does not know. Comparisons have a list
/// of their own.
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
        name => Expression::Compare(Comparison::named(name)?, two(children)?),
    })
}

/// LIKE and ILIKE of a text, a pattern, and the character that escapes, if there is one.
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
    Some(Expression::Like(
        Box::new(value),
        Pattern {
            text: pattern,
            escape: escape.flatten(),
            ignores_case,
        },
    ))
}

/// The character that escapes; the inner `None` if it is empty, and there is none.
fn text_of_escape(value: Expression) -> Option<Option<char>> {
    let Expression::Constant(Literal::Text(text)) = value else {
        return None;
    };
    let mut chars = text.chars();
    let escape = chars.next();
    chars.next().is_none().then_some(escape)
}

impl Hints {
    /// The conditions that all have to be true.
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

    /// The bytes of all nodes: the names of operators.
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

    /// How many predicates come of some nodes.
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
