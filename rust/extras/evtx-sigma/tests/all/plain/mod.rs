//! A slow, plain evaluator of rules, which judges that of the crate. It walks over the YAML again for each event: nothing
//! is prepared, folded or indexed. It shares no code with the crate, and uses another YAML parser. The rule must load.

use std::collections::BTreeMap;

use base64::Engine as _;
use saphyr::{Scalar, Yaml};

/// The values of fields. `None` is NULL.
pub(crate) type Fields = BTreeMap<String, Vec<Option<String>>>;

/// What the evaluation of a rule needs.
pub(crate) struct Plain<'a> {
    pub(crate) fields: &'a Fields,
    pub(crate) placeholders: &'a BTreeMap<String, Vec<String>>,
}

/// A segment of a pattern: any number of characters, or one of some (`None` for any).
#[derive(Clone)]
enum Segment {
    Many,
    One(Option<Vec<char>>),
}

impl Plain<'_> {
    /// Whether a rule matches.
    pub(crate) fn rule(&self, rule: &Yaml<'_>) -> bool {
        let detections = &rule["detection"];
        let conditions = list(&detections["condition"]);
        conditions.iter().any(|condition| {
            let spaced = text(condition).replace('(', " ( ").replace(')', " ) ");
            let words: Vec<&str> = spaced.split_whitespace().collect();
            self.condition(&words, detections)
        })
    }

    /// Splits a condition at the last `or` outside parentheses, else at the last `and`. Otherwise it is a single term.
    fn condition(&self, words: &[&str], detections: &Yaml<'_>) -> bool {
        let mut depth = 0;
        let outside: Vec<usize> = (0..words.len())
            .filter(|&at| {
                depth += i32::from(words[at] == "(") - i32::from(words[at] == ")");
                depth == 0
            })
            .collect();
        let last = |word| outside.iter().rev().find(|&&at| words[at] == word).copied();
        if let Some(at) = last("or") {
            return self.condition(&words[..at], detections) || self.condition(&words[at + 1..], detections);
        }
        if let Some(at) = last("and") {
            return self.condition(&words[..at], detections) && self.condition(&words[at + 1..], detections);
        }
        match words {
            ["not", rest @ ..] => !self.condition(rest, detections),
            ["(", inner @ .., ")"] => self.condition(inner, detections),
            [quantifier, "of", pattern] => {
                let pattern = if *pattern == "them" { "*" } else { pattern };
                let segments: Vec<Segment> = pattern
                    .chars()
                    .map(|c| if c == '*' { Segment::Many } else { one(c) })
                    .collect();
                let is_named = |name: &str| {
                    name != "condition"
                        && (pattern.starts_with('_') || !name.starts_with('_'))
                        && like(&segments, &name.chars().collect::<Vec<_>>(), true)
                };
                let mut named = entries(detections).into_iter().filter(|(name, _)| is_named(name));
                match *quantifier {
                    "all" => named.all(|(_, detection)| self.detection(detection)),
                    _ => named.any(|(_, detection)| self.detection(detection)),
                }
            }
            [name] => self.detection(&detections[*name]),
            _ => panic!("{words:?}"),
        }
    }

    fn detection(&self, detection: &Yaml<'_>) -> bool {
        match detection {
            Yaml::Sequence(members) => members.iter().any(|member| self.detection(member)),
            Yaml::Mapping(_) => entries(detection).iter().all(|(key, value)| self.item(key, value)),
            keyword => self.item("", keyword),
        }
    }

    fn item(&self, key: &str, value: &Yaml<'_>) -> bool {
        let (field, modifiers) = key.split_once('|').unwrap_or((key, ""));
        let modifiers: Vec<&str> = modifiers.split('|').filter(|modifier| !modifier.is_empty()).collect();
        let values = list(value);
        if modifiers.contains(&"neq") {
            let has_value = self.texts(field).is_some_and(|texts| texts.iter().any(Option::is_some));
            return has_value && !values.iter().any(|value| self.value(field, &modifiers, value));
        }
        if modifiers.contains(&"all") {
            values.iter().all(|value| self.value(field, &modifiers, value))
        } else {
            values.iter().any(|value| self.value(field, &modifiers, value))
        }
    }

    /// The values of a field, or without a name, those of all fields.
    pub(crate) fn texts(&self, field: &str) -> Option<Vec<Option<String>>> {
        match field {
            "" => Some(self.fields.values().flatten().cloned().collect()),
            name => {
                let mut texts = self.fields.get(&name.replace(' ', "")).cloned();
                if ["md5", "sha1", "sha256", "imphash"].contains(&name) {
                    let prefix = format!("{}=", name.to_uppercase());
                    let lists = self.fields.get("Hashes").into_iter().flatten().flatten();
                    let hash = |list: &String| {
                        Some(Some(
                            list.split(',').find_map(|hash| hash.strip_prefix(&prefix))?.to_owned(),
                        ))
                    };
                    for text in lists.filter_map(hash) {
                        texts.get_or_insert_default().push(text);
                    }
                }
                texts
            }
        }
    }

    fn value(&self, field: &str, modifiers: &[&str], value: &Yaml<'_>) -> bool {
        let texts = self.texts(field);
        if modifiers.contains(&"exists") {
            return texts.is_some() == (text(value) == "true");
        }
        if matches!(value, Yaml::Value(Scalar::Null)) {
            return texts.is_none_or(|texts| texts.contains(&None));
        }
        let texts = texts.unwrap_or_default();
        let values = if modifiers.contains(&"expand") {
            self.expanded(&text(value))
        } else {
            vec![text(value)]
        };
        let is_escaped = matches!(value, Yaml::Value(Scalar::String(_)));
        values.iter().any(|value| {
            texts
                .iter()
                .flatten()
                .any(|text| self.test(field, modifiers, value, is_escaped, text))
        })
    }

    fn test(&self, field: &str, modifiers: &[&str], value: &str, is_escaped: bool, text: &str) -> bool {
        let has = |name: &str| modifiers.contains(&name);
        let number = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).ok().map(|number| number as f64),
            None => text.parse::<f64>().ok(),
        };
        // A date is `2024-01-02`, a character, and `23:04:05`.
        let part = [
            ("year", 0..4),
            ("month", 5..7),
            ("day", 8..10),
            ("hour", 11..13),
            ("minute", 14..16),
        ]
        .into_iter()
        .find(|(name, _)| has(name))
        .map(|(_, range)| range);
        let is_number = part.is_some() || ["lt", "lte", "gt", "gte"].iter().any(|name| has(name));
        if is_number {
            let is_date = text
                .get(4..8)
                .is_some_and(|month| month.starts_with('-') && month.ends_with('-'));
            let text = part
                .map_or(Some(text), |range| text.get(range).filter(|_| is_date))
                .unwrap_or_default();
            let (Some(one), Some(other)) = (number(text), number(value)) else {
                return false;
            };
            return match () {
                () if has("lt") => one < other,
                () if has("lte") => one <= other,
                () if has("gt") => one > other,
                () if has("gte") => one >= other,
                () => one == other,
            };
        }
        if has("re") {
            let flags: String = ["i", "m", "s"].into_iter().filter(|flag| has(flag)).collect();
            let flags = if flags.is_empty() { flags } else { format!("(?{flags})") };
            return regex::Regex::new(&format!("{flags}{value}"))
                .expect(value)
                .is_match(text);
        }
        if has("cidr") {
            return in_network(value, text);
        }
        let surrounded = |mut segments: Vec<Segment>| {
            if has("contains") || has("endswith") || (field.is_empty() && !has("startswith")) {
                segments.insert(0, Segment::Many);
            }
            if has("contains") || has("startswith") || (field.is_empty() && !has("endswith")) {
                segments.push(Segment::Many);
            }
            segments
        };
        let text: Vec<char> = text.chars().collect();
        if has("fieldref") {
            let others = self.texts(value).unwrap_or_default();
            return others
                .iter()
                .flatten()
                .any(|other| like(&surrounded(other.chars().map(one).collect()), &text, has("cased")));
        }
        let values = if is_escaped {
            encoded(modifiers, segments(value))
        } else {
            encoded(modifiers, value.chars().map(one).collect())
        };
        values
            .into_iter()
            .any(|segments| like(&surrounded(segments), &text, has("cased")))
    }

    /// A value with its placeholders replaced, one after the other.
    fn expanded(&self, value: &str) -> Vec<String> {
        for (name, values) in self.placeholders {
            if let Some((before, after)) = value.split_once(&format!("%{name}%")) {
                return values
                    .iter()
                    .flat_map(|value| self.expanded(&format!("{before}{value}{after}")))
                    .collect();
            }
        }
        vec![value.to_string()]
    }
}

fn one(character: char) -> Segment {
    Segment::One(Some(vec![character]))
}

/// The segments of a value: wildcards, escaped characters and plain ones.
fn segments(value: &str) -> Vec<Segment> {
    let characters: Vec<char> = value.chars().collect();
    match characters.as_slice() {
        [] => Vec::new(),
        ['\\', next @ ('*' | '?' | '\\'), rest @ ..] => [vec![one(*next)], segments(&String::from_iter(rest))].concat(),
        ['*', rest @ ..] => [vec![Segment::Many], segments(&String::from_iter(rest))].concat(),
        ['?', rest @ ..] => [vec![Segment::One(None)], segments(&String::from_iter(rest))].concat(),
        [plain, rest @ ..] => [vec![one(*plain)], segments(&String::from_iter(rest))].concat(),
    }
}

/// A value after the encodings among some modifiers, in their order.
fn encoded(modifiers: &[&str], segments: Vec<Segment>) -> Vec<Vec<Segment>> {
    const DASHES: [char; 5] = ['-', '/', '–', '—', '―'];
    let plain = || {
        let character = |part: &Segment| match part {
            Segment::One(Some(characters)) => characters[0],
            _ => panic!("a wildcard is encoded"),
        };
        segments.iter().map(character).collect::<String>()
    };
    let mut bytes: Option<Vec<u8>> = None;
    let base64 = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).expect("a text").chars().map(one).collect();
    for modifier in modifiers {
        let before = || bytes.clone().unwrap_or_else(|| plain().into_bytes());
        bytes = Some(match *modifier {
            "windash" => {
                let any_dash = |part: Segment| match part {
                    Segment::One(Some(one)) if DASHES.contains(&one[0]) => Segment::One(Some(DASHES.to_vec())),
                    other => other,
                };
                return vec![segments.into_iter().map(any_dash).collect()];
            }
            "wide" | "utf16le" => plain().encode_utf16().flat_map(u16::to_le_bytes).collect(),
            "utf16be" => plain().encode_utf16().flat_map(u16::to_be_bytes).collect(),
            "utf16" => [0xFEFF]
                .into_iter()
                .chain(plain().encode_utf16())
                .flat_map(u16::to_le_bytes)
                .collect(),
            "base64" => base64(&before()).into_bytes(),
            // What the bytes around it do not change.
            "base64offset" => {
                let bytes = before();
                let at = |offset: usize| {
                    let after = (6 - offset - bytes.len() % 3) % 3;
                    let with = |filler: u8| base64(&[&vec![filler; offset], &*bytes, &vec![filler; after]].concat());
                    let (zeros, ones) = (with(0), with(255));
                    zeros
                        .chars()
                        .zip(ones.chars())
                        .filter(|(a, b)| a == b)
                        .map(|(a, _)| one(a))
                        .collect()
                };
                return (0..3).map(at).collect();
            }
            _ => continue,
        });
    }
    vec![bytes.map_or(segments, |bytes| text(&bytes))]
}

/// Whether a text consists of the segments. Tries all ways to divide it.
fn like(segments: &[Segment], text: &[char], is_cased: bool) -> bool {
    match (segments, text) {
        ([], _) => text.is_empty(),
        ([Segment::Many, rest @ ..], _) => (0..=text.len()).any(|start| like(rest, &text[start..], is_cased)),
        ([Segment::One(_), ..], []) => false,
        ([Segment::One(any), rest @ ..], [character, after @ ..]) => {
            let is_same = |other: &char| {
                other == character
                    || !is_cased
                        && (other.to_lowercase().eq(character.to_lowercase())
                            || other.to_uppercase().eq(character.to_uppercase()))
            };
            any.as_ref().is_none_or(|any| any.iter().any(is_same)) && like(rest, after, is_cased)
        }
    }
}

/// Whether an address is in a network, bit by bit.
fn in_network(network: &str, address: &str) -> bool {
    use std::net::IpAddr;
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    let (base, length) = network.split_once('/').unwrap_or((network, "128"));
    let (base, size) = bits(base.parse().expect(network));
    let length = length.parse::<u32>().expect(network).min(size);
    let Ok(address) = address.split('%').next().unwrap_or_default().parse::<IpAddr>() else {
        return false;
    };
    [address, address.to_canonical()]
        .into_iter()
        .map(bits)
        .any(|(address, other)| other == size && (0..length).all(|bit| (address ^ base) >> (127 - bit) & 1 == 0))
}

fn list<'a, 'b>(value: &'a Yaml<'b>) -> Vec<&'a Yaml<'b>> {
    match value {
        Yaml::Sequence(values) => values.iter().collect(),
        one => vec![one],
    }
}

fn entries<'a, 'b>(map: &'a Yaml<'b>) -> Vec<(String, &'a Yaml<'b>)> {
    match map {
        Yaml::Mapping(entries) => entries.iter().map(|(key, value)| (text(key), value)).collect(),
        other => panic!("{other:?}"),
    }
}

fn text(value: &Yaml<'_>) -> String {
    match value {
        Yaml::Value(Scalar::String(text)) => text.to_string(),
        Yaml::Value(Scalar::Integer(number)) => number.to_string(),
        Yaml::Value(Scalar::FloatingPoint(number)) => number.to_string(),
        Yaml::Value(Scalar::Boolean(boolean)) => boolean.to_string(),
        other => panic!("{other:?}"),
    }
}
