//! The events of logs and the rules of folders, for tests. The crate `evtx` reads the logs. How it shows
//! values does not matter here, as every judge gets the same texts.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use evtx::{EvtxParser, ParserSettings};
use evtx_format::Interrupt;
use evtx_sigma::{EventClass, LogSources, Placeholders, Presence, RuleForEvents, RuleSet, Values, load_rules};
use serde_json::Value;

/// An event: its fields, in order.
#[derive(Debug, Default)]
pub(crate) struct LogEvent {
    pub(crate) names: Vec<String>,
    pub(crate) texts: Vec<Option<String>>,
}

impl LogEvent {
    /// The readable events of a log.
    pub(crate) fn all(log: &Path) -> Vec<LogEvent> {
        let settings = ParserSettings::default().num_threads(1);
        let Ok(parser) = EvtxParser::from_path(log) else {
            return Vec::new();
        };
        let mut parser = parser.with_configuration(settings);
        let records = parser.records_json_value().flatten();
        records.map(|record| LogEvent::of(&record.data)).collect()
    }

    fn of(json: &Value) -> LogEvent {
        let mut event = LogEvent::default();
        let Some(parts) = json["Event"].as_object() else {
            return event;
        };
        for (part, members) in parts.iter().filter(|(part, _)| !part.starts_with('#')) {
            for (name, value) in members.as_object().into_iter().flatten() {
                event.add(name, value, part == "System");
            }
        }
        event
    }

    /// Adds a value, or the leaves of a tree of values. Attributes are values only in `System`.
    fn add(&mut self, name: &str, value: &Value, is_system: bool) {
        match value {
            Value::Object(members) => {
                for (member, value) in members {
                    match (member.as_str(), value) {
                        ("#text", _) => self.add(name, value, is_system),
                        ("#attributes", Value::Object(attributes)) if is_system => {
                            for (attribute, value) in attributes {
                                self.add(&format!("{name}_{attribute}"), value, is_system);
                            }
                        }
                        ("#attributes", _) => {}
                        _ => self.add(member, value, is_system),
                    }
                }
            }
            Value::Array(values) => values.iter().for_each(|value| self.add(name, value, is_system)),
            leaf => {
                self.names.push(name.split(' ').collect());
                self.texts.push(match leaf {
                    Value::Null => None,
                    Value::String(text) => Some(text.clone()),
                    other => Some(other.to_string()),
                });
            }
        }
    }

    /// The names with their texts, for the plain evaluator.
    pub(crate) fn fields(&self) -> Vec<(&str, Option<&str>)> {
        let names = self.names.iter().map(String::as_str);
        names.zip(self.texts.iter().map(Option::as_deref)).collect()
    }
}

impl Values for LogEvent {
    fn push_text(&self, slot: usize, out: &mut String) -> Presence {
        match &self.texts[slot] {
            Some(text) => {
                out.push_str(text);
                Presence::Text
            }
            None => Presence::Null,
        }
    }
}

/// Classes of events, each folded once.
#[derive(Default)]
pub(crate) struct Classes(HashMap<Vec<String>, Arc<EventClass>>);

impl Classes {
    /// The class of an event: events with the same fields, channel, provider and ID.
    pub(crate) fn of(&mut self, event: &LogEvent, rules: &RuleSet) -> Arc<EventClass> {
        const KNOWN: [&str; 3] = ["Channel", "Provider_Name", "EventID"];
        let known = event
            .fields()
            .into_iter()
            .map(|(name, text)| text.filter(|_| KNOWN.contains(&name)));
        let known: Vec<Option<&str>> = known.collect();
        let mut key = event.names.clone();
        key.extend(known.iter().map(|text| text.unwrap_or_default().to_string()));
        let make = || {
            let names: Vec<&str> = event.names.iter().map(String::as_str).collect();
            Arc::new(rules.class(&names, &known, Interrupt::NEVER).expect("a class"))
        };
        self.0.entry(key).or_insert_with(make).clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.values().map(|class| class.bytes()).sum()
    }
}

/// The files in a folder and its subfolders with this extension, sorted by name.
pub(crate) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|one| one == ending) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The rules of texts that load, with log sources from the built-in table.
pub(crate) fn rules(texts: &[String]) -> Vec<RuleForEvents> {
    let placeholders = Placeholders::new();
    let rules = texts.iter().flat_map(|text| load_rules(text, &placeholders)).flatten();
    let for_events = rules.filter_map(|rule| {
        let alternatives = LogSources::builtin().resolve(&rule.log_sources).ok()?;
        Some(RuleForEvents { rule, alternatives })
    });
    for_events.collect()
}
