//! The comparisons of a value with a constant.

use std::cmp::Ordering;

/// How a value is compared with a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// The value equals the constant.
    Equal,
    /// The value differs from the constant.
    NotEqual,
    /// The value is less.
    Less,
    /// The value is less or equal.
    LessOrEqual,
    /// The value is greater.
    Greater,
    /// The value is greater or equal.
    GreaterOrEqual,
    /// The text starts with the constant.
    Prefix,
    /// The text ends with the constant.
    Suffix,
    /// The text contains the constant.
    Contains,
}

/// When a comparison holds.
pub(super) enum Test {
    /// By the order of the value relative to the constant.
    Order(fn(Ordering) -> bool),
    /// By two texts in UTF-8: the value and the constant.
    Text(fn(&[u8], &[u8]) -> bool),
}

impl Comparison {
    /// The comparison with its two sides exchanged: `a < b` becomes `b > a`. `None` for comparisons of texts.
    pub(super) fn exchanged(self) -> Option<Self> {
        use Comparison::*;
        match self {
            Equal | NotEqual => Some(self),
            Less => Some(Greater),
            LessOrEqual => Some(GreaterOrEqual),
            Greater => Some(Less),
            GreaterOrEqual => Some(LessOrEqual),
            Prefix | Suffix | Contains => None,
        }
    }

    /// When the comparison holds.
    #[inline(always)]
    pub(super) fn test(self) -> Test {
        match self {
            Comparison::Equal => Test::Order(Ordering::is_eq),
            Comparison::NotEqual => Test::Order(Ordering::is_ne),
            Comparison::Less => Test::Order(Ordering::is_lt),
            Comparison::LessOrEqual => Test::Order(Ordering::is_le),
            Comparison::Greater => Test::Order(Ordering::is_gt),
            Comparison::GreaterOrEqual => Test::Order(Ordering::is_ge),
            Comparison::Prefix => Test::Text(|text, start| text.starts_with(start)),
            Comparison::Suffix => Test::Text(|text, end| text.ends_with(end)),
            Comparison::Contains => Test::Text(|text, part| memchr::memmem::find(text, part).is_some()),
        }
    }

    /// Whether it compares texts only.
    pub(super) fn is_of_text(self) -> bool {
        matches!(self.test(), Test::Text(_))
    }
}
