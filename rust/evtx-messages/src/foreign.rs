//! Databases of messages that others made: SQLite files with one of three schemas.
//!
//! | from | tables | what the texts are |
//! | --- | --- | --- |
//! | plaso: `winevt-rc.db` | `winevtrc_message_string` and others | formats of Python: `{0:s}` is `%1` |
//! | WELM, `Velocidex/evtx-data` | `providers`, `messages` | as Windows stores them; the whitespace of some is lost |
//! | `@ts-evtx/messages` | `providers`, `messages` with more columns | as Windows stores them |

mod plaso;

use std::sync::Arc;

use hashbrown::HashMap;

use crate::catalog::MAX_MESSAGE;
use crate::error::{Error, Result};
use crate::row::{MessageKind, MessageRow, guid_of_text};
use crate::sqlite::{Cell, Database, Row, Table};

/// Passes the rows of a database of messages to `push`. `path` is where the database is.
///
/// # Errors
/// [`Error::UnknownDatabase`] if it has none of the schemas, an error of the database, or one of `push`.
pub fn rows(database: &Database<'_>, path: &str, push: &mut dyn FnMut(MessageRow) -> Result<()>) -> Result<()> {
    if let Some(strings) = database.table("winevtrc_message_string") {
        return plaso::rows(database, strings, path, push);
    }
    match (database.table("providers"), database.table("messages")) {
        (Some(providers), Some(messages)) => welm(database, providers, messages, path, push),
        _ => Err(Error::UnknownDatabase),
    }
}

/// The columns of a table by name.
struct Columns<'t>(&'t Table);

impl Columns<'_> {
    fn get<'r>(&self, row: &'r Row, name: &str) -> Option<&'r Cell> {
        let index = self.0.columns.iter().position(|column| column == name)?;
        row.cells.get(index)
    }

    fn text<'r>(&self, row: &'r Row, name: &str) -> Option<&'r str> {
        self.get(row, name)?.text().filter(|text| !text.is_empty())
    }

    fn integer<T: TryFrom<i64>>(&self, row: &Row, name: &str) -> Option<T> {
        self.get(row, name)?
            .integer()
            .and_then(|number| T::try_from(number).ok())
    }
}

/// The tables of WELM and of ts-evtx. The latter has more columns.
fn welm(
    database: &Database<'_>,
    providers: &Table,
    messages: &Table,
    path: &str,
    push: &mut dyn FnMut(MessageRow) -> Result<()>,
) -> Result<()> {
    let columns = Columns(providers);
    let mut names = HashMap::new();
    for row in database.scan(providers) {
        let row = row?;
        if let Some(name) = columns.text(&row, "name") {
            let guid = columns.text(&row, "guid").and_then(guid_of_text);
            names.insert(row.id, (Arc::<str>::from(name), guid));
        }
    }
    let columns = Columns(messages);
    let file: Arc<str> = path.into();
    for row in database.scan(messages) {
        let row = row?;
        let Some((name, guid)) = columns.integer(&row, "provider_id").and_then(|id: i64| names.get(&id)) else {
            continue;
        };
        let Some(event_id) = columns.integer(&row, "event_id") else {
            continue;
        };
        let text = columns.text(&row, "message").filter(|text| text.len() <= MAX_MESSAGE);
        push(MessageRow {
            provider: Some(name.clone()),
            guid: *guid,
            event_id: Some(event_id),
            version: columns.integer(&row, "version"),
            qualifiers: columns.integer(&row, "qualifiers"),
            message_id: columns.integer(&row, "message_id"),
            language: columns.text(&row, "language").map(Arc::from),
            text: text.map(Arc::from),
            channel: columns.text(&row, "channel").map(Arc::from),
            file: file.clone(),
            ..MessageRow::new(MessageKind::Event)
        })?;
    }
    Ok(())
}
