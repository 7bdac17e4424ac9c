//! The names of `event_data`: few, and the same in every record of a template, so batches hold them as a dictionary.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use hashbrown::HashMap;

/// Most names that a scan keeps. Real logs have some thousands; more come from crafted files, and are then
/// held by the batch that has them.
const MAX_KEYS: usize = 1 << 16;

/// Most bytes of names that a scan keeps.
const MAX_BYTES: usize = 1 << 20;

/// A name of an entry in `event_data`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    /// One of the scan's names, by index.
    Shared(i32),
    /// Any other.
    Own(Box<str>),
}

/// The names that the plans of a scan use.
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

    /// The names, also if a thread panicked: then nothing of what is read by them is handed out (`Scan::check_shared`).
    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key for a name, a new one if need be.
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
}

impl Keys {
    /// All names, by their indices.
    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        self.read().names.clone()
    }

    /// The name of a key.
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
    fn names_past_the_limit_are_the_batchs_own() {
        let keys = Keys::default();
        let long = "x".repeat(MAX_BYTES / 2);
        assert_eq!(keys.key(&long), Key::Shared(0));
        assert_eq!(keys.key(&format!("{long}y")), Key::Own(format!("{long}y").into()));
        assert_eq!(keys.key("short"), Key::Shared(1));
    }
}
