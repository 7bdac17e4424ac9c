//! Predicates over columns, which a scan decides for a record before it builds a row.
//!
//! A predicate is true, false or NULL. A record is kept if all predicates are true. A predicate belongs to the first
//! [`Stage`] at which everything it needs has been read: the header, the event's own instance, or the whole record. The
//! stages are decided in this order, and the first predicate that is not true drops the record.

mod comparison;
mod value;
mod expression;
mod predicate;

use std::cell::{Cell, OnceCell};

use evtx_format::render::program::Language;
use evtx_format::{Interrupt, MAX_TEXT};

use crate::plan::{Lookup, MAX_FIELD, PathId, Projection, Resolved};
use crate::record::{ChunkTemplates, KeyedEntries, RecordView};
use crate::schema::{HeaderValue, Operand};

pub use comparison::Comparison;
pub use expression::Expression;
pub use predicate::Predicate;
use predicate::{Node, Term, Test};
pub use value::Literal;
pub(crate) use value::Typed;
use value::{Read, Value};

/// How much of a record must be read to decide a predicate, from the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Its file, its position, and its header.
    Header,
    /// The values of the event's own instance, which usually has the `System` element.
    Event,
    /// The whole record.
    Record,
}

/// How a scan reads the value of a [`Term`].
#[derive(Debug, Clone, Copy)]
enum Access {
    Header(HeaderValue),
    Field(PathId, Read),
    /// An entry of `EventData` or `UserData`.
    Entry(Lookup, Read),
    /// All values of the event.
    Text,
}

/// Appends all values of the record, as in the column `text`. Returns false if the record has no such text.
pub(crate) type PushText<'x> = &'x dyn Fn(&ChunkTemplates, &mut Vec<u8>) -> bool;

/// Buffers for the texts that predicates compare, reused for each record.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The text of one column.
    value: Vec<u8>,
    /// All values of the record.
    text: Vec<u8>,
}

impl Scratch {
    /// Frees buffers that have grown beyond [`MAX_FIELD`] bytes, before the columns of the record need as much memory.
    #[inline]
    fn give_back(&mut self) {
        for text in [&mut self.value, &mut self.text] {
            if text.capacity() > MAX_FIELD {
                *text = Vec::new();
            }
        }
    }
}

/// Each [`HeaderValue`] of a row. `None` is NULL in the column.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HeaderValues<'x> {
    pub(crate) record_id: Option<u64>,
    pub(crate) filename: &'x str,
    pub(crate) chunk_index: Option<u32>,
    pub(crate) record_offset: Option<u64>,
    pub(crate) recovered: Option<bool>,
}

impl<'x> HeaderValues<'x> {
    /// A value; `None` for NULL.
    pub(crate) fn get(&self, of: HeaderValue) -> Option<Value<'x>> {
        match of {
            HeaderValue::RecordId => self.record_id.map(Value::Number),
            HeaderValue::FileName => Some(Value::Text(self.filename.as_bytes())),
            HeaderValue::ChunkIndex => self.chunk_index.map(|index| Value::Number(index.into())),
            HeaderValue::RecordOffset => self.record_offset.map(Value::Number),
            HeaderValue::Recovered => self.recovered.map(Value::Bool),
        }
    }
}

/// What is known of a row before it is built. `None` is NULL in the column.
#[derive(Default)]
pub(crate) struct Row<'x, 'r> {
    pub(crate) header: HeaderValues<'x>,
    /// When the record was written, in nanoseconds since 1970-01-01 UTC: the time of an event that cannot be read.
    pub(crate) written: Option<i64>,
    /// The record, as far as it was read, with the templates of its chunk; `None` before it is read.
    pub(crate) record: Option<(RecordView<'x, 'r>, &'x ChunkTemplates)>,
    /// The entries of `EventData` and `UserData`, once they are looked at.
    pub(crate) entries: OnceCell<Option<KeyedEntries<'x, 'r>>>,
    /// Writes all values of the record.
    pub(crate) push_text: Option<PushText<'x>>,
    /// Whether there is such a text, once it is written.
    pub(crate) has_text: Cell<Option<bool>>,
    /// Whether the row reports damage that may have destroyed any event. Then it is in every table of some events.
    pub(crate) may_be_any_event: bool,
    /// Checked for each long text, because comparing several takes long.
    pub(crate) interrupt: Interrupt<'x>,
}

#[derive(Debug, Default)]
pub(crate) struct Filter {
    /// Sorted by stage, and within a stage by cost.
    conjuncts: Vec<Conjunct>,
}

/// One of the predicates of a scan.
#[derive(Debug)]
struct Conjunct {
    /// The stage at which it is decided.
    stage: Stage,
    node: Node,
    /// How the terms of `node` are read.
    accesses: Vec<Access>,
    /// Whether it selects the events of the table, not rows of the table.
    of_events: bool,
}

impl Filter {
    /// A filter that reads through `projection`. `of_events` selects the events of the table, if it does not have all.
    pub(crate) fn new<'p>(
        of_events: Option<&Predicate>,
        predicates: impl IntoIterator<Item = &'p Predicate>,
        projection: &mut Projection,
    ) -> Self {
        let mut conjuncts = Vec::new();
        let of_events = of_events.into_iter().map(|predicate| (predicate, true));
        for (predicate, of_events) in of_events.chain(predicates.into_iter().map(|predicate| (predicate, false))) {
            // A predicate about extra columns is decided by the row source, before the scan.
            let accesses = predicate.terms.iter().map(|term| access(term, projection));
            let Some(accesses) = accesses.collect::<Option<Vec<_>>>() else {
                continue;
            };
            let stage = accesses.iter().map(|access| stage(*access, projection)).max();
            conjuncts.push(Conjunct {
                stage: stage.unwrap_or(Stage::Header),
                node: predicate.node.clone(),
                accesses,
                of_events,
            });
        }
        conjuncts.sort_by_key(|conjunct| (conjunct.stage, conjunct.cost()));
        Filter { conjuncts }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.conjuncts.is_empty()
    }

    /// Whether any predicate needs more than the header and the event's own instance.
    pub(crate) fn reads_children(&self) -> bool {
        self.conjuncts.iter().any(|conjunct| conjunct.stage > Stage::Event)
    }

    /// Whether all predicates of the stages `from` to `to` are true for a row. Frees large buffers of `scratch`.
    #[inline]
    pub(crate) fn keeps(&self, from: Stage, to: Stage, row: &Row<'_, '_>, scratch: &mut Scratch) -> bool {
        let mut conjuncts = self.conjuncts.iter().filter(|it| (from..=to).contains(&it.stage));
        let kept = conjuncts.all(|conjunct| conjunct.keeps(row, scratch));
        scratch.give_back();
        kept
    }
}

impl Conjunct {
    #[inline]
    fn keeps(&self, row: &Row<'_, '_>, scratch: &mut Scratch) -> bool {
        if self.of_events && row.may_be_any_event {
            return true;
        }
        let decided = self
            .node
            .decide(&mut |term, test| row.test(self.accesses[term], scratch, test));
        decided == Some(true)
    }

    /// The cost of deciding it, roughly. A column of the header costs 1.
    #[warn(clippy::wildcard_enum_match_arm)]
    fn cost(&self) -> usize {
        let costs = self.accesses.iter().map(|access| match access {
            Access::Field(_, Read::Text) => 8,
            Access::Field(..) => 2,
            Access::Entry(..) => 16,
            Access::Text => 256,
            Access::Header(_) => 1,
        });
        costs.sum()
    }
}

impl<'x, 'r> Row<'x, 'r> {
    /// The result of a test for the value of an access.
    fn test(&self, access: Access, scratch: &mut Scratch, test: &Test) -> Option<bool> {
        let field = |place| {
            let (record, templates) = self.record?;
            record.path_values(templates).get(place)
        };
        let Scratch { value: scratch, text } = scratch;
        let value = match access {
            Access::Text => self.whole(text),
            Access::Header(value) => self.header.get(value),
            Access::Field(_, Read::Time) if self.record.is_none_or(|(record, _)| record.is_unread()) => {
                self.written.map(Value::Instant)
            }
            Access::Field(place, Read::Text) => {
                field(place).and_then(|found| self.text(&found, MAX_FIELD, scratch, Resolved::push_text))
            }
            Access::Field(place, read) => field(place).and_then(|found| read.value(&found)),
            Access::Entry(lookup, read) => {
                let found = self.entry(lookup);
                match read {
                    Read::Text => found.and_then(|found| self.text(&found, MAX_TEXT, scratch, Resolved::push_entry)),
                    _ => found.and_then(|found| read.value(&found)),
                }
            }
        };
        test.of(value)
    }

    fn entry(&self, lookup: Lookup) -> Option<Resolved<'x, 'r>> {
        let entries = self.entries.get_or_init(|| {
            let (record, templates) = self.record?;
            Some(record.keyed_entries(templates))
        });
        entries.as_ref()?.get(lookup)
    }

    /// All values of the record as one text. Written once for all predicates.
    fn whole<'s>(&self, text: &'s mut Vec<u8>) -> Option<Value<'s>> {
        let has_text = self.has_text.get().unwrap_or_else(|| {
            text.clear();
            let pushed = self
                .record
                .zip(self.push_text)
                .is_some_and(|((_, templates), push)| push(templates, text));
            // A caller that has interrupted the scan gets no more rows, so the result does not matter.
            pushed && (text.len() <= LONG || self.interrupt.check().is_ok())
        });
        self.has_text.set(Some(has_text));
        has_text.then_some(Value::Text(text))
    }

    /// A text as its column holds it: NULL if it is longer than `limit` bytes.
    fn text<'s>(
        &self,
        found: &Resolved<'x, 'r>,
        limit: usize,
        scratch: &'s mut Vec<u8>,
        push: impl Fn(&Resolved<'x, 'r>, &mut Vec<u8>),
    ) -> Option<Value<'s>> {
        scratch.clear();
        push(found, scratch);
        // A caller that has interrupted the scan gets no more rows, so the result does not matter.
        let goes_on = scratch.len() <= LONG || self.interrupt.check().is_ok();
        (goes_on && scratch.len() <= limit).then_some(Value::Text(scratch))
    }
}

/// The most bytes of text that are compared without checking for an interrupt.
const LONG: usize = 64 << 10;

/// How a scan reads the value of a term; `None` for an extra column. Adds the place, key or text to `projection`.
#[warn(clippy::wildcard_enum_match_arm)]
fn access(term: &Term, projection: &mut Projection) -> Option<Access> {
    let read = term.read;
    Some(match &term.operand {
        Operand::Header(value) => Access::Header(*value),
        Operand::Path(place) => Access::Field(projection.path(*place), read),
        Operand::Entry(keys) => Access::Entry(projection.column(keys), read),
        Operand::Key(key) => Access::Entry(projection.key(key), Read::Text),
        Operand::Text => {
            projection.add_language(Language::Text);
            Access::Text
        }
        Operand::Extra(_) => return None,
    })
}

/// The stage at which a value can be read.
#[warn(clippy::wildcard_enum_match_arm)]
fn stage(access: Access, projection: &Projection) -> Stage {
    match access {
        Access::Header(_) => Stage::Header,
        Access::Field(place, _) if projection.is_in_system(place) => Stage::Event,
        Access::Field(..) | Access::Entry(..) | Access::Text => Stage::Record,
    }
}

#[cfg(test)]
mod tests {
    use evtx_format::value::{Scalar, Value as Stored};

    use super::*;
    use crate::schema::{self, Events, Options};
    use crate::table::Table;

    fn table() -> Table {
        Table::from(Options {
            location: true,
            ..Options::default()
        })
        .with_recovered()
    }

    fn column(name: &str) -> Expression {
        let column = table().columns.iter().position(|column| column.name == name);
        Expression::Column(column.expect(name))
    }

    fn entry(key: &str) -> Expression {
        match column("event_data") {
            Expression::Column(column) => Expression::Entry(column, key.into()),
            other => other,
        }
    }

    fn is_null(of: Expression) -> Expression {
        Expression::IsNull(Box::new(of))
    }

    fn equals(value: Expression, literal: Literal) -> Expression {
        Expression::Compare(Comparison::Equal, Box::new([value, Expression::Constant(literal)]))
    }

    fn filter(conditions: &[Expression]) -> (Filter, Projection) {
        let predicates: Vec<_> = conditions
            .iter()
            .map(|condition| Predicate::implied(&table(), condition).expect("decided here"))
            .collect();
        let mut projection = Projection::default();
        (Filter::new(None, &predicates, &mut projection), projection)
    }

    /// A row of which only the header is known.
    fn row<'x, 'r>() -> Row<'x, 'r> {
        Row {
            header: HeaderValues {
                record_id: Some(5),
                filename: "a.evtx",
                chunk_index: Some(2),
                record_offset: Some(700),
                recovered: Some(true),
            },
            written: Some(9),
            ..Row::default()
        }
    }

    #[test]
    fn a_predicate_belongs_to_the_first_stage_that_has_all_of_it() {
        let and = |a, b| Expression::And(vec![a, b]);
        let stages = [
            (is_null(column("record_id")), Stage::Header),
            (is_null(column("chunk_index")), Stage::Header),
            (is_null(column("record_offset")), Stage::Header),
            (is_null(column("filename")), Stage::Header),
            (column("recovered"), Stage::Header),
            (is_null(column("event_id")), Stage::Event),
            (is_null(column("provider")), Stage::Event),
            (is_null(column("time_created")), Stage::Event),
            (and(is_null(column("event_id")), column("recovered")), Stage::Event),
            (is_null(entry("a")), Stage::Record),
            (and(is_null(entry("a")), is_null(column("event_id"))), Stage::Record),
            (and(column("recovered"), is_null(entry("a"))), Stage::Record),
            // What falls away is not read.
            (
                and(
                    column("recovered"),
                    Expression::Or(vec![is_null(entry("a")), Expression::Unknown]),
                ),
                Stage::Header,
            ),
        ];
        for (condition, stage) in stages {
            let (filter, projection) = filter(std::slice::from_ref(&condition));
            assert_eq!(filter.conjuncts[0].stage, stage, "{condition:?}");
            assert_eq!(filter.reads_children(), stage == Stage::Record, "{condition:?}");
            assert_eq!(projection.event_data, stage == Stage::Record, "{condition:?}");
            assert!(!filter.is_empty());
        }
        assert!(Filter::default().is_empty() && !Filter::default().reads_children());
        // A place outside of `System` is in the streams that the substitutions hold.
        let mut projection = Projection::default();
        let message = projection.path(schema::EventPath::MESSAGE);
        assert_eq!(stage(Access::Field(message, Read::Text), &projection), Stage::Record);
    }

    #[test]
    fn the_cheapest_predicate_of_a_stage_is_decided_first() {
        let some = |count| vec![is_null(column("event_id")); count];
        // From the first to the last.
        let sorted = [
            is_null(column("filename")),
            is_null(column("event_id")),
            Expression::Not(Box::new(Expression::Or(some(3)))),
            is_null(column("provider")),
            Expression::And(some(5)),
            is_null(entry("a")),
            Expression::And(vec![is_null(entry("a")), Expression::Or(some(9))]),
        ];
        let reversed: Vec<_> = sorted.into_iter().rev().collect();
        let filter = filter(&reversed).0;
        let costs = filter.conjuncts.iter().map(Conjunct::cost);
        assert_eq!(costs.collect::<Vec<_>>(), [1, 2, 6, 8, 10, 16, 34]);
    }

    #[test]
    fn a_header_is_decided_without_the_record() {
        let keeps = |condition: &Expression, row: &Row<'_, '_>| {
            filter(std::slice::from_ref(condition))
                .0
                .keeps(Stage::Header, Stage::Record, row, &mut Scratch::default())
        };
        let number = |name, number| equals(column(name), Literal::Number(number));
        // Conditions that are true for the row, and conditions that are not.
        let table = [
            (number("record_id", 5), number("record_id", 2)),
            (number("chunk_index", 2), number("chunk_index", 5)),
            (number("record_offset", 700), number("record_offset", 5)),
            (column("recovered"), Expression::Not(Box::new(column("recovered")))),
            (
                equals(column("filename"), Literal::Text("a.evtx".into())),
                equals(column("filename"), Literal::Text("b.evtx".into())),
            ),
            // The time at which the record was written replaces the time of an event that cannot be read.
            (
                equals(column("time_created"), Literal::Instant(9)),
                is_null(column("time_created")),
            ),
            (is_null(column("event_id")), number("event_id", 5)),
            (
                is_null(column("provider")),
                equals(column("provider"), Literal::Text("".into())),
            ),
            (is_null(entry("a")), equals(entry("a"), Literal::Text("".into()))),
        ];
        for (is_true, is_false) in table {
            assert!(keeps(&is_true, &row()), "{is_true:?}");
            assert!(!keeps(&is_false, &row()), "{is_false:?}");
        }
        let unknown = Row::default();
        for name in ["record_id", "chunk_index", "record_offset", "recovered", "time_created"] {
            assert!(keeps(&is_null(column(name)), &unknown), "{name}");
            assert!(
                !keeps(&Expression::Not(Box::new(is_null(column(name)))), &unknown),
                "{name}"
            );
        }
    }

    #[test]
    fn damage_may_be_any_event_but_not_any_row() {
        let events = Predicate::of_events(&Events::of_ids([4624]));
        let wanted = Predicate::implied(&table(), &equals(column("record_id"), Literal::Number(5))).expect("decided");
        for (may_be_any_event, record_id, kept) in [
            (true, Some(5), true),
            (true, Some(4), false),
            (true, None, false),
            (false, Some(5), false),
        ] {
            let mut projection = Projection::default();
            let filter = Filter::new(Some(&events), std::slice::from_ref(&wanted), &mut projection);
            let row = Row {
                may_be_any_event,
                header: HeaderValues {
                    record_id,
                    ..row().header
                },
                ..row()
            };
            assert_eq!(
                filter.keeps(Stage::Header, Stage::Record, &row, &mut Scratch::default()),
                kept
            );
        }
    }

    #[test]
    fn a_text_that_is_too_long_for_its_column_is_null() {
        fn read(len: usize, interrupt: Interrupt<'_>, scratch: &mut Vec<u8>) -> Option<bool> {
            let bytes = vec![b'a'; len];
            let found = Resolved::Value(Stored::new(Scalar::AnsiString, &bytes));
            let row = Row { interrupt, ..row() };
            let text = row.text(&found, 3 * LONG, scratch, Resolved::push_text);
            text.map(|value| matches!(value, Value::Text(text) if text == bytes))
        }
        let mut scratch = b"of the last row".to_vec();
        for (len, expected) in [(0, Some(true)), (3 * LONG, Some(true)), (3 * LONG + 1, None)] {
            assert_eq!(read(len, Interrupt::NEVER, &mut scratch), expected, "{len}");
        }
        // Interrupts are checked only for a long text.
        let interrupted = Interrupt::new(&|| true);
        for (len, expected) in [(LONG, Some(true)), (LONG + 1, None)] {
            assert_eq!(read(len, interrupted, &mut scratch), expected, "{len}");
        }
    }

    #[test]
    fn room_for_a_long_text_is_given_back() {
        let mut scratch = Scratch::default();
        for text in [&mut scratch.value, &mut scratch.text] {
            text.reserve(2 * MAX_FIELD);
        }
        assert!(Filter::default().keeps(Stage::Header, Stage::Record, &row(), &mut scratch));
        assert!([scratch.value, scratch.text].iter().all(|text| text.capacity() == 0));
    }
}
