//! Predicates as a caller makes them, over the columns of a table.

use super::value::{Comparison, Literal, Read, Value};
use crate::options::OnError;
use crate::schema::{self, Column, ColumnSource, EntryType, FieldType};
use crate::table::{Events, Table};

/// A condition on a record. Made by [`Predicate::compare`] and its like, which refuse what this crate does not
/// decide exactly as SQL does.
#[derive(Debug, Clone)]
pub struct Predicate(pub(super) Node<Term>);

/// A condition, over terms as a caller names them or as a scan has resolved them.
#[derive(Debug, Clone)]
pub(super) enum Node<T> {
    And(Vec<Node<T>>),
    Or(Vec<Node<T>>),
    Not(Box<Node<T>>),
    IsNull(T),
    Compare(T, Comparison, Literal),
    In(T, Vec<Literal>),
}

/// A column, or the entry of one that is a map.
#[derive(Debug, Clone)]
pub(super) struct Term {
    pub(super) source: ColumnSource,
    pub(super) key: Option<Box<str>>,
}

impl Term {
    fn new(table: &Table, column: usize, key: Option<&str>) -> Option<Self> {
        // The first damage ends such a scan, also where it is in a record that is not asked for.
        if table.options.on_error == OnError::Fail {
            return None;
        }
        let source = table.columns.get(column)?.source.clone();
        let key = key.map(Into::into);
        let decided = match (&source, &key) {
            (ColumnSource::EventData, Some(_)) => true,
            (ColumnSource::Entry(_, EntryType { list, .. }), None) => !list,
            // It may stand beside the log.
            (ColumnSource::Field(place, _), None) => *place != schema::MESSAGE,
            (
                ColumnSource::RecordId
                | ColumnSource::FileName
                | ColumnSource::ChunkIndex
                | ColumnSource::RecordOffset
                | ColumnSource::Recovered,
                None,
            ) => true,
            _ => false,
        };
        decided.then_some(Term { source, key })
    }

    /// Whether the term's values can be compared with a constant.
    fn takes(&self, comparison: Comparison, literal: &Literal) -> bool {
        let is_text = |comparison| {
            use Comparison::{Contains, Prefix, Suffix};
            matches!(comparison, Prefix | Suffix | Contains)
        };
        let field_type = match &self.source {
            ColumnSource::Field(_, field_type) => *field_type,
            ColumnSource::Entry(_, entry_type) => entry_type.item,
            ColumnSource::EventData | ColumnSource::FileName => FieldType::Text,
            ColumnSource::RecordId | ColumnSource::ChunkIndex | ColumnSource::RecordOffset => FieldType::UInt64,
            ColumnSource::Recovered => FieldType::Bool,
            _ => return false,
        };
        match (Read::of(field_type), literal) {
            (Some(Read::Text), Literal::Text(_)) => true,
            (Some(Read::Time), Literal::Instant(_))
            | (Some(Read::Uuid), Literal::Uuid(_))
            | (Some(Read::Number(_)), Literal::Number(_))
            | (Some(Read::Integer(_)), Literal::Integer(_))
            | (Some(Read::Bool), Literal::Bool(_)) => !is_text(comparison),
            _ => false,
        }
    }
}

impl Predicate {
    /// The column with this index in the table's schema, or the entry of a map column, compared with a
    /// constant. `None` where that is not decided here.
    pub fn compare(
        table: &Table,
        column: usize,
        key: Option<&str>,
        comparison: Comparison,
        literal: Literal,
    ) -> Option<Self> {
        let term = Term::new(table, column, key)?;
        let taken = term.takes(comparison, &literal);
        taken.then_some(Predicate(Node::Compare(term, comparison, literal)))
    }

    /// The column, or an entry of it, is equal to one of the constants. `None` where that is not decided here.
    pub fn is_in(table: &Table, column: usize, key: Option<&str>, literals: Vec<Literal>) -> Option<Self> {
        let term = Term::new(table, column, key)?;
        let taken = literals.iter().all(|literal| term.takes(Comparison::Equal, literal));
        taken.then_some(Predicate(Node::In(term, literals)))
    }

    /// The column, or an entry of it, is NULL. `None` where that is not decided here.
    pub fn is_null(table: &Table, column: usize, key: Option<&str>) -> Option<Self> {
        Term::new(table, column, key).map(|term| Predicate(Node::IsNull(term)))
    }

    /// All of the predicates.
    pub fn all(predicates: Vec<Predicate>) -> Self {
        Predicate(Node::And(predicates.into_iter().map(|predicate| predicate.0).collect()))
    }

    /// Any of the predicates.
    pub fn any(predicates: Vec<Predicate>) -> Self {
        Predicate(Node::Or(predicates.into_iter().map(|predicate| predicate.0).collect()))
    }

    /// The predicate's opposite; NULL where it is NULL.
    #[allow(clippy::should_implement_trait)] // SQL's NOT
    pub fn not(self) -> Self {
        Predicate(Node::Not(Box::new(self.0)))
    }

    /// The records of some events, whatever becomes of errors.
    pub(crate) fn of_events(events: &Events) -> Self {
        let term = |name: &str| {
            let column = schema::COLUMNS.into_iter().find(|column| column.name == name);
            Term {
                source: column.map_or(ColumnSource::Error, |Column { source, .. }| source),
                key: None,
            }
        };
        let ids = events.ids.iter().map(|&id| Literal::Number(id.into())).collect();
        let mut nodes = vec![Node::In(term("event_id"), ids)];
        if let Some(provider) = &events.provider {
            let provider = Literal::Text(provider.clone());
            nodes.push(Node::Compare(term("provider"), Comparison::Equal, provider));
        }
        Predicate(Node::And(nodes))
    }

    /// Whether the predicate needs no more than a file's path, and drops all of the file's rows.
    pub fn drops_file(&self, filename: &str) -> bool {
        let needs_more = |term: &Term| term.source != ColumnSource::FileName;
        if self.0.any_term(&needs_more) {
            return false;
        }
        let decided = self
            .0
            .decide(&mut |_, test| test(Some(Value::Text(filename.as_bytes()))));
        decided != Some(true)
    }
}

impl<T> Node<T> {
    pub(super) fn any_term(&self, is: &impl Fn(&T) -> bool) -> bool {
        match self {
            Node::And(nodes) | Node::Or(nodes) => nodes.iter().any(|node| node.any_term(is)),
            Node::Not(node) => node.any_term(is),
            Node::IsNull(term) | Node::Compare(term, ..) | Node::In(term, _) => is(term),
        }
    }

    pub(super) fn map<U>(&self, term: &mut impl FnMut(&T) -> U) -> Node<U> {
        match self {
            Node::And(nodes) => Node::And(nodes.iter().map(|node| node.map(term)).collect()),
            Node::Or(nodes) => Node::Or(nodes.iter().map(|node| node.map(term)).collect()),
            Node::Not(node) => Node::Not(Box::new(node.map(term))),
            Node::IsNull(of) => Node::IsNull(term(of)),
            Node::Compare(of, comparison, literal) => Node::Compare(term(of), *comparison, literal.clone()),
            Node::In(of, literals) => Node::In(term(of), literals.clone()),
        }
    }

    /// The predicate's truth; `None` is NULL. `with` finds a term's value and returns what the test makes of it.
    pub(super) fn decide(
        &self,
        with: &mut impl FnMut(&T, &mut dyn FnMut(Option<Value<'_>>) -> Option<bool>) -> Option<bool>,
    ) -> Option<bool> {
        // Kleene's logic: NULL unless the others decide.
        let mut junction = |nodes: &[Node<T>], absorbing: bool| {
            let mut result = Some(!absorbing);
            for node in nodes {
                match node.decide(with) {
                    Some(truth) if truth == absorbing => return Some(absorbing),
                    Some(_) => {}
                    None => result = None,
                }
            }
            result
        };
        match self {
            Node::And(nodes) => junction(nodes, false),
            Node::Or(nodes) => junction(nodes, true),
            Node::Not(node) => node.decide(with).map(|truth| !truth),
            Node::IsNull(term) => with(term, &mut |value| Some(value.is_none())),
            Node::Compare(term, comparison, literal) => with(term, &mut |value| {
                value.map(|value| value.compares(*comparison, literal))
            }),
            Node::In(term, literals) => with(term, &mut |value| {
                value.map(|value| {
                    literals
                        .iter()
                        .any(|literal| value.compares(Comparison::Equal, literal))
                })
            }),
        }
    }
}
