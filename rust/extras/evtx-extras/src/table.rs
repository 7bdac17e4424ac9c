//! Adds the columns to tables.

use std::sync::Arc;

use evtx_arrow::{ColumnReference, ExtraColumn, Table};

use crate::finder::MessageCatalog;
use crate::messages::{Insertions, Messages};
use crate::record::WholeRecord;

/// Which columns are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extras {
    /// Whether there is a column `insertions`: the values that fill the message of each event, as a list.
    pub insertions: bool,
    /// Whether there is a column `message_source`: where each message is from.
    pub message_source: bool,
    /// Whether there is a column `record`: each record as it is stored.
    pub record: bool,
}

/// The names of the columns. No other column may have them.
pub const EXTRAS: [&str; 3] = ["insertions", "message_source", "record"];

/// The columns: the name of the one that each follows, its own, and a sentence that describes it.
const COLUMNS: [(&str, &str, &str); 3] = [
    (
        "fields",
        EXTRAS[0],
        "The values that fill the message: `%1` in its text stands for the first.",
    ),
    (
        "fields",
        EXTRAS[1],
        "Where the message is from: `event`, `catalog: ` and the file that the catalog took it from, if known, or `file: ` and \
         the file that was saved with the log. `contested: ` and such files if they disagree, so that there is none.",
    ),
    (
        "record_offset",
        EXTRAS[2],
        "The record as it is stored, with the definitions that it needs. NULL if it is damaged.",
    ),
];

impl Extras {
    /// Every column.
    pub const ALL: Extras = Extras {
        insertions: true,
        message_source: true,
        record: true,
    };

    /// The table with these columns, and with the messages of a catalog, for events that have no message elsewhere.
    pub fn of(self, table: Table, catalog: Option<MessageCatalog>) -> Table {
        let mut table = table.replacing("message", Arc::new(Messages::Text(catalog.clone())));
        let [insertions, message_source, record] = columns(catalog);
        for (column, (after, name, _), is_set) in [
            (insertions, COLUMNS[0], self.insertions),
            (message_source, COLUMNS[1], self.message_source),
            (record, COLUMNS[2], self.record),
        ] {
            if is_set {
                table = table.with_column(after, name, column);
            }
        }
        table
    }
}

fn columns(catalog: Option<MessageCatalog>) -> [Arc<dyn ExtraColumn>; 3] {
    [
        Arc::new(Insertions),
        Arc::new(Messages::Source(catalog)),
        Arc::new(WholeRecord),
    ]
}

/// Every column of a table of all events, in order, with these.
pub fn reference() -> Vec<ColumnReference> {
    let mut all = evtx_arrow::reference();
    for ((after, name, about), column) in COLUMNS.into_iter().zip(columns(None)) {
        let after = all.iter().position(|known| known.field.name() == after);
        // Several columns can follow the same one.
        let is_own = |known: &ColumnReference| EXTRAS.contains(&known.field.name().as_str());
        let mut at = after.map_or(all.len(), |after| after + 1);
        while all.get(at).is_some_and(is_own) {
            at += 1;
        }
        all.insert(
            at,
            ColumnReference {
                field: column.field(name),
                path: String::new(),
                about,
                option: Some(name),
            },
        );
    }
    all
}
