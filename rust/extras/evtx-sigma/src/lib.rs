//! Sigma rules: from YAML to matchers, for any source of events.
//!
//! A Sigma rule describes suspicious events in YAML. It has named **detections**, and a **condition** over their names. A
//! detection is a list of alternatives. Each alternative is a list of **items**, all of which must be true. An item names
//! a field and the values to compare its text with:
//!
//! ```yaml
//! title: A shell that was started by a service
//! logsource: {category: process_creation, product: windows}
//! detection:
//!   shell:                                  # a detection of one alternative, with two items
//!     Image|endswith: ['\cmd.exe', '\powershell.exe']
//!     ParentImage|endswith: '\services.exe'
//!   expected:
//!     CommandLine|contains|windash: ' -Update'
//!   condition: shell and not expected
//! level: high
//! ```
//!
//! [`load_rules`] loads a [`Rule`] and applies its modifiers (`endswith`, `windash`). The result is a field and a list of
//! [`Matcher`]s for each item, of which one must be true: here `CommandLine` with five needles, one for each dash.
//!
//! [`Rule::matches`] evaluates a rule on an [`Event`], a trait that provides the texts of fields. This crate knows neither
//! logs nor engines. A rule's [`LogSource`] says which events it is for; the table [`LogSources`] maps it to channels and
//! event IDs.
//!
//! For many rules and many events, [`RuleSet`] and [`Matching`] find the same matches, but evaluate only the rules that
//! can match.
//!
//! ```
//! use evtx_sigma::{Placeholders, load_rules};
//!
//! let text = r"
//! title: A shell
//! logsource: {category: process_creation, product: windows}
//! detection:
//!   shell:
//!     Image|endswith: '\cmd.exe'
//!   condition: shell
//! ";
//! let rules = load_rules(text, &Placeholders::new());
//! let rule = rules[0].as_ref().expect("a rule");
//! let event = [("Image", Some(r"C:\Windows\System32\CMD.EXE"))];
//! let matched = rule.matches(&event.as_slice()).expect("a match");
//! assert_eq!(matched.fields[0].0, "Image");
//! ```
//!
//! The language is that of the [Sigma specification](https://github.com/SigmaHQ/sigma-specification), version 2.1.0.
//! `docs/sigma.md` describes the choices that the specification leaves open.

mod error;
mod limits;
mod number;
mod yaml;
mod attack;
mod source;
mod pattern;
mod event;
mod expression;
mod matcher;
mod encoding;
mod placeholders;
mod modifiers;
mod item;
mod condition;
mod about;
mod rule;
mod filter;
pub mod correlation;
mod document;
mod excerpt;
mod evaluate;
mod logsource;
mod engine;

pub use about::{About, Level, Status};
pub use attack::{tactics, techniques};
pub use condition::Condition;
pub use correlation::{Burst, Correlation, Correlations, Hits};
pub use document::{Document, Refused, load_documents, load_rules};
pub use engine::{
    ClassCache, EventClass, EventClasses, Match, Matching, Presence, RuleForEvents, RuleSet, RuleSetBuilder, Values,
};
pub use error::{LoadError, Position, Problem};
pub use evaluate::Matched;
pub use event::{Event, SYSTEM_CHANNEL};
pub use expression::Expression;
pub use filter::Filter;
pub use item::Item;
pub use limits::Limits;
pub use logsource::{Alternative, LogSources, Renamed};
pub use matcher::{Comparison, DatePart, Matcher};
pub use number::Number;
pub use pattern::{Anchor, Pattern, Segment};
pub use placeholders::Placeholders;
pub use rule::{Detection, Rule};
pub use source::LogSource;
