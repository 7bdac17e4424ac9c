//! Correlations: several matches of rules within a time.
//!
//! A correlation rule names other rules, and says how many of their matches, or which, must be how close together. Each
//! match of a rule is a **hit**: a time, a **group** (the values of the fields of `group-by`), perhaps a **value** (those of
//! `field`), and the [`RecordLocation`] of its record. [`Correlations::resolve`] finds the rules that correlations
//! refer to, [`Hits`] collects their hits during a scan, and [`Correlations::sweep`] sorts them by group and time and
//! returns [`Burst`]s.
//!
//! A **window** begins at the time of a hit, and has all hits of its group up to a timespan later, inclusively. The first
//! window whose hits meet the condition is a burst. The next window begins after it. Hayabusa does the same. So bursts do
//! not depend on the order of hits, files or threads.
//!
//! The sources are "Sigma correlation rules" 2.1.0, and "Condition" of the Sigma specification 1.0 for aggregations.

mod model;
mod possible;
mod read;
mod aggregation;
mod fields;
mod resolve;
mod texts;
mod hits;
mod sums;
mod order;
mod windows;
mod table;
mod events;
mod burst;
mod sweep;

pub use burst::Burst;
pub use hits::Hits;
pub use model::{Alias, Correlation, CorrelationKind, RecordLocation, Reference};
pub use resolve::Correlations;
pub use sweep::BurstsAndProblems;

pub(crate) use aggregation::{Aggregation, aggregation};
pub(crate) use read::{correlation, never, timespan};
