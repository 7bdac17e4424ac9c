//! The dictionary of the keys of `event_data`.

use std::sync::Arc;

use arrow_array::{Array, StringArray};
use hashbrown::HashMap;

use crate::arrays::take;
use crate::plan::{Key, Keys};

/// The dictionary of a batch: the names that the scan keeps, then the batch's own.
#[derive(Debug)]
pub(crate) struct Dictionary {
    keys: Arc<Keys>,
    /// The names that the scan kept at the end of the last batch.
    shared: Arc<StringArray>,
    own: HashMap<Box<str>, i32>,
    own_names: Vec<Box<str>>,
    /// The keys of the batch: the index of a shared name, or `-1 - index` of an own name.
    entries: Vec<i32>,
    own_bytes: usize,
}

impl Dictionary {
    pub(crate) fn new(keys: Arc<Keys>) -> Self {
        Dictionary {
            keys,
            shared: Arc::new(StringArray::new_null(0)),
            own: HashMap::new(),
            own_names: Vec::new(),
            entries: Vec::new(),
            own_bytes: 0,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, key: &Key) {
        let index = match key {
            Key::Shared(index) => *index,
            Key::Own(name) => self.own(name),
        };
        self.entries.push(index);
    }

    /// Appends a name that is not one of the shared keys.
    pub(crate) fn push_own(&mut self, name: &str) {
        let index = self.own(name);
        self.entries.push(index);
    }

    #[inline]
    pub(crate) fn extend(&mut self, indices: &[i32]) {
        self.entries.extend_from_slice(indices);
    }

    fn own(&mut self, name: &str) -> i32 {
        if let Some(&index) = self.own.get(name) {
            return index;
        }
        let index = -1 - self.own_names.len() as i32;
        self.own.insert(name.into(), index);
        self.own_names.push(name.into());
        // A name is stored twice here, and once more in the batch.
        self.own_bytes += 3 * (name.len() + size_of::<Box<str>>());
        index
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.entries) + self.own_bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Ends the batch. Returns its keys as indices, and the names.
    pub(crate) fn finish(&mut self) -> (Vec<i32>, Arc<StringArray>) {
        let mut entries = take(&mut self.entries);
        if self.keys.len() > self.shared.len() {
            self.shared = Arc::new(StringArray::from_iter_values(self.keys.names()));
        }
        if self.own_names.is_empty() {
            return (entries, Arc::clone(&self.shared));
        }
        let shared = self.shared.len() as i32;
        for entry in &mut entries {
            if *entry < 0 {
                *entry = shared + (-1 - *entry);
            }
        }
        let names = self
            .shared
            .iter()
            .flatten()
            .chain(self.own_names.iter().map(|name| &**name));
        let names = Arc::new(StringArray::from_iter_values(names));
        self.own = HashMap::new();
        self.own_names = Vec::new();
        self.own_bytes = 0;
        (entries, names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_number_from_batch_to_batch() {
        let keys = Arc::new(Keys::default());
        let mut dictionary = Dictionary::new(Arc::clone(&keys));
        for batch in [&["a", "b"][..], &["b", "c", "own"], &["a"]] {
            for &name in batch {
                let key = if name == "own" {
                    Key::Own(name.into())
                } else {
                    keys.key(name)
                };
                dictionary.push(&key);
            }
            let (entries, names) = dictionary.finish();
            let read: Vec<_> = entries.iter().map(|&entry| names.value(entry as usize)).collect();
            assert_eq!(read, batch);
        }
    }
}
