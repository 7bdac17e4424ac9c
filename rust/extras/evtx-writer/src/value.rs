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
        self.stored().0
    }

    /// The type byte, and the bytes in a value table. Without the bytes of a BinXML value, which the chunk writes.
    pub(crate) fn stored(&self) -> (u8, Vec<u8>) {
        match self {
            Value::Null => (0, Vec::new()),
            Value::String(text) => (1, utf16(text).collect()),
            Value::AnsiString(bytes) => (2, bytes.clone()),
            Value::Int8(number) => (3, number.to_le_bytes().into()),
            Value::UInt8(number) => (4, number.to_le_bytes().into()),
            Value::Int16(number) => (5, number.to_le_bytes().into()),
            Value::UInt16(number) => (6, number.to_le_bytes().into()),
            Value::Int32(number) => (7, number.to_le_bytes().into()),
            Value::UInt32(number) => (8, number.to_le_bytes().into()),
            Value::Int64(number) => (9, number.to_le_bytes().into()),
            Value::UInt64(number) => (10, number.to_le_bytes().into()),
            Value::Real32(number) => (11, number.to_le_bytes().into()),
            Value::Real64(number) => (12, number.to_le_bytes().into()),
            Value::Bool(truth) => (13, u32::from(*truth).to_le_bytes().into()),
            Value::Binary(bytes) => (14, bytes.clone()),
            Value::Guid(guid) => (15, Uuid::from_bytes(*guid).to_bytes_le().into()),
            Value::FileTime(number) => (17, number.to_le_bytes().into()),
            Value::SystemTime(fields) => (18, fields.iter().flat_map(|field| field.to_le_bytes()).collect()),
            Value::Sid(authority, subs) => {
                let head = [&[1, subs.len() as u8], &authority.to_be_bytes()[2..]].concat();
                (
                    19,
                    head.into_iter()
                        .chain(subs.iter().flat_map(|sub| sub.to_le_bytes()))
                        .collect(),
                )
            }
            Value::HexInt32(number) => (20, number.to_le_bytes().into()),
            Value::HexInt64(number) => (21, number.to_le_bytes().into()),
            Value::BinXml(_) => (33, Vec::new()),
            Value::StringArray(items) => (0x81, items.iter().flat_map(|item| utf16(item).chain([0, 0])).collect()),
            Value::UInt32Array(items) => (0x88, items.iter().flat_map(|item| item.to_le_bytes()).collect()),
            Value::Raw(value_type, bytes) => (*value_type, bytes.clone()),
        }
    }
}

/// UTF-16LE, without a NUL.
pub(crate) fn utf16(text: &str) -> impl Iterator<Item = u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes)
}

/// A text from UTF-16LE. U+FFFD replaces what is not text.
pub(crate) fn from_utf16(bytes: &[u8]) -> String {
    let units = bytes.as_chunks::<2>().0.iter();
    let units: Vec<u16> = units.map(|unit| u16::from_le_bytes(*unit)).collect();
    String::from_utf16_lossy(&units)
}
