//! Tests of single values.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::cmp::Ordering;
use std::net::IpAddr;

use evtx_format::Interrupt;
use evtx_format::case::fold;
use ipnet::IpNet;
use jiff::civil::Time;
use jiff::fmt::temporal::Pieces;

use crate::event::{Event, break_if};
use crate::expression::Expression;
use crate::number::Number;
use crate::pattern::{Anchor, Pattern};

/// A test of one value of a field, with all modifiers applied.
#[derive(Debug, Clone)]
pub enum Matcher {
    /// The text matches a pattern.
    Text {
        /// The pattern. Unless `cased`, its needles are folded.
        pattern: Pattern,
        /// Whether case matters. If not, the text of the event is folded too.
        cased: bool,
    },
    /// The regular expression is found in the text. Case matters, unless it has the flag `i`.
    Regex(Expression),
    /// The text is an address in this network.
    Network(IpNet),
    /// The text is, or contains, that of another field of the event.
    FieldReference {
        /// The name of the other field.
        field: Box<str>,
        /// Where the text of the other field must be.
        anchor: Anchor,
        /// Whether case matters.
        cased: bool,
    },
    /// The text is a number, or a date with this part, which compares like this.
    Number {
        /// The part of a date. `None` for a number.
        part: Option<DatePart>,
        /// How the event's number must compare with the rule's.
        comparison: Comparison,
        /// The rule's number.
        number: Number,
    },
    /// The event has the field, even if it is NULL; or lacks it, if this is false.
    Exists(bool),
    /// The event lacks the field, or a value of it is NULL.
    Null,
}

/// How a number of an event, or of a window of a correlation, compares with one of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names say it
pub enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

/// A part of a date, as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DatePart {
    /// 0 to 59.
    Minute,
    /// 0 to 23.
    Hour,
    /// The day of the month, 1 to 31.
    Day,
    /// The week of ISO 8601, 1 to 53.
    Week,
    /// 1 to 12.
    Month,
    /// The year.
    Year,
}

/// The longest text that is tested without a check for an interrupt, in bytes.
const SHORT: usize = 1 << 12;

impl Matcher {
    /// Whether a text of an event matches. `false` after an interrupt.
    pub(crate) fn matches(&self, text: &Subject<'_>, event: &dyn Event, interrupt: Interrupt<'_>) -> bool {
        // Testing a short text is faster than asking. But another field can have many values.
        let is_long = text.as_is.len() > SHORT || matches!(self, Matcher::FieldReference { .. });
        if is_long && interrupt.check().is_err() {
            return false;
        }
        match self {
            Matcher::Text { pattern, cased: true } => pattern.matches(text.as_is, interrupt),
            Matcher::Text { pattern, cased: false } => pattern.matches(text.folded(), interrupt),
            Matcher::Regex(expression) => expression.find(text.as_is, interrupt).unwrap_or(false),
            Matcher::Network(network) => has_address(network, text.as_is),
            Matcher::FieldReference { field, anchor, cased } => {
                let mut is_match = false;
                event.values(field, &mut |other| {
                    is_match = other.is_some_and(|other| {
                        if *cased {
                            anchor.holds(text.as_is, other)
                        } else {
                            anchor.holds(text.folded(), &fold(other))
                        }
                    });
                    break_if(is_match)
                });
                is_match
            }
            Matcher::Number {
                part,
                comparison,
                number,
            } => {
                let value = match part {
                    None => Number::from_text(text.as_is),
                    Some(part) => part.of(text.as_is).map(Number::Integer),
                };
                value.is_some_and(|value| comparison.holds(value.partial_cmp(number)))
            }
            // These are about the field, not a text.
            Matcher::Exists(_) | Matcher::Null => false,
        }
    }

    /// Where to look in a text that matches, as a byte offset: at the first needle of a pattern, or where the match of
    /// an expression ends. 0 if the whole text counts.
    pub(crate) fn place_in(&self, text: &Subject<'_>, interrupt: Interrupt<'_>) -> usize {
        match self {
            Matcher::Text { pattern, cased: true } => pattern.place_in(text.as_is),
            Matcher::Text { pattern, cased: false } => {
                // Folding maps one character to one.
                let folded = text.folded();
                let characters = folded[..pattern.place_in(folded)].chars().count();
                text.as_is
                    .char_indices()
                    .nth(characters)
                    .map_or(0, |(offset, _)| offset)
            }
            Matcher::Regex(expression) => expression
                .find_end(text.as_is, interrupt)
                .ok()
                .flatten()
                .flatten()
                .unwrap_or(0),
            _ => 0,
        }
    }
}

/// A text of an event, folded when that is first needed.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    as_is: &'a str,
    folded: OnceCell<Cow<'a, str>>,
}

impl<'a> Subject<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Subject {
            as_is: text,
            folded: OnceCell::new(),
        }
    }

    /// A text whose folded text is known.
    pub(crate) fn folded_as(text: &'a str, folded: &'a str) -> Self {
        Subject {
            as_is: text,
            folded: Cow::Borrowed(folded).into(),
        }
    }

    fn folded(&self) -> &str {
        self.folded.get_or_init(|| fold(self.as_is))
    }
}

impl Comparison {
    /// All comparisons, with their names in correlation rules and their signs in Sigma 1.
    pub(crate) const ALL: [(Comparison, &str, &str); 6] = [
        (Comparison::Greater, "gt", ">"),
        (Comparison::GreaterOrEqual, "gte", ">="),
        (Comparison::Less, "lt", "<"),
        (Comparison::LessOrEqual, "lte", "<="),
        (Comparison::Equal, "eq", "="),
        (Comparison::NotEqual, "neq", "!="),
    ];

    /// Whether numbers in this order compare so. Those without an order do not.
    pub(crate) fn holds(self, ordering: Option<Ordering>) -> bool {
        ordering.is_some_and(|ordering| match self {
            Comparison::Less => ordering.is_lt(),
            Comparison::LessOrEqual => ordering.is_le(),
            Comparison::Equal => ordering.is_eq(),
            Comparison::NotEqual => ordering.is_ne(),
            Comparison::GreaterOrEqual => ordering.is_ge(),
            Comparison::Greater => ordering.is_gt(),
        })
    }
}

impl DatePart {
    /// This part of an ISO 8601 date as written: a time after `T` or a space, and an offset, may follow.
    fn of(self, text: &str) -> Option<i128> {
        let pieces = Pieces::parse(text).ok()?;
        let (date, time) = (pieces.date(), pieces.time());
        Some(match self {
            DatePart::Minute => time.map(Time::minute)?.into(),
            DatePart::Hour => time.map(Time::hour)?.into(),
            DatePart::Day => date.day().into(),
            DatePart::Week => date.iso_week_date().week().into(),
            DatePart::Month => date.month().into(),
            DatePart::Year => date.year().into(),
        })
    }
}

/// Whether a text is an address in a network. `::ffff:10.0.0.1` is in networks of both versions, a zone is ignored.
fn has_address(network: &IpNet, text: &str) -> bool {
    let address = text.split_once('%').map_or(text, |(address, _)| address);
    address
        .parse::<IpAddr>()
        .is_ok_and(|address| network.contains(&address) || network.contains(&address.to_canonical()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_parts_of_dates_as_written() {
        use DatePart::*;
        let parts = |text: &str| [Year, Month, Week, Day, Hour, Minute].map(|part| part.of(text));
        let all = |numbers: [i128; 6]| numbers.map(Some);
        assert_eq!(parts("2024-12-30 23:05:59.123"), all([2024, 12, 1, 30, 23, 5]));
        assert_eq!(parts("2024-12-30T23:05:59.1234567Z"), all([2024, 12, 1, 30, 23, 5]));
        assert_eq!(parts("2024-02-29T23:05:59-11:00"), all([2024, 2, 9, 29, 23, 5]));
        assert_eq!(
            parts("2024-02-29"),
            [Some(2024), Some(2), Some(9), Some(29), None, None]
        );
        assert_eq!(parts("2024-02-30"), [None; 6]);
        assert_eq!(parts("yesterday"), [None; 6]);
    }

    #[test]
    fn knows_addresses_of_networks() {
        let network = |text: &str| text.parse::<IpNet>().expect(text);
        assert!(has_address(&network("10.0.0.0/8"), "10.1.2.3"));
        assert!(has_address(&network("10.0.0.0/8"), "::ffff:10.1.2.3"));
        assert!(has_address(&network("::ffff:0:0/96"), "::ffff:10.1.2.3"));
        assert!(has_address(&network("fe80::/10"), "fe80::1%12"));
        assert!(!has_address(&network("10.0.0.0/8"), "11.1.2.3"));
        assert!(!has_address(&network("0.0.0.0/0"), "::1"));
        assert!(!has_address(&network("0.0.0.0/0"), "10.1.2"));
        assert!(!has_address(&network("0.0.0.0/0"), " 10.1.2.3"));
    }
}
