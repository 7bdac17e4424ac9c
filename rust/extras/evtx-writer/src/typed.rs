//! Replacements as values of a type: read from the text that Windows shows for the type.

use encoding_rs::WINDOWS_1252;
use evtx_format::cut;
use evtx_format::value::parse;
use evtx_format::value::text::Escaping;
use evtx_format::value::time::unix_nanos_to_filetime;
use evtx_format::value::{Scalar, Value, ValueType};
use jiff::Timestamp;
use jiff::tz::Offset;
use uuid::Uuid;

use crate::binxml;
use crate::target::Edit;
use crate::value::utf16;

/// The most bytes of a value in a value table.
pub(crate) const MAX_VALUE: usize = 65_535;

/// A text as errors show it.
pub(crate) fn short(text: &str) -> String {
    let (start, dots) = cut(text, 100);
    format!("{start}{dots}")
}

/// A type by its name, as in `String[]`.
pub(crate) fn type_name(value_type: u8) -> String {
    match ValueType::from_byte(value_type) {
        Some(known) => known.to_string(),
        None => format!("type {value_type:#04x}"),
    }
}

/// A value by its type byte; `None` if there is no such type.
pub(crate) fn value(value_type: u8, bytes: &[u8]) -> Option<Value<'_>> {
    let value_type = ValueType::from_byte(value_type)?;
    Some(Value { value_type, bytes })
}

/// The text that Windows shows for a value.
pub(crate) fn shown(value: Value<'_>) -> String {
    let mut text = Vec::new();
    value.push_text(&mut text, Escaping::Plain);
    String::from_utf8(text).unwrap_or_default()
}

/// The bytes of a SID from its text; `None` if it is not the text of one.
pub(crate) fn sid(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.strip_prefix(['S', 's'])?.strip_prefix("-1-")?.split('-');
    let number = |part: &str| {
        part.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| part.parse::<u64>().ok())
    };
    let authority = number(parts.next()?)?.filter(|number| *number < 1 << 48)?;
    let subs = parts.map(|part| u32::try_from(number(part)??).ok());
    let subs = subs.collect::<Option<Vec<_>>>().filter(|subs| subs.len() <= 15)?;
    Some(binxml::Value::Sid(authority, subs).stored().1)
}

/// A text in Windows-1252; `None` if it has other characters.
pub(crate) fn ansi(text: &str) -> Option<Vec<u8>> {
    let (bytes, _, is_lossy) = WINDOWS_1252.encode(text);
    (!is_lossy).then(|| bytes.into_owned())
}

/// The bytes of a single value from a text; `None` if the text is not of the type. `size` is the size of the value that it
/// replaces, in bytes.
pub(crate) fn read(scalar: Scalar, text: &str, size: usize) -> Option<Vec<u8>> {
    Some(match scalar {
        Scalar::String => utf16(text).collect(),
        Scalar::AnsiString => ansi(text)?,
        Scalar::Int8 => text.parse::<i8>().ok()?.to_le_bytes().into(),
        Scalar::UInt8 => text.parse::<u8>().ok()?.to_le_bytes().into(),
        Scalar::Int16 => text.parse::<i16>().ok()?.to_le_bytes().into(),
        Scalar::UInt16 => text.parse::<u16>().ok()?.to_le_bytes().into(),
        Scalar::Int32 => text.parse::<i32>().ok()?.to_le_bytes().into(),
        Scalar::UInt32 => text.parse::<u32>().ok()?.to_le_bytes().into(),
        Scalar::Int64 => text.parse::<i64>().ok()?.to_le_bytes().into(),
        Scalar::UInt64 => text.parse::<u64>().ok()?.to_le_bytes().into(),
        Scalar::Real32 => text.parse::<f32>().ok()?.to_le_bytes().into(),
        Scalar::Real64 => text.parse::<f64>().ok()?.to_le_bytes().into(),
        Scalar::Bool => match text {
            "true" => 1_i32,
            "false" => 0,
            _ => text.parse().ok()?,
        }
        .to_le_bytes()
        .into(),
        Scalar::Binary => parse::bytes(text)?,
        Scalar::Guid => Uuid::from_bytes(parse::uuid(text)?).to_bytes_le().into(),
        Scalar::SizeT if size == 4 => u32::try_from(parse::number(text)?).ok()?.to_le_bytes().into(),
        Scalar::HexInt32 => u32::try_from(parse::number(text)?).ok()?.to_le_bytes().into(),
        Scalar::HexInt64 | Scalar::SizeT => parse::number(text)?.to_le_bytes().into(),
        Scalar::FileTime => unix_nanos_to_filetime(parse::instant(text)?)?.to_le_bytes().into(),
        Scalar::SystemTime => system_time(text)?,
        Scalar::Sid => sid(text)?,
        Scalar::Null | Scalar::EvtHandle | Scalar::BinXml | Scalar::EvtXml => return None,
    })
}

/// A SYSTEMTIME: eight u16, from the year to the millisecond.
fn system_time(text: &str) -> Option<Vec<u8>> {
    let time = Offset::UTC.to_datetime(text.parse::<Timestamp>().ok()?);
    let weekday = time.weekday().to_sunday_zero_offset();
    let fields = [
        i32::from(time.year()),
        time.month().into(),
        weekday.into(),
        time.day().into(),
        time.hour().into(),
        time.minute().into(),
        time.second().into(),
        time.millisecond().into(),
    ];
    let bytes = fields.map(|field| u16::try_from(field).map(u16::to_le_bytes));
    let bytes = bytes.into_iter().collect::<Result<Vec<_>, _>>();
    Some(bytes.ok()?.concat())
}

/// What replaces the value of a field, or the items of an array, by `new`: a text by the index of the item, or `None` for
/// one that stays. `Ok(None)` if nothing changes. A value that is empty stays so.
///
/// # Errors
/// The text that is not of the type, or whose value is too long.
pub(crate) fn replaced<'t>(
    value_type: u8,
    bytes: &[u8],
    new: impl Fn(usize) -> Option<&'t str>,
) -> Result<Option<Edit>, &'t str> {
    let edit = |bytes| Ok(Some(Edit { value_type, bytes }));
    let first = || new(0).unwrap_or_default();
    if bytes.is_empty() {
        return Ok(None);
    }
    let Some(value) = value(value_type, bytes) else {
        return Err(first());
    };
    if value.is_empty() {
        // Bytes that nobody sees: those after a NUL, or those of a NULL.
        return edit(Vec::new());
    }
    if !value.value_type.array {
        let Some(text) = new(0) else { return Ok(None) };
        let mut bytes = read(value.value_type.scalar, text, bytes.len()).ok_or(text)?;
        if value.value_type.scalar == Scalar::String && value.bytes.ends_with(&[0, 0]) {
            bytes.extend([0, 0]);
        }
        if bytes.len() > MAX_VALUE {
            return Err(text);
        }
        return edit(bytes);
    }
    let scalar = value.value_type.scalar;
    let end: &[u8] = match scalar {
        Scalar::String => &[0, 0],
        Scalar::AnsiString => &[0],
        _ => &[],
    };
    let mut out = Vec::new();
    let items: Vec<&[u8]> = value.items().map(|item| item.bytes).collect();
    // An array without a sound item is replaced as one item.
    let items = if items.is_empty() { vec![bytes] } else { items };
    for (index, item) in items.into_iter().enumerate() {
        // As a value, an item that is empty stays so.
        match new(index).filter(|_| !item.is_empty()) {
            Some(text) => {
                let item = read(scalar, text, item.len()).filter(|_| scalar != Scalar::Binary);
                out.extend(item.ok_or(text)?);
            }
            None => out.extend(item),
        }
        out.extend(end);
        if out.len() > MAX_VALUE {
            return Err(new(index).unwrap_or_default());
        }
    }
    edit(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows shows for a value that was read from a text this text.
    #[test]
    fn a_text_is_read_as_its_type_shows_it() {
        for (scalar, text) in [
            (Scalar::String, "a\u{e9}\u{1f600}"),
            (Scalar::AnsiString, "caf\u{e9} \u{20ac}"),
            (Scalar::Int8, "-8"),
            (Scalar::UInt8, "200"),
            (Scalar::Int16, "-300"),
            (Scalar::UInt16, "65535"),
            (Scalar::Int32, "-70000"),
            (Scalar::UInt32, "4000000000"),
            (Scalar::Int64, "-5000000000"),
            (Scalar::UInt64, "18446744073709551615"),
            (Scalar::Real32, "1.5"),
            (Scalar::Real64, "-2.25"),
            (Scalar::Bool, "true"),
            (Scalar::Binary, "00FFA0"),
            (Scalar::Guid, "{54849625-5478-4994-a5ba-3e3b0328c30d}"),
            (Scalar::SizeT, "0xffffffffff"),
            (Scalar::FileTime, "2024-03-05T10:00:00.1234567Z"),
            (Scalar::SystemTime, "2024-03-05T10:00:00.1230000Z"),
            (Scalar::Sid, "S-1-5-21-1-2-4294967295-500"),
            (Scalar::HexInt32, "0xc000006d"),
            (Scalar::HexInt64, "0x3e7"),
        ] {
            let bytes = read(scalar, text, 8).expect(text);
            assert_eq!(shown(Value::new(scalar, &bytes)), text);
            let other = if scalar == Scalar::String {
                None
            } else {
                read(scalar, "\u{416}", 8)
            };
            assert_eq!(other, None, "{scalar:?}");
        }
        for wrong in ["S-1-", "S-1-5-", "S-2-5", "S-1-5-4294967296", "S-1-5-+1", "S-1-x"] {
            assert_eq!(sid(wrong), None, "{wrong}");
        }
    }
}
