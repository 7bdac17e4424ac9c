//! The templates that a chunk uses.

use std::sync::Arc;

use evtx_format::binxml::ImplicitTemplate;
use evtx_format::container::chunk::CHUNK_SIZE;
use evtx_format::{Error, ErrorKind, Result};
use hashbrown::HashMap;

use crate::plan::{Compiled, TreeRoot};

#[derive(Debug)]
pub(crate) struct ChunkTemplates {
    /// By chunk offset of a definition and role of its root: the index in `compiled` plus one, or 0.
    index: Box<[u16]>,
    /// The entries of `index` that are not 0.
    used: Vec<usize>,
    compiled: Vec<Result<Arc<Compiled>>>,
    /// Implicit templates by role of the root, and tokens; `None` while one has occurred once.
    implicit: [HashMap<Box<[u32]>, Option<TemplateId>>; TreeRoot::COUNT],
    /// Memory for the implicit template of the next spelled-out element.
    pub(crate) scratch: ImplicitTemplate,
    /// The approximate size of the templates that the chunk may own alone.
    bytes: usize,
}

/// A template of the chunk: its index among those that the chunk has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TemplateId(pub(crate) usize);

/// How many bytes of templates a chunk keeps. Real chunks need a few hundred KiB; crafted definitions can overlap.
const MAX_BYTES: usize = 16 << 20;

impl Default for ChunkTemplates {
    fn default() -> Self {
        ChunkTemplates {
            index: vec![0; TreeRoot::COUNT * CHUNK_SIZE].into(),
            used: Vec::new(),
            compiled: Vec::new(),
            implicit: Default::default(),
            scratch: ImplicitTemplate::default(),
            bytes: 0,
        }
    }
}

impl ChunkTemplates {
    /// A compiled template, or why it cannot be compiled.
    #[inline]
    pub(crate) fn get(&self, TemplateId(at): TemplateId) -> Result<&Compiled> {
        match &self.compiled[at] {
            Ok(compiled) => Ok(compiled),
            Err(error) => Err(*error),
        }
    }

    /// The compiled template of the definition at a chunk offset, if a record used it before.
    #[inline]
    pub(crate) fn find(&self, definition: u32, root: TreeRoot) -> Option<&Compiled> {
        let known = *self.index.get(index(definition, root))?;
        self.get(TemplateId(usize::from(known).checked_sub(1)?)).ok()
    }

    /// The template of the definition at a chunk offset. `compile` returns whether the cache of the scan keeps it.
    #[inline]
    pub(crate) fn get_or_add(
        &mut self,
        definition: u32,
        root: TreeRoot,
        compile: impl FnOnce() -> Result<(Arc<Compiled>, bool)>,
    ) -> TemplateId {
        let entry = index(definition, root);
        match self.index.get(entry) {
            Some(&known) if known > 0 => TemplateId(usize::from(known) - 1),
            _ => self.add(definition, entry, compile),
        }
    }

    #[cold]
    fn add(
        &mut self,
        definition: u32,
        entry: usize,
        compile: impl FnOnce() -> Result<(Arc<Compiled>, bool)>,
    ) -> TemplateId {
        let at = self.compiled.len();
        let compiled = if self.bytes > 2 * MAX_BYTES {
            Err(Error::new(definition as usize, ErrorKind::Templates))
        } else {
            compile()
        };
        let compiled = compiled.map(|(compiled, is_kept)| {
            self.bytes += if is_kept { 0 } else { compiled.bytes() };
            compiled
        });
        self.compiled.push(compiled);
        // The indices fit a u16: a definition takes more than one byte of the chunk.
        if let (Some(index), Ok(known)) = (self.index.get_mut(entry), u16::try_from(at + 1)) {
            *index = known;
            self.used.push(entry);
        }
        TemplateId(at)
    }

    /// An implicit template that has occurred in the chunk before. At its second occurrence, `find` finds it in the
    /// cache of the scan or compiles it, and returns whether it is new.
    ///
    /// Compiling an implicit template takes longer than reading its record as a tree, so it pays off only if
    /// the template recurs.
    #[inline]
    pub(crate) fn implicit_template(
        &mut self,
        tokens: &[u32],
        root: TreeRoot,
        find: impl FnOnce() -> Option<(Arc<Compiled>, bool)>,
    ) -> Option<TemplateId> {
        match self.implicit[root as usize].get(tokens) {
            Some(&Some(known)) => Some(known),
            Some(None) if self.are_many() => None,
            known => self.add_implicit(tokens, root, known.and_then(|_| find())),
        }
    }

    #[cold]
    fn add_implicit(
        &mut self,
        tokens: &[u32],
        root: TreeRoot,
        compiled: Option<(Arc<Compiled>, bool)>,
    ) -> Option<TemplateId> {
        let template = compiled.map(|(compiled, is_new)| {
            self.bytes += if is_new { compiled.bytes() } else { 0 };
            self.compiled.push(Ok(compiled));
            TemplateId(self.compiled.len() - 1)
        });
        // The tokens need no limit: they are about as long as the records of the chunk.
        self.implicit[root as usize].insert(tokens.into(), template);
        template
    }

    /// Whether the templates take so much memory that the caller should clear them before the next group of records.
    #[inline]
    pub(crate) fn are_many(&self) -> bool {
        self.bytes > MAX_BYTES
    }

    pub(crate) fn clear(&mut self) {
        self.bytes = 0;
        for used in self.used.drain(..) {
            self.index[used] = 0;
        }
        self.implicit.iter_mut().for_each(HashMap::clear);
        self.compiled.clear();
    }
}

/// The entry of [`ChunkTemplates::index`] for a definition.
#[inline]
fn index(definition: u32, root: TreeRoot) -> usize {
    TreeRoot::COUNT * definition as usize + root as usize
}

#[cfg(test)]
mod tests {
    use evtx_format::binxml::instance::Definition;
    use evtx_format::binxml::tree::Element;

    use super::*;
    use crate::plan::{Keys, Projection};

    fn compiled() -> Arc<Compiled> {
        let definition = Definition {
            guid: [0; 16],
            body: 0,
            size: 0,
        };
        let tree = Element::new("Event", &[], &[]);
        let (projection, keys) = (Projection::default(), Keys::default());
        Arc::new(Compiled::new(&projection, &keys, &definition, &tree, TreeRoot::Event))
    }

    #[test]
    fn a_definition_is_compiled_once_for_each_root() {
        let mut templates = ChunkTemplates::default();
        let mut times = 0;
        let uses = [
            (512, TreeRoot::Event, 0),
            (512, TreeRoot::Child, 1),
            (513, TreeRoot::Event, 2),
            (512, TreeRoot::Event, 0),
            (65_535, TreeRoot::Child, 3),
            (0, TreeRoot::Event, 4),
            (513, TreeRoot::Event, 2),
        ];
        for (definition, root, expected) in uses {
            let id = templates.get_or_add(definition, root, || {
                times += 1;
                Ok((compiled(), true))
            });
            assert_eq!(id, TemplateId(expected), "{definition} {root:?}");
            assert!(templates.find(definition, root).is_some());
        }
        assert_eq!(times, 5);
        let mut numbers: Vec<_> = templates.compiled.iter().flatten().map(|of| of.number).collect();
        numbers.sort_unstable();
        assert!(
            numbers[0] > 0 && numbers.is_sorted_by(|one, other| one < other),
            "{numbers:?}"
        );
        assert!(templates.find(513, TreeRoot::Child).is_none() && templates.find(u32::MAX, TreeRoot::Event).is_none());
        templates.clear();
        for (definition, root, _) in uses {
            assert!(templates.find(definition, root).is_none());
        }
        assert_eq!(
            templates.get_or_add(513, TreeRoot::Event, || Ok((compiled(), true))),
            TemplateId(0)
        );
    }

    #[test]
    fn a_definition_that_cannot_be_compiled_is_not_tried_again() {
        let mut templates = ChunkTemplates::default();
        let error = Error::new(9, ErrorKind::Names);
        let first = TemplateId(0);
        assert_eq!(templates.get_or_add(512, TreeRoot::Event, || Err(error)), first);
        assert_eq!(
            templates.get_or_add(512, TreeRoot::Event, || panic!("compiled again")),
            first
        );
        assert_eq!(templates.get(first).err(), Some(error));
        assert!(templates.find(512, TreeRoot::Event).is_none());
    }

    #[test]
    fn what_the_scan_does_not_keep_is_bounded() {
        let mut templates = ChunkTemplates::default();
        let bytes = compiled().bytes();
        templates.get_or_add(0, TreeRoot::Event, || Ok((compiled(), true)));
        assert_eq!(templates.bytes, 0, "the scan's");
        templates.get_or_add(1, TreeRoot::Event, || Ok((compiled(), false)));
        assert_eq!(templates.bytes, bytes);
        for (held, are_many, is_refused) in [
            (MAX_BYTES, false, false),
            (MAX_BYTES + 1, true, false),
            (2 * MAX_BYTES, true, false),
            (2 * MAX_BYTES + 1, true, true),
        ] {
            templates.clear();
            templates.bytes = held;
            assert_eq!(templates.are_many(), are_many, "{held}");
            let id = templates.get_or_add(7, TreeRoot::Event, || Ok((compiled(), false)));
            let refused = Error::new(7, ErrorKind::Templates);
            assert_eq!(templates.get(id).err(), is_refused.then_some(refused), "{held}");
        }
        templates.clear();
        assert_eq!(templates.bytes, 0);
    }
}
