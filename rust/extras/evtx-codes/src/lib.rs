//! What the codes in Windows events mean: status codes, access masks, SIDs, GUIDs and others, and what the fields of events are.
//!
//! Each kind of code has a table, a file of the folder `codes`. [`Lookup`] finds the table by its name and answers. The file
//! `events.tsv` lists events, and [`RolesReader`] reads who, from where, with which program and about what by it.
//! The file `logons.tsv` lists those of logon sessions, which [`LogonStep`] reads.

mod named;
mod code;
mod host;
mod events;
mod logons;
mod table;
mod text;
mod base64;
mod encoded;
mod lookup;
mod details;
mod user_data;
mod roles;

pub use code::Code;
pub use encoded::{DecodedText, decoded_texts};
pub use events::{Event, LEVELS, TOPICS, events_of_topics, providers};
pub use host::{Machine, Writer, is_own_name, remote_host};
pub use logons::{LogonAct, LogonKind, LogonStep, logon_events};
pub use lookup::{Answer, Lookup, Source, code_name};
pub use roles::{NOBODY, Roles, RolesReader};
pub use table::tables;
pub use user_data::UserData;
