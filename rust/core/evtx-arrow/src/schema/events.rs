//! The events and fields that a table can be restricted to.

use std::sync::Arc;

use super::columns::{ColumnType, EntryKeys};

/// Which events a table has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Events {
    /// Their IDs; `None` for any. An empty list means no events.
    pub ids: Option<Box<[u32]>>,
    /// The names of their providers, in any case of ASCII letters; `None` for any.
    pub providers: Option<Box<[Box<str>]>>,
}

impl Events {
    /// Events with these IDs, of any provider.
    pub fn of_ids(ids: impl IntoIterator<Item = u32>) -> Self {
        Events {
            ids: Some(ids.into_iter().collect()),
            ..Events::default()
        }
    }
}

/// A field of events with its column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventField {
    /// Its name, as the first event that has it spells it.
    pub name: Arc<str>,
    /// The keys of its entries.
    pub keys: EntryKeys,
    /// The type of its column.
    pub column_type: ColumnType,
}

#[cfg(test)]
impl EventField {
    /// A field of single values.
    pub(crate) fn of(name: &str, item: super::columns::FieldType) -> Self {
        EventField {
            name: name.into(),
            keys: EntryKeys {
                key: name.to_lowercase().into(),
                in_both: None,
            },
            column_type: ColumnType { item, list: false },
        }
    }
}
