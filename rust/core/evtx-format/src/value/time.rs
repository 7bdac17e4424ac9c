//! FILETIME and SYSTEMTIME, and the text that Windows shows for them.

use jiff::Timestamp;
use jiff::civil::{DateTime, date};
use jiff::tz::Offset;

use super::text::eight_digits;
use crate::bytes::u16_at;

/// FILETIME of 1970-01-01T00:00:00Z, in 100 ns ticks since 1601-01-01.
const UNIX_EPOCH: i64 = 116_444_736_000_000_000;
const TICKS_PER_SECOND: i64 = 10_000_000;

/// The instant of a FILETIME in nanoseconds since 1970-01-01 UTC; `None` before 1677-09-21 or after 2262-04-11.
pub fn filetime_to_unix_nanos(filetime: u64) -> Option<i64> {
    let ticks = i64::try_from(filetime).ok()?.checked_sub(UNIX_EPOCH)?;
    ticks.checked_mul(100)
}

/// The FILETIME of an instant in nanoseconds since 1970-01-01 UTC, rounded down to 100 ns; `None` before 1601.
pub fn unix_nanos_to_filetime(nanos: i128) -> Option<u64> {
    u64::try_from(nanos.div_euclid(100) + i128::from(UNIX_EPOCH)).ok()
}

/// Appends the text that Windows shows for the FILETIME of an instant in nanoseconds since 1970-01-01 UTC.
pub fn push_instant(out: &mut Vec<u8>, nanos: i64) {
    push_time(out, unix_nanos_to_filetime(nanos.into()).and_then(shown_filetime));
}

/// The time that Windows shows for a FILETIME, with a year modulo 10,000. `None` past `i64::MAX`.
pub(super) fn shown_filetime(filetime: u64) -> Option<DateTime> {
    /// Seconds in 10,000 years, after which the calendar repeats.
    const CYCLE: i64 = 315_569_520_000;
    let ticks = i64::try_from(filetime).ok()? - UNIX_EPOCH;
    // At most 5,000 years from 1970.
    let seconds = (ticks.div_euclid(TICKS_PER_SECOND) + CYCLE / 2).rem_euclid(CYCLE) - CYCLE / 2;
    let nanos = 100 * ticks.rem_euclid(TICKS_PER_SECOND) as i32;
    Some(Offset::UTC.to_datetime(Timestamp::new(seconds, nanos).ok()?))
}

/// A SYSTEMTIME: eight u16 (year, month, day of week, day, hour, minute, second, millisecond).
#[derive(Debug, Clone, Copy)]
pub(super) struct SystemTime(pub(super) [u16; 8]);

impl SystemTime {
    /// Reads a SYSTEMTIME from its 16 bytes; `None` if there are fewer.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut fields = [0; 8];
        for (i, field) in fields.iter_mut().enumerate() {
            *field = u16_at(bytes, 2 * i)?;
        }
        Some(SystemTime(fields))
    }

    /// The time, with its year modulo 10,000; `None` if Windows does not accept it: the year must be from 1601 to 30827.
    /// The day of the week does not matter.
    fn time(self) -> Option<DateTime> {
        let [year, fields @ ..] = self.0;
        let [month, _, day, hour, minute, second, milli] = fields.map(i32::from);
        let [month, day, hour, minute, second] =
            [month, day, hour, minute, second].map(|field| i8::try_from(field).ok());
        let nanos = milli.checked_mul(1_000_000)?;
        let year = (1601..=30827).contains(&year).then_some(year % 10_000)? as i16;
        DateTime::new(year, month?, day?, hour?, minute?, second?, nanos).ok()
    }

    /// The time that Windows shows: the start of 1601 for an invalid one.
    pub(super) fn shown(self) -> DateTime {
        self.time().unwrap_or(date(1601, 1, 1).at(0, 0, 0, 0))
    }

    /// The instant in nanoseconds since 1970-01-01 UTC; `None` if the time is invalid or does not fit an i64.
    pub(super) fn to_unix_nanos(self) -> Option<i64> {
        let time = self.time().filter(|_| self.0[0] < 10_000)?;
        let instant = Offset::UTC.to_timestamp(time).ok()?;
        i64::try_from(instant.as_nanosecond()).ok()
    }
}

/// Appends `YYYY-MM-DDThh:mm:ss.fffffffZ`, with the seven fractional digits of a FILETIME and the year modulo 10,000.
/// Without a time, all digits are 0.
pub(super) fn push_time(out: &mut Vec<u8>, time: Option<DateTime>) {
    let numbers = time.map_or([0; 3], |time| {
        [
            i32::from(time.year()).rem_euclid(10_000) * 10_000 + i32::from(time.month()) * 100 + i32::from(time.day()),
            i32::from(time.hour()) * 10_000 + i32::from(time.minute()) * 100 + i32::from(time.second()),
            time.subsec_nanosecond() / 100,
        ]
    });
    let digits = |number| (eight_digits(number as u32) | 0x3030_3030_3030_3030).to_le_bytes();
    let [date, clock, ticks] = numbers.map(digits);
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

    fn text(time: Option<DateTime>) -> String {
        let mut out = Vec::new();
        push_time(&mut out, time);
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
            (2_650_467_743_999_999_999, "9999-12-31T23:59:59.9999999Z"),
            (2_650_467_744_000_000_000, "0000-01-01T00:00:00.0000000Z"),
            (i64::MAX as u64, "0828-09-14T02:48:05.4775807Z"),
            (u64::MAX, "0000-00-00T00:00:00.0000000Z"),
        ] {
            assert_eq!(text(shown_filetime(filetime)), shown);
        }
    }

    proptest::proptest! {
        #[test]
        fn every_time_has_its_text(filetime in 0..=i64::MAX as u64) {
            let time = shown_filetime(filetime).expect("a time");
            let (year, second) = (time.year().rem_euclid(10_000), time.strftime("%m-%dT%H:%M:%S"));
            proptest::prop_assert_eq!(text(Some(time)), format!("{year:04}-{second}.{:07}Z", filetime % 10_000_000));
        }
    }

    #[test]
    fn instants_outside_the_range_of_nanoseconds_are_none() {
        assert_eq!(filetime_to_unix_nanos(UNIX_EPOCH as u64 + 1), Some(100));
        assert_eq!(filetime_to_unix_nanos(0), None);
        assert_eq!(filetime_to_unix_nanos(u64::MAX), None);
        assert_eq!(unix_nanos_to_filetime(199), Some(UNIX_EPOCH as u64 + 1));
        assert_eq!(unix_nanos_to_filetime(-1), Some(UNIX_EPOCH as u64 - 1));
        assert_eq!(unix_nanos_to_filetime(-100 * i128::from(UNIX_EPOCH) - 1), None);
        assert_eq!(
            filetime_to_unix_nanos(208_678_455_368_547_758),
            Some(9_223_371_936_854_775_800)
        );
    }

    #[test]
    fn system_times_agree_with_filetimes() {
        let time = SystemTime([2019, 3, 5, 1, 12, 34, 56, 789]);
        assert_eq!(text(Some(time.shown())), "2019-03-01T12:34:56.7890000Z");
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
            assert_eq!(text(Some(SystemTime(invalid).shown())), "1601-01-01T00:00:00.0000000Z");
            assert_eq!(SystemTime(invalid).to_unix_nanos(), None);
        }
    }
}
