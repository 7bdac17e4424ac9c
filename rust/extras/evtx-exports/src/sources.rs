//! The sources of events, as `sources.tsv` describes them.

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field, FieldRef};
use evtx_reports::JsonTypes;
use serde_json::{Map, Value};

/// What the columns of `read_evtx` are without an option.
pub(crate) static COLUMNS: LazyLock<Vec<FieldRef>> = LazyLock::new(|| {
    // Texts without dictionaries.
    let text = |name, is_nullable| Field::new(name, DataType::Utf8View, is_nullable);
    let entry = DataType::Struct(vec![text("key", false), text("value", true)].into());
    let map = DataType::Map(Field::new("entries", entry, false).into(), false);
    let plain = |field: Field| match field.data_type() {
        DataType::Dictionary(..) => field.with_data_type(DataType::Utf8View),
        DataType::Map(..) => field.with_data_type(map.clone()),
        _ => field,
    };
    let columns = evtx_arrow::reference().into_iter();
    let always = columns.filter(|column| column.option.is_none());
    always.map(|column| Arc::new(plain(column.field))).collect()
});

/// The index of a column of `read_evtx`.
pub(crate) fn column(name: &str) -> Option<usize> {
    COLUMNS.iter().position(|column| column.name() == name)
}

/// The columns that each event has, unless a source never has them.
pub(crate) static ALWAYS: LazyLock<[usize; 4]> =
    LazyLock::new(|| ["time_created", "event_id", "provider", "computer"].map(|name| column(name).unwrap_or_default()));

/// All sources, in the order of the file.
pub(crate) static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| read(include_str!("../sources.tsv")));

/// A tool whose exports have events.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) names: Vec<&'static str>,
    /// What errors call it.
    pub(crate) title: &'static str,
    /// Its forms. The first that fits a row counts.
    pub(crate) forms: Vec<Form>,
}

/// A form in which a source writes an event.
#[derive(Debug)]
pub(crate) struct Form {
    /// The member that has the event.
    pub(crate) within: Option<&'static str>,
    /// The members that each row has, or any of several.
    pub(crate) has: Vec<Vec<&'static str>>,
    /// What a row has, if the members do not say it.
    pub(crate) is: Option<&'static str>,
    /// The member whose text is the event as XML.
    pub(crate) xml: Option<&'static str>,
    pub(crate) root: Node,
    pub(crate) types: JsonTypes,
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
    pub(crate) path: &'static str,
    pub(crate) reads: Reads,
    /// What stands for texts.
    pub(crate) names: Map<String, Value>,
    /// Whether there are no other names.
    pub(crate) is_strict: bool,
    /// Whether a value that is there can be null.
    pub(crate) is_nullable: bool,
}

/// How a value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// By the type of the column.
    Column,
    Signed,
    /// A number that can be hexadecimal.
    Hex,
    /// A time of the machine, if it has no offset.
    Local,
    /// A time in UTC, if it has no offset.
    Utc,
    /// A time as a number of seconds, or as a text.
    Seconds,
    /// Only what stands for a text.
    Names,
    Element,
    Fields,
}

/// How the fields of an event are written.
#[derive(Debug)]
pub(crate) struct Fields {
    words: Vec<&'static str>,
    /// The members of the row that are not fields, if the others are.
    pub(crate) not_fields: Option<Vec<&'static str>>,
}

impl Fields {
    /// Whether a word of the file is about them.
    pub(crate) fn are(&self, word: &str) -> bool {
        self.words.contains(&word)
    }
}

/// A value at a path: the entries that it fills, and its members.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) entries: Vec<usize>,
    pub(crate) members: Vec<(&'static str, Node)>,
    /// The types of the JSON in its text, if it has any.
    pub(crate) inner: Option<JsonTypes>,
    /// The types of the value besides an object.
    own: Vec<Value>,
    is_always: bool,
}

impl Node {
    fn member(&mut self, name: &'static str) -> &mut Node {
        let at = self.members.iter().position(|(known, _)| *known == name);
        let at = at.unwrap_or_else(|| {
            self.members.push((name, Node::default()));
            self.members.len() - 1
        });
        &mut self.members[at].1
    }

    /// The types of the value, as [`JsonTypes`] reads them.
    fn types(&mut self) -> Value {
        let mut all = self.own.clone();
        let members = self.members.iter_mut().map(|(name, node)| {
            let always = if node.is_always { "!" } else { "" };
            (format!("{name}{always}"), node.types())
        });
        let members: Map<String, Value> = members.collect();
        if self.inner.is_some() {
            self.inner = Some(parsed(&members.into()));
        } else if !members.is_empty() || all.is_empty() {
            all.push(members.into());
        }
        match &all[..] {
            [one] => one.clone(),
            _ => all.into(),
        }
    }
}

/// The names of all sources.
pub(crate) fn source_names() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().flat_map(|source| source.names.iter().copied())
}

fn read(text: &'static str) -> Vec<Source> {
    let mut sources: Vec<Source> = Vec::new();
    for block in text.split("\n# source: ").skip(1) {
        let (head, lines) = block.split_once('\n').unwrap_or((block, ""));
        let (names, title) = head.split_once('\t').unwrap_or((head, head));
        let form = Form::read(lines);
        match sources.iter_mut().find(|source| source.title == title) {
            Some(source) => source.forms.push(form),
            None => sources.push(Source {
                names: names.split(' ').collect(),
                title,
                forms: vec![form],
            }),
        }
    }
    sources
}

impl Form {
    fn read(lines: &'static str) -> Self {
        let about = |name: &str| {
            let mut found = lines
                .lines()
                .filter_map(|line| line.strip_prefix("# ")?.strip_prefix(name));
            found.next().map(|text| text.trim_start_matches(": "))
        };
        let has = about("has")
            .unwrap_or_default()
            .split(", ")
            .map(|any| any.split('|').collect());
        let mut form = Form {
            within: about("within"),
            has: has.collect(),
            is: about("is"),
            xml: about("xml"),
            root: Node::default(),
            types: JsonTypes::default(),
            entries: Vec::new(),
            fields: None,
            members: None,
        };
        let mut no_fields = Vec::new();
        for line in lines.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut cells = line.split('\t');
            let mut next = || cells.next().unwrap_or_default();
            match (next(), next(), next(), next()) {
                ("no field", names, ..) => no_fields.extend(names.split(", ")),
                (kind @ ("only" | "one"), path, names, _) => {
                    form.members = Some((path, kind == "one", names.split(' ').collect()));
                }
                ("event_data", path, words, _) => form.take_fields(path, words),
                (name, path, json_type, names) => form.take(name, path, json_type, names),
            }
        }
        if let Some(Fields {
            not_fields: Some(names),
            ..
        }) = &mut form.fields
        {
            let own = form.root.members.iter().map(|(name, _)| *name);
            names.extend(no_fields.into_iter().chain(own).chain(form.xml));
        }
        form.types = parsed(&form.root.types());
        form
    }

    fn take(&mut self, name: &str, path: &'static str, json_type: &str, names: &str) {
        let column = column(name).unwrap_or_default();
        let reads = match json_type {
            "SIGNED" => Reads::Signed,
            "LOCAL" => Reads::Local,
            "UTC" => Reads::Utc,
            "ELEMENT" => Reads::Element,
            text if text.contains("HEX") => Reads::Hex,
            text if text.contains("SECONDS") => Reads::Seconds,
            "VARCHAR" if !names.is_empty() && type_of(&COLUMNS[column]).starts_with('U') => Reads::Names,
            _ => Reads::Column,
        };
        let json_type = match (json_type, reads) {
            ("", _) => type_of(&COLUMNS[column]).into(),
            ("SIGNED" | "TEXT", _) => "JSON".into(),
            (_, Reads::Local | Reads::Utc) => "VARCHAR".into(),
            (_, Reads::Element) => "JSON".into(),
            (text, _) => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
        };
        let (is_strict, names) = names.strip_prefix('!').map_or((false, names), |names| (true, names));
        let is_nullable = json_type.as_array().is_some_and(|all| all.contains(&Value::Null));
        self.add(path, json_type);
        self.entries.push(Entry {
            column,
            path,
            reads,
            names: serde_json::from_str(names).unwrap_or_default(),
            is_strict,
            is_nullable,
        });
    }

    fn take_fields(&mut self, path: &'static str, words: &'static str) {
        let fields = Fields {
            words: words.split(' ').collect(),
            not_fields: words.contains("flat").then(Vec::new),
        };
        if !path.is_empty() {
            let json_type = match words.split(' ').next() {
                Some("xml") => Value::from("VARCHAR"),
                Some("text") => serde_json::json!(["VARCHAR", {}]),
                _ => "JSON".into(),
            };
            self.add(path, json_type);
            self.entries.push(Entry {
                column: column("event_data").unwrap_or_default(),
                path,
                reads: Reads::Fields,
                names: Map::new(),
                is_strict: false,
                is_nullable: true,
            });
        }
        self.fields = Some(fields);
    }

    /// Adds the next entry at a path.
    fn add(&mut self, path: &'static str, json_type: Value) {
        let mut node = &mut self.root;
        for segment in path.split('.') {
            let name = segment.trim_end_matches("{}");
            node = node.member(name.trim_end_matches('!'));
            node.is_always |= name.ends_with('!');
            if name != segment && node.inner.is_none() {
                node.inner = Some(JsonTypes::default());
                node.own = vec!["VARCHAR".into()];
            }
        }
        node.entries.push(self.entries.len());
        if !node.own.contains(&json_type) {
            node.own.push(json_type);
        }
    }
}

fn parsed(types: &Value) -> JsonTypes {
    types.to_string().parse().unwrap_or_default()
}

/// The type of a column, as [`JsonTypes`] name it.
fn type_of(column: &Field) -> &'static str {
    match column.data_type() {
        DataType::UInt8 => "UTINYINT",
        DataType::UInt16 => "USMALLINT",
        DataType::UInt32 => "UINTEGER",
        DataType::UInt64 => "UBIGINT",
        DataType::Timestamp(..) => "TIMESTAMP_NS",
        DataType::FixedSizeBinary(_) => "UUID",
        _ if column.extension_type_name() == Some("arrow.json") => "JSON",
        _ => "VARCHAR",
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
        let mut names: Vec<_> = source_names().collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), source_names().count(), "two sources with one name");
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
                    assert!(column(name).is_some(), "{line}");
                    let names = rest.split('\t').nth(2).unwrap_or_default().trim_start_matches('!');
                    let is_json = names.is_empty() || serde_json::from_str::<Map<String, Value>>(names).is_ok();
                    assert!(is_json, "{line}");
                }
            }
        }
        for form in SOURCES.iter().flat_map(|source| &source.forms) {
            assert!(!form.has.is_empty() && (form.xml.is_some() || form.entries.len() > 5));
        }
    }
}
