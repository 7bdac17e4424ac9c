//! Column plans: what a template gives to each column, compiled once.

mod convert;
mod keys;
mod target;
mod source;
mod column_plan;
mod planner;
mod system;
mod cache;

pub(crate) use cache::{Compiled, PlanCache, user_data};
pub(crate) use column_plan::{Entry, EventData, Plan, Run, TreeRoot};
pub(crate) use keys::{Key, Keys};
pub(crate) use source::{Constant, MAX_FIELD, Resolved};
pub(crate) use system::SystemSubstitutions;
pub(crate) use target::Projection;
