//! What a thread knows about the texts that it has seen: which atoms are true for them. A look costs little more than a
//! hash.

use std::hash::BuildHasher;
use std::ops::Range;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::atoms::{AtomId, FieldId};

/// Texts with their atoms. When it is full, it forgets all of them.
#[derive(Debug, Default)]
pub(super) struct Texts {
    hasher: DefaultHashBuilder,
    table: HashTable<u32>,
    entries: Vec<Entry>,
    bytes: String,
    atoms: Vec<AtomId>,
}

#[derive(Debug)]
struct Entry {
    field: FieldId,
    text: Range<u32>,
    atoms: Range<u32>,
}

/// The hash of a text that is not known yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key(u64);

impl Texts {
    /// The most bytes of a text, and atoms of a text.
    const TEXT: usize = 4 << 10;
    /// The most bytes of all texts, and atoms of all texts.
    const BYTES: usize = 4 << 20;
    const ATOMS: usize = 1 << 19;

    /// The atoms of a text of a field. If they are not known, the key to insert them under, unless the text is too long.
    pub(super) fn get(&self, field: FieldId, text: &str) -> Result<&[AtomId], Option<Key>> {
        if text.len() > Self::TEXT {
            return Err(None);
        }
        let hash = self.hasher.hash_one((field, text));
        let is_same = |&index: &u32| {
            let entry = &self.entries[index as usize];
            entry.field == field && self.bytes.as_bytes()[range(&entry.text)] == *text.as_bytes()
        };
        match self.table.find(hash, is_same) {
            Some(&index) => Ok(&self.atoms[range(&self.entries[index as usize].atoms)]),
            None => Err(Some(Key(hash))),
        }
    }

    /// Inserts the atoms of a text.
    pub(super) fn insert(&mut self, key: Key, field: FieldId, text: &str, atoms: &[AtomId]) {
        if atoms.len() > Self::TEXT {
            return;
        }
        if self.bytes.len() + text.len() > Self::BYTES || self.atoms.len() + atoms.len() > Self::ATOMS {
            self.table.clear();
            self.entries.clear();
            self.bytes.clear();
            self.atoms.clear();
        }
        let (start, first) = (self.bytes.len() as u32, self.atoms.len() as u32);
        self.bytes.push_str(text);
        self.atoms.extend_from_slice(atoms);
        self.entries.push(Entry {
            field,
            text: start..self.bytes.len() as u32,
            atoms: first..self.atoms.len() as u32,
        });
        let Texts {
            hasher, entries, bytes, ..
        } = self;
        let hash = |&index: &u32| {
            let Entry { field, text, .. } = &entries[index as usize];
            hasher.hash_one((*field, &bytes[range(text)]))
        };
        self.table.insert_unique(key.0, entries.len() as u32 - 1, hash);
    }
}

fn range(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}
