//! Databases of messages that others made: SQLite files with one of three schemas.
//!
//! | from | tables | what the texts are |
//! | --- | --- | --- |
//! | plaso: `winevt-rc.db` | `winevtrc_message_string` and others | formats of Python: `{0:s}` is `%1`; without line breaks other than `%n` |
//! | WELM, `Velocidex/evtx-data` | `providers`, `messages` | as Windows stores them; the whitespace of some is lost |
//! | `@ts-evtx/messages` | `providers`, `messages` with more columns | as Windows stores them |

mod columns;
mod plaso;

use std::sync::Arc;

use hashbrown::HashMap;

use crate::catalog::MAX_MESSAGE;
use crate::error::{Error, Result};
use crate::row::{MessageKind, MessageRow, guid_of_text};
use crate::sqlite::{Database, Table};
use columns::Columns;

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
