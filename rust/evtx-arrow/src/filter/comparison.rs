//! How a value is compared with a constant: the one list of comparisons.

use std::cmp::Ordering;

/// When a comparison holds.
pub(super) enum Test {
    /// By the order of the value and the constant.
    Order(fn(Ordering) -> bool),
    /// By the bytes of the value's text and the constant's. Values of other types are not compared so.
    Text(fn(&[u8], &[u8]) -> bool),
}

/// Makes [`Comparison`] of a list of entries:
///
/// - what it is, its name;
/// - the names of the operator and the functions that SQL has for it;
/// - the comparison that is left when its sides are exchanged, if there is one;
/// - when it holds.
macro_rules! comparisons {
    ($($(#[$about:meta])* $name:ident [$($sql:literal),+] $exchanged:expr, $test:expr;)+) => {
        /// How a value is compared with a constant.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Comparison {
            $($(#[$about])* $name,)+
        }

        impl Comparison {
            /// The comparison that an operator or a function of SQL makes.
            pub fn named(sql: &str) -> Option<Self> {
                match sql {
                    $($($sql)|+ => Some(Comparison::$name),)+
                    _ => None,
                }
            }

            /// What is left of the comparison when its sides are exchanged, if it can be told of them.
            pub(super) fn exchanged(self) -> Option<Self> {
                use Comparison::*;
                match self {
                    $($name => $exchanged,)+
                }
            }

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
    /// The two are the same.
    Equal ["="] Some(Equal), Test::Order(Ordering::is_eq);
    /// The two differ.
    NotEqual ["<>"] Some(NotEqual), Test::Order(Ordering::is_ne);
    /// The value is less.
    Less ["<"] Some(Greater), Test::Order(Ordering::is_lt);
    /// The value is not greater.
    LessOrEqual ["<="] Some(GreaterOrEqual), Test::Order(Ordering::is_le);
    /// The value is greater.
    Greater [">"] Some(Less), Test::Order(Ordering::is_gt);
    /// The value is not less.
    GreaterOrEqual [">="] Some(LessOrEqual), Test::Order(Ordering::is_ge);
    /// The text starts with the constant. DuckDB makes it of LIKE where the pattern is so plain, as the next two.
    Prefix ["prefix", "starts_with", "^@"] None, Test::Text(|text, start| text.starts_with(start));
    /// The text ends with the constant.
    Suffix ["suffix", "ends_with"] None, Test::Text(|text, end| text.ends_with(end));
    /// The constant is in the text.
    Contains ["contains"] None, Test::Text(|text, part| memchr::memmem::find(text, part).is_some());
}

impl Comparison {
    /// Whether only texts are compared so.
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
