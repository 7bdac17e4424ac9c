//! The rules of a table of matches, and their columns.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, StringArray, UInt8Array};
use evtx_sigma::{EventKinds, Level, RuleSet};

use super::columns::RuleColumn;

/// The rules that a scan matches events with, each with the path of its file.
#[derive(Debug)]
pub struct Rules {
    pub(crate) set: Arc<RuleSet>,
    /// The kinds of events that scans have seen.
    pub(crate) kinds: EventKinds,
    files: Box<[Arc<str>]>,
}

impl Rules {
    /// The rules of a set. `files` has the paths of their files, in the order of the rules.
    pub fn new(set: RuleSet, files: impl Into<Box<[Arc<str>]>>) -> Self {
        let set = Arc::new(set);
        Rules {
            kinds: EventKinds::new(Arc::clone(&set)),
            set,
            files: files.into(),
        }
    }

    pub(crate) fn none() -> Self {
        Rules::new(RuleSet::new(Vec::new()), Vec::new())
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.set.rules().len()
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rules whose index passes a test.
    pub fn only(&self, is_kept: impl Fn(usize) -> bool) -> Self {
        let kept: Vec<usize> = (0..self.len()).filter(|&index| is_kept(index)).collect();
        let rules = kept.iter().map(|&index| self.set.rules()[index].clone());
        let files = kept.iter().filter_map(|&index| self.files.get(index).cloned());
        Rules::new(RuleSet::new(rules.collect()), files.collect::<Vec<_>>())
    }

    /// The text of a column for a rule; `None` for NULL, and for columns of other types.
    pub(crate) fn text(&self, rule: usize, column: RuleColumn) -> Option<&str> {
        let about = &self.set.rules().get(rule)?.rule;
        match column {
            RuleColumn::Id => about.id.as_deref(),
            RuleColumn::Title => Some(&about.title),
            RuleColumn::Status => Some(about.status?.name()),
            RuleColumn::File => self.files.get(rule).map(|file| &**file),
            RuleColumn::Level | RuleColumn::Tags => None,
        }
    }

    pub(crate) fn level(&self, rule: usize) -> Option<u8> {
        Some(self.set.rules().get(rule)?.rule.level? as u8)
    }

    pub(crate) fn array(&self, column: RuleColumn) -> ArrayRef {
        let count = self.len();
        match column {
            RuleColumn::Level => Arc::new(UInt8Array::from_iter((0..count).map(|rule| self.level(rule)))),
            RuleColumn::Tags => {
                let mut lists = ListBuilder::new(StringBuilder::new());
                for of_events in self.set.rules() {
                    lists.append_value(of_events.rule.tags.iter().map(Some));
                }
                Arc::new(lists.finish())
            }
            _ => Arc::new(StringArray::from_iter((0..count).map(|rule| self.text(rule, column)))),
        }
    }
}

/// The index in [`Level::ALL`] of the level with a name.
pub(crate) fn level_number(name: &str) -> Option<u64> {
    let index = Level::ALL.iter().position(|(_, known)| *known == name)?;
    Some(index as u64)
}
