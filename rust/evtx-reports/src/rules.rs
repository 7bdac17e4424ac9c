//! The report on Sigma rules: a row for each, which says what it is for, or why it is not used.

use std::borrow::Cow;
use std::sync::Arc;

use evtx_format::printable;
use evtx_sigma::{About, Alternative, Correlation, Filter, LogSource, Rule, tactics, techniques};

use crate::report::ListReport;
use crate::table::columns;

/// A report on rules that were loaded.
pub type RuleReport = ListReport<RuleRow>;

impl RuleReport {
    /// A report on these rules.
    pub fn new(rows: Arc<[RuleRow]>) -> Self {
        ListReport::of((0..rows.len()).map(move |index| rows[index].clone()))
    }
}

/// A rule of a file, or a document that is not a rule.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)] // the columns below describe them
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

/// The distinct names of a part of the log sources, or `None`.
fn source(row: &RuleRow, part: fn(&LogSource) -> &Option<String>) -> Option<Cow<'_, str>> {
    let mut names: Vec<&str> = Vec::new();
    for source in &row.log_sources {
        let name = part(source).as_deref();
        names.extend(name.filter(|name| !names.contains(name)));
    }
    match names.as_slice() {
        [] => None,
        [only] => Some((*only).into()),
        [..] => Some(names.join(", ").into()),
    }
}

columns! { RuleRow:
    /// The ID of the rule.
    rule_id: Text(|row| row.about.id.as_deref().map(Into::into));
    /// Its title.
    rule_title: Text(|row| Some(row.about.title.as_str()).filter(|title| !title.is_empty()).map(Into::into));
    /// How much it matters: `informational`, `low`, `medium`, `high` or `critical`, which compare in this order.
    rule_level: Level(|row| row.about.level);
    /// How mature it is.
    rule_status: Text(|row| Some(row.about.status?.name().into()));
    /// Its tags.
    tags: Texts(|row| &row.about.tags);
    /// The tactics of MITRE ATT&CK in its tags, such as `defense-evasion`.
    tactics: Texts(|row| &row.tactics);
    /// The techniques of MITRE ATT&CK in its tags, such as `T1070.001`.
    techniques: Texts(|row| &row.techniques);
    /// What it finds.
    description: Text(|row| row.about.description.as_deref().map(Into::into));
    /// Who wrote it.
    author: Text(|row| row.about.author.as_deref().map(Into::into));
    /// When it was written, as in the rule.
    rule_date: Text(|row| row.about.date.as_deref().map(Into::into));
    /// Where more is said.
    rule_references: Texts(|row| &row.about.references);
    /// Which harmless events it matches.
    false_positives: Texts(|row| &row.about.false_positives);
    /// The category of its log source; if it has several, separated by commas.
    category: Text(|row| source(row, |of| &of.category));
    /// The product of its log source.
    product: Text(|row| source(row, |of| &of.product));
    /// The service of its log source.
    service: Text(|row| source(row, |of| &of.service));
    /// The channels of the events that it is for; an empty list for any channel.
    channels: Texts(|row| &row.channels);
    /// The IDs of the events that it is for; an empty list for any ID.
    event_ids: Numbers(|row| &row.event_ids);
    /// The path of its file.
    rule_file: Text(|row| Some((&*row.file).into()));
    /// What is odd about a rule that can be used, such as aliases that name unknown rules.
    lint: Texts(|row| &row.lint);
    /// NULL, or why the rule is not used, with line and column.
    error: Text(|row| row.error.as_deref().map(printable));
}
