//! The engine: which of many rules an event matches, at the speed of a scan.
//!
//! A [`RuleSet`] has rules, each with the events that it is for. Events come in **kinds**. All events of a kind have the
//! same fields in the same order, and some fields have the same text in all of them, such as the channel.
//! [`RuleSet::kind`] finds once what a kind can match, which is usually little or nothing. [`Matching::matches`] then
//! decodes only the texts of an event that its rules ask for. The result for a rule is always that of
//! [`Rule::matches`](crate::Rule::matches), for the first alternative of its log source that takes the event and with
//! which the rule matches.
//!
//! A field can occur several times in a kind, as `Data` does: these are the values of one field. The index of a value
//! among the fields of a kind is its **slot**.

mod bits;
mod values;
mod atoms;
mod formula;
mod size;
mod automaton;
mod set;
mod witness;
mod fold;
mod kinds;
mod texts;
mod matching;

pub use fold::EventKind;
pub use kinds::EventKinds;
pub use matching::{Match, Matching};
pub use set::{RuleForEvents, RuleSet, RuleSetBuilder};
pub use values::{Presence, Values};
