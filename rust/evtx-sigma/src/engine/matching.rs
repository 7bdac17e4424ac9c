//! Which rules an event matches.

use std::sync::Arc;

use super::atoms::{Atom, AtomId, FieldId, Test};
use super::automaton::Seen;
use super::fold::{Kind, RuleOfKind, View};
use super::program::{NUMBER_BITS, Step};
use super::set::RuleSet;
use super::texts::Texts;
use super::values::{Decoded, Found, Slots, Values};
use crate::evaluate::Matched;
use crate::event::{CHANNEL, SYSTEM_CHANNEL};
use crate::item::Item;
use crate::logsource::{Alternative, Renamed};
use crate::matcher::{Matcher, Subject};
use crate::rule::Rule;
use crate::stop::{Stop, Stopped};

/// What a thread keeps between events: buffers, and what it knows of texts that it has seen. Its memory is bounded by
/// some MiB and the longest texts of an event.
#[derive(Debug)]
pub struct Matching {
    rules: Arc<RuleSet>,
    slots: Slots,
    texts: Texts,
    seen: Seen,
    truth: Truth,
    /// The rules of a view that have to be looked at, a bit for each.
    candidates: Vec<u64>,
    /// The rules that are true, with their alternatives.
    found: Vec<(u32, u32)>,
    /// The atoms of one text.
    atoms: Vec<AtomId>,
}

/// A rule that an event matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Its index in [`RuleSet::rules`].
    pub rule: u32,
    /// The fields that made it true, by the names that the rule has for them.
    pub matched: Matched,
}

/// What is known of an event under one view.
#[derive(Debug, Default)]
struct Truth {
    /// By atom, whether it is known to be true.
    is_true: Bits,
    /// By atom, whether one that is decided alone is known to be false.
    is_false: Bits,
    /// By field, whether it was looked at.
    is_looked_at: Bits,
    has_text: Bits,
    has_null: Bits,
    /// By the place of its steps, whether a detection of the rule at hand is true.
    detections: Vec<(u32, bool)>,
}

/// A set of numbers.
#[derive(Debug, Default)]
struct Bits {
    words: Vec<u64>,
    /// Which words are not zero.
    used: Vec<u32>,
}

impl Bits {
    fn insert(&mut self, number: u32) {
        let word = number as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        if self.words[word] == 0 {
            self.used.push(word as u32);
        }
        self.words[word] |= 1 << (number % 64);
    }

    fn contains(&self, number: u32) -> bool {
        let word = self.words.get(number as usize / 64);
        word.is_some_and(|word| word & 1 << (number % 64) != 0)
    }

    fn clear(&mut self) {
        for word in self.used.drain(..) {
            self.words[word as usize] = 0;
        }
    }
}

/// The work on one event under one view.
struct Look<'a> {
    kind: &'a Kind,
    view: &'a View,
    set: &'a RuleSet,
    values: &'a dyn Values,
    stop: &'a Stop<'a>,
    slots: &'a mut Slots,
    texts: &'a mut Texts,
    seen: &'a mut Seen,
    truth: &'a mut Truth,
    atoms: &'a mut Vec<AtomId>,
}

impl Matching {
    /// A thread's part of the work on these rules.
    pub fn new(rules: Arc<RuleSet>) -> Matching {
        Matching {
            rules,
            slots: Slots::default(),
            texts: Texts::default(),
            seen: Seen::default(),
            truth: Truth::default(),
            candidates: Vec::new(),
            found: Vec::new(),
            atoms: Vec::new(),
        }
    }

    /// Adds the rules that an event matches, in the order of the rules, each at most once. `kind` is the event's, and
    /// comes from the set of rules that this was made with.
    ///
    /// # Errors
    /// [`Stopped`] as soon as `stop` gives `true`. It is asked after each bounded piece of work; `found` can have some
    /// of the rules then.
    pub fn matches(
        &mut self,
        kind: &Kind,
        values: &dyn Values,
        stop: &dyn Fn() -> bool,
        found: &mut Vec<Match>,
    ) -> Result<(), Stopped> {
        if kind.is_empty() {
            return Ok(());
        }
        let stop = Stop::new(stop);
        self.slots.clear(&kind.fields);
        self.found.clear();
        for view in &kind.views {
            self.truth.clear();
            let mut look = Look {
                kind,
                view,
                set: &self.rules,
                values,
                stop: &stop,
                slots: &mut self.slots,
                texts: &mut self.texts,
                seen: &mut self.seen,
                truth: &mut self.truth,
                atoms: &mut self.atoms,
            };
            look.find_candidates(&mut self.candidates)?;
            for (word, bits) in (0u32..).zip(&self.candidates) {
                let mut bits = *bits;
                while bits != 0 {
                    stop.check()?;
                    let rule = &view.rules[(word * 64 + bits.trailing_zeros()) as usize];
                    bits &= bits - 1;
                    if look.is_match(rule)? {
                        self.found.push((rule.rule, rule.alternative));
                    }
                }
            }
        }
        self.found.sort_unstable();
        self.found.dedup_by_key(|(rule, _)| *rule);
        for &(rule, alternative) in &self.found {
            stop.check()?;
            let one = &self.rules.rules()[rule as usize];
            let alternative = &one.alternatives[alternative as usize];
            decode_all(&one.rule, alternative, kind, values, &mut self.slots);
            let event = Decoded {
                fields: &kind.fields,
                slots: &self.slots,
            };
            let event = &event;
            if let Some(matched) = one.rule.matches_until(&Renamed { event, alternative }, &stop)? {
                found.push(Match { rule, matched });
            }
        }
        Ok(())
    }
}

/// Decodes all slots that a rule can look at.
fn decode_all(rule: &Rule, alternative: &Alternative, kind: &Kind, values: &dyn Values, slots: &mut Slots) {
    let mut decode = |name: Option<&str>| {
        for (slot, known) in (0u32..).zip(&kind.fields.names) {
            if name.is_none_or(|name| name == &**known) {
                slots.decode(slot, &kind.fields, values);
            }
        }
    };
    let items = rule
        .detections
        .iter()
        .flat_map(|detection| detection.any.iter().flatten());
    for item in items {
        for_fields(item, |name| decode(name.map(|name| alternative.name_in_log(name))));
    }
}

/// Gives the names of the fields that an item looks at; `None` for all.
fn for_fields<'a>(item: &'a Item, mut each: impl FnMut(Option<&'a str>)) {
    each(item.field.as_deref());
    for matcher in &item.any {
        if let Matcher::FieldReference { field, .. } = matcher {
            each(Some(field));
        }
    }
}

impl Truth {
    fn clear(&mut self) {
        let Truth {
            is_true,
            is_false,
            is_looked_at,
            has_text,
            has_null,
            detections,
        } = self;
        for bits in [is_true, is_false, is_looked_at, has_text, has_null] {
            bits.clear();
        }
        detections.clear();
    }
}

impl Look<'_> {
    /// Finds which rules have to be looked at.
    fn find_candidates(&mut self, candidates: &mut Vec<u64>) -> Result<(), Stopped> {
        let view = self.view;
        candidates.clear();
        candidates.resize(view.rules.len().div_ceil(64), 0);
        let mut add = |rule: u32| candidates[rule as usize / 64] |= 1 << (rule % 64);
        view.always.iter().copied().for_each(&mut add);
        for &field in &view.witness_fields {
            self.look_at(field, &mut |atom| {
                if let Some(&(start, end)) = view.witnesses.get(&atom) {
                    let rules = &view.of_witness[start as usize..end as usize];
                    rules.iter().copied().for_each(&mut add);
                }
            })?;
        }
        Ok(())
    }

    /// Decides the atoms of a field, those that are not decided alone. Gives those that are true, some maybe twice.
    fn look_at(&mut self, field: FieldId, found: &mut dyn FnMut(AtomId)) -> Result<(), Stopped> {
        self.truth.is_looked_at.insert(field);
        let view = self.view;
        let automaton = self.set.automaton(field, self.stop)?;
        for &slot in view.slots.get(&field).map_or(&[][..], |slots| slots) {
            match self.slots.decode(slot, &self.kind.fields, self.values) {
                Found::Absent => continue,
                Found::Null => {
                    self.truth.has_null.insert(field);
                    continue;
                }
                Found::Text => self.truth.has_text.insert(field),
            }
            let text = self.slots.text(slot);
            if automaton.is_too_short(text) {
                continue;
            }
            let mut add = |atom: AtomId| {
                self.truth.is_true.insert(atom);
                found(atom);
            };
            match self.texts.get(field, text) {
                Ok(atoms) => atoms.iter().copied().for_each(&mut add),
                Err(key) => {
                    self.atoms.clear();
                    let (text, folded) = self.slots.texts(slot);
                    automaton.look(folded, &self.set.atoms.all, self.seen, self.stop, self.atoms)?;
                    self.atoms.iter().copied().for_each(&mut add);
                    if let Some(key) = key {
                        self.texts.insert(key, field, text, self.atoms);
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a rule is true, for an event that its alternative takes.
    fn is_match(&mut self, rule: &RuleOfKind) -> Result<bool, Stopped> {
        self.truth.detections.clear();
        let mut at = rule.start as usize;
        if !self.is_true(&mut at)? {
            return Ok(false);
        }
        if !rule.asks_alternative {
            return Ok(true);
        }
        let alternative = &self.set.rules()[rule.rule as usize].alternatives[rule.alternative as usize];
        for name in [CHANNEL, SYSTEM_CHANNEL, "EventID"] {
            self.decode_named(Some(name));
        }
        for item in &alternative.fields {
            for_fields(item, |name| self.decode_named(name));
        }
        Ok(alternative.takes(&Decoded {
            fields: &self.kind.fields,
            slots: self.slots,
        }))
    }

    /// Decodes the slots with a name of the log, or all.
    fn decode_named(&mut self, name: Option<&str>) {
        for (slot, known) in (0u32..).zip(&self.kind.fields.names) {
            if name.is_none_or(|name| name == &**known) {
                self.slots.decode(slot, &self.kind.fields, self.values);
            }
        }
    }

    /// Evaluates the steps from a place on, and moves the place behind them.
    fn is_true(&mut self, at: &mut usize) -> Result<bool, Stopped> {
        let step = self.view.steps[*at];
        *at += 1;
        let number = step & ((1 << NUMBER_BITS) - 1);
        let end = *at + number as usize;
        match step >> NUMBER_BITS {
            Step::TEXT => self.text(number),
            Step::COSTLY => self.costly(number),
            Step::HAS_TEXT | Step::HAS_NULL | Step::IS_THERE => {
                self.need(number)?;
                let has_text = self.truth.has_text.contains(number);
                let has_null = self.truth.has_null.contains(number);
                Ok(match step >> NUMBER_BITS {
                    Step::HAS_TEXT => has_text,
                    Step::HAS_NULL => has_null,
                    _ => has_text || has_null,
                })
            }
            Step::NOT => self.is_true(at).map(|is_true| !is_true),
            Step::DETECTION => self.detection(number),
            list @ (Step::ALL | Step::ANY) => {
                let decides = list == Step::ANY;
                while *at < end {
                    if self.is_true(at)? == decides {
                        *at = end;
                        return Ok(decides);
                    }
                }
                Ok(!decides)
            }
            _ => Ok(true),
        }
    }

    /// Looks at a field if nobody has yet.
    fn need(&mut self, field: FieldId) -> Result<(), Stopped> {
        match self.truth.is_looked_at.contains(field) {
            true => Ok(()),
            false => self.look_at(field, &mut |_| ()),
        }
    }

    fn text(&mut self, atom: AtomId) -> Result<bool, Stopped> {
        if self.truth.is_true.contains(atom) {
            return Ok(true);
        }
        let field = self.set.atoms.all[atom as usize].field;
        if self.truth.is_looked_at.contains(field) {
            return Ok(false);
        }
        self.look_at(field, &mut |_| ())?;
        Ok(self.truth.is_true.contains(atom))
    }

    fn detection(&mut self, place: u32) -> Result<bool, Stopped> {
        if let Some(&(_, is_true)) = self.truth.detections.iter().find(|(known, _)| *known == place) {
            return Ok(is_true);
        }
        let is_true = self.is_true(&mut (place as usize))?;
        self.truth.detections.push((place, is_true));
        Ok(is_true)
    }

    /// Decides an atom alone.
    fn costly(&mut self, id: AtomId) -> Result<bool, Stopped> {
        if self.truth.is_true.contains(id) {
            return Ok(true);
        }
        if self.truth.is_false.contains(id) {
            return Ok(false);
        }
        self.stop.check()?;
        let atom = &self.set.atoms.all[id as usize];
        let is_true = self.decide(atom)?;
        match is_true {
            true => self.truth.is_true.insert(id),
            false => self.truth.is_false.insert(id),
        }
        Ok(is_true)
    }

    fn decide(&mut self, atom: &Atom) -> Result<bool, Stopped> {
        let Test::Costly(matcher) = &atom.test else {
            return Ok(false);
        };
        let view = self.view;
        let slots_of = |field: FieldId| view.slots.get(&field).map_or(&[][..], |slots| slots);
        for &slot in slots_of(atom.field) {
            if self.slots.decode(slot, &self.kind.fields, self.values) != Found::Text {
                continue;
            }
            if self.slots.text(slot).len() > Stop::SHORT {
                self.stop.check()?;
            }
            let is_true = match matcher {
                Matcher::Text { pattern, cased: true } => pattern.matches_until(self.slots.text(slot), self.stop),
                Matcher::Text { pattern, cased: false } => pattern.matches_until(self.slots.texts(slot).1, self.stop),
                Matcher::FieldReference { field, place, cased } => {
                    // A field can have many values, all of which are compared with each of another.
                    self.stop.check()?;
                    let other = self.set.atoms.field(field).map_or(&[][..], slots_of);
                    let text = match cased {
                        true => self.slots.text(slot).to_string(),
                        false => self.slots.texts(slot).1.to_string(),
                    };
                    let mut is_true = false;
                    for &other in other {
                        if self.slots.decode(other, &self.kind.fields, self.values) != Found::Text {
                            continue;
                        }
                        is_true |= match cased {
                            true => place.holds(&text, self.slots.text(other)),
                            false => place.holds(&text, self.slots.texts(other).1),
                        };
                    }
                    is_true
                }
                _ => {
                    let event = Decoded {
                        fields: &self.kind.fields,
                        slots: self.slots,
                    };
                    matcher.matches(&Subject::new(self.slots.text(slot)), &event, self.stop)
                }
            };
            self.stop.result()?;
            if is_true {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
