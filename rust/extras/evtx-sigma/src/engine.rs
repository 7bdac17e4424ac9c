//! The engine: which of many rules an event matches, at the speed of a scan.
//!
//! Events come in **classes**: those with the same fields in the same order, and the same text in some of them, such as
//! the channel. [`RuleSet::class`] finds once what a class can match, usually little or nothing. [`Matching::matches`]
//! then decodes only the texts that its rules ask for. It finds what [`Rule::matches`](crate::Rule::matches) finds.
//!
//! The index of a value among the fields of a class is its **slot**. A field with several values, such as `Data`, has
//! several slots.

mod bits;
mod values;
mod atoms;
mod formula;
mod size;
mod automaton;
mod set;
mod triggers;
mod fold;
mod classes;
mod texts;
mod matching;

pub use classes::{ClassCache, EventClasses};
pub use fold::EventClass;
pub use matching::{Match, Matching};
pub use set::{RuleForEvents, RuleSet, RuleSetBuilder};
pub use values::{Presence, Values};
