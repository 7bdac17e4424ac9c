//! The events of logs and their fields, for tables of certain events and for reports.

mod slots;
mod collected;
mod records;
mod paths;
mod columns;
mod collector;

pub use collected::{CollectedEvent, CollectedEvents, CollectedField, FieldLayout};
pub use collector::EventCollector;
pub use paths::{PathReader, ReadPaths};
pub use slots::{Slots, SlotsError, TooManyEvents};
