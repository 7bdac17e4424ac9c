//! The sources of events, as `sources.tsv` describes them.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::rows::{COLUMNS, column};
use crate::types::Type;

/// The columns that each event has, unless a source never has them.
pub(crate) const ALWAYS: [&str; 4] = ["time_created", "event_id", "provider", "computer"];

/// All sources, in the order of the file.
pub(crate) static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| read(include_str!("../sources.tsv")));

/// A tool whose exports have events.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) names: Vec<&'static str>,
    /// What its rows have: `an event of Winlogbeat, which has winlog`.
    pub(crate) expected: String,
    /// Its forms. The first that fits a row counts.
    pub(crate) forms: Vec<Form>,
}

/// A form in which a source writes an event.
#[derive(Debug, Default)]
pub(crate) struct Form {
    /// The member that has the event.
    pub(crate) within: Option<&'static str>,
    /// The members that each row has, or any of several.
    pub(crate) has: Vec<Vec<&'static str>>,
    /// The member whose text is the event as XML.
    pub(crate) xml: Option<&'static str>,
    /// The member whose text has JSON.
    pub(crate) json: Option<&'static str>,
    pub(crate) entries: Vec<Entry>,
    /// How the fields of the event are written, if the row has them.
    pub(crate) fields: Option<Fields>,
    /// An object that has only these members, or one of them.
    pub(crate) members: Option<(&'static str, bool, Vec<&'static str>)>,
}

/// Where a row has a value.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The index of the column.
    pub(crate) column: usize,
    /// As the file has it.
    pub(crate) path: &'static str,
    /// The types that the value can have.
    pub(crate) types: Vec<Type>,
    /// What stands for texts.
    pub(crate) names: Map<String, Value>,
    /// Whether there are no other names.
    pub(crate) is_strict: bool,
}

/// How the fields of an event are written.
#[derive(Debug)]
pub(crate) struct Fields {
    /// Where the row has them; empty if they are members of the row.
    pub(crate) path: &'static str,
    words: Vec<&'static str>,
    /// The members of the row that are not fields.
    pub(crate) others: Vec<&'static str>,
}

impl Fields {
    /// Whether a word of the file is about them.
    pub(crate) fn are(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    /// Whether an event without fields is one that has none.
    pub(crate) fn have_place(&self) -> bool {
        !["text", "xml", "values"].iter().any(|word| self.are(word))
    }
}

/// A path as errors name it. What follows `{}` is in a text.
pub(crate) fn named(path: &str) -> String {
    match path.strip_suffix("!{}") {
        Some(member) => format!("{member}: it"),
        None => path.replace("{}.", ": ").replace(['!', '{', '}'], ""),
    }
}

/// All sources with each of their names.
pub(crate) fn named_sources() -> Vec<(&'static Source, &'static str)> {
    let names = |source: &'static Source| source.names.iter().map(move |name| (source, *name));
    SOURCES.iter().flat_map(names).collect()
}

fn read(text: &'static str) -> Vec<Source> {
    let mut sources: Vec<Source> = Vec::new();
    for block in text.split("\n# source: ").skip(1) {
        let (head, lines) = block.split_once('\n').unwrap_or_default();
        let (names, title) = head.split_once('\t').unwrap_or_default();
        let names: Vec<_> = names.split(' ').collect();
        let form = Form::read(lines);
        match sources.last_mut().filter(|source| source.names == names) {
            Some(source) => source.forms.push(form),
            None => sources.push(Source {
                names,
                expected: format!(
                    "an event of {title}, which has {}",
                    about(lines, "is").unwrap_or_default()
                ),
                forms: vec![form],
            }),
        }
    }
    sources
}

/// The text of a comment at the start of a block.
fn about(lines: &'static str, name: &str) -> Option<&'static str> {
    let mut comments = lines
        .lines()
        .filter_map(|line| line.strip_prefix("# ")?.split_once(": "));
    comments.find(|(known, _)| *known == name).map(|(_, text)| text)
}

impl Form {
    pub(crate) fn read(lines: &'static str) -> Self {
        let has = about(lines, "has").unwrap_or_default().split(", ");
        let mut form = Form {
            within: about(lines, "within"),
            has: has.map(|any| any.split('|').collect()).collect(),
            xml: about(lines, "xml"),
            ..Form::default()
        };
        let mut others: Vec<&str> = form.xml.into_iter().collect();
        for line in lines.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut cells = line.split('\t');
            let mut next = || cells.next().unwrap_or_default();
            match (next(), next(), next(), next()) {
                ("no field", names, ..) => others.extend(names.split(", ")),
                (kind @ ("only" | "one"), path, names, _) => {
                    form.members = Some((path, kind == "one", names.split(' ').collect()));
                }
                ("event_data", path, words, _) => {
                    form.json = path.split_once("{}").map(|(member, _)| member.trim_end_matches('!'));
                    let (words, others) = (words.split(' ').collect(), Vec::new());
                    form.fields = Some(Fields { path, words, others });
                }
                (name, path, types, names) => {
                    others.extend(path.split(['!', '.']).next());
                    form.entries.push(Entry::read(column(name), path, types, names));
                }
            }
        }
        if let Some(fields) = form.fields.as_mut().filter(|fields| fields.are("flat")) {
            fields.others = others;
        }
        form
    }
}

impl Entry {
    fn read(column: usize, path: &'static str, types: &str, names: &str) -> Self {
        let words = types.split(['[', ']', '"', ',', ' ']).filter(|word| !word.is_empty());
        let mut types: Vec<Type> = words.map(|word| Type::of(word, &COLUMNS[column])).collect();
        if types.is_empty() {
            types.push(Type::of("", &COLUMNS[column]));
        }
        let strict = names.strip_prefix('!');
        Entry {
            column,
            path,
            types,
            names: serde_json::from_str(strict.unwrap_or(names)).unwrap_or_default(),
            is_strict: strict.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_only_known_words() {
        const WORDS: [&str; 15] = [
            "text", "unnamed", "listed", "values", "xml", "flat", "nulls", "empty", "filled", "guids", "GUIDS", "hex",
            "decimal", "binary", "",
        ];
        let mut names: Vec<_> = named_sources().into_iter().map(|(_, name)| name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), named_sources().len(), "two sources with one name");
        for line in include_str!("../sources.tsv").lines() {
            let (name, rest) = line.split_once('\t').unwrap_or((line, ""));
            match name {
                "event_data" => {
                    let words = rest.split('\t').nth(1).unwrap_or_default();
                    assert!(words.split(' ').all(|word| WORDS.contains(&word)), "{line}");
                }
                "" | "no field" | "only" | "one" => {}
                name if name.starts_with('#') => {}
                name => {
                    assert!(COLUMNS.iter().any(|column| column.name() == name), "{line}");
                    let names = rest.split('\t').nth(2).unwrap_or_default().trim_start_matches('!');
                    let is_json = names.is_empty() || serde_json::from_str::<Map<String, Value>>(names).is_ok();
                    assert!(is_json, "{line}");
                }
            }
        }
        for form in SOURCES.iter().flat_map(|source| &source.forms) {
            assert!(!form.has.is_empty() && (form.xml.is_some() || form.entries.len() > 5));
            assert!(form.entries.iter().all(|entry| !entry.types.is_empty()));
        }
    }
}
