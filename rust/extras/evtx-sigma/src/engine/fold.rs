//! What a class of events can match: rules with everything that is known about the class put in.

use std::collections::BTreeMap;
use std::rc::Rc;

use evtx_format::case::fold;
use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashMap;

use super::atoms::{AtomId, EVERY_VALUE, FieldId, Test};
use super::bits::Bits;
use super::formula::{Formula, State};
use super::set::RuleSet;
use super::triggers::triggers;
use super::values::{ClassFields, EventTexts, Presence, Slots, Values};
use crate::condition::Condition;
use crate::event::{SYSTEM_CHANNEL, SYSTEM_EVENT_ID};
use crate::item::Item;
use crate::logsource::Alternative;
use crate::matcher::{Matcher, Subject};

/// What a class of events can match of a [`RuleSet`], and where its texts are. It belongs to that set.
#[derive(Debug, Default)]
pub struct EventClass {
    pub(super) fields: ClassFields,
    /// By the index of a map of names.
    pub(super) views: BTreeMap<u32, View>,
}

/// The rules for which a map of names leads from the fields of rules to those of the log.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The slots of the fields that rules ask about, where there are any.
    pub(super) slots: HashMap<FieldId, Box<[u32]>>,
    pub(super) rules: Vec<RuleOfClass>,
    /// The rules, by their indices here, that are candidates whatever the texts are.
    pub(super) always: Vec<u32>,
    /// Triggers, each with a rule that is a candidate if it is true; sorted.
    pub(super) triggers: Vec<(AtomId, u32)>,
    /// The fields of the triggers.
    pub(super) trigger_fields: Vec<FieldId>,
}

/// A rule that a class can match.
#[derive(Debug)]
pub(super) struct RuleOfClass {
    pub(super) rule: u32,
    pub(super) alternative: u32,
    pub(super) formula: Formula,
    /// The detections that the formula names, by index. Empty if it names none.
    pub(super) detections: Box<[Formula]>,
    /// Whether the alternative takes only some events of the class.
    pub(super) takes_some: bool,
}

impl EventClass {
    /// Whether no rule can match. Then nothing of such an event needs to be decoded.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// Appends the first text of a field of an event of the class. Returns whether there is one.
    pub fn push_named(&self, values: &dyn Values, field: &str, out: &mut String) -> bool {
        self.fields.push_named(values, field, out)
    }

    /// About how many bytes of memory this takes.
    pub fn bytes(&self) -> usize {
        let ClassFields { names, known, .. } = &self.fields;
        let texts = names.iter().map(|name| name.len()).sum::<usize>()
            + known.iter().flatten().map(|text| text.len()).sum::<usize>();
        let views: usize = self.views.values().map(View::bytes).sum();
        size_of::<EventClass>() + size_of_val(&**names) + size_of_val(&**known) + texts + views
    }
}

impl View {
    pub(super) fn slots(&self, field: FieldId) -> &[u32] {
        self.slots.get(&field).map_or(&[], |slots| slots)
    }

    fn bytes(&self) -> usize {
        let slots: usize = self.slots.values().map(|slots| size_of_val(&**slots)).sum();
        let of_rule =
            |rule: &RuleOfClass| rule.formula.bytes() + rule.detections.iter().map(Formula::bytes).sum::<usize>();
        size_of::<View>()
            + slots
            + self.slots.allocation_size()
            + size_of_val(&*self.rules)
            + self.rules.iter().map(of_rule).sum::<usize>()
            + size_of_val(&*self.always)
            + size_of_val(&*self.triggers)
            + size_of_val(&*self.trigger_fields)
    }
}

/// What is known about a field of rules in a class.
struct Resolved {
    slots: Box<[u32]>,
    /// Whether all of its values are known.
    is_known: bool,
    /// Whether one of its values is known.
    has_known: bool,
    /// The atoms that a known value makes true, sorted.
    known_true: Vec<AtomId>,
}

/// Folds rules for one class.
struct Folding<'a> {
    set: &'a RuleSet,
    /// An event with the known texts of the class and nothing else.
    event: EventTexts<'a>,
    slots: HashMap<&'a str, Vec<u32>>,
    /// By the index of a map of names, and the field.
    resolved: HashMap<(u32, FieldId), Rc<Resolved>>,
    seen: Bits,
    interrupt: Interrupt<'a>,
}

/// An event of which nothing is known but what its class says.
struct Unknown;

impl Values for Unknown {
    fn push_text(&self, _: usize, _: &mut String) -> Presence {
        Presence::Absent
    }
}

impl RuleSet {
    /// What a class of events can match.
    ///
    /// `fields` are the names of its fields in order: those of `System` as rules name them, then those of the data.
    /// `known` is for those of `System`: the texts that all events of the class share, such as the channel and the event ID.
    ///
    /// This takes some 100 ms for 100,000 rules.
    ///
    /// # Errors
    /// [`Interrupted`].
    ///
    /// # Panics
    /// If `known` is longer than `fields`.
    pub fn class(
        &self,
        fields: &[&str],
        known: &[Option<&str>],
        interrupt: Interrupt<'_>,
    ) -> Result<EventClass, Interrupted> {
        assert!(known.len() <= fields.len(), "a known text is that of a field");
        let fields = ClassFields::new(fields, known);
        let mut decoded = Slots::default();
        decoded.clear(&fields);
        let event = EventTexts {
            fields: &fields,
            values: &Unknown,
            slots: &decoded,
        };
        let views = Folding::new(self, event, interrupt).views()?;
        Ok(EventClass { fields, views })
    }
}

impl<'a> Folding<'a> {
    fn new(set: &'a RuleSet, event: EventTexts<'a>, interrupt: Interrupt<'a>) -> Self {
        let mut slots: HashMap<&str, Vec<u32>> = HashMap::new();
        for (slot, name) in (0u32..).zip(&event.fields.names) {
            slots.entry(name).or_default().push(slot);
        }
        for field in [SYSTEM_CHANNEL, SYSTEM_EVENT_ID] {
            slots.insert(field, event.fields.named(field).collect());
        }
        Folding {
            set,
            event,
            slots,
            resolved: HashMap::new(),
            seen: Bits::default(),
            interrupt,
        }
    }

    fn views(mut self) -> Result<BTreeMap<u32, View>, Interrupted> {
        let mut views: BTreeMap<u32, View> = BTreeMap::new();
        let event_id = self.only_known(SYSTEM_EVENT_ID).and_then(|text| text.parse().ok());
        let of_events = self.set.for_events(self.only_known(SYSTEM_CHANNEL), event_id);
        for (rule, alternative) in of_events {
            self.interrupt.check()?;
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
            let detections: Box<[Formula]> = if detections.iter().any(Option::is_some) {
                detections.into_iter().map(named).collect()
            } else {
                Box::default()
            };
            let view = views.entry(renames).or_default();
            let index = view.rules.len() as u32;
            match triggers(&formula, &detections, &self.set.atoms) {
                Some(triggers) => view.triggers.extend(triggers.into_iter().map(|atom| (atom, index))),
                None => view.always.push(index),
            }
            view.rules.push(RuleOfClass {
                rule,
                alternative,
                formula,
                detections,
                takes_some: takes == Takes::Some,
            });
        }
        for view in views.values_mut() {
            view.triggers.sort_unstable();
            view.triggers.shrink_to_fit();
            let fields = view.triggers.iter();
            view.trigger_fields = fields
                .map(|&(atom, _)| self.set.atoms.all[atom as usize].field)
                .collect();
            view.trigger_fields.sort_unstable();
            view.trigger_fields.dedup();
            view.trigger_fields.shrink_to_fit();
        }
        for ((renames, field), resolved) in self.resolved {
            if let Some(view) = views.get_mut(&renames)
                && !resolved.slots.is_empty()
            {
                view.slots.insert(field, resolved.slots.clone());
            }
        }
        self.interrupt.check()?;
        Ok(views)
    }

    /// The text of the only value of a field, if it is known.
    fn only_known(&self, name: &str) -> Option<&'a str> {
        match self.slots.get(name)?.as_slice() {
            &[slot] => self.known(slot),
            _ => None,
        }
    }

    fn known(&self, slot: u32) -> Option<&'a str> {
        self.event.fields.known.get(slot as usize)?.as_deref()
    }

    /// Which events of the class an alternative takes. `None` if it takes none.
    fn takes(&self, alternative: &Alternative) -> Option<Takes> {
        let is_known = |name: &str| {
            let mut slots = self.slots.get(name).into_iter().flatten();
            slots.all(|&slot| self.known(slot).is_some())
        };
        let is_known_item = |item: &Item| {
            let is_reference = |matcher: &Matcher| matches!(matcher, Matcher::FieldReference { .. });
            !item.any.iter().any(is_reference) && item.field.as_deref().is_some_and(is_known)
        };
        let event = &self.event;
        // Each part with whether the known texts decide it, and how.
        let channel = (
            alternative.channels.is_empty() || is_known(SYSTEM_CHANNEL),
            alternative.takes_channel(event),
        );
        let id = (
            alternative.event_ids.is_empty() || is_known(SYSTEM_EVENT_ID),
            alternative.takes_event_id(event),
        );
        let fields = alternative.fields.iter();
        let fields = fields.map(|item| (is_known_item(item), item.matches(event)));
        let mut takes = Takes::All;
        for (is_decided, is_true) in [channel, id].into_iter().chain(fields) {
            if !is_decided {
                takes = Takes::Some;
            } else if !is_true {
                return None;
            }
        }
        Some(takes)
    }

    /// What is known about a field under a map of names.
    fn resolve(&mut self, renames: u32, field: FieldId) -> Rc<Resolved> {
        if let Some(resolved) = self.resolved.get(&(renames, field)) {
            return resolved.clone();
        }
        let name = &*self.set.atoms.fields[field as usize];
        let in_log = self.set.renames[renames as usize].get(name);
        let slots: Vec<u32> = match field {
            EVERY_VALUE => self.event.fields.values().collect(),
            _ => {
                let in_log = in_log.map_or(name, String::as_str);
                self.slots.get(in_log).cloned().unwrap_or_default()
            }
        };
        let known: Vec<&str> = slots.iter().filter_map(|&slot| self.known(slot)).collect();
        let mut known_true = Vec::new();
        for text in &known {
            let (all, seen) = (&self.set.atoms.all, &mut self.seen);
            let automaton = self.set.automaton(field, self.interrupt);
            let look = automaton.and_then(|it| it.look(&fold(text), all, seen, self.interrupt, &mut known_true));
            // After an interrupt, the whole class is dropped.
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

    /// The formula of a condition with what is known put in. `detections` gets the formulas of those that it names.
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
                let fold = || self.fold(&set.formulas[rule as usize][index], renames);
                match detections[index].get_or_insert_with(fold) {
                    Formula::All(_) | Formula::Any(_) | Formula::Not(_) => Formula::Detection(index as u32),
                    small => small.clone(),
                }
            }
        }
    }

    /// A formula with what is known put in.
    fn fold(&mut self, formula: &Formula, renames: u32) -> Formula {
        let unless_known = |is_true: bool, is_known: bool| {
            if is_true || is_known {
                Formula::Known(is_true)
            } else {
                formula.clone()
            }
        };
        match formula {
            Formula::Known(_) | Formula::Detection(_) => formula.clone(),
            &Formula::Needle(id) => {
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
                        let mut known = resolved.slots.iter().filter_map(|&slot| self.known(slot));
                        let is_match = |text| matcher.matches(&Subject::new(text), &self.event, self.interrupt);
                        Formula::Known(known.any(is_match))
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
}

/// Which events of a class an alternative takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    All,
    Some,
}
