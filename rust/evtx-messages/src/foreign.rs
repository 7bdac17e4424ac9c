//! Databases of messages that others made: SQLite files with one of three schemas.
//!
//! | from | tables | what the texts are |
//! | --- | --- | --- |
//! | plaso: `winevt-rc.db` | `winevtrc_message_string` and others | formats of Python: `{0:s}` is `%1`; without line breaks other than `%n` |
//! | WELM, `Velocidex/evtx-data` | `providers`, `messages` | as Windows stores them; the whitespace of some is lost |
//! | `@ts-evtx/messages` | `providers`, `messages` with more columns | as Windows stores them |

mod room;
mod columns;
mod plaso;

use std::sync::Arc;

use evtx_format::Interrupt;
use hashbrown::HashMap;

use crate::catalog::MAX_MESSAGE;
use crate::error::{Error, Result};
use crate::row::{Guid, MessageKind, MessageRow, guid_of_text};
use crate::sqlite::{Database, Row, Scan};
use columns::Columns;
use plaso::Plaso;
use room::Room;

/// The rows of a database of messages. They are made when they are asked for.
#[derive(Debug)]
pub struct Rows {
    database: Database,
    schema: Schema,
    /// The table of texts, and where the next one is.
    columns: Columns,
    scan: Scan,
    path: Arc<str>,
}

/// What a database knows besides the texts.
#[derive(Debug)]
enum Schema {
    Welm(Providers),
    Plaso(Box<Plaso>),
}

/// The names and GUIDs of providers, by their rows.
type Providers = HashMap<i64, (Arc<str>, Option<Guid>)>;

impl Rows {
    /// The rows of a database. `path` is where it is.
    ///
    /// # Errors
    /// [`Error::UnknownDatabase`] if it has none of the schemas, an error of the database, and [`Error::TooLarge`].
    pub fn new(database: Database, path: &str, interrupt: Interrupt<'_>) -> Result<Self> {
        let mut room = Room::default();
        let (schema, texts) = match database.table("winevtrc_message_string") {
            Some(strings) => (
                Schema::Plaso(Box::new(Plaso::new(&database, &mut room, interrupt)?)),
                strings,
            ),
            None => {
                let (Some(providers), Some(messages)) = (database.table("providers"), database.table("messages"))
                else {
                    return Err(Error::UnknownDatabase);
                };
                let providers = welm_providers(&database, Columns(providers), &mut room, interrupt)?;
                (Schema::Welm(providers), messages)
            }
        };
        Ok(Rows {
            scan: database.scan(&texts),
            columns: Columns(texts),
            database,
            schema,
            path: path.into(),
        })
    }

    /// The next row; `None` at the end.
    ///
    /// # Errors
    /// Those of the database, and [`Error::Interrupted`].
    pub fn next(&mut self, interrupt: Interrupt<'_>) -> Result<Option<MessageRow>> {
        loop {
            if let Schema::Plaso(plaso) = &mut self.schema
                && let Some(row) = plaso.next()
            {
                return Ok(Some(row));
            }
            let Some(row) = self.scan.next(&self.database, interrupt)? else {
                return Ok(None);
            };
            match &mut self.schema {
                Schema::Plaso(plaso) => plaso.start(&self.columns, &row, &self.path),
                Schema::Welm(providers) => {
                    if let Some(row) = welm(providers, &self.columns, &row, &self.path) {
                        return Ok(Some(row));
                    }
                }
            }
        }
    }
}

fn welm_providers(
    database: &Database,
    columns: Columns,
    room: &mut Room,
    interrupt: Interrupt<'_>,
) -> Result<Providers> {
    let (mut providers, mut scan) = (HashMap::new(), database.scan(&columns.0));
    while let Some(row) = scan.next(database, interrupt)? {
        if let Some(name) = columns.text(&row, "name") {
            room.take(192 + name.len())?;
            let guid = columns.text(&row, "guid").and_then(guid_of_text);
            providers.insert(row.id, (Arc::<str>::from(name), guid));
        }
    }
    Ok(providers)
}

/// A row of WELM and of ts-evtx. The latter has more columns.
fn welm(providers: &Providers, columns: &Columns, row: &Row, path: &Arc<str>) -> Option<MessageRow> {
    let (name, guid) = providers.get(&columns.integer::<i64>(row, "provider_id")?)?;
    let text = columns.text(row, "message").filter(|text| text.len() <= MAX_MESSAGE);
    Some(MessageRow {
        provider: Some(name.clone()),
        guid: *guid,
        event_id: Some(columns.integer(row, "event_id")?),
        version: columns.integer(row, "version"),
        qualifiers: columns.integer(row, "qualifiers"),
        message_id: columns.integer(row, "message_id"),
        language: columns.text(row, "language").map(Arc::from),
        text: text.map(Arc::from),
        channel: columns.text(row, "channel").map(Arc::from),
        file: path.clone(),
        ..MessageRow::new(MessageKind::Event)
    })
}
