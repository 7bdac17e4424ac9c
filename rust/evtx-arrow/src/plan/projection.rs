//! The projection: which places, keys and texts the plans of a scan have to find.

use std::sync::Arc;

use evtx_format::render::program::Language;
use hashbrown::HashMap;

use super::column_plan::TreeRoot;
use crate::schema::{EntryKeys, Place};

/// The fewest columns of `System` whose rows are shared. To find the shared row takes as long as to read some columns.
pub(crate) const MIN_COLUMNS: usize = 4;

/// What the columns and predicates of a scan read. Plans are made for it.
#[derive(Debug, Default)]
pub(crate) struct Projection {
    /// The places that are read.
    pub(crate) places: Vec<Place>,
    /// Whether `event_data` is read.
    pub(crate) event_data: bool,
    /// Whether leaves of `UserData` are read, as those of `EventData`.
    pub(crate) user_entries: bool,
    /// Whether the values are read that are neither at a place of `System` nor entries.
    pub(crate) other_values: bool,
    /// Whether only the names and types of entries are read, and not their values.
    pub(crate) names_only: bool,
    /// The keys of entries that are looked up by name, and the index of each.
    pub(crate) keys: HashMap<String, usize>,
    /// The keys of fields' columns, as [`EntryKeys`] has them, and the index of each.
    pub(crate) columns: HashMap<Arc<str>, usize>,
    /// Whether `user_data` is read.
    pub(crate) user_data: bool,
    /// The languages in which whole events are rendered.
    pub(crate) languages: Vec<Language>,
}

/// Which entry of a record is looked up, by the indices of keys in [`Projection::keys`] or [`Projection::columns`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// That of `EventData` with a key. `number` is that of a value without a name, if the key is `param` and a number.
    EventData { key: usize, number: Option<usize> },
    /// That of a field's column: see [`EntryKeys`].
    Column { key: usize, in_both: Option<usize> },
}

impl Projection {
    /// The index of a place. Adds the place if it is new.
    pub(crate) fn place(&mut self, place: Place) -> usize {
        let known = self.places.iter().position(|known| *known == place);
        known.unwrap_or_else(|| {
            self.places.push(place);
            self.places.len() - 1
        })
    }

    /// Whether enough columns of `System` are read that it saves time to share their rows.
    pub(crate) fn shares_system(&self) -> bool {
        self.places.iter().filter(|place| place.repeats()).count() >= MIN_COLUMNS
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
        Lookup::EventData {
            key: *self.keys.entry_ref(key).or_insert(next),
            number: key.strip_prefix("param").and_then(|number| number.parse().ok()),
        }
    }

    /// How the entry of a field's column is looked up. Adds its keys if they are new.
    pub(crate) fn column(&mut self, keys: &EntryKeys) -> Lookup {
        self.event_data = true;
        self.user_entries = true;
        let mut index = |key: &Arc<str>| {
            let next = self.columns.len();
            *self.columns.entry_ref(key).or_insert(next)
        };
        Lookup::Column {
            key: index(&keys.key),
            in_both: keys.in_both.as_ref().map(index),
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
    use crate::schema::{COLUMNS, ColumnSource, EVENT_RECORD_ID, MESSAGE, PROVIDER};

    #[test]
    fn places_and_keys_are_numbered_once() {
        let mut target = Projection::default();
        assert_eq!(
            [PROVIDER, MESSAGE, PROVIDER].map(|place| target.place(place)),
            [0, 1, 0]
        );
        assert_eq!(target.places, [PROVIDER, MESSAGE]);
        assert!(!target.event_data);
        let looked_up = |key, number| Lookup::EventData { key, number };
        let names = ["a", "b", "a", "", "param12", "param"];
        let numbers = [(0, None), (1, None), (0, None), (2, None), (3, Some(12)), (4, None)];
        let expected = numbers.map(|(key, number)| looked_up(key, number));
        assert_eq!(names.map(|key| target.key(key)), expected);
        assert!(target.event_data);
        assert_eq!(
            ["b", "", "c"].map(|key| target.key_index(key)),
            [Some(1), Some(2), None]
        );
    }

    #[test]
    fn rows_are_shared_by_enough_columns_that_repeat() {
        let mut target = Projection::default();
        target.places.extend([MESSAGE, EVENT_RECORD_ID]);
        let mut repeating = 0;
        for column in COLUMNS {
            if let ColumnSource::Field(place, _) = column.source {
                let varies = [
                    "time_created",
                    "process_id",
                    "thread_id",
                    "activity_id",
                    "related_activity_id",
                ];
                let is_other = varies.contains(&&*column.name) || [MESSAGE, EVENT_RECORD_ID].contains(&place);
                repeating += usize::from(!is_other);
                target.places.push(place);
                assert_eq!(target.shares_system(), repeating >= 4, "{} of {repeating}", column.name);
            }
        }
        assert!(repeating > 4);
    }
}
