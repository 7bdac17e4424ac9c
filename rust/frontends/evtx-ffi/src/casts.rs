//! The casts from text to enums, and to TIMESTAMP_NS, the type of `time_created`. DuckDB 2 ignores an offset at the end of
//! such a text, and so finds the wrong events; earlier versions apply it. Everything else about it is left to DuckDB.

use std::sync::Arc;

use arrow_array::{Int64Array, UInt8Array};
use evtx_detect::ENUMS;

use crate::boundary::{EvtxError, EvtxErrorKind, EvtxFailure, EvtxOwned, EvtxSlice, EvtxText, produce};
use crate::scalar::EvtxVector;
use crate::vectors::EvtxArrays;

const NANOS: i64 = 1000;
const MICROS_PER_SECOND: i64 = 1_000_000;

/// A type that is an enum.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxEnum {
    /// Its number, for [`evtx_enum_numbers_new`].
    pub number: usize,
    /// Its name.
    pub name: EvtxText<'static>,
    /// Its values.
    pub values: EvtxSlice<'static, EvtxText<'static>>,
}

/// All types that are enums.
pub(crate) fn enums() -> EvtxSlice<'static, EvtxEnum> {
    let enums = ENUMS.iter().enumerate().map(|(number, (name, values))| EvtxEnum {
        number,
        name: EvtxText::of(name),
        values: EvtxSlice::leaked(values.iter().map(|value| EvtxText::of(value)).collect::<Vec<_>>()),
    });
    EvtxSlice::leaked(enums.collect::<Vec<_>>())
}

/// Makes the numbers of the values of an enum that texts name, as one array. The number of any other text is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_enum_numbers_new(
    number: usize,
    texts: EvtxVector,
    out: Option<&mut EvtxOwned<EvtxArrays>>,
) -> EvtxFailure {
    produce(out, || {
        let (_, values) = ENUMS.get(number).ok_or("there is no such enum")?;
        let number = |row| {
            // SAFETY: the caller passes VARCHAR.
            let text = unsafe { texts.text(row)? };
            let found = text.and_then(|text| values.iter().position(|value| *value == text));
            Ok(found.map(|number| number as u8))
        };
        let numbers = (0..texts.rows).map(number).collect::<Result<UInt8Array, EvtxError>>()?;
        Ok(Some(EvtxArrays::of(Arc::new(numbers)).into()))
    })
}

/// Makes the nanoseconds since 1970-01-01 UTC of texts, as one array. `micros` are the microseconds that DuckDB has read,
/// without the offset, which counts if `has_offset`. A text with a time zone that is neither UTC nor an offset, or with a time
/// that TIMESTAMP_NS cannot hold, is NULL if `is_try`. Otherwise, the function fails.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_timestamps_new(
    texts: EvtxVector,
    micros: EvtxVector,
    has_offset: bool,
    is_try: bool,
    out: Option<&mut EvtxOwned<EvtxArrays>>,
) -> EvtxFailure {
    produce(out, || {
        let cast = |row| {
            // SAFETY: the caller passes VARCHAR and TIMESTAMP.
            let Some(micros) = (unsafe { micros.value(row) }) else {
                return Ok(None);
            };
            // SAFETY: as above.
            let text = unsafe { texts.text(row)? }.unwrap_or_default();
            match nanos(text, micros, has_offset) {
                Ok(nanos) => Ok(Some(nanos)),
                Err(_) if is_try => Ok(None),
                Err(why) => Err(EvtxError::new(EvtxErrorKind::Conversion, why)),
            }
        };
        let times = (0..texts.rows).map(cast).collect::<Result<Int64Array, EvtxError>>()?;
        Ok(Some(EvtxArrays::of(Arc::new(times)).into()))
    })
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
