//! Sigma rules over EVTX records, as a row source and extra columns of `evtx-arrow`, and over rows of tables.

mod rule_column;
mod rules;
mod fields;
mod findings;
mod builders;
mod bursts;
mod kinds;
mod detect;
mod correlate;
mod source;
mod columns;
mod rows;

pub use columns::{RuleColumnReference, rule_reference, table_of_matches};
pub use fields::{ENUMS, level_field};
pub use rows::{EventRow, EventValue, Findings, Hit, HitList, RowMatcher, event_fields, findings_field, hits_field};
pub use rules::Rules;
