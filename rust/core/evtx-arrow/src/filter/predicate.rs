//! Predicates over the columns of a table, derived from the conditions of a query.

use evtx_format::search::{Pattern, Search};

use super::comparison::Comparison;
use super::expression::Expression;
use super::value::{Constants, Literal, Read, Value};
use crate::extra::Known;
use crate::schema::{Comparable, EventPath, Events, FieldType, HeaderValue, OnError, Operand};
use crate::table::Table;

/// A predicate, which a scan decides for a record before it builds a row.
#[derive(Debug, Clone)]
pub struct Predicate {
    pub(super) terms: Vec<Term>,
    pub(super) node: Node,
}

/// A node of a predicate.
#[derive(Debug, Clone)]
pub(super) enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    /// A test of the term with this index.
    Test(usize, Test),
}

/// A test of the value of a term. Constants have the type of the value.
#[derive(Debug, Clone)]
pub(super) enum Test {
    IsNull,
    Compare(Comparison, Literal),
    In(Constants),
    /// The text has the needles of a pattern. This can hold for texts that the pattern does not match.
    Holds(Search),
}

impl Test {
    /// Whether the test is true for a value; `None` is NULL.
    #[inline]
    pub(super) fn of(&self, value: Option<Value<'_>>) -> Option<bool> {
        match self {
            Test::IsNull => Some(value.is_none()),
            Test::Compare(comparison, literal) => Some(value?.compares(*comparison, literal)),
            Test::In(constants) => Some(constants.have(&value?)),
            Test::Holds(search) => match value? {
                Value::Text(text) => Some(search.holds(text)),
                _ => Some(true),
            },
        }
    }
}

/// A column, or an entry of a map column.
#[derive(Debug, Clone)]
pub(super) struct Term {
    pub(super) operand: Operand,
    pub(super) read: Read,
}

impl Term {
    /// The term for a value; `None` if it is something else, or if a scan of the table cannot decide predicates on it.
    fn new(table: &Table, value: &Expression) -> Option<Self> {
        let (column, key) = match value {
            Expression::Column(column) => (*column, None),
            Expression::Entry(column, key) => (*column, Some(&**key)),
            _ => return None,
        };
        let source = &table.columns.get(column)?.source;
        let term = Term {
            operand: source.operand(key)?,
            read: Read::of(source.field_type().unwrap_or(FieldType::Text))?,
        };
        // The first damage ends such a scan, even in a record that a predicate would drop.
        let is_needed = table.options.on_error == OnError::Fail && !term.is_of_extra();
        (!is_needed).then_some(term)
    }

    fn is_of_extra(&self) -> bool {
        matches!(self.operand, Operand::Extra(_))
    }

    /// The literal of a constant of the type of the term's values: names of numbers are numbers. `None` for other
    /// expressions, and if the comparison is not for this type.
    fn constant(&self, comparison: Comparison, constant: &Expression) -> Option<Literal> {
        let Expression::Constant(literal) = constant else {
            return None;
        };
        let number = match (&self.operand, literal) {
            (Operand::Extra(extra), Literal::Text(name)) => match extra.comparable {
                Some(Comparable::Number(number_of)) => number_of(name),
                _ => None,
            },
            _ => None,
        };
        let literal = number.map_or_else(|| literal.clone(), Literal::Number);
        let is_taken = match (self.read, &literal) {
            (Read::Text, Literal::Text(_)) => true,
            (Read::Time, Literal::Instant(_))
            | (Read::Uuid, Literal::Uuid(_))
            | (Read::Number(_), Literal::Number(_))
            | (Read::Integer(_), Literal::Integer(_))
            | (Read::Bool, Literal::Bool(_)) => !comparison.is_of_text(),
            _ => false,
        };
        is_taken.then_some(literal)
    }
}

impl Predicate {
    /// The strongest predicate that a scan of the table can decide and that is true wherever the condition is true.
    /// `None` if it would always be true.
    pub fn implied(table: &Table, condition: &Expression) -> Option<Self> {
        let terms = Vec::new();
        let mut hints = Hints { table, terms };
        let node = hints.hint(condition, true)?;
        let terms = hints.terms;
        Some(Predicate { terms, node })
    }

    /// The predicate that a record is one of some events. A scan decides it with every `on_error`.
    pub(crate) fn of_events(events: &Events) -> Self {
        let test = |place, read, constants| {
            let operand = Operand::Path(place);
            (Term { operand, read }, Test::In(constants))
        };
        let ids = events.ids.iter().map(|ids| {
            let ids = ids.iter().map(|&id| Literal::Number(id.into())).collect();
            test(EventPath::EVENT_ID, Read::Number(u32::MAX.into()), Constants::new(ids))
        });
        let providers = events.providers.iter();
        let providers = providers.map(|names| test(EventPath::PROVIDER, Read::Text, Constants::names(names)));
        let (terms, tests): (Vec<_>, Vec<_>) = ids.chain(providers).unzip();
        let nodes = (0..).zip(tests).map(|(index, test)| Node::Test(index, test));
        let node = Node::And(nodes.collect());
        Predicate { terms, node }
    }

    /// Whether the predicate uses extra columns.
    pub(crate) fn is_of_extras(&self) -> bool {
        self.terms.iter().any(Term::is_of_extra)
    }

    /// Whether the predicate can be true for rows with these values of extra columns. It decides this only if it uses no other
    /// columns, and is not true for rows where these are NULL: which of these exist does not depend on predicates.
    pub(crate) fn keeps_known<'k>(&self, value: impl Fn(usize) -> Option<Known<'k>>) -> bool {
        let is_of_extras = self.terms.iter().all(Term::is_of_extra);
        if !is_of_extras || self.node.decide(&mut |_, test| test.of(None)) == Some(true) {
            return true;
        }
        let decided = self.node.decide(&mut |term, test| {
            let known = match &self.terms[term].operand {
                Operand::Extra(extra) => value(extra.id),
                _ => None,
            };
            test.of(known.map(|known| match known {
                Known::Text(text) => Value::Text(text.as_bytes()),
                Known::Number(number) => Value::Number(number),
            }))
        });
        decided == Some(true)
    }

    /// Whether the predicate is about the path of the file alone, and drops the file with this path.
    pub fn drops_file(&self, filename: &str) -> bool {
        let needs_more = |term: &Term| term.operand != Operand::Header(HeaderValue::FileName);
        if self.terms.iter().any(needs_more) {
            return false;
        }
        let filename = Some(Value::Text(filename.as_bytes()));
        self.node.decide(&mut |_, test| test.of(filename)) != Some(true)
    }
}

/// The value that an expression has in lower case, or else the expression, and which it is.
fn lowered(of: &Expression) -> (&Expression, bool) {
    match of {
        Expression::Lower(value) => (value, true),
        _ => (of, false),
    }
}

/// Makes a predicate of a condition over a table.
struct Hints<'t> {
    table: &'t Table,
    /// The terms of the predicate so far.
    terms: Vec<Term>,
}

impl Hints<'_> {
    /// The node for a condition. `is_positive`: under an even number of NOTs. `None` is the constant that keeps the most
    /// records: true, or false if the condition is negative.
    ///
    /// Take the order false, NULL, true. If an operand of AND or OR grows, the result never falls. NOT reverses the
    /// order. So an operand that is not fully known can be replaced by one that is never less, or, if it is negative, never
    /// greater.
    fn hint(&mut self, condition: &Expression, is_positive: bool) -> Option<Node> {
        match condition {
            Expression::And(parts) => self.junction(parts, is_positive, is_positive).map(Node::And),
            Expression::Or(parts) => self.junction(parts, is_positive, !is_positive).map(Node::Or),
            Expression::Not(part) => self.hint(part, !is_positive).map(|node| Node::Not(Box::new(node))),
            Expression::IsNull(of) => {
                let term = Term::new(self.table, of)?;
                Some(self.test(term, Test::IsNull))
            }
            Expression::Compare(comparison, sides) => {
                let [left, right] = &**sides;
                self.compare(left, *comparison, right)
                    .or_else(|| self.compare(right, comparison.exchanged()?, left))
                    .or_else(|| is_positive.then(|| self.compare_lower(left, *comparison, right))?)
            }
            // The search holds for more texts than the pattern matches, so it must not be negated.
            Expression::Matches(value, pattern) if is_positive => {
                let (value, is_lower) = lowered(value);
                let ignores_case = pattern.ignores_case || is_lower;
                let search = Search::of_pattern(&Pattern {
                    ignores_case,
                    ..pattern.clone()
                })?;
                self.holds(value, search)
            }
            Expression::In(value, constants) => {
                // The test holds for more texts than those in the list, so it must not be negated.
                let (value, is_lower) = lowered(value);
                if is_lower && !is_positive {
                    return None;
                }
                let term = Term::new(self.table, value)?;
                let literals = constants
                    .iter()
                    .map(|constant| term.constant(Comparison::Equal, constant));
                let literals = literals.collect::<Option<_>>()?;
                let constants = if is_lower {
                    Constants::in_lower_case(literals)?
                } else {
                    Constants::new(literals)
                };
                Some(self.test(term, Test::In(constants)))
            }
            Expression::Column(_) => {
                let is_true = Expression::Constant(Literal::Bool(true));
                self.compare(condition, Comparison::Equal, &is_true)
            }
            Expression::Matches(..)
            | Expression::Unknown
            | Expression::Constant(_)
            | Expression::Entry(..)
            | Expression::Lower(_) => None,
        }
    }

    /// The nodes of the parts of AND or OR. A part without a node can be left out (`leaves_out`), or it decides the junction.
    fn junction(&mut self, parts: &[Expression], is_positive: bool, leaves_out: bool) -> Option<Vec<Node>> {
        let before = self.terms.len();
        let nodes: Vec<_> = parts.iter().filter_map(|part| self.hint(part, is_positive)).collect();
        if leaves_out {
            return (!nodes.is_empty()).then_some(nodes);
        }
        if nodes.len() < parts.len() {
            self.terms.truncate(before);
            return None;
        }
        Some(nodes)
    }

    fn test(&mut self, term: Term, test: Test) -> Node {
        self.terms.push(term);
        Node::Test(self.terms.len() - 1, test)
    }

    /// A search in the texts of a value; `None` if the value is not a term of type text.
    fn holds(&mut self, value: &Expression, search: Search) -> Option<Node> {
        let term = Term::new(self.table, value).filter(|term| matches!(term.read, Read::Text))?;
        Some(self.test(term, Test::Holds(search)))
    }

    /// The hint for a comparison of a text in lower case: the text contains the constant, in any case.
    fn compare_lower(&mut self, value: &Expression, comparison: Comparison, with: &Expression) -> Option<Node> {
        let (Expression::Lower(value), Expression::Constant(Literal::Text(text))) = (value, with) else {
            return None;
        };
        let is_part = matches!(
            comparison,
            Comparison::Equal | Comparison::Prefix | Comparison::Suffix | Comparison::Contains
        );
        is_part.then(|| self.holds(value, Search::contains(text, true)))?
    }

    /// A term compared with a constant; `None` for other expressions, or if the types differ.
    fn compare(&mut self, value: &Expression, comparison: Comparison, with: &Expression) -> Option<Node> {
        let term = Term::new(self.table, value)?;
        let literal = term.constant(comparison, with)?;
        Some(self.test(term, Test::Compare(comparison, literal)))
    }
}

impl Node {
    /// Whether the predicate is true; `None` is NULL. `test` tests the value of a term.
    pub(super) fn decide(&self, test: &mut impl FnMut(usize, &Test) -> Option<bool>) -> Option<bool> {
        // Kleene's logic: `absorbing` decides the junction. Without it, a NULL makes the result NULL.
        let mut junction = |nodes: &[Node], absorbing: bool| {
            let mut result = Some(!absorbing);
            for node in nodes {
                match node.decide(test) {
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
            Node::Not(node) => node.decide(test).map(|truth| !truth),
            Node::Test(term, of_value) => test(*term, of_value),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schema::Options;

    fn located() -> Options {
        Options {
            location: true,
            ..Options::default()
        }
    }

    /// Indices of `record_id`, `record_offset` and `filename`.
    fn columns() -> [usize; 3] {
        let table = Table::from(located());
        let place = |name: &str| table.columns.iter().position(|column| column.name == name);
        ["record_id", "record_offset", "filename"].map(|name| place(name).expect("a column"))
    }

    fn comparisons() -> impl Strategy<Value = Comparison> {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        prop::sample::select(vec![Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual])
    }

    #[test]
    fn a_pattern_is_a_hint_where_it_has_to_match() {
        let table = Table::from(located());
        let [number, _, name] = columns().map(|column| Box::new(Expression::Column(column)));
        let lower = Box::new(Expression::Lower(name.clone()));
        let matches = |value: &Expression, ignores_case| {
            let pattern = Pattern {
                text: "%Sec%".into(),
                escape: None,
                ignores_case,
            };
            Expression::Matches(Box::new(value.clone()), pattern)
        };
        let small = |comparison| {
            let sides = [*lower.clone(), Expression::Constant(Literal::Text("sec".into()))];
            Expression::Compare(comparison, Box::new(sides))
        };
        // Whether each of these names is kept; `None` where there is no hint.
        let keeps = |condition: &Expression| {
            let hint = Predicate::implied(&table, condition)?;
            Some(["Security", "SECURITY", "System"].map(|name| !hint.drops_file(name)))
        };
        assert_eq!(keeps(&matches(&name, false)), Some([true, false, false]));
        assert_eq!(keeps(&matches(&name, true)), Some([true, true, false]));
        let listed = Expression::In(
            lower.clone(),
            vec![Expression::Constant(Literal::Text("security".into()))],
        );
        assert_eq!(keeps(&listed), Some([true, true, false]));
        assert_eq!(keeps(&Expression::Not(Box::new(listed))), None);
        // A text in lower case never has a capital letter, but the hint may hold for more.
        assert_eq!(keeps(&matches(&lower, false)), Some([true, true, false]));
        assert_eq!(keeps(&matches(&number, false)), None);
        let of_number = Expression::Compare(
            Comparison::Equal,
            Box::new([*number.clone(), Expression::Constant(Literal::Number(1))]),
        );
        assert_eq!(keeps(&of_number), Some([true; 3]), "not by its name alone");
        for comparison in [
            Comparison::Equal,
            Comparison::Prefix,
            Comparison::Suffix,
            Comparison::Contains,
        ] {
            assert_eq!(keeps(&small(comparison)), Some([true, true, false]), "{comparison:?}");
        }
        assert_eq!(keeps(&small(Comparison::Less)), None);
        // A text that holds the parts need not match, so nothing follows from the opposite, except of its opposite.
        for condition in [matches(&name, false), small(Comparison::Contains)] {
            let not = Expression::Not(Box::new(condition.clone()));
            assert_eq!(keeps(&not), None);
            assert_eq!(keeps(&Expression::Not(Box::new(not))), keeps(&condition));
        }
    }

    /// A few numbers, so that many are equal, and the greatest.
    fn ids() -> impl Strategy<Value = u64> {
        prop_oneof![5 => 0..5_u64, 1 => Just(u64::MAX)]
    }

    fn number() -> impl Strategy<Value = Expression> {
        ids().prop_map(|number| Expression::Constant(Literal::Number(number)))
    }

    /// A side that is not a constant, or a constant of another type than the column.
    fn odd() -> impl Strategy<Value = Expression> {
        let text = Expression::Constant(Literal::Text("1".into()));
        prop::sample::select(vec![Expression::Unknown, text, Expression::Column(columns()[0])])
    }

    fn conditions() -> impl Strategy<Value = Expression> {
        let side = || prop_oneof![8 => number(), 1 => odd()];
        let column = || prop::sample::select(columns()[..2].to_vec()).prop_map(Expression::Column);
        let leaf = prop_oneof![
            (column(), comparisons(), side(), any::<bool>()).prop_map(|(column, comparison, side, first)| {
                let sides = if first { [column, side] } else { [side, column] };
                Expression::Compare(comparison, Box::new(sides))
            }),
            (column(), side()).prop_map(|(column, side)| Expression::distinct_from([column, side])),
            (column(), side(), side()).prop_map(|(column, a, b)| Expression::between([column, a, b])),
            (column(), prop::collection::vec(side(), 1..4)).prop_map(|(of, list)| Expression::In(Box::new(of), list)),
            column().prop_map(|column| Expression::IsNull(Box::new(column))),
            Just(Expression::Unknown),
        ];
        leaf.prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 1..4).prop_map(Expression::And),
                prop::collection::vec(inner.clone(), 1..4).prop_map(Expression::Or),
                inner.prop_map(|part| Expression::Not(Box::new(part))),
            ]
        })
    }

    /// Decides conditions as an engine does, in three-valued logic. `open` gives what the core cannot know: the
    /// values of unknown conditions, and whether the bounds of a range belong to it.
    struct Engine<'o> {
        values: [Option<u64>; 2],
        open: &'o mut dyn Iterator<Item = u8>,
        /// Whether anything was asked that the core cannot know.
        asked: bool,
    }

    impl Engine<'_> {
        fn open(&mut self) -> u8 {
            self.asked = true;
            self.open.next().unwrap_or_default()
        }

        fn value(&mut self, side: &Expression) -> Option<u64> {
            match side {
                Expression::Column(column) => self.values[usize::from(*column == columns()[1])],
                Expression::Constant(Literal::Number(number)) => Some(*number),
                _ => Some(self.open().into()),
            }
        }

        fn compare(&mut self, comparison: Comparison, [left, right]: &[Expression; 2]) -> Option<bool> {
            if matches!((left, right), (Expression::Column(_), Expression::Column(_))) {
                self.asked = true;
            }
            let (left, right) = (self.value(left), self.value(right));
            let (left, right) = (left?, right?);
            Some(match comparison {
                Comparison::Equal => left == right,
                Comparison::NotEqual => left != right,
                Comparison::Less => left < right,
                Comparison::LessOrEqual => left <= right,
                Comparison::Greater => left > right,
                _ => left >= right,
            })
        }

        fn junction(&mut self, parts: &[Expression], absorbing: bool) -> Option<bool> {
            // Every part is decided, so that `asked` does not depend on their values.
            let truths: Vec<_> = parts.iter().map(|part| self.decide(part)).collect();
            match truths {
                truths if truths.contains(&Some(absorbing)) => Some(absorbing),
                truths if truths.contains(&None) => None,
                _ => Some(!absorbing),
            }
        }

        fn decide(&mut self, condition: &Expression) -> Option<bool> {
            match condition {
                Expression::And(parts) => self.junction(parts, false),
                Expression::Or(parts) => self.junction(parts, true),
                Expression::Not(part) => self.decide(part).map(|truth| !truth),
                Expression::IsNull(of) => Some(self.value(of).is_none()),
                Expression::Compare(comparison, sides) => self.compare(*comparison, sides),
                Expression::In(of, list) => {
                    let any: Vec<_> = list
                        .iter()
                        .map(|one| Expression::Compare(Comparison::Equal, Box::new([(**of).clone(), one.clone()])))
                        .collect();
                    self.junction(&any, true)
                }
                _ => [None, Some(false), Some(true)][usize::from(self.open()) % 3],
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000.max(ProptestConfig::default().cases), failure_persistence: None, ..ProptestConfig::default() })]
        /// Wherever a condition is true, its hint is true, whatever the parts are that the core cannot know. If there
        /// are no such parts, the hint is true nowhere else.
        #[test]
        fn a_hint_is_true_wherever_its_condition_is(
            condition in conditions(),
            values in [prop::option::of(ids()), prop::option::of(ids())],
            open in prop::collection::vec(0..6_u8, 24),
        ) {
            let mut engine = Engine { values, open: &mut open.into_iter(), asked: false };
            let is_true = engine.decide(&condition) == Some(true);
            let hint = Predicate::implied(&Table::from(located()), &condition);
            let kept = hint.as_ref().is_none_or(|Predicate { terms, node }| {
                let decided = node.decide(&mut |term, test| {
                    let value = values[usize::from(terms[term].operand == Operand::Header(HeaderValue::RecordOffset))];
                    test.of(value.map(Value::Number))
                });
                decided == Some(true)
            });
            prop_assert!(kept || !is_true, "{hint:?} drops what {condition:?} keeps");
            if !engine.asked {
                prop_assert_eq!(kept, is_true, "{:?} for {:?}", hint, condition);
            }
        }
    }

    #[test]
    fn a_part_that_decides_a_junction_ends_it() {
        let is_true = |of: bool| Node::Test(of.into(), Test::Compare(Comparison::Equal, Literal::Bool(true)));
        for (junction, decides) in [(Node::And as fn(_) -> _, false), (Node::Or, true)] {
            let node = junction(vec![is_true(!decides), is_true(decides), is_true(decides)]);
            let mut asked = 0;
            let decided = node.decide(&mut |of, test| {
                asked += 1;
                test.of(Some(Value::Bool(of == 1)))
            });
            assert_eq!((decided, asked), (Some(decides), 2));
        }
    }

    /// A table with every column.
    fn whole_table(on_error: OnError) -> Table {
        Table::from(Options {
            on_error,
            xml: true,
            json: true,
            text: true,
            fields: true,
            ..located()
        })
        .with_recovered()
    }

    /// A text in the place of a number or of bytes is NULL if it does not parse.
    #[test]
    fn null_is_decided_where_values_are_read_as_their_columns_read_them() {
        for (name, field_type) in FieldType::ALL {
            let field = crate::schema::EventField::of("a", *field_type);
            let table = Table::of_events(Options::default(), Events::of_ids([1]), &[field], &[]);
            let index = table
                .columns
                .iter()
                .position(|column| &*column.name == "a")
                .expect("its column");
            let is_null = Expression::IsNull(Box::new(Expression::Column(index)));
            let is_decided = Predicate::implied(&table, &is_null).is_some();
            let engines_only = ["bytes", "float32", "float64", "int128"];
            assert_eq!(
                is_decided,
                !engines_only.contains(&&*name.to_lowercase()),
                "{name} {field_type:?}"
            );
        }
    }

    #[test]
    fn only_columns_that_can_be_looked_at_early_are_decided() {
        let table = whole_table(OnError::Report);
        for (index, column) in table.columns.iter().enumerate() {
            let is_null = Expression::IsNull(Box::new(Expression::Column(index)));
            let later = ["event_data", "user_data", "error", "xml", "json", "fields"];
            let is_decided = !later.contains(&&*column.name);
            let name = &column.name;
            assert_eq!(Predicate::implied(&table, &is_null).is_some(), is_decided, "{name}");
            let is_true = Predicate::implied(&table, &Expression::Column(index));
            assert_eq!(is_true.is_some(), name == "recovered", "{name}");
            let fails = whole_table(OnError::Fail);
            assert!(Predicate::implied(&fails, &is_null).is_none(), "{name}");
            let entry = Expression::IsNull(Box::new(Expression::Entry(index, "a".into())));
            assert_eq!(
                Predicate::implied(&table, &entry).is_some(),
                name == "event_data",
                "{name}"
            );
        }
        let none = Expression::IsNull(Box::new(Expression::Column(table.columns.len())));
        assert!(Predicate::implied(&table, &none).is_none());
    }

    #[test]
    fn a_column_is_compared_with_constants_of_its_own_type() {
        let table = whole_table(OnError::Report);
        let literals = [
            Literal::Number(1),
            Literal::Integer(1),
            Literal::Instant(1),
            Literal::Uuid([1; 16]),
            Literal::Text("1".into()),
            Literal::Bool(true),
        ];
        let columns = [
            ("record_id", 0),
            ("chunk_index", 0),
            ("record_offset", 0),
            ("event_id", 0),
            ("time_created", 2),
            ("activity_id", 3),
            ("filename", 4),
            ("provider", 4),
            ("user_sid", 4),
            ("recovered", 5),
        ];
        for (name, own) in columns {
            let column = table.columns.iter().position(|column| column.name == name).expect(name);
            for (i, literal) in literals.iter().enumerate() {
                for comparison in [Comparison::Less, Comparison::Contains] {
                    let condition = Expression::compare(column, comparison, literal.clone());
                    let is_decided = i == own && (own == 4 || comparison == Comparison::Less);
                    let predicate = Predicate::implied(&table, &condition);
                    assert_eq!(predicate.is_some(), is_decided, "{name} {comparison:?} {literal:?}");
                }
            }
        }
    }

    #[test]
    fn events_are_told_by_their_ids_and_their_provider() {
        let decide = |providers: Option<&[&str]>, id: u64, of: &str| {
            let events = Events {
                providers: providers.map(|names| names.iter().map(|&name| name.into()).collect()),
                ..Events::of_ids([3, 1])
            };
            let Predicate { terms, node } = Predicate::of_events(&events);
            node.decide(&mut |term, test| {
                test.of(Some(match &terms[term].operand {
                    Operand::Path(place) if *place == EventPath::PROVIDER => Value::Text(of.as_bytes()),
                    _ => Value::Number(id),
                }))
            })
        };
        let table: [(Option<&[&str]>, u64, &str, bool); 10] = [
            (None, 1, "x", true),
            (None, 2, "x", false),
            (Some(&["a"]), 3, "a", true),
            (Some(&["a"]), 3, "b", false),
            (Some(&["a"]), 2, "a", false),
            (Some(&["C", "a"]), 3, "A", true),
            (Some(&["C", "a"]), 3, "c", true),
            (Some(&["C", "a"]), 3, "ca", false),
            // Only ASCII letters have a case.
            (Some(&["É"]), 3, "é", false),
            (Some(&[]), 3, "", false),
        ];
        for (providers, id, of, expected) in table {
            assert_eq!(decide(providers, id, of), Some(expected), "{providers:?} {id} {of}");
        }
    }

    #[test]
    fn parts_that_are_not_decided_here_do_not_cost_the_others() {
        let table = Table::from(located());
        let implied = |condition| Predicate::implied(&table, &condition).is_some();
        let known = || Expression::compare(columns()[0], Comparison::Equal, Literal::Number(1));
        assert!(implied(Expression::And(vec![Expression::Unknown, known()])));
        assert!(!implied(Expression::Or(vec![Expression::Unknown, known()])));
        let not = |part| Expression::Not(Box::new(part));
        assert!(implied(not(Expression::Or(vec![Expression::Unknown, known()]))));
        assert!(!implied(not(Expression::And(vec![Expression::Unknown, known()]))));
        let number = |number| Expression::Constant(Literal::Number(number));
        let between = Expression::between([Expression::Column(columns()[0]), number(1), number(3)]);
        assert!(implied(between.clone()));
        assert!(!implied(not(between)), "an engine may mean bounds that are left out");
    }
}
