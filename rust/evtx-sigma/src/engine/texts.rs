//! What a thread knows about the texts that it has seen: which atoms are true for them.

use hashbrown::HashMap;

use super::atoms::{AtomId, FieldId};

/// Atoms by field and text. When there are too many, all are forgotten.
#[derive(Debug, Default)]
pub(super) struct Texts {
    fields: HashMap<FieldId, HashMap<Box<str>, Box<[AtomId]>>>,
    bytes: usize,
}

impl Texts {
    /// The most bytes of a text, and of its atoms.
    const ENTRY: usize = 4 << 10;
    /// The most bytes of all.
    const BYTES: usize = 8 << 20;
    /// What the table takes for an entry, about.
    const OVERHEAD: usize = 64;

    /// The atoms of a text of a field, if they are known.
    pub(super) fn get(&self, field: FieldId, text: &str) -> Option<&[AtomId]> {
        self.fields.get(&field)?.get(text).map(|atoms| &**atoms)
    }

    pub(super) fn insert(&mut self, field: FieldId, text: &str, atoms: &[AtomId]) {
        if text.len().max(size_of_val(atoms)) > Self::ENTRY {
            return;
        }
        self.bytes += text.len() + size_of_val(atoms) + Self::OVERHEAD;
        if self.bytes > Self::BYTES {
            self.fields.clear();
            self.bytes = 0;
        }
        self.fields.entry(field).or_default().insert(text.into(), atoms.into());
    }
}
