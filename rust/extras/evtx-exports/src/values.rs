//! The values of exports: numbers, times and GUIDs in texts.

use std::sync::LazyLock;

use evtx_format::did_you_mean;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use regex_automata::meta::Regex;
use uuid::Uuid;

use crate::json::Json;

/// The least and the first too late year of a time in nanoseconds.
const YEARS: std::ops::Range<i16> = 1678..2262;

/// The year in which Windows' times begin. One at its start stands for none.
const NO_YEAR: i16 = 1601;

/// A time as Windows writes it in XML.
pub(crate) static ISO: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})?$")
});

/// A time as Windows writes it for people: the parts of the date with their separators, of the clock, the half of the day, and
/// an offset.
static LOCAL: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"^([0-9]{1,4})([-/.])([0-9]{1,4})([-/.])([0-9]{1,4})[T ,]\s*",
        r"([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2}))?(?:\.([0-9]*))?\s*(AM|PM)?\s*(.*)$"
    ))
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| unreachable!("{pattern}: {error}"))
}

/// What times without an offset mean.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times {
    pub(crate) zone: Option<TimeZone>,
    /// The order of day and month in dates with slashes.
    pub(crate) is_day_first: Option<bool>,
}

/// A time zone by its name in the database of the IANA, or an offset such as `+01:00`.
///
/// # Errors
/// Why there is none.
pub fn time_zone(name: &str) -> Result<TimeZone, String> {
    let unknown = |_| {
        let meant = did_you_mean(name, jiff::tz::db().available().map(|known| known.as_str().to_owned()));
        format!("unknown time zone '{name}': pass a name such as 'Europe/Berlin', or an offset such as '+01:00'{meant}")
    };
    // No country is further ahead than 14 hours.
    let is_near = |zone: &TimeZone| {
        zone.to_fixed_offset()
            .is_ok_and(|offset| offset.seconds().abs() <= 14 * 3_600)
    };
    let of_offset = offset(name).filter(is_near);
    of_offset.map_or_else(|| TimeZone::get(name).map_err(unknown), Ok)
}

/// An offset as a zone: `Z`, `+01:00`, `-0330`.
fn offset(text: &str) -> Option<TimeZone> {
    let sign = match text.as_bytes().first()? {
        b'Z' | b'z' if text.len() == 1 => return Some(TimeZone::UTC),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = text[1..].replace(':', "");
    let is_number = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number: i32 = digits.parse().ok().filter(|_| is_number)?;
    let (hours, minutes) = (number / 100, number % 100);
    let offset = Offset::from_seconds(sign * (hours * 60 + minutes) * 60).ok()?;
    (minutes < 60).then(|| TimeZone::fixed(offset))
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
        let (moment, zone) = self.moment(text).unwrap_or_else(|| Err(wrong()))?;
        if moment.year() == NO_YEAR && (moment.month(), moment.day(), moment.hour()) == (1, 1, 0) {
            return Ok(None);
        }
        if !YEARS.contains(&moment.year()) {
            return Err(wrong());
        }
        let zone = zone.or(utc.then_some(TimeZone::UTC)).or_else(|| self.zone.clone());
        let zone =
            zone.ok_or_else(|| format!("'{text}' has no offset: pass time_zone := 'Europe/Berlin', or the like"))?;
        let at = zone.to_ambiguous_timestamp(moment).unambiguous();
        let at = at.map_err(|_| format!("'{text}' is a time that the zone has twice or not at all"))?;
        i64::try_from(at.as_nanosecond()).map(Some).map_err(|_| wrong())
    }

    /// The date and time of a text with its offset; `None` if it is not a time.
    ///
    /// # Errors
    /// If the order of day and month is not known.
    fn moment(&self, text: &str) -> Option<Result<(DateTime, Option<TimeZone>), String>> {
        let mut found = LOCAL.create_captures();
        LOCAL.captures(text, &mut found);
        let part = |nth| found.get_group(nth).map(|span| &text[span]);
        let number = |nth| part(nth)?.parse::<i16>().ok();
        let (first, second, third, separator) = (number(1)?, number(3)?, number(5)?, part(2)?);
        let (year, month, day) = match (part(1)?.len(), separator, self.is_day_first) {
            (4, ..) => (first, second, third),
            (_, ".", _) | (_, _, Some(true)) => (third, second, first),
            (_, _, Some(false)) => (third, first, second),
            (_, _, None) => {
                return Some(Err(format!(
                    "the order of day and month in '{text}' is not known: pass date_order := 'mdy' or 'dmy'"
                )));
            }
        };
        let hour = match (number(6)?, part(10)) {
            (hour, None) => hour,
            (hour @ 1..=12, Some(half)) => hour % 12 + if half == "PM" { 12 } else { 0 },
            _ => return None,
        };
        let [month, day, hour, minute, second] = [month, day, hour, number(7)?, number(8).unwrap_or_default()]
            .map(|number| i8::try_from(number).unwrap_or(-1));
        let fraction = part(9).unwrap_or_default();
        let nanos = format!("{:0<9}", fraction.get(..9).unwrap_or(fraction)).parse().ok()?;
        let zone = match part(11)? {
            "" => None,
            text => Some(offset(text)?),
        };
        let moment = DateTime::new(year, month, day, hour, minute, second, nanos).ok()?;
        (part(4)? == separator).then_some(Ok((moment, zone)))
    }
}

/// A time of so many seconds since 1970, in nanoseconds with the precision of Windows; `None` for the time 0 of Windows.
pub(crate) fn of_seconds(seconds: f64) -> Option<i64> {
    let ticks = seconds * 1e7;
    // What is larger has no such time.
    (ticks.abs() < 9.2e16).then(|| ticks.round_ties_even() as i64 * 100)
}

/// A value that is a number.
pub(crate) fn number(json: &Json<'_>) -> Option<f64> {
    let Json::Literal(text) = json else { return None };
    text.parse().ok()
}

/// A whole number, perhaps with a fraction of zeros, or an exponent if it is not a text.
pub(crate) fn whole(json: &Json<'_>) -> Option<u128> {
    let text = match json {
        Json::Text(text) => text,
        Json::Literal(text) => *text,
        _ => return None,
    };
    let (digits, zeros) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') {
        return Some(digits.parse().unwrap_or(u128::MAX));
    }
    let is_whole = |number: &f64| *number >= 0.0 && number.fract() == 0.0;
    number(json).filter(is_whole).map(|number| number as u128)
}

/// A hexadecimal number of 64 bits, after `0x`.
pub(crate) fn hex(text: &str) -> Option<u64> {
    let digits = text
        .strip_prefix("0x")
        .filter(|digits| !digits.starts_with('+') && digits.len() <= 16)?;
    u64::from_str_radix(digits, 16).ok()
}

/// The bytes of a GUID, in the order of its text.
pub(crate) fn guid(text: &str) -> Option<[u8; 16]> {
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let guid = inner.or(Some(text)).filter(|text| text.len() == 36)?;
    Uuid::try_parse(guid).ok().map(Uuid::into_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_whole() {
        let of_text = |text: &'static str| whole(&Json::Text(text.into()));
        assert_eq!(
            ["7", "7.00", "7.5", "-7", "", "7e0"].map(of_text),
            [Some(7), Some(7), None, None, None, None]
        );
        let of_literal = |text| whole(&Json::Literal(text));
        assert_eq!(
            ["7", "7e2", "-0.0", "true", "0.5"].map(of_literal),
            [Some(7), Some(700), Some(0), None, None]
        );
        assert_eq!(of_text(&"9".repeat(50).leak()[..]), Some(u128::MAX));
        assert_eq!(
            ["0x8020000000000000", "0x", "0x+1", "7"].map(hex),
            [Some(0x8020_0000_0000_0000), None, None, None]
        );
        assert_eq!(
            [of_seconds(1.5), of_seconds(-11_644_473_600.0)],
            [Some(1_500_000_000), None]
        );
    }

    #[test]
    fn offsets_are_those_of_countries() {
        let is_zone = |text: &&str| time_zone(text).is_ok();
        assert!(["Z", "+01:00", "-0330", "+14:00"].iter().all(is_zone));
        assert!(
            !["", "+25:00", "+1:00", "++100", "+00:60", "+01:00:00"]
                .iter()
                .any(is_zone)
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
