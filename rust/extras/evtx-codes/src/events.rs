//! The list of events, `events.tsv`: the name of each, and the fields that say who, from where, with which program, and
//! about what. The file describes its own form.

use std::collections::{BTreeSet, HashMap};
use std::sync::OnceLock;

use regex_automata::meta::Regex;
use regex_automata::util::captures::Captures;

use crate::host::Writer;

const LIST: &str = include_str!("../events.tsv");

/// The public source of the names.
pub(crate) const SOURCE: &str =
    "EvtxECmd's maps (MIT); events on Microsoft Learn; Sysmon's schema; public tables of messages (WELM); real logs";

/// The longest value in which a pattern is looked for, in bytes. A record of a log has no longer one.
const LONGEST: usize = 1 << 16;

/// The fields of an event.
pub(crate) type Fields<'a> = [(&'a str, &'a str)];

/// An event.
#[derive(Debug, Clone, Copy, Default)]
pub struct Event<'a> {
    /// Its provider.
    pub provider: &'a str,
    /// Its ID.
    pub event_id: u32,
    /// The keys and values of `event_data`, or of `user_data` with the attributes of its element.
    pub fields: &'a [(&'a str, &'a str)],
    /// The element of `user_data` that contains the fields; empty without one.
    pub element: &'a str,
    /// The computer that wrote it; empty if it is unknown.
    pub computer: &'a str,
    /// The SID of the account that wrote it.
    pub user_sid: Option<&'a str>,
}

/// A value that counts: neither empty nor a hyphen, nor `(NULL)`, as NTLM writes it.
pub(crate) fn value<'a>(fields: &Fields<'a>, name: &str) -> Option<&'a str> {
    let (_, value) = fields.iter().find(|(key, _)| *key == name)?;
    Some(*value).filter(|value| !matches!(*value, "" | "-" | "(NULL)"))
}

/// The topics of facts. An event of the list has one of them or none; some topics only have facts about several events.
pub const TOPICS: [&str; 26] = [
    "failed logons",
    "logons from elsewhere",
    "logons to elsewhere",
    "services",
    "tasks",
    "accounts",
    "groups",
    "policies",
    "cleared logs",
    "clock",
    "starts",
    "gaps",
    "defender",
    "firewall",
    "shares",
    "pipes",
    "powershell",
    "wmi",
    "usb",
    "sql server",
    "directory",
    "kerberos",
    "certificates",
    "bits",
    "registry",
    "identities",
];

/// How much a fact deserves a look, from least to most.
pub const LEVELS: [&str; 4] = ["info", "low", "medium", "high"];

/// A pattern of the list. It is compiled when it is first needed: all together take longer than to read a small log.
#[derive(Debug)]
pub(crate) struct Pattern {
    text: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Always there: a test compiles all patterns.
    fn regex(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| Regex::new(self.text).ok()).as_ref()
    }
}

/// The patterns of the list, by name.
pub(crate) type Patterns = HashMap<&'static str, &'static Pattern>;

/// What a value is compared with.
#[derive(Debug)]
enum Expected {
    /// One of these; `*` is any value.
    OneOf(Vec<&'static str>),
    /// The value of another field.
    SameAs(&'static str),
    Pattern(&'static Pattern),
}

/// When a field or a topic counts.
#[derive(Debug)]
struct Condition {
    field: &'static str,
    /// Whether the field must, or must not, have what is expected.
    must: bool,
    expected: Expected,
}

impl Condition {
    fn parse(text: &'static str, patterns: &Patterns) -> Option<Self> {
        let (field, rest) = text.split_at(text.find(['=', '~'])?);
        let expected = match rest.split_at(1) {
            ("~", name) => Expected::Pattern(patterns.get(name)?),
            (_, value) => match value.strip_prefix('@') {
                Some(other) => Expected::SameAs(other),
                None => Expected::OneOf(value.split(',').collect()),
            },
        };
        let other = field.strip_suffix('!');
        Some(Condition {
            field: other.unwrap_or(field),
            must: other.is_none(),
            expected,
        })
    }

    fn holds(&self, fields: &Fields<'_>) -> bool {
        let is_expected = |found: &str| match &self.expected {
            // Tools write `False`, too.
            Expected::OneOf(values) => values.iter().any(|value| value.eq_ignore_ascii_case(found)) || values == &["*"],
            Expected::SameAs(other) => value(fields, other) == Some(found),
            Expected::Pattern(pattern) => {
                found.len() <= LONGEST && pattern.regex().is_some_and(|regex| regex.is_match(found))
            }
        };
        value(fields, self.field).is_some_and(is_expected) == self.must
    }
}

/// A field that can fill a column.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) field: &'static str,
    /// What wrote the name of another machine.
    pub(crate) writer: Writer,
    pattern: Option<&'static Pattern>,
    conditions: Vec<Condition>,
}

impl Source {
    fn parse(text: &'static str, patterns: &Patterns) -> Option<Self> {
        let (writer, text) = match text.split_once(':') {
            Some((writer, field)) => (Writer::named(writer)?, field),
            None => (Writer::Windows, text),
        };
        let mut parts = text.split('?');
        let text = parts.next()?;
        let conditions = parts
            .map(|text| Condition::parse(text, patterns))
            .collect::<Option<_>>()?;
        let (field, pattern) = match text.split_once('~') {
            Some((field, name)) => (field, Some(*patterns.get(name)?)),
            None => (text, None),
        };
        Some(Source {
            field,
            writer,
            pattern,
            conditions,
        })
    }

    /// Whether the value is that of the field, rather than a part of it.
    pub(crate) fn takes_all(&self) -> bool {
        self.pattern.is_none()
    }

    /// The value, if it counts.
    pub(crate) fn value<'a>(&self, fields: &Fields<'a>) -> Option<&'a str> {
        let found = value(fields, self.field)?;
        if !self.conditions.iter().all(|condition| condition.holds(fields)) {
            return None;
        }
        let Some(pattern) = self.pattern else {
            return Some(found);
        };
        if found.len() > LONGEST {
            return None;
        }
        let regex = pattern.regex()?;
        // Finding what a group captures takes some 50 times as long as finding the whole match.
        let captured = if regex.captures_len() == 1 {
            regex.find(found)?.span()
        } else {
            let mut captures = Captures::all(regex.group_info().clone());
            regex.captures(found, &mut captures);
            captures.iter().skip(1).flatten().next()?
        };
        found.get(captured.range()).filter(|text| !matches!(*text, "" | "-"))
    }
}

/// The sources of a column, in their order. One without a field keeps its position.
pub(crate) type Sources = Vec<Option<Source>>;

/// The sources that a column of a list names.
pub(crate) fn sources(column: &'static str, patterns: &Patterns) -> Option<Sources> {
    let of = |text: &'static str| match text {
        "" => Some(None),
        _ => Source::parse(text, patterns).map(Some),
    };
    column.split('|').map(of).collect()
}

/// The patterns that the comments of a list define.
pub(crate) fn patterns(list: &'static str) -> Option<Patterns> {
    let lines = list.lines().filter_map(|line| line.strip_prefix("# pattern "));
    let of = |line: &'static str| -> Option<(_, &'static Pattern)> {
        let (name, text) = line.split_once(": ")?;
        let compiled = OnceLock::new();
        Some((name, Box::leak(Box::new(Pattern { text, compiled }))))
    };
    lines.map(of).collect()
}

/// A topic that an event can belong to. One without a name says that the event has none.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) name: &'static str,
    pub(crate) level: &'static str,
    conditions: Vec<Condition>,
}

impl Topic {
    fn parse(text: &'static str, level: &str, patterns: &Patterns) -> Option<Self> {
        let known = |list: &[&'static str], name: &str| list.iter().copied().find(|known| *known == name);
        let mut parts = text.split('?');
        let (name, level) = match (parts.next()?, level) {
            ("", "") => ("", ""),
            (name, level) => (known(&TOPICS, name)?, known(&LEVELS, level)?),
        };
        Some(Topic {
            name,
            level,
            conditions: parts
                .map(|text| Condition::parse(text, patterns))
                .collect::<Option<_>>()?,
        })
    }
}

/// An event of the list.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The provider and the event ID, as in `MSSQLSERVER/18456`.
    pub(crate) code: &'static str,
    pub(crate) name: &'static str,
    /// Alternatives.
    topics: Vec<Topic>,
    pub(crate) account: Sources,
    pub(crate) domain: Sources,
    pub(crate) sid: Sources,
    pub(crate) remote_host: Sources,
    pub(crate) process: Sources,
    pub(crate) target: Sources,
    /// Alternatives. Several fields of one are joined.
    pub(crate) detail: Vec<Vec<Source>>,
}

impl Listed {
    /// The first topic whose conditions hold.
    pub(crate) fn topic(&self, fields: &Fields<'_>) -> Option<&Topic> {
        let holds = |topic: &&Topic| topic.conditions.iter().all(|condition| condition.holds(fields));
        self.topics.iter().find(holds).filter(|topic| !topic.name.is_empty())
    }
}

/// The events of a provider, by ID.
pub(crate) type OfProvider = HashMap<u32, &'static Listed>;

/// The list.
#[derive(Debug)]
pub(crate) struct Events {
    /// In the order of the file.
    pub(crate) all: &'static [Listed],
    providers: HashMap<String, OfProvider>,
}

/// A provider, or an event as PROVIDER/ID, as the list has it: in small letters, and one for all instances of SQL Server.
pub(crate) fn folded(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    match name.strip_prefix("mssql$") {
        Some(instance) => "mssqlserver".to_owned() + instance.find('/').map_or("", |id| &instance[id..]),
        None => name,
    }
}

impl Events {
    /// The events of a provider.
    pub(crate) fn of(&self, provider: &str) -> Option<&OfProvider> {
        self.providers.get(&folded(provider))
    }

    /// `None` if the text has another form than its comment says.
    fn parse(text: &'static str) -> Option<Self> {
        let patterns = patterns(text)?;
        let (mut all, mut numbers) = (Vec::new(), Vec::new());
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let columns: Vec<_> = line.split('\t').collect();
            let column = |index: usize| columns.get(index).copied().unwrap_or_default();
            let sources = |index| sources(column(index), &patterns);
            let (topics, levels) = (column(3).split('|'), column(4).split('|'));
            if topics.clone().count() != levels.clone().count() {
                return None;
            }
            let topics = topics.zip(levels).filter(|pair| *pair != ("", ""));
            let joined = |text: &'static str| text.split('+').map(|text| Source::parse(text, &patterns)).collect();
            let details = column(11).split('|').filter(|text| !text.is_empty());
            numbers.push((folded(column(0)), column(1).parse().ok()?));
            all.push(Listed {
                code: String::leak(format!("{}/{}", column(0), column(1))),
                name: column(2),
                topics: topics
                    .map(|(topic, level)| Topic::parse(topic, level, &patterns))
                    .collect::<Option<_>>()?,
                account: sources(5)?,
                domain: sources(6)?,
                sid: sources(7)?,
                remote_host: sources(8)?,
                process: sources(9)?,
                target: sources(10)?,
                detail: details.map(joined).collect::<Option<_>>()?,
            });
        }
        let all: &[Listed] = Vec::leak(all);
        let mut providers: HashMap<String, OfProvider> = HashMap::new();
        for ((provider, id), listed) in numbers.into_iter().zip(all) {
            providers.entry(provider).or_default().insert(id, listed);
        }
        Some(Events { all, providers })
    }
}

/// The lines of the list. Columns are separated by tabs, and those at the end can be missing.
pub(crate) fn lines() -> impl Iterator<Item = &'static str> {
    LIST.lines().filter(|line| !line.starts_with('#'))
}

/// The providers, in lower case, and the IDs of events with a topic, sorted.
pub fn events_of_topics() -> (Vec<&'static str>, Vec<u32>) {
    let (mut providers, mut ids) = (BTreeSet::new(), BTreeSet::new());
    for (provider, listed) in &events().providers {
        for (&id, listed) in listed {
            if !listed.topics.is_empty() {
                providers.insert(provider.as_str());
                ids.insert(id);
            }
        }
    }
    (providers.into_iter().collect(), ids.into_iter().collect())
}

/// The list of events.
pub(crate) fn events() -> &'static Events {
    static EVENTS: OnceLock<Events> = OnceLock::new();
    EVENTS.get_or_init(|| {
        Events::parse(LIST).unwrap_or_else(|| Events {
            all: &[],
            providers: HashMap::new(),
        })
    })
}

/// The providers of the list, in lower case. All instances of SQL Server are `mssqlserver`.
pub fn providers() -> impl Iterator<Item = &'static str> {
    events().providers.keys().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_complete() {
        let lines: Vec<Vec<&str>> = lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(events().all.len(), lines.len());
        let keys: Vec<(String, u32)> = lines
            .iter()
            .map(|row| (folded(row[0]), row[1].parse().expect("an ID")))
            .collect();
        assert!(keys.is_sorted_by(|one, next| one < next));
        let sources = ["Learn", "manifest", "message", "Sysmon", "logs", "EvtxECmd"];
        for row in &lines {
            // A row without fields has no source, and one without a topic has no level.
            assert!(
                [3, 5].contains(&row.len()) || row.len() == 13 && sources.contains(&row[12]),
                "{row:?}"
            );
            assert!(
                !row[2].is_empty() && row.iter().all(|text| text.trim() == *text),
                "{row:?}"
            );
            if let [_, _, _, _, _, account, domain, sid, host, ..] = row[..] {
                // A domain and a SID have the position of their account.
                let count = |text: &str| text.split('|').count();
                assert!(
                    count(domain) <= count(account) && count(sid) <= count(account),
                    "{row:?}"
                );
                assert!(
                    host.is_empty() || host.split('|').all(|text| text.contains(':')),
                    "{row:?}"
                );
            }
        }
        assert_eq!(
            ["mssql$Express", "MSSQL$X/1"].map(folded),
            ["mssqlserver", "mssqlserver/1"]
        );
        assert!(providers().any(|provider| provider == "eventlog"));
        assert!(events().of("OPENSSH").is_some_and(|events| events.contains_key(&4)));
    }

    #[test]
    fn all_patterns_are_valid() {
        for line in LIST.lines().filter_map(|line| line.strip_prefix("# pattern ")) {
            let (_, pattern) = line.split_once(": ").expect("a name");
            assert!(Regex::new(pattern).is_ok(), "{line}");
        }
    }

    #[test]
    fn topics_and_levels_are_those_of_the_lists() {
        let parsed = |columns| Events::parse(String::leak(format!("# pattern p: ^a\nP\t1\tName\t{columns}")));
        for known in ["\t", "usb\tlow", "usb?F~p|clock?F!=@G\tlow|high", "?F!~p|usb\t|low"] {
            assert!(parsed(known).is_some(), "{known}");
        }
        for unknown in [
            "disks\tlow",
            "usb\tcritical",
            "usb\t",
            "\tlow",
            "usb|clock\tlow",
            "usb?F~q\tlow",
            "usb?F\tlow",
            "?F~p\tlow",
        ] {
            assert!(parsed(unknown).is_none(), "{unknown}");
        }
    }

    #[test]
    fn claims_about_public_logs_name_topics() {
        let claims = include_str!("../../../../test/data/techniques.tsv");
        let rows = claims.lines().filter(|line| !line.starts_with('#')).skip(1);
        let topics = rows
            .filter_map(|line| line.split('\t').nth(3))
            .flat_map(|topics| topics.split('|'));
        let unknown: Vec<_> = topics
            .filter(|topic| !topic.is_empty() && !TOPICS.contains(topic))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn the_first_topic_whose_conditions_hold_counts() {
        let text = "# pattern p: ^a\nP\t1\tName\tusb?F~p?G=1,2|clock?F!=@G|bits?G=*\thigh|low|info";
        let events = Events::parse(text).expect("a list");
        let topic = |fields: &Fields<'_>| events.all[0].topic(fields).map(|topic| (topic.name, topic.level));
        for (fields, expected) in [
            (&[("F", "ab"), ("G", "2")][..], Some(("usb", "high"))),
            (&[("F", "ab"), ("G", "3")], Some(("clock", "low"))),
            (&[("F", "3"), ("G", "3")], Some(("bits", "info"))),
            (&[("G", "3")], Some(("clock", "low"))),
            (&[("F", "x"), ("G", "x")], Some(("bits", "info"))),
        ] {
            assert_eq!(topic(fields), expected, "{fields:?}");
        }
        assert_eq!(events.all[0].topic(&[]).map(|topic| topic.name), Some("clock"));
        let events = Events::parse("P\t1\tName\t?F!=1|usb\t|low").expect("a list");
        assert!(events.all[0].topic(&[("F", "2")]).is_none());
        assert!(events.all[0].topic(&[("F", "1")]).is_some());
    }
}
