//! What rules find in rows, as Arrow arrays: a list for each row.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use arrow_array::builder::{
    ArrayBuilder, ListBuilder, StringBuilder, TimestampNanosecondBuilder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, ListArray, StringArray, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field, Fields};
use evtx_arrow::{DecodeError, ExtraColumn};
use evtx_format::Interrupt;
use evtx_sigma::correlation::RecordLocation;
use evtx_sigma::{Hits, Level};

use crate::builders::MatchedBuilder;
use crate::bursts::BurstBuilder;
use crate::columns::MATCH_COLUMNS;
use crate::fields::time;
use crate::findings::{Finding, FoundBurst, without_time};
use crate::rule_column::{MatchColumn, RuleColumn};
use crate::rules::Rules;

/// The type of what [`Findings`] give for a row: a list of structs. These have the columns of `evtx_sigma` about a rule,
/// with the level as text; then `row`, of a burst the index of its last [`Hit`]; then `error`, why a correlation could not be
/// evaluated.
pub fn findings_field() -> Field {
    let of_rule = MATCH_COLUMNS.iter().map(|(name, column, _)| match column {
        MatchColumn::Rule(RuleColumn::Tags) | MatchColumn::Matched | MatchColumn::Correlation => column.field(name),
        MatchColumn::Rule(_) => text(name),
    });
    let others = [Field::new("row", DataType::UInt64, true), text("error")];
    list_of("found", of_rule.chain(others).collect())
}

/// The type of what a [`HitList`] gives for a row: a list of structs, with one if a base rule matches the row.
pub fn hits_field() -> Field {
    list_of(
        "found",
        Fields::from(vec![
            time("time"),
            text("filename"),
            Field::new("record_id", DataType::UInt64, true),
            rules_field(),
        ]),
    )
}

/// The base rules that match a row, each with the texts that correlations need of it.
fn rules_field() -> Field {
    let texts = Arc::new(Field::new_list_field(DataType::Utf8, true));
    let fields = Field::new("fields", DataType::List(texts), true);
    let rule = Field::new("rule", DataType::UInt32, true);
    list_of("rules", Fields::from(vec![rule, fields]))
}

fn text(name: &str) -> Field {
    Field::new(name, DataType::Utf8, true)
}

fn list_of(name: &str, fields: Fields) -> Field {
    let item = Field::new_list_field(DataType::Struct(fields), true);
    Field::new(name, DataType::List(item.into()), true)
}

/// The lists of an array of structs with these columns; `ends` has 0, and the end of each row.
fn lists(columns: Vec<ArrayRef>, field: Field, ends: Vec<i32>) -> Result<ArrayRef, ArrowError> {
    let DataType::List(item) = field.data_type() else {
        return Err(ArrowError::SchemaError("no list".to_owned()));
    };
    let DataType::Struct(fields) = item.data_type() else {
        return Err(ArrowError::SchemaError("no struct".to_owned()));
    };
    let structs = StructArray::try_new(fields.clone(), columns, None)?;
    let ends = OffsetBuffer::new(ends.into());
    Ok(Arc::new(ListArray::try_new(
        Arc::clone(item),
        ends,
        Arc::new(structs),
        None,
    )?))
}

/// The findings of some rows.
#[derive(Debug)]
pub struct Findings {
    rules: Arc<Rules>,
    /// The index of the rule or correlation of each.
    found: Vec<Option<u32>>,
    matched: MatchedBuilder,
    bursts: BurstBuilder,
    rows: UInt64Builder,
    errors: StringBuilder,
    files: Vec<Option<Arc<str>>>,
    ends: Vec<i32>,
}

impl Findings {
    /// No findings yet.
    pub fn new(rules: &Arc<Rules>) -> Self {
        Findings {
            rules: Arc::clone(rules),
            found: Vec::new(),
            matched: MatchedBuilder::new(),
            bursts: BurstBuilder::new(),
            rows: UInt64Builder::new(),
            errors: StringBuilder::new(),
            files: Vec::new(),
            ends: vec![0],
        }
    }

    /// Adds a finding to the list of the row; `None` for an event whose damage can hide one.
    pub(super) fn push(&mut self, finding: Option<&Finding>) -> Result<(), ArrowError> {
        self.push_with_error(finding, None)
    }

    /// The same, or instead what correlations could not evaluate: the path of the file of the rule, if it is one, and why.
    fn push_with_error(
        &mut self,
        finding: Option<&Finding>,
        refused: Option<(Option<Arc<str>>, String)>,
    ) -> Result<(), ArrowError> {
        let burst = finding.and_then(|finding| finding.burst.as_deref());
        let (file, why) = refused.unzip();
        self.found.push(finding.map(|finding| finding.rule));
        self.matched.push(finding.map(|finding| &finding.matched))?;
        self.bursts.push(burst, Some(&self.rules));
        self.rows.append_option(burst.map(|found| found.burst.location.offset));
        self.errors.append_option(why);
        self.files.push(file.flatten());
        Ok(())
    }

    /// Ends the list of a row.
    pub fn end_row(&mut self) {
        self.ends.push(self.found.len() as i32);
    }

    /// Adds the bursts in the hits of some rows, and the correlations that could not be evaluated. `rules` are those of
    /// the [`HitList`]s.
    ///
    /// # Errors
    /// [`DecodeError::Interrupted`], or those of Arrow.
    pub fn push_bursts(&mut self, hits: &[Hit<'_>], interrupt: Interrupt<'_>) -> Result<(), DecodeError> {
        let rules = Arc::clone(&self.rules);
        let mut kept = Hits::new(Arc::clone(&rules.correlations), Arc::new(AtomicUsize::new(0)));
        let mut timeless = 0;
        for (offset, hit) in (0..).zip(hits) {
            interrupt.check()?;
            let Some(time) = hit.time else {
                timeless += 1;
                continue;
            };
            let location = RecordLocation {
                file: 0,
                offset,
                record_id: hit.record_id,
            };
            for (rule, fields) in &hit.rules {
                let mut fields = fields.iter();
                let mut text = |_: &str, out: &mut String| {
                    let text = fields.next().copied().flatten();
                    text.inspect(|text| out.push_str(text)).is_some()
                };
                kept.push(*rule, time, location, &mut text);
            }
        }
        let (bursts, refused) = rules.bursts(vec![kept], interrupt)?;
        for burst in bursts {
            let file = |location: &RecordLocation| hits[location.offset as usize].filename.into();
            let files = burst.records.iter().map(|(_, location)| file(location)).collect();
            self.push(Some(&Finding::of_burst(&rules, FoundBurst { burst, files })))?;
        }
        for (file, why) in refused {
            self.push_with_error(None, Some((Some(file), why)))?;
        }
        if timeless > 0 {
            self.push_with_error(None, Some((None, without_time(timeless))))?;
        }
        Ok(())
    }

    /// An array of the type of [`findings_field`], with a list for each row.
    ///
    /// # Errors
    /// Those of Arrow, for more than 2 GiB of text.
    pub fn finish(mut self) -> Result<ArrayRef, ArrowError> {
        let rules = &self.rules;
        let found = self.found.iter().zip(&self.files);
        let column = |column: RuleColumn| -> ArrayRef {
            let text = |(rule, file): (&Option<u32>, &'_ Option<Arc<str>>)| match (rule, column) {
                (Some(rule), RuleColumn::Level) => {
                    let level = rules.level(*rule as usize)?;
                    Some(Level::ALL.get(usize::from(level))?.1.to_owned())
                }
                (Some(rule), column) => rules.text(*rule as usize, column).map(str::to_owned),
                (None, RuleColumn::File) => file.as_deref().map(str::to_owned),
                (None, _) => None,
            };
            Arc::new(found.clone().map(text).collect::<StringArray>())
        };
        let mut columns: Vec<ArrayRef> = Vec::new();
        for (_, source, _) in MATCH_COLUMNS {
            columns.push(match source {
                MatchColumn::Rule(RuleColumn::Tags) => Arc::new(rules.tag_lists(self.found.iter().copied())),
                MatchColumn::Rule(of_rule) => column(of_rule),
                MatchColumn::Matched => self.matched.finish(),
                MatchColumn::Correlation => self.bursts.finish()?,
            });
        }
        columns.push(Arc::new(self.rows.finish()));
        columns.push(Arc::new(self.errors.finish()));
        lists(columns, findings_field(), self.ends)
    }
}

/// A row that base rules match, for correlations. It counts once, however many rules match it.
#[derive(Debug, Clone)]
pub struct Hit<'a> {
    /// When the event happened, in ns since 1970, if that is known.
    pub time: Option<i64>,
    /// The path of its file; empty if the row has none.
    pub filename: &'a str,
    /// The ID of its record; 0 if the row has none.
    pub record_id: u64,
    /// The indexes of the rules, each with the texts of [`Correlations::fields`](evtx_sigma::Correlations::fields).
    pub rules: Vec<(u32, Vec<Option<&'a str>>)>,
}

/// The hits of some rows.
#[derive(Debug)]
pub struct HitList {
    times: TimestampNanosecondBuilder,
    files: StringBuilder,
    ids: UInt64Builder,
    rules: UInt32Builder,
    fields: ListBuilder<StringBuilder>,
    /// The end of the rules of each hit.
    rule_ends: Vec<i32>,
    ends: Vec<i32>,
}

impl Default for HitList {
    fn default() -> Self {
        HitList {
            times: TimestampNanosecondBuilder::new(),
            files: StringBuilder::new(),
            ids: UInt64Builder::new(),
            rules: UInt32Builder::new(),
            fields: ListBuilder::new(StringBuilder::new()),
            rule_ends: vec![0],
            ends: vec![0],
        }
    }
}

impl HitList {
    /// Adds a base rule that matches the row, after its [`field`](Self::field)s.
    pub(super) fn push(&mut self, rule: u32) {
        self.rules.append_value(rule);
        self.fields.append(true);
    }

    /// The fields of the rule that is pushed next.
    pub(super) fn field(&mut self, text: Option<&str>) {
        self.fields.values().append_option(text);
    }

    /// Ends a row: it is a hit if a rule was pushed.
    pub(super) fn end_row(&mut self, time: Option<i64>, file: Option<&str>, id: Option<u64>) {
        let rules = self.rules.len() as i32;
        if self.rule_ends.last() != Some(&rules) {
            self.times.append_option(time);
            self.files.append_option(file);
            self.ids.append_option(id);
            self.rule_ends.push(rules);
        }
        self.ends.push(self.times.len() as i32);
    }

    /// An array of the type of [`hits_field`], with a list for each row.
    ///
    /// # Errors
    /// Those of Arrow.
    pub fn finish(mut self) -> Result<ArrayRef, ArrowError> {
        let rules: Vec<ArrayRef> = vec![Arc::new(self.rules.finish()), Arc::new(self.fields.finish())];
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.times.finish()),
            Arc::new(self.files.finish()),
            Arc::new(self.ids.finish()),
            lists(rules, rules_field(), self.rule_ends)?,
        ];
        lists(columns, hits_field(), self.ends)
    }
}
