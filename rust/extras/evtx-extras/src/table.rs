//! Adds the columns to tables.

use std::sync::Arc;

use evtx_arrow::{ColumnReference, ExtraColumn, Options, Table};

use crate::finder::MessageCatalog;
use crate::messages::{Insertions, Messages};
use crate::record::WholeRecord;

/// A column.
struct Row {
    name: &'static str,
    /// The name of the column that it follows.
    after: &'static str,
    /// A sentence that describes it.
    about: &'static str,
    is_set: fn(Extras) -> bool,
    make: fn(Option<MessageCatalog>) -> Arc<dyn ExtraColumn>,
}

/// Defines the columns: for each its description, its name, the column that it follows, and how it is made.
macro_rules! columns {
    ($($(#[doc = $about:literal])* $name:ident after $after:literal: $make:expr;)*) => {
        /// Which columns are added.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Extras { $($(#[doc = $about])* pub $name: bool,)* }

        impl Extras {
            /// Every column.
            pub const ALL: Extras = Extras { $($name: true,)* };
        }

        const COLUMNS: &[Row] = &[$(Row {
            name: stringify!($name),
            after: $after,
            about: concat!($($about),*).trim_ascii_start(),
            is_set: |extras| extras.$name,
            make: $make,
        }),*];
    };
}

columns! {
    /// The values that fill the message: `%1` in its text stands for the first.
    insertions after "fields": |_| Arc::new(Insertions);
    /// Where the message is from: `event`, `catalog: ` and the file that the catalog took it from, if known, or
    /// `file: ` and the file that was saved with the log. If files disagree, there is no message, and this is
    /// `contested: ` and the files.
    message_source after "fields": |catalog| Arc::new(Messages::Source(catalog));
    /// The record as it is stored, with the definitions that it needs. NULL if it is damaged.
    record after "record_offset": |_| Arc::new(WholeRecord);
}

impl Extras {
    /// The table with these columns, and with the messages of a catalog, for events that have no message elsewhere.
    pub fn of(self, table: Table, catalog: Option<MessageCatalog>) -> Table {
        let table = table.replacing("message", Arc::new(Messages::Text(catalog.clone())));
        let set = COLUMNS.iter().filter(|row| (row.is_set)(self));
        set.fold(table, |table, row| {
            table.with_column(row.after, row.name, (row.make)(catalog.clone()))
        })
    }
}

/// Every column of a table of all events, in order, with these.
pub fn reference() -> Vec<ColumnReference> {
    let mut all = evtx_arrow::reference();
    let schema = Extras::ALL.of(Table::from(Options::ALL), None).schema();
    for (field, before) in schema.fields().iter().skip(1).zip(schema.fields()) {
        let Some(row) = COLUMNS.iter().find(|row| row.name == field.name()) else {
            continue;
        };
        let before = all.iter().position(|known| known.field.name() == before.name());
        let column = ColumnReference {
            field: field.as_ref().clone(),
            path: String::new(),
            about: row.about,
            option: Some(row.name),
        };
        all.insert(before.map_or(all.len(), |before| before + 1), column);
    }
    all
}
