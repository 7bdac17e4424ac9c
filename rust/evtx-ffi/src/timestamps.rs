//! The cast from text to TIMESTAMP_NS, the type of `time_created`. DuckDB 2 ignores an offset at the end of the text, and
//! so finds the wrong events; earlier versions apply it. Everything else about a text is left to DuckDB.

use crate::boundary::{EvtxFailure, EvtxText, produce};

const NANOS: i64 = 1000;
const MICROS_PER_SECOND: i64 = 1_000_000;

/// The nanoseconds since 1970-01-01 UTC of a text. `micros` are the microseconds that DuckDB has read, without the offset,
/// which counts if `has_offset`. Fails if a time zone is neither UTC nor an offset, or if TIMESTAMP_NS cannot hold the time.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_timestamp_nanos(
    text: EvtxText<'_>,
    micros: i64,
    has_offset: bool,
    out: Option<&mut i64>,
) -> EvtxFailure {
    produce(out, || Ok(nanos(text.text()?, micros, has_offset)?))
}

fn nanos(text: &str, micros: i64, has_offset: bool) -> Result<i64, String> {
    if micros.unsigned_abs() == i64::MAX.unsigned_abs() {
        return Ok(micros); // infinity
    }
    // What follows the first `:`: the rest of the time, and its zone.
    let rest = text.split_once(':').map_or("", |(_, rest)| rest);
    let offset = if has_offset { offset(rest) } else { Some(0) };
    let offset = offset.ok_or_else(|| {
        format!("\"{text}\" has a time zone that is not UTC or an offset. Use TIMESTAMPTZ '...' AT TIME ZONE 'UTC'")
    })?;
    let utc = micros.checked_sub(offset * MICROS_PER_SECOND);
    let nanos = utc.and_then(|micros| micros.checked_mul(NANOS)?.checked_add(below_micros(rest)));
    // The greatest number is infinity.
    nanos
        .filter(|nanos| *nanos != i64::MAX)
        .ok_or_else(|| format!("\"{text}\" is not a time that TIMESTAMP_NS can hold"))
}

/// The nanoseconds of the fraction of a second below its microseconds.
fn below_micros(rest: &str) -> i64 {
    let fraction = rest.split_once('.').map_or("", |(_, fraction)| fraction);
    let digits = fraction
        .bytes()
        .take_while(u8::is_ascii_digit)
        .map(|digit| i64::from(digit - b'0'));
    digits
        .chain(std::iter::repeat(0))
        .take(9)
        .fold(0, |number, digit| number * 10 + digit)
        % NANOS
}

/// The offset at the end, such as `+01`, `-0330` or `+01:00:00`, in seconds. `None` if something else is there that is not
/// UTC, such as the name of a zone.
fn offset(rest: &str) -> Option<i64> {
    let is_time = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | ' ');
    let zone = rest
        .trim_end_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b')
        .trim_start_matches(is_time);
    let (sign, mut left) = match zone.as_bytes() {
        [] => return Some(0),
        [b'+', left @ ..] => (1, left),
        [b'-', left @ ..] => (-1, left),
        _ => return (zone.eq_ignore_ascii_case("Z") || zone.eq_ignore_ascii_case("UTC")).then_some(0),
    };
    let mut seconds = 0;
    for (index, unit) in [3600, 60, 1].into_iter().enumerate() {
        let is_apart = index == 0 || left.first() == Some(&b':');
        left = left.strip_prefix(b":").filter(|_| index > 0).unwrap_or(left);
        let digits = left.iter().take(2).take_while(|byte| byte.is_ascii_digit()).count();
        // Two digits, or one after a sign or a colon.
        if digits < usize::from(index == 0) || digits == 1 && !is_apart {
            return None;
        }
        let number = left[..digits]
            .iter()
            .fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
        seconds += number * unit;
        left = &left[digits..];
    }
    left.is_empty().then_some(sign * seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_counts() {
        for (text, seconds) in [
            ("2024-03-05 10:00", Some(0)),
            ("2024-03-05 10:00:00.5 Z ", Some(0)),
            ("2024-03-05T10:00:00utc", Some(0)),
            ("2024-03-05 10:00:00+01", Some(3600)),
            ("2024-03-05 10:00:00-0330", Some(-12_600)),
            ("2024-03-05 10:00:00+01:00:07", Some(3607)),
            ("2024-03-05 10:00:00+1:5", Some(3900)),
            ("2024-03-05 10:00:00+015", None),
            ("2024-03-05 10:00:00+01:00:00:00", None),
            ("2024-03-05 10:00:00 +", None),
            ("2024-03-05 10:00:00 Europe/Berlin", None),
        ] {
            assert_eq!(nanos(text, 0, false), Ok(0), "{text}");
            let found = nanos(text, 0, true).map(|nanos| -nanos / 1_000_000_000);
            assert_eq!(found.ok(), seconds, "{text}");
        }
        assert_eq!(
            nanos("2024-03-05 10:00:00.1234567+01", 5, true),
            Ok(5000 + 700 - 3_600_000_000_000)
        );
        assert_eq!(nanos("infinity", i64::MAX, true), Ok(i64::MAX));
        assert!(nanos("9999-01-01 00:00:00", i64::MAX - 1, true).is_err());
    }
}
