//! The builders of the columns of matches: properties of the rule, and the fields that matched.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::builder::{MapBuilder, MapFieldNames, StringBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, StringArray, UInt8Array};
use arrow_schema::ArrowError;
use evtx_format::Numbering;

use crate::findings::Finding;
use crate::rule_column::RuleColumn;
use crate::rules::Rules;

/// Builds a column of what rows report.
pub(crate) trait FindingBuilder: Debug + Send {
    /// Appends what a finding has, or NULL.
    fn push(&mut self, finding: Option<&Finding>) -> Result<(), ArrowError>;

    /// As [`ExtraBuilder::bytes`](evtx_arrow::ExtraBuilder::bytes).
    fn bytes(&self) -> usize {
        0
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError>;
}

#[derive(Debug)]
pub(crate) struct RuleBuilder {
    rules: Arc<Rules>,
    column: RuleColumn,
    /// By index of the rule: its text in the column, if that has texts.
    texts: ArrayRef,
    /// By row: the index of the rule.
    rows: Vec<Option<u32>>,
}

impl RuleBuilder {
    pub(crate) fn new(rules: Arc<Rules>, column: RuleColumn) -> Self {
        let texts = (0..rules.len()).map(|rule| rules.text(rule, column));
        RuleBuilder {
            texts: Arc::new(texts.collect::<StringArray>()),
            rules,
            column,
            rows: Vec::new(),
        }
    }
}

impl FindingBuilder for RuleBuilder {
    fn push(&mut self, finding: Option<&Finding>) -> Result<(), ArrowError> {
        self.rows.push(finding.map(|finding| finding.rule));
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let rows = std::mem::take(&mut self.rows).into_iter();
        Ok(match self.column {
            RuleColumn::Level => {
                let levels = rows.map(|rule| self.rules.level(rule? as usize));
                Arc::new(levels.collect::<UInt8Array>())
            }
            RuleColumn::Tags => Arc::new(self.rules.tag_lists(rows)),
            RuleColumn::Id | RuleColumn::Title | RuleColumn::Status | RuleColumn::File => {
                let valid = |rule: Option<u32>| Some(rule? as i32).filter(|&rule| self.texts.is_valid(rule as usize));
                let indices: Int32Array = rows.map(valid).collect();
                Arc::new(DictionaryArray::<Int32Type>::try_new(indices, Arc::clone(&self.texts))?)
            }
        })
    }
}

#[derive(Debug)]
pub(crate) struct MatchedBuilder {
    maps: MapBuilder<StringBuilder, StringBuilder>,
    bytes: usize,
}

impl MatchedBuilder {
    pub(crate) fn new() -> Self {
        let names = MapFieldNames {
            entry: "entries".to_owned(),
            key: "key".to_owned(),
            value: "value".to_owned(),
        };
        MatchedBuilder {
            maps: MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new()),
            bytes: 0,
        }
    }
}

impl FindingBuilder for MatchedBuilder {
    /// Appends the fields that matched. If a field is repeated with another value, its name gets a number.
    fn push(&mut self, finding: Option<&Finding>) -> Result<(), ArrowError> {
        let mut names = Numbering::new(str::to_owned);
        for (field, value) in finding.iter().flat_map(|finding| &finding.matched.fields) {
            let (name, _) = names.take(field.clone());
            self.bytes += name.len() + value.as_ref().map_or(0, String::len);
            self.maps.keys().append_value(name);
            self.maps.values().append_option(value.as_deref());
        }
        self.maps.append(finding.is_some())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        self.bytes = 0;
        Ok(Arc::new(self.maps.finish()))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::UInt8Type;
    use evtx_sigma::{Matched, Placeholders, RuleForEvents, RuleSet, load_rules};

    use super::*;

    fn rules() -> Rules {
        let text = "title: A\nlevel: high\nid: x\nstatus: test\ntags: [t, u]\nlogsource: {product: windows}\n\
                    detection: {a: {F: x}, condition: a}\n---\n\
                    title: B\nlogsource: {product: windows}\ndetection: {a: {F: x}, condition: a}\n";
        let rules = load_rules(text, &Placeholders::new()).into_iter();
        let rules = rules.map(|rule| RuleForEvents {
            rule: rule.expect("a rule"),
            alternatives: Vec::new(),
        });
        Rules::new(RuleSet::new(rules.collect()), ["f".into(), "g".into()])
    }

    fn finding(rule: u32, fields: &[(&str, Option<&str>)]) -> Finding {
        let fields = fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned)));
        let matched = Matched {
            fields: fields.collect(),
        };
        Finding {
            rule,
            matched,
            burst: None,
        }
    }

    #[test]
    fn columns_have_the_values_of_rules_and_null() {
        let rules = Arc::new(rules());
        let column = |column| {
            let mut builder = RuleBuilder::new(Arc::clone(&rules), column);
            for rule in [Some(1), Some(0), None] {
                let finding = rule.map(|rule| finding(rule, &[]));
                builder.push(finding.as_ref()).expect("a row");
            }
            let array = builder.finish().expect("an array");
            assert_eq!(builder.finish().expect("an array").len(), 0);
            array
        };
        for (text, expected) in [
            (RuleColumn::Title, [Some("B"), Some("A"), None]),
            (RuleColumn::Id, [None, Some("x"), None]),
            (RuleColumn::Status, [None, Some("test"), None]),
            (RuleColumn::File, [Some("g"), Some("f"), None]),
        ] {
            let names = column(text);
            let names = names.as_dictionary::<Int32Type>().downcast_dict::<StringArray>();
            assert_eq!(names.expect("text").into_iter().collect::<Vec<_>>(), expected);
        }
        let levels = column(RuleColumn::Level);
        assert_eq!(
            levels.as_primitive::<UInt8Type>().iter().collect::<Vec<_>>(),
            [None, Some(3), None]
        );
        let tags = column(RuleColumn::Tags);
        let lists = tags.as_list::<i32>().iter().map(|list| list.map(|list| list.len()));
        assert_eq!(lists.collect::<Vec<_>>(), [Some(0), Some(2), None]);
    }

    #[test]
    fn a_field_that_comes_again_gets_a_number() {
        let mut builder = MatchedBuilder::new();
        let fields = [("Data", Some("a")), ("X", None), ("Data", Some("bc"))];
        builder.push(Some(&finding(0, &fields))).expect("a map");
        builder.push(None).expect("a map");
        assert_eq!(builder.bytes(), "DataaXData_1bc".len());
        let maps = builder.finish().expect("an array");
        assert_eq!(builder.bytes(), 0);
        let maps = maps.as_map();
        let [keys, values] = [maps.keys(), maps.values()].map(|texts| texts.as_string::<i32>().iter());
        assert!(keys.eq([Some("Data"), Some("X"), Some("Data_1")]));
        assert!(values.eq([Some("a"), None, Some("bc")]));
        assert!(maps.is_valid(0) && maps.is_null(1));
    }
}
