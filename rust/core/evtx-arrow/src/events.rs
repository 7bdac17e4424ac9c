//! The events of logs and their fields, for tables of certain events and for reports.

mod slots;
mod collected;
mod columns;
mod collector;

pub use collected::{CollectedEvent, CollectedEvents, CollectedField, FieldLayout, push_key};
pub use collector::EventCollector;
pub use slots::{Slots, SlotsError, TooManyEvents};
