//! The projection: the paths, keys and texts that the plans of a scan look for.

use std::sync::Arc;

use evtx_format::binxml::fields::Param;
use evtx_format::render::program::Language;
use hashbrown::HashMap;

use crate::schema::{EntryKeys, EventPath};

/// The fewest columns of `System` whose rows are shared. Finding a shared row takes as long as reading some columns.
pub(crate) const MIN_COLUMNS: usize = 4;

/// The role of a tree's root in the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TreeRoot {
    /// The root is the `Event` element.
    Event,
    /// The root is a child of the `Event` element.
    Child,
    /// The root is the one element in the stream that is the content of `UserData`.
    InUserData,
}

impl TreeRoot {
    pub(crate) const COUNT: usize = 3;
}

/// A path that is read: its index among those of the projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathId(pub(crate) usize);

/// What the columns and predicates of a scan read. Plans are compiled for it.
#[derive(Debug, Default)]
pub(crate) struct Projection {
    pub(crate) paths: Vec<EventPath>,
    /// Whether `EventData` is read. A plan then has all of its entries, even for one column: their keys depend on each other.
    pub(crate) event_data: bool,
    /// Whether the leaves of `UserData` are read as entries.
    pub(crate) user_entries: bool,
    /// Whether all other values are read: those that are neither at a path of `System` nor entries.
    pub(crate) other_values: bool,
    /// Whether only the names and types of entries are read.
    pub(crate) names_only: bool,
    /// The keys of entries that are looked up by name, with their indices.
    pub(crate) keys: HashMap<String, usize>,
    /// The keys of the columns of fields, as in [`EntryKeys`], with their indices.
    pub(crate) columns: HashMap<Arc<str>, usize>,
    /// Whether some of these keys are `param` and a number.
    pub(crate) numbers: bool,
    pub(crate) user_data: bool,
    pub(crate) languages: Vec<Language>,
}

/// Which entry of a record is looked up, by the indices of keys in [`Projection::keys`] or [`Projection::columns`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// The entry of `EventData` with a key.
    EventData(KeyId),
    /// The entry of a column for a field: see [`EntryKeys`].
    Column { key: KeyId, in_both: Option<KeyId> },
}

/// A key of an entry: its index. If the key is `param` and a number, also that number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyId {
    pub(crate) index: usize,
    pub(crate) number: Option<usize>,
}

impl KeyId {
    fn new(index: usize, key: &str) -> Self {
        let number = Param::number(key);
        KeyId { index, number }
    }
}

impl Projection {
    pub(crate) fn path(&mut self, path: EventPath) -> PathId {
        self.path_id(path).unwrap_or_else(|| {
            self.paths.push(path);
            PathId(self.paths.len() - 1)
        })
    }

    pub(crate) fn path_id(&self, path: EventPath) -> Option<PathId> {
        self.paths.iter().position(|known| *known == path).map(PathId)
    }

    #[inline]
    pub(crate) fn is_in_system(&self, path: PathId) -> bool {
        self.paths[path.0].in_system
    }

    /// Whether so many columns of `System` are read that sharing their rows saves time.
    pub(crate) fn shares_system(&self) -> bool {
        self.paths.iter().filter(|path| path.repeats()).count() >= MIN_COLUMNS
    }

    pub(crate) fn add_language(&mut self, language: Language) {
        if !self.languages.contains(&language) {
            self.languages.push(language);
        }
    }

    /// Whether elements with this root are rendered whole in a language. Those in `UserData` are part of its JSON.
    pub(crate) fn renders(&self, language: Language, root: TreeRoot) -> bool {
        self.languages.contains(&language) || language == Language::Json && self.user_data && root != TreeRoot::Event
    }

    /// How the entry of `event_data` with a key is looked up. Adds the key if it is new.
    pub(crate) fn key(&mut self, key: &str) -> Lookup {
        self.event_data = true;
        let next = self.keys.len();
        let id = KeyId::new(*self.keys.entry_ref(key).or_insert(next), key);
        self.numbers |= id.number.is_some();
        Lookup::EventData(id)
    }

    /// How the entry of a column for a field is looked up. Adds its keys if they are new.
    pub(crate) fn column(&mut self, keys: &EntryKeys) -> Lookup {
        self.event_data = true;
        self.user_entries = true;
        let mut id = |key: &Arc<str>| {
            let next = self.columns.len();
            let id = KeyId::new(*self.columns.entry_ref(key).or_insert(next), key);
            self.numbers |= id.number.is_some();
            id
        };
        Lookup::Column {
            key: id(&keys.key),
            in_both: keys.in_both.as_ref().map(&mut id),
        }
    }

    /// The index of a key, if it is one of [`keys`](Self::keys).
    pub(crate) fn key_index(&self, key: &str) -> Option<usize> {
        self.keys.get(key).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{COLUMNS, ColumnSource};

    #[test]
    fn rows_are_shared_by_enough_columns_that_repeat() {
        let (mut projection, mut repeating) = (Projection::default(), 0);
        for column in COLUMNS {
            if let ColumnSource::Path(path, _) = column.source {
                repeating += usize::from(path.repeats());
                projection.paths.push(path);
                assert_eq!(projection.shares_system(), repeating >= 4, "{}", column.name);
            }
        }
        assert!(repeating > 4);
    }
}
