//! The rules of a scan, and what all classes of events share.

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::{Arc, Mutex, OnceLock};

use evtx_format::case::fold;
use evtx_format::{Interrupt, Interrupted, free};
use hashbrown::HashMap;

use super::atoms::{AtomId, Atoms, FieldId, Test};
use super::automaton::FieldAutomaton;
use super::formula::{Formula, of_detection};
use super::size::Size;
use crate::error::Problem;
use crate::filter::Filter;
use crate::logsource::Alternative;
use crate::rule::Rule;

/// A rule and the events that it is for.
#[derive(Debug, Clone)]
pub struct RuleForEvents {
    /// The rule.
    pub rule: Rule,
    /// The events, from [`LogSources::resolve`](crate::LogSources::resolve). A match reports the first alternative that
    /// takes the event and with which the rule matches.
    pub alternatives: Vec<Arc<Alternative>>,
}

/// Rules, prepared for many events. Threads can share it.
///
/// The automaton of a field is built for its first text.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<RuleForEvents>,
    /// By rule, the formulas of its detections.
    pub(super) formulas: Vec<Box<[Formula]>>,
    pub(super) atoms: Atoms,
    /// By field, its atoms with needles.
    of_field: Vec<Vec<AtomId>>,
    automata: Vec<Automaton>,
    by_events: ByEvents,
    /// The distinct renames of alternatives.
    pub(super) renames: Vec<BTreeMap<String, String>>,
    /// By rule and alternative, the index of its renames.
    pub(super) renames_of: Vec<Box<[u32]>>,
}

/// Rules with their alternatives, by folded channel and event ID. `None` stands for any.
type ByEvents = HashMap<(Option<Box<str>>, Option<u32>), Vec<(u32, u32)>>;

/// An automaton, which the first thread that needs it builds.
#[derive(Debug, Default)]
struct Automaton {
    built: OnceLock<FieldAutomaton>,
    /// Held by the thread that builds it.
    building: Mutex<()>,
}

/// With this many rules, a thread of its own frees a set.
const FREED_BY_THREAD: usize = 1 << 10;

/// The most keys that an alternative has in the index.
const INDEXED: usize = 256;

impl RuleSet {
    /// Prepares rules. Leaves out those for which the set has no room; [`RuleSetBuilder`] reports them.
    pub fn new(rules: Vec<RuleForEvents>) -> RuleSet {
        let mut set = RuleSetBuilder::default();
        for rule in rules {
            _ = set.add(rule);
        }
        set.finish()
    }

    /// The rules, in order.
    pub fn rules(&self) -> &[RuleForEvents] {
        &self.rules
    }

    /// Whether a rule can be for events of a channel.
    pub fn is_for_channel(&self, channel: &str) -> bool {
        let channel = fold(channel);
        let is = |known: &Option<Box<str>>| known.as_deref().is_none_or(|known| known == channel);
        self.by_events.keys().any(|(known, _)| is(known))
    }

    /// The automaton of a field, or [`Interrupted`].
    pub(super) fn automaton(&self, field: FieldId, interrupt: Interrupt<'_>) -> Result<&FieldAutomaton, Interrupted> {
        let Automaton { built, building } = &self.automata[field as usize];
        if let Some(built) = built.get() {
            return Ok(built);
        }
        let _building = building.lock();
        if let Some(built) = built.get() {
            return Ok(built);
        }
        let new = FieldAutomaton::new(&self.of_field[field as usize], &self.atoms.all, interrupt)?;
        Ok(built.get_or_init(|| new))
    }

    /// The rules and alternatives for events with this channel and ID. `None` stands for any.
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

/// Builds a set of rules.
#[derive(Debug, Default)]
pub struct RuleSetBuilder {
    set: RuleSet,
    /// The indices of renames.
    renames: BTreeMap<BTreeMap<String, String>, u32>,
    size: Size,
}

impl RuleSetBuilder {
    /// The rules so far, in order.
    pub fn rules(&self) -> &[RuleForEvents] {
        &self.set.rules
    }

    /// Adds a rule after the others.
    ///
    /// # Errors
    /// The limit that all rules together would exceed. The rule is not added.
    pub fn add(&mut self, one: RuleForEvents) -> Result<(), Problem> {
        let RuleSetBuilder { set, renames, size } = self;
        size.add(&Size::of(&one.rule), 1)?;
        let index = set.rules.len() as u32;
        let detections = one.rule.detections.iter();
        let formulas = detections.map(|detection| of_detection(detection, &mut set.atoms));
        set.formulas.push(formulas.collect());
        let renames_of = one.alternatives.iter().map(|alternative| {
            if let Some(known) = renames.get(&alternative.renames) {
                return *known;
            }
            set.renames.push(alternative.renames.clone());
            renames.insert(alternative.renames.clone(), set.renames.len() as u32 - 1);
            set.renames.len() as u32 - 1
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

    /// Reserves space for a filter of some of the rules, one of which is `example`.
    ///
    /// # Errors
    /// The limit that all rules together would exceed. No rule may be filtered then.
    pub fn reserve(&mut self, filter: &Filter, example: &Rule, rules: usize) -> Result<(), Problem> {
        let more = Size::of(&filter.applied(example)).without(&Size::of(example));
        self.size.add(&more, rules)
    }

    /// Narrows the rule of an index by a filter, after [`reserve`](Self::reserve).
    pub fn filter(&mut self, rule: usize, filter: &Filter) {
        let RuleSet {
            rules, formulas, atoms, ..
        } = &mut self.set;
        let one = &mut rules[rule].rule;
        let before = one.detections.len();
        filter.apply(one);
        let new = one.detections[before..].iter();
        let known = std::mem::take(&mut formulas[rule]).into_vec();
        let all = known
            .into_iter()
            .chain(new.map(|detection| of_detection(detection, atoms)));
        formulas[rule] = all.collect();
    }

    /// The set of the added rules.
    pub fn finish(self) -> RuleSet {
        let mut set = self.set;
        set.atoms.finish();
        set.of_field = vec![Vec::new(); set.atoms.fields.len()];
        for (id, atom) in (0u32..).zip(&set.atoms.all) {
            if let Test::Needle(..) = atom.test {
                set.of_field[atom.field as usize].push(id);
            }
        }
        set.automata.resize_with(set.of_field.len(), Automaton::default);
        set
    }
}

/// Freeing 100,000 rules takes 0.2 s, for which an interrupted query would wait. So a thread of its own frees many rules.
impl Drop for RuleSet {
    fn drop(&mut self) {
        if self.rules.len() >= FREED_BY_THREAD {
            let rules = (take(&mut self.rules), take(&mut self.formulas));
            let indexes = (take(&mut self.by_events), take(&mut self.renames_of));
            free((rules, indexes, take(&mut self.atoms)));
        }
    }
}

/// The keys of an alternative in the index.
fn keys(alternative: &Alternative) -> Vec<(Option<Box<str>>, Option<u32>)> {
    let Alternative {
        channels, event_ids, ..
    } = alternative;
    let is_few = |count: usize| (1..=INDEXED).contains(&count);
    let channels: Vec<Option<Box<str>>> = if is_few(channels.len()) {
        channels.iter().map(|channel| Some(fold(channel).into())).collect()
    } else {
        vec![None]
    };
    let event_ids: Vec<Option<u32>> = if is_few(event_ids.len() * channels.len()) {
        event_ids.iter().map(|&id| Some(id)).collect()
    } else {
        vec![None]
    };
    let keys = channels
        .iter()
        .flat_map(|channel| event_ids.iter().map(move |&id| (channel.clone(), id)));
    keys.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::load_rules;
    use crate::limits::Limits;
    use crate::matcher::Matcher;
    use crate::pattern::{Anchor, Pattern};
    use crate::placeholders::Placeholders;

    /// A rule with this title.
    fn rule(title: &str) -> RuleForEvents {
        let text = format!("title: {title}\nlogsource: {{service: s}}\ndetection: {{s: {{F: a}}, condition: s}}");
        let rule = load_rules(&text, &Placeholders::new()).remove(0).expect("a rule");
        let alternatives = Vec::new();
        RuleForEvents { rule, alternatives }
    }

    #[test]
    fn refuses_rules_for_which_a_set_has_no_room() {
        let mut set = RuleSetBuilder::default();
        let mut add = |needles: std::ops::Range<usize>| {
            let mut one = rule("t");
            let matcher = |number: usize| Matcher::Text {
                pattern: Pattern::Needle(Anchor::Anywhere, number.to_string().into()),
                cased: false,
            };
            one.rule.detections[0].any[0][0].any = needles.map(matcher).collect();
            set.add(one).map_err(|problem| problem.to_string())
        };
        let half = Limits::SET_NEEDLES / 2;
        let why = Err("with this rule, all rules together have more than 250000 needles".to_string());
        assert_eq!(add(0..half), Ok(()));
        assert_eq!(add(half..2 * half + 1), why);
        assert_eq!(add(half..2 * half), Ok(()));
        assert_eq!(add(0..1), why);
        assert_eq!(set.finish().rules().len(), 2);
    }

    #[test]
    fn bounds_the_memory_of_all_rules() {
        let large = rule(&"x".repeat(1 << 19));
        let mut set = RuleSetBuilder::default();
        let count = (0..1000).take_while(|_| set.add(large.clone()).is_ok()).count();
        assert_eq!(count, Limits::SET_BYTES / large.rule.bytes());
        let why = set.add(large).expect_err("no room").to_string();
        let expected = "with this rule, all rules together have more than 268435456 bytes of memory";
        assert_eq!(why, expected);
    }
}
