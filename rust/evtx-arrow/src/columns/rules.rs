//! The builders of the columns of matches: what is known of the rule, and the fields that made it true.

use std::sync::Arc;

use arrow_array::builder::{MapBuilder, MapFieldNames, StringBuilder};
use arrow_array::{Array, ArrayRef, Int32Array, UInt32Array};
use arrow_schema::ArrowError;
use arrow_select::take::take;
use evtx_sigma::Matched;

use super::arrays::{self, Indices, MakeArrays};
use crate::schema::{Numbering, RuleColumn, Rules};

/// The builder of a column that each rule has one value of.
#[derive(Debug)]
pub(crate) struct RuleBuilder {
    /// The values, by index of the rule.
    values: ArrayRef,
    /// Whether the column is a dictionary.
    is_name: bool,
    /// By row: the index of the rule.
    rows: Vec<Option<u32>>,
}

impl RuleBuilder {
    /// A builder of an empty column.
    pub(crate) fn new(rules: &Rules, column: RuleColumn) -> Self {
        RuleBuilder {
            values: rules.array(column),
            is_name: !matches!(column, RuleColumn::Level | RuleColumn::Tags),
            rows: Vec::new(),
        }
    }

    /// Appends the value of a rule, or NULL.
    pub(crate) fn push(&mut self, rule: Option<u32>) {
        self.rows.push(rule);
    }

    /// Ends the column of a batch.
    pub(crate) fn finish(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        let rows = arrays::take(&mut self.rows);
        if !self.is_name {
            return take(&self.values, &UInt32Array::from(rows), None);
        }
        let index = |rule: &u32| {
            i32::try_from(*rule)
                .ok()
                .filter(|_| self.values.is_valid(*rule as usize))
        };
        let indices = rows.iter().map(|rule| rule.as_ref().and_then(index));
        let indices = Indices::new(Int32Array::from_iter(indices), Arc::clone(&self.values));
        Ok(Arc::new((make.dictionary)(indices)?))
    }
}

/// The builder of the column of the fields that made rules true.
#[derive(Debug)]
pub(crate) struct MatchedBuilder {
    maps: MapBuilder<StringBuilder, StringBuilder>,
    /// How many bytes of text it holds.
    bytes: usize,
}

impl MatchedBuilder {
    /// A builder of an empty column.
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

    /// Appends the fields of a match, or NULL. Where a field comes again with another value, its name gets a number.
    ///
    /// # Errors
    /// If Arrow refuses the map.
    pub(crate) fn push(&mut self, matched: Option<&Matched>) -> Result<(), ArrowError> {
        let mut names = Numbering::new(str::to_owned);
        for (field, value) in matched.iter().flat_map(|matched| &matched.fields) {
            let (name, _) = names.take(field.clone());
            self.bytes += name.len() + value.as_ref().map_or(0, String::len);
            self.maps.keys().append_value(name);
            self.maps.values().append_option(value.as_deref());
        }
        self.maps.append(matched.is_some())
    }

    /// How many bytes of text it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Ends the column of a batch.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        self.bytes = 0;
        Arc::new(self.maps.finish())
    }
}
