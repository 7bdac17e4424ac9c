//! The comparisons of a value with a constant.

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

    /// Whether it compares texts only.
    pub(super) fn is_of_text(self) -> bool {
        self.exchanged().is_none()
    }
}
