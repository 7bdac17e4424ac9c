//! The report on rules: a row for each, and what became of it.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use evtx_sigma::{Alternative, Level, LogSource, Rule, Status};

use super::report::ReportWithoutFiles;
use super::table::{self, ReportColumn, Value};

/// The most rows of a batch.
const BATCH_ROWS: usize = 2048;

/// A rule of a file, or a document that is none.
#[derive(Debug, Clone, Default)]
pub struct RuleRow {
    /// Its ID.
    pub id: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its level.
    pub level: Option<Level>,
    /// Its status.
    pub status: Option<Status>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its log source.
    pub log_source: Option<LogSource>,
    /// The channels of the events that it is for. None if any channel will do.
    pub channels: Vec<String>,
    /// The IDs of the events that it is for. None if any ID will do.
    pub event_ids: Vec<u32>,
    /// The path of its file.
    pub file: Arc<str>,
    /// Why it is not used.
    pub error: Option<String>,
}

impl RuleRow {
    /// The row of a rule that is for some events, or why it is not used.
    pub fn new(file: &Arc<str>, rule: &Rule, alternatives: &[Alternative], error: Option<String>) -> Self {
        let mut row = RuleRow {
            id: rule.id.clone(),
            title: Some(rule.title.clone()),
            level: rule.level,
            status: rule.status,
            tags: rule.tags.clone(),
            log_source: Some(rule.log_source.clone()),
            file: Arc::clone(file),
            error,
            ..RuleRow::default()
        };
        for alternative in alternatives {
            for channel in &alternative.channels {
                if !row.channels.contains(channel) {
                    row.channels.push(channel.clone());
                }
            }
            for id in &alternative.event_ids {
                if !row.event_ids.contains(id) {
                    row.event_ids.push(*id);
                }
            }
        }
        row
    }
}

fn source(row: &RuleRow, part: fn(&LogSource) -> &Option<String>) -> Option<&str> {
    part(row.log_source.as_ref()?).as_deref()
}

/// The columns of [`RuleReport`].
const COLUMNS: &[ReportColumn<RuleRow>] = &[
    ReportColumn {
        name: "rule_id",
        about: "The ID of the rule.",
        value: Value::Text(|row| row.id.as_deref().map(Into::into)),
    },
    ReportColumn {
        name: "rule_title",
        about: "Its title.",
        value: Value::Text(|row| row.title.as_deref().map(Into::into)),
    },
    ReportColumn {
        name: "rule_level",
        about: "How much it matters: `informational`, `low`, `medium`, `high`, `critical`, which compare in this order.",
        value: Value::Level(|row| row.level),
    },
    ReportColumn {
        name: "rule_status",
        about: "How mature it is.",
        value: Value::Text(|row| Some(row.status?.name().into())),
    },
    ReportColumn {
        name: "tags",
        about: "Its tags.",
        value: Value::Texts(|row| &row.tags),
    },
    ReportColumn {
        name: "category",
        about: "The category of its log source.",
        value: Value::Text(|row| source(row, |of| &of.category).map(Into::into)),
    },
    ReportColumn {
        name: "product",
        about: "The product of its log source.",
        value: Value::Text(|row| source(row, |of| &of.product).map(Into::into)),
    },
    ReportColumn {
        name: "service",
        about: "The service of its log source.",
        value: Value::Text(|row| source(row, |of| &of.service).map(Into::into)),
    },
    ReportColumn {
        name: "channels",
        about: "The channels of the events that it is for; an empty list if any channel will do.",
        value: Value::Texts(|row| &row.channels),
    },
    ReportColumn {
        name: "event_ids",
        about: "The IDs of the events that it is for; an empty list if any ID will do.",
        value: Value::Numbers(|row| &row.event_ids),
    },
    ReportColumn {
        name: "rule_file",
        about: "The path of its file.",
        value: Value::Text(|row| Some((&*row.file).into())),
    },
    ReportColumn {
        name: "error",
        about: "NULL, or why the rule is not used, with line and column.",
        value: Value::Text(|row| row.error.as_deref().map(Into::into)),
    },
];

/// A report on rules that were loaded. It reads no files.
#[derive(Debug)]
pub struct RuleReport {
    rows: Arc<[RuleRow]>,
    /// How many rows were given.
    done: usize,
}

impl RuleReport {
    /// A report on these rules.
    pub fn new(rows: Arc<[RuleRow]>) -> Self {
        RuleReport { rows, done: 0 }
    }
}

impl ReportWithoutFiles for RuleReport {
    fn schema(&self) -> SchemaRef {
        table::schema(COLUMNS)
    }

    fn reference(&self) -> Vec<(&'static str, &'static str)> {
        table::reference(COLUMNS)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let end = self.rows.len().min(self.done + BATCH_ROWS);
        let rows = &self.rows[self.done..end];
        if rows.is_empty() {
            return Ok(None);
        }
        self.done = end;
        table::batch(COLUMNS, rows).map(Some)
    }
}
