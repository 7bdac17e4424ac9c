//! What is known of a rule after loading: what it is for, or why it is not used.

use std::sync::Arc;

use evtx_sigma::{About, Alternative, Correlation, Filter, LogSource, Rule, tactics, techniques};

/// A rule of a file, or a document that is not a rule.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)] // the columns of the report describe them
pub struct RuleRow {
    pub about: Arc<About>,
    pub tactics: Vec<String>,
    pub techniques: Vec<String>,
    pub log_sources: Vec<LogSource>,
    pub channels: Vec<String>,
    pub event_ids: Vec<u32>,
    pub file: Arc<str>,
    pub lint: Vec<String>,
    pub error: Option<String>,
}

impl RuleRow {
    /// The row of a rule for the events of `alternatives`. `error` says why it is not used.
    pub fn new(file: &Arc<str>, rule: &Rule, alternatives: &[Arc<Alternative>], error: Option<String>) -> Self {
        let mut row = RuleRow {
            log_sources: rule.log_sources.clone(),
            lint: rule.lint.iter().map(ToString::to_string).collect(),
            error,
            ..RuleRow::about(file, &rule.about)
        };
        for alternative in alternatives {
            add_new(&mut row.channels, &alternative.channels);
            add_new(&mut row.event_ids, &alternative.event_ids);
        }
        row
    }

    /// The row of a filter.
    pub fn of_filter(file: &Arc<str>, filter: &Filter) -> Self {
        RuleRow {
            log_sources: filter.log_sources.clone(),
            ..RuleRow::about(file, &filter.about)
        }
    }

    /// The row of a correlation, with the log source of its own rule if this is the row of one.
    #[must_use]
    pub fn describing(self, correlation: &Correlation) -> Self {
        RuleRow {
            log_sources: self.log_sources,
            channels: self.channels,
            event_ids: self.event_ids,
            lint: correlation.lint.iter().map(ToString::to_string).collect(),
            error: self.error,
            ..RuleRow::about(&self.file, &correlation.about)
        }
    }

    fn about(file: &Arc<str>, about: &Arc<About>) -> Self {
        RuleRow {
            about: Arc::clone(about),
            tactics: tactics(&about.tags),
            techniques: techniques(&about.tags),
            file: Arc::clone(file),
            ..RuleRow::default()
        }
    }
}

/// Adds the items that a list does not have yet.
fn add_new<T: PartialEq + Clone>(list: &mut Vec<T>, items: &[T]) {
    for item in items {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}
