//! A record as JSON, which is read once: what a row takes from it are places in this tree.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use evtx_format::cut;
use memchr::memchr2;
use serde_json::value::RawValue;

/// How deep values can be nested. Exports have some ten levels.
const MAX_DEPTH: usize = 127;

/// How many characters of a name are in an error.
const MAX_NAME: usize = 100;

/// The objects with the fields of an event. An event can have several fields of one name, and readers number them.
const FIELDS: [&str; 2] = ["EventData", "event_data"];

/// Names in such an object that are not fields.
const PARTS: [&str; 5] = ["Data", "Binary", "Name", "#text", "#attributes"];

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
    pub(crate) const EMPTY: Json<'static> = Json::Text(Cow::Borrowed(""));

    /// Reads a text.
    ///
    /// # Errors
    /// Why it is not JSON.
    pub(crate) fn read(text: &'t str) -> Result<Self, String> {
        // serde_json checks the grammar, but keeps neither numbers as they are written nor names that occur again.
        serde_json::from_str::<&RawValue>(text).map_err(|_| NOT_JSON)?;
        Reader { text, at: 0 }.value(0)
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

    /// What is wrong with the value wherever it is: a name that occurs twice in an object, or a number that is too large.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problem_at(&mut Vec::new())
    }

    fn problem_at<'j>(&'j self, path: &mut Vec<&'j str>) -> Option<String> {
        let members = match self {
            Json::Literal(text) if text.parse().is_ok_and(f64::is_infinite) => {
                return Some("a number is too large".to_owned());
            }
            Json::List(items) => return items.iter().find_map(|item| item.problem_at(path)),
            json => json.members(),
        };
        let are_fields = path.last().is_some_and(|name| FIELDS.contains(name));
        let (mut names, mut twice) = (HashSet::new(), None);
        for (name, value) in members {
            path.push(cut(name, MAX_NAME).0);
            if let Some(why) = value.problem_at(path) {
                return Some(why);
            }
            path.pop();
            if !names.insert(&**name) && (!are_fields || PARTS.contains(&&**name)) {
                twice.get_or_insert(cut(name, MAX_NAME).0);
            }
        }
        let place = if path.is_empty() { "" } else { " in " };
        twice.map(|name| format!("the name {name} occurs twice{place}{}", path.join(".")))
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
struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    /// The first byte of what comes next. Before it are white space, commas and colons.
    fn next(&mut self) -> u8 {
        let rest = &self.text.as_bytes()[self.at..];
        let space = rest.iter().position(|byte| !b" \t\r\n,:".contains(byte));
        self.at += space.unwrap_or(rest.len());
        self.text.as_bytes().get(self.at).copied().unwrap_or_default()
    }

    fn value(&mut self, depth: usize) -> Result<Json<'t>, String> {
        let first = self.next();
        if depth == MAX_DEPTH && matches!(first, b'{' | b'[') {
            return Err(format!("it nests more than {MAX_DEPTH} values"));
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
                let end = rest.find([',', ']', '}', ' ', '\t', '\r', '\n']).unwrap_or(rest.len());
                self.at += end;
                match &rest[..end] {
                    "null" => Json::Null,
                    literal => Json::Literal(literal),
                }
            }
        })
    }

    /// The text that starts with the next quote.
    fn text(&mut self) -> Result<Cow<'t, str>, String> {
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
        let text: String = serde_json::from_str(quoted).map_err(|_| NOT_JSON)?;
        Ok(text.replace('\0', "").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_what_serde_says() {
        let words = r#"
            0 -0.5e+7 01 1. .5 - 1e +1 true tru null nul "" "a "\u00e4" "\ud83d\ude00" "\ud83d" "\ude00"
            "\ud83d\u0041" "\x" "\u12" "\ [] [1,] [,] [ ] {} {"a":1} {"a":1,} {a:1} {"a":} {"a":1] [1} NaN
            Infinity {"a":{"b":[{}]}} [1e400] {"a":1e400,}
        "#;
        let others = [
            "\"\t\"",
            "[1 2]",
            "{\"a\" 1}",
            " [ { \"a\" : [ ] } , 2 ] \r\n",
            "1 2",
            "",
            " ",
        ];
        for text in words.split_whitespace().chain(others) {
            let theirs = serde_json::from_str::<serde_json::Value>(&text.replace("1e400", "1")).ok();
            let ours = Json::read(text).map(|json| json.to_string());
            let expected = theirs.map(|json| json.to_string()).ok_or(NOT_JSON.to_owned());
            assert_eq!(
                ours.map(|json| json.replace("1e400", "1").replace("e+7", "e7")),
                expected.map(|json| json.replace("-5000000.0", "-0.5e7")),
                "{text}"
            );
        }
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(
            Json::read(&deep(MAX_DEPTH)).map(|json| json.to_string()),
            Ok(deep(MAX_DEPTH))
        );
        assert_eq!(
            Json::read(&deep(MAX_DEPTH + 1)),
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
            assert_eq!(Json::read(text).map(|json| json.to_string()).as_deref(), Ok(expected));
        }
        let json = Json::read("{\"a\": {\"b\": \"c\\n\\u00e9\", \"d\": null}}").expect("JSON");
        assert_eq!(json.at("a.b").and_then(Json::text).as_deref(), Some("c\n\u{e9}"));
        assert_eq!([json.at("a.d"), json.at("a.b.c"), json.at("b")], [None; 3]);
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
            assert_eq!(
                Json::read(text).map(|json| json.problem()),
                Ok(expected.map(str::to_owned)),
                "{text}"
            );
        }
    }
}
