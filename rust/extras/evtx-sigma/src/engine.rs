//! The engine: which of many rules an event matches, at the speed of a scan.
//!
//! Events come in **kinds**: those with the same fields in the same order, and the same text in some of them, such as
//! the channel. [`RuleSet::kind`] finds once what a kind can match, usually little or nothing. [`Matching::matches`] then
//! decodes only the texts that its rules ask for. It finds what [`Rule::matches`](crate::Rule::matches) finds.
//!
//! The index of a value among the fields of a kind is its **slot**. A field with several values, such as `Data`, has
//! several slots.

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
pub use kinds::{EventKinds, KindCache};
pub use matching::{Match, Matching};
pub use set::{RuleForEvents, RuleSet, RuleSetBuilder};
pub use values::{Presence, Values};
