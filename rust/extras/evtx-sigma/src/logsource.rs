//! Log sources: which events a rule is for.
//!
//! The built-in table is `logsources.yml`. Another table of the same form can replace entries of it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use evtx_format::case::is_same;
use evtx_format::{Interrupt, Interrupted};

use crate::error::{LoadError, Position, Problem};
use crate::event::{Event, SYSTEM_CHANNEL, SYSTEM_EVENT_ID, has_value};
use crate::item::{Context, Item};
use crate::limits::Budget;
use crate::number::Number;
use crate::placeholders::Placeholders;
use crate::rule::all_of;
use crate::source::LogSource;
use crate::yaml::{Node, Value, documents};

/// A table of log sources.
#[derive(Debug, Clone)]
pub struct LogSources {
    entries: Vec<(LogSource, Arc<Alternative>)>,
}

/// Some of the events of a log source, which can have several of these.
#[derive(Debug, Clone)]
pub struct Alternative {
    /// The channels of the events, without regard to case. If empty, any channel.
    pub channels: Vec<String>,
    /// The IDs of the events. If empty, any ID.
    pub event_ids: Vec<u32>,
    /// What else must be true for an event, with the field names of the log.
    pub fields: Vec<Item>,
    /// The field names of the log, by those of rules. Other names are the same in both.
    pub renames: BTreeMap<String, String>,
}

/// An event with the field names of rules.
#[derive(Clone, Copy)]
pub struct Renamed<'a> {
    /// The event with the field names of its log.
    pub event: &'a dyn Event,
    /// The renames.
    pub alternative: &'a Alternative,
}

static BUILTIN: LazyLock<LogSources> = LazyLock::new(|| {
    let text = include_str!("../logsources.yml");
    let loaded = LogSources::load(text, Interrupt::NEVER).expect("nothing interrupts it");
    loaded.expect("a test loads the table of the crate")
});

impl LogSources {
    /// The built-in table.
    pub fn builtin() -> &'static LogSources {
        &BUILTIN
    }

    /// Loads a table: a map with the list `logsources`. A text can take some 100 ms.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub fn load(text: &str, interrupt: Interrupt<'_>) -> Result<Result<LogSources, LoadError>, Interrupted> {
        let documents: Result<Vec<Node>, _> = documents(text, interrupt)?.into_iter().collect();
        let loaded = documents.and_then(|documents| Self::of_documents(&documents, interrupt));
        interrupt.check()?;
        Ok(loaded)
    }

    fn of_documents(documents: &[Node], interrupt: Interrupt<'_>) -> Result<LogSources, LoadError> {
        let missing = Problem::Missing("logsources");
        let Some(document) = documents.first() else {
            return Err(missing.at(Position::START));
        };
        only_keys(document, "a table of log sources", &["logsources"])?;
        let list = document.get("logsources").ok_or_else(|| document.error(missing))?;
        let Value::List(nodes) = &list.value else {
            return Err(list.wrong_type("logsources", "a list"));
        };
        let placeholders = Placeholders::new();
        let mut context = Context {
            placeholders: &placeholders,
            interrupt,
            budget: Budget::default(),
            names_cleared_channel: false,
        };
        let nodes = nodes.iter().take_while(|_| interrupt.check().is_ok());
        let entries = nodes.map(|node| entry(node, &mut context)).collect::<Result<_, _>>()?;
        Ok(LogSources { entries })
    }

    /// This table with the entries of another, which replace all entries of the same category, product and service.
    pub fn with(&self, other: LogSources) -> LogSources {
        let is_kept = |(source, _): &&(LogSource, Arc<Alternative>)| other.entries.iter().all(|(new, _)| new != source);
        let mut entries: Vec<_> = self.entries.iter().filter(is_kept).cloned().collect();
        entries.extend(other.entries);
        LogSources { entries }
    }

    /// The events of some log sources: at least one alternative, or [`Problem::UnmappedLogSource`] if none of them has
    /// an entry.
    ///
    /// An entry applies if it has the same category and service, and the same product if both name one. If no entry has
    /// both category and service, those of the category apply, limited to the channels of the service.
    pub fn resolve(&self, sources: &[LogSource]) -> Result<Vec<Arc<Alternative>>, Problem> {
        let found: Vec<Arc<Alternative>> = sources.iter().flat_map(|source| self.resolve_one(source)).collect();
        let names = || sources.iter().map(LogSource::to_string).collect::<Vec<_>>().join("; ");
        if found.is_empty() {
            Err(Problem::UnmappedLogSource(names()))
        } else {
            Ok(found)
        }
    }

    fn resolve_one(&self, source: &LogSource) -> Vec<Arc<Alternative>> {
        let all = self.of(source.category.as_deref(), source.service.as_deref(), source);
        match (&source.category, &source.service) {
            (Some(category), Some(service)) if all.is_empty() => {
                let services = self.of(None, Some(service), source);
                let of_service =
                    |alternative: &Arc<Alternative>| services.iter().find_map(|service| alternative.within(service));
                self.of(Some(category), None, source)
                    .into_iter()
                    .filter_map(of_service)
                    .map(Arc::new)
                    .collect()
            }
            _ => all.into_iter().cloned().collect(),
        }
    }

    /// The entries for a category and a service, and for the product of a log source.
    fn of(&self, category: Option<&str>, service: Option<&str>, source: &LogSource) -> Vec<&Arc<Alternative>> {
        let is_product = |entry: &LogSource| match (&entry.product, &source.product) {
            (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
            _ => true,
        };
        let is_one = |one: &Option<String>, other: Option<&str>| match (one.as_deref(), other) {
            (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
            (one, other) => one == other,
        };
        let entries = self.entries.iter().filter(|(entry, _)| {
            is_one(&entry.category, category) && is_one(&entry.service, service) && is_product(entry)
        });
        entries.map(|(_, alternative)| alternative).collect()
    }
}

impl Alternative {
    /// Whether this includes an event.
    pub fn takes(&self, event: &dyn Event) -> bool {
        self.takes_channel(event) && self.takes_event_id(event) && self.fields.iter().all(|item| item.matches(event))
    }

    /// Whether this includes the channel of an event.
    pub(crate) fn takes_channel(&self, event: &dyn Event) -> bool {
        let is_one = |text: Option<&str>| text.is_some_and(|text| self.has_channel(text));
        self.channels.is_empty() || has_value(event, SYSTEM_CHANNEL, is_one)
    }

    /// Whether this includes the ID of an event.
    pub(crate) fn takes_event_id(&self, event: &dyn Event) -> bool {
        let is_one =
            |text: Option<&str>| text.is_some_and(|text| text.parse().is_ok_and(|id| self.event_ids.contains(&id)));
        self.event_ids.is_empty() || has_value(event, SYSTEM_EVENT_ID, is_one)
    }

    /// The name in the log of a rule's field.
    pub fn name_in_log<'a>(&'a self, field: &'a str) -> &'a str {
        self.renames.get(field).map_or(field, String::as_str)
    }

    fn has_channel(&self, channel: &str) -> bool {
        self.channels.iter().any(|known| is_same(known, channel))
    }

    /// The events that another alternative has too, by their channels. `None` if there are none.
    fn within(&self, other: &Alternative) -> Option<Alternative> {
        let mut both = self.clone();
        if self.channels.is_empty() {
            both.channels.clone_from(&other.channels);
        } else if !other.channels.is_empty() {
            both.channels.retain(|channel| other.has_channel(channel));
        }
        (both.channels.is_empty() == (self.channels.is_empty() && other.channels.is_empty())).then_some(both)
    }
}

impl Event for Renamed<'_> {
    fn values(&self, field: &str, each: &mut dyn FnMut(Option<&str>) -> ControlFlow<()>) {
        self.event.values(self.alternative.name_in_log(field), each);
    }

    fn every_value(&self, each: &mut dyn FnMut(&str, &str) -> ControlFlow<()>) {
        self.event.every_value(each);
    }
}

fn entry(node: &Node, context: &mut Context<'_>) -> Result<(LogSource, Arc<Alternative>), LoadError> {
    const KEYS: [&str; 7] = [
        "category",
        "product",
        "service",
        "channels",
        "event_ids",
        "fields",
        "renames",
    ];
    only_keys(node, "a log source", &KEYS)?;
    let source = LogSource::read(node)?;
    let list = |key| node.get(key).map_or(&[][..], Node::each);
    let channels = list("channels")
        .iter()
        .map(|channel| channel.need_text("a channel").map(str::to_owned));
    let event_ids = list("event_ids").iter().map(|id| match id.value {
        Value::Number(Number::Integer(number), _) => {
            let why = || format!("{number} is not an event ID, which is a number from 0 to 4294967295");
            u32::try_from(number).map_err(|_| id.error(Problem::text(why())))
        }
        _ => Err(id.wrong_type("an event ID", "a number")),
    });
    let renames = node
        .get("renames")
        .map_or(Ok(&[][..]), |renames| renames.entries("renames"))?;
    let renames = renames.iter().map(|(name, in_log)| {
        Ok((
            name.text.to_string(),
            in_log.need_text("the name of a field")?.to_owned(),
        ))
    });
    let fields = match node.get("fields") {
        Some(fields) => all_of(fields, fields.entries("fields")?, context)?,
        None => Vec::new(),
    };
    let alternative = Alternative {
        channels: channels.collect::<Result<_, _>>()?,
        event_ids: event_ids.collect::<Result<_, _>>()?,
        fields,
        renames: renames.collect::<Result<_, _>>()?,
    };
    Ok((source, alternative.into()))
}

/// Checks that a map has no keys but these.
fn only_keys(node: &Node, what: &str, keys: &[&str]) -> Result<(), LoadError> {
    let mut entries = node.entries(what)?.iter();
    let Some((key, _)) = entries.find(|(key, _)| !keys.contains(&&*key.text)) else {
        return Ok(());
    };
    let (what, name, known) = ("key", key.text.to_string(), keys.join(", "));
    Err(Problem::Unknown { what, name, known }.at(key.at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(category: &str, product: &str, service: &str) -> LogSource {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_string());
        LogSource {
            category: given(category),
            product: given(product),
            service: given(service),
        }
    }

    fn resolved(category: &str, product: &str, service: &str) -> Vec<Arc<Alternative>> {
        LogSources::builtin()
            .resolve(&[source(category, product, service)])
            .expect("alternatives")
    }

    type Fields<'a> = &'a [(&'a str, Option<&'a str>)];

    #[test]
    fn takes_4688_for_process_creation() {
        let alternatives = resolved("process_creation", "windows", "");
        let event_ids: Vec<_> = alternatives.iter().map(|one| one.event_ids.as_slice()).collect();
        assert_eq!(event_ids, [&[1], &[4688]]);
        let event: Fields<'_> = &[
            ("Channel", Some("SECURITY")),
            ("EventID", Some("4688")),
            ("NewProcessName", Some("cmd.exe")),
            ("CommandLine", Some("cmd /c")),
        ];
        assert!(!alternatives[0].takes(&event) && alternatives[1].takes(&event));
        assert_eq!(alternatives[1].name_in_log("Image"), "NewProcessName");
        assert_eq!(alternatives[1].name_in_log("CommandLine"), "CommandLine");
        assert_eq!(alternatives[1].name_in_log("IntegrityLevel"), "MandatoryLabel");
        assert_eq!(alternatives[1].name_in_log("LogonId"), "SubjectLogonId");
    }

    #[test]
    fn asks_for_fields() {
        let [delete] = resolved("registry_delete", "windows", "")
            .try_into()
            .expect("one alternative");
        let event = |kind| {
            let channel = Some("microsoft-windows-sysmon/operational");
            [("Channel", channel), ("EventID", Some("12")), ("EventType", Some(kind))]
        };
        assert!(delete.takes(&&event("DeleteValue")[..]));
        assert!(!delete.takes(&&event("CreateKey")[..]));
    }

    #[test]
    fn resolves_by_category_service_and_product() {
        let all = resolved("", "windows", "");
        assert!(all.len() == 1 && all[0].channels.is_empty() && all[0].event_ids.is_empty());
        assert_eq!(
            resolved("", "", "dns-client")[0].channels,
            ["Microsoft-Windows-DNS-Client/Operational"]
        );
        assert_eq!(
            resolved("antivirus", "anything", "")[0].name_in_log("Signature"),
            "ThreatName"
        );
        let all = LogSources::builtin().resolve(&[source("webserver", "", ""), source("", "windows", "setup")]);
        assert_eq!(all.expect("an alternative")[0].channels, ["Setup"]);
        let both = resolved("process_creation", "windows", "sysmon");
        assert!(both.len() == 1 && both[0].event_ids == [1]);
        for (category, product, service) in [
            ("process_creation", "linux", ""),
            ("webserver", "", ""),
            ("dns_query", "windows", "security"),
            ("", "linux", ""),
        ] {
            let error = LogSources::builtin()
                .resolve(&[source(category, product, service)])
                .expect_err(category);
            assert!(matches!(error, Problem::UnmappedLogSource(_)));
        }
        let error = LogSources::builtin()
            .resolve(&[source("webserver", "", "x"), source("proxy", "", "")])
            .expect_err("no log source");
        assert_eq!(
            error.to_string(),
            "unmapped log source: category webserver, service x; category proxy"
        );
    }

    #[test]
    fn replaces_entries_of_the_same_log_source() {
        let own = "logsources:
- {category: process_creation, product: windows, channels: [Mine], event_ids: [7]}
- {service: security, channels: [Other]}
- {service: own, channels: [A]}
- {service: own, channels: [B]}
";
        let table = LogSources::builtin().with(
            LogSources::load(own, Interrupt::NEVER)
                .expect("nothing interrupts it")
                .expect("a table"),
        );
        let channels = |category: &str, service: &str| {
            let alternatives = table
                .resolve(&[source(category, "windows", service)])
                .expect("alternatives");
            alternatives
                .iter()
                .flat_map(|one| one.channels.clone())
                .collect::<Vec<_>>()
        };
        // One entry replaces both entries of the table, Sysmon's and that of 4688.
        assert_eq!(channels("process_creation", ""), ["Mine"]);
        // An entry without the product is for another log source.
        assert_eq!(channels("", "security"), ["Security", "Other"]);
        assert_eq!(channels("", "own"), ["A", "B"]);
        assert_eq!(channels("", "system"), ["System"]);
    }

    #[test]
    fn says_where_a_table_is_wrong() {
        let entry = |entry: &str| format!("logsources:\n- service: s\n  {entry}");
        let keys = "category, product, service, channels, event_ids, fields, renames";
        let no_id = "is not an event ID, which is a number from 0 to 4294967295";
        for (text, why) in [
            (String::new(), "line 1, column 1: \"logsources\" is missing"),
            (
                "logsources: {}".to_owned(),
                "line 1, column 13: logsources must be a list, but this is a map",
            ),
            (
                "logsources: [{}]".to_owned(),
                "line 1, column 14: \"category, product or service\" is missing",
            ),
            (
                entry("channel: x"),
                &format!("line 3, column 3: there is no key \"channel\"; use {keys}"),
            ),
            (
                entry("event_ids: [1, x]"),
                "line 3, column 18: an event ID must be a number, but this is a text",
            ),
            (entry("event_ids: [1, -1]"), &format!("line 3, column 18: -1 {no_id}")),
            (
                entry("event_ids: 4294967296"),
                &format!("line 3, column 14: 4294967296 {no_id}"),
            ),
            (
                entry("fields: {F|lt: x}"),
                "line 3, column 18: the value must be a number, but this is a text",
            ),
        ] {
            let loaded = LogSources::load(&text, Interrupt::NEVER).expect("nothing interrupts it");
            assert_eq!(loaded.expect_err(&text).to_string(), why, "{text}");
        }
    }
}
