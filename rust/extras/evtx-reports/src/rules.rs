//! The report on Sigma rules: a row for each, which says what it is for, or why it is not used.

use std::borrow::Cow;
use std::sync::Arc;

use evtx_detect::RuleRow;
use evtx_format::printable;
use evtx_sigma::LogSource;

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
