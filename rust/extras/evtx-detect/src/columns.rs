//! The columns of a table of matches.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{ArrowError, DataType, Field};
use evtx_arrow::{Comparable, ExtraBuilder, ExtraColumn, GroupRows, MakeArrays, ScanLayout, Table};

use crate::builders::{FindingBuilder, MatchedBuilder, RuleBuilder};
use crate::bursts::BurstBuilder;
use crate::fields::{burst_fields, level_field, matched_type, name_type};
use crate::findings::{Finding, Found};
use crate::rule_column::MatchColumn::{self, Correlation, Matched, Rule};
use crate::rule_column::RuleColumn;
use crate::rules::{Rules, level_number};
use crate::source::RuleSource;

/// The columns about rules in order, which come before the others in a table of matches: their names, what they are, and a
/// sentence that describes each.
pub(crate) const MATCH_COLUMNS: [(&str, MatchColumn, &str); 8] = [
    ("rule_id", Rule(RuleColumn::Id), "The ID of the rule."),
    ("rule_title", Rule(RuleColumn::Title), "Its title."),
    (
        "rule_level",
        Rule(RuleColumn::Level),
        "How much it matters: `informational`, `low`, `medium`, `high` or `critical`, which compare in this order.",
    ),
    (
        "rule_status",
        Rule(RuleColumn::Status),
        "How mature the rule is: `stable`, `test`, `experimental`, `deprecated` or `unsupported`.",
    ),
    ("tags", Rule(RuleColumn::Tags), "Its tags, such as `attack.t1059.001`."),
    ("rule_file", Rule(RuleColumn::File), "The path of its file."),
    (
        "matched",
        Matched,
        "The fields that made the rule true, with their values, or the part of a long value around what matched; of a \
         correlation the fields that it groups by.",
    ),
    (
        "correlation",
        Correlation,
        "Of a correlation: the times of its first and last event, their number, the value that met its condition, and the \
         values and records that it counted. The other columns are those of the last event.",
    ),
];

/// A column about rules as the documentation describes it.
#[derive(Debug, Clone)]
pub struct RuleColumnReference {
    /// Its name and type.
    pub field: Field,
    /// A sentence that describes it.
    pub about: &'static str,
}

/// The columns about rules, which a table of matches has before the others.
pub fn rule_reference() -> Vec<RuleColumnReference> {
    let columns = MATCH_COLUMNS.iter();
    let columns = columns.map(|(name, column, about)| RuleColumnReference {
        field: column.field(name),
        about,
    });
    columns.collect()
}

/// The table with a row for each match of an event and one of these rules. Columns about the rule come before the others. A
/// field of an event with the name of one of them gets the prefix `data_`.
pub fn table_of_matches(table: Table, rules: Arc<Rules>) -> Table {
    let extra = MATCH_COLUMNS.iter().map(|&(name, column, _)| {
        let column: Arc<dyn ExtraColumn> = Arc::new(column);
        (name, column)
    });
    table.of_rows(Arc::new(RuleSource::new(rules)), extra.collect())
}

impl ExtraColumn for MatchColumn {
    fn field(&self, name: &str) -> Field {
        let data_type = match self {
            Rule(RuleColumn::Level) => return level_field(name),
            Rule(RuleColumn::Tags) => DataType::List(Arc::new(Field::new("item", DataType::Utf8, true))),
            Rule(_) => name_type(),
            Matched => matched_type(),
            Correlation => DataType::Struct(burst_fields()),
        };
        Field::new(name, data_type, true)
    }

    fn comparable(&self) -> Option<Comparable> {
        match self {
            Rule(RuleColumn::Level) => Some(Comparable::Number(level_number)),
            Rule(RuleColumn::Tags) | Matched | Correlation => None,
            Rule(_) => Some(Comparable::Text),
        }
    }

    fn builder(&self, scan: &ScanLayout<'_>) -> Box<dyn ExtraBuilder> {
        let rules = scan.source().map(RuleSource::rules);
        let rules = rules.map_or_else(|| Rules::none().into(), Arc::clone);
        match self {
            Rule(column) => Box::new(OfFindings(RuleBuilder::new(rules, *column))),
            Matched => Box::new(OfFindings(MatchedBuilder::new())),
            Correlation => Box::new(OfFindings(BurstBuilder::new(rules))),
        }
    }
}

/// A column of what rows report.
#[derive(Debug)]
struct OfFindings<B>(B);

impl<B: FindingBuilder> ExtraBuilder for OfFindings<B> {
    fn push(&mut self, rows: &GroupRows<'_>) -> Result<(), ArrowError> {
        let found: &[Option<Finding>] = rows.found::<Found>().map_or(&[], Vec::as_slice);
        found.iter().try_for_each(|finding| self.0.push(finding.as_ref()))
    }

    fn push_bare(&mut self) -> Result<(), ArrowError> {
        self.0.push(None)
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn finish(&mut self, _: MakeArrays) -> Result<ArrayRef, ArrowError> {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use evtx_arrow::Options;

    use super::*;

    #[test]
    fn columns_about_rules_come_first() {
        let plain = Table::from(Options::default());
        let of_matches = table_of_matches(plain.clone(), Arc::new(Rules::none())).schema();
        let names: Vec<_> = of_matches.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names[..3], ["rule_id", "rule_title", "rule_level"]);
        assert_eq!(of_matches.fields()[MATCH_COLUMNS.len()..], plain.schema().fields()[..]);
    }
}
