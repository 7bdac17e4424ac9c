//! Sigma rules over EVTX records, as a row source and extra columns of `evtx-arrow`, and over rows of tables. Loads rules
//! from files of any storage.

mod rule_column;
mod rules;
mod fields;
mod findings;
mod builders;
mod bursts;
mod record_values;
mod classes;
mod detect;
mod correlate;
mod source;
mod columns;
mod rows;
mod rule_row;
mod filters;
mod collected;
mod settings;
mod loading;

pub use collected::LoadedRules;
pub use columns::{RuleColumnReference, rule_reference, table_of_matches};
pub use fields::{ENUMS, enum_of, level_field};
pub use loading::RULE_FILES;
pub use rows::{
    EventRow, EventValue, Findings, Hit, HitRule, RowMatcher, event_fields, finding_fields, findings_field,
};
pub use rule_row::RuleRow;
pub use rules::Rules;
pub use settings::{OF_MATCHES, OF_RULES, RuleSettings};
