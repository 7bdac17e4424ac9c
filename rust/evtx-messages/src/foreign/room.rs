//! The memory of the tables of a database.

use crate::error::{Error, Result};

/// What the tables beside that of the texts may take of memory, in bytes. Those of plaso take 10 MiB. *(choice)*
const MAX_MEMORY: usize = 32 << 20;

/// The memory that tables may still take.
pub(super) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Room(MAX_MEMORY)
    }
}

impl Room {
    /// Takes some, before it is there.
    pub(super) fn take(&mut self, bytes: usize) -> Result<()> {
        let (what, size) = ("the list of providers in the database", MAX_MEMORY - self.0 + bytes);
        let left = self.0.checked_sub(bytes);
        self.0 = left.ok_or_else(|| Error::too_large(what, 0, size, MAX_MEMORY))?;
        Ok(())
    }
}
