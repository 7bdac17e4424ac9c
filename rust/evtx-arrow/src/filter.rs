//! Predicates over columns, decided for a record before a row is built of it.
//!
//! A predicate is SQL's: true, false, or NULL, and only records for which it is true are kept. It is told apart by
//! what it needs: the file's path, a record's header, the values of the event's own instance, or all of the
//! record. What needs least is decided first, and the first that is not true ends the record.

mod comparison;
mod value;
mod expression;
mod predicate;

use std::cell::OnceCell;

use evtx_format::{Interrupt, MAX_TEXT};

use crate::plan::{MAX_FIELD, Projection, Resolved};
use crate::record::{ChunkTemplates, KeyedEntries, RecordView};
use crate::schema::ColumnSource;

pub use comparison::Comparison;
pub use expression::Expression;
pub use predicate::Predicate;
use predicate::{Node, Term};
pub use value::Literal;
use value::{Read, Value};

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
    /// A place, by its index in the plan's target.
    Field(usize, Read),
    /// A key of `event_data`, by its index in the plan's target.
    Entry(usize, Read),
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
    pub(crate) parts: Option<(RecordView<'x, 'r>, &'x ChunkTemplates)>,
    /// The entries of `event_data`, and how many there are, once they are looked at.
    pub(crate) entries: OnceCell<Option<(KeyedEntries<'x, 'r>, usize)>>,
    /// Whether the row tells of damage that may have cost any event.
    pub(crate) may_be_any_event: bool,
    /// Texts can be so long that looking at some takes long.
    pub(crate) interrupt: Interrupt<'x>,
}

/// The predicates of a scan.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    /// By stage and cost.
    conjuncts: Vec<Conjunct>,
}

#[derive(Debug)]
struct Conjunct {
    stage: Stage,
    node: Node<Operand>,
    /// Whether it says which events the table has, and not which of its rows are wanted.
    of_events: bool,
}

impl Filter {
    /// The filter of predicates that all have to be true, `of_events` for the records of a table of some events. Adds
    /// what they read to the plan's target.
    pub(crate) fn new(of_events: Option<&Predicate>, predicates: &[Predicate], target: &mut Projection) -> Self {
        let mut conjuncts = Vec::new();
        let of_events = of_events.into_iter().map(|predicate| (predicate, true));
        for (Predicate(node), of_events) in of_events.chain(predicates.iter().map(|predicate| (predicate, false))) {
            let node = node.map(&mut |term| operand(term, target));
            let stage = stage(&node, target);
            conjuncts.push(Conjunct { stage, node, of_events });
        }
        conjuncts.sort_by_key(|conjunct| (conjunct.stage, cost(&conjunct.node)));
        Filter { conjuncts }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.conjuncts.is_empty()
    }

    /// Whether any predicate reads more of a record than the event's own instance.
    pub(crate) fn reads_children(&self) -> bool {
        self.conjuncts.iter().any(|conjunct| conjunct.stage > Stage::Event)
    }

    /// Whether the predicates of the stages from `from` to `to` are all true for a row.
    #[inline]
    pub(crate) fn keeps(&self, from: Stage, to: Stage, row: &Row<'_, '_>, scratch: &mut Vec<u8>) -> bool {
        let of_stages = |conjunct: &&Conjunct| (from..=to).contains(&conjunct.stage);
        let mut of_stages = self.conjuncts.iter().filter(of_stages);
        of_stages.all(|conjunct| conjunct.keeps(row, scratch))
    }
}

impl Conjunct {
    #[inline]
    fn keeps(&self, row: &Row<'_, '_>, scratch: &mut Vec<u8>) -> bool {
        if self.of_events && row.may_be_any_event {
            return true;
        }
        let decided = self.node.decide(&mut |operand, test| row.test(*operand, scratch, test));
        decided == Some(true)
    }
}

impl<'x, 'r> Row<'x, 'r> {
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
            Operand::Field(place, Read::Text) => {
                field(place).and_then(|found| self.text(&found, MAX_FIELD, scratch, Resolved::push_text))
            }
            Operand::Field(place, read) => field(place).and_then(|found| read.value(&found)),
            Operand::Entry(key, read) => {
                let found = self.entry(key);
                match read {
                    Read::Text => found.and_then(|found| self.text(&found, MAX_TEXT, scratch, Resolved::push_entry)),
                    _ => found.and_then(|found| read.value(&found)),
                }
            }
        };
        test(value)
    }

    /// What the record has for a key of `event_data`.
    fn entry(&self, key: usize) -> Option<Resolved<'x, 'r>> {
        let entries = self.entries.get_or_init(|| {
            let (parts, templates) = self.parts?;
            let entries = parts.keyed_entries(templates)?;
            Some((entries, entries.limit()))
        });
        let (entries, limit) = entries.as_ref()?;
        entries.get(key, *limit)
    }

    /// A text as its column holds it, which is NULL if it is longer than `limit`.
    fn text<'s>(
        &self,
        found: &Resolved<'x, 'r>,
        limit: usize,
        scratch: &'s mut Vec<u8>,
        push: impl Fn(&Resolved<'x, 'r>, &mut Vec<u8>),
    ) -> Option<Value<'s>> {
        scratch.clear();
        scratch.shrink_to(MAX_FIELD);
        push(found, scratch);
        // Whoever was interrupted wants no row.
        let goes_on = scratch.len() <= LONG || self.interrupt.check().is_ok();
        (goes_on && scratch.len() <= limit).then_some(Value::Text(scratch))
    }
}

/// Bytes of text that take some time to look at.
const LONG: usize = 64 << 10;

/// How a scan reads a term. What it reads is added to the plan's target.
fn operand(term: &Term, target: &mut Projection) -> Operand {
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

fn stage(node: &Node<Operand>, target: &Projection) -> Stage {
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
