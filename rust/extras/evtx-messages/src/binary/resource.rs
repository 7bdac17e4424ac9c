//! The bytes of resources.

use std::ops::{Deref, Range};
use std::sync::Arc;

/// The bytes of a resource. Those of a file share its memory.
#[derive(Debug, Clone)]
pub(crate) struct Resource {
    all: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Resource {
    pub(crate) fn new(all: &Arc<Vec<u8>>, range: Range<usize>) -> Self {
        let all = Arc::clone(all);
        Resource { all, range }
    }
}

impl Deref for Resource {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.all[self.range.clone()]
    }
}
