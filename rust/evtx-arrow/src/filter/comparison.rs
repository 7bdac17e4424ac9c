//! The comparisons of a value with a constant, in one list.

use std::cmp::Ordering;

/// When a comparison holds.
pub(super) enum Test {
    /// By the order of the value relative to the constant. The function says which orders make it hold.
    Order(fn(Ordering) -> bool),
    /// By the bytes of two texts, the value and the constant, in UTF-8. Other types are not compared in this way.
    Text(fn(&[u8], &[u8]) -> bool),
}

/// Makes [`Comparison`] of a list of entries:
///
/// - its doc comment and its name;
/// - the operator and the functions by which SQL calls it;
/// - the comparison that says the same with the two sides exchanged, if there is one;
/// - when it holds, as a [`Test`].
macro_rules! comparisons {
    ($($(#[$about:meta])* $name:ident [$($sql:literal),+] $exchanged:expr, $test:expr;)+) => {
        /// How a value is compared with a constant.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Comparison {
            $($(#[$about])* $name,)+
        }

        impl Comparison {
            /// The comparison that an operator or a function of SQL is; `None` for others. `sql` is the name, with its
            /// case.
            pub fn named(sql: &str) -> Option<Self> {
                match sql {
                    $($($sql)|+ => Some(Comparison::$name),)+
                    _ => None,
                }
            }

            /// The comparison that says the same with the two sides exchanged: `a < b` is `b > a`. `None` if there is
            /// none.
            pub(super) fn exchanged(self) -> Option<Self> {
                use Comparison::*;
                match self {
                    $($name => $exchanged,)+
                }
            }

            /// When the comparison holds.
            #[inline(always)]
            pub(super) fn test(self) -> Test {
                match self {
                    $(Comparison::$name => $test,)+
                }
            }
        }
    };
}

comparisons! {
    /// The value equals the constant.
    Equal ["="] Some(Equal), Test::Order(Ordering::is_eq);
    /// The value differs from the constant.
    NotEqual ["<>"] Some(NotEqual), Test::Order(Ordering::is_ne);
    /// The value is less.
    Less ["<"] Some(Greater), Test::Order(Ordering::is_lt);
    /// The value is not greater.
    LessOrEqual ["<="] Some(GreaterOrEqual), Test::Order(Ordering::is_le);
    /// The value is greater.
    Greater [">"] Some(Less), Test::Order(Ordering::is_gt);
    /// The value is not less.
    GreaterOrEqual [">="] Some(LessOrEqual), Test::Order(Ordering::is_ge);
    /// The text starts with the constant. DuckDB makes this or one of the next two of a LIKE that says no more.
    Prefix ["prefix", "starts_with", "^@"] None, Test::Text(|text, start| text.starts_with(start));
    /// The text ends with the constant.
    Suffix ["suffix", "ends_with"] None, Test::Text(|text, end| text.ends_with(end));
    /// The constant is in the text.
    Contains ["contains"] None, Test::Text(|text, part| memchr::memmem::find(text, part).is_some());
}

impl Comparison {
    /// Whether it compares texts only.
    pub(super) fn is_of_text(self) -> bool {
        matches!(self.test(), Test::Text(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_names_a_comparison_by_its_operator_or_function() {
        assert_eq!(Comparison::named(">="), Some(Comparison::GreaterOrEqual));
        assert_eq!(Comparison::named("^@"), Some(Comparison::Prefix));
        assert_eq!(Comparison::named("~~"), None);
    }
}
