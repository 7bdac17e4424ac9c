//! Column plans: for each column, where its value is in the records of a template. Compiled once per template.

mod keys;
mod projection;
mod source;
mod convert;
mod content;
mod other_values;
mod column_plan;
mod planner;
mod cache;
#[cfg(test)]
mod tests;

pub(crate) use cache::{Compiled, PlanCache, user_data};
pub(crate) use column_plan::{BareEntries, Entry, EntryId, EventData, MapValue, Plan};
pub use convert::{is_misfit, system_element};
pub(crate) use keys::{Key, Keys};
pub use projection::PathId;
pub(crate) use projection::{KeyId, Lookup, Projection, TreeRoot};
pub(crate) use source::{Constant, MAX_FIELD, Resolved};
