//! What the plans of a scan are made for.

use hashbrown::HashMap;

use crate::schema::Place;

/// Fewest columns that are kept so. To look for the row costs as much as to read some columns.
pub(crate) const MIN_COLUMNS: usize = 4;

/// What the plans of a scan are made for.
#[derive(Debug, Default)]
pub(crate) struct Projection {
    /// The places that columns read.
    pub(crate) places: Vec<Place>,
    /// Whether `event_data` is read.
    pub(crate) event_data: bool,
    /// The numbers of the keys of `event_data` that are looked for by name.
    pub(crate) keys: HashMap<String, usize>,
    /// Whether `user_data` is read.
    pub(crate) user_data: bool,
    /// Whether `xml` is read.
    pub(crate) xml: bool,
    /// Whether `json` is read.
    pub(crate) json: bool,
}

impl Projection {
    /// The number of a place, which is added if it is not there.
    pub(crate) fn place(&mut self, place: Place) -> usize {
        let known = self.places.iter().position(|known| *known == place);
        known.unwrap_or_else(|| {
            self.places.push(place);
            self.places.len() - 1
        })
    }

    /// Whether so many columns of `System` are read that it pays to share their rows.
    pub(crate) fn shares_system(&self) -> bool {
        self.places.iter().filter(|place| place.repeats()).count() >= MIN_COLUMNS
    }

    /// The number of a key of `event_data`, which is added if it is not there.
    pub(crate) fn key(&mut self, key: &str) -> usize {
        self.event_data = true;
        let next = self.keys.len();
        *self.keys.entry_ref(key).or_insert(next)
    }

    /// The number of a key, if it is looked for.
    pub(crate) fn key_number(&self, key: &str) -> Option<usize> {
        self.keys.get(key).copied()
    }
}
