//! Codes as events write them.

/// A code to look up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code<'a> {
    /// A number of 32 bits. Wider numbers count if their upper half only extends its sign.
    Number(i128),
    /// A text, which can also be a number: `0xc000006a`, `3221225578`, `-1073741718`, `%%2313`.
    Text(&'a str),
}

impl Code<'_> {
    /// The 32 bits of the number. A number of 64 bits has them if its upper half only extends their sign.
    pub(crate) fn number(self) -> Option<u32> {
        let wide = match self {
            Code::Number(number) => number,
            Code::Text(text) => i128::from(number(text)?),
        };
        let low = u32::try_from(wide & i128::from(u32::MAX)).ok()?;
        match wide >> 32 {
            0 => Some(low),
            -1 | 0xffff_ffff if low.cast_signed() < 0 => Some(low),
            _ => None,
        }
    }
}

fn number(text: &str) -> Option<i64> {
    let text = text.trim().trim_start_matches("%%");
    match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => u64::from_str_radix(&text[2..], 16).ok().map(u64::cast_signed),
        [b'-', ..] => text.parse().ok(),
        _ => text.parse().ok().map(u64::cast_signed),
    }
}

/// The code without its wrapping: `%%`, `{...}` or `%{...}`.
pub(crate) fn bare(code: &str) -> &str {
    let code = code.trim().trim_start_matches("%%");
    let inner = code.strip_prefix('%').unwrap_or(code).strip_prefix('{');
    inner.and_then(|inner| inner.strip_suffix('}')).unwrap_or(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_however_they_are_written() {
        for text in [
            "3221225578",
            "0xc000006a",
            "0XC000006A",
            "-1073741718",
            "0xffffffffc000006a",
            "18446744072635809898",
        ] {
            assert_eq!(Code::Text(text).number(), Some(0xc000_006a), "{text}");
        }
        for text in [
            "",
            "0x",
            "-",
            "c000006a",
            "4294967296",
            "-2147483649",
            "1.0",
            "0xfffffffff",
            "99999999999999999999",
        ] {
            assert_eq!(Code::Text(text).number(), None, "{text}");
        }
    }
}
