//! A record as JSON, which is read once: what a row takes from it are places in this tree.

use std::borrow::Cow;
use std::fmt;

use evtx_format::{Interrupt, Interrupted};
use memchr::memchr2;
use serde_json::value::RawValue;

/// How deep values can be nested. Exports have some ten levels.
const MAX_DEPTH: usize = 127;

const NOT_JSON: &str = "it is not JSON";

/// A value. Texts and names are without NULs, which readers of logs leave out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'t> {
    Null,
    /// A number or a boolean, as it is written.
    Literal(&'t str),
    Text(Cow<'t, str>),
    List(Vec<Json<'t>>),
    /// The members in their order. A name can occur again.
    Object(Vec<(Cow<'t, str>, Json<'t>)>),
}

impl<'t> Json<'t> {
    /// Reads a text, or says why it is not JSON.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub(crate) fn read(text: &'t str, interrupt: Interrupt<'_>) -> Result<Result<Self, String>, Interrupted> {
        // serde_json checks the grammar, but keeps neither numbers as they are written nor names that occur again.
        if serde_json::from_str::<&RawValue>(text).is_err() {
            return Ok(Err(NOT_JSON.to_owned()));
        }
        let (at, values) = (0, 0);
        match (Reader {
            text,
            at,
            values,
            interrupt,
        })
        .value(0)
        {
            Ok(json) => Ok(Ok(json)),
            Err(Stop::Wrong(why)) => Ok(Err(why)),
            Err(Stop::Interrupted(interrupted)) => Err(interrupted),
        }
    }

    /// The members of an object; none of any other value.
    pub(crate) fn members(&self) -> &[(Cow<'t, str>, Json<'t>)] {
        let Json::Object(members) = self else { return &[] };
        members
    }

    /// The items of a list, or another value alone.
    pub(crate) fn items(&self) -> &[Json<'t>] {
        let Json::List(items) = self else {
            return std::slice::from_ref(self);
        };
        items
    }

    /// The text, if the value is one.
    pub(crate) fn as_text(&self) -> Option<&str> {
        let Json::Text(text) = self else { return None };
        Some(text)
    }

    /// The value at a path of names, such as `Event.System`; `None` if it is missing or null.
    pub(crate) fn at(&self, path: &str) -> Option<&Json<'t>> {
        path.split('.').try_fold(self, |json, name| {
            let (_, found) = json.members().iter().find(|(known, _)| known == name)?;
            (*found != Json::Null).then_some(found)
        })
    }

    /// A text as it is, any other value as JSON without white space; `None` for null.
    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Json::Null => None,
            Json::Literal(text) => Some((*text).into()),
            Json::Text(text) => Some((**text).into()),
            json => Some(json.to_string().into()),
        }
    }
}

/// JSON without white space, with no more escapes than it needs.
impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Literal(text) => f.write_str(text),
            Json::Text(text) => write!(f, "{}", serde_json::Value::from(&**text)),
            Json::List(items) => {
                f.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if at == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Json::Object(members) => {
                f.write_str("{")?;
                for (at, (name, value)) in members.iter().enumerate() {
                    let name = serde_json::Value::from(&**name);
                    write!(f, "{}{name}:{value}", if at == 0 { "" } else { "," })?;
                }
                f.write_str("}")
            }
        }
    }
}

/// Reads a text whose grammar is checked.
struct Reader<'t, 'i> {
    text: &'t str,
    at: usize,
    /// How many values were read.
    values: usize,
    interrupt: Interrupt<'i>,
}

enum Stop {
    Interrupted(Interrupted),
    Wrong(String),
}

impl<'t> Reader<'t, '_> {
    /// The first byte of what comes next. Before it are white space, commas and colons.
    fn next(&mut self) -> u8 {
        let rest = &self.text.as_bytes()[self.at..];
        let space = rest.iter().position(|byte| !b" \t\r\n,:".contains(byte));
        self.at += space.unwrap_or(rest.len());
        self.text.as_bytes().get(self.at).copied().unwrap_or_default()
    }

    fn value(&mut self, depth: usize) -> Result<Json<'t>, Stop> {
        self.values += 1;
        self.interrupt.check_step(self.values).map_err(Stop::Interrupted)?;
        let first = self.next();
        if depth == MAX_DEPTH && matches!(first, b'{' | b'[') {
            return Err(Stop::Wrong(format!("it nests more than {MAX_DEPTH} values")));
        }
        Ok(match first {
            b'"' => Json::Text(self.text()?),
            b'{' => {
                let mut members = Vec::new();
                self.at += 1;
                while self.next() == b'"' {
                    members.push((self.text()?, self.value(depth + 1)?));
                }
                self.at += 1;
                Json::Object(members)
            }
            b'[' => {
                let mut items = Vec::new();
                self.at += 1;
                while self.next() != b']' {
                    items.push(self.value(depth + 1)?);
                }
                self.at += 1;
                Json::List(items)
            }
            _ => {
                let rest = &self.text[self.at..];
                let literal = rest
                    .split([',', ']', '}', ' ', '\t', '\r', '\n'])
                    .next()
                    .unwrap_or_default();
                self.at += literal.len();
                if literal == "null" {
                    Json::Null
                } else {
                    Json::Literal(literal)
                }
            }
        })
    }

    /// The text that starts with the next quote.
    fn text(&mut self) -> Result<Cow<'t, str>, Stop> {
        let (start, bytes) = (self.at, self.text.as_bytes());
        self.at += 1;
        let mut has_escapes = false;
        while let Some(len) = memchr2(b'"', b'\\', &bytes[self.at..]) {
            self.at += len + 1;
            if bytes[self.at - 1] == b'"' {
                break;
            }
            has_escapes = true;
            self.at += 1;
        }
        let quoted = &self.text[start..self.at];
        if !has_escapes {
            return Ok(quoted[1..quoted.len() - 1].into());
        }
        // A half of a character is no text.
        let text: String = serde_json::from_str(quoted).map_err(|_| Stop::Wrong(NOT_JSON.to_owned()))?;
        Ok(text.replace('\0', "").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Json<'_>, String> {
        Json::read(text, Interrupt::NEVER).expect("no interrupt")
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
            "[1e400]",
            "{\"a\":1e400,}",
        ];
        for text in texts {
            let theirs = serde_json::from_str::<serde_json::Value>(&text.replace("1e400", "1")).ok();
            let ours = read(text).map(|json| json.to_string());
            let expected = theirs.map(|json| json.to_string()).ok_or(NOT_JSON.to_owned());
            assert_eq!(
                ours.map(|json| json.replace("1e400", "1").replace("e+7", "e7")),
                expected.map(|json| json.replace("-5000000.0", "-0.5e7")),
                "{text}"
            );
        }
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(read(&deep(MAX_DEPTH)).map(|json| json.to_string()), Ok(deep(MAX_DEPTH)));
        assert_eq!(
            read(&deep(MAX_DEPTH + 1)),
            Err("it nests more than 127 values".to_owned())
        );
    }

    #[test]
    fn values_are_as_they_are_written_without_space_and_nuls() {
        for (text, expected) in [
            ("{ \"a\" : [ 1.50 , \"b c\", -1E+2 ] }", "{\"a\":[1.50,\"b c\",-1E+2]}"),
            ("{\"\\u0061\": \"\\u003c\\\"\\\\\"}", "{\"a\":\"<\\\"\\\\\"}"),
            ("{\"a\":1,\"a\":null}", "{\"a\":1,\"a\":null}"),
            (r#"{"a\u0000":"\u0000b\u0000\u0000"}"#, r#"{"a":"b"}"#),
            (r#""\\u0000""#, r#""\\u0000""#),
            (r#""\u0000\\\u0000é\"\u0000\u0001""#, r#""\\é\"\u0001""#),
        ] {
            assert_eq!(read(text).map(|json| json.to_string()).as_deref(), Ok(expected));
        }
        let json = read("{\"a\": {\"b\": \"c\\n\\u00e9\", \"d\": null}}").expect("JSON");
        assert_eq!(json.at("a.b").and_then(Json::text).as_deref(), Some("c\n\u{e9}"));
        assert_eq!([json.at("a.d"), json.at("a.b.c"), json.at("b")], [None; 3]);
    }

    #[test]
    fn reading_can_be_interrupted() {
        let names: String = (0..100_000).map(|nth| format!("\"{nth}\":0,")).collect();
        for text in [format!("{{{names}\"x\":1}}"), format!("[{}0]", "0,".repeat(200_000))] {
            assert!(Json::read(&text, Interrupt::new(&|| true)).is_err());
        }
    }
}
