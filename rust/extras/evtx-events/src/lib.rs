//! The events of logs and their fields, for tables of certain events and for reports.
//!
//! A table of certain events has a column for each of their fields. Which fields there are is found out before the scan: in
//! the logs, and in the catalog of what Windows' providers declare.
#![forbid(unsafe_code)]

mod order;
mod accounts;
mod names;
mod record_names;
mod clock;
mod stamp;
mod told_names;
mod places;
mod machines;
mod hours;
mod sessions;
mod unify;
mod slots;
mod collected;
mod columns;
mod collector;
mod sample;
mod settings;
mod advice;
mod sent;

pub use accounts::{AccountName, Evidence, NameUse, account_names};
pub use advice::advice;
pub use collected::{CollectedEvent, CollectedEvents, CollectedField, FieldLayout, push_key};
pub use collector::EventCollector;
pub use hours::{HourEnd, LogHour, LogHours};
pub use machines::{ComputerName, machines};
pub use names::{Account, AccountNames, sid_name};
pub use order::{last, least, sort};
pub use places::{LogRecord, Place, places};
pub use record_names::{NAME_EVENTS, NAME_PROVIDERS};
pub use sample::SampleSize;
pub use sent::{EventFieldTuple, from_tuple, to_tuple};
pub use sessions::{Connection, LogonEvent, LogonSession, Moment, logon_sessions};
pub use settings::{EventSettings, OF_CERTAIN_EVENTS, Planned};
pub use slots::{Slots, SlotsError, TooManyEvents};
pub use stamp::{Columns, Stamp, is_guest_tool};
pub use told_names::{RecordNames, Text, ToldName};
pub use unify::column_field;
