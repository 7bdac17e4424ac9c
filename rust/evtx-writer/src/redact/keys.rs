//! The keys of redactions, by the IDs that redacted records carry.
//!
//! A record says by which keys it was redacted, so that the log which it is written to can be searched for them. It cannot
//! carry the keys themselves: they are the secrets. So it carries a number that means nothing outside of this process.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// How many bytes of keys are kept, at least for the newest ones. Older ones are forgotten.
const MAX_KEPT: usize = 256 << 20;

/// The texts that a redaction removes wherever they occur.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Keys(pub Vec<String>);

#[derive(Debug)]
struct Kept {
    ids: HashMap<Arc<Keys>, u64>,
    keys: BTreeMap<u64, Arc<Keys>>,
    next: u64,
    bytes: usize,
}

static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(|| {
    Mutex::new(Kept {
        ids: HashMap::new(),
        keys: BTreeMap::new(),
        // Records that another process has redacted must not name keys of this one. There are at most 2^32 of them.
        next: RandomState::new().hash_one(0) & !0xffff_ffff,
        bytes: 0,
    })
});

impl Keys {
    fn size(&self) -> usize {
        256 + self.0.iter().map(|text| 64 + text.len()).sum::<usize>()
    }

    /// Keeps keys, and returns their ID.
    pub(super) fn keep(self) -> u64 {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = kept.ids.get(&self) {
            return *id;
        }
        let id = kept.next;
        kept.next = id.wrapping_add(1);
        kept.bytes += self.size();
        while kept.bytes > MAX_KEPT
            && let Some((_, oldest)) = kept.keys.pop_first()
        {
            kept.bytes -= oldest.size();
            kept.ids.remove(&oldest);
        }
        let keys = Arc::new(self);
        kept.ids.insert(Arc::clone(&keys), id);
        kept.keys.insert(id, keys);
        id
    }

    /// The keys with an ID; `None` if they were forgotten, or belong to another process.
    pub fn of(id: u64) -> Option<Arc<Self>> {
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.keys.get(&id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_kept_once_and_found_by_their_id() {
        let keys = |text: &str| Keys(vec![text.to_owned()]);
        let (alice, bob) = (keys("alice").keep(), keys("bob").keep());
        assert_ne!(alice, bob);
        assert_eq!(keys("alice").keep(), alice);
        assert_eq!(Keys::of(bob).as_deref(), Some(&keys("bob")));
        assert_eq!(Keys::of(bob.wrapping_sub(1 << 33)), None);
    }
}
