//! What a kind of events can match: rules with all that is known of the kind put in.

use std::ops::ControlFlow;
use std::rc::Rc;

use hashbrown::HashMap;

use super::atoms::{AtomId, EVERY_VALUE, FieldId, Test};
use super::automaton::Seen;
use super::formula::{Formula, State};
use super::program::add_rule;
use super::set::RuleSet;
use super::values::KindFields;
use super::witness::witnesses;
use crate::case::fold;
use crate::condition::Condition;
use crate::event::{CHANNEL, Event, SYSTEM_CHANNEL};
use crate::item::Item;
use crate::logsource::Alternative;
use crate::matcher::{Matcher, Subject};
use crate::stop::{Stop, Stopped};

/// How many rules are folded between two questions whether to stop.
const RULES: usize = 1 << 8;

/// What a kind of events can match of a [`RuleSet`], and where its texts are. It belongs to that set.
#[derive(Debug, Default)]
pub struct Kind {
    pub(super) fields: KindFields,
    pub(super) views: Vec<View>,
}

/// Rules that have the same slots for the names of their fields. There is mostly one view; renames can make more.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The slots of each field that the rules look at.
    pub(super) slots: HashMap<FieldId, SlotList>,
    pub(super) rules: Vec<RuleOfKind>,
    /// The programs of all rules.
    pub(super) steps: Vec<u32>,
    /// The rules, by their indices here, that have to be looked at whatever the texts are.
    pub(super) always: Vec<u32>,
    /// The atoms that are witnesses, each with a range of `of_witness`.
    pub(super) witnesses: HashMap<AtomId, (u32, u32)>,
    /// Rules to look at if a witness is true.
    pub(super) of_witness: Vec<u32>,
    /// The fields of witnesses.
    pub(super) witness_fields: Vec<FieldId>,
}

/// Slots.
pub(super) type SlotList = Box<[u32]>;

/// A rule that a kind can match.
#[derive(Debug)]
pub(super) struct RuleOfKind {
    pub(super) rule: u32,
    pub(super) alternative: u32,
    /// Where its program starts.
    pub(super) start: u32,
    /// Whether it has to be asked whether the alternative takes the event.
    pub(super) asks_alternative: bool,
}

impl Kind {
    /// Whether no rule can match. Then nothing of such an event has to be decoded.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// About how many bytes of memory this takes.
    pub fn bytes(&self) -> usize {
        let texts = |text: &str| size_of::<Option<Box<str>>>() + text.len();
        let KindFields { names, known } = &self.fields;
        let names: usize = names.iter().map(|name| texts(name)).sum();
        let known: usize = known
            .iter()
            .map(|text| texts(text.as_deref().unwrap_or_default()))
            .sum();
        let views: usize = self.views.iter().map(View::bytes).sum();
        size_of::<Kind>() + names + known + views
    }
}

impl View {
    fn bytes(&self) -> usize {
        let slots: usize = self.slots.values().map(|slots| size_of_val(&**slots)).sum();
        let lists = self.steps.len() + self.always.len() + self.of_witness.len() + self.witness_fields.len();
        size_of::<View>()
            + slots
            + self.slots.allocation_size()
            + self.witnesses.allocation_size()
            + size_of_val(&*self.rules)
            + 4 * lists
    }
}

/// What is known of a field of rules in a kind.
struct Resolved {
    slots: Box<[u32]>,
    /// Whether all of its values are known.
    is_known: bool,
    /// Whether one of its values is known.
    has_known: bool,
    /// The atoms that a known value makes true, sorted.
    known_true: Vec<AtomId>,
}

/// What rules are folded with.
struct Folding<'a> {
    set: &'a RuleSet,
    fields: &'a KindFields,
    slots: HashMap<&'a str, Vec<u32>>,
    /// By the index of a map of names, and the field.
    resolved: HashMap<(u32, FieldId), Rc<Resolved>>,
    /// What was resolved last.
    last: Option<((u32, FieldId), Rc<Resolved>)>,
    seen: Seen,
    stop: &'a Stop<'a>,
}

impl RuleSet {
    /// What a kind of events can match.
    ///
    /// `fields` has the names of the fields of its events in their order: those of System by their names in rules, then
    /// those of the event's data. `known` has the text of each slot that has the same in every event of the kind: the
    /// channel, the provider, the event ID and whatever else is constant.
    ///
    /// # Panics
    /// If `known` is not as long as `fields`.
    pub fn kind(&self, fields: &[&str], known: &[Option<&str>]) -> Kind {
        self.kind_until(fields, known, &Stop::never()).unwrap_or_default()
    }

    /// As [`kind`](Self::kind), which takes some 100 ms for 100,000 rules.
    pub(super) fn kind_until(&self, fields: &[&str], known: &[Option<&str>], stop: &Stop<'_>) -> Result<Kind, Stopped> {
        assert_eq!(fields.len(), known.len(), "a slot has a name and may have a known text");
        let fields = KindFields {
            names: fields.iter().map(|&name| name.into()).collect(),
            known: known.iter().map(|text| text.map(Into::into)).collect(),
        };
        let views = Folding::new(self, &fields, stop).views()?;
        Ok(Kind { fields, views })
    }
}

impl<'a> Folding<'a> {
    fn new(set: &'a RuleSet, fields: &'a KindFields, stop: &'a Stop<'a>) -> Self {
        let mut slots: HashMap<&str, Vec<u32>> = HashMap::new();
        for (slot, name) in (0u32..).zip(&fields.names) {
            slots.entry(name).or_default().push(slot);
        }
        Folding {
            set,
            fields,
            slots,
            resolved: HashMap::new(),
            last: None,
            seen: Seen::default(),
            stop,
        }
    }

    fn views(mut self) -> Result<Vec<View>, Stopped> {
        let mut views: Vec<View> = Vec::new();
        let mut triggers: Vec<Vec<(AtomId, u32)>> = Vec::new();
        let event_id = self.only_known("EventID").and_then(|text| text.parse().ok());
        let of_events = self.set.for_events(self.only_known(self.channel()), event_id);
        for (number, (rule, alternative)) in of_events.into_iter().enumerate() {
            if number.is_multiple_of(RULES) {
                self.stop.check()?;
            }
            let one = &self.set.rules()[rule as usize];
            let Some(takes) = self.takes(&one.alternatives[alternative as usize]) else {
                continue;
            };
            let renames = self.set.renames_of[rule as usize][alternative as usize];
            let mut detections = vec![None; one.rule.detections.len()];
            let formula = self.condition(&one.rule.condition, rule, renames, &mut detections);
            if formula == Formula::Known(false) {
                continue;
            }
            let named = |detection: Option<Formula>| detection.unwrap_or(Formula::Known(false));
            let detections: Vec<Formula> = detections.into_iter().map(named).collect();
            let mut used = Vec::new();
            self.used(&formula, &detections, &mut used);
            used.sort_unstable();
            used.dedup();
            let used: Vec<_> = used
                .iter()
                .map(|&field| (field, self.resolve(renames, field)))
                .collect();
            let fits = |view: &View| {
                used.iter()
                    .all(|(field, resolved)| view.slots.get(field).is_none_or(|slots| *slots == resolved.slots))
            };
            let at = views.iter().position(fits).unwrap_or_else(|| {
                views.push(View::default());
                triggers.push(Vec::new());
                views.len() - 1
            });
            let view = &mut views[at];
            let index = view.rules.len() as u32;
            for (field, resolved) in used {
                view.slots.entry(field).or_insert_with(|| resolved.slots.clone());
            }
            view.rules.push(RuleOfKind {
                rule,
                alternative,
                start: add_rule(&formula, &detections, &mut view.steps),
                asks_alternative: takes == Takes::Some,
            });
            match witnesses(&formula, &detections, &self.set.atoms) {
                Some(witnesses) => triggers[at].extend(witnesses.iter().map(|&witness| (witness, index))),
                None => view.always.push(index),
            }
        }
        for (view, triggers) in views.iter_mut().zip(triggers) {
            view.index(triggers, self.set);
        }
        self.stop.result()?;
        Ok(views)
    }

    /// The field by which log sources choose events.
    fn channel(&self) -> &'static str {
        match self.slots.contains_key(SYSTEM_CHANNEL) {
            true => SYSTEM_CHANNEL,
            false => CHANNEL,
        }
    }

    /// The text of the only value of a field, if it is known.
    fn only_known(&self, name: &str) -> Option<&'a str> {
        match self.slots.get(name)?.as_slice() {
            &[slot] => self.fields.known[slot as usize].as_deref(),
            _ => None,
        }
    }

    /// Which events of the kind an alternative takes. `None` if it takes none.
    fn takes(&self, alternative: &Alternative) -> Option<Takes> {
        let is_known = |name: &str| {
            let mut slots = self.slots.get(name).into_iter().flatten();
            slots.all(|&slot| self.fields.known[slot as usize].is_some())
        };
        let is_known_item = |item: &Item| {
            let is_simple = !item
                .any
                .iter()
                .any(|matcher| matches!(matcher, Matcher::FieldReference { .. }));
            is_simple && item.field.as_deref().is_some_and(is_known)
        };
        let event = KnownEvent(self.fields);
        let mut takes = Takes::All;
        // Each part with whether it is decided by what is known, and how.
        let channel = (
            alternative.channels.is_empty() || is_known(self.channel()),
            alternative.takes_channel(&event),
        );
        let id = (
            alternative.event_ids.is_empty() || is_known("EventID"),
            alternative.takes_event_id(&event),
        );
        let fields = alternative
            .fields
            .iter()
            .map(|item| (is_known_item(item), item.matches(&event)));
        for (is_decided, is_true) in [channel, id].into_iter().chain(fields) {
            match (is_decided, is_true) {
                (true, false) => return None,
                (true, true) => {}
                (false, _) => takes = Takes::Some,
            }
        }
        Some(takes)
    }

    /// What is known of a field under a map of names.
    fn resolve(&mut self, renames: u32, field: FieldId) -> Rc<Resolved> {
        if let Some((last, resolved)) = &self.last
            && *last == (renames, field)
        {
            return resolved.clone();
        }
        let resolved = self.resolve_anew(renames, field);
        self.last = Some(((renames, field), resolved.clone()));
        resolved
    }

    fn resolve_anew(&mut self, renames: u32, field: FieldId) -> Rc<Resolved> {
        if let Some(resolved) = self.resolved.get(&(renames, field)) {
            return resolved.clone();
        }
        let name = &*self.set.atoms.fields[field as usize];
        let in_log = self.set.renames[renames as usize]
            .get(name)
            .map_or(name, String::as_str);
        let slots: Vec<u32> = match field {
            EVERY_VALUE => (0..self.fields.names.len() as u32).collect(),
            _ => self.slots.get(in_log).cloned().unwrap_or_default(),
        };
        let known: Vec<&str> = slots
            .iter()
            .filter_map(|&slot| self.fields.known[slot as usize].as_deref())
            .collect();
        let mut known_true = Vec::new();
        for text in &known {
            let (all, seen) = (&self.set.atoms.all, &mut self.seen);
            let automaton = self.set.automaton(field, self.stop);
            let look = automaton.and_then(|it| it.look(&fold(text), all, seen, self.stop, &mut known_true));
            // What is stopped is dropped as a whole.
            if look.is_err() {
                break;
            }
        }
        known_true.sort_unstable();
        let resolved = Rc::new(Resolved {
            is_known: known.len() == slots.len(),
            has_known: !known.is_empty(),
            known_true,
            slots: slots.into(),
        });
        self.resolved.insert((renames, field), resolved.clone());
        resolved
    }

    /// The formula of a condition with what is known put in. `detections` has those of detections that were looked at.
    fn condition(
        &mut self,
        condition: &Condition,
        rule: u32,
        renames: u32,
        detections: &mut [Option<Formula>],
    ) -> Formula {
        let mut fold = |part: &Condition| self.condition(part, rule, renames, detections);
        match condition {
            Condition::Not(inner) => fold(inner).not(),
            Condition::All(parts) => Formula::all(parts.iter().map(fold)),
            Condition::Any(parts) => Formula::any(parts.iter().map(fold)),
            &Condition::Detection(index) => {
                let set = self.set;
                let mut fold = || self.fold(&set.formulas[rule as usize].detections[index], renames);
                if set.times[rule as usize][index] == 1 {
                    return fold();
                }
                match detections[index].get_or_insert_with(fold) {
                    Formula::All(_) | Formula::Any(_) | Formula::Not(_) => Formula::Detection(index as u32),
                    small => small.clone(),
                }
            }
        }
    }

    /// A formula with what is known put in.
    fn fold(&mut self, formula: &Formula, renames: u32) -> Formula {
        let unless_known = |is_true: bool, is_known: bool| match is_true || is_known {
            true => Formula::Known(is_true),
            false => formula.clone(),
        };
        match formula {
            Formula::Known(_) | Formula::Detection(_) => formula.clone(),
            &Formula::Text(id) => {
                let resolved = self.resolve(renames, self.set.atoms.all[id as usize].field);
                unless_known(resolved.known_true.binary_search(&id).is_ok(), resolved.is_known)
            }
            &Formula::Costly(id) => {
                let atom = &self.set.atoms.all[id as usize];
                let resolved = self.resolve(renames, atom.field);
                match &atom.test {
                    _ if resolved.slots.is_empty() => Formula::Known(false),
                    Test::Costly(Matcher::FieldReference { .. }) => formula.clone(),
                    Test::Costly(matcher) if resolved.is_known => {
                        let event = KnownEvent(self.fields);
                        let mut known = resolved
                            .slots
                            .iter()
                            .filter_map(|&slot| self.fields.known[slot as usize].as_deref());
                        Formula::Known(known.any(|text| matcher.matches(&Subject::new(text), &event, &Stop::never())))
                    }
                    _ => formula.clone(),
                }
            }
            &Formula::Field(state, field) => {
                let resolved = self.resolve(renames, field);
                match state {
                    State::HasText | State::IsThere => unless_known(resolved.has_known, resolved.slots.is_empty()),
                    State::HasNull => unless_known(false, resolved.is_known),
                }
            }
            Formula::All(parts) => Formula::all(parts.iter().map(|part| self.fold(part, renames))),
            Formula::Any(parts) => Formula::any(parts.iter().map(|part| self.fold(part, renames))),
            Formula::Not(inner) => self.fold(inner, renames).not(),
        }
    }

    /// Adds the fields that a formula looks at.
    fn used(&self, formula: &Formula, detections: &[Formula], used: &mut Vec<FieldId>) {
        match formula {
            Formula::Known(_) => {}
            &Formula::Text(id) | &Formula::Costly(id) => {
                let atom = &self.set.atoms.all[id as usize];
                used.push(atom.field);
                if let Test::Costly(Matcher::FieldReference { field, .. }) = &atom.test {
                    used.extend(self.set.atoms.field(field));
                }
            }
            &Formula::Field(_, field) => used.push(field),
            &Formula::Detection(index) => self.used(&detections[index as usize], detections, used),
            Formula::All(parts) | Formula::Any(parts) => {
                parts.iter().for_each(|part| self.used(part, detections, used));
            }
            Formula::Not(inner) => self.used(inner, detections, used),
        }
    }
}

impl View {
    /// Makes the index of witnesses.
    fn index(&mut self, mut triggers: Vec<(AtomId, u32)>, set: &RuleSet) {
        triggers.sort_unstable();
        for of_one in triggers.chunk_by(|(one, _), (other, _)| one == other) {
            let start = self.of_witness.len() as u32;
            self.of_witness.extend(of_one.iter().map(|&(_, rule)| rule));
            let witness = of_one[0].0;
            self.witnesses.insert(witness, (start, self.of_witness.len() as u32));
            self.witness_fields.push(set.atoms.all[witness as usize].field);
        }
        self.witness_fields.sort_unstable();
        self.witness_fields.dedup();
        self.witnesses.shrink_to_fit();
        self.slots.shrink_to_fit();
        self.steps.shrink_to_fit();
    }
}

/// Which events of a kind an alternative takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    All,
    Some,
}

/// An event that has the known texts of its kind and nothing else.
struct KnownEvent<'a>(&'a KindFields);

impl Event for KnownEvent<'_> {
    fn values(&self, field: &str, each: &mut dyn FnMut(Option<&str>) -> ControlFlow<()>) {
        let KindFields { names, known } = self.0;
        let mut slots = names.iter().zip(known).filter(|(name, _)| &***name == field);
        let _ = slots.try_for_each(|(_, text)| {
            text.as_deref()
                .map_or(ControlFlow::Continue(()), |text| each(Some(text)))
        });
    }

    fn every_value(&self, each: &mut dyn FnMut(&str, &str) -> ControlFlow<()>) {
        let KindFields { names, known } = self.0;
        let known = names
            .iter()
            .zip(known)
            .filter_map(|(name, text)| Some((name, text.as_deref()?)));
        let _ = known.into_iter().try_for_each(|(name, text)| each(name, text));
    }
}
