//! Which rules an event matches.

use std::ops::ControlFlow;
use std::sync::Arc;

use evtx_format::{Interrupt, Interrupted};

use super::atoms::{Atom, AtomId, FieldId, Test};
use super::bits::Bits;
use super::fold::{EventClass, RuleOfClass, View};
use super::formula::{Formula, State};
use super::set::RuleSet;
use super::texts::Texts;
use super::values::{EventTexts, Presence, Slots, Values};
use crate::evaluate::Matched;
use crate::event::Event;
use crate::logsource::Renamed;
use crate::matcher::Subject;

/// What a thread keeps between events: buffers, and the atoms of texts, up to some MiB.
#[derive(Debug)]
pub struct Matching {
    rules: Arc<RuleSet>,
    slots: Slots,
    buffers: Buffers,
    /// The rules of a view to evaluate.
    candidates: Bits,
    /// The rules that are true, with their alternatives.
    found: Vec<(u32, u32)>,
}

/// A rule that an event matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Its index in [`RuleSet::rules`].
    pub rule: u32,
    /// The index of the alternative with which it matches, in [`RuleForEvents::alternatives`](super::RuleForEvents::alternatives).
    pub alternative: u32,
    /// The fields that made it true, by their names in the rule.
    pub matched: Matched,
}

#[derive(Debug, Default)]
struct Buffers {
    texts: Texts,
    seen: Bits,
    /// The atoms of one text.
    atoms: Vec<AtomId>,
    truth: Truth,
}

/// What is known about an event under one view.
#[derive(Debug, Default)]
struct Truth {
    /// The atoms that are known to be true.
    is_true: Bits,
    /// The costly atoms that are known to be false.
    is_false: Bits,
    /// The fields whose needles were searched for.
    is_searched: Bits,
    /// The fields that have a text or NULL, of those.
    has_text: Bits,
    has_null: Bits,
    /// By index, whether a detection of the current rule is true.
    detections: Vec<Option<bool>>,
}

/// The work on one event under one view.
struct Look<'a> {
    event: EventTexts<'a>,
    view: &'a View,
    set: &'a RuleSet,
    interrupt: Interrupt<'a>,
    buffers: &'a mut Buffers,
}

impl Matching {
    /// A thread's share of the work on these rules.
    pub fn new(rules: Arc<RuleSet>) -> Matching {
        Matching {
            rules,
            slots: Slots::default(),
            buffers: Buffers::default(),
            candidates: Bits::default(),
            found: Vec::new(),
        }
    }

    /// Adds the rules that an event of this class matches, each once, in their order.
    ///
    /// # Errors
    /// [`Interrupted`]. `found` can have some of the rules then.
    pub fn matches(
        &mut self,
        class: &EventClass,
        values: &dyn Values,
        interrupt: Interrupt<'_>,
        found: &mut Vec<Match>,
    ) -> Result<(), Interrupted> {
        if class.is_empty() {
            return Ok(());
        }
        self.slots.clear(&class.fields);
        self.found.clear();
        let event = EventTexts {
            fields: &class.fields,
            values,
            slots: &self.slots,
        };
        for view in class.views.values() {
            self.buffers.truth.clear();
            let mut look = Look {
                event,
                view,
                set: &self.rules,
                interrupt,
                buffers: &mut self.buffers,
            };
            look.find_candidates(&mut self.candidates)?;
            for index in self.candidates.iter() {
                interrupt.check()?;
                let rule = &view.rules[index as usize];
                if look.is_match(rule)? {
                    self.found.push((rule.rule, rule.alternative));
                }
            }
        }
        self.found.sort_unstable();
        self.found.dedup_by_key(|(rule, _)| *rule);
        for &(rule, alternative_index) in &self.found {
            interrupt.check()?;
            let one = &self.rules.rules()[rule as usize];
            let alternative = &one.alternatives[alternative_index as usize];
            let event = &event;
            if let Some(matched) = one.rule.matches_until(&Renamed { event, alternative }, interrupt)? {
                found.push(Match {
                    rule,
                    alternative: alternative_index,
                    matched,
                });
            }
        }
        Ok(())
    }
}

impl Truth {
    fn clear(&mut self) {
        for bits in [
            &mut self.is_true,
            &mut self.is_false,
            &mut self.is_searched,
            &mut self.has_text,
            &mut self.has_null,
        ] {
            bits.clear();
        }
    }
}

impl Look<'_> {
    /// Finds the rules that can be true.
    fn find_candidates(&mut self, candidates: &mut Bits) -> Result<(), Interrupted> {
        let view = self.view;
        candidates.clear();
        view.always.iter().for_each(|&rule| candidates.insert(rule));
        for &field in &view.trigger_fields {
            self.search(field, &mut |atom| {
                let start = view.triggers.partition_point(|(trigger, _)| *trigger < atom);
                let of_atom = view.triggers[start..]
                    .iter()
                    .take_while(|(trigger, _)| *trigger == atom);
                of_atom.for_each(|&(_, rule)| candidates.insert(rule));
            })?;
        }
        Ok(())
    }

    /// Searches the texts of a field for needles. `found` gets the atoms that are true, some perhaps twice.
    fn search(&mut self, field: FieldId, found: &mut dyn FnMut(AtomId)) -> Result<(), Interrupted> {
        let Look {
            view,
            event,
            set,
            interrupt,
            ..
        } = *self;
        let Buffers {
            texts,
            seen,
            atoms,
            truth,
        } = &mut *self.buffers;
        truth.is_searched.insert(field);
        let automaton = set.automaton(field, interrupt)?;
        for &slot in view.slots(field) {
            let decoded = event.slot(slot);
            match decoded.presence {
                Presence::Absent => continue,
                Presence::Null => {
                    truth.has_null.insert(field);
                    continue;
                }
                Presence::Text => truth.has_text.insert(field),
            }
            let text = decoded.text.as_str();
            let mut add = |&atom: &AtomId| {
                truth.is_true.insert(atom);
                found(atom);
            };
            match texts.get(field, text) {
                Ok(atoms) => atoms.iter().for_each(&mut add),
                Err(key) => {
                    atoms.clear();
                    automaton.look(decoded.folded(), &set.atoms.all, seen, interrupt, atoms)?;
                    atoms.iter().for_each(&mut add);
                    if let Some(key) = key {
                        texts.insert(key, field, text, atoms);
                    }
                }
            }
        }
        Ok(())
    }

    /// Searches the texts of a field, unless that was done.
    fn need(&mut self, field: FieldId) -> Result<(), Interrupted> {
        if self.buffers.truth.is_searched.contains(field) {
            Ok(())
        } else {
            self.search(field, &mut |_| ())
        }
    }

    /// Whether a rule is true for the event, and its alternative takes it.
    fn is_match(&mut self, rule: &RuleOfClass) -> Result<bool, Interrupted> {
        let detections = &mut self.buffers.truth.detections;
        detections.clear();
        detections.resize(rule.detections.len(), None);
        if !self.is_true(&rule.formula, &rule.detections)? {
            return Ok(false);
        }
        let alternative = &self.set.rules()[rule.rule as usize].alternatives[rule.alternative as usize];
        Ok(!rule.takes_some || alternative.takes(&self.event))
    }

    fn is_true(&mut self, formula: &Formula, detections: &[Formula]) -> Result<bool, Interrupted> {
        match formula {
            Formula::Known(is_true) => Ok(*is_true),
            &Formula::Needle(atom) => {
                if !self.buffers.truth.is_true.contains(atom) {
                    self.need(self.set.atoms.all[atom as usize].field)?;
                }
                Ok(self.buffers.truth.is_true.contains(atom))
            }
            &Formula::Costly(atom) => self.costly(atom),
            &Formula::Field(state, field) => {
                self.need(field)?;
                let Truth { has_text, has_null, .. } = &self.buffers.truth;
                let (has_text, has_null) = (has_text.contains(field), has_null.contains(field));
                Ok(match state {
                    State::HasText => has_text,
                    State::HasNull => has_null,
                    State::IsThere => has_text || has_null,
                })
            }
            &Formula::Detection(index) => {
                let index = index as usize;
                if let Some(is_true) = self.buffers.truth.detections[index] {
                    return Ok(is_true);
                }
                let is_true = self.is_true(&detections[index], detections)?;
                self.buffers.truth.detections[index] = Some(is_true);
                Ok(is_true)
            }
            Formula::Not(inner) => self.is_true(inner, detections).map(|is_true| !is_true),
            Formula::All(parts) | Formula::Any(parts) => {
                let decides = matches!(formula, Formula::Any(_));
                for part in parts {
                    if self.is_true(part, detections)? == decides {
                        return Ok(decides);
                    }
                }
                Ok(!decides)
            }
        }
    }

    /// Decides an atom on its own, once.
    fn costly(&mut self, id: AtomId) -> Result<bool, Interrupted> {
        let Truth { is_true, is_false, .. } = &self.buffers.truth;
        if is_true.contains(id) || is_false.contains(id) {
            return Ok(is_true.contains(id));
        }
        let is_true = self.decide(&self.set.atoms.all[id as usize])?;
        let truth = &mut self.buffers.truth;
        if is_true {
            truth.is_true.insert(id);
        } else {
            truth.is_false.insert(id);
        }
        Ok(is_true)
    }

    fn decide(&self, atom: &Atom) -> Result<bool, Interrupted> {
        let Test::Costly(matcher) = &atom.test else {
            return Ok(false);
        };
        for &slot in self.view.slots(atom.field) {
            let decoded = self.event.slot(slot);
            let is_match = || {
                matcher.matches(
                    &Subject::folded_as(&decoded.text, decoded.folded()),
                    self,
                    self.interrupt,
                )
            };
            if decoded.presence == Presence::Text && is_match() {
                return Ok(true);
            }
        }
        // After an interrupt, no matcher is true.
        self.interrupt.check()?;
        Ok(false)
    }
}

/// The event with the field names of rules.
impl Event for Look<'_> {
    fn values(&self, field: &str, each: &mut dyn FnMut(Option<&str>) -> ControlFlow<()>) {
        let slots = self
            .set
            .atoms
            .field(field)
            .map_or(&[][..], |field| self.view.slots(field));
        self.event.values_of(slots.iter().copied(), each);
    }

    fn every_value(&self, each: &mut dyn FnMut(&str, &str) -> ControlFlow<()>) {
        self.event.every_value(each);
    }
}
