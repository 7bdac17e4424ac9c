//! FILETIME and SYSTEMTIME, and the text that Windows shows for them.

use super::text::eight_digits;
use crate::bytes::u16_at;

/// FILETIME of 1970-01-01T00:00:00Z, in 100 ns ticks since 1601-01-01.
const UNIX_EPOCH: i64 = 116_444_736_000_000_000;
const TICKS_PER_SECOND: u64 = 10_000_000;
const SECONDS_PER_DAY: u64 = 86_400;

/// A date and time of day in UTC, as fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fields {
    /// Year, 0 to 9999.
    pub year: u16,
    /// Month, 1 to 12.
    pub month: u8,
    /// Day of the month, from 1.
    pub day: u8,
    /// Hour, 0 to 23.
    pub hour: u8,
    /// Minute, 0 to 59.
    pub minute: u8,
    /// Second, 0 to 59.
    pub second: u8,
    /// 100 ns ticks since the start of the second, 0 to 9,999,999.
    pub ticks: u32,
}

/// The instant of a FILETIME (100 ns ticks since 1601-01-01 UTC) in nanoseconds since 1970-01-01 UTC; `None` if it does
/// not fit an i64: before 1677-09-21 or after 2262-04-11.
pub fn filetime_to_unix_nanos(filetime: u64) -> Option<i64> {
    let ticks = i64::try_from(filetime).ok()?.checked_sub(UNIX_EPOCH)?;
    ticks.checked_mul(100)
}

/// The fields that Windows shows for a FILETIME. A year past 9999 keeps its last four digits; a FILETIME past
/// `i64::MAX` has all fields 0.
pub fn filetime_fields(filetime: u64) -> Fields {
    if i64::try_from(filetime).is_err() {
        return Fields::default();
    }
    let seconds = filetime / TICKS_PER_SECOND;
    let (year, month, day) = civil_date(seconds / SECONDS_PER_DAY);
    let second_of_day = seconds % SECONDS_PER_DAY;
    Fields {
        year: (year % 10_000) as u16,
        month,
        day,
        hour: (second_of_day / 3600) as u8,
        minute: (second_of_day / 60 % 60) as u8,
        second: (second_of_day % 60) as u8,
        ticks: (filetime % TICKS_PER_SECOND) as u32,
    }
}

/// The Gregorian date that is `days` days after 1601-01-01.
fn civil_date(days: u64) -> (u64, u8, u8) {
    // 1601 starts a cycle of 400 years. Its centuries have 36,524 days, the last one a day more; the spans of 4 years
    // in a century have 1,461 days, the last one a day less, except in the last century.
    let (cycles, day) = (days / 146_097, days % 146_097);
    let centuries = (day / 36_524).min(3);
    let day = day - centuries * 36_524;
    let (spans, day) = (day / 1_461, day % 1_461);
    let years = (day / 365).min(3);
    let day = (day - years * 365) as u32;
    let year = 1601 + cycles * 400 + centuries * 100 + spans * 4 + years;
    // Counted from March, the leap day comes last, and months 0 to 11 start at day (153 * month + 2) / 5.
    let before_march = 59 + u32::from(is_leap_year(year));
    let day = if day < before_march {
        day + 306
    } else {
        day - before_march
    };
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year, month as u8, day as u8)
}

fn is_leap_year(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_in_month(year: u64, month: u8) -> u16 {
    match month {
        2 if is_leap_year(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A SYSTEMTIME: eight u16 (year, month, day of week, day, hour, minute, second, millisecond).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemTime(pub [u16; 8]);

impl SystemTime {
    /// Reads a SYSTEMTIME from its 16 bytes; `None` if there are fewer.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut fields = [0; 8];
        for (i, field) in fields.iter_mut().enumerate() {
            *field = u16_at(bytes, 2 * i)?;
        }
        Some(SystemTime(fields))
    }

    /// Whether the fields are a valid time for Windows: a date from 1601 to 30827, and a time of day. The day of the
    /// week does not matter.
    pub fn is_valid(self) -> bool {
        let [year, month, _, day, hour, minute, second, milli] = self.0;
        (1601..=30827).contains(&year)
            && (1..=12).contains(&month)
            && day >= 1
            && day <= days_in_month(u64::from(year), month as u8)
            && hour < 24
            && minute < 60
            && second < 60
            && milli < 1000
    }

    /// The fields that Windows shows: 1601-01-01 for an invalid time, and the last four digits of a year past 9999.
    pub fn fields(self) -> Fields {
        if !self.is_valid() {
            return Fields {
                year: 1601,
                month: 1,
                day: 1,
                ..Fields::default()
            };
        }
        let [year, month, _, day, hour, minute, second, milli] = self.0;
        Fields {
            year: year % 10_000,
            month: month as u8,
            day: day as u8,
            hour: hour as u8,
            minute: minute as u8,
            second: second as u8,
            ticks: u32::from(milli) * 10_000,
        }
    }

    /// The instant in nanoseconds since 1970-01-01 UTC; `None` if the time is invalid or does not fit an i64.
    pub fn to_unix_nanos(self) -> Option<i64> {
        if !self.is_valid() {
            return None;
        }
        let [year, month, _, day, hour, minute, second, milli] = self.0;
        let years = u64::from(year) - 1601;
        let days = years * 365 + years / 4 - years / 100
            + years / 400
            + (1..month as u8)
                .map(|m| u64::from(days_in_month(u64::from(year), m)))
                .sum::<u64>()
            + u64::from(day)
            - 1;
        let seconds = days * SECONDS_PER_DAY + u64::from(hour) * 3600 + u64::from(minute) * 60 + u64::from(second);
        filetime_to_unix_nanos(seconds * TICKS_PER_SECOND + u64::from(milli) * 10_000)
    }
}

/// Appends `YYYY-MM-DDThh:mm:ss.fffffffZ`, with the seven fractional digits of a FILETIME.
pub fn push_time(out: &mut Vec<u8>, time: Fields) {
    let numbers = [
        u32::from(time.year) * 10_000 + u32::from(time.month) * 100 + u32::from(time.day),
        u32::from(time.hour) * 10_000 + u32::from(time.minute) * 100 + u32::from(time.second),
        time.ticks,
    ];
    let [date, clock, ticks] = numbers.map(|number| (eight_digits(number) | 0x3030_3030_3030_3030).to_le_bytes());
    let [a, b, c, d, e, f, g, h] = date;
    let [_, _, i, j, k, l, m, n] = clock;
    let [_, o, p, q, r, s, t, u] = ticks;
    out.extend_from_slice(&[
        a, b, c, d, b'-', e, f, b'-', g, h, b'T', i, j, b':', k, l, b':', m, n, b'.', o, p, q, r, s, t, u, b'Z',
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(fields: Fields) -> String {
        let mut out = Vec::new();
        push_time(&mut out, fields);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn filetimes_read_as_windows_shows_them() {
        for (filetime, shown) in [
            (0, "1601-01-01T00:00:00.0000000Z"),
            (UNIX_EPOCH as u64, "1970-01-01T00:00:00.0000000Z"),
            (125_963_424_000_000_001, "2000-03-01T00:00:00.0000001Z"),
            (125_963_423_999_999_999, "2000-02-29T23:59:59.9999999Z"),
            (131_659_776_001_234_567, "2018-03-20T00:00:00.1234567Z"),
            (u64::MAX, "0000-00-00T00:00:00.0000000Z"),
        ] {
            assert_eq!(text(filetime_fields(filetime)), shown);
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut last = civil_date(0);
        for days in 1..400 * 366 {
            let (year, month, day) = civil_date(days);
            let next_day = (year, month) == (last.0, last.1) && day == last.2 + 1;
            let next_month = day == 1
                && u16::from(last.2) == days_in_month(last.0, last.1)
                && (year * 12 + u64::from(month)) == (last.0 * 12 + u64::from(last.1) + 1);
            assert!(next_day || next_month, "{last:?} then {year}-{month}-{day}");
            last = (year, month, day);
        }
    }

    proptest::proptest! {
        #[test]
        fn every_time_has_its_text(filetime in 0..=i64::MAX as u64) {
            let Fields { year, month, day, hour, minute, second, ticks } = filetime_fields(filetime);
            let expected = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ticks:07}Z");
            proptest::prop_assert_eq!(text(filetime_fields(filetime)), expected);
        }
    }

    #[test]
    fn instants_outside_the_range_of_nanoseconds_are_none() {
        assert_eq!(filetime_to_unix_nanos(UNIX_EPOCH as u64 + 1), Some(100));
        assert_eq!(filetime_to_unix_nanos(0), None);
        assert_eq!(filetime_to_unix_nanos(u64::MAX), None);
        assert_eq!(
            filetime_to_unix_nanos(208_678_455_368_547_758),
            Some(9_223_371_936_854_775_800)
        );
    }

    #[test]
    fn system_times_agree_with_filetimes() {
        let time = SystemTime([2019, 3, 5, 1, 12, 34, 56, 789]);
        assert_eq!(text(time.fields()), "2019-03-01T12:34:56.7890000Z");
        assert_eq!(time.to_unix_nanos(), Some(1_551_443_696_789_000_000));
        assert_eq!(
            SystemTime([2020, 2, 0, 29, 0, 0, 0, 0]).to_unix_nanos(),
            Some(1_582_934_400_000_000_000)
        );
        for invalid in [
            [0; 8],
            [2019, 2, 0, 29, 0, 0, 0, 0],
            [2019, 13, 0, 1, 0, 0, 0, 0],
            [2019, 1, 0, 1, 24, 0, 0, 0],
        ] {
            assert_eq!(text(SystemTime(invalid).fields()), "1601-01-01T00:00:00.0000000Z");
            assert_eq!(SystemTime(invalid).to_unix_nanos(), None);
        }
    }
}
