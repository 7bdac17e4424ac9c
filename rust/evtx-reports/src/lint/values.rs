//! Which values a field of a type can have.

use evtx_format::value::{Scalar, ValueType};
use evtx_sigma::{Comparison, Matcher, Number, Pattern, Place};

/// Whether a field of this type can have a value that a matcher of a rule accepts. `true` if that is not known.
pub(crate) fn can_match(of: ValueType, matcher: &Matcher) -> bool {
    if of.array {
        return true;
    }
    match matcher {
        Matcher::Text { pattern, .. } => can_have(of.scalar, pattern),
        Matcher::Number {
            part: None,
            comparison,
            number: Number::Integer(number),
        } => match range(of.scalar) {
            Some((least, most)) => match comparison {
                Comparison::Less => *number > least,
                Comparison::LessOrEqual => *number >= least,
                Comparison::Equal => (least..=most).contains(number),
                Comparison::GreaterOrEqual => *number <= most,
                Comparison::Greater => *number < most,
            },
            None => of.scalar != Scalar::Guid,
        },
        _ => true,
    }
}

/// The least and the greatest number of a type.
fn range(of: Scalar) -> Option<(i128, i128)> {
    Some(match of {
        Scalar::Int8 => (i8::MIN.into(), i8::MAX.into()),
        Scalar::Int16 => (i16::MIN.into(), i16::MAX.into()),
        Scalar::Int32 => (i32::MIN.into(), i32::MAX.into()),
        Scalar::Int64 => (i64::MIN.into(), i64::MAX.into()),
        Scalar::UInt8 => (0, u8::MAX.into()),
        Scalar::UInt16 => (0, u16::MAX.into()),
        Scalar::UInt32 | Scalar::HexInt32 => (0, u32::MAX.into()),
        Scalar::UInt64 | Scalar::HexInt64 => (0, u64::MAX.into()),
        _ => return None,
    })
}

fn can_have(of: Scalar, pattern: &Pattern) -> bool {
    let is_possible: fn(char) -> bool = match of {
        Scalar::UInt8 | Scalar::UInt16 | Scalar::UInt32 | Scalar::UInt64 => |c| c.is_ascii_digit(),
        Scalar::Int8 | Scalar::Int16 | Scalar::Int32 | Scalar::Int64 => |c| c.is_ascii_digit() || c == '-',
        Scalar::HexInt32 | Scalar::HexInt64 => |c| c.is_ascii_hexdigit() || "xX".contains(c),
        Scalar::Guid => |c| c.is_ascii_hexdigit() || "-{}".contains(c),
        // A value that is neither 0 nor 1 is shown as a number.
        Scalar::Bool => |c| "aeflrstuAEFLRSTU-".contains(c) || c.is_ascii_digit(),
        _ => return true,
    };
    if !pattern.needles().all(|needle| needle.chars().all(is_possible)) {
        return false;
    }
    match pattern {
        Pattern::Needle(Place::Whole, text) if !text.is_empty() => is_value(of, text),
        _ => true,
    }
}

/// Whether a text of possible characters is a value.
fn is_value(of: Scalar, text: &str) -> bool {
    match (of, range(of)) {
        (Scalar::HexInt32 | Scalar::HexInt64, Some((_, most))) => {
            let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
            let number = digits.and_then(|digits| i128::from_str_radix(digits, 16).ok());
            number.is_some_and(|number| number <= most)
        }
        (_, Some((least, most))) => {
            // Such as 7, but not 007.
            let number = text.parse::<i128>().ok().filter(|number| number.to_string() == text);
            number.is_some_and(|number| (least..=most).contains(&number))
        }
        (Scalar::Bool, _) => match text.parse::<i128>() {
            Ok(number) => ![0, 1].contains(&number),
            Err(_) => ["true", "false"].iter().any(|value| value.eq_ignore_ascii_case(text)),
        },
        (Scalar::Guid, _) => {
            let form = "{xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx}";
            let is_one = |(form, found): (char, char)| match form {
                'x' => found.is_ascii_hexdigit(),
                form => form == found,
            };
            text.len() == form.len() && form.chars().zip(text.chars()).all(is_one)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use evtx_sigma::{Placeholders, load_rules};

    use super::*;

    fn can(of: Scalar, item: &str) -> bool {
        let text = format!("title: t\nlogsource: {{service: s}}\ndetection: {{s: {{{item}}}, condition: s}}");
        let rule = load_rules(&text, &Placeholders::new()).remove(0).expect("a rule");
        let array = false;
        let of = ValueType { scalar: of, array };
        let matchers: Vec<_> = rule.items().flat_map(|item| item.any.iter()).collect();
        matchers.into_iter().any(|matcher| can_match(of, matcher))
    }

    #[test]
    fn knows_the_texts_of_types() {
        let guid = "'{0123ABCD-0123-0123-0123-0123456789AB}'";
        for (of, possible, impossible) in [
            (
                Scalar::UInt32,
                &[
                    "F: 3",
                    "F: 4294967295",
                    "F|contains: 1",
                    "F: '1*'",
                    "F: ''",
                    "F: [x, 5]",
                    "F|lt: 1",
                    "F|gt: 4294967294",
                    "F|re: x",
                ][..],
                &[
                    "F: x",
                    "F: 4294967296",
                    "F: -1",
                    "F: '007'",
                    "F: '0x7'",
                    "F|contains: x",
                    "F: '1* '",
                    "F|lt: 0",
                    "F|gt: 4294967295",
                ][..],
            ),
            (
                Scalar::Int8,
                &["F: -128", "F|lte: -128"],
                &["F: 128", "F: 1-", "F|lt: -128"],
            ),
            (
                Scalar::HexInt32,
                &["F: '0x10'", "F|endswith: f", "F|gt: 5", "F|cased: '0xFFFFFFFF'"],
                &["F: 16", "F: '0x100000000'", "F: '%%1234'", "F|contains: g"],
            ),
            (
                Scalar::Guid,
                &[&format!("F: {guid}"), "F|contains: 0123abcd-"],
                &[
                    "F: 0123ABCD-0123-0123-0123-0123456789AB",
                    "F: '{0}'",
                    "F|gt: 1",
                    "F|contains: x",
                ],
            ),
            (
                Scalar::Bool,
                &["F: true", "F: 'False'", "F|contains: rue", "F: 5", "F|gt: 1"],
                &["F: 1", "F: yes", "F: rue"],
            ),
            (Scalar::String, &["F: x", "F|lt: 0", "F: ''"], &[]),
        ] {
            for item in possible {
                assert!(can(of, item), "{of:?} {item}");
            }
            for item in impossible {
                assert!(!can(of, item), "{of:?} {item}");
            }
        }
    }
}
