//! A check of JSON: whether a text is JSON, whether a name occurs twice in an object, and whether values have the types that the
//! reader of the text expects. One pass, which keeps only the names of open objects.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;

use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashSet;
use jiff::civil::Date;
use serde_core::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// How deep `serde_json` lets values be nested. Exports have some ten levels.
const MAX_DEPTH: usize = 127;

/// How many characters of a name are in an error.
const MAX_NAME: usize = 100;

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
/// `{"Version": "UTINYINT"}`, and some more:
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
    fn member(&self, name: &str) -> &Type {
        let members = match self {
            Type::Object(members) => &members[..],
            _ => &[],
        };
        let found = members.iter().find(|(known, _)| **known == *name);
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
            (_, Found::Text("")) => None,
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
            (Type::Seconds, Found::Number(seconds, _)) => {
                (SECONDS.contains(seconds) || *seconds == NO_SECONDS, "not a time")
            }
            (Type::Time | Type::Seconds, _) => (false, "not a time"),
            (Type::Hex, Found::Text(text)) if is_hex(text) => return None,
            (Type::Whole(_) | Type::Hex, value) => {
                let most = if let Type::Whole(most) = self { *most } else { u64::MAX };
                let number = match value {
                    Found::Text(text) => whole(text),
                    Found::Number(_, whole) => *whole,
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

fn is_number(text: &str) -> bool {
    text.trim().parse::<f64>().is_ok_and(f64::is_finite)
}

/// Whether a text is a hexadecimal number of 64 bits.
fn is_hex(text: &str) -> bool {
    let digits = text.strip_prefix("0x").unwrap_or_default();
    (1..=16).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Whether a text is a time such as `2024-03-01 12:00:00.123456789+01:00`. Offsets are those that `jiff` takes in XML.
fn is_time(text: &str) -> bool {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00";
    let Some((start, rest)) = text.as_bytes().split_at_checked(SHAPE.len()) else {
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
fn whole(text: &str) -> Option<u128> {
    let (digits, zeros) = text.split_once('.').unwrap_or((text, "0"));
    let is_whole = |text: &str, allowed: fn(u8) -> bool| !text.is_empty() && text.bytes().all(allowed);
    if !is_whole(digits, |byte| byte.is_ascii_digit()) || !is_whole(zeros, |byte| byte == b'0') {
        return None;
    }
    Some(digits.parse().unwrap_or(u128::MAX))
}

fn is_guid(text: &str) -> bool {
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let text = inner.unwrap_or(text);
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// A value of a document.
enum Found<'t> {
    Object,
    List,
    Text(&'t str),
    /// A number, and the same if it is whole.
    Number(f64, Option<u128>),
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
    let mut state = State {
        values: 0,
        odd: None,
        is_done: types.is_none(),
        interrupt,
        interrupted: None,
    };
    let expected = types.map_or(&Type::Any, |types| &types.0);
    let mut reader = serde_json::Deserializer::from_str(text);
    let checked = Checked {
        state: &mut state,
        expected,
    };
    let read = checked.deserialize(&mut reader).and_then(|()| reader.end());
    if let Some(interrupted) = state.interrupted {
        return Err(interrupted);
    }
    Ok(match (read, state.odd) {
        (Ok(()), None) => JsonCheck::Valid,
        (Ok(()), Some(odd)) => JsonCheck::Odd(odd.to_string()),
        (Err(why), _) if why.to_string().starts_with("recursion limit") => {
            JsonCheck::NotJson(format!("it nests more than {MAX_DEPTH} values"))
        }
        // DuckDB reads such a number. In a raw value, serde_json checks it by the grammar alone.
        (Err(why), _)
            if why.to_string().starts_with("number out of range")
                && serde_json::from_str::<&RawValue>(text).is_ok() =>
        {
            JsonCheck::Odd("a number is too large".to_owned())
        }
        (Err(_), _) => JsonCheck::NotJson("it is not JSON".to_owned()),
    })
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

/// The members of an object, in order, each with its value as JSON. Empty for any other value.
pub fn members(json: &str) -> Vec<(Cow<'_, str>, &str)> {
    struct Members<'t>(Vec<(Cow<'t, str>, &'t str)>);
    struct OfMembers;
    impl<'de> Visitor<'de> for OfMembers {
        type Value = Members<'de>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Members<'de>, A::Error> {
            let mut members = Vec::new();
            while let Some((Name(name), value)) = object.next_entry::<_, &RawValue>()? {
                members.push((name, value.get()));
            }
            Ok(Members(members))
        }
    }
    let mut reader = serde_json::Deserializer::from_str(json);
    let read = reader.deserialize_map(OfMembers);
    read.and_then(|members| reader.end().map(|()| members.0))
        .unwrap_or_default()
}

/// What a check has found so far.
struct State<'i> {
    /// How many values were read.
    values: usize,
    /// The first thing that is wrong with names and values. Then no more is looked for.
    odd: Option<Odd>,
    is_done: bool,
    interrupt: Interrupt<'i>,
    interrupted: Option<Interrupted>,
}

/// What is wrong, and the names that lead to it, from the innermost on.
struct Odd {
    names: Vec<String>,
    what: Wrong,
}

enum Wrong {
    /// The value is something.
    Value(String),
    /// The object has a name twice.
    Twice(String),
    /// The object lacks a name.
    Missing(String),
}

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.names.iter().rev().map(String::as_str).collect();
        let path = names.join(".");
        match &self.what {
            Wrong::Value(why) if path.is_empty() => write!(f, "it is {why}"),
            Wrong::Value(why) => write!(f, "{path} is {why}"),
            Wrong::Twice(name) if path.is_empty() => write!(f, "the name {name} occurs twice"),
            Wrong::Twice(name) => write!(f, "the name {name} occurs twice in {path}"),
            Wrong::Missing(name) if path.is_empty() => write!(f, "{name} is missing"),
            Wrong::Missing(name) => write!(f, "{path}.{name} is missing"),
        }
    }
}

/// The start of a name, for a person.
fn shown(name: &str) -> String {
    name.chars().take(MAX_NAME).collect()
}

impl State<'_> {
    fn found(&mut self, what: Wrong) {
        self.is_done = true;
        self.odd = Some(Odd {
            names: Vec::new(),
            what,
        });
    }
}

/// A value that is read, and its type.
struct Checked<'c, 'y, 'i> {
    state: &'c mut State<'i>,
    expected: &'y Type,
}

impl Checked<'_, '_, '_> {
    fn value<E: Error>(&mut self, value: &Found<'_>) -> Result<(), E> {
        self.state.values += 1;
        if let Err(interrupted) = self.state.interrupt.check_step(self.state.values) {
            self.state.interrupted = Some(interrupted);
            return Err(E::custom("interrupted"));
        }
        if !self.state.is_done
            && let Some(why) = self.expected.rejection(value)
        {
            self.state.found(Wrong::Value(why));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Checked<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Checked<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(mut self, _: bool) -> Result<(), E> {
        self.value(&Found::Flag)
    }

    fn visit_unit<E: Error>(mut self) -> Result<(), E> {
        self.value(&Found::Null)
    }

    fn visit_u64<E: Error>(mut self, number: u64) -> Result<(), E> {
        self.value(&Found::Number(number as f64, Some(number.into())))
    }

    fn visit_i64<E: Error>(mut self, number: i64) -> Result<(), E> {
        self.value(&Found::Number(number as f64, None))
    }

    fn visit_f64<E: Error>(mut self, number: f64) -> Result<(), E> {
        let is_whole = number >= 0.0 && number.fract() == 0.0;
        self.value(&Found::Number(number, is_whole.then_some(number as u128)))
    }

    fn visit_str<E: Error>(mut self, text: &str) -> Result<(), E> {
        self.value(&Found::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        self.value(&Found::List)?;
        let expected = &Type::Any;
        while let Some(()) = list.next_element_seed(Checked {
            state: &mut *self.state,
            expected,
        })? {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut object: A) -> Result<(), A::Error> {
        self.value(&Found::Object)?;
        let own = self.expected.of_value(&Found::Object);
        let mut names: Vec<Cow<'de, str>> = Vec::new();
        while let Some(Name(name)) = object.next_key()? {
            let (was_done, state) = (self.state.is_done, &mut *self.state);
            let expected = own.member(&name);
            object.next_value_seed(Checked { state, expected })?;
            match &mut self.state.odd {
                Some(odd) if !was_done => odd.names.push(shown(&name)),
                _ => {}
            }
            names.push(name);
        }
        if !self.state.is_done {
            let are_fields = matches!(own, Type::Fields);
            if let Some(name) = repeated(&names, are_fields) {
                self.state.found(Wrong::Twice(shown(name)));
            } else if let Some(name) = own.missing(|name| names.iter().any(|known| known == name)) {
                self.state.found(Wrong::Missing(name.to_owned()));
            }
        }
        Ok(())
    }
}

/// The first name that occurs again. Only parts count if the others are fields.
fn repeated<'n>(names: &'n [Cow<'_, str>], are_fields: bool) -> Option<&'n str> {
    let mut names = names.iter().map(|name| &**name);
    let counts = |name: &&str| !are_fields || PARTS.contains(name);
    let mut known = HashSet::new();
    names.find(|name| counts(name) && !known.insert(*name))
}

/// The name of a member, which borrows from the text unless it has escapes.
struct Name<'t>(Cow<'t, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct OfName;
        impl<'de> Visitor<'de> for OfName {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(name.into()))
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Name<'de>, E> {
                Ok(Name(name.to_owned().into()))
            }
        }
        reader.deserialize_str(OfName)
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
        for (text, is_json) in [("{\"a\":1e400}", true), ("{\"a\":1e400,}", false), ("1e400 2", false)] {
            let found = checked(text, "{}");
            assert_eq!(
                found == JsonCheck::Odd("a number is too large".to_owned()),
                is_json,
                "{text}"
            );
            assert_eq!(matches!(found, JsonCheck::NotJson(_)), !is_json, "{text}");
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
            ("{\"n\":1e40}", Some("o.n is larger than 255")),
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
    fn a_check_can_be_interrupted() {
        let names: String = (0..100_000).map(|nth| format!("\"{nth}\":0,")).collect();
        for text in [format!("{{{names}\"x\":1}}"), format!("[{}0]", "0,".repeat(200_000))] {
            let interrupt = Interrupt::new(&|| true);
            assert!(check_json(&text, Some(&JsonTypes::default()), interrupt).is_err());
        }
    }
}
