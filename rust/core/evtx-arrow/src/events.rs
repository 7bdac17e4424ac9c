//! The events of logs and their fields, for tables of certain events and for reports.

mod slots;
mod collected;
mod records;
mod places;
mod columns;
mod collector;

pub use collected::{CollectedEvent, CollectedEvents, CollectedField, FieldLayout};
pub use collector::EventCollector;
pub use places::{PlaceReader, PlaceValues};
pub use slots::{Slots, SlotsError, TooManyEvents};
