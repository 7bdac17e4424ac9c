//! The types of values, and their bytes in a value table.

use uuid::Uuid;

use crate::binxml::Value;

impl Value {
    /// A [`Value::String`].
    pub fn string(text: impl Into<String>) -> Self {
        Value::String(text.into())
    }

    /// The type byte (MS-EVEN6, section 2.2.12).
    pub fn value_type(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::String(_) => 1,
            Value::AnsiString(_) => 2,
            Value::Int8(_) => 3,
            Value::UInt8(_) => 4,
            Value::Int16(_) => 5,
            Value::UInt16(_) => 6,
            Value::Int32(_) => 7,
            Value::UInt32(_) => 8,
            Value::Int64(_) => 9,
            Value::UInt64(_) => 10,
            Value::Real32(_) => 11,
            Value::Real64(_) => 12,
            Value::Bool(_) => 13,
            Value::Binary(_) => 14,
            Value::Guid(_) => 15,
            Value::FileTime(_) => 17,
            Value::SystemTime(_) => 18,
            Value::Sid(..) => 19,
            Value::HexInt32(_) => 20,
            Value::HexInt64(_) => 21,
            Value::BinXml(_) => 33,
            Value::StringArray(_) => 0x81,
            Value::UInt32Array(_) => 0x88,
            Value::Raw(value_type, _) => *value_type,
        }
    }

    /// Appends the bytes of the value. Appends nothing for a BinXML value, which the chunk writes.
    pub(crate) fn push_bytes(&self, out: &mut Vec<u8>) {
        match self {
            Value::Null | Value::BinXml(_) => {}
            Value::String(text) => out.extend(utf16(text)),
            Value::AnsiString(bytes) | Value::Binary(bytes) | Value::Raw(_, bytes) => out.extend(bytes),
            Value::Int8(number) => out.extend(number.to_le_bytes()),
            Value::UInt8(number) => out.push(*number),
            Value::Int16(number) => out.extend(number.to_le_bytes()),
            Value::UInt16(number) => out.extend(number.to_le_bytes()),
            Value::Int32(number) => out.extend(number.to_le_bytes()),
            Value::UInt32(number) | Value::HexInt32(number) => out.extend(number.to_le_bytes()),
            Value::Int64(number) => out.extend(number.to_le_bytes()),
            Value::UInt64(number) | Value::HexInt64(number) | Value::FileTime(number) => {
                out.extend(number.to_le_bytes());
            }
            Value::Real32(number) => out.extend(number.to_le_bytes()),
            Value::Real64(number) => out.extend(number.to_le_bytes()),
            Value::Bool(truth) => out.extend(u32::from(*truth).to_le_bytes()),
            Value::Guid(guid) => out.extend(Uuid::from_bytes(*guid).to_bytes_le()),
            Value::SystemTime(fields) => out.extend(fields.iter().flat_map(|field| field.to_le_bytes())),
            Value::Sid(authority, subs) => {
                out.extend([1, subs.len() as u8]);
                out.extend(&authority.to_be_bytes()[2..]);
                out.extend(subs.iter().flat_map(|sub| sub.to_le_bytes()));
            }
            Value::StringArray(items) => {
                for item in items {
                    out.extend(utf16(item));
                    out.extend([0, 0]);
                }
            }
            Value::UInt32Array(items) => out.extend(items.iter().flat_map(|item| item.to_le_bytes())),
        }
    }
}

/// UTF-16LE, without a NUL.
pub(crate) fn utf16(text: &str) -> impl Iterator<Item = u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes)
}
