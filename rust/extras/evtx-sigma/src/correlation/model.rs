//! Correlations as loaded.

use std::sync::Arc;

use crate::about::About;
use crate::error::{LoadError, Position};
use crate::matcher::Comparison;
use crate::rule::Identity;

/// Where a record is.
#[derive(Debug, Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordLocation {
    /// The index of its file.
    pub file: u32,
    /// Its offset in the file, in bytes.
    pub offset: u64,
    /// Its ID.
    pub record_id: u64,
}

impl RecordLocation {
    /// Where no record is.
    pub(super) const NONE: RecordLocation = RecordLocation {
        file: u32::MAX,
        offset: u64::MAX,
        record_id: u64::MAX,
    };
}

/// A correlation rule, or the aggregation of a rule of Sigma 1. It does not change after it is loaded.
#[derive(Debug, Clone, Default)]
pub struct Correlation {
    /// What it says about itself.
    pub about: Arc<About>,
    /// The position of the correlation in its text.
    pub position: Position,
    /// What is counted.
    pub kind: CorrelationKind,
    /// The rules and correlations that it refers to, in the order of the text.
    pub references: Vec<Reference>,
    /// The fields, or aliases of fields, whose values must be the same for all hits of a burst.
    pub group_by: Vec<String>,
    /// The fields whose values are counted or added up.
    pub fields: Vec<String>,
    /// How long a window is, in ns. `None` if it has no end.
    pub timespan: Option<i64>,
    /// Names of fields that differ between the rules.
    pub aliases: Vec<Alias>,
    /// What must be true for the number of a window. All comparisons must be.
    pub condition: Vec<(Comparison, f64)>,
    /// Whether the rules that it refers to have matches of their own, too.
    pub generate: bool,
    /// What is odd about it, although it can be used.
    pub lint: Vec<LoadError>,
}

/// What a correlation counts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum CorrelationKind {
    #[default]
    /// The number of events.
    EventCount,
    /// The number of distinct values.
    ValueCount,
    /// The number of references that have a hit. Of those from an index on, none may have one (`near a and not b`).
    Temporal {
        /// The index of the first reference that may have no hit.
        absent: usize,
    },
    /// The number of references that have hits in their order.
    TemporalOrdered,
    /// The sum of numbers.
    ValueSum,
    /// The average of numbers.
    ValueAverage,
    /// The smallest number (Sigma 1).
    ValueMin,
    /// The largest number (Sigma 1).
    ValueMax,
    /// The percentile of numbers, from 0 to 100, by nearest rank.
    ValuePercentile(f64),
    /// How many percent of the hits have a certain value: the rarest, or else the most frequent one.
    ValueShare {
        /// Whether it is the rarest.
        rarest: bool,
    },
}

/// What a correlation refers to.
#[derive(Debug, Clone)]
pub enum Reference {
    /// The ID or name of a rule or correlation, and its position.
    Named(String, Position),
    /// The rule that an aggregation belongs to.
    Own(Identity),
}

/// A name for fields that have different names in different rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// The name.
    pub name: String,
    /// The ID or name of each rule, and its field.
    pub fields: Vec<(String, String)>,
}

impl Correlation {
    /// Whether the number of a window meets the condition.
    pub(crate) fn holds(&self, number: f64) -> bool {
        self.condition
            .iter()
            .all(|(comparison, limit)| comparison.holds(number.partial_cmp(limit)))
    }

    /// Whether several hits of one record count once: an event that two rules match is still one event.
    pub(crate) fn counts_records(&self) -> bool {
        !matches!(
            self.kind,
            CorrelationKind::Temporal { .. } | CorrelationKind::TemporalOrdered
        )
    }
}
