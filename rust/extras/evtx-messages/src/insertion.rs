//! The text of a value in a message. It is not always the text of the value in XML.
//!
//! | value | in XML | in a message |
//! | --- | --- | --- |
//! | hexadecimal number | `0x3e7` | `0x3E7` |
//! | pointer | `0x1f4` | `0x1f4` |
//! | time | `2020-09-19T03:22:05.1234567Z` | nine digits for the fraction; U+200E before the year and around each hyphen |
//! | address with an output type | a number, or binary | `10.0.0.1`, `[fe80::1]:445` |
//! | value with a map | a number | the text of the map |
//!
//! All other values have the text that they have in XML. Source: what Windows shows for the events of OTRF's
//! Security-Datasets, where 97,970 of 97,970 pointers with a letter have lower-case digits, and 92,996 of 92,996 hexadecimal
//! numbers upper-case ones; for output types the documentation of the manifest (`outType`).
//!
//! Windows resolves SIDs to names of accounts. This crate keeps the SID, because the names are not in the catalog.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use evtx_format::value::text::Escaping;
use evtx_format::value::{Scalar, Value, ValueType, parse};

use crate::row::{Field, ValueMap};

/// The output types that change the text of a value: `outType` of a manifest, as numbers of WEVT_TEMPLATE resources.
#[allow(missing_docs)] // the names say it
pub mod out_type {
    pub const HEX_INT8: u8 = 16;
    pub const HEX_INT16: u8 = 17;
    pub const HEX_INT32: u8 = 18;
    pub const HEX_INT64: u8 = 19;
    pub const PORT: u8 = 22;
    pub const IPV4: u8 = 23;
    pub const IPV6: u8 = 24;
    pub const SOCKET_ADDRESS: u8 = 25;
    pub const NTSTATUS: u8 = 31;
    pub const HRESULT: u8 = 32;
}

/// What an insertion is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Insertion<'a> {
    /// A value of the event.
    Value(Value<'a>),
    /// The text that a value has in XML, without escapes. The type that the provider declares tells what it is.
    Text(&'a str),
}

impl Insertion<'_> {
    /// The insertion, as the template of its event declares it. A log stores a pointer as a hexadecimal number of its size:
    /// only the template tells them apart.
    pub fn declared_as(self, declared: ValueType) -> Self {
        match self {
            Insertion::Value(Value { value_type, bytes }) if is_hex(value_type) && declared.scalar == Scalar::SizeT => {
                Insertion::Value(Value::new(Scalar::SizeT, bytes))
            }
            other => other,
        }
    }

    /// Appends the text in a message, as UTF-8. `field` is what the provider declares, and `map` the map that it names.
    pub fn push_text(self, out: &mut Vec<u8>, field: Option<&Field>, map: Option<&ValueMap>) {
        if let Some(map) = map
            && let Some(number) = self.number()
            && push_mapped(out, map, number)
        {
            return;
        }
        if let Some(field) = field
            && self.push_out_type(out, field).is_some()
        {
            return;
        }
        match self {
            Insertion::Value(value) => push_value(out, value),
            Insertion::Text(text) => push_typed_text(out, text, field.map_or(0, |field| field.in_type)),
        }
    }

    /// The number that the value is; `None` for other values.
    fn number(self) -> Option<u64> {
        match self {
            Insertion::Value(value) => match value.value_type {
                ValueType {
                    scalar: Scalar::Bool,
                    array: false,
                } => {
                    let bytes = value.bytes.first_chunk::<4>()?;
                    Some(u32::from_le_bytes(*bytes).into())
                }
                _ => value.to_u64(),
            },
            Insertion::Text("false") => Some(0),
            Insertion::Text("true") => Some(1),
            Insertion::Text(text) => number_of_text(text),
        }
    }

    /// The bits of a negative number, such as an HRESULT in an Int32; 32 of them if that is enough. `None` for other values.
    fn bits(self) -> Option<u64> {
        let number = match self {
            Insertion::Value(value) => i64::try_from(value.to_i128()?).ok()?,
            Insertion::Text(text) => text.parse().ok()?,
        };
        Some(i32::try_from(number).map_or(number.cast_unsigned(), |number| number.cast_unsigned().into()))
    }

    /// Appends the text that an output type asks for; `None` if it asks for none, or if the value does not fit it.
    fn push_out_type(self, out: &mut Vec<u8>, field: &Field) -> Option<()> {
        match field.out_type {
            out_type::HEX_INT8..=out_type::HEX_INT64 | out_type::NTSTATUS | out_type::HRESULT => {
                push_hex(out, self.number().or_else(|| self.bits())?);
            }
            out_type::PORT => push(out, u16::try_from(self.number()?).ok()?.swap_bytes()),
            out_type::IPV4 => push(out, Ipv4Addr::from(u32::try_from(self.number()?).ok()?.to_le_bytes())),
            out_type::IPV6 => match self {
                Insertion::Value(value) => push(out, Ipv6Addr::from(<[u8; 16]>::try_from(value.bytes).ok()?)),
                Insertion::Text(_) => return None,
            },
            out_type::SOCKET_ADDRESS => match self {
                Insertion::Value(value) => push_socket_address(out, value.bytes)?,
                Insertion::Text(text) => push_socket_address(out, &parse::bytes(text)?)?,
            },
            _ => return None,
        }
        Some(())
    }
}

fn is_hex(value_type: ValueType) -> bool {
    !value_type.array && matches!(value_type.scalar, Scalar::HexInt32 | Scalar::HexInt64)
}

fn push(out: &mut Vec<u8>, shown: impl std::fmt::Display) {
    let mut text = String::new();
    let _ = write!(text, "{shown}");
    out.extend_from_slice(text.as_bytes());
}

fn push_hex(out: &mut Vec<u8>, number: u64) {
    push(out, format_args!("{number:#X}").to_string().replacen("0X", "0x", 1));
}

/// The number of a text in decimal digits, or in hexadecimal ones after `0x`.
pub(crate) fn number_of_text(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn push_value(out: &mut Vec<u8>, value: Value<'_>) {
    let start = out.len();
    value.push_text(out, Escaping::Plain);
    match value.value_type.scalar {
        Scalar::HexInt32 | Scalar::HexInt64 => raise_digits(&mut out[start..]),
        Scalar::FileTime | Scalar::SystemTime if !value.value_type.array => mark_time(out, start),
        _ => {}
    }
}

/// Appends the text that a value of a type has in XML, changed to that in a message.
fn push_typed_text(out: &mut Vec<u8>, text: &str, in_type: u8) {
    let start = out.len();
    out.extend_from_slice(text.as_bytes());
    match ValueType::from_byte(in_type).map(|value_type| value_type.scalar) {
        Some(Scalar::HexInt32 | Scalar::HexInt64) => raise_digits(&mut out[start..]),
        Some(Scalar::FileTime | Scalar::SystemTime) => mark_time(out, start),
        _ => {}
    }
}

/// Makes the digits of hexadecimal numbers upper case, but not the `x`.
fn raise_digits(text: &mut [u8]) {
    for byte in text {
        if matches!(byte, b'a'..=b'f') {
            byte.make_ascii_uppercase();
        }
    }
}

/// Adds the direction marks of a time that starts at `start`, and makes its fraction nine digits long. Other text is left
/// as it is.
fn mark_time(out: &mut Vec<u8>, start: usize) {
    const MARK: &[u8] = "\u{200e}".as_bytes();
    const HYPHEN: &[u8] = "\u{200e}-\u{200e}".as_bytes();
    let Some(&[a, b, c, d, b'-', e, f, b'-', ref rest @ ..]) = out.get(start..) else {
        return;
    };
    let rest = rest.to_vec();
    out.truncate(start);
    for part in [MARK, &[a, b, c, d], HYPHEN, &[e, f], HYPHEN, &rest] {
        out.extend_from_slice(part);
    }
    // Two digits, T, hh:mm:ss, a point, and the seven digits of 100 ns.
    if rest.len() == 20 && rest.ends_with(b"Z") {
        out.pop();
        out.extend_from_slice(b"00Z");
    }
}

/// Appends the text of a map for a number. Returns false if the map has none.
fn push_mapped(out: &mut Vec<u8>, map: &ValueMap, number: u64) -> bool {
    let start = out.len();
    for (value, text) in &map.entries {
        let value = u64::from(*value);
        let applies = if map.is_bit_map {
            value & number != 0
        } else {
            value == number
        };
        if !applies {
            continue;
        }
        if out.len() > start {
            out.extend_from_slice(b" ");
        }
        out.extend_from_slice(text.trim_end_matches(['\r', '\n']).as_bytes());
        if !map.is_bit_map {
            break;
        }
    }
    out.len() > start
}

/// Appends the address in a `sockaddr_in` or `sockaddr_in6`: family u16, port u16 (big endian), then the address.
fn push_socket_address(out: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    let (&[family, 0, high, low], rest) = bytes.split_first_chunk::<4>()? else {
        return None;
    };
    let port = u16::from_be_bytes([high, low]);
    match family {
        2 => push(
            out,
            format_args!("{}:{port}", Ipv4Addr::from(*rest.first_chunk::<4>()?)),
        ),
        23 => push(
            out,
            format_args!("[{}]:{port}", Ipv6Addr::from(*rest.get(4..)?.first_chunk::<16>()?)),
        ),
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(insertion: Insertion<'_>, in_type: u8, out_type: u8) -> String {
        let field = Field {
            in_type,
            out_type,
            ..Field::default()
        };
        let mut out = Vec::new();
        insertion.push_text(&mut out, Some(&field), None);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn values_have_the_text_of_messages() {
        let time = 0x01D6_8E34_1234_5678_u64.to_le_bytes();
        for (scalar, bytes, expected) in [
            (Scalar::HexInt64, &0x3e7_u64.to_le_bytes()[..], "0x3E7"),
            (Scalar::HexInt32, &0xc000_006d_u32.to_le_bytes(), "0xC000006D"),
            (Scalar::SizeT, &0xabc_u64.to_le_bytes(), "0xabc"),
            (Scalar::UInt16, &[1, 2], "513"),
            (Scalar::Bool, &[1, 0, 0, 0], "true"),
            (Scalar::Binary, &[0xab, 0xcd], "ABCD"),
            (Scalar::Null, &[], ""),
            (Scalar::String, &[b'a', 0, 1, 0], "a\u{1}"),
            (Scalar::Sid, &[1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0], "S-1-5-18"),
            (
                Scalar::FileTime,
                &time,
                "\u{200e}2020\u{200e}-\u{200e}09\u{200e}-\u{200e}19T03:22:14.887180000Z",
            ),
        ] {
            let value = Value::new(scalar, bytes);
            assert_eq!(shown(Insertion::Value(value), scalar as u8, 0), expected);
            let mut xml = Vec::new();
            value.push_text(&mut xml, Escaping::Plain);
            let xml = String::from_utf8(xml).expect("UTF-8");
            assert_eq!(
                shown(Insertion::Text(&xml), scalar as u8, 0),
                expected,
                "from the text of XML"
            );
        }
    }

    #[test]
    fn output_types_change_the_text() {
        let address = 0x0100_000a_u32.to_le_bytes();
        let value = Insertion::Value(Value::new(Scalar::UInt32, &address));
        assert_eq!(shown(value, 8, out_type::IPV4), "10.0.0.1");
        assert_eq!(shown(value, 8, out_type::HEX_INT32), "0x100000A");
        assert_eq!(shown(value, 8, 7), "16777226");
        let denied = (-0x7ff8_fffb_i32).to_le_bytes();
        let denied = Insertion::Value(Value::new(Scalar::Int32, &denied));
        for negative in [denied, Insertion::Text("-2147024891")] {
            assert_eq!(shown(negative, 7, out_type::HRESULT), "0x80070005");
            assert_eq!(shown(negative, 7, 0), "-2147024891");
        }
        assert_eq!(shown(Insertion::Text("47873"), 6, out_type::PORT), "443");
        let sockaddr = "020001BD0A0000010000000000000000";
        assert_eq!(
            shown(Insertion::Text(sockaddr), 14, out_type::SOCKET_ADDRESS),
            "10.0.0.1:445"
        );
        let six = format!("170001BD00000000FE80{}01", "00".repeat(13));
        assert_eq!(
            shown(Insertion::Text(&six), 14, out_type::SOCKET_ADDRESS),
            "[fe80::1]:445"
        );
        assert_eq!(shown(Insertion::Text("02"), 14, out_type::SOCKET_ADDRESS), "02");
    }

    #[test]
    fn maps_name_values_and_bits() {
        let entries = vec![(1, "one\r\n".into()), (2, "two".into()), (4, "four".into())];
        let mut map = ValueMap {
            name: "m".into(),
            is_bit_map: false,
            entries,
        };
        let shown = |map: &ValueMap, text: &str| {
            let mut out = Vec::new();
            Insertion::Text(text).push_text(&mut out, None, Some(map));
            String::from_utf8(out).expect("UTF-8")
        };
        for (number, text) in [
            ("1", "one"),
            ("2", "two"),
            ("3", "3"),
            ("0x4", "four"),
            ("x", "x"),
            ("true", "one"),
        ] {
            assert_eq!(shown(&map, number), text);
        }
        map.is_bit_map = true;
        for (number, text) in [
            ("1", "one"),
            ("3", "one two"),
            ("13", "one four"),
            ("8", "8"),
            ("0", "0"),
        ] {
            assert_eq!(shown(&map, number), text);
        }
    }
}
