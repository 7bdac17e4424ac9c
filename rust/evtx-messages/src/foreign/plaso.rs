//! Plaso's `winevt-rc.db`: message files, their tables and strings, and the providers that use the files.
//!
//! Columns refer to rows of other tables as `winevtrc_message_file.17`. Lists of files are JSON.

use std::ops::Range;
use std::sync::Arc;

use evtx_format::Interrupt;
use hashbrown::HashMap;

use super::columns::Columns;
use super::room::Room;
use crate::catalog::MAX_MESSAGE;
use crate::error::Result;
use crate::language::language_name;
use crate::registry::file_name;
use crate::row::{Guid, MessageKind, MessageRow, Owner, guid_of_text};
use crate::sqlite::{Database, Row};

/// The providers of one file, at most. *(choice)*
const MAX_OWNERS: usize = 256;

/// The sources of one row, and the files of one list, at most. *(choice)*
const MAX_LIST: usize = 64;

/// Which event of a provider with a manifest has a message.
#[derive(Debug)]
struct Mapping {
    /// The row of the file, and the ID of the message in it.
    message: (i64, u32),
    event_id: u16,
    version: Option<u8>,
    guid: Guid,
}

/// A file of messages: its row, and its providers.
type File = (i64, Arc<[Owner]>);

/// What the database knows besides the texts, and the text whose rows come next.
#[derive(Debug)]
pub(super) struct Plaso {
    /// The names of providers with a manifest.
    names: HashMap<Guid, Arc<str>>,
    /// For each table of messages its file, and its language.
    tables: HashMap<i64, (File, Option<Arc<str>>)>,
    /// Sorted by message.
    mappings: Vec<Mapping>,
    text: Option<(MessageRow, Users)>,
}

/// Who uses a text. There is a row for each.
#[derive(Debug)]
enum Users {
    /// The mappings with these indexes.
    Events(Range<usize>),
    /// The owners from an index on.
    Owners(Arc<[Owner]>, usize),
}

impl Plaso {
    pub(super) fn new(database: &Database, room: &mut Room, interrupt: Interrupt<'_>) -> Result<Self> {
        let mut plaso = Plaso {
            names: HashMap::new(),
            tables: HashMap::new(),
            mappings: Vec::new(),
            text: None,
        };
        let owners = plaso.read_owners(database, room, interrupt)?;
        plaso.read_tables(database, owners, room, interrupt)?;
        plaso.read_mappings(database, room, interrupt)?;
        Ok(plaso)
    }

    /// Takes a row of the table of texts.
    pub(super) fn start(&mut self, columns: &Columns, row: &Row, path: &Arc<str>) {
        let table = columns.text(row, "_message_table_identifier").and_then(reference);
        let table = table.and_then(|id| self.tables.get(&id));
        let message_id = columns.integer::<u32>(row, "message_identifier");
        let (Some(((file, owners), language)), Some(message_id)) = (table, message_id) else {
            return;
        };
        let text = columns
            .text(row, "text")
            .filter(|text| text.len() <= MAX_MESSAGE / 2)
            .map(template);
        let key = (*file, message_id);
        let start = self.mappings.partition_point(|mapping| mapping.message < key);
        let end = self.mappings.partition_point(|mapping| mapping.message <= key);
        let users = if start < end {
            Users::Events(start..end)
        } else {
            Users::Owners(owners.clone(), 0)
        };
        let row = MessageRow {
            message_id: Some(message_id),
            language: language.clone(),
            text: text.map(Arc::from),
            file: path.clone(),
            ..MessageRow::default()
        };
        self.text = Some((row, users));
    }

    /// The next row of the text.
    pub(super) fn next(&mut self) -> Option<MessageRow> {
        let (row, users) = self.text.as_mut()?;
        let found = match users {
            Users::Events(range) => range.next().map(|index| {
                let mapping = &self.mappings[index];
                MessageRow {
                    provider: self.names.get(&mapping.guid).cloned(),
                    guid: Some(mapping.guid),
                    event_id: Some(mapping.event_id),
                    version: mapping.version,
                    ..row.clone()
                }
            }),
            Users::Owners(owners, index) => {
                *index += 1;
                let (owner, id) = (owners.get(*index - 1), row.message_id.unwrap_or_default());
                owner.map(|owner| owner.row(id, row.clone()))
            }
        };
        if found.is_none() {
            self.text = None;
        }
        found
    }

    /// The owners of each file, by its name. Also reads the names of providers with a manifest.
    fn read_owners(
        &mut self,
        database: &Database,
        room: &mut Room,
        interrupt: Interrupt<'_>,
    ) -> Result<HashMap<String, Vec<Owner>>> {
        let mut owners = HashMap::new();
        let Some(table) = database.table("winevtrc_eventlog_provider") else {
            return Ok(owners);
        };
        let (mut scan, columns) = (database.scan(&table), Columns(table));
        while let Some(row) = scan.next(database, interrupt)? {
            let list = |name| columns.text(&row, name).map_or(Vec::new(), json_texts);
            let sources = match columns.text(&row, "name") {
                Some(name) => vec![name.to_owned()],
                None => list("log_sources"),
            };
            let files = [
                (MessageKind::Event, list("event_message_files")),
                (MessageKind::Parameter, list("parameter_message_files")),
            ];
            let guid = columns.text(&row, "identifier").and_then(guid_of_text);
            for source in sources {
                interrupt.check()?;
                room.take(128 + source.len())?;
                let name: Arc<str> = source.into();
                if let Some(guid) = guid {
                    self.names.entry(guid).or_insert_with(|| name.clone());
                }
                for (kind, file) in files
                    .iter()
                    .flat_map(|(kind, files)| files.iter().map(|file| (*kind, file)))
                {
                    let file = file_name(file);
                    let owners: &mut Vec<Owner> = match owners.get_mut(&file) {
                        Some(owners) => owners,
                        None => {
                            room.take(128 + file.len())?;
                            owners.entry(file).or_default()
                        }
                    };
                    let is_known = owners
                        .iter()
                        .any(|owner| owner.kind == kind && owner.provider.as_ref() == Some(&name));
                    if owners.len() < MAX_OWNERS && !is_known {
                        room.take(3 * size_of::<Owner>())?;
                        let provider = Some(name.clone());
                        owners.push(Owner { kind, provider, guid });
                    }
                }
            }
        }
        Ok(owners)
    }

    fn read_tables(
        &mut self,
        database: &Database,
        owners: HashMap<String, Vec<Owner>>,
        room: &mut Room,
        interrupt: Interrupt<'_>,
    ) -> Result<()> {
        let (Some(file_table), Some(table_table)) = (
            database.table("winevtrc_message_file"),
            database.table("winevtrc_message_table"),
        ) else {
            return Ok(());
        };
        let owners: HashMap<_, Arc<[Owner]>> = owners.into_iter().map(|(file, owners)| (file, owners.into())).collect();
        let unknown: Arc<[Owner]> = [Owner::UNKNOWN].into();
        let (mut scan, columns) = (database.scan(&file_table), Columns(file_table));
        let mut files = HashMap::new();
        while let Some(row) = scan.next(database, interrupt)? {
            room.take(64)?;
            let name = columns.text(&row, "windows_path").map_or(String::new(), file_name);
            files.insert(row.id, owners.get(&name).unwrap_or(&unknown).clone());
        }
        let (mut scan, columns) = (database.scan(&table_table), Columns(table_table));
        while let Some(row) = scan.next(database, interrupt)? {
            let file = columns.text(&row, "_message_file_identifier").and_then(reference);
            if let Some((id, owners)) = file.and_then(|id| Some((id, files.get(&id)?.clone()))) {
                room.take(160)?;
                let language = columns.integer(&row, "language_identifier").and_then(language_name);
                self.tables.insert(row.id, ((id, owners), language));
            }
        }
        Ok(())
    }

    fn read_mappings(&mut self, database: &Database, room: &mut Room, interrupt: Interrupt<'_>) -> Result<()> {
        let Some(table) = database.table("winevtrc_message_string_mapping") else {
            return Ok(());
        };
        let (mut scan, columns) = (database.scan(&table), Columns(table));
        while let Some(row) = scan.next(database, interrupt)? {
            let mapping = || {
                let file = columns.text(&row, "_message_file_identifier").and_then(reference)?;
                Some(Mapping {
                    message: (file, columns.integer(&row, "message_identifier")?),
                    event_id: columns.integer(&row, "event_identifier")?,
                    version: columns.integer(&row, "event_version"),
                    guid: guid_of_text(columns.text(&row, "provider_identifier")?)?,
                })
            };
            if let Some(mapping) = mapping() {
                room.take(2 * size_of::<Mapping>())?;
                self.mappings.push(mapping);
            }
        }
        self.mappings.sort_by_key(|mapping| mapping.message);
        Ok(())
    }
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
            (false, _, '"') if texts.len() == MAX_LIST => break,
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
