//! The conditions of a query through the C ABI.

use evtx_arrow::{Comparison, Expression, Literal, Predicate, Table};

use crate::boundary::{Code, bytes};

/// What a node of a condition is. Its children are the nodes before it that no other has.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvtxNodeKind {
    /// Whatever the core does not know. Without children.
    Unknown,
    /// The column `number`. Without children.
    Column,
    /// The value of a map for a key: a column and a text.
    MapValue,
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
    /// All of the children.
    And,
    /// Any of the children.
    Or,
    /// The opposite of the child.
    Not,
    /// The child is NULL.
    IsNull,
    /// The child is not NULL.
    IsNotNull,
    /// The first child equals the second.
    Equal,
    /// The two differ.
    NotEqual,
    /// The first is less.
    Less,
    /// The first is not greater.
    LessOrEqual,
    /// The first is greater.
    Greater,
    /// The first is not less.
    GreaterOrEqual,
    /// The first starts with the second.
    Prefix,
    /// The first ends with the second.
    Suffix,
    /// The second is in the first.
    Contains,
    /// The two differ, where NULL is a value like others.
    DistinctFrom,
    /// The opposite of that.
    NotDistinctFrom,
    /// The first lies from the second to the third; the bounds themselves may be left out.
    Between,
    /// The first equals one of the others.
    OneOf,
    /// The first equals none of the others.
    NoneOf,
}

impl Code for EvtxNodeKind {
    const ALL: &[Self] = {
        use EvtxNodeKind::*;
        &[
            Unknown,
            Column,
            MapValue,
            Number,
            Integer,
            Instant,
            Uuid,
            Text,
            Bool,
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
            Prefix,
            Suffix,
            Contains,
            DistinctFrom,
            NotDistinctFrom,
            Between,
            OneOf,
            NoneOf,
        ]
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
    /// By number of the path: 0 if it has no rows that the query wants.
    pub kept_paths: *const u8,
    /// How many there are: none if all paths may have some.
    pub path_count: usize,
}

/// The same, owned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    pub(crate) nodes: Vec<EvtxNode>,
    pub(crate) bytes: Vec<u8>,
    /// Empty if all paths may have rows.
    pub(crate) kept_paths: Vec<u8>,
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
        let (bytes, kept_paths) = unsafe { (bytes(self.bytes, self.len), bytes(self.kept_paths, self.path_count)) };
        Hints {
            nodes: nodes.to_vec(),
            bytes: bytes.to_vec(),
            kept_paths: kept_paths.to_vec(),
        }
    }
}

impl Hints {
    /// Whether a path may have rows that the query wants, by its number.
    pub(crate) fn keeps(&self, path: usize) -> bool {
        self.kept_paths.get(path).is_none_or(|&kept| kept != 0)
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
        use EvtxNodeKind as Kind;
        let constant = match kind {
            Kind::Number => Literal::Number(node.number),
            Kind::Integer => Literal::Integer(node.number.cast_signed()),
            Kind::Instant => Literal::Instant(node.number.cast_signed()),
            Kind::Bool => Literal::Bool(node.number != 0),
            Kind::Text => Literal::Text(self.text(node)?),
            Kind::Uuid => Literal::Uuid(self.bytes(node)?.try_into().map_err(|_| "a GUID has 16 bytes")?),
            _ => return Ok(self.operation(kind, node, children).unwrap_or(Expression::Unknown)),
        };
        Ok(Expression::Constant(constant))
    }

    fn operation(&self, kind: EvtxNodeKind, node: &EvtxNode, children: Vec<Expression>) -> Option<Expression> {
        use EvtxNodeKind as Kind;
        let one = |children: Vec<Expression>| Some(Box::new(<[_; 1]>::try_from(children).ok()?.into_iter().next()?));
        let two = |children: Vec<Expression>| Some(Box::new(<[_; 2]>::try_from(children).ok()?));
        let not = |expression| Some(Expression::Not(Box::new(expression)));
        let compare = |comparison, children| Some(Expression::Compare(comparison, two(children)?));
        let is_in = |children: Vec<Expression>| {
            let mut children = children.into_iter();
            Some(Expression::In(Box::new(children.next()?), children.collect()))
        };
        match kind {
            Kind::Column => Some(Expression::Column(usize::try_from(node.number).ok()?)),
            Kind::MapValue => match <[_; 2]>::try_from(children).ok()? {
                [Expression::Column(column), Expression::Constant(Literal::Text(key))] => {
                    Some(Expression::Entry(column, key))
                }
                _ => None,
            },
            Kind::And => Some(Expression::And(children)),
            Kind::Or => Some(Expression::Or(children)),
            Kind::Not => Some(Expression::Not(one(children)?)),
            Kind::IsNull => Some(Expression::IsNull(one(children)?)),
            Kind::IsNotNull => not(Expression::IsNull(one(children)?)),
            Kind::Equal => compare(Comparison::Equal, children),
            Kind::NotEqual => compare(Comparison::NotEqual, children),
            Kind::Less => compare(Comparison::Less, children),
            Kind::LessOrEqual => compare(Comparison::LessOrEqual, children),
            Kind::Greater => compare(Comparison::Greater, children),
            Kind::GreaterOrEqual => compare(Comparison::GreaterOrEqual, children),
            Kind::Prefix => compare(Comparison::Prefix, children),
            Kind::Suffix => compare(Comparison::Suffix, children),
            Kind::Contains => compare(Comparison::Contains, children),
            Kind::DistinctFrom => Some(Expression::DistinctFrom(two(children)?)),
            Kind::NotDistinctFrom => not(Expression::DistinctFrom(two(children)?)),
            Kind::Between => Some(Expression::Between(Box::new(children.try_into().ok()?))),
            Kind::OneOf => is_in(children),
            Kind::NoneOf => not(is_in(children)?),
            Kind::Unknown | Kind::Number | Kind::Integer | Kind::Instant | Kind::Uuid | Kind::Text | Kind::Bool => None,
        }
    }
}

/// What the rows of a table that a query wants have to fulfil, as far as a scan decides it.
pub(crate) fn predicates(table: &Table, nodes: &[EvtxNode], bytes: &[u8]) -> Result<Vec<Predicate>, String> {
    let mut builder = Builder {
        bytes,
        stack: Vec::new(),
    };
    nodes.iter().try_for_each(|node| builder.push(node))?;
    let conditions = builder.stack.iter();
    Ok(conditions
        .filter_map(|(condition, _)| Predicate::implied(table, condition))
        .collect())
}

#[cfg(test)]
mod tests {
    use evtx_arrow::Options;

    use super::*;

    fn node(kind: EvtxNodeKind, children: u32, number: u64) -> EvtxNode {
        EvtxNode {
            kind: kind as u32,
            children,
            number,
            start: 0,
            len: 0,
        }
    }

    /// How many predicates come of some nodes.
    fn count(nodes: &[EvtxNode]) -> Result<usize, String> {
        predicates(&Options::default().into(), nodes, b"").map(|predicates| predicates.len())
    }

    #[test]
    fn nodes_become_predicates() {
        use EvtxNodeKind::*;
        let compared = [node(Column, 0, 0), node(Number, 0, 5), node(Less, 2, 0)];
        assert_eq!(count(&compared), Ok(1));
        assert_eq!(count(&[compared, compared].concat()), Ok(2));
        let either = [&compared[..], &[node(Unknown, 0, 0), node(Or, 2, 0)]].concat();
        assert_eq!(count(&either), Ok(0), "nothing is known of the other");
        let between = [
            node(Column, 0, 0),
            node(Number, 0, 1),
            node(Number, 0, 2),
            node(Between, 3, 0),
        ];
        assert_eq!(count(&between), Ok(1));
        assert_eq!(count(&[&between[..], &[node(Not, 1, 0)]].concat()), Ok(0));
        assert_eq!(
            count(&[node(Column, 0, 77), node(Number, 0, 1), node(Equal, 2, 0)]),
            Ok(0)
        );
    }

    #[test]
    fn what_is_no_condition_is_an_error() {
        use EvtxNodeKind::*;
        assert!(count(&[node(And, 1, 0)]).is_err());
        let unknown_kind = EvtxNode {
            kind: 99,
            ..node(And, 0, 0)
        };
        assert_eq!(count(&[unknown_kind]), Err("99 is no kind of node".to_owned()));
        let text = EvtxNode {
            start: u64::MAX,
            len: 2,
            ..node(Text, 0, 0)
        };
        assert!(count(&[text]).is_err());
        assert!(count(&[node(Uuid, 0, 0)]).is_err());
    }

    #[test]
    fn what_lies_too_deep_is_unknown() {
        use EvtxNodeKind::*;
        let mut nodes = vec![node(Column, 0, 0), node(Number, 0, 5), node(Less, 2, 0)];
        nodes.extend([node(Not, 1, 0)].repeat(60));
        assert_eq!(count(&nodes), Ok(1));
        nodes.extend([node(Not, 1, 0)].repeat(100_000));
        assert_eq!(count(&nodes), Ok(0));
    }
}
