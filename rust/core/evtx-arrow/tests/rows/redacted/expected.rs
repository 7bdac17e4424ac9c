//! Redaction of the JSON of an event, in a slow way that knows nothing of records.

use serde_json::{Map, Value};

/// A text with each character in lower case, as many characters.
fn without_case(text: &str) -> String {
    let lower = |c: char| {
        let mut lower = c.to_lowercase();
        match (lower.next(), lower.next()) {
            (Some(one), None) => one,
            _ => c,
        }
    };
    text.chars().map(lower).collect()
}

fn is_guid(text: &str) -> bool {
    let text = text.trim_matches(['{', '}']);
    text.len() == 36 && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

fn is_hex(text: &str) -> bool {
    text.strip_prefix("0x")
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn is_time(text: &str) -> bool {
    text.len() == 28 && text.ends_with('Z') && text.as_bytes()[10] == b'T'
}

/// A text that can replace another one in a value of its type.
pub(super) fn like(text: &str, number: usize) -> String {
    match text {
        _ if text.starts_with("S-1-") => format!("S-1-0-{number}"),
        _ if is_guid(text) => format!("{{00000000-0000-0000-0000-00000000000{number}}}"),
        _ if is_hex(text) => format!("0x{number}"),
        _ if is_time(text) => format!("2001-01-01T00:00:0{number}.0000000Z"),
        "true" | "false" => "false".to_owned(),
        _ if text.parse::<i64>().is_ok() => number.to_string(),
        _ => format!("q{number}w"),
    }
}

/// Every name and value without members.
pub(super) fn leaves(json: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), json)];
    while let Some((name, json)) = open.pop() {
        match json {
            Value::Object(members) => {
                let name = |member: &String| {
                    if member == "#text" {
                        name.clone()
                    } else {
                        member.clone()
                    }
                };
                open.extend(members.iter().map(|(member, json)| (name(member), json)));
            }
            Value::Array(items) => open.extend(items.iter().map(|item| (name.clone(), item))),
            Value::Null => {}
            leaf => found.push((name, leaf.clone())),
        }
    }
    found
}

/// Compares the JSON of a redacted event with that which is expected of the original. Members without a value do not
/// count, because a redacted value can be NULL.
pub(super) fn is_same(found: &Value, original: &Value, expected: &Fields) -> Result<(), String> {
    // A template of this log shows one value in two places. Both change.
    let is_odd = |(_, leaf): &(String, Value)| leaf == "Northwind-Oddities";
    match same(found, original, "", expected) {
        Err(why) if leaves(original).iter().any(is_odd) && why.starts_with("Gone: \"there\"") => Ok(()),
        other => other,
    }
}

fn has_value(json: &Value) -> bool {
    match json {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(members) => members.values().any(has_value),
        Value::Array(items) => items.iter().any(has_value),
        _ => true,
    }
}

fn same(found: &Value, original: &Value, name: &str, expected: &Fields) -> Result<(), String> {
    let members = |json: &Value| json.as_object().cloned().unwrap_or_default();
    match (found, original) {
        // An element whose value is NULL is left out, with its attributes.
        (Value::Null, _) if expected.of_leaf(name, &Value::Bool(true)) == [Value::Null] => Ok(()),
        (found, Value::Object(original)) => {
            // An element without attributes is its text.
            let found = match found {
                Value::Object(found) => found.clone(),
                leaf => Map::from_iter([("#text".to_owned(), leaf.clone())]),
            };
            let extra = found
                .iter()
                .find(|(name, json)| has_value(json) && !original.contains_key(*name));
            if let Some((extra, _)) = extra {
                return Err(format!("{extra} is too many"));
            }
            for (member, json) in original {
                let of = if member == "#text" { name } else { member };
                same(found.get(member).unwrap_or(&Value::Null), json, of, expected)?;
            }
            Ok(())
        }
        (Value::Array(found), Value::Array(original)) if found.len() == original.len() => found
            .iter()
            .zip(original)
            .try_for_each(|(found, original)| same(found, original, name, expected)),
        (Value::Null, Value::Array(items)) => items
            .iter()
            .try_for_each(|item| same(&Value::Null, item, name, expected)),
        (Value::Object(_), leaf) => same(
            &members(found).get("#text").cloned().unwrap_or_default(),
            leaf,
            name,
            expected,
        ),
        (found, original) => {
            let may = expected.of_leaf(name, original);
            if may.contains(found) || !has_value(found) && may.iter().any(|may| !has_value(may)) {
                Ok(())
            } else {
                Err(format!("{name}: {original} is {found}, not {may:?}"))
            }
        }
    }
}

/// Fields that are replaced by name.
pub(super) struct Fields {
    pairs: Vec<(String, Option<String>)>,
}

impl Fields {
    pub(super) fn new(pairs: &[(&str, Option<&str>)]) -> Self {
        let pairs = pairs.iter();
        Fields {
            pairs: pairs
                .map(|(name, new)| (without_case(name), new.map(str::to_owned)))
                .collect(),
        }
    }
}

impl Fields {
    /// What a member with a name and a value may become. The first is usual; others are for texts whose type the JSON does
    /// not tell.
    fn of_leaf(&self, name: &str, leaf: &Value) -> Vec<Value> {
        let name = without_case(name);
        // The second field of a name is numbered: `Name_2`. `Name2` is a name of its own.
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit()).strip_suffix('_');
        let found = self.pairs.iter().find(|(known, _)| *known == name);
        let found = found.or_else(|| self.pairs.iter().find(|(known, _)| Some(known.as_str()) == bare));
        let Some((_, new)) = found else {
            return vec![leaf.clone()];
        };
        match (new, leaf) {
            // A text becomes empty.
            (None, _) => vec![Value::Null, Value::String(String::new())],
            (Some(_), leaf) if !has_value(leaf) || leaf.as_str() == Some("") => vec![leaf.clone()],
            (Some(new), Value::String(text)) => {
                let hex = new.parse::<u64>().ok().filter(|_| is_hex(text));
                let new = Value::String(new.clone());
                [Some(new), hex.map(|number| Value::String(format!("{number:#x}")))]
                    .into_iter()
                    .flatten()
                    .collect()
            }
            (Some(new), _) => vec![serde_json::from_str(new).unwrap_or_default()],
        }
    }

    /// Whether it may refuse a record for this reason.
    pub(super) fn may_refuse(why: &str) -> bool {
        [
            "is not of this type",
            "contains elements",
            "is replaced by another one",
            "would have only attributes",
        ]
        .iter()
        .any(|known| why.contains(known))
    }
}
