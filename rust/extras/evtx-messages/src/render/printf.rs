//! The formats of `printf` in old tables of messages, as in `%1!08x!`.
//!
//! The values of such events are stored as text. A conversion of numbers applies if the text is a number.

use crate::insertion::number_of_text;
use crate::template::number;

/// The width and the precision of a format, at most. *(choice)*
const MAX_WIDTH: usize = 1024;

/// The value in a format; `None` if the format does not change it.
pub(super) fn formatted(value: &str, format: &str) -> Option<String> {
    let bytes = format.as_bytes();
    let conversion = *bytes.last()?;
    let flags = bytes.iter().take_while(|byte| b"-+ #0".contains(byte)).count();
    let has = |flag: u8| bytes[..flags].contains(&flag);
    let (width, len) = number(&bytes[flags..]);
    let width = width.map_or(0, |width| (width as usize).min(MAX_WIDTH));
    let precision = match &bytes[flags + len..] {
        [b'.', rest @ ..] => Some(
            number(rest)
                .0
                .map_or(0, |precision| (precision as usize).min(MAX_WIDTH)),
        ),
        _ => None,
    };
    let shown = match conversion {
        b's' | b'S' | b'c' | b'C' => value.chars().take(precision.unwrap_or(usize::MAX)).collect(),
        _ => converted(value, conversion, has(b'#'), precision.unwrap_or(0))?,
    };
    let missing = width.saturating_sub(shown.chars().count());
    let numeric = !matches!(conversion, b's' | b'S' | b'c' | b'C');
    let padded = if has(b'-') {
        shown + &" ".repeat(missing)
    } else if has(b'0') && numeric && precision.is_none() {
        let (sign, digits) = shown.split_at(usize::from(shown.starts_with('-')));
        format!("{sign}{}{digits}", "0".repeat(missing))
    } else {
        " ".repeat(missing) + &shown
    };
    (padded != value).then_some(padded)
}

/// The number of a text in a conversion; `None` if the text is not a number or the conversion not one of integers.
fn converted(value: &str, conversion: u8, alternate: bool, digits: usize) -> Option<String> {
    let (negative, magnitude) = match value.strip_prefix('-') {
        Some(rest) => (true, number_of_text(rest)?),
        None => (false, number_of_text(value)?),
    };
    // As the 64 bits of the number.
    let bits = if negative { magnitude.wrapping_neg() } else { magnitude };
    Some(match conversion {
        b'd' | b'i' | b'u' => format!("{}{magnitude:0digits$}", if negative { "-" } else { "" }),
        b'x' => format!("{}{bits:0digits$x}", if alternate { "0x" } else { "" }),
        b'X' => format!("{}{bits:0digits$X}", if alternate { "0X" } else { "" }),
        b'o' => format!("{bits:0digits$o}"),
        b'p' => format!("{bits:016X}"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_apply_to_text_and_numbers() {
        for (value, format, expected) in [
            ("text", "s", "text"),
            ("text", "S", "text"),
            ("text", "ws", "text"),
            ("text", "6s", "  text"),
            ("text", "-6s", "text  "),
            ("text", ".2s", "te"),
            ("255", "d", "255"),
            ("255", "x", "ff"),
            ("255", "08lx", "000000ff"),
            ("255", "08X", "000000FF"),
            ("255", "#x", "0xff"),
            ("0xff", "u", "255"),
            ("-5", "04d", "-005"),
            ("7", ".3d", "007"),
            ("8", "o", "10"),
            ("text", "08x", "text"),
            ("5", "*d", "5"),
            ("5", "f", "5"),
        ] {
            assert_eq!(
                formatted(value, format).as_deref().unwrap_or(value),
                expected,
                "{value} in {format}"
            );
        }
        assert_eq!(formatted("1", "99999999d").map(|text| text.len()), Some(MAX_WIDTH));
    }
}
