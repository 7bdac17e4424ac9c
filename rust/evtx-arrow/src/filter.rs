//! Predicates over columns, decided for a record before a row is built of it.
//!
//! A predicate is SQL's: true, false, or NULL, and only records for which it is true are kept. It is told apart by
//! what it needs: the file's path, a record's header, the values of the event's own instance, or all of the
//! record. What needs least is decided first, and the first that is not true ends the record.

use evtx_format::MAX_TEXT;

use crate::options::OnError;
use crate::plan::{Found, Target};
use crate::record::{ChunkTemplates, RecordParts};
use crate::schema::{self, Column, ColumnSource, EntryType, FieldType};
use crate::table::{Events, Table};

/// A constant that a column is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// Of a column of unsigned numbers, whatever their width.
    Number(u64),
    /// Of a column of signed numbers, whatever their width.
    Integer(i64),
    /// Nanoseconds since 1970-01-01 UTC.
    Instant(i64),
    /// The 16 bytes of a GUID, in the order of its text.
    Uuid([u8; 16]),
    /// UTF-8 text, compared byte by byte.
    Text(Box<str>),
    /// Of a column of truth values.
    Bool(bool),
}

/// How a value is compared with a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// The text starts with the constant.
    Prefix,
    /// The text ends with the constant.
    Suffix,
    /// The constant is in the text.
    Contains,
}

/// A condition on a record. Made by [`Predicate::compare`] and its like, which refuse what this crate does not
/// decide exactly as SQL does.
#[derive(Debug, Clone)]
pub struct Predicate(Node<Term>);

/// A condition, over terms as a caller names them or as a scan has resolved them.
#[derive(Debug, Clone)]
enum Node<T> {
    And(Vec<Node<T>>),
    Or(Vec<Node<T>>),
    Not(Box<Node<T>>),
    IsNull(T),
    Compare(T, Comparison, Literal),
    In(T, Vec<Literal>),
}

/// A column, or the entry of one that is a map.
#[derive(Debug, Clone)]
struct Term {
    source: ColumnSource,
    key: Option<Box<str>>,
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
    fn any_term(&self, is: &impl Fn(&T) -> bool) -> bool {
        match self {
            Node::And(nodes) | Node::Or(nodes) => nodes.iter().any(|node| node.any_term(is)),
            Node::Not(node) => node.any_term(is),
            Node::IsNull(term) | Node::Compare(term, ..) | Node::In(term, _) => is(term),
        }
    }

    fn map<U>(&self, term: &mut impl FnMut(&T) -> U) -> Node<U> {
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
    fn decide(
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

/// A value of a record that is not NULL.
#[derive(Debug, Clone, Copy)]
enum Value<'v> {
    Number(u64),
    Integer(i64),
    Instant(i64),
    Uuid([u8; 16]),
    Text(&'v [u8]),
    Bool(bool),
}

impl Value<'_> {
    fn compares(self, comparison: Comparison, literal: &Literal) -> bool {
        let order = match (self, literal) {
            (Value::Number(value), Literal::Number(literal)) => value.cmp(literal),
            (Value::Integer(value), Literal::Integer(literal)) => value.cmp(literal),
            (Value::Instant(value), Literal::Instant(literal)) => value.cmp(literal),
            (Value::Uuid(value), Literal::Uuid(literal)) => value.cmp(literal),
            (Value::Bool(value), Literal::Bool(literal)) => value.cmp(literal),
            (Value::Text(value), Literal::Text(literal)) => {
                let literal = literal.as_bytes();
                match comparison {
                    Comparison::Equal => return value == literal,
                    Comparison::Prefix => return value.starts_with(literal),
                    Comparison::Suffix => return value.ends_with(literal),
                    Comparison::Contains => return memchr::memmem::find(value, literal).is_some(),
                    _ => value.cmp(literal),
                }
            }
            // No term takes a constant of another type.
            _ => return false,
        };
        match comparison {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
            Comparison::Prefix | Comparison::Suffix | Comparison::Contains => false,
        }
    }
}

/// What a term's value takes of a record, from the cheapest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Its file and its header.
    Header,
    /// The values of the event's own instance, if that has the `System` element.
    Event,
    /// All of it.
    Record,
}

/// A term as a scan reads it.
#[derive(Debug, Clone, Copy)]
enum Operand {
    RecordId,
    FileName,
    ChunkIndex,
    RecordOffset,
    Recovered,
    /// A place, by its number in the plan's target.
    Field(usize, Read),
    /// A key of `event_data`, by its number in the plan's target.
    Entry(usize, Read),
}

/// What is read of a value to compare it, as its column holds it.
#[derive(Debug, Clone, Copy)]
enum Read {
    /// With the greatest number that the column holds.
    Number(u64),
    /// With the greatest number that the column holds; the least is one less than its opposite.
    Integer(i64),
    Time,
    Uuid,
    Bool,
    Text,
}

impl Read {
    fn of(field_type: FieldType) -> Option<Self> {
        Some(match field_type {
            FieldType::Time => Read::Time,
            FieldType::UInt8 => Read::Number(u8::MAX.into()),
            FieldType::UInt16 => Read::Number(u16::MAX.into()),
            FieldType::UInt32 => Read::Number(u32::MAX.into()),
            FieldType::UInt64 => Read::Number(u64::MAX),
            FieldType::Int8 => Read::Integer(i8::MAX.into()),
            FieldType::Int16 => Read::Integer(i16::MAX.into()),
            FieldType::Int32 => Read::Integer(i32::MAX.into()),
            FieldType::Int64 => Read::Integer(i64::MAX),
            FieldType::Bool => Read::Bool,
            FieldType::Text | FieldType::Name => Read::Text,
            FieldType::Uuid => Read::Uuid,
            // DuckDB compares them otherwise, or not with constants that the core has.
            FieldType::Int128 | FieldType::Float32 | FieldType::Float64 | FieldType::Bytes => return None,
        })
    }

    /// The value of what was found, but for text.
    fn value(self, found: &Found<'_, '_>) -> Option<Value<'static>> {
        match self {
            Read::Number(greatest) => found.number().filter(|number| *number <= greatest).map(Value::Number),
            Read::Integer(greatest) => {
                let number = found.integer().and_then(|number| i64::try_from(number).ok());
                number
                    .filter(|number| (-1 - greatest..=greatest).contains(number))
                    .map(Value::Integer)
            }
            Read::Time => found.nanos().map(Value::Instant),
            Read::Uuid => found.uuid().map(Value::Uuid),
            Read::Bool => found.bool().map(Value::Bool),
            Read::Text => None,
        }
    }
}

/// What is known of a row before it is built.
pub(crate) struct Row<'x, 'r> {
    pub(crate) record_id: Option<u64>,
    pub(crate) chunk_index: Option<u32>,
    pub(crate) record_offset: Option<u64>,
    pub(crate) recovered: Option<bool>,
    pub(crate) filename: &'x str,
    /// Stands in for the event's time where nothing of the event can be read, as in the column.
    pub(crate) written: Option<i64>,
    /// The record, as far as it was read.
    pub(crate) parts: Option<(RecordParts<'x, 'r>, &'x ChunkTemplates)>,
}

/// The predicates of a scan.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    /// By stage and cost.
    conjuncts: Vec<(Stage, Node<Operand>)>,
}

impl Filter {
    /// The filter of predicates that all have to be true. Adds what they read to the plan's target.
    pub(crate) fn new(predicates: &[&Predicate], target: &mut Target) -> Self {
        let mut conjuncts = Vec::new();
        for Predicate(node) in predicates {
            let node = node.map(&mut |term| operand(term, target));
            conjuncts.push((stage(&node, target), node));
        }
        conjuncts.sort_by_key(|(stage, node)| (*stage, cost(node)));
        Filter { conjuncts }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.conjuncts.is_empty()
    }

    /// Whether any predicate reads more of a record than the event's own instance.
    pub(crate) fn reads_children(&self) -> bool {
        self.conjuncts.iter().any(|(stage, _)| *stage > Stage::Event)
    }

    /// Whether the predicates of the stages from `from` to `to` are all true for a row.
    #[inline]
    pub(crate) fn keeps(&self, from: Stage, to: Stage, row: &Row<'_, '_>, scratch: &mut Vec<u8>) -> bool {
        let of_stages = self.conjuncts.iter().filter(|(stage, _)| (from..=to).contains(stage));
        let mut of_stages = of_stages.map(|(_, node)| node);
        of_stages.all(|node| node.decide(&mut |operand, test| row.test(*operand, scratch, test)) == Some(true))
    }
}

impl Row<'_, '_> {
    fn test(
        &self,
        operand: Operand,
        scratch: &mut Vec<u8>,
        test: &mut dyn FnMut(Option<Value<'_>>) -> Option<bool>,
    ) -> Option<bool> {
        let field = |place| self.parts.and_then(|(parts, templates)| parts.field(templates, place));
        let value = match operand {
            Operand::RecordId => self.record_id.map(Value::Number),
            Operand::ChunkIndex => self.chunk_index.map(|index| Value::Number(index.into())),
            Operand::RecordOffset => self.record_offset.map(Value::Number),
            Operand::Recovered => self.recovered.map(Value::Bool),
            Operand::FileName => Some(Value::Text(self.filename.as_bytes())),
            Operand::Field(_, Read::Time) if self.parts.is_none_or(|(parts, _)| parts.is_unread()) => {
                self.written.map(Value::Instant)
            }
            Operand::Field(place, Read::Text) => field(place).and_then(|found| text(&found, scratch, Found::push_text)),
            Operand::Field(place, read) => field(place).and_then(|found| read.value(&found)),
            Operand::Entry(key, read) => {
                let found = self
                    .parts
                    .and_then(|(parts, templates)| parts.entry(templates, key, parts.entry_limit(templates)));
                match read {
                    Read::Text => found.and_then(|found| text(&found, scratch, Found::push_entry)),
                    _ => found.and_then(|found| read.value(&found)),
                }
            }
        };
        test(value)
    }
}

/// A text as its column holds it.
fn text<'s, 'p, 'v>(
    found: &Found<'p, 'v>,
    scratch: &'s mut Vec<u8>,
    push: impl Fn(&Found<'p, 'v>, &mut Vec<u8>),
) -> Option<Value<'s>> {
    scratch.clear();
    push(found, scratch);
    (scratch.len() <= MAX_TEXT).then_some(Value::Text(scratch))
}

/// How a scan reads a term. What it reads is added to the plan's target.
fn operand(term: &Term, target: &mut Target) -> Operand {
    match &term.source {
        ColumnSource::RecordId => Operand::RecordId,
        ColumnSource::ChunkIndex => Operand::ChunkIndex,
        ColumnSource::RecordOffset => Operand::RecordOffset,
        ColumnSource::Recovered => Operand::Recovered,
        ColumnSource::Field(place, field_type) => {
            Operand::Field(target.place(*place), Read::of(*field_type).unwrap_or(Read::Text))
        }
        ColumnSource::Entry(key, entry_type) => {
            Operand::Entry(target.key(key), Read::of(entry_type.item).unwrap_or(Read::Text))
        }
        ColumnSource::EventData => Operand::Entry(target.key(term.key.as_deref().unwrap_or_default()), Read::Text),
        // No predicate is made of the others.
        _ => Operand::FileName,
    }
}

fn stage(node: &Node<Operand>, target: &Target) -> Stage {
    let stage = |operand: &Operand| match *operand {
        Operand::Field(place, _) => {
            if target.places[place].in_system {
                Stage::Event
            } else {
                Stage::Record
            }
        }
        Operand::Entry(..) => Stage::Record,
        _ => Stage::Header,
    };
    [Stage::Record, Stage::Event]
        .into_iter()
        .find(|at| node.any_term(&|operand| stage(operand) == *at))
        .unwrap_or(Stage::Header)
}

/// What deciding a predicate costs, in the order of magnitude.
fn cost(node: &Node<Operand>) -> usize {
    match node {
        Node::And(nodes) | Node::Or(nodes) => nodes.iter().map(cost).sum(),
        Node::Not(node) => cost(node),
        Node::IsNull(operand) | Node::Compare(operand, ..) | Node::In(operand, _) => match operand {
            Operand::Field(_, Read::Text) => 8,
            Operand::Field(..) => 2,
            Operand::Entry(..) => 16,
            _ => 1,
        },
    }
}
