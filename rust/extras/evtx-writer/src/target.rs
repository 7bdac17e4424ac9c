//! What BinXML is copied to.

use evtx_format::binxml::tree::Element;
use hashbrown::HashMap;

use crate::source::{Result, Source};
use crate::value::utf16;

/// The dependency of an element in a definition that depends on no value.
pub(crate) const NO_DEPENDENCY: u16 = 0xffff;

/// Content of an element or attribute that is not in a value table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content<'a> {
    /// A value: its type byte and its bytes. Text is a value, also in a CDATA section or a processing instruction.
    Value(u8, &'a [u8]),
    /// Several texts and references that follow each other: the UTF-16LE that they show together, and their bytes.
    Run(&'a [u8], &'a [u8]),
    /// A character reference.
    Character(u16),
    /// An entity reference: the entry of its name.
    Entity(&'a [u8]),
}

/// What replaces a value: a type byte and bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) value_type: u8,
    pub(crate) bytes: Vec<u8>,
}

/// What is replaced in a record.
pub(crate) trait Edits {
    /// Looks at an event of the record, before it is copied. The copy passes the same slices as values and texts.
    fn read(&mut self, event: &Element<'_>) -> Result<()>;
    /// What replaces the entry of a name.
    fn name(&mut self, _entry: &[u8]) -> Option<Vec<u8>> {
        None
    }
    /// What replaces content; `None` if it stays. A run that stays is followed by its parts. Not for BinXML, whose content
    /// comes instead.
    fn content(&mut self, content: Content<'_>) -> Result<Option<Edit>>;
    /// What replaces a value of an instance: a type byte and bytes. Not for BinXML.
    fn value(&mut self, value_type: u8, bytes: &[u8]) -> Result<Option<Edit>>;
    /// Whether substitutions become optional, because a value became NULL.
    fn makes_optional(&self) -> bool {
        false
    }
}

/// What BinXML is copied to.
pub(crate) trait Target {
    /// Where to append tokens.
    fn out(&mut self) -> &mut Vec<u8>;
    /// Appends a reference to a name, and perhaps the name. `entry` is its hash, its number of units, and its units.
    fn name(&mut self, entry: &[u8]);
    /// Appends a reference to the definition at an offset of the source, and perhaps the definition.
    fn definition(&mut self, source: Source<'_>, at: usize) -> Result<()>;
    /// What replaces parts, if anything does.
    fn edits(&mut self) -> Option<&mut dyn Edits> {
        None
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

/// The entry of a name: the hash by which a chunk finds it, its number of units, and its units in UTF-16. The hash is the low
/// half of a multiplicative one.
pub(crate) fn entry(name: &str) -> Vec<u8> {
    let hash = |hash: u32, unit: u16| hash.wrapping_mul(65_599).wrapping_add(u32::from(unit));
    let hash = name.encode_utf16().fold(0, hash) as u16;
    let head = [hash, name.encode_utf16().count() as u16].map(u16::to_le_bytes);
    head.concat().into_iter().chain(utf16(name)).collect()
}
