//! Pools of bytes of memory or disk, which the files that are open share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many bytes are left. Clones share them.
#[derive(Debug, Clone)]
pub struct Pool(Arc<AtomicU64>);

/// Bytes that were taken from a pool. Drop gives them back.
#[derive(Debug)]
pub struct Lease {
    pool: Pool,
    taken: u64,
}

impl Pool {
    /// A pool of so many bytes.
    pub fn new(bytes: u64) -> Self {
        Pool(Arc::new(bytes.into()))
    }

    /// A lease of no bytes.
    pub fn lease(&self) -> Lease {
        Lease {
            pool: self.clone(),
            taken: 0,
        }
    }

    /// How many bytes are left.
    pub fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Lease {
    /// Takes more bytes. Returns false, and takes none, if fewer are left.
    pub fn try_take(&mut self, more: u64) -> bool {
        let take = |left: u64| left.checked_sub(more);
        let is_taken = self
            .pool
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_ok();
        if is_taken {
            self.taken += more;
        }
        is_taken
    }

    /// How many bytes were taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Gives all bytes back.
    pub fn give_back(&mut self) {
        self.pool
            .0
            .fetch_add(std::mem::take(&mut self.taken), Ordering::Relaxed);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.give_back();
    }
}
