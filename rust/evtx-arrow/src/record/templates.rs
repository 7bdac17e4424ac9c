//! The templates that a chunk uses.

use std::sync::Arc;

use evtx_format::container::chunk::CHUNK_SIZE;
use evtx_format::{Error, ErrorKind, Result};

use crate::plan::{Compiled, TreeRoot};

/// The templates that a chunk has used so far, by where their definitions stand.
#[derive(Debug)]
pub(crate) struct ChunkTemplates {
    /// By chunk offset and root: one more than the place in `compiled`, or 0.
    index: Box<[u16]>,
    /// The entries of `index` that are set.
    used: Vec<usize>,
    compiled: Vec<Result<Arc<Compiled>>>,
    /// About how many bytes those take that the scan does not keep.
    bytes: usize,
}

/// Bytes of templates at which a chunk forgets those that it has used. Those of real chunks take some hundred KiB, but
/// crafted definitions can overlap.
const MAX_BYTES: usize = 16 << 20;

impl Default for ChunkTemplates {
    fn default() -> Self {
        ChunkTemplates {
            index: vec![0; 2 * CHUNK_SIZE].into(),
            used: Vec::new(),
            compiled: Vec::new(),
            bytes: 0,
        }
    }
}

impl ChunkTemplates {
    /// What the template at a place compiled to.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Result<&Compiled> {
        match &self.compiled[at] {
            Ok(compiled) => Ok(compiled),
            Err(error) => Err(*error),
        }
    }

    /// What the template that is defined at an offset compiled to, if a record was read that uses it.
    #[inline]
    pub(crate) fn find(&self, definition: u32, root: TreeRoot) -> Option<&Compiled> {
        let known = *self.index.get(index(definition, root))?;
        self.get(usize::from(known).checked_sub(1)?).ok()
    }

    /// The place of the template that is defined at an offset, which `compile` compiles at its first use: what it
    /// compiled to, and whether the scan keeps that.
    #[inline]
    pub(crate) fn place(
        &mut self,
        definition: u32,
        root: TreeRoot,
        compile: impl FnOnce() -> Result<(Arc<Compiled>, bool)>,
    ) -> usize {
        let entry = index(definition, root);
        match self.index.get(entry) {
            Some(&known) if known > 0 => usize::from(known) - 1,
            _ => self.add(definition, entry, compile),
        }
    }

    #[cold]
    fn add(&mut self, definition: u32, entry: usize, compile: impl FnOnce() -> Result<(Arc<Compiled>, bool)>) -> usize {
        let at = self.compiled.len();
        let compiled = match self.bytes > 2 * MAX_BYTES {
            true => Err(Error::new(definition as usize, ErrorKind::Templates)),
            false => compile(),
        };
        let compiled = compiled.map(|(compiled, is_kept)| {
            self.bytes += if is_kept { 0 } else { compiled.bytes() };
            compiled
        });
        self.compiled.push(compiled);
        // A definition takes more bytes than one, so a chunk has fewer than the index can tell apart.
        if let (Some(index), Ok(known)) = (self.index.get_mut(entry), u16::try_from(at + 1)) {
            *index = known;
            self.used.push(entry);
        }
        at
    }

    /// Whether they take so much room that they should be forgotten, once no record is at hand that needs them.
    #[inline]
    pub(crate) fn are_many(&self) -> bool {
        self.bytes > MAX_BYTES
    }

    /// Forgets them, for the next chunk, or for the next records of this.
    pub(crate) fn clear(&mut self) {
        self.bytes = 0;
        for used in self.used.drain(..) {
            self.index[used] = 0;
        }
        self.compiled.clear();
    }
}

/// The entry of [`ChunkTemplates::index`] for a definition.
#[inline]
fn index(definition: u32, root: TreeRoot) -> usize {
    2 * definition as usize + usize::from(root == TreeRoot::Child)
}
