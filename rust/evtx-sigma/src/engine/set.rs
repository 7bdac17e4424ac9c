//! The rules of a scan, and what is shared by all kinds of events.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};
use std::thread;

use hashbrown::HashMap;

use super::atoms::{AtomId, Atoms, AtomsBuilder, FieldId, Test};
use super::automaton::FieldAutomaton;
use super::formula::{RuleFormula, count_detections};
use super::size::Size;
use crate::case::fold;
use crate::error::Problem;
use crate::logsource::Alternative;
use crate::rule::Rule;
use crate::stop::{Stop, Stopped};

/// A rule and which events it is for.
#[derive(Debug, Clone)]
pub struct RuleForEvents {
    /// The rule.
    pub rule: Rule,
    /// The events, as [`LogSources::resolve`](crate::LogSources::resolve) gives them. The first alternative that takes
    /// an event and that the rule matches with says what matched.
    pub alternatives: Vec<Alternative>,
}

/// Rules, made ready for many events. Threads can share it.
///
/// What finds the needles of a field is made when the first text of the field is looked at.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<RuleForEvents>,
    /// By rule.
    pub(super) formulas: Vec<RuleFormula>,
    /// By rule, how often its condition names each of its detections.
    pub(super) times: Vec<Box<[u32]>>,
    pub(super) atoms: Atoms,
    /// By field, its atoms that are decided by a look at the text.
    of_field: Vec<Vec<AtomId>>,
    automata: Vec<Automaton>,
    by_events: ByEvents,
    /// Each map of names that an alternative has, once.
    pub(super) renames: Vec<BTreeMap<String, String>>,
    /// By rule and alternative, the index of its map.
    pub(super) renames_of: Vec<Box<[u32]>>,
}

/// Alternatives by a folded channel and an event ID. Where one of these is `None`, any will do.
type ByEvents = HashMap<(Option<Box<str>>, Option<u32>), Vec<(u32, u32)>>;

/// An automaton, which the first thread makes that needs it.
#[derive(Debug, Default)]
struct Automaton {
    made: OnceLock<FieldAutomaton>,
    /// Held by the thread that makes it.
    making: Mutex<()>,
}

/// So many rules are freed by a thread of their own.
const FREED_BY_THREAD: usize = 1 << 10;

/// How many channels and event IDs of one alternative have a place of their own in the index.
const INDEXED: usize = 256;

impl RuleSet {
    /// Makes rules ready. Those for which the set has no room are left out; [`RuleSetBuilder`] says which.
    pub fn new(rules: Vec<RuleForEvents>) -> RuleSet {
        let mut set = RuleSetBuilder::default();
        for rule in rules {
            _ = set.add(rule);
        }
        set.finish()
    }

    /// The rules, in their order.
    pub fn rules(&self) -> &[RuleForEvents] {
        &self.rules
    }

    /// Whether rules can be for events of a channel.
    pub fn is_for_channel(&self, channel: &str) -> bool {
        let channel = fold(channel);
        let is = |known: &Option<Box<str>>| known.as_deref().is_none_or(|known| known == channel);
        self.by_events.keys().any(|(known, _)| is(known))
    }

    /// What decides the atoms of a field.
    ///
    /// # Errors
    /// [`Stopped`] if `stop` ends the work before it is made.
    pub(super) fn automaton(&self, field: FieldId, stop: &Stop<'_>) -> Result<&FieldAutomaton, Stopped> {
        let automaton = &self.automata[field as usize];
        match automaton.made.get() {
            Some(made) => Ok(made),
            None => self.make_automaton(field, automaton, stop),
        }
    }

    #[cold]
    fn make_automaton<'a>(
        &self,
        field: FieldId,
        automaton: &'a Automaton,
        stop: &Stop<'_>,
    ) -> Result<&'a FieldAutomaton, Stopped> {
        let _making = automaton.making.lock();
        if let Some(made) = automaton.made.get() {
            return Ok(made);
        }
        let made = FieldAutomaton::new(&self.of_field[field as usize], &self.atoms.all, stop)?;
        Ok(automaton.made.get_or_init(|| made))
    }

    /// The rules, with their alternatives, that can be for an event with this channel and ID. `None` if these are not
    /// known.
    pub(super) fn for_events(&self, channel: Option<&str>, event_id: Option<u32>) -> Vec<(u32, u32)> {
        let mut all: Vec<(u32, u32)> = match (channel, event_id) {
            (Some(channel), Some(_)) => {
                let channel: Option<Box<str>> = Some(fold(channel).into());
                let of = |channel: Option<Box<str>>, id| self.by_events.get(&(channel, id)).into_iter().flatten();
                of(channel.clone(), event_id)
                    .chain(of(channel, None))
                    .chain(of(None, event_id))
                    .chain(of(None, None))
                    .copied()
                    .collect()
            }
            _ => self.by_events.values().flatten().copied().collect(),
        };
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// A set of rules, to which rules are added.
#[derive(Debug, Default)]
pub struct RuleSetBuilder {
    set: RuleSet,
    atoms: AtomsBuilder,
    /// The indices of the maps of names.
    renames: BTreeMap<BTreeMap<String, String>, u32>,
    size: Size,
}

impl RuleSetBuilder {
    /// Adds a rule behind the others.
    ///
    /// # Errors
    /// What all rules would have too much of: the set has no room for this one.
    pub fn add(&mut self, one: RuleForEvents) -> Result<(), Problem> {
        let RuleSetBuilder {
            set,
            atoms,
            renames,
            size,
        } = self;
        size.add(&one.rule)?;
        let index = set.rules.len() as u32;
        set.formulas.push(RuleFormula::new(&one.rule, atoms));
        let mut times = vec![0; one.rule.detections.len()];
        count_detections(&one.rule.condition, &mut times);
        set.times.push(times.into());
        let renames_of = one.alternatives.iter().map(|alternative| {
            if let Some(&known) = renames.get(&alternative.renames) {
                return known;
            }
            set.renames.push(alternative.renames.clone());
            let new = set.renames.len() as u32 - 1;
            renames.insert(alternative.renames.clone(), new);
            new
        });
        set.renames_of.push(renames_of.collect());
        for (at, alternative) in (0u32..).zip(&one.alternatives) {
            for key in keys(alternative) {
                set.by_events.entry(key).or_default().push((index, at));
            }
        }
        set.rules.push(one);
        Ok(())
    }

    /// The set of the rules that were added.
    pub fn finish(self) -> RuleSet {
        let RuleSetBuilder { mut set, atoms, .. } = self;
        set.atoms = atoms.atoms;
        set.of_field = vec![Vec::new(); set.atoms.fields.len()];
        for (id, atom) in (0u32..).zip(&set.atoms.all) {
            if let Test::Text(_) = atom.test {
                set.of_field[atom.field as usize].push(id);
            }
        }
        set.automata.resize_with(set.of_field.len(), Automaton::default);
        set
    }
}

/// Many rules are freed by a thread of their own: 100,000 take 0.2 s, which whoever interrupts a query would wait for.
impl Drop for RuleSet {
    fn drop(&mut self) {
        if self.rules.len() < FREED_BY_THREAD {
            return;
        }
        let (rules, formulas) = (std::mem::take(&mut self.rules), std::mem::take(&mut self.formulas));
        let (atoms, of_field) = (std::mem::take(&mut self.atoms), std::mem::take(&mut self.of_field));
        let (automata, by_events) = (std::mem::take(&mut self.automata), std::mem::take(&mut self.by_events));
        let free = move || drop((rules, formulas, atoms, of_field, automata, by_events));
        // Without a thread, `free` is dropped here, and what it holds.
        _ = thread::Builder::new().name("evtx-free".to_owned()).spawn(free);
    }
}

/// The places of an alternative in the index.
fn keys(alternative: &Alternative) -> Vec<(Option<Box<str>>, Option<u32>)> {
    let Alternative {
        channels, event_ids, ..
    } = alternative;
    let is_few = |count: usize| (1..=INDEXED).contains(&count);
    let channels: Vec<Option<Box<str>>> = match is_few(channels.len()) {
        true => channels.iter().map(|channel| Some(fold(channel).into())).collect(),
        false => vec![None],
    };
    let event_ids: Vec<Option<u32>> = match is_few(event_ids.len() * channels.len()) {
        true => event_ids.iter().map(|&id| Some(id)).collect(),
        false => vec![None],
    };
    let keys = channels
        .iter()
        .flat_map(|channel| event_ids.iter().map(move |&id| (channel.clone(), id)));
    keys.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::matcher::Matcher;
    use crate::pattern::Pattern;
    use crate::placeholders::Placeholders;
    use crate::rule::load_rules;

    #[test]
    fn refuses_rules_for_which_a_set_has_no_room() {
        let text = "title: t\nlogsource: {service: s}\ndetection: {s: {F: a}, condition: s}";
        let small = load_rules(text, &Placeholders::new()).remove(0).expect("a rule");
        let rule = |needles: std::ops::Range<usize>| {
            let mut rule = small.clone();
            let matcher = |number: usize| Matcher::Text {
                pattern: Pattern::Contains(number.to_string().into()),
                cased: false,
            };
            rule.detections[0].any[0][0].any = needles.map(matcher).collect();
            RuleForEvents {
                rule,
                alternatives: Vec::new(),
            }
        };
        let half = Limits::SET_NEEDLES / 2;
        let mut set = RuleSetBuilder::default();
        let mut add = |needles| set.add(rule(needles)).map_err(|problem| problem.to_string());
        let why = Err("with this rule, all rules together have more than 250000 needles".to_string());
        assert_eq!(add(0..half), Ok(()));
        assert_eq!(add(half..2 * half + 1), why);
        assert_eq!(add(half..2 * half), Ok(()));
        assert_eq!(add(0..1), why);
        assert_eq!(set.finish().rules().len(), 2);
    }

    #[test]
    fn bounds_the_memory_of_all_rules() {
        let text = format!(
            "title: {}\nlogsource: {{service: s}}\ndetection: {{s: {{F: a}}, condition: s}}",
            "x".repeat(1 << 19)
        );
        let large = load_rules(&text, &Placeholders::new()).remove(0).expect("a rule");
        let mut set = RuleSetBuilder::default();
        let mut add = || {
            let (rule, alternatives) = (large.clone(), Vec::new());
            set.add(RuleForEvents { rule, alternatives })
        };
        let count = (0..1000).take_while(|_| add().is_ok()).count();
        assert_eq!(count, Limits::SET_BYTES / large.bytes());
        let why = add().expect_err("no room").to_string();
        assert_eq!(
            why,
            "with this rule, all rules together have more than 268435456 bytes of memory"
        );
    }
}
