//! Sigma rules: from YAML to a tree of matchers, over any source of the text of fields.
//!
//! A Sigma rule says in YAML what an event looks like that somebody should see. It has **detections**, each with a
//! name, and a **condition** over their names. A detection is a list of alternatives; each of them is a list of
//! **items** that all have to be true. An item names a field, and what the text of the field is compared with:
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
//! [`load_rules`] makes a [`Rule`] of that. What modifiers (`endswith`, `windash`) do to values is done then, once. So
//! an item of a rule is a field and a list of [`Matcher`]s, of which one has to be true: here `CommandLine` with five
//! needles, one for each dash. Nothing in a rule changes after that, and all of it is public, so that an index can be
//! made of the needles of many rules.
//!
//! [`Rule::matches`] evaluates a rule on an [`Event`], which is what gives the text of a field. The crate knows neither
//! logs nor engines. Which events a rule is for, says its [`LogSource`]; [`LogSources`] is the table that makes
//! channels and event IDs of it.
//!
//! To ask many rules about many events, [`RuleSet`] and [`Matching`] say the same as each rule alone would, but look only
//! at rules that can match.
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
//! `docs/sigma.md` says what this crate does where the specification leaves a choice.

mod error;
mod limits;
mod stop;
mod number;
mod case;
mod yaml;
mod pattern;
mod event;
mod expression;
mod matcher;
mod encoding;
mod placeholders;
mod modifiers;
mod item;
mod condition;
mod rule;
mod evaluate;
mod logsource;
mod engine;

pub use case::{fold, fold_char};
pub use condition::Condition;
pub use engine::{Found, Kind, Kinds, Match, Matching, RuleForEvents, RuleSet, RuleSetBuilder, Values};
pub use error::{LoadError, Position, Problem};
pub use evaluate::Matched;
pub use event::{Event, SYSTEM_CHANNEL};
pub use expression::Expression;
pub use item::Item;
pub use limits::Limits;
pub use logsource::{Alternative, LogSources, Renamed};
pub use matcher::{Comparison, DatePart, Matcher, Place};
pub use number::Number;
pub use pattern::{Pattern, Piece};
pub use placeholders::Placeholders;
pub use rule::{Detection, Level, LogSource, Refused, Rule, Status, load_rules, load_rules_until};
pub use stop::Stopped;
