//! The keys of `event_data`, which batches hold as a dictionary.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use hashbrown::HashMap;

/// The most names that a scan keeps. Real logs have some thousands. Each batch keeps others of its own.
const MAX_KEYS: usize = 1 << 16;

/// The most bytes of names that a scan keeps.
const MAX_BYTES: usize = 1 << 20;

/// The key of an entry in `event_data`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// A name that the scan keeps, by its index.
    Shared(i32),
    /// A name that the scan has no space to keep.
    Own(Box<str>),
}

/// The names of `event_data` that a scan keeps, for the keys of its plans.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    indices: HashMap<Arc<str>, i32>,
    names: Vec<Arc<str>>,
    bytes: usize,
}

impl Keys {
    /// Whether a thread panicked while it changed the names.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.known.is_poisoned()
    }

    #[cfg(test)]
    pub(crate) fn lock(&self) -> &RwLock<impl Send + Sync + use<>> {
        &self.known
    }

    /// The names. They are read even if a thread panicked, as the decoder then returns no batch (`Scan::is_poisoned`).
    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key of a name. Adds the name if it is new and there is space.
    pub(crate) fn key(&self, name: &str) -> Key {
        let find = |known: &Known| known.indices.get(name).copied();
        if let Some(index) = find(&self.read()) {
            return Key::Shared(index);
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = find(&known) {
            return Key::Shared(index);
        }
        if known.names.len() >= MAX_KEYS || known.bytes + name.len() > MAX_BYTES {
            return Key::Own(name.into());
        }
        let index = known.names.len() as i32;
        let name: Arc<str> = name.into();
        known.bytes += name.len();
        known.names.push(Arc::clone(&name));
        known.indices.insert(name, index);
        Key::Shared(index)
    }

    pub(crate) fn len(&self) -> usize {
        self.read().names.len()
    }

    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        self.read().names.clone()
    }

    pub(crate) fn name(&self, key: &Key) -> Arc<str> {
        match key {
            Key::Shared(index) => {
                let known = self.read();
                known.names.get(*index as usize).cloned().unwrap_or_default()
            }
            Key::Own(name) => name.as_ref().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_key() {
        let keys = Keys::default();
        let table = [("a", 0), ("", 1), ("b", 2), ("a", 0), ("A", 3), ("", 1)];
        for (name, index) in table {
            assert_eq!(keys.key(name), Key::Shared(index), "{name:?}");
            assert_eq!(&*keys.name(&Key::Shared(index)), name);
        }
        assert_eq!(
            keys.names().iter().map(|name| &**name).collect::<Vec<_>>(),
            ["a", "", "b", "A"]
        );
        assert_eq!(&*keys.name(&Key::Own("own".into())), "own");
        assert!(!keys.is_poisoned());
    }

    #[test]
    fn only_so_many_names_are_kept() {
        let keys = Keys::default();
        for number in 0..MAX_KEYS {
            assert_eq!(keys.key(&format!("{number:x}")), Key::Shared(number as i32));
        }
        assert_eq!(keys.key("one more"), Key::Own("one more".into()));
        assert_eq!(keys.key("ffff"), Key::Shared(0xffff));
        let bytes = Keys::default();
        let (long, last) = ("x".repeat(MAX_BYTES - 1), Key::Shared(1));
        assert_eq!((bytes.key(&long), bytes.key("y")), (Key::Shared(0), last));
        assert_eq!(bytes.key("z"), Key::Own("z".into()));
        assert_eq!(bytes.key(""), Key::Shared(2));
    }
}
