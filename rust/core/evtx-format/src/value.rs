//! Typed values, and their text as Windows shows it (MS-EVEN6, section 2.2.12, and real logs).

pub mod parse;
pub mod text;
pub mod time;
pub(crate) mod types;

use uuid::Uuid;
use uuid::fmt::Braced;

use crate::bytes::{array_at, u16_at, u32_at, u64_at};
use crate::error::{Error, ErrorKind, Result};
use text::{Escaping, push_hex_byte};
use time::SystemTime;
pub use types::{Scalar, ValueType};

/// A value: its type and its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value<'a> {
    /// The type.
    pub value_type: ValueType,
    /// The bytes, as many as the value descriptor says. Numbers in them are little endian.
    pub bytes: &'a [u8],
}

/// The little-endian number at the start of some bytes. Returns `None` from the function if they are too few.
macro_rules! number {
    ($bytes:expr, $type:ty) => {
        <$type>::from_le_bytes(array_at($bytes, 0)?)
    };
}

impl<'a> Value<'a> {
    /// A single value, not an array.
    pub fn new(scalar: Scalar, bytes: &'a [u8]) -> Self {
        let value_type = ValueType { scalar, array: false };
        Value { value_type, bytes }
    }

    /// The NULL value.
    pub fn null() -> Self {
        Value::new(Scalar::Null, &[])
    }

    /// The type of a single value; `None` for an array.
    #[inline]
    pub fn scalar(self) -> Option<Scalar> {
        (!self.value_type.array).then_some(self.value_type.scalar)
    }

    /// Whether the value is NULL, which leaves out elements that depend on it (MS-EVEN6, 2.2.12), or BinXML without
    /// bytes.
    #[inline]
    pub fn is_null(self) -> bool {
        match self.scalar() {
            Some(Scalar::Null) => true,
            Some(Scalar::BinXml) => self.bytes.is_empty(),
            _ => false,
        }
    }

    /// Whether the value is empty: then an optional substitution leaves nothing, and an attribute is left out.
    #[inline]
    pub fn is_empty(self) -> bool {
        if self.value_type.array {
            return match self.value_type.scalar {
                Scalar::Binary | Scalar::SizeT => false,
                _ => self.bytes.is_empty(),
            };
        }
        match self.value_type.scalar {
            Scalar::Null => true,
            Scalar::String => text::utf16_is_empty(self.bytes),
            Scalar::AnsiString => self.bytes.iter().all(|&b| b == 0),
            Scalar::Binary | Scalar::BinXml => self.bytes.is_empty(),
            _ => false,
        }
    }

    /// Checks that the bytes are a whole value of the type. `at` is the chunk offset of the value, for the error.
    ///
    /// # Errors
    /// [`ErrorKind::ValueSize`] if the bytes are too few, or not a whole number of units or items;
    /// [`ErrorKind::UnsupportedValue`] if the type has no text form.
    #[inline]
    pub fn check(self, at: usize) -> Result<()> {
        self.check_kind().map_err(|kind| Error::new(at, kind))
    }

    #[inline]
    fn check_kind(self) -> std::result::Result<(), ErrorKind> {
        let size = self.bytes.len();
        let scalar = self.value_type.scalar;
        let fits = if self.value_type.array {
            match (scalar, scalar.fixed_size()) {
                (Scalar::Binary | Scalar::SizeT, _) => return Err(self.unsupported()),
                (Scalar::String, _) => size == 0 || self.bytes.ends_with(&[0, 0]) && size.is_multiple_of(2),
                (Scalar::Sid, _) => {
                    let mut rest = self.bytes;
                    while let Some((_, tail)) = split_sid(rest) {
                        rest = tail;
                    }
                    rest.is_empty()
                }
                (_, Some(item)) => size.is_multiple_of(item),
                (_, None) => true,
            }
        } else {
            match (scalar, scalar.fixed_size()) {
                (Scalar::EvtHandle | Scalar::EvtXml, _) => return Err(self.unsupported()),
                (Scalar::String, _) => size.is_multiple_of(2),
                (Scalar::SizeT, _) => size == 4 || size == 8,
                (Scalar::Sid, _) => split_sid(self.bytes).is_some(),
                (_, Some(fixed)) => size >= fixed,
                (_, None) => true,
            }
        };
        if fits {
            return Ok(());
        }
        Err(ErrorKind::ValueSize {
            value_type: self.value_type.to_byte(),
            size,
        })
    }

    #[cold]
    fn unsupported(self) -> ErrorKind {
        ErrorKind::UnsupportedValue(self.value_type.to_byte())
    }

    /// The items of an array value, as single values. A value that is not an array has no items.
    pub fn items(self) -> Items<'a> {
        Items {
            scalar: self.value_type.scalar,
            rest: if self.value_type.array { self.bytes } else { &[] },
            numbers: self.value_type.scalar == Scalar::Bool && has_bit_masks(self.bytes),
        }
    }

    /// Whether the value is an array of two or more items, which repeats its element (MS-EVEN6, section 3.1.4.7.5).
    pub fn repeats(self) -> bool {
        self.value_type.array && self.items().nth(1).is_some()
    }

    /// The item of an array of one item, which is shown as the item; any other value itself.
    #[inline(always)]
    pub fn single(self) -> Self {
        if !self.value_type.array {
            return self;
        }
        let mut items = self.items();
        match (items.next(), items.next()) {
            (Some(item), None) => item,
            _ => self,
        }
    }

    /// Whether JSON shows the value without quotes: a single integer or boolean.
    pub fn is_json_literal(self) -> bool {
        use Scalar::*;
        matches!(
            self.scalar(),
            Some(Int8 | UInt8 | Int16 | UInt16 | Int32 | UInt32 | Int64 | UInt64 | Bool)
        )
    }

    /// The text of a string, a number, a hexadecimal number or a SID, if it is ASCII of at most twelve
    /// characters: the characters as the bytes of a number, the first one in the lowest byte, and how many there are.
    /// `None` for other values. The text is the one that [`push_text`](Self::push_text) appends in [`Escaping::Plain`].
    ///
    /// Most values of events have such a text, which stays in registers.
    #[inline(always)]
    pub fn short_text(self) -> Option<(u128, usize)> {
        match self.scalar()? {
            Scalar::String => text::short_ascii(self.bytes),
            Scalar::UInt8 => Some(text::short_decimal(u32::from(*self.bytes.first()?))),
            Scalar::UInt16 => u16_at(self.bytes, 0).map(|number| text::short_decimal(number.into())),
            Scalar::UInt32 => u32_at(self.bytes, 0)
                .filter(|&number| number < 100_000_000)
                .map(text::short_decimal),
            Scalar::HexInt32 => u32_at(self.bytes, 0).map(text::short_hex),
            Scalar::HexInt64 => u32::try_from(u64_at(self.bytes, 0)?).ok().map(text::short_hex),
            Scalar::Sid => short_sid(self.bytes),
            _ => None,
        }
    }

    /// The texts in a binary value, joined by line breaks. `None` unless the value is UTF-16LE with a NUL after each text, and
    /// without other control characters than tab, LF and CR. It has at least four characters, as fewer may be a number, and is
    /// not text of 8 bits.
    pub fn payload_text(self) -> Option<String> {
        let bytes = (self.scalar() == Some(Scalar::Binary)).then_some(self.bytes)?;
        let is_ascii = |text: &[u8]| text.iter().all(|byte| matches!(byte, b' '..=b'~'));
        let end = bytes.iter().rposition(|byte| *byte != 0)? + 1;
        if is_ascii(&bytes[..end]) {
            return None;
        }
        let text = encoding_rs::UTF_16LE.decode_without_bom_handling_and_without_replacement(bytes)?;
        let texts = text.strip_suffix('\0')?.trim_end_matches('\0');
        let is_text = |c: char| !c.is_control() || matches!(c, '\0' | '\t' | '\n' | '\r');
        let characters = texts.chars().filter(|c| *c != '\0').count();
        (characters >= 4 && texts.chars().all(is_text)).then(|| texts.replace('\0', "\n"))
    }

    /// Appends the text that Windows shows, as UTF-8, escaped for its place. Commas separate the items of an array.
    ///
    /// A value that does not pass [`Value::check`] appends what can be read of it, or nothing.
    #[inline]
    pub fn push_text(self, out: &mut Vec<u8>, escaping: Escaping) {
        if !self.value_type.array {
            self.push_scalar(out, escaping);
            return;
        }
        for (i, item) in self.items().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            item.push_scalar(out, escaping);
        }
    }

    /// Returns `None`, and appends nothing, if the bytes are too few.
    fn push_scalar(self, out: &mut Vec<u8>, escaping: Escaping) -> Option<()> {
        let bytes = self.bytes;
        match self.value_type.scalar {
            Scalar::Null | Scalar::BinXml | Scalar::EvtHandle | Scalar::EvtXml => {}
            Scalar::String => text::push_utf16(out, bytes, escaping),
            Scalar::AnsiString => text::push_ansi(out, bytes, escaping),
            Scalar::Int8 => push_integer(out, number!(bytes, i8)),
            Scalar::UInt8 => push_unsigned(out, number!(bytes, u8).into()),
            Scalar::Int16 => push_integer(out, number!(bytes, i16)),
            Scalar::UInt16 => push_unsigned(out, number!(bytes, u16).into()),
            Scalar::Int32 => push_integer(out, number!(bytes, i32)),
            Scalar::UInt32 => push_unsigned(out, number!(bytes, u32)),
            Scalar::Int64 => push_integer(out, number!(bytes, i64)),
            Scalar::UInt64 => push_integer(out, number!(bytes, u64)),
            Scalar::Real32 => push_float(out, number!(bytes, f32)),
            Scalar::Real64 => push_float(out, number!(bytes, f64)),
            Scalar::Bool => match number!(bytes, i32) {
                0 => out.extend_from_slice(b"false"),
                1 => out.extend_from_slice(b"true"),
                mask => push_integer(out, mask),
            },
            Scalar::Binary => {
                out.reserve(bytes.len() * 2);
                for &byte in bytes {
                    push_hex_byte(out, byte, b"0123456789ABCDEF");
                }
            }
            Scalar::Guid => {
                let guid = Uuid::from_bytes_le(array_at(bytes, 0)?);
                out.extend_from_slice(guid.braced().encode_lower(&mut [0; Braced::LENGTH]).as_bytes());
            }
            Scalar::SizeT | Scalar::HexInt32 | Scalar::HexInt64 => push_hex(out, self.to_u64()?),
            Scalar::FileTime => time::push_time(out, time::shown_filetime(number!(bytes, u64))),
            Scalar::SystemTime => time::push_time(out, Some(SystemTime::read(bytes)?.shown())),
            Scalar::Sid => push_sid(out, bytes),
        }
        Some(())
    }

    /// The number in an integer, a hexadecimal value, or a boolean that holds a bit mask; `None` for any other value, and
    /// for a negative bit mask.
    #[inline]
    pub fn to_i128(self) -> Option<i128> {
        use Scalar::*;
        let bytes = self.bytes;
        Some(match self.scalar()? {
            Int8 => number!(bytes, i8).into(),
            UInt8 => number!(bytes, u8).into(),
            Int16 => number!(bytes, i16).into(),
            UInt16 => number!(bytes, u16).into(),
            Int32 => number!(bytes, i32).into(),
            UInt32 | HexInt32 => number!(bytes, u32).into(),
            Int64 => number!(bytes, i64).into(),
            UInt64 | HexInt64 => number!(bytes, u64).into(),
            Bool => Some(number!(bytes, i32)).filter(|&mask| mask > 1)?.into(),
            SizeT => u64_at(bytes, 0).or_else(|| u32_at(bytes, 0).map(u64::from))?.into(),
            _ => return None,
        })
    }

    /// As [`to_i128`](Self::to_i128), but `None` for a negative number.
    #[inline]
    pub fn to_u64(self) -> Option<u64> {
        u64::try_from(self.to_i128()?).ok()
    }

    /// The number in a floating-point, integer or hexadecimal value, rounded to an f64; `None` for any other value.
    pub fn to_f64(self) -> Option<f64> {
        match self.scalar()? {
            Scalar::Real32 => Some(number!(self.bytes, f32).into()),
            Scalar::Real64 => Some(number!(self.bytes, f64)),
            // A boolean is not a number, not even one that holds a bit mask.
            Scalar::Bool => None,
            _ => self.to_i128().map(|number| number as f64),
        }
    }

    /// The instant of a time in nanoseconds since 1970-01-01 UTC; `None` if it does not fit, and for other values.
    #[inline]
    pub fn to_unix_nanos(self) -> Option<i64> {
        match self.scalar()? {
            Scalar::FileTime => time::filetime_to_unix_nanos(u64_at(self.bytes, 0)?),
            Scalar::SystemTime => SystemTime::read(self.bytes)?.to_unix_nanos(),
            _ => None,
        }
    }

    /// The 16 bytes of a GUID in the order of its text, which is big endian (RFC 4122); `None` for any other value.
    #[inline]
    pub fn to_uuid(self) -> Option<[u8; 16]> {
        match self.scalar()? {
            Scalar::Guid => Some(Uuid::from_bytes_le(array_at(self.bytes, 0)?).into_bytes()),
            _ => None,
        }
    }
}

/// The items of an array value. Made by [`Value::items`].
#[derive(Debug, Clone)]
pub struct Items<'a> {
    scalar: Scalar,
    rest: &'a [u8],
    /// Whether the items are booleans and one of them holds a bit mask. All of them are shown as numbers then.
    numbers: bool,
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let (item, rest) = match (self.scalar, self.scalar.fixed_size()) {
            (_, Some(size)) => self.rest.split_at_checked(size)?,
            (Scalar::String, _) => {
                let end = self.rest.chunks_exact(2).position(|unit| unit == [0, 0])? * 2;
                (&self.rest[..end], &self.rest[end + 2..])
            }
            // The last item may lack its NUL.
            (Scalar::AnsiString, _) => {
                let end = memchr::memchr(0, self.rest).unwrap_or(self.rest.len());
                (&self.rest[..end], self.rest.get(end + 1..).unwrap_or(&[]))
            }
            (Scalar::Sid, _) => split_sid(self.rest)?,
            _ => return None,
        };
        self.rest = rest;
        let scalar = if self.numbers { Scalar::Int32 } else { self.scalar };
        Some(Value::new(scalar, item))
    }
}

fn has_bit_masks(bools: &[u8]) -> bool {
    bools.chunks_exact(4).any(|b| !matches!(b, [0 | 1, 0, 0, 0]))
}

/// Splits off the SID at the start of `bytes`: revision u8, count u8, authority u48 (big endian), sub-authorities u32.
fn split_sid(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let count = usize::from(*bytes.get(1)?);
    bytes.split_at_checked(8 + 4 * count)
}

fn push_integer(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends a number, which mostly has at most eight digits.
#[inline]
fn push_unsigned(out: &mut Vec<u8>, number: u32) {
    if number < 100_000_000 {
        text::push_short(out, text::short_decimal(number));
    } else {
        push_integer(out, number);
    }
}

fn push_float(out: &mut Vec<u8>, number: impl zmij::Float) {
    out.extend_from_slice(zmij::Buffer::new().format(number).as_bytes());
}

fn push_hex(out: &mut Vec<u8>, number: u64) {
    if let Ok(number) = u32::try_from(number) {
        return text::push_short(out, text::short_hex(number));
    }
    let digits = (64 - number.leading_zeros()).div_ceil(4).max(1) as usize;
    let bytes = number.to_be_bytes();
    let mut text = [0; 16];
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&HEX[usize::from(byte)]);
    }
    out.extend_from_slice(b"0x");
    out.extend_from_slice(&text[16 - digits..]);
}

/// The two hexadecimal digits of each byte.
const HEX: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut hex = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        hex[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    hex
};

/// The text of a SID with one sub-authority, such as a service has, in the form of [`Value::short_text`].
#[inline]
fn short_sid(sid: &[u8]) -> Option<(u128, usize)> {
    let (&[1, 1, 0, 0, 0, 0, 0, authority @ 0..10], rest) = sid.split_first_chunk::<8>()? else {
        return None;
    };
    let part = u32_at(rest, 0).filter(|&part| part < 1_000_000)?;
    let (digits, len) = text::short_decimal(part);
    let head = u64::from_le_bytes(*b"S-1-0-\0\0") + (u64::from(authority) << 32);
    Some((u128::from(head) | digits << 48, 6 + len))
}

fn push_sid(out: &mut Vec<u8>, sid: &[u8]) {
    let Some((&[revision, count, a, b, c, d, e, f], subs)) = sid.split_first_chunk::<8>() else {
        out.extend_from_slice(b"S-?");
        return;
    };
    if revision == 1 {
        // In one write, because an Arrow string view holds the first four bytes.
        out.extend_from_slice(b"S-1-");
    } else {
        out.extend_from_slice(b"S-");
        push_integer(out, revision);
        out.push(b'-');
    }
    push_integer(out, u64::from_be_bytes([0, 0, a, b, c, d, e, f]));
    for sub in subs.chunks_exact(4).take(usize::from(count)) {
        out.push(b'-');
        push_integer(out, u32::from_le_bytes([sub[0], sub[1], sub[2], sub[3]]));
    }
}

#[cfg(test)]
mod tests {
    use super::types::{Sizes, usual_sizes};
    use super::*;

    proptest::proptest! {
        #[test]
        fn short_text_is_the_text(number: u32, shift in 0_u32..32, wide: u64) {
            for number in [number, number >> shift, 0] {
                let bytes = number.to_le_bytes();
                let wide = wide >> shift >> (number % 2 * 32);
                let wide_bytes = wide.to_le_bytes();
                let [a, b, c, d] = bytes;
                let authority = (number % 12) as u8;
                let sid = [1, 1, 0, 0, 0, 0, 0, authority, a, b, c, d];
                for (scalar, bytes, expected) in [
                    (Scalar::Sid, &sid[..], format!("S-1-{authority}-{number}")),
                    (Scalar::UInt8, &bytes[..], (number as u8).to_string()),
                    (Scalar::UInt16, &bytes, (number as u16).to_string()),
                    (Scalar::UInt32, &bytes, number.to_string()),
                    (Scalar::HexInt32, &bytes, format!("{number:#x}")),
                    (Scalar::HexInt64, &wide_bytes, format!("{wide:#x}")),
                ] {
                    let value = Value::new(scalar, bytes);
                    let mut text = Vec::new();
                    value.push_text(&mut text, Escaping::Plain);
                    proptest::prop_assert_eq!(&text, expected.as_bytes());
                    match value.short_text() {
                        Some((short, len)) => {
                            proptest::prop_assert_eq!(&short.to_le_bytes()[..len], &text);
                            proptest::prop_assert_eq!(short >> (8 * len), 0);
                        }
                        None => proptest::prop_assert!(text.len() > 8 || scalar == Scalar::Sid && number % 12 >= 10),
                    }
                }
            }
        }
    }

    #[test]
    fn values_of_usual_sizes_pass_the_check() {
        let bytes = [0; 40];
        for byte in 0..=u8::MAX {
            for size in 0..40 {
                let value_type = ValueType::from_byte(byte);
                let value = value_type.map(|value_type| Value {
                    value_type,
                    bytes: &bytes[..size],
                });
                let passes = value.is_some_and(|value| value.check(0).is_ok());
                let is_usual = Sizes::OF_TYPES[usize::from(byte)].mismatch_bits(size as u16) == 0;
                let is_checked = value_type.is_none_or(|value_type| usual_sizes(value_type).is_none());
                assert!(passes || is_checked || !is_usual, "type {byte:#x}, size {size}");
                let fixed = value_type.and_then(|value_type| value_type.scalar.fixed_size());
                assert!(is_usual || fixed != Some(size), "type {byte:#x}, size {size}");
            }
        }
    }

    fn shown(type_byte: u8, bytes: &[u8]) -> String {
        let value_type = ValueType::from_byte(type_byte).expect("a type");
        let value = Value { value_type, bytes };
        value.check(0).expect("a valid value");
        let mut out = Vec::new();
        value.push_text(&mut out, Escaping::Plain);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_type_has_its_text() {
        let guid: Vec<u8> = (0..16).collect();
        let sid = [1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0];
        for (type_byte, bytes, text) in [
            (0, &b"skipped"[..], ""),
            (1, b"h\0i\0\0\0x\0", "hix"),
            (2, b"h\0i", "hi"),
            (3, &[0x80], "-128"),
            (4, &[0x80], "128"),
            (5, &[0, 0x80], "-32768"),
            (6, &[0, 0x80], "32768"),
            (7, &[255; 4], "-1"),
            (8, &[255; 4], "4294967295"),
            (9, &[255; 8], "-1"),
            (10, &[255; 8], "18446744073709551615"),
            (11, &1.5f32.to_le_bytes(), "1.5"),
            (12, &0.1f64.to_le_bytes(), "0.1"),
            (13, &[1, 0, 0, 0], "true"),
            (13, &[0, 0, 0, 0], "false"),
            (13, &[2, 0, 0, 0], "2"),
            (14, &[0, 0xab, 0xff], "00ABFF"),
            (15, &guid, "{03020100-0504-0706-0809-0a0b0c0d0e0f}"),
            (16, &[16, 0, 0, 0], "0x10"),
            (16, &[0; 8], "0x0"),
            (17, &[0; 8], "1601-01-01T00:00:00.0000000Z"),
            (18, &[0; 16], "1601-01-01T00:00:00.0000000Z"),
            (19, &sid, "S-1-5-32-544"),
            (20, &[0xef, 0xbe, 0xad, 0xde], "0xdeadbeef"),
            (21, &[0, 0, 0, 0, 0, 0, 0x20, 0x80], "0x8020000000000000"),
            (33, &[], ""),
            (0x81, b"a\0\0\0\0\0b\0\0\0", "a,,b"),
            (0x82, b"a\0\0b", "a,,b"),
            (0x86, &[1, 0, 2, 0], "1,2"),
            (0x8d, &[1, 0, 0, 0, 2, 0, 0, 0], "1,2"),
            (0x8d, &[1, 0, 0, 0, 0, 0, 0, 0], "true,false"),
            (0x93, &[sid, sid].concat(), "S-1-5-32-544,S-1-5-32-544"),
        ] {
            assert_eq!(shown(type_byte, bytes), text, "type {type_byte:#x}");
        }
    }

    #[test]
    fn values_of_the_wrong_size_are_named() {
        for (type_byte, bytes) in [
            (1, &b"odd"[..]),
            (8, &[0; 3]),
            (15, &[0; 15]),
            (16, &[0; 5]),
            (19, &[1, 200, 0, 0, 0, 0, 0, 5]),
            (0x81, b"a\0b\0"),
            (0x88, &[0; 6]),
        ] {
            let value_type = ValueType::from_byte(type_byte).unwrap();
            let error = Value { value_type, bytes }.check(7).unwrap_err();
            assert_eq!(error.offset, 7);
            assert!(matches!(error.kind, ErrorKind::ValueSize { size, .. } if size == bytes.len()));
        }
        let handle = Value::new(Scalar::EvtHandle, &[0; 8]);
        assert_eq!(handle.check(0).unwrap_err().kind, ErrorKind::UnsupportedValue(32));
    }

    #[test]
    fn type_bytes_round_trip() {
        let known: Vec<u8> = (0..=255).filter(|&b| ValueType::from_byte(b).is_some()).collect();
        assert_eq!(known.len(), 25 + 21);
        for byte in known {
            assert_eq!(ValueType::from_byte(byte).unwrap().to_byte(), byte);
        }
    }

    #[test]
    fn numbers_keep_their_value_whatever_their_type() {
        assert_eq!(Value::new(Scalar::Int8, &[0xff]).to_u64(), None);
        assert_eq!(Value::new(Scalar::Int16, &[0x10, 0]).to_u64(), Some(16));
        assert_eq!(
            Value::new(Scalar::HexInt64, &[1, 0, 0, 0, 0, 0, 0, 0x80]).to_u64(),
            Some(0x8000_0000_0000_0001)
        );
        assert_eq!(Value::new(Scalar::String, b"7\0").to_u64(), None);
    }
}
