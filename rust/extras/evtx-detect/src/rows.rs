//! Events that are rows of a table rather than records of a log: Sigma rules match them by the same engine.

mod event;
mod findings;
mod matcher;

pub use event::{EventRow, EventValue, event_fields};
pub use findings::{Findings, Hit, HitRule, finding_fields, findings_field};
pub use matcher::RowMatcher;
