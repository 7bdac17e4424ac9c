//! What BinXML is copied to.

use hashbrown::HashMap;

use crate::source::{Result, Source};

/// The dependency of an element in a definition that depends on no value.
pub(crate) const NO_DEPENDENCY: u16 = 0xffff;

/// What a name is the name of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    Element,
    Attribute,
    Other,
}

/// Content of an element or attribute that is not in a value table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content<'a> {
    /// A value: its type byte and its bytes. Text is a value, also in a CDATA section or a processing instruction.
    Value(u8, &'a [u8]),
    /// A character reference.
    Character(u16),
    /// An entity reference: the entry of its name.
    Entity(&'a [u8]),
    /// A substitution: its index, and whether its value can be NULL.
    Substitution(u16, bool),
}

/// What replaces a value: a type byte and bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) value_type: u8,
    pub(crate) bytes: Vec<u8>,
}

/// What BinXML is copied to.
pub(crate) trait Target {
    /// Whether it replaces parts. Otherwise runs of texts and the values of instances are not looked at.
    const EDITS: bool = false;
    /// What is known of a definition.
    type Plan;
    /// Where to append tokens.
    fn out(&mut self) -> &mut Vec<u8>;
    /// Appends a reference to a name, and perhaps the name. `entry` is its hash, its number of units, and its units.
    fn name(&mut self, entry: &[u8]);
    /// Appends a reference to the definition at an offset of the source, and perhaps the definition.
    fn definition(&mut self, source: Source<'_>, at: usize) -> Result<Self::Plan>;

    /// Appends a name as [`name`](Self::name) does, or one that replaces it.
    fn edit_name(&mut self, _named: Named, entry: &[u8]) -> Result<()> {
        self.name(entry);
        Ok(())
    }
    /// An element follows that is left out if the value with an index is NULL. Most elements have no such value, but an
    /// index that no value has.
    fn depend(&mut self, _index: u16) {}
    /// A start tag ends.
    fn end_start(&mut self) {}
    /// An element ends.
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
    /// What replaces several texts and references that follow each other, by their UTF-16LE together; `None` if each is
    /// edited alone.
    fn edit_run(&mut self, _text: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }
    /// What replaces content; `None` if it stays. Not for BinXML, whose content comes instead.
    fn edit_content(&mut self, _content: Content<'_>) -> Result<Option<Edit>> {
        Ok(None)
    }
    /// What replaces values of an instance: their indexes, in ascending order. A BinXML value that stays is copied as a
    /// stream.
    fn edit_values(&mut self, _plan: &Self::Plan, _values: &[(u8, &[u8])]) -> Result<Vec<(usize, Edit)>> {
        Ok(Vec::new())
    }
    /// What replaces bytes after an end token.
    fn edit_rest(&mut self, _rest: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }
}

/// BinXML with names of its own, at their first use.
#[derive(Debug, Default)]
pub(crate) struct Own {
    pub(crate) out: Vec<u8>,
    /// By entry, the offset of a name.
    names: HashMap<Box<[u8]>, u32>,
    /// Where definitions are to be named, and their offsets in the source.
    pub(crate) pending: Vec<(usize, usize)>,
}

impl Own {
    pub(crate) fn clear(&mut self) {
        self.out.clear();
        self.names.clear();
        self.pending.clear();
    }
}

impl Target for Own {
    type Plan = ();

    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    fn name(&mut self, entry: &[u8]) {
        if let Some(offset) = self.names.get(entry) {
            return self.out.extend(offset.to_le_bytes());
        }
        let offset = self.out.len() as u32 + 4;
        self.names.insert(entry.into(), offset);
        self.out.extend(offset.to_le_bytes());
        self.out.extend([0; 4]);
        self.out.extend(entry);
        self.out.extend([0; 2]);
    }

    fn definition(&mut self, _: Source<'_>, at: usize) -> Result<()> {
        self.pending.push((self.out.len(), at));
        self.out.extend([0; 4]);
        Ok(())
    }
}

/// The hash by which a chunk finds a name: of its UTF-16 units, the low half of a multiplicative hash.
pub(crate) fn hash(units: impl Iterator<Item = u16>) -> u16 {
    let hash = units.fold(0_u32, |hash, unit| {
        hash.wrapping_mul(65_599).wrapping_add(u32::from(unit))
    });
    hash as u16
}
