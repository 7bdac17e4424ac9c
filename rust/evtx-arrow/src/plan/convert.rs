//! Converts values to the type of a column. A value of another type is converted by its text, because forwarded events
//! have numbers, times and GUIDs as strings.

use evtx_format::value::text::Form;
use evtx_format::value::{Scalar, Value};

/// Converts the single item of an array, or else the text of the value.
// Kept out of line, because most values do not need it. The value is passed by reference, because to move it right
// after it was written is a store-forwarding stall.
#[cold]
fn by_text<'v, T>(
    value: &Value<'v>,
    binary: impl FnOnce(Value<'v>) -> Option<T>,
    from_text: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    let value = value.single();
    binary(value).or_else(|| {
        let mut text = Vec::new();
        value.push_text(&mut text, Form::Plain);
        from_text(&String::from_utf8_lossy(&text))
    })
}

/// An integer that is not negative.
#[inline(always)]
pub(crate) fn number(value: &Value<'_>) -> Option<u64> {
    match value.to_u64() {
        None if !value.is_null() => by_text(value, Value::to_u64, number_from_text),
        found => found,
    }
}

/// An integer that is not negative, from its decimal text, or its hexadecimal text after `0x`.
pub(crate) fn number_from_text(text: &str) -> Option<u64> {
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

/// An integer, which can be negative.
pub(crate) fn integer(value: &Value<'_>) -> Option<i128> {
    match value.to_i128() {
        None if !value.is_null() => by_text(value, Value::to_i128, integer_from_text),
        found => found,
    }
}

/// An integer from its decimal text, or its hexadecimal text after `0x`.
pub(crate) fn integer_from_text(text: &str) -> Option<i128> {
    match text.trim().strip_prefix('-') {
        Some(digits) if digits.starts_with(|first: char| first.is_ascii_digit()) => {
            digits.parse::<i128>().ok().map(|n| -n)
        }
        Some(_) => None,
        None => number_from_text(text).map(i128::from),
    }
}

/// A floating-point number.
pub(crate) fn float(value: &Value<'_>) -> Option<f64> {
    match value.to_f64() {
        None if !value.is_null() => by_text(value, Value::to_f64, float_from_text),
        found => found,
    }
}

/// A floating-point number from its decimal text.
pub(crate) fn float_from_text(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

/// A boolean. A bit mask is not one.
pub(crate) fn bool(value: &Value<'_>) -> Option<bool> {
    by_text(value, |_| None, bool_from_text)
}

/// A boolean from `true` or `false`.
pub(crate) fn bool_from_text(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// The bytes of a binary value.
pub(crate) fn bytes(value: &Value<'_>) -> Option<Vec<u8>> {
    let binary = |value: Value<'_>| (value.scalar() == Some(Scalar::Binary)).then(|| value.bytes.to_vec());
    match binary(*value) {
        None if !value.is_null() => by_text(value, binary, bytes_from_text),
        found => found,
    }
}

/// Bytes from their hexadecimal digits.
pub(crate) fn bytes_from_text(text: &str) -> Option<Vec<u8>> {
    let (pairs, odd) = text.as_bytes().as_chunks::<2>();
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| Some((digit(*high)? << 4 | digit(*low)?) as u8);
    if odd.is_empty() {
        pairs.iter().map(byte).collect()
    } else {
        None
    }
}

/// An instant, in nanoseconds since 1970-01-01 UTC.
#[inline(always)]
pub(crate) fn nanos(value: &Value<'_>) -> Option<i64> {
    match value.to_unix_nanos() {
        None if !value.is_null() => by_text(value, Value::to_unix_nanos, nanos_from_text),
        found => found,
    }
}

/// An instant from its ISO 8601 text with an offset, as `2024-03-01T12:00:00.123456789Z`.
pub(crate) fn nanos_from_text(text: &str) -> Option<i64> {
    let instant: jiff::Timestamp = text.trim().parse().ok()?;
    i64::try_from(instant.as_nanosecond()).ok()
}

/// The 16 bytes of a GUID, in the order of its text.
#[inline(always)]
pub(crate) fn uuid(value: &Value<'_>) -> Option<[u8; 16]> {
    match value.to_uuid() {
        None if !value.is_null() => by_text(value, Value::to_uuid, uuid_from_text),
        found => found,
    }
}

/// A GUID from its text, with or without braces.
pub(crate) fn uuid_from_text(text: &str) -> Option<[u8; 16]> {
    uuid::Uuid::try_parse(text.trim()).ok().map(uuid::Uuid::into_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_taken_for_what_it_says() {
        assert_eq!(number_from_text(" 4624 "), Some(4624));
        assert_eq!(number_from_text("0x8020000000000000"), Some(0x8020_0000_0000_0000));
        for no_number in ["", "-1", "+1", "0x", "0x+1", "1.5", "18446744073709551616"] {
            assert_eq!(number_from_text(no_number), None, "{no_number:?}");
        }
        assert_eq!(nanos_from_text("1970-01-01T00:00:01.123456789Z"), Some(1_123_456_789));
        assert_eq!(nanos_from_text("2262-04-12T00:00:00Z"), None);
        assert_eq!(nanos_from_text("yesterday"), None);
        let braced = uuid_from_text("{54849625-5478-4994-A5BA-3E3B0328C30D}").unwrap();
        assert_eq!(braced[..4], [0x54, 0x84, 0x96, 0x25]);
        assert_eq!(uuid_from_text("54849625"), None);
    }

    #[test]
    fn strings_and_binary_values_convert_alike() {
        let text: Vec<u8> = "4624".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(number(&Value::new(Scalar::String, &text)), Some(4624));
        assert_eq!(number(&Value::new(Scalar::UInt16, &[0x10, 0x12])), Some(4624));
        assert_eq!(number(&Value::new(Scalar::Bool, &[1, 0, 0, 0])), None);
        assert_eq!(nanos(&Value::new(Scalar::UInt64, &[0; 8])), None);
    }
}
