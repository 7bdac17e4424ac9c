//! Reads the texts of values, as Windows and other tools write them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use uuid::Uuid;

/// An integer that is not negative, from its decimal text, or its hexadecimal text after `0x`.
pub fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    // `parse` and `from_str_radix` accept a plus, which neither form has.
    if text.starts_with('+') {
        return None;
    }
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None => text.parse().ok(),
    }
}

/// An integer from its decimal text, or its hexadecimal text after `0x`.
pub fn integer(text: &str) -> Option<i128> {
    match text.trim().strip_prefix('-') {
        Some(digits) if digits.starts_with(|first: char| first.is_ascii_digit()) => {
            digits.parse::<i128>().ok().map(|n| -n)
        }
        Some(_) => None,
        None => number(text).map(i128::from),
    }
}

/// A floating-point number from its decimal text.
pub fn float(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

/// A boolean from `true` or `false`.
pub fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Bytes from their hexadecimal digits.
pub fn bytes(text: &str) -> Option<Vec<u8>> {
    let (pairs, odd) = text.as_bytes().as_chunks::<2>();
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| Some((digit(*high)? << 4 | digit(*low)?) as u8);
    if odd.is_empty() {
        pairs.iter().map(byte).collect()
    } else {
        None
    }
}

/// An instant from its ISO 8601 text, as `2024-03-01T12:00:00.123456789Z`, in nanoseconds since 1970-01-01 UTC. Without an offset, as
/// some tools write it, it is UTC.
pub fn instant(text: &str) -> Option<i128> {
    let text = text.trim();
    let text = text.strip_suffix("UTC").map_or(text, str::trim_end);
    let with_offset = text.parse::<Timestamp>().ok();
    let instant = with_offset.or_else(|| {
        let civil = text.contains(':').then(|| text.parse::<DateTime>().ok())??;
        Offset::UTC.to_timestamp(civil).ok()
    })?;
    Some(instant.as_nanosecond())
}

/// The 16 bytes of a GUID, in the order of its text.
pub fn uuid(text: &str) -> Option<[u8; 16]> {
    Uuid::try_parse(text.trim()).ok().map(Uuid::into_bytes)
}
