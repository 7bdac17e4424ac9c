//! What BinXML is copied to.

use std::collections::HashMap;

use crate::source::{Result, Source};

/// What BinXML is copied to.
pub(crate) trait Target {
    /// Where to append tokens.
    fn out(&mut self) -> &mut Vec<u8>;
    /// Appends a reference to a name, and perhaps the name. `entry` is its hash, its number of units, and its units.
    fn name(&mut self, entry: &[u8]);
    /// Appends a reference to the definition at an offset of the source, and perhaps the definition.
    fn definition(&mut self, source: Source<'_>, at: usize) -> Result<()>;
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
