//! Whether the condition of a correlation can hold at all.

use super::model::{Correlation, CorrelationKind};

/// The numbers that a window can have.
struct Domain {
    least: f64,
    most: f64,
    /// Whether they are whole numbers.
    is_whole: bool,
}

impl Correlation {
    /// Whether a window can have a number that meets all comparisons.
    pub(crate) fn can_hold(&self) -> bool {
        let domain = self.domain();
        domain.candidates(self).into_iter().any(|number| self.holds(number))
    }

    fn domain(&self) -> Domain {
        let (least, most, is_whole) = match self.kind {
            // A window begins at a hit.
            CorrelationKind::EventCount => (1.0, f64::INFINITY, true),
            // Hits without the field have no value.
            CorrelationKind::ValueCount => (0.0, f64::INFINITY, true),
            CorrelationKind::Temporal { absent } => (0.0, absent as f64, true),
            CorrelationKind::TemporalOrdered => (0.0, self.references.len() as f64, true),
            CorrelationKind::ValueShare { .. } => (0.0, 100.0, false),
            CorrelationKind::ValueSum
            | CorrelationKind::ValueAverage
            | CorrelationKind::ValueMin
            | CorrelationKind::ValueMax
            | CorrelationKind::ValuePercentile(_) => (f64::NEG_INFINITY, f64::INFINITY, false),
        };
        Domain { least, most, is_whole }
    }
}

impl Domain {
    /// Numbers of the domain, of which one meets the condition if any number does. Where a condition begins or ceases to
    /// hold, there is a limit of it, and what meets it next to a limit, or between two, is one of these.
    fn candidates(&self, correlation: &Correlation) -> Vec<f64> {
        let limits = correlation.condition.iter().map(|(_, limit)| *limit);
        let mut ends: Vec<f64> = limits
            .chain([self.least, self.most])
            .filter(|end| end.is_finite())
            .collect();
        ends.sort_by(f64::total_cmp);
        let mut all: Vec<f64> = ends
            .windows(2)
            .map(|pair| pair[0] + (pair[1] - pair[0]) / 2.0)
            .collect();
        for end in ends {
            all.extend([end - 1.0, end.next_down(), end, end.next_up(), end + 1.0]);
            all.extend([end.floor(), end.ceil(), end.floor() - 1.0, end.ceil() + 1.0]);
        }
        all.retain(|number| (self.least..=self.most).contains(number) && (!self.is_whole || number.fract() == 0.0));
        all
    }
}
