//! The types of values, and what is wrong with a record: a name that occurs twice in an object, a value of another type, or a
//! missing one.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use evtx_format::cut;

use crate::json::Json;
use crate::values::{ISO, Times, guid, hex, number, whole};

/// How many characters of a name are in an error.
const MAX_NAME: usize = 100;

/// The objects with the fields of an event. An event can have several fields of one name, and readers number them.
const FIELDS: [&str; 2] = ["EventData", "event_data"];

/// Names in such an object that are not fields.
const PARTS: [&str; 5] = ["Data", "Binary", "Name", "#text", "#attributes"];

/// The objects with the element in `UserData` of an event.
const ELEMENTS: [&str; 2] = ["UserData", "user_data"];

/// The times that fit a TIMESTAMP_NS, as seconds since 1970, and the time 0 of Windows, which means that there is none.
const SECONDS: Range<f64> = -9_214_560_000.0..9_214_646_400.0;
const NO_SECONDS: f64 = -11_644_473_600.0;

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Type {
    Any,
    Null,
    Object,
    /// An object with the fields of an event, whose names can occur again.
    Fields,
    Text,
    /// A text that is not a number.
    Name,
    Guid,
    /// A whole number up to this one.
    Whole(u64),
    /// A whole number of 64 bits that can be hexadecimal, after `0x`.
    Hex,
    /// A whole number of 64 bits that can have a sign. It is not checked.
    Signed,
    /// A time as Windows writes it in XML.
    Time,
    /// A number of seconds since 1970.
    Seconds,
    /// A time of the machine unless it has an offset. Only whether it is a text is checked.
    Local,
    /// A time in UTC unless it has an offset. Likewise.
    Utc,
    /// An object whose member `xml_name` names the element that it stands for.
    Element,
}

impl Type {
    /// The type with a name of `sources.tsv`, of a member with this name.
    pub(crate) fn of(word: &str, member: &str) -> Option<Self> {
        Some(match word {
            "JSON" if FIELDS.contains(&member) => Type::Fields,
            "JSON" if ELEMENTS.contains(&member) => Type::Object,
            "JSON" => Type::Any,
            "ELEMENT" => Type::Element,
            "{}" => Type::Object,
            "VARCHAR" => Type::Text,
            "NAME" => Type::Name,
            "UUID" => Type::Guid,
            "HEX" => Type::Hex,
            "SIGNED" => Type::Signed,
            "TIMESTAMP_NS" => Type::Time,
            "SECONDS" => Type::Seconds,
            "LOCAL" => Type::Local,
            "UTC" => Type::Utc,
            "UTINYINT" => Type::Whole(u8::MAX.into()),
            "USMALLINT" => Type::Whole(u16::MAX.into()),
            "UINTEGER" => Type::Whole(u32::MAX.into()),
            "UBIGINT" => Type::Whole(u64::MAX),
            "null" => Type::Null,
            _ => return None,
        })
    }

    /// What a value is that is not of the type.
    fn misfit(self, json: &Json<'_>) -> Option<Cow<'static, str>> {
        let text = json.as_text();
        let (is_right, otherwise) = match self {
            Type::Any | Type::Signed => return None,
            Type::Null => (*json == Json::Null, "not null"),
            _ if *json == Json::Null => (false, "null"),
            Type::Object | Type::Fields | Type::Element => (matches!(json, Json::Object(_)), "not an object"),
            Type::Text | Type::Local | Type::Utc => (!matches!(json, Json::Object(_) | Json::List(_)), "not a text"),
            Type::Name => (
                text.is_some_and(|text| !text.trim().parse::<f64>().is_ok_and(f64::is_finite)),
                "not a name",
            ),
            Type::Guid => (text.and_then(guid).is_some(), "not a GUID"),
            Type::Time => {
                let read = |text| ISO.is_match(text) && Times::default().read(text, true).is_ok();
                (text.is_some_and(read), "not a time")
            }
            Type::Seconds => {
                let is_one = |seconds| SECONDS.contains(&seconds) || seconds == NO_SECONDS;
                (number(json).is_some_and(is_one), "not a time")
            }
            Type::Hex if text.and_then(hex).is_some() => return None,
            Type::Whole(_) | Type::Hex => {
                let most = if let Type::Whole(most) = self { most } else { u64::MAX };
                match whole(json) {
                    Some(number) if number > most.into() => return Some(format!("larger than {most}").into()),
                    number => (number.is_some(), "not a whole number"),
                }
            }
        };
        (!is_right).then_some(otherwise.into())
    }
}

/// The types of a value and of its members.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The types of which the value has one.
    types: Vec<Type>,
    is_always: bool,
    pub(crate) members: Vec<(&'static str, Node)>,
}

impl Node {
    /// Adds the types of the value at a path such as `Event!.System`, and returns them. A member with `!` is never missing.
    pub(crate) fn add(&mut self, path: &'static str, types: &str) -> Vec<Type> {
        let (mut node, mut name) = (self, "");
        for segment in path.split('.').filter(|segment| !segment.is_empty()) {
            name = segment.trim_end_matches('!');
            let known = node.members.iter().position(|(known, _)| *known == name);
            let at = known.unwrap_or(node.members.len());
            if known.is_none() {
                node.members.push((name, Node::default()));
            }
            node = &mut node.members[at].1;
            node.is_always |= name != segment;
        }
        let words = types.split(['[', ']', '"', ',', ' ']).filter(|word| !word.is_empty());
        let types: Vec<Type> = words.filter_map(|word| Type::of(word, name)).collect();
        let new: Vec<Type> = types.iter().filter(|one| !node.types.contains(one)).copied().collect();
        node.types.extend(new);
        types
    }

    /// What a value is that it should not be. Null and empty texts stand for no value, unless there is always one.
    fn misfit(&self, json: &Json<'_>) -> Option<Cow<'static, str>> {
        if !self.is_always && (*json == Json::Null || *json == Json::Text("".into())) {
            return None;
        }
        let of_members = (self.types.is_empty() || !self.members.is_empty()).then_some(&Type::Object);
        let mut misfits = self.types.iter().chain(of_members).map(|one| one.misfit(json));
        let first = misfits.next().flatten();
        first.filter(|_| misfits.all(|other| other.is_some()))
    }

    /// The first thing that is wrong with a value, whose place is that of these names.
    pub(crate) fn check<'t>(&'t self, json: &'t Json<'_>) -> Option<String> {
        check(json, Some(self), &mut Vec::new())
    }
}

/// The first name of an object that occurs twice in a record.
pub(crate) fn repeated(json: &Json<'_>) -> Option<String> {
    check(json, None, &mut Vec::new())
}

fn check<'t>(json: &'t Json<'_>, node: Option<&'t Node>, path: &mut Vec<&'t str>) -> Option<String> {
    let place = |name: &str, before: &str, path: &[&str]| match path {
        [] => name.to_owned(),
        path => format!("{before}{}", path.join(".")),
    };
    if let Json::Literal(text) = json
        && text.parse().is_ok_and(f64::is_infinite)
    {
        return Some("a number is too large".to_owned());
    }
    if let Some(why) = node.and_then(|node| node.misfit(json)) {
        return Some(format!("{} is {why}", place("it", "", path)));
    }
    if let Json::List(items) = json {
        return items.iter().find_map(|item| check(item, None, path));
    }
    let mut names = HashSet::new();
    let are_fields = node.is_some_and(|node| node.types.contains(&Type::Fields));
    let mut twice = None;
    for (name, value) in json.members() {
        let known = node.and_then(|node| node.members.iter().find(|(known, _)| known == name));
        path.push(cut(name, MAX_NAME).0);
        if let Some(why) = check(value, known.map(|(_, node)| node), path) {
            return Some(why);
        }
        path.pop();
        if !names.insert(&**name) && (!are_fields || PARTS.contains(&&**name)) {
            twice.get_or_insert(cut(name, MAX_NAME).0);
        }
    }
    if let Some(name) = twice {
        return Some(format!("the name {name} occurs twice{}", place("", " in ", path)));
    }
    let mut missing = node
        .iter()
        .flat_map(|node| &node.members)
        .filter(|(name, node)| node.is_always && !names.contains(name));
    let (name, _) = missing.next().filter(|_| matches!(json, Json::Object(_)))?;
    path.push(name);
    Some(format!("{} is missing", path.join(".")))
}

#[cfg(test)]
mod tests {
    use evtx_format::Interrupt;

    use super::*;

    /// What is wrong with a text, if its values have these types at these paths.
    fn wrong(types: &[(&'static str, &str)], text: &str) -> Option<String> {
        let mut node = Node::default();
        types.iter().for_each(|(path, types)| _ = node.add(path, types));
        let json = Json::read(text, Interrupt::NEVER).expect("no interrupt").expect("JSON");
        node.check(&json)
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
            assert_eq!(wrong(&[("EventData", "JSON")], text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn values_have_their_types() {
        let types = [
            ("o.n", "UTINYINT"),
            ("o.g", "UUID"),
            ("o.t", "VARCHAR"),
            ("o.UserData", "JSON"),
            ("o.j", "JSON"),
            ("t", "TIMESTAMP_NS"),
            ("s", "[\"SECONDS\", \"TIMESTAMP_NS\"]"),
            ("h", "HEX"),
            ("m", "[\"UTINYINT\", \"NAME\"]"),
            ("p", "UINTEGER"),
            ("p.a", "UTINYINT"),
        ];
        for (text, expected) in [
            ("{\"o\":null}", None),
            ("{\"o\":\"\"}", None),
            ("{\"o\":5}", Some("o is not an object")),
            ("{\"o\":[]}", Some("o is not an object")),
            (
                "{\"o\":{\"n\":255,\"g\":\"{00000000-0000-0000-0000-00000000000F}\",\"t\":1.5,\"UserData\":{\"n\":{}},\"j\":[{}],\"x\":{}}}",
                None,
            ),
            ("{\"o\":{\"n\":\"7.0\",\"g\":null,\"t\":false,\"UserData\":\"\"}}", None),
            ("{\"o\":{\"n\":256}}", Some("o.n is larger than 255")),
            ("{\"o\":{\"n\":1e40}}", Some("o.n is larger than 255")),
            ("{\"o\":{\"n\":-1}}", Some("o.n is not a whole number")),
            ("{\"o\":{\"n\":0.5}}", Some("o.n is not a whole number")),
            ("{\"o\":{\"n\":true}}", Some("o.n is not a whole number")),
            ("{\"o\":{\"n\":[1]}}", Some("o.n is not a whole number")),
            (
                "{\"o\":{\"g\":\"00000000-0000-0000-0000-0000000000\"}}",
                Some("o.g is not a GUID"),
            ),
            ("{\"o\":{\"g\":0}}", Some("o.g is not a GUID")),
            ("{\"o\":{\"t\":{}}}", Some("o.t is not a text")),
            ("{\"o\":{\"UserData\":5}}", Some("o.UserData is not an object")),
            ("7", Some("it is not an object")),
            ("{\"x\":1e400}", Some("a number is too large")),
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
                "{\"s\":1709629080.4417,\"h\":\"0x8020000000000000\",\"m\":\"Info\",\"p\":{\"a\":7}}",
                None,
            ),
            ("{\"s\":-11644473600,\"h\":18446744073709551615,\"m\":7,\"p\":7}", None),
            ("{\"s\":9.3e9}", Some("s is not a time")),
            ("{\"s\":true}", Some("s is not a time")),
            ("{\"h\":\"0x1ffffffffffffffff\"}", Some("h is not a whole number")),
            (
                "{\"h\":18446744073709551616}",
                Some("h is larger than 18446744073709551615"),
            ),
            ("{\"m\":\"300\"}", Some("m is larger than 255")),
            ("{\"m\":\"-4.5\"}", Some("m is not a whole number")),
            ("{\"p\":[]}", Some("p is not a whole number")),
            ("{\"p\":{\"a\":256}}", Some("p.a is larger than 255")),
        ] {
            assert_eq!(wrong(&types, text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn members_that_are_never_missing() {
        let types = [
            ("o.a!", "VARCHAR"),
            ("o.b!", "[\"UTINYINT\", null]"),
            ("o.c!.d!", "UTINYINT"),
            ("e!", "JSON"),
        ];
        for (text, expected) in [
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
            assert_eq!(wrong(&types, text).as_deref(), expected, "{text}");
        }
    }
}
