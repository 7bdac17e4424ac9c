//! The rules of a scan, and what a kind of events can match of them.

use crate::error::Problem;
use crate::logsource::Alternative;
use crate::rule::Rule;

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
#[derive(Debug)]
pub struct RuleSet {
    rules: Vec<RuleForEvents>,
    refused: Vec<(u32, Problem)>,
}

/// What a kind of events can match of a [`RuleSet`], and where its texts are. It belongs to that set.
#[derive(Debug)]
pub struct Kind {
    /// The names of the fields, by slot.
    pub(crate) names: Box<[Box<str>]>,
    /// The texts that all events of the kind have, by slot.
    pub(crate) known: Box<[Option<Box<str>>]>,
    /// The rules and alternatives that are left.
    pub(crate) left: Box<[(u32, u32)]>,
}

impl RuleSet {
    /// Makes rules ready. A rule for which the set has no room never matches: [`RuleSet::refused`] has these.
    pub fn new(rules: Vec<RuleForEvents>) -> RuleSet {
        RuleSet {
            rules,
            refused: Vec::new(),
        }
    }

    /// The rules, in their order.
    pub fn rules(&self) -> &[RuleForEvents] {
        &self.rules
    }

    /// The indices of rules that never match because all rules together have more than a set takes, and what they
    /// have too much of.
    pub fn refused(&self) -> &[(u32, Problem)] {
        &self.refused
    }

    /// What a kind of events can match.
    ///
    /// `fields` has the names of the fields of its events in their order: those of System by their names in rules, then
    /// those of the event's data. `known` has the text of each slot that has the same in every event of the kind: the
    /// channel, the provider, the event ID and whatever else is constant.
    ///
    /// # Panics
    /// If `known` is not as long as `fields`.
    pub fn kind(&self, fields: &[&str], known: &[Option<&str>]) -> Kind {
        assert_eq!(fields.len(), known.len(), "a slot has a name and may have a known text");
        let all = (0u32..).zip(&self.rules);
        let left = all.flat_map(|(rule, one)| (0u32..).zip(&one.alternatives).map(move |(index, _)| (rule, index)));
        Kind {
            names: fields.iter().map(|&name| name.into()).collect(),
            known: known.iter().map(|text| text.map(Into::into)).collect(),
            left: left.collect(),
        }
    }
}

impl Kind {
    /// Whether no rule can match. Then nothing of such an event has to be decoded.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// About how many bytes of memory this takes.
    pub fn bytes(&self) -> usize {
        size_of::<Kind>() + size_of_val(&*self.names) + size_of_val(&*self.known) + size_of_val(&*self.left)
    }
}
