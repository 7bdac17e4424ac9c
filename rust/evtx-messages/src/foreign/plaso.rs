//! Plaso's `winevt-rc.db`: message files, their tables and strings, and the providers that use the files.
//!
//! Columns refer to rows of other tables as `winevtrc_message_file.17`. Lists of files are JSON.

use std::sync::Arc;

use hashbrown::HashMap;

use super::columns::Columns;
use crate::catalog::MAX_MESSAGE;
use crate::error::Result;
use crate::language::language_name;
use crate::registry::file_name;
use crate::row::{Guid, MessageKind, MessageRow, guid_of_text};
use crate::sqlite::{Database, Table};

/// The providers of one file, at most. *(choice)*
const MAX_OWNERS: usize = 256;

/// Whose messages a file has.
#[derive(Clone)]
struct Owner {
    kind: MessageKind,
    name: Arc<str>,
    guid: Option<Guid>,
}

/// Which event of a provider with a manifest has a message.
struct Mapping {
    event_id: u16,
    version: Option<u8>,
    guid: Guid,
}

pub(super) fn rows(
    database: &Database<'_>,
    strings: &Table,
    path: &str,
    push: &mut dyn FnMut(MessageRow) -> Result<()>,
) -> Result<()> {
    let (owners, names) = owners(database)?;
    let tables = tables(database)?;
    let mappings = mappings(database)?;
    let columns = Columns(strings);
    for row in database.scan(strings) {
        let row = row?;
        let table = columns.text(&row, "_message_table_identifier").and_then(reference);
        let Some((file_id, file, language)) = table.and_then(|id| tables.get(&id)) else {
            continue;
        };
        let Some(message_id) = columns.integer::<u32>(&row, "message_identifier") else {
            continue;
        };
        let text = columns
            .text(&row, "text")
            .filter(|text| text.len() <= MAX_MESSAGE / 2)
            .map(template);
        let row = MessageRow {
            message_id: Some(message_id),
            language: language.clone(),
            text: text.map(Arc::from),
            file: path.into(),
            ..MessageRow::new(MessageKind::Text)
        };
        let classic = |owner: &Owner| MessageRow {
            kind: owner.kind,
            provider: Some(owner.name.clone()),
            guid: owner.guid,
            event_id: (owner.kind == MessageKind::Event).then_some(message_id as u16),
            qualifiers: (owner.kind == MessageKind::Event).then_some((message_id >> 16) as u16),
            ..row.clone()
        };
        let declared = |mapping: &Mapping| MessageRow {
            kind: MessageKind::Event,
            provider: names.get(&mapping.guid).cloned(),
            guid: Some(mapping.guid),
            event_id: Some(mapping.event_id),
            version: mapping.version,
            ..row.clone()
        };
        let found = match (mappings.get(&(*file_id, message_id)), owners.get(file)) {
            (Some(mappings), _) => mappings.iter().map(declared).collect(),
            (None, Some(owners)) => owners.iter().map(classic).collect(),
            (None, None) => vec![row],
        };
        found.into_iter().try_for_each(&mut *push)?;
    }
    Ok(())
}

/// The owners of each file, by its name, and the names of providers with a manifest.
type Owners = (HashMap<String, Vec<Owner>>, HashMap<Guid, Arc<str>>);

fn owners(database: &Database<'_>) -> Result<Owners> {
    let (mut owners, mut names) = Owners::default();
    let Some(table) = database.table("winevtrc_eventlog_provider") else {
        return Ok((owners, names));
    };
    let columns = Columns(table);
    for row in database.scan(table) {
        let row = row?;
        let list = |name| columns.text(&row, name).map_or(Vec::new(), json_texts);
        let sources = match columns.text(&row, "name") {
            Some(name) => vec![name.to_owned()],
            None => list("log_sources"),
        };
        let guid = columns.text(&row, "identifier").and_then(guid_of_text);
        for source in sources {
            let name: Arc<str> = source.into();
            if let Some(guid) = guid {
                names.entry(guid).or_insert_with(|| name.clone());
            }
            for (kind, column) in [
                (MessageKind::Event, "event_message_files"),
                (MessageKind::Parameter, "parameter_message_files"),
            ] {
                for file in list(column) {
                    let owners: &mut Vec<Owner> = owners.entry(file_name(&file)).or_default();
                    let is_known = owners.iter().any(|owner| owner.kind == kind && owner.name == name);
                    if owners.len() < MAX_OWNERS && !is_known {
                        owners.push(Owner {
                            kind,
                            name: name.clone(),
                            guid,
                        });
                    }
                }
            }
        }
    }
    Ok((owners, names))
}

/// For each table of messages its file: the ID and the name, and the language of the table.
type Tables = HashMap<i64, (i64, String, Option<Arc<str>>)>;

fn tables(database: &Database<'_>) -> Result<Tables> {
    let (mut files, mut tables) = (HashMap::new(), Tables::new());
    let (Some(file_table), Some(table_table)) = (
        database.table("winevtrc_message_file"),
        database.table("winevtrc_message_table"),
    ) else {
        return Ok(tables);
    };
    for row in database.scan(file_table) {
        let row = row?;
        files.insert(
            row.id,
            Columns(file_table)
                .text(&row, "windows_path")
                .map_or(String::new(), file_name),
        );
    }
    let columns = Columns(table_table);
    for row in database.scan(table_table) {
        let row = row?;
        let file = columns.text(&row, "_message_file_identifier").and_then(reference);
        if let Some((id, name)) = file.and_then(|id| Some((id, files.get(&id)?.clone()))) {
            let language = columns.integer(&row, "language_identifier").and_then(language_name);
            tables.insert(row.id, (id, name, language.map(Arc::from)));
        }
    }
    Ok(tables)
}

/// By file and message.
fn mappings(database: &Database<'_>) -> Result<HashMap<(i64, u32), Vec<Mapping>>> {
    let mut mappings = HashMap::<_, Vec<Mapping>>::new();
    let Some(table) = database.table("winevtrc_message_string_mapping") else {
        return Ok(mappings);
    };
    let columns = Columns(table);
    for row in database.scan(table) {
        let row = row?;
        let mapping = || {
            let file = columns.text(&row, "_message_file_identifier").and_then(reference)?;
            let mapping = Mapping {
                event_id: columns.integer(&row, "event_identifier")?,
                version: columns.integer(&row, "event_version"),
                guid: guid_of_text(columns.text(&row, "provider_identifier")?)?,
            };
            Some(((file, columns.integer(&row, "message_identifier")?), mapping))
        };
        if let Some((key, mapping)) = mapping() {
            mappings.entry(key).or_default().push(mapping);
        }
    }
    Ok(mappings)
}

/// The row in a reference such as `winevtrc_message_file.17`.
fn reference(text: &str) -> Option<i64> {
    text.rsplit_once('.')?.1.parse().ok()
}

/// The texts of a list in JSON. Of escapes, only those of paths are known.
fn json_texts(json: &str) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let (mut inside, mut escaped) = (false, false);
    for c in json.chars() {
        match (inside, escaped, c) {
            (false, _, '"') => {
                inside = true;
                texts.push(String::new());
            }
            (false, ..) => {}
            (true, false, '\\') => escaped = true,
            (true, false, '"') => inside = false,
            _ => {
                escaped = false;
                texts.last_mut().into_iter().for_each(|text| text.push(c));
            }
        }
    }
    texts
}

/// The text as Windows stores it: a format of Python has `{0:s}` for `%1`, and `{{` for `{`.
///
/// It has `\n`, `\t` and `\r` for the escapes of Windows, but a backslash as it is, so a path can look like an escape.
fn template(format: &str) -> String {
    let mut text = String::with_capacity(format.len());
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}', '%', '\\']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let field = rest.strip_prefix('{').and_then(|field| field.split_once(":s}"));
        let number = field.and_then(|(index, rest)| Some((index.parse::<u8>().ok()?.checked_add(1)?, rest)));
        let (shown, after) = match (number, rest.as_bytes()) {
            (Some((number, after)), _) => (format!("%{number}"), after),
            (None, [b'\\', escape @ (b'n' | b't' | b'r'), ..]) => (format!("%{}", char::from(*escape)), &rest[2..]),
            (None, [b'%', ..]) => ("%%".to_owned(), &rest[1..]),
            (None, [a @ (b'{' | b'}'), b, ..]) if a == b => (rest[..1].to_owned(), &rest[2..]),
            _ => (rest[..1].to_owned(), &rest[1..]),
        };
        text.push_str(&shown);
        rest = after;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_become_texts() {
        for (format, text) in [
            ("a {0:s} b {11:s}", "a %1 b %12"),
            ("{{{0:s}}} 5%", "{%1} 5%%"),
            (r"a\n\tb\r C:\Windows", "a%n%tb%r C:\\Windows"),
            ("{x} {999:s} {", "{x} {999:s} {"),
        ] {
            assert_eq!(template(format), text);
        }
        assert_eq!(
            json_texts(r#"["%SystemRoot%\\a.dll", "b\"c"]"#),
            [r"%SystemRoot%\a.dll", "b\"c"]
        );
        assert_eq!(json_texts("[]"), [""; 0]);
        assert_eq!(reference("winevtrc_message_file.17"), Some(17));
    }
}
