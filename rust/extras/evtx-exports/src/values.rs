//! The values of exports: numbers, times and GUIDs in texts, and the members of JSON.

use std::borrow::Cow;

use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};
use uuid::Uuid;

/// The least and the first too late year of a time in nanoseconds.
const YEARS: std::ops::Range<i16> = 1678..2262;

/// The year in which Windows' times begin. One at its start stands for none.
const NO_YEAR: i16 = 1601;

/// The order of the day and the month in a date with slashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DateOrder {
    MonthDay,
    DayMonth,
}

/// What times without an offset mean.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times {
    pub(crate) zone: Option<TimeZone>,
    pub(crate) order: Option<DateOrder>,
}

/// A time zone by its name in the database of the IANA, or an offset such as `+01:00`.
///
/// # Errors
/// Why there is none.
pub(crate) fn time_zone(name: &str) -> Result<TimeZone, String> {
    if let Some(seconds) = offset(name) {
        return Offset::from_seconds(seconds)
            .map(TimeZone::fixed)
            .map_err(|why| why.to_string());
    }
    let unknown =
        |_| format!("unknown time zone '{name}': pass a name such as 'Europe/Berlin', or an offset such as '+01:00'");
    TimeZone::get(name).map_err(unknown)
}

/// The seconds of an offset: `Z`, `+01:00`, `-0330`.
fn offset(text: &str) -> Option<i32> {
    let sign = match text.as_bytes().first()? {
        b'Z' | b'z' if text.len() == 1 => return Some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = text[1..].replace(':', "");
    let number = |range: std::ops::Range<usize>| -> Option<i32> { digits.get(range)?.parse().ok() };
    let (hours, minutes) = (number(0..2)?, number(2..4)?);
    (digits.len() == 4 && hours <= 25 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60)
}

impl Times {
    /// Reads a time, in nanoseconds since 1970; `None` for the time 0 of Windows. `utc` says whether it is in UTC if it has no offset.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(crate) fn read(&self, text: &str, utc: bool) -> Result<Option<i64>, String> {
        let text = text.trim();
        let wrong = || format!("'{}' is not a time", text.chars().take(60).collect::<String>());
        if let Some(millis) = text.strip_prefix("/Date(").and_then(|text| text.strip_suffix(")/")) {
            // An offset after the number is only for people.
            let end = millis.bytes().skip(1).position(|byte| byte == b'+' || byte == b'-');
            let end = end.map_or(millis.len(), |at| at + 1);
            let millis: i64 = millis[..end].parse().map_err(|_| wrong())?;
            return millis.checked_mul(1_000_000).map(Some).ok_or_else(wrong);
        }
        let (moment, zone) = self.moment(text).ok_or_else(wrong)?.ok_or_else(|| {
            format!("the order of day and month in '{text}' is not known: pass date_order := 'mdy' or 'dmy'")
        })?;
        if moment.year() == NO_YEAR && (moment.month(), moment.day(), moment.hour()) == (1, 1, 0) {
            return Ok(None);
        }
        if !YEARS.contains(&moment.year()) {
            return Err(wrong());
        }
        let nanos = |moment: DateTime| -> Option<i64> {
            let at = TimeZone::UTC.to_timestamp(moment).ok()?.as_nanosecond();
            i64::try_from(at).ok()
        };
        let local = nanos(moment).ok_or_else(wrong)?;
        match (zone, &self.zone) {
            (Some(seconds), _) => local
                .checked_sub(i64::from(seconds) * 1_000_000_000)
                .map(Some)
                .ok_or_else(wrong),
            (None, _) if utc => Ok(Some(local)),
            (None, Some(zone)) => {
                let at = zone.to_ambiguous_timestamp(moment).unambiguous();
                let at = at.map_err(|_| format!("'{text}' is a time that the zone has twice or not at all"))?;
                i64::try_from(at.as_nanosecond()).map(Some).map_err(|_| wrong())
            }
            (None, None) => Err(format!(
                "'{text}' has no offset: pass time_zone := 'Europe/Berlin', or the like"
            )),
        }
    }

    /// The date and time of a text with its offset in seconds. `Some(None)` if the order of day and month is not known.
    #[allow(clippy::option_option)] // three different answers
    fn moment(&self, text: &str) -> Option<Option<(DateTime, Option<i32>)>> {
        let end = text.find([' ', 'T', ','])?;
        let (date, rest) = (&text[..end], text[end + 1..].trim_start());
        let separator = date.chars().find(|letter| !letter.is_ascii_digit())?;
        let mut parts = date.split(separator).map(|part| {
            let is_number = (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| part.parse::<i16>().ok()).flatten()
        });
        let (first, second, third) = (parts.next()??, parts.next()??, parts.next()??);
        let is_last = parts.next().is_none() && ['-', '/', '.'].contains(&separator);
        let has_year_first = date.len() - date.trim_start_matches(|letter: char| letter.is_ascii_digit()).len() == 4;
        let (year, month, day) = match (has_year_first, separator, self.order) {
            (true, ..) => (first, second, third),
            (false, '.', _) | (false, _, Some(DateOrder::DayMonth)) => (third, second, first),
            (false, _, Some(DateOrder::MonthDay)) => (third, first, second),
            (false, _, None) => return Some(None),
        };
        let day = Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
        // The clock ends where its digits do.
        let is_clock = |letter: char| letter.is_ascii_digit() || letter == ':' || letter == '.';
        let clock_end = rest.find(|letter| !is_clock(letter)).unwrap_or(rest.len());
        let (clock, after) = rest.split_at(clock_end);
        let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
        let mut numbers = clock
            .split(':')
            .map(|part| part.parse::<i8>().ok().filter(|_| part.len() <= 2));
        let (hour, minute) = (numbers.next()??, numbers.next()??);
        let second = numbers.next().unwrap_or(Some(0))?;
        let digits = fraction.get(..9).unwrap_or(fraction);
        let nanos = format!("{digits:0<9}").parse().ok()?;
        let after = after.trim_start_matches(char::is_whitespace);
        let half = [("AM", 0), ("PM", 12)]
            .into_iter()
            .find(|(name, _)| after.starts_with(name));
        let (hour, after) = match half {
            Some((name, add)) if (1..=12).contains(&hour) => (hour % 12 + add, after[name.len()..].trim_start()),
            Some(_) => return None,
            None => (hour, after),
        };
        let zone = match after {
            "" => None,
            text => Some(offset(text)?),
        };
        let is_sound = is_last && numbers.next().is_none() && second < 60;
        let moment = day
            .at(0, 0, 0, 0)
            .with()
            .hour(hour)
            .minute(minute)
            .second(second)
            .subsec_nanosecond(nanos);
        is_sound.then_some(Some((moment.build().ok()?, zone)))
    }
}

/// A time of so many seconds since 1970, in nanoseconds with the precision of Windows; `None` for the time 0 of Windows.
pub(crate) fn of_seconds(seconds: f64) -> Option<i64> {
    let ticks = seconds * 1e7;
    // What is larger has no such time.
    (ticks.abs() < 9.2e16).then(|| ticks.round_ties_even() as i64 * 100)
}

/// A whole number, perhaps with a fraction of zeros.
pub(crate) fn whole(text: &str) -> Option<u64> {
    let (digits, zeros) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_whole = !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0');
    (is_number && is_whole).then(|| digits.parse().ok()).flatten()
}

/// A number in hexadecimal after `0x`, or a whole number. It can have a sign if `is_signed`.
pub(crate) fn bits(text: &str, is_signed: bool) -> Option<u64> {
    match (text.strip_prefix("0x"), text.parse::<i64>()) {
        (Some(digits), _) => u64::from_str_radix(digits, 16).ok(),
        (None, Ok(number)) if is_signed => Some(number.cast_unsigned()),
        (None, _) => whole(text),
    }
}

/// The bytes of a GUID, in the order of its text.
pub(crate) fn guid(text: &str) -> Option<[u8; 16]> {
    let inner = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'))
        .unwrap_or(text);
    (inner.len() == 36)
        .then(|| Uuid::try_parse(inner).ok().map(Uuid::into_bytes))
        .flatten()
}

/// A value of JSON as a text: the text itself, or the JSON without white space. `None` for null.
pub(crate) fn text_of(raw: &str) -> Option<Cow<'_, str>> {
    match raw.as_bytes().first()? {
        b'n' => None,
        b'"' => Some(unquoted(raw)),
        b'{' | b'[' => Some(compact(raw).into()),
        _ => Some(raw.into()),
    }
}

/// The text in quotes of JSON.
fn unquoted(raw: &str) -> Cow<'_, str> {
    let inner = raw
        .strip_prefix('"')
        .and_then(|raw| raw.strip_suffix('"'))
        .unwrap_or(raw);
    match inner.contains('\\') {
        true => serde_json::from_str::<String>(raw).unwrap_or_default().into(),
        false => inner.into(),
    }
}

/// JSON without white space between its values, and with no more escapes than it needs.
pub(crate) fn compact(raw: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(raw.len()), raw);
    while let Some(at) = rest.find('"') {
        out.extend(rest[..at].chars().filter(|letter| !letter.is_ascii_whitespace()));
        let mut end = at + 1;
        let bytes = rest.as_bytes();
        while bytes.get(end).is_some_and(|&byte| byte != b'"') {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let text = &rest[at..(end + 1).min(rest.len())];
        match text.contains('\\') {
            true => out += &serde_json::Value::from(unquoted(text)).to_string(),
            false => out += text,
        }
        rest = &rest[at + text.len()..];
    }
    out.extend(rest.chars().filter(|letter| !letter.is_ascii_whitespace()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_written_without_white_space_and_escapes() {
        for (json, expected) in [
            ("{ \"a\" : [ 1 , \"b c\" ] }", "{\"a\":[1,\"b c\"]}"),
            ("{\"\\u0061\": \"\\u003c\\\"\\\\\"}", "{\"a\":\"<\\\"\\\\\"}"),
            ("[\"\\\\\", \"\"]", "[\"\\\\\",\"\"]"),
        ] {
            assert_eq!(compact(json), expected);
        }
        assert_eq!(text_of("\"a\\n\\u00e9\"").as_deref(), Some("a\n\u{e9}"));
        assert_eq!((text_of("null"), text_of("1.50").as_deref()), (None, Some("1.50")));
    }

    #[test]
    fn numbers_are_whole() {
        assert_eq!(
            [whole("7"), whole("7.00"), whole("7.5"), whole("-7"), whole("")],
            [Some(7), Some(7), None, None, None]
        );
        assert_eq!(
            [bits("0x8020000000000000", false), bits("-9214364837600034816", true)],
            [Some(0x8020_0000_0000_0000); 2]
        );
        assert_eq!([bits("-1", false), bits("0x", true)], [None; 2]);
        assert_eq!(
            [of_seconds(1.5), of_seconds(-11_644_473_600.0)],
            [Some(1_500_000_000), None]
        );
    }

    #[test]
    fn times_of_json_in_powershell_are_milliseconds() {
        let read = |text| Times::default().read(text, false);
        assert_eq!(read("/Date(1709629080441)/"), Ok(Some(1_709_629_080_441_000_000)));
        assert_eq!(read("/Date(-1000+0100)/"), Ok(Some(-1_000_000_000)));
        for text in [
            "/Date()/",
            "/Date(x)/",
            "/Date(\u{e9}+)/",
            "/Date(99999999999999999)/",
            "",
            "T",
            "1/1/1",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
