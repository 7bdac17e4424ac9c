//! What rules find in rows, as Arrow arrays: a list for each row.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use arrow_array::builder::{StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, ListArray, StringArray, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};
use evtx_arrow::{DecodeError, ExtraColumn};
use evtx_format::Interrupt;
use evtx_sigma::correlation::RecordLocation;
use evtx_sigma::{Hits, Level};

use crate::builders::{FindingBuilder, MatchedBuilder};
use crate::bursts::BurstBuilder;
use crate::columns::MATCH_COLUMNS;
use crate::findings::{Finding, FoundBurst, without_time};
use crate::rule_column::{MatchColumn, RuleColumn};
use crate::rules::Rules;

/// The type of what [`Findings`] give for a row: a list of structs. These have the columns of `evtx_sigma` about a rule,
/// with the level as text; then `row`, of a burst the index of its last [`Hit`]; then `error`, why a correlation could not be
/// evaluated.
pub fn findings_field() -> Field {
    Field::new("found", DataType::List(found_item()), true)
}

fn found_item() -> FieldRef {
    Arc::new(Field::new_list_field(DataType::Struct(finding_fields()), true))
}

/// The fields of these structs.
pub fn finding_fields() -> Fields {
    let text = |name| Field::new(name, DataType::Utf8, true);
    let of_rule = MATCH_COLUMNS.iter().map(|(name, column, _)| match column {
        MatchColumn::Rule(RuleColumn::Tags) | MatchColumn::Matched | MatchColumn::Correlation => column.field(name),
        MatchColumn::Rule(_) => text(*name),
    });
    let others = [Field::new("row", DataType::UInt64, true), text("error")];
    of_rule.chain(others).collect()
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
            bursts: BurstBuilder::new(Arc::clone(rules)),
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
        self.matched.push(finding)?;
        self.bursts.push(finding)?;
        self.rows.append_option(burst.map(|found| found.burst.location.offset));
        self.errors.append_option(why);
        self.files.push(file.flatten());
        Ok(())
    }

    /// Ends the list of a row.
    pub fn end_row(&mut self) {
        self.ends.push(self.found.len() as i32);
    }

    /// Adds the bursts in the hits of some rows, and the correlations that could not be evaluated. Hits of other rules are left
    /// out.
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
                record_id: hit.record_id.unwrap_or_default(),
            };
            for of in &hit.rules {
                let Some(rule) = of.rule else { continue };
                let mut fields = of.fields.iter();
                let mut text = |_: &str, out: &mut String| {
                    let text = fields.next().and_then(Option::as_ref);
                    text.inspect(|text| out.push_str(text)).is_some()
                };
                kept.push(rule, time, location, &mut text);
            }
        }
        let (bursts, refused) = rules.bursts(vec![kept], interrupt)?;
        for burst in bursts {
            let file = |location: &RecordLocation| {
                hits[location.offset as usize]
                    .filename
                    .as_deref()
                    .unwrap_or_default()
                    .into()
            };
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
                MatchColumn::Matched => self.matched.finish()?,
                MatchColumn::Correlation => self.bursts.finish()?,
            });
        }
        columns.push(Arc::new(self.rows.finish()));
        columns.push(Arc::new(self.errors.finish()));
        let structs = StructArray::try_new(finding_fields(), columns, None)?;
        let ends = OffsetBuffer::new(self.ends.into());
        Ok(Arc::new(ListArray::try_new(
            found_item(),
            ends,
            Arc::new(structs),
            None,
        )?))
    }
}

/// A row that base rules match, for correlations. It counts once, however many rules match it.
#[derive(Debug, Clone)]
pub struct Hit<'a> {
    /// When the event happened, in ns since 1970, if that is known.
    pub time: Option<i64>,
    /// The path of its file.
    pub filename: Option<Cow<'a, str>>,
    /// The ID of its record.
    pub record_id: Option<u64>,
    /// The rules.
    pub rules: Vec<HitRule<'a>>,
}

/// A base rule that matches a row.
#[derive(Debug, Clone)]
pub struct HitRule<'a> {
    /// Its index.
    pub rule: Option<u32>,
    /// The texts of [`Correlations::fields`](evtx_sigma::Correlations::fields).
    pub fields: Vec<Option<Cow<'a, str>>>,
}

impl Hit<'_> {
    /// How many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        let fields = self.rules.iter().flat_map(|of| &of.fields);
        let texts = fields.chain([&self.filename]).flatten().map(|text| text.len());
        let lists = self.rules.iter().map(|of| size_of_val(of) + size_of_val(&*of.fields));
        size_of_val(self) + texts.chain(lists).sum::<usize>()
    }
}
