//! A check of JSON: whether a text is JSON, whether a name occurs twice in an object, and whether values have the types that the
//! reader of the text expects. One pass, which keeps only the names of open objects.

use std::borrow::Cow;
use std::fmt::Write;
use std::hash::BuildHasher;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;

use evtx_format::{Interrupt, Interrupted};
use hashbrown::{DefaultHashBuilder, HashTable};
use jiff::civil::Date;
use serde_json::Value;

/// How deep values may be nested. Exports have some ten levels.
const MAX_DEPTH: usize = 1000;

/// How many bytes are read between two checks for an interrupt.
const UNCHECKED: usize = 1 << 16;

/// How many characters of a name are in an error.
const MAX_NAME: usize = 100;

/// Objects with fewer names compare each with all others.
const FEW: usize = 16;

/// The objects with the fields of an event. An event can have several fields of one name, and readers number them.
const FIELDS: [&str; 2] = ["EventData", "event_data"];

/// Names in such an object that are not fields.
const PARTS: [&str; 5] = ["Data", "Binary", "Name", "#text", "#attributes"];

/// The objects with the element in `UserData` of an event.
const ELEMENTS: [&str; 2] = ["UserData", "user_data"];

/// The end of the name of a member that is never missing.
const ALWAYS: char = '!';

/// The times that fit a TIMESTAMP_NS: their years, and as seconds since 1970.
const YEARS: RangeInclusive<i16> = 1678..=2261;
const SECONDS: Range<f64> = -9_214_560_000.0..9_214_646_400.0;

/// The time 0 of Windows, which means that there is none: the start of its text, and as seconds since 1970.
const NO_TIME: &[u8] = b"1601-01-01T00:00:00";
const NO_SECONDS: f64 = -11_644_473_600.0;

/// The types that the values of a JSON document should have. They are those that `from_json` takes, as in
/// `{"Version": "UTINYINT"}`, and some that [`JsonTypes::columns`] replaces:
///
/// - `TIMESTAMP_NS` is a time, as a text. `SECONDS` is one as a number since 1970.
/// - `HEX` is a whole number of 64 bits, in decimal, or in hexadecimal after `0x`.
/// - `NAME` is a text that is not a number.
/// - A list has types of which the value has one. One of them can be `null`.
/// - A member whose name ends in `!` is never missing, and never null, unless `null` is one of its types.
///
/// Values without a type can have any.
#[derive(Debug, Clone)]
pub struct JsonTypes(Type);

/// The type of a value.
#[derive(Debug, Clone)]
enum Type {
    Any,
    Null,
    OneOf(Vec<Type>),
    /// The type of a member that is never missing.
    Always(Box<Type>),
    /// An object whose names can occur again.
    Fields,
    Object(Vec<(Box<str>, Type)>),
    Text,
    Name,
    Guid,
    /// A whole number up to this one.
    Whole(u64),
    Hex,
    Time,
    Seconds,
}

impl Default for JsonTypes {
    fn default() -> Self {
        JsonTypes(Type::Any)
    }
}

impl FromStr for JsonTypes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let types: Value = serde_json::from_str(text).map_err(|why| why.to_string())?;
        Ok(JsonTypes(Type::of("", &types)?))
    }
}

impl JsonTypes {
    /// The same types for `from_json`. It gets texts where it would convert otherwise, and JSON where a value has one of
    /// several types.
    ///
    /// # Errors
    /// Why the text is not JSON.
    pub fn columns(text: &str) -> Result<String, String> {
        let types: Value = serde_json::from_str(text).map_err(|why| why.to_string())?;
        Ok(columns(&types).to_string())
    }
}

fn columns(types: &Value) -> Value {
    match types {
        Value::Object(members) => {
            let member = |(name, own): (&String, &Value)| (name.trim_end_matches(ALWAYS).to_owned(), columns(own));
            members.iter().map(member).collect()
        }
        Value::Array(all) => match all.iter().any(Value::is_object) {
            true => "JSON".into(),
            false => "VARCHAR".into(),
        },
        Value::String(name) if ["TIMESTAMP_NS", "SECONDS", "NAME"].contains(&name.as_str()) => "VARCHAR".into(),
        Value::String(name) if name == "HEX" => "UBIGINT".into(),
        other => other.clone(),
    }
}

impl Type {
    fn of(name: &str, value: &Value) -> Result<Type, String> {
        Ok(match value {
            Value::Object(members) => {
                let member = |(name, value): (&String, &Value)| {
                    let own = Type::of(name.trim_end_matches(ALWAYS), value)?;
                    Ok(match name.strip_suffix(ALWAYS) {
                        Some(name) => (name.into(), Type::Always(own.into())),
                        None => (name.as_str().into(), own),
                    })
                };
                Type::Object(members.iter().map(member).collect::<Result<_, String>>()?)
            }
            Value::Array(all) => Type::OneOf(all.iter().map(|own| Type::of(name, own)).collect::<Result<_, _>>()?),
            Value::Null => Type::Null,
            Value::String(text) => match text.as_str() {
                "JSON" if FIELDS.contains(&name) => Type::Fields,
                "JSON" if ELEMENTS.contains(&name) => Type::Object(Vec::new()),
                "JSON" => Type::Any,
                "VARCHAR" => Type::Text,
                "NAME" => Type::Name,
                "UUID" => Type::Guid,
                "HEX" => Type::Hex,
                "TIMESTAMP_NS" => Type::Time,
                "SECONDS" => Type::Seconds,
                "UTINYINT" => Type::Whole(u8::MAX.into()),
                "USMALLINT" => Type::Whole(u16::MAX.into()),
                "UINTEGER" => Type::Whole(u32::MAX.into()),
                "UBIGINT" => Type::Whole(u64::MAX),
                other => return Err(format!("unknown type {other}")),
            },
            other => return Err(format!("expected a type or an object of types, not {other}")),
        })
    }

    /// The type of a member.
    fn member(&self, name: &[u8]) -> &Type {
        let members = match self {
            Type::Object(members) => &members[..],
            _ => &[],
        };
        let found = members.iter().find(|(known, _)| known.as_bytes() == name);
        found.map_or(&Type::Any, |(_, own)| own)
    }

    /// The first member that an object with some names lacks.
    fn missing(&self, has: impl Fn(&str) -> bool) -> Option<&str> {
        let Type::Object(members) = self else { return None };
        let is_missing = |(name, own): &&(Box<str>, Type)| matches!(own, Type::Always(_)) && !has(name);
        members.iter().find(is_missing).map(|(name, _)| &**name)
    }

    /// The type without what is around it: that one of several which the value has.
    fn of_value(&self, value: &Found<'_>) -> &Type {
        match self {
            Type::Always(own) => own.of_value(value),
            Type::OneOf(all) => all
                .iter()
                .find(|own| own.rejection(value).is_none())
                .unwrap_or(&Type::Any),
            own => own,
        }
    }

    /// What is wrong with a value, if anything is. NULL and empty texts stand for no value, unless there is always one.
    fn rejection(&self, value: &Found<'_>) -> Option<String> {
        match (self, value) {
            (Type::Always(own), value) => own.mismatch(value),
            (_, Found::Null) => None,
            (_, Found::Text(text)) if text.is_empty() => None,
            (own, value) => own.mismatch(value),
        }
    }

    fn mismatch(&self, value: &Found<'_>) -> Option<String> {
        let (is_right, expected) = match (self, value) {
            (Type::OneOf(all), value) => {
                let mut mismatches = all.iter().map(|own| own.mismatch(value));
                let first = mismatches.next().flatten();
                return first.filter(|_| mismatches.all(|other| other.is_some()));
            }
            (Type::Any | Type::Always(_), _) | (Type::Null, Found::Null) => return None,
            (_, Found::Null) => return Some("null".to_owned()),
            (Type::Null, _) => (false, "not null"),
            (Type::Fields | Type::Object(_), value) => (matches!(value, Found::Object), "not an object"),
            (Type::Text, value) => (!matches!(value, Found::Object | Found::List), "not a text"),
            (Type::Name, Found::Text(text)) => (!is_number(text), "not a name"),
            (Type::Name, _) => (false, "not a name"),
            (Type::Guid, Found::Text(text)) => (is_guid(text), "not a GUID"),
            (Type::Guid, _) => (false, "not a GUID"),
            (Type::Time, Found::Text(text)) => (is_time(text), "not a time"),
            (Type::Seconds, Found::Number(text)) => (is_seconds(text), "not a time"),
            (Type::Time | Type::Seconds, _) => (false, "not a time"),
            (Type::Hex, Found::Text(text)) if is_hex(text) => return None,
            (Type::Whole(_) | Type::Hex, value) => {
                let most = if let Type::Whole(most) = self { *most } else { u64::MAX };
                let number = match value {
                    Found::Text(text) => whole(text),
                    Found::Number(text) => whole(text),
                    _ => None,
                };
                if number.is_some_and(|number| number > u128::from(most)) {
                    return Some(format!("larger than {most}"));
                }
                (number.is_some(), "not a whole number")
            }
        };
        (!is_right).then(|| expected.to_owned())
    }
}

fn is_number(text: &[u8]) -> bool {
    str::from_utf8(text).is_ok_and(|text| text.trim().parse::<f64>().is_ok_and(f64::is_finite))
}

/// Whether a text is a hexadecimal number of 64 bits.
fn is_hex(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"0x").unwrap_or_default();
    (1..=16).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit)
}

/// Whether a number of seconds since 1970 is a time.
fn is_seconds(text: &[u8]) -> bool {
    let seconds = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    seconds.is_some_and(|seconds: f64| SECONDS.contains(&seconds) || seconds == NO_SECONDS)
}

/// Whether a text is a time such as `2024-03-01 12:00:00.123456789+01:00`. Offsets are those that `jiff` takes in XML.
fn is_time(text: &[u8]) -> bool {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00";
    let Some((start, rest)) = text.split_at_checked(SHAPE.len()) else {
        return false;
    };
    let is_shaped = start.iter().zip(SHAPE).all(|(byte, shape)| match shape {
        b'0' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b' '),
        shape => byte == shape,
    });
    if !is_shaped {
        return false;
    }
    let number = |at: Range<usize>| {
        start[at]
            .iter()
            .fold(0, |number, digit| number * 10 + i16::from(digit - b'0'))
    };
    let year = number(0..4);
    let is_date = Date::new(year, number(5..7) as i8, number(8..10) as i8).is_ok();
    let has_year = YEARS.contains(&year) || start == NO_TIME;
    let is_in_day = number(11..13) < 24 && number(14..16) < 60 && number(17..19) < 60;
    let zone = match rest.strip_prefix(b".") {
        Some(fraction) => match fraction.iter().take_while(|byte| byte.is_ascii_digit()).count() {
            0 => return false,
            len => &fraction[len..],
        },
        None => rest,
    };
    let is_zone = match zone {
        b"" | b"Z" => true,
        [b'+' | b'-', hours @ .., b':', b'0'..=b'5', b'0'..=b'9'] => {
            matches!(hours, [b'0' | b'1', b'0'..=b'9'] | [b'2', b'0'..=b'5'])
        }
        _ => false,
    };
    has_year && is_date && is_in_day && is_zone
}

/// A whole number: digits, perhaps with a fraction of zeros.
fn whole(text: &[u8]) -> Option<u128> {
    let text = str::from_utf8(text).ok()?;
    let (digits, zeros) = text.split_once('.').unwrap_or((text, "0"));
    let is_whole = |text: &str, allowed: fn(u8) -> bool| !text.is_empty() && text.bytes().all(allowed);
    if !is_whole(digits, |byte| byte.is_ascii_digit()) || !is_whole(zeros, |byte| byte == b'0') {
        return None;
    }
    Some(digits.parse().unwrap_or(u128::MAX))
}

fn is_guid(text: &[u8]) -> bool {
    let inner = text.strip_prefix(b"{").and_then(|text| text.strip_suffix(b"}"));
    let text = inner.unwrap_or(text);
    text.len() == 36
        && text.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// A value of a document.
enum Found<'t> {
    Object,
    List,
    /// Without quotes and escapes. If its type takes any text, the escapes stay.
    Text(Cow<'t, [u8]>),
    Number(&'t [u8]),
    Flag,
    Null,
}

/// What a check finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonCheck {
    /// Nothing is wrong.
    Valid,
    /// The text is JSON. Holds the first thing that is wrong with its names and values.
    Odd(String),
    /// The text is not JSON. Holds why.
    NotJson(String),
}

/// Checks a text. Without types, only whether it is JSON.
///
/// # Errors
/// [`Interrupted`].
pub fn check_json(text: &str, types: Option<&JsonTypes>, interrupt: Interrupt<'_>) -> Result<JsonCheck, Interrupted> {
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        at: 0,
        looked: 0,
        names: Vec::with_capacity(64),
        unescaped: Vec::new(),
        open: Vec::with_capacity(16),
        odd: types.is_none().then(String::new),
        interrupt,
    };
    match scanner.document(types.map_or(&Type::Any, |types| &types.0)) {
        Ok(()) => Ok(scanner
            .odd
            .filter(|odd| !odd.is_empty())
            .map_or(JsonCheck::Valid, JsonCheck::Odd)),
        Err(Stop::NotJson) => Ok(JsonCheck::NotJson("it is not JSON".to_owned())),
        Err(Stop::TooDeep) => Ok(JsonCheck::NotJson(format!("it nests more than {MAX_DEPTH} values"))),
        Err(Stop::Interrupted(interrupted)) => Err(interrupted),
    }
}

/// JSON without the escapes of NUL in its texts: readers of logs leave NULs out.
pub fn without_nuls(json: &str) -> Cow<'_, str> {
    const NUL: &str = "\\u0000";
    if !json.contains(NUL) {
        return json.into();
    }
    let (mut kept, mut rest) = (String::with_capacity(json.len()), json);
    while let Some((before, _)) = rest.split_once('\\') {
        let escape = &rest[before.len()..];
        kept.push_str(before);
        rest = escape.strip_prefix(NUL).unwrap_or_else(|| {
            // The character after the backslash can be another one.
            let end = escape.char_indices().nth(2).map_or(escape.len(), |(end, _)| end);
            kept.push_str(&escape[..end]);
            &escape[end..]
        });
    }
    kept.push_str(rest);
    kept.into()
}

/// Why a scan ends early.
enum Stop {
    NotJson,
    TooDeep,
    Interrupted(Interrupted),
}

/// A name in the text, or among those without their escapes.
#[derive(Clone, Copy)]
struct Name {
    start: u32,
    len: u32,
    is_unescaped: bool,
    /// Its length and some of its letters: names that differ here need no other look.
    mark: u32,
}

fn mark_of(name: &[u8]) -> u32 {
    let letter = |at: usize| name.get(at).copied().unwrap_or_default();
    u32::from_le_bytes([
        name.len() as u8,
        letter(0),
        letter(name.len() / 2),
        letter(name.len().wrapping_sub(1)),
    ])
}

/// How many bytes of a text come before a quote, an escape, or a byte that needs one. All of them if there is none.
fn plain(text: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    let (words, rest) = text.as_chunks();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let (quote, escape) = (word ^ (ONES * 0x22), word ^ (ONES * 0x5C));
        // The lowest high bit is that of the first such byte.
        let found = quote.wrapping_sub(ONES) & !quote
            | escape.wrapping_sub(ONES) & !escape
            | word.wrapping_sub(ONES * 0x20) & !word;
        let found = found & (ONES << 7);
        if found != 0 {
            return at * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let is_other = |byte: &u8| *byte < b' ' || *byte == b'"' || *byte == b'\\';
    words.len() * 8 + rest.iter().position(is_other).unwrap_or(rest.len())
}

/// An open object or list.
struct Level<'y> {
    /// The type of an object; `None` for a list.
    object: Option<&'y Type>,
    /// The index of its first name.
    first: usize,
}

struct Scanner<'t, 'y, 'i> {
    bytes: &'t [u8],
    at: usize,
    /// Where the interrupt was checked.
    looked: usize,
    /// The names of the open objects, one after the other.
    names: Vec<Name>,
    /// The names that are written with escapes, without these.
    unescaped: Vec<u8>,
    open: Vec<Level<'y>>,
    /// The first thing that is wrong with names and values. Then no more is looked for.
    odd: Option<String>,
    interrupt: Interrupt<'i>,
}

impl<'t, 'y> Scanner<'t, 'y, '_> {
    fn document(&mut self, types: &'y Type) -> Result<(), Stop> {
        let mut expected = types;
        loop {
            self.space();
            let mut is_closed = true;
            let value = match self.peek() {
                Some(open @ (b'{' | b'[')) => {
                    is_closed = false;
                    self.at += 1;
                    if open == b'{' { Found::Object } else { Found::List }
                }
                Some(b'"') => {
                    let start = self.at + 1;
                    let (text, has_escapes) = self.text()?;
                    let is_any = self.odd.is_some() || matches!(expected, Type::Any | Type::Text);
                    Found::Text(if is_any || !has_escapes {
                        text.into()
                    } else {
                        self.unescaped(start, text.len())?.into()
                    })
                }
                Some(b'-' | b'0'..=b'9') => Found::Number(self.number()?),
                Some(b't') => self.word(b"true", Found::Flag)?,
                Some(b'f') => self.word(b"false", Found::Flag)?,
                Some(b'n') => self.word(b"null", Found::Null)?,
                _ => return Err(Stop::NotJson),
            };
            if self.odd.is_none()
                && let Some(why) = expected.rejection(&value)
            {
                let path = self.path();
                let path = if path.is_empty() { "it" } else { &path };
                self.odd = Some(format!("{path} is {why}"));
            }
            if self.at - self.looked >= UNCHECKED {
                self.looked = self.at;
                self.interrupt.check().map_err(Stop::Interrupted)?;
            }
            if !is_closed {
                if self.open.len() == MAX_DEPTH {
                    return Err(Stop::TooDeep);
                }
                let is_object = matches!(value, Found::Object);
                expected = expected.of_value(&value);
                self.open.push(Level {
                    object: is_object.then_some(expected),
                    first: self.names.len(),
                });
                self.space();
                match (self.peek(), is_object) {
                    (Some(b'}'), true) | (Some(b']'), false) => {}
                    (_, true) => {
                        expected = self.name(expected)?;
                        continue;
                    }
                    (_, false) => {
                        expected = &Type::Any;
                        continue;
                    }
                }
            }
            // After a value.
            loop {
                self.space();
                let Some(level) = self.open.last() else {
                    return if self.at == self.bytes.len() {
                        Ok(())
                    } else {
                        Err(Stop::NotJson)
                    };
                };
                let (byte, object) = (self.peek(), level.object);
                self.at += 1;
                match (byte, object) {
                    (Some(b','), Some(object)) => {
                        self.space();
                        expected = self.name(object)?;
                        break;
                    }
                    (Some(b','), None) => {
                        expected = &Type::Any;
                        break;
                    }
                    (Some(b'}'), Some(object)) => self.end_object(object)?,
                    (Some(b']'), None) => {}
                    _ => return Err(Stop::NotJson),
                }
                self.open.pop();
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &[u8], value: Found<'t>) -> Result<Found<'t>, Stop> {
        if !self.bytes[self.at..].starts_with(word) {
            return Err(Stop::NotJson);
        }
        self.at += word.len();
        Ok(value)
    }

    fn digits(&mut self) -> Result<(), Stop> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(Stop::NotJson) }
    }

    fn number(&mut self) -> Result<&'t [u8], Stop> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'-' | b'+')));
            self.digits()?;
        }
        Ok(&self.bytes[start..self.at])
    }

    /// A text without its quotes, and whether it has escapes.
    fn text(&mut self) -> Result<(&'t [u8], bool), Stop> {
        self.at += 1;
        let (start, mut has_escapes) = (self.at, false);
        loop {
            self.at += plain(&self.bytes[self.at..]);
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    has_escapes = true;
                    self.escape()?;
                }
                _ => return Err(Stop::NotJson),
            }
        }
        self.at += 1;
        Ok((&self.bytes[start..self.at - 1], has_escapes))
    }

    /// The text that starts there and has this length, without its escapes.
    fn unescaped(&mut self, start: usize, len: usize) -> Result<Vec<u8>, Stop> {
        let (after, mut unescaped) = (self.at, Vec::with_capacity(len));
        self.at = start;
        while self.at < start + len {
            if self.bytes[self.at] == b'\\' {
                let letter = self.escape()?;
                unescaped.extend(letter.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                unescaped.push(self.bytes[self.at]);
                self.at += 1;
            }
        }
        self.at = after;
        Ok(unescaped)
    }

    /// Passes an escape, and returns its character.
    fn escape(&mut self) -> Result<char, Stop> {
        let letter = self.bytes.get(self.at + 1).copied();
        self.at += 2;
        Ok(match letter {
            Some(letter @ (b'"' | b'\\' | b'/')) => letter.into(),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let mut units = vec![self.unit()?];
                if (0xD800..0xDC00).contains(&units[0]) && self.bytes[self.at..].starts_with(b"\\u") {
                    self.at += 2;
                    units.push(self.unit()?);
                }
                let mut decoded = char::decode_utf16(units);
                match (decoded.next(), decoded.next()) {
                    (Some(Ok(letter)), None) => letter,
                    _ => return Err(Stop::NotJson),
                }
            }
            _ => return Err(Stop::NotJson),
        })
    }

    /// The four digits after `\u`.
    fn unit(&mut self) -> Result<u16, Stop> {
        let digits = self.bytes.get(self.at..self.at + 4).ok_or(Stop::NotJson)?;
        self.at += 4;
        digits.iter().try_fold(0, |unit, digit| {
            let digit = char::from(*digit).to_digit(16).ok_or(Stop::NotJson)?;
            Ok(unit << 4 | digit as u16)
        })
    }

    /// Passes the name of a member and the colon, and returns the type of its value.
    fn name(&mut self, object: &'y Type) -> Result<&'y Type, Stop> {
        if self.peek() != Some(b'"') {
            return Err(Stop::NotJson);
        }
        let start = self.at + 1;
        let (text, has_escapes) = self.text()?;
        self.space();
        if self.peek() != Some(b':') {
            return Err(Stop::NotJson);
        }
        let end = self.at + 1;
        if self.odd.is_some() {
            self.at = end;
            return Ok(&Type::Any);
        }
        let mut name = Name {
            start: start as u32,
            len: text.len() as u32,
            is_unescaped: has_escapes,
            mark: 0,
        };
        if has_escapes {
            let text = self.unescaped(start, text.len())?;
            name.start = self.unescaped.len() as u32;
            name.len = text.len() as u32;
            self.unescaped.extend(text);
        }
        name.mark = mark_of(self.letters(name));
        self.names.push(name);
        self.at = end;
        Ok(object.member(self.letters(name)))
    }

    /// The start of a name, for a person.
    fn shown(&self, name: Name) -> String {
        let name = String::from_utf8_lossy(self.letters(name));
        name.chars().take(MAX_NAME).collect()
    }

    fn letters(&self, name: Name) -> &[u8] {
        let text = if name.is_unescaped {
            &self.unescaped[..]
        } else {
            self.bytes
        };
        &text[name.start as usize..(name.start + name.len) as usize]
    }

    /// Forgets the names of an object that ends. Keeps the first one that occurs again.
    fn end_object(&mut self, object: &Type) -> Result<(), Stop> {
        let first = self.open.last().map_or(0, |level| level.first);
        if self.odd.is_none()
            && let Some(name) = self.repeated(&self.names[first..], matches!(object, Type::Fields))?
        {
            let name = self.shown(name);
            // The last name is not that of an outer object.
            self.names.truncate(first);
            let path = self.path();
            let path = if path.is_empty() { path } else { format!(" in {path}") };
            self.odd = Some(format!("the name {name} occurs twice{path}"));
        }
        if self.odd.is_none()
            && let Some(name) = object.missing(|name| self.has_name(first, name))
        {
            self.names.truncate(first);
            let path = self.path();
            let dot = if path.is_empty() { "" } else { "." };
            self.odd = Some(format!("{path}{dot}{name} is missing"));
        }
        self.names.truncate(first);
        if self.names.is_empty() {
            self.unescaped.clear();
        }
        Ok(())
    }

    /// Whether the object whose names start there has a name.
    fn has_name(&self, first: usize, name: &str) -> bool {
        let mark = mark_of(name.as_bytes());
        let is_same = |own: &Name| own.mark == mark && self.letters(*own) == name.as_bytes();
        self.names[first..].iter().any(is_same)
    }

    /// The first name that occurs again. Only parts count if the others are fields.
    fn repeated(&self, names: &[Name], are_fields: bool) -> Result<Option<Name>, Stop> {
        let is_part = |name: &Name| PARTS.iter().any(|part| part.as_bytes() == self.letters(*name));
        if are_fields {
            let parts: Vec<_> = names.iter().copied().filter(is_part).collect();
            return self.repeated(&parts, false);
        }
        if names.len() <= FEW {
            let is_again = |&at: &usize| {
                let own = names[at];
                let is_same = |other: &Name| other.mark == own.mark && self.letters(*other) == self.letters(own);
                names[..at].iter().any(is_same)
            };
            return Ok((1..names.len()).find(is_again).map(|at| names[at]));
        }
        let hasher = DefaultHashBuilder::default();
        let mut known: HashTable<u32> = HashTable::new();
        let hash = |&at: &u32| hasher.hash_one(self.letters(names[at as usize]));
        for (at, name) in names.iter().enumerate() {
            self.interrupt.check_step(at).map_err(Stop::Interrupted)?;
            let (own, at) = (self.letters(*name), at as u32);
            if known
                .find(hash(&at), |&other| self.letters(names[other as usize]) == own)
                .is_some()
            {
                return Ok(Some(*name));
            }
            known.insert_unique(hash(&at), at, hash);
        }
        Ok(None)
    }

    /// The names that lead to the value that is read: `Event.System`.
    fn path(&self) -> String {
        let mut path = String::new();
        let ends = self
            .open
            .iter()
            .skip(1)
            .map(|level| level.first)
            .chain([self.names.len()]);
        for (level, end) in self.open.iter().zip(ends) {
            // A list has no names.
            if let Some(name) = self.names[level.first.min(end)..end].last() {
                let dot = if path.is_empty() { "" } else { "." };
                _ = write!(path, "{dot}{}", self.shown(*name));
            }
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str, types: &str) -> JsonCheck {
        let types = types.parse().expect("types");
        check_json(text, Some(&types), Interrupt::NEVER).expect("no interrupt")
    }

    #[test]
    fn json_is_what_serde_says() {
        let texts = [
            "0",
            "-0.5e+7",
            "01",
            "1.",
            ".5",
            "-",
            "1e",
            "+1",
            "true",
            "tru",
            "null",
            "nul",
            "\"\"",
            "\"a",
            "\"\\u00e4\"",
            "\"\\ud83d\\ude00\"",
            "\"\\ud83d\"",
            "\"\\ude00\"",
            "\"\\ud83d\\u0041\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\",
            "\"\t\"",
            "[]",
            "[1,]",
            "[,]",
            "[1 2]",
            "[",
            "]",
            "{}",
            "{\"a\":1}",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "{a:1}",
            "{\"a\":}",
            "{\"a\":1]",
            "[1}",
            " [ { \"a\" : [ ] } , 2 ] \r\n",
            "1 2",
            "",
            " ",
            "NaN",
            "Infinity",
            "{\"a\":{\"b\":[{}]}}",
        ];
        for text in texts {
            let ours = !matches!(checked(text, "{}"), JsonCheck::NotJson(_));
            let theirs = serde_json::from_str::<Value>(text).is_ok();
            assert_eq!(ours, theirs, "{text}");
            let grammar = check_json(text, None, Interrupt::NEVER).expect("no interrupt");
            assert_eq!(grammar == JsonCheck::Valid, theirs, "{text}");
        }
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(matches!(checked(&deep(MAX_DEPTH), "\"JSON\""), JsonCheck::Valid));
        assert!(matches!(
            checked(&deep(MAX_DEPTH + 1), "\"JSON\""),
            JsonCheck::NotJson(_)
        ));
    }

    #[test]
    fn names_that_occur_twice_are_named_with_their_path() {
        let many: String = (0..100).map(|nth| format!("\"{nth}\":0,")).collect();
        for (text, expected) in [
            ("{\"a\":1,\"b\":{\"a\":2},\"c\":[{\"a\":1},{\"a\":2}]}", None),
            ("{\"a\":1,\"a\":2}", Some("the name a occurs twice")),
            ("{\"a\":1,\"\\u0061\":2}", Some("the name a occurs twice")),
            ("{\"\\u00e4\":1,\"ä\":2}", Some("the name ä occurs twice")),
            (
                "{\"x\":{\"y\":[0,{\"z\":{}},{\"a\":1,\"b\":2,\"a\":3}]}}",
                Some("the name a occurs twice in x.y"),
            ),
            (
                &format!("{{\"o\":{{{many}\"7\":1}}}}"),
                Some("the name 7 occurs twice in o"),
            ),
            (&format!("{{{many}\"100\":1}}"), None),
            ("{\"EventData\":{\"a\":1,\"a\":2}}", None),
            (
                "{\"EventData\":{\"Data\":1,\"Data\":2}}",
                Some("the name Data occurs twice in EventData"),
            ),
            (
                "{\"EventData\":{\"a\":{\"b\":1,\"b\":2}}}",
                Some("the name b occurs twice in EventData.a"),
            ),
            (
                "{\"EventData\":{},\"EventData\":{}}",
                Some("the name EventData occurs twice"),
            ),
        ] {
            let expected = expected.map_or(JsonCheck::Valid, |text: &str| JsonCheck::Odd(text.to_owned()));
            assert_eq!(checked(text, "{\"EventData\":\"JSON\"}"), expected, "{text}");
        }
    }

    #[test]
    fn values_have_their_types() {
        let types =
            "{\"o\":{\"n\":\"UTINYINT\",\"g\":\"UUID\",\"t\":\"VARCHAR\",\"UserData\":\"JSON\",\"j\":\"JSON\"}}";
        for (value, expected) in [
            ("null", None),
            ("\"\"", None),
            ("5", Some("o is not an object")),
            ("[]", Some("o is not an object")),
            (
                "{\"n\":255,\"g\":\"{00000000-0000-0000-0000-00000000000F}\",\"t\":1.5,\"UserData\":{\"n\":{}},\"j\":[{}],\"x\":{}}",
                None,
            ),
            ("{\"n\":\"7.0\",\"g\":null,\"t\":false,\"UserData\":\"\"}", None),
            ("{\"n\":256}", Some("o.n is larger than 255")),
            ("{\"n\":1e400}", Some("o.n is not a whole number")),
            ("{\"n\":-1}", Some("o.n is not a whole number")),
            ("{\"n\":0.5}", Some("o.n is not a whole number")),
            ("{\"n\":true}", Some("o.n is not a whole number")),
            ("{\"n\":[1]}", Some("o.n is not a whole number")),
            (
                "{\"g\":\"00000000-0000-0000-0000-0000000000\"}",
                Some("o.g is not a GUID"),
            ),
            ("{\"g\":0}", Some("o.g is not a GUID")),
            ("{\"t\":{}}", Some("o.t is not a text")),
            ("{\"UserData\":5}", Some("o.UserData is not an object")),
        ] {
            let expected = expected.map_or(JsonCheck::Valid, |text: &str| JsonCheck::Odd(text.to_owned()));
            assert_eq!(checked(&format!("{{\"o\":{value}}}"), types), expected, "{value}");
        }
        assert_eq!(checked("7", types), JsonCheck::Odd("it is not an object".to_owned()));
        for types in ["{\"a\":\"TEXT\"}", "[1]", "{", "{\"a\":7}"] {
            assert!(types.parse::<JsonTypes>().is_err(), "{types}");
        }
    }

    #[test]
    fn nuls_are_left_out_but_not_the_text_of_their_escapes() {
        for (json, expected) in [
            (r#"{"a\u0000":"\u0000b\u0000\u0000"}"#, r#"{"a":"b"}"#),
            (r#""\\u0000""#, r#""\\u0000""#),
            (r#""\u0000\\\u0000é\"\u0000\u0001""#, r#""\\é\"\u0001""#),
            (r"\u0000\", r"\"),
            (r"\é\u0000", r"\é"),
        ] {
            assert_eq!(without_nuls(json), expected, "{json}");
        }
    }

    #[test]
    fn types_that_from_json_does_not_have() {
        let types = "{\"t\":\"TIMESTAMP_NS\",\"s\":[\"SECONDS\",\"TIMESTAMP_NS\"],\"h\":\"HEX\",\"n\":[\"UTINYINT\",\"NAME\"],\
                     \"o\":[\"UINTEGER\",{\"a\":\"UTINYINT\"}]}";
        for (document, expected) in [
            ("{\"t\":null,\"s\":\"\",\"h\":null,\"n\":\"\",\"o\":null}", None),
            ("{\"t\":\"2024-02-29 23:59:59.123456789123\\u002B01:00\"}", None),
            ("{\"t\":\"1601-01-01T00:00:00.0000000Z\"}", None),
            ("{\"t\":\"2023-02-29T00:00:00Z\"}", Some("t is not a time")),
            ("{\"t\":\"1900-02-29T00:00:00Z\"}", Some("t is not a time")),
            ("{\"t\":\"2024-03-05T24:00:00Z\"}", Some("t is not a time")),
            ("{\"t\":\"2024-03-05T08:58:00.Z\"}", Some("t is not a time")),
            ("{\"t\":\"2024-03-05T08:58:00+0100\"}", Some("t is not a time")),
            ("{\"t\":\"2024-03-05T08:58:00-25:59\"}", None),
            ("{\"t\":\"2024-03-05T08:58:00+26:00\"}", Some("t is not a time")),
            ("{\"t\":\"2024-03-05T08:58:00+01:60\"}", Some("t is not a time")),
            ("{\"t\":\"2024-03-05\"}", Some("t is not a time")),
            ("{\"t\":\"infinity\"}", Some("t is not a time")),
            ("{\"t\":\"1677-12-31T23:59:59Z\"}", Some("t is not a time")),
            ("{\"t\":\"2262-01-01T00:00:00Z\"}", Some("t is not a time")),
            ("{\"t\":1709629080}", Some("t is not a time")),
            (
                "{\"s\":1709629080.4417,\"h\":\"0x8020000000000000\",\"n\":\"Info\",\"o\":{\"a\":7}}",
                None,
            ),
            ("{\"s\":-11644473600,\"h\":18446744073709551615,\"n\":7,\"o\":7}", None),
            ("{\"s\":9.3e9}", Some("s is not a time")),
            ("{\"s\":true}", Some("s is not a time")),
            ("{\"h\":\"0x1ffffffffffffffff\"}", Some("h is not a whole number")),
            (
                "{\"h\":18446744073709551616}",
                Some("h is larger than 18446744073709551615"),
            ),
            ("{\"n\":\"300\"}", Some("n is larger than 255")),
            ("{\"n\":\"-4.5\"}", Some("n is not a whole number")),
            ("{\"o\":[]}", Some("o is not a whole number")),
            ("{\"o\":{\"a\":256}}", Some("o.a is larger than 255")),
        ] {
            let expected = expected.map_or(JsonCheck::Valid, |text: &str| JsonCheck::Odd(text.to_owned()));
            assert_eq!(checked(document, types), expected, "{document}");
        }
    }

    #[test]
    fn members_that_are_never_missing() {
        let types =
            "{\"o\":{\"a!\":\"VARCHAR\",\"b!\":[\"UTINYINT\",null],\"c!\":{\"d!\":\"UTINYINT\"}},\"e!\":\"JSON\"}";
        for (document, expected) in [
            ("{\"o\":{\"a\":\"\",\"b\":null,\"\\u0063\":{\"d\":1}},\"e\":[]}", None),
            ("{\"e\":0}", None),
            ("{}", Some("e is missing")),
            ("{\"o\":{\"b\":1,\"c\":{\"d\":1}},\"e\":0}", Some("o.a is missing")),
            ("{\"o\":{\"a\":null}}", Some("o.a is null")),
            ("{\"o\":{\"a\":\"x\",\"b\":\"\"}}", Some("o.b is not a whole number")),
            (
                "{\"o\":{\"a\":\"x\",\"b\":1,\"c\":{}},\"e\":0}",
                Some("o.c.d is missing"),
            ),
            (
                "{\"o\":{\"a\":\"x\",\"b\":1,\"c\":\"\"},\"e\":0}",
                Some("o.c is not an object"),
            ),
        ] {
            let expected = expected.map_or(JsonCheck::Valid, |text: &str| JsonCheck::Odd(text.to_owned()));
            assert_eq!(checked(document, types), expected, "{document}");
        }
    }

    #[test]
    fn from_json_gets_types_that_it_has() {
        let types = "{\"a!\":{\"b\":\"TIMESTAMP_NS\",\"c\":\"HEX\"},\"d\":[\"VARCHAR\",null],\"e\":[\"UINTEGER\",{\"f\":\"UUID\"}],\"g\":\"UUID\"}";
        let columns = JsonTypes::columns(types).expect("types");
        let expected = "{\"a\":{\"b\":\"VARCHAR\",\"c\":\"UBIGINT\"},\"d\":\"VARCHAR\",\"e\":\"JSON\",\"g\":\"UUID\"}";
        assert_eq!(columns, expected);
    }

    #[test]
    fn a_check_can_be_interrupted() {
        let names: String = (0..100_000).map(|nth| format!("\"{nth}\":0,")).collect();
        for text in [format!("{{{names}\"x\":1}}"), format!("[{}0]", "0,".repeat(200_000))] {
            let interrupt = Interrupt::new(&|| true);
            assert!(check_json(&text, Some(&JsonTypes::default()), interrupt).is_err());
        }
    }
}
