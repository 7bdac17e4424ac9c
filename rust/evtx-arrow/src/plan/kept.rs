//! The plans that outlive their scan, so that later scans with the same projection need not compile them again.
//!
//! A scan takes plans out, and puts them back when it ends. So scans that run at the same time have plans of their own:
//! none waits for another, and a panic or a hostile file does not reach the others.

use std::sync::{Mutex, PoisonError};

use super::cache::PlanCache;
use super::projection::Projection;

/// How many plans are kept, and how many bytes of them. Those for the logs of a whole machine take 1 to 4 MiB.
const MAX_PLANS: usize = 64;
const MAX_BYTES: usize = 32 << 20;

/// Plans with their projections and bytes. Those that a scan used last are at the end.
#[derive(Debug, Default)]
pub(super) struct KeptPlans(Vec<(Projection, PlanCache, usize)>);

impl KeptPlans {
    /// Takes out the plans for a projection, or new ones.
    pub(super) fn take(&mut self, projection: &Projection) -> PlanCache {
        let found = self.0.iter().rposition(|(known, ..)| known == projection);
        found.map(|at| self.0.remove(at).1).unwrap_or_default()
    }

    /// Keeps plans, unless they are not sound, or so large that they may be those of a hostile file.
    pub(super) fn put(&mut self, projection: Projection, plans: PlanCache) {
        let bytes = plans.bytes().map(|bytes| bytes + projection.bytes());
        if let Some(bytes) = bytes.filter(|bytes| *bytes <= MAX_BYTES / 2 && !plans.is_poisoned()) {
            self.0.push((projection, plans, bytes));
            while self.0.len() > MAX_PLANS || self.0.iter().map(|(.., bytes)| bytes).sum::<usize>() > MAX_BYTES {
                self.0.remove(0);
            }
        }
    }
}

/// Changes the plans that the scans of the process leave. Each change is sound even if a thread panics.
fn with_kept<T>(change: impl FnOnce(&mut KeptPlans) -> T) -> T {
    static KEPT: Mutex<KeptPlans> = Mutex::new(KeptPlans(Vec::new()));
    change(&mut KEPT.lock().unwrap_or_else(PoisonError::into_inner))
}

impl PlanCache {
    /// The plans that an earlier scan with a projection left, or new ones. Later scans get them.
    pub(crate) fn kept(projection: &Projection) -> Self {
        let mut plans = with_kept(|kept| kept.take(projection));
        plans.kept_for = Some(projection.clone());
        plans
    }
}

impl Drop for PlanCache {
    fn drop(&mut self) {
        if let Some(projection) = self.kept_for.take() {
            with_kept(|kept| kept.put(projection, std::mem::take(self)));
        }
    }
}
