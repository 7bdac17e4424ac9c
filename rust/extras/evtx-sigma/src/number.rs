//! Numbers of rules, and of the texts of fields.

use std::cmp::Ordering;
use std::fmt;

/// A number of a rule or of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Number {
    /// A whole number.
    Integer(i128),
    /// A number with a fraction or exponent, with its text.
    Real(f64, Box<str>),
}

impl Number {
    /// Reads a plain scalar of YAML: `10`, `+1`, `0x1F`, `0o17`, `1.5`, `1e3` (YAML 1.2.2, section 10.3.2). Integers of
    /// more than 128 bits are real numbers.
    pub(crate) fn from_yaml(text: &str) -> Option<Number> {
        if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
            return None;
        }
        let radix = |prefix, radix| Some((text.strip_prefix(prefix)?, radix));
        if let Some((digits, radix)) = radix("0x", 16).or_else(|| radix("0o", 8)) {
            let is_unsigned = digits.starts_with(|c: char| c.is_digit(radix));
            return is_unsigned.then(|| i128::from_str_radix(digits, radix).ok().map(Number::Integer))?;
        }
        if let Ok(integer) = text.parse() {
            return Some(Number::Integer(integer));
        }
        // Unlike YAML, Rust also reads `inf`, `infinity` and `nan`.
        let has_digits = text.bytes().any(|byte| byte.is_ascii_digit());
        let real = text.parse().ok().filter(|_| has_digits)?;
        Some(Number::Real(real, text.into()))
    }

    /// Reads the text of a field: as in YAML, decimal or with `0x`.
    pub fn from_text(text: &str) -> Option<Number> {
        (!text.starts_with("0o")).then(|| Number::from_yaml(text))?
    }
}

/// Integers in decimal digits, without `+` and leading zeros; real numbers as they are written.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Integer(integer) => integer.fmt(f),
            Number::Real(_, text) => f.write_str(text),
        }
    }
}

impl PartialOrd for Number {
    /// Two integers compare exactly, others as 64-bit floating point numbers.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let real = |number: &Number| match number {
            Number::Integer(integer) => *integer as f64,
            Number::Real(real, _) => *real,
        };
        match (self, other) {
            (Number::Integer(a), Number::Integer(b)) => Some(a.cmp(b)),
            _ => real(self).partial_cmp(&real(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_yaml_has() {
        for (text, shown) in [
            ("4688", "4688"),
            ("-1", "-1"),
            ("+007", "7"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("1.50", "1.50"),
            ("1e3", "1e3"),
            (".5", ".5"),
            ("18446744073709551615", "18446744073709551615"),
        ] {
            assert_eq!(Number::from_yaml(text).expect(text).to_string(), shown);
        }
        let huge = "9".repeat(42);
        assert_eq!(Number::from_yaml(&huge), Some(Number::Real(1e42, huge.into())));
        let no_numbers = "- +-1 0x 0x-1 0x+1 1.2.3 10.0.0.1 e3 . nan inf -infinity 1_000";
        for text in no_numbers.split(' ').chain(["", " 1"]) {
            assert_eq!(Number::from_yaml(text), None, "{text}");
        }
    }

    #[test]
    fn compares_integers_exactly() {
        let number = |text| Number::from_text(text).expect(text);
        assert!(number("9007199254740993") > number("9007199254740992"));
        assert!(number("0x10") == number("16"));
        assert!(number("1.5") < number("2"));
        assert!(number("-3") < number("0xffffffffffffffff"));
        assert_eq!(Number::from_text("0o17"), None);
    }
}
