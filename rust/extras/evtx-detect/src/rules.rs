//! The rules of a table of matches, and their columns.

use std::sync::Arc;

use arrow_array::ListArray;
use arrow_array::builder::{ListBuilder, StringBuilder};
use evtx_format::{Interrupt, Interrupted};
use evtx_sigma::{About, Burst, Correlations, EventClasses, Hits, Level, Match, Rule, RuleSet};

use crate::rule_column::RuleColumn;

/// The rules that a scan matches events with, and the correlations of their matches, each with the path of its file.
///
/// A rule has an index: first those of the set, in order, then those of the correlations.
#[derive(Debug)]
pub struct Rules {
    pub(crate) set: Arc<RuleSet>,
    /// The classes of events that scans have seen.
    pub(crate) classes: EventClasses,
    pub(crate) correlations: Arc<Correlations>,
    /// By index.
    files: Box<[Arc<str>]>,
    /// By index, whether it is wanted. The others are in the set because a correlation needs their matches.
    wanted: Box<[bool]>,
}

/// A correlation that could not be evaluated: the path of its file, and why.
type Unevaluated = (Arc<str>, String);

impl Rules {
    /// The rules of a set. `files` has the paths of their files, in the order of the rules.
    pub fn new(set: RuleSet, files: impl Into<Box<[Arc<str>]>>) -> Self {
        let wanted = vec![true; set.rules().len()];
        Rules::correlated(set, Correlations::default(), files, wanted)
    }

    /// The rules of a set, and correlations of them. `files` has the paths of their files, first of the rules, then of the
    /// correlations, and `wanted` says which of them are wanted.
    pub fn correlated(
        set: RuleSet,
        correlations: Correlations,
        files: impl Into<Box<[Arc<str>]>>,
        wanted: impl Into<Box<[bool]>>,
    ) -> Self {
        let set = Arc::new(set);
        Rules {
            classes: EventClasses::new(Arc::clone(&set)),
            set,
            correlations: correlations.into(),
            files: files.into(),
            wanted: wanted.into(),
        }
    }

    pub(crate) fn none() -> Self {
        Rules::new(RuleSet::new(Vec::new()), Vec::new())
    }

    /// Whether there are correlations.
    pub fn correlates(&self) -> bool {
        !self.correlations.is_empty()
    }

    /// How many rules and correlations there are.
    pub fn len(&self) -> usize {
        self.set.rules().len() + self.correlations.all().len()
    }

    /// Whether the rule with an index is a correlation.
    pub fn is_correlation(&self, index: usize) -> bool {
        index >= self.set.rules().len()
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name that the log has for a field of the rule of a match.
    pub(crate) fn renamed<'n>(&'n self, found: &Match, field: &'n str) -> &'n str {
        let alternatives = &self.set.rules()[found.rule as usize].alternatives;
        let renames = alternatives.get(found.alternative as usize).map(|one| &one.renames);
        renames
            .and_then(|renames| renames.get(field))
            .map_or(field, String::as_str)
    }

    /// Whether the matches of a rule are rows.
    pub(crate) fn reports(&self, rule: u32) -> bool {
        let is_wanted = self.wanted.get(rule as usize).is_some_and(|&wanted| wanted);
        is_wanted && !self.correlations.is_silent(rule)
    }

    /// The bursts in the matches that the workers of a scan have collected, by file and offset of their last record, as far
    /// as they are wanted. Then the correlations that could not be evaluated: the path of the file of each, and why.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub fn bursts(
        &self,
        hits: Vec<Hits>,
        interrupt: Interrupt<'_>,
    ) -> Result<(Vec<Burst>, Vec<Unevaluated>), Interrupted> {
        let (mut bursts, refused) = self.correlations.sweep(hits, interrupt)?;
        bursts.retain(|burst| self.correlation(burst.correlation).1);
        let refused = refused.into_iter().filter_map(|(correlation, problem)| {
            let (index, _) = self.correlation(correlation);
            let title = self.text(index as usize, RuleColumn::Title)?;
            Some((
                Arc::clone(self.files.get(index as usize)?),
                format!("{title}: {problem}"),
            ))
        });
        Ok((bursts, refused.collect()))
    }

    /// The index of a correlation, and whether its bursts are rows.
    pub(crate) fn correlation(&self, correlation: u32) -> (u32, bool) {
        let index = self.set.rules().len() as u32 + correlation;
        let is_wanted = self.wanted.get(index as usize).is_some_and(|&wanted| wanted);
        (
            index,
            is_wanted && !self.correlations.is_silent_correlation(correlation),
        )
    }

    /// The rules whose index passes a test. If a correlation does, all correlations stay, with the rules that they need.
    pub fn only(&self, is_kept: impl Fn(usize) -> bool) -> Self {
        let rules = self.set.rules();
        let is_silent = |index: usize| index < rules.len() && self.correlations.is_silent(index as u32);
        let is_wanted = |index: usize| self.wanted[index] && is_kept(index) && !is_silent(index);
        let correlates = (rules.len()..self.len()).any(is_wanted);
        let is_needed = |index: &usize| is_wanted(*index) || correlates && self.correlations.is_base(*index as u32);
        // Those that cannot be used make others silent, too, and are not resolved again.
        let is_reported = |index: usize| {
            let correlation = index.checked_sub(rules.len());
            is_wanted(index) && !correlation.is_some_and(|own| self.correlations.is_silent_correlation(own as u32))
        };
        let mut kept: Vec<usize> = (0..rules.len()).filter(is_needed).collect();
        if kept.len() == rules.len() && (correlates || self.correlations.is_empty()) {
            let wanted: Vec<bool> = (0..self.len()).map(is_reported).collect();
            return Rules {
                set: Arc::clone(&self.set),
                classes: EventClasses::new(Arc::clone(&self.set)),
                correlations: Arc::clone(&self.correlations),
                files: self.files.clone(),
                wanted: wanted.into(),
            };
        }
        let set: Vec<_> = kept.iter().map(|&index| rules[index].clone()).collect();
        let mut correlations = Correlations::default();
        if correlates {
            let needed: Vec<&Rule> = set.iter().map(|known| &known.rule).collect();
            // They were resolved with more rules, and those that they need are still there.
            correlations = Correlations::resolve(&needed, self.correlations.all().to_vec()).0;
            kept.extend(rules.len()..self.len());
        }
        let files = kept.iter().filter_map(|&index| self.files.get(index).cloned());
        let wanted: Vec<bool> = kept.iter().map(|&index| is_reported(index)).collect();
        Rules::correlated(RuleSet::new(set), correlations, files.collect::<Vec<_>>(), wanted)
    }

    fn about(&self, rule: usize) -> Option<&About> {
        let rules = self.set.rules();
        match rules.get(rule) {
            Some(known) => Some(&known.rule.about),
            None => Some(&self.correlations.all().get(rule - rules.len())?.about),
        }
    }

    /// The text of a column for a rule; `None` for NULL, and for columns of other types.
    pub(crate) fn text(&self, rule: usize, column: RuleColumn) -> Option<&str> {
        let about = self.about(rule)?;
        match column {
            RuleColumn::Id => about.id.as_deref(),
            RuleColumn::Title => Some(&about.title),
            RuleColumn::Status => Some(about.status?.name()),
            RuleColumn::File => self.files.get(rule).map(|file| &**file),
            RuleColumn::Level | RuleColumn::Tags => None,
        }
    }

    pub(crate) fn level(&self, rule: usize) -> Option<u8> {
        Some(self.about(rule)?.level? as u8)
    }

    /// The lists of the tags of the rules of some rows.
    pub(crate) fn tag_lists(&self, rows: impl IntoIterator<Item = Option<u32>>) -> ListArray {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for rule in rows {
            let about = rule.and_then(|rule| self.about(rule as usize));
            lists.append_option(about.map(|about| about.tags.iter().map(Some)));
        }
        lists.finish()
    }
}

/// The index in [`Level::ALL`] of the level with a name.
pub(crate) fn level_number(name: &str) -> Option<u64> {
    let index = Level::ALL.iter().position(|(_, known)| *known == name)?;
    Some(index as u64)
}
