//! 10,000 generated rules on generated events: the crate agrees with the plain evaluator, and so does the engine, with
//! several rules at once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use evtx_format::Interrupt;
use evtx_sigma::{
    Alternative, Event, LogSources, Match, Matching, Placeholders, Presence, Renamed, RuleForEvents, RuleSet, Values,
    load_rules,
};
use saphyr::{LoadableYamlNode as _, Yaml};

use super::common::Random;
use super::plain::{Fields, Plain};

const RULES: u64 = 10_000;

/// The seeds of the rules, the same in every run. `make test-long` sets another `PROPTEST_RNG_SEED`, and `PROPTEST_CASES`: one of ten is a rule.
fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let first = number("PROPTEST_RNG_SEED").map_or(0, |seed| seed << 32);
    first..first + RULES.max(number("PROPTEST_CASES").unwrap_or(0) / 10)
}

const EVENTS: usize = 8;

/// The characters of texts. Two texts of a few of these are often equal, or equal without regard to case.
const ATOMS: [&str; 24] = [
    "a", "A", "b", "B", "ä", "Ä", "ß", "ẞ", "Σ", "σ", "ς", "s", "ſ", "k", "\u{212A}", "1", "2", " ", "-", "/", "–",
    "—", "―", "\n",
];
const SPECIAL: [&str; 8] = ["*", "?", r"\", r"\*", r"\?", r"\\", "*", "%"];
const FIELDS: [&str; 7] = ["A", "B", "Logon Type", "Data", "EventID", "Hashes", "md5"];
const EXPRESSIONS: [&str; 8] = ["a", "^b", "[ab]+$", "a.b", "B|k", "(a|ß){2}", "σ", "^$"];
const NETWORKS: [&str; 6] = [
    "10.0.0.0/8",
    "10.1.0.0/17",
    "0.0.0.0/0",
    "::/0",
    "10.1.2.3",
    "::ffff:0:0/96",
];
const ADDRESSES: [&str; 5] = ["10.1.2.3", "10.200.0.1", "11.0.0.1", "::ffff:10.1.130.3", "fe80::1%4"];
const DATES: [&str; 3] = [
    "2024-01-02 23:04:05.5",
    "2023-12-31T01:59:00Z",
    "1999-02-28T12:00:00+01:00",
];
const NUMBERS: [&str; 7] = ["0", "1", "2", "12", "-1", "0x1", "1.5"];

/// Generates one rule and its events.
struct Case {
    random: Random,
    /// The atoms of this case.
    atoms: Vec<&'static str>,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let atoms = (0..3).map(|_| random.pick(&ATOMS)).collect();
        Case { random, atoms }
    }

    fn plain_text(&mut self, longest: usize) -> String {
        let length = self.random.below(longest + 1);
        (0..length).map(|_| self.random.pick(&self.atoms)).collect()
    }

    /// The value of a rule, with wildcards and escapes.
    fn pattern(&mut self) -> String {
        let length = self.random.below(4);
        let part = |case: &mut Self| {
            if case.random.one_in(3) {
                case.random.pick(&SPECIAL)
            } else {
                case.random.pick(&case.atoms)
            }
        };
        (0..length).map(|_| part(self)).collect()
    }

    fn rule(&mut self) -> String {
        let mut text = String::from("title: t\nlogsource: {product: windows}\ndetection:\n");
        let names = ["sel_a", "sel_b", "filter", "_hidden"];
        let count = 1 + self.random.below(names.len());
        for name in &names[..count] {
            let detection = self.detection();
            let _ = writeln!(text, "  {name}: {detection}");
        }
        let condition = if self.random.one_in(8) {
            format!(
                "[{}, {}]",
                self.condition(&names[..count], 2),
                self.condition(&names[..count], 1)
            )
        } else {
            self.condition(&names[..count], 3)
        };
        let _ = writeln!(text, "  condition: {condition}");
        text
    }

    fn condition(&mut self, names: &[&str], depth: usize) -> String {
        if depth == 0 || self.random.one_in(4) {
            return match self.random.below(6) {
                0 => "1 of sel_*".to_string(),
                1 => "all of sel*".to_string(),
                2 => "any of them".to_string(),
                3 => "all of them".to_string(),
                _ => self.random.pick(names).to_string(),
            };
        }
        let one = self.condition(names, depth - 1);
        let other = self.condition(names, depth - 1);
        match self.random.below(5) {
            0 => format!("not {one}"),
            1 => format!("({one} or {other})"),
            2 => format!("not ({one} and {other})"),
            3 => format!("{one} or {other}"),
            _ => format!("{one} and {other}"),
        }
    }

    fn detection(&mut self) -> String {
        match self.random.below(6) {
            0 => {
                let members: Vec<_> = (0..1 + self.random.below(2)).map(|_| self.map()).collect();
                let keyword = self.pattern();
                if self.random.one_in(2) {
                    format!("[{}, {}]", members.join(", "), quoted(&keyword))
                } else {
                    format!("[{}]", members.join(", "))
                }
            }
            1 => {
                let (one, other) = (self.pattern(), self.pattern());
                let key = self
                    .random
                    .pick(&["", "'|all'", "'|startswith'", "'|endswith|all'", "'|contains|cased'"]);
                match key {
                    "" => format!("[{}, {}]", quoted(&one), quoted(&other)),
                    key => format!("{{{key}: [{}, {}]}}", quoted(&one), quoted(&other)),
                }
            }
            _ => self.map(),
        }
    }

    fn map(&mut self) -> String {
        let mut items = BTreeMap::new();
        for _ in 0..1 + self.random.below(2) {
            let (key, value) = self.item();
            items.insert(key, value);
        }
        let items: Vec<_> = items
            .iter()
            .map(|(key, value)| format!("{}: {value}", quoted(key)))
            .collect();
        format!("{{{}}}", items.join(", "))
    }

    fn item(&mut self) -> (String, String) {
        let field = self.random.pick(&FIELDS);
        let neq = self.random.pick(&["", "", "", "|neq"]);
        let cased = self.random.pick(&["", "", "|cased"]);
        let place = self.random.pick(&["", "", "|contains", "|startswith", "|endswith"]);
        let list = |case: &mut Self, value: &mut dyn FnMut(&mut Self) -> String| {
            if case.random.one_in(2) {
                return ("", value(case));
            }
            let values: Vec<_> = (0..1 + case.random.below(3)).map(|_| value(case)).collect();
            (case.random.pick(&["", "|all"]), format!("[{}]", values.join(", ")))
        };
        match self.random.below(16) {
            0 => (format!("{field}{neq}"), "null".to_string()),
            1 => (
                format!("{field}|exists"),
                self.random.pick(&["true", "false"]).to_string(),
            ),
            2 => {
                let comparison = self.random.pick(&["lt", "lte", "gt", "gte"]);
                (
                    format!("{field}|{comparison}{neq}"),
                    self.random.pick(&NUMBERS).to_string(),
                )
            }
            3 => {
                let part = self
                    .random
                    .pick(&["minute", "hour|gte", "day", "month|lt", "year|gt", "year"]);
                (
                    format!("{field}|{part}{neq}"),
                    self.random.pick(&["1", "2", "23", "59", "2023"]).to_string(),
                )
            }
            4 => {
                let flags = self.random.pick(&["", "|i", "|m", "|i|s", "|s"]);
                let (all, value) = list(self, &mut |case| quoted(case.random.pick(&EXPRESSIONS)));
                (format!("{field}|re{flags}{all}{neq}"), value)
            }
            5 => {
                let (all, value) = list(self, &mut |case| quoted(case.random.pick(&NETWORKS)));
                (format!("{field}|cidr{all}{neq}"), value)
            }
            6 => {
                let (all, value) = list(self, &mut |case| quoted(case.random.pick(&FIELDS)));
                (format!("{field}|fieldref{place}{cased}{all}{neq}"), value)
            }
            7 => {
                let (all, value) = list(self, &mut |case| quoted(&case.pattern()));
                (format!("{field}|windash{place}{cased}{all}{neq}"), value)
            }
            8 => {
                let encoding = self.random.pick(&[
                    "base64",
                    "base64offset",
                    "wide|base64",
                    "utf16be|base64offset",
                    "utf16|base64",
                ]);
                let (all, value) = list(self, &mut |case| quoted(&format!("a{}b", case.plain_text(2))));
                let place = if encoding.ends_with("offset") {
                    "|contains"
                } else {
                    place
                };
                (format!("{field}|{encoding}{place}{cased}{all}{neq}"), value)
            }
            9 => {
                let (all, value) = list(self, &mut |case| {
                    let (before, after) = (case.plain_text(1), case.plain_text(1));
                    quoted(&format!(
                        "{before}{}{after}",
                        case.random.pick(&["%p%", "%q%", "%p%%q%"])
                    ))
                });
                (format!("{field}|expand{place}{cased}{all}{neq}"), value)
            }
            10 => {
                let (all, value) = list(self, &mut |case| {
                    case.random.pick(&["1", "2", "12", "true", "false", "0x1"]).to_string()
                });
                (format!("{field}{place}{all}{neq}"), value)
            }
            _ => {
                let (all, value) = list(self, &mut |case| quoted(&case.pattern()));
                (format!("{field}{place}{cased}{all}{neq}"), value)
            }
        }
    }

    fn event(&mut self) -> Fields {
        let mut fields = Fields::new();
        for field in FIELDS {
            let count = match field {
                "Data" => self.random.below(4),
                "md5" => usize::from(self.random.one_in(5)),
                _ => usize::from(!self.random.one_in(5)),
            };
            if count > 0 {
                let value = |case: &mut Self| match field {
                    "Hashes" if !case.random.one_in(4) => Some(case.hashes()),
                    _ => case.event_value(),
                };
                let values = (0..count).map(|_| value(self)).collect();
                fields.insert(field.replace(' ', ""), values);
            }
        }
        fields
    }

    /// A list of hashes.
    fn hashes(&mut self) -> String {
        let names = ["MD5", "SHA256", "IMPHASH", "MD5X"].into_iter();
        let names: Vec<_> = names.filter(|_| !self.random.one_in(3)).collect();
        let hashes = names.into_iter().map(|name| format!("{name}={}", self.plain_text(3)));
        hashes.collect::<Vec<_>>().join(",")
    }

    fn event_value(&mut self) -> Option<String> {
        Some(match self.random.below(16) {
            0 => return None,
            1 => self.random.pick(&ADDRESSES).to_string(),
            2 => self.random.pick(&DATES).to_string(),
            3 | 4 => self.random.pick(&NUMBERS).to_string(),
            5 => self
                .random
                .pick(&["true", "False", "*", "?", r"\", "%", r"a\*"])
                .to_string(),
            6 => self.base64(),
            7 => format!("{}{}", self.random.pick(&[r"\", "*", "?"]), self.plain_text(2)),
            _ => self.plain_text(3),
        })
    }
}

impl Case {
    /// The Base64 of a text in one of the encodings, among other bytes.
    fn base64(&mut self) -> String {
        let text = format!("a{}b", self.plain_text(2));
        let mut bytes = vec![b'x'; self.random.pick(&[0, 0, 0, 1, 2])];
        match self.random.below(4) {
            0 => bytes.extend(
                [0xFEFF]
                    .into_iter()
                    .chain(text.encode_utf16())
                    .flat_map(u16::to_le_bytes),
            ),
            1 => bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
            2 => bytes.extend(text.encode_utf16().flat_map(u16::to_be_bytes)),
            _ => bytes.extend(text.bytes()),
        }
        bytes.extend(vec![b'y'; self.random.pick(&[0, 0, 0, 1, 2])]);
        base64::engine::general_purpose::STANDARD.encode(bytes)
    }
}

/// A text as a scalar of YAML.
fn quoted(text: &str) -> String {
    if text.contains('\n') {
        let escaped = text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("\"{escaped}\"")
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

fn placeholders() -> Placeholders {
    let placeholders = [("p", vec!["a*", "B"]), ("q", vec!["k"])];
    placeholders
        .map(|(name, values)| (name.to_string(), values.into_iter().map(str::to_string).collect()))
        .into()
}

/// An event for the engine.
struct Slots(Vec<(Presence, String)>);

impl Values for Slots {
    fn push_text(&self, slot: usize, out: &mut String) -> Presence {
        out.push_str(&self.0[slot].1);
        self.0[slot].0
    }
}

impl Case {
    /// The events that a rule is for: any, or those with some channels, IDs or fields, perhaps with renamed fields.
    fn alternatives(&mut self) -> Vec<Arc<Alternative>> {
        let mut alternatives = Vec::new();
        for _ in 0..self.random.pick(&[1, 1, 1, 2, 3]) {
            let mut text = "logsources:\n- service: s\n".to_string();
            if self.random.one_in(2) {
                let channels = self.random.pick(&["x", "X", "[x, y]", "[ß, Y]"]);
                let _ = writeln!(text, "  channels: {channels}");
            }
            if self.random.one_in(2) {
                let ids = self.random.pick(&["1", "[1, 2]", "[12, 2, 3]"]);
                let _ = writeln!(text, "  event_ids: {ids}");
            }
            if self.random.one_in(4) {
                let (key, value) = self.item();
                let value = value.replace("%p%", "a").replace("%q%", "B");
                let _ = writeln!(text, "  fields: {{{}: {value}}}", quoted(&key.replace("|expand", "")));
            }
            if self.random.one_in(3) {
                let renames = self
                    .random
                    .pick(&["{A: B}", "{A: B, B: A}", "{Data: A}", "{A: Z}", "{EventID: B}"]);
                let _ = writeln!(text, "  renames: {renames}");
            }
            let sources = LogSources::load(&text, Interrupt::NEVER)
                .expect("nothing interrupts it")
                .unwrap_or_else(|error| panic!("{error}\n{text}"));
            let rule = "title: t\nlogsource: {service: s}\ndetection: {s: {A: a}, condition: s}";
            let rule = load_rules(rule, &Placeholders::new()).remove(0).expect("a rule");
            alternatives.extend(sources.resolve(&rule.log_sources).expect("an alternative"));
        }
        alternatives
    }

    /// Puts the values of an event into slots, and adds absent ones.
    fn slots(&mut self, event: &Fields) -> (Vec<String>, Slots) {
        let (mut names, mut slots) = (Vec::new(), Vec::new());
        for (name, values) in event {
            for value in values {
                names.push(name.clone());
                slots.push(match value {
                    Some(text) => (Presence::Text, text.clone()),
                    None => (Presence::Null, String::new()),
                });
            }
            if self.random.one_in(6) {
                names.push(name.clone());
                slots.push((Presence::Absent, String::new()));
            }
        }
        for name in FIELDS {
            let name = name.replace(' ', "");
            if self.random.one_in(8) && !names.contains(&name) {
                names.push(name);
                slots.push((Presence::Absent, String::new()));
            }
        }
        (names, Slots(slots))
    }
}

/// What each rule alone finds, by the first alternative that takes the event and with which the rule matches.
fn judged(rules: &[RuleForEvents], event: &dyn Event) -> Vec<Match> {
    let matches = (0u32..).zip(rules).filter_map(|(rule, one)| {
        let mut alternatives = (0..)
            .zip(&one.alternatives)
            .filter(|(_, alternative)| alternative.takes(event));
        alternatives.find_map(|(index, alternative)| {
            Some(Match {
                rule,
                alternative: index,
                matched: one.rule.matches(&Renamed { event, alternative })?,
            })
        })
    });
    matches.collect()
}

#[test]
#[ignore = "slow"]
fn the_engine_agrees_with_each_rule_alone() {
    const TOGETHER: u64 = 20;
    let placeholders = placeholders();
    let (mut asked, mut matches, mut empty) = (0, 0, 0);
    for set in seeds().step_by(TOGETHER as usize) {
        let mut cases: Vec<Case> = (set..set + TOGETHER).map(Case::new).collect();
        let texts: Vec<String> = cases.iter_mut().map(Case::rule).collect();
        let rules = texts.iter().zip(&mut cases).map(|(text, case)| RuleForEvents {
            rule: load_rules(text, &placeholders).remove(0).expect("a rule"),
            alternatives: case.alternatives(),
        });
        let rules: Vec<_> = rules.collect();
        let count = rules.len();
        let rules = Arc::new(RuleSet::new(rules));
        assert_eq!(rules.rules().len(), count);
        // A thread remembers texts from event to event.
        let mut matching = Matching::new(rules.clone());
        for case in &mut cases {
            for _ in 0..EVENTS {
                let mut event = case.event();
                let channel = case.random.pick(&[None, Some("x"), Some("Y"), Some("ẞ"), Some("z")]);
                if let Some(channel) = channel {
                    event.insert("Channel".to_string(), vec![Some(channel.to_string())]);
                }
                let (names, slots) = case.slots(&event);
                let known: Vec<Option<&str>> = slots
                    .0
                    .iter()
                    .map(|(found, text)| (*found == Presence::Text && case.random.one_in(2)).then_some(text.as_str()))
                    .collect();
                let fields: Vec<(&str, Option<&str>)> = names
                    .iter()
                    .zip(&slots.0)
                    .filter(|(_, (found, _))| *found != Presence::Absent)
                    .map(|(name, (found, text))| (name.as_str(), (*found == Presence::Text).then_some(text.as_str())))
                    .collect();
                let expected = judged(rules.rules(), &fields.as_slice());
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let class = rules.class(&names, &known, Interrupt::NEVER).expect("a class");
                let mut found = Vec::new();
                matching
                    .matches(&class, &slots, Interrupt::NEVER, &mut found)
                    .expect("nothing interrupts it");
                if found != expected {
                    let wrong = found
                        .iter()
                        .chain(&expected)
                        .find(|one| !found.contains(one) || !expected.contains(one));
                    let rule = wrong.expect("a rule that is not in both").rule as usize;
                    panic!(
                        "{fields:?}\n{known:?}\n{}\n{:#?}\nfound {found:?}\nexpected {expected:?}",
                        texts[rule],
                        rules.rules()[rule].alternatives
                    );
                }
                asked += rules.rules().len();
                matches += found.len();
                empty += usize::from(class.is_empty());
            }
        }
    }
    assert!(
        matches > asked / 20 && matches < asked / 2,
        "{matches} of {asked} matched"
    );
    assert!(empty * 10 < asked, "{empty} kinds can match nothing");
}

#[test]
fn agrees_with_the_plain_evaluator() {
    let placeholders = placeholders();
    let mut matches = 0;
    for seed in seeds() {
        let mut case = Case::new(seed);
        let text = case.rule();
        let rule = load_rules(&text, &placeholders)
            .remove(0)
            .unwrap_or_else(|refused| panic!("{seed}: {refused}\n{text}"));
        let yaml = Yaml::load_from_str(&text).expect("YAML");
        for _ in 0..EVENTS {
            let fields = case.event();
            let event: Vec<(&str, Option<&str>)> = fields
                .iter()
                .flat_map(|(name, values)| values.iter().map(|value| (name.as_str(), value.as_deref())))
                .collect();
            let matched = rule.matches(&event.as_slice());
            let plain = Plain {
                fields: &fields,
                placeholders: &placeholders,
            };
            let expected = plain.rule(&yaml[0]);
            assert_eq!(matched.is_some(), expected, "{seed}: {fields:?}\n{text}");
            matches += usize::from(expected);
            for (field, value) in matched.into_iter().flat_map(|matched| matched.fields) {
                let is_known = match plain.texts(&field) {
                    Some(values) => values.contains(&value),
                    None => value.is_none(),
                };
                assert!(is_known, "{seed}: {field} {value:?}\n{text}");
            }
        }
    }
    let all = seeds().count() * EVENTS;
    assert!(matches > all / 5 && matches < all * 4 / 5, "{matches} of {all} matched");
}
