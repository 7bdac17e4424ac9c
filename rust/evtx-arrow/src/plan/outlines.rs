//! The cache of the templates of spelled-out elements, which the threads of a scan share.
//!
//! Elements share a template if their outlines have equal content. The content is compared in full: with a hash alone, a
//! crafted file could pass one element off as another.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::HashMap;

use super::cache::Compiled;
use super::root::TreeRoot;

/// The most bytes of outlines and their compiled form that a scan keeps. This limit is separate from that of templates,
/// so that a file with a new outline in every record does not take their room.
const MAX_BYTES: usize = 4 << 20;

/// The approximate size of an entry of the map without its content, including unused capacity.
const ENTRY: usize = 2 * size_of::<(Box<[u8]>, Arc<Compiled>)>();

/// By content, for one role of the root.
type Known = HashMap<Box<[u8]>, Arc<Compiled>>;

/// The compiled outlines of a scan.
#[derive(Debug, Default)]
pub(crate) struct OutlineCache {
    /// By role of the root.
    known: RwLock<[Known; TreeRoot::COUNT]>,
    bytes: AtomicUsize,
}

impl OutlineCache {
    /// Whether a thread panicked while it added an outline. Then the decoder returns no batch (`Scan::check_shared`).
    pub(crate) fn is_poisoned(&self) -> bool {
        self.known.is_poisoned()
    }

    #[cfg(test)]
    pub(crate) fn lock(&self) -> &RwLock<impl Send + Sync + use<>> {
        &self.known
    }

    /// The compiled template of the elements with this outline, if the scan keeps it.
    pub(crate) fn get(&self, content: &[u8], root: TreeRoot) -> Option<Arc<Compiled>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known[root as usize].get(content).map(Arc::clone)
    }

    /// Keeps a compiled template for other chunks, if there is room. Returns whether it is kept.
    pub(crate) fn insert(&self, content: Box<[u8]>, root: TreeRoot, compiled: &Arc<Compiled>) -> bool {
        let bytes = ENTRY + content.len() + compiled.bytes();
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_BYTES {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known[root as usize].insert(content, Arc::clone(compiled));
        true
    }
}

#[cfg(test)]
mod tests {
    use evtx_format::binxml::tree::Element;

    use super::*;
    use crate::plan::keys::Keys;
    use crate::plan::projection::Projection;

    fn compiled() -> Arc<Compiled> {
        let tree = Element::new("Event", &[], &[]);
        let (projection, keys) = (Projection::default(), Keys::default());
        Arc::new(Compiled::of_outline(&projection, &keys, &tree, TreeRoot::Event))
    }

    #[test]
    fn an_outline_is_known_by_all_of_its_content_and_its_root() {
        let (cache, known) = (OutlineCache::default(), compiled());
        let content = [1, 2, 3];
        assert!(cache.get(&content, TreeRoot::Child).is_none());
        assert!(cache.insert(content.into(), TreeRoot::Child, &known));
        let found = cache.get(&content, TreeRoot::Child).expect("the outline");
        assert!(Arc::ptr_eq(&found, &known));
        assert!(cache.get(&content, TreeRoot::Event).is_none() && cache.get(&[1, 2], TreeRoot::Child).is_none());
        for at in 0..content.len() {
            let mut other = content;
            other[at] ^= 1;
            assert!(cache.get(&other, TreeRoot::Child).is_none(), "{at}");
        }
        assert!(!cache.is_poisoned());
    }

    #[test]
    fn only_so_many_bytes_are_kept() {
        let (cache, known) = (OutlineCache::default(), compiled());
        let content = |number: u32| [&number.to_le_bytes()[..], &[0; 10_000]].concat().into_boxed_slice();
        let bytes = ENTRY + 10_004 + known.bytes();
        let insert = |number: &u32| cache.insert(content(*number), TreeRoot::Event, &known);
        let kept = (0..).take_while(insert).count();
        assert_eq!(kept, MAX_BYTES / bytes);
        assert_eq!(cache.bytes.load(Ordering::Relaxed), kept * bytes);
        assert!(cache.get(&content(0), TreeRoot::Event).is_some());
        assert!(cache.get(&content(kept as u32), TreeRoot::Event).is_none());
    }
}
