//! The engine: which of many rules an event matches, at the speed of a scan.
//!
//! [`RuleSet`] has rules, each with the events that it is for. Events come in **kinds**: all events of a kind have the
//! same fields in the same order, and some fields have the same text in all of them, such as the channel.
//! [`RuleSet::kind`] finds once what a kind can match, mostly nothing or little. [`Matching::matches`] then asks for the
//! texts of one event, those only that its rules look at, and says which rules it matches. What it says of a rule is
//! always what [`Rule::matches`](crate::Rule::matches) says, for the first alternative of its log source that takes the
//! event and that the rule matches with.
//!
//! A field can come several times in a kind, as `Data` does: then these are the values of one field. The index of a
//! value in the list of a kind's fields is its **slot**.

mod values;
mod necessary;
mod atoms;
mod formula;
mod size;
mod automaton;
mod set;
mod witness;
mod program;
mod fold;
mod kinds;
mod texts;
mod matching;

pub use fold::Kind;
pub use kinds::Kinds;
pub use matching::{Match, Matching};
pub use set::{RuleForEvents, RuleSet, RuleSetBuilder};
pub use values::{Found, Values};
