//! What the rows of a table of matches report.

use std::sync::Arc;

use evtx_sigma::{Burst, Match, Matched};

use crate::rules::Rules;

/// A rule that an event matches, or a correlation with a burst that ends with the event.
#[derive(Debug)]
pub(crate) struct Finding {
    /// The index of the rule or correlation in [`Rules`].
    pub(crate) rule: u32,
    /// The fields that made the rule true; of a burst those of its group.
    pub(crate) matched: Matched,
    pub(crate) burst: Option<Box<FoundBurst>>,
}

/// A burst of a correlation, and the paths of the files of its records, in their order.
#[derive(Debug)]
pub(crate) struct FoundBurst {
    pub(crate) burst: Burst,
    /// The path of the file of each record.
    pub(crate) files: Vec<Arc<str>>,
}

impl Finding {
    pub(crate) fn of_match(found: Match) -> Self {
        let Match { rule, matched, .. } = found;
        Finding {
            rule,
            matched,
            burst: None,
        }
    }

    /// A burst of a correlation of these rules.
    pub(crate) fn of_burst(rules: &Rules, mut found: FoundBurst) -> Self {
        let fields = std::mem::take(&mut found.burst.group);
        Finding {
            rule: rules.correlation(found.burst.correlation).0,
            matched: Matched { fields },
            burst: Some(found.into()),
        }
    }
}

/// What is kept for the rows of a group.
pub(crate) type Found = Vec<Option<Finding>>;

/// What a row says if correlations leave out so many events.
pub(crate) fn without_time(events: u64) -> String {
    format!("correlations leave out {events} events that have no time_created")
}
