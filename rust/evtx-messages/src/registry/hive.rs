//! Registry hives (`regf`): keys and values.
//!
//! Source: the documentation of libregf. A hive is a header of 4,096 bytes and cells. An offset counts from the end of
//! the header, to the u32 size of a cell. Transaction logs are not read, so the latest changes may be missing.
//!
//! | cell | offsets in it, in bytes |
//! | --- | --- |
//! | `nk`, a key | flags 2 (0x20: the name is not UTF-16), number of subkeys 20, list of subkeys 28, number of values 36, list of values 40, length of the name 72, name 76 |
//! | `lf`, `lh`, lists of keys | count 2, then for each: offset, hash |
//! | `li`, `ri`, lists of keys or of such lists | count 2, then for each: offset |
//! | `vk`, a value | length of the name 2, size 4 (bit 31: the data is at 8), offset of the data 8, type 12, flags 16 (1: the name is not UTF-16), name 20 |
//! | `db`, data of more than 16,344 bytes | count 2, offset of a list of the offsets of its parts 4 |

use std::cell::Cell;

use evtx_format::bytes::{u16_at, u32_at};
use evtx_format::value::Scalar;
use evtx_format::{Interrupt, Interrupted};

use crate::binary::table::text_of;
use crate::error::{Error, Result};

/// The size of the header.
const HEADER: usize = 4096;
/// The longest text of a value, in bytes. *(choice)*
const MAX_TEXT: usize = 64 << 10;

/// An open hive. Work is bounded by the size of the file: reading ends when more cells were read than it can have.
#[derive(Debug)]
pub struct Hive<'h> {
    /// The bytes after the header.
    cells: &'h [u8],
    root: u32,
    /// How many bytes of cells the header claims.
    size: u32,
    /// The cells that may still be read, so that keys in a circle end.
    steps: Cell<usize>,
    interrupt: Interrupt<'h>,
    interrupted: Cell<bool>,
}

/// A key of a hive.
#[derive(Debug, Clone, Copy)]
pub struct Key<'k> {
    hive: &'k Hive<'k>,
    /// Its cell.
    cell: &'k [u8],
}

impl<'h> Hive<'h> {
    /// Opens the bytes of a hive.
    ///
    /// # Errors
    /// [`Error::NotAHive`] if they are not a hive.
    pub fn open(file: &'h [u8], interrupt: Interrupt<'h>) -> Result<Self> {
        let root = u32_at(file, 36)
            .filter(|_| file.starts_with(b"regf"))
            .ok_or(Error::NotAHive)?;
        let cells = file.get(HEADER..).ok_or(Error::NotAHive)?;
        Ok(Hive {
            cells,
            root,
            size: u32_at(file, 40).unwrap_or_default(),
            // Each key can be read by its name, and for its values.
            steps: Cell::new(cells.len() / 4 + 64),
            interrupt,
            interrupted: Cell::new(false),
        })
    }

    /// Why keys may be missing: the file has fewer bytes than its header says. The size of the cells is at offset 40.
    pub fn cut(&self) -> Option<Error> {
        let (need, have) = (u64::from(self.size), self.cells.len() as u64);
        let (what, offset) = ("a hive", HEADER as u64);
        (need > have).then_some(Error::Truncated {
            what,
            offset,
            need,
            have,
        })
    }

    /// The key that contains all others.
    pub fn root(&'h self) -> Key<'h> {
        self.key(self.root).unwrap_or(Key { hive: self, cell: &[] })
    }

    /// # Errors
    /// [`Interrupted`] if the work was interrupted. What was read is incomplete then.
    pub fn interrupted(&self) -> Result<()> {
        if self.interrupted.get() {
            Err(Interrupted.into())
        } else {
            Ok(())
        }
    }

    /// The data of the cell at an offset; `None` if it is outside of the hive, or if reading has to end.
    fn cell(&'h self, offset: u32) -> Option<&'h [u8]> {
        let left = self.steps.get().checked_sub(1)?;
        self.steps.set(left);
        if self.interrupted.get() || (left % 256 == 0 && self.interrupt.check().is_err()) {
            self.interrupted.set(true);
            return None;
        }
        let at = offset as usize;
        // The size of a cell in use is negative.
        let size = (u32_at(self.cells, at)? as i32).unsigned_abs() as usize;
        self.cells.get(at..)?.get(4..size)
    }

    fn key(&'h self, offset: u32) -> Option<Key<'h>> {
        let cell = self.cell(offset).filter(|cell| cell.starts_with(b"nk"))?;
        Some(Key { hive: self, cell })
    }

    /// The offsets of the keys in a list. A list of lists has one level.
    fn list(&'h self, offset: u32, is_inner: bool) -> Vec<u32> {
        let Some(cell) = self.cell(offset) else {
            return Vec::new();
        };
        let items = match cell.get(4..) {
            Some(items) => items.as_chunks::<4>().0,
            None => return Vec::new(),
        };
        let count = usize::from(u16_at(cell, 2).unwrap_or(0));
        let offsets = items.iter().map(|item| u32::from_le_bytes(*item));
        match &cell[..2] {
            b"lf" | b"lh" => offsets.step_by(2).take(count).collect(),
            b"li" => offsets.take(count).collect(),
            b"ri" if !is_inner => offsets.take(count).flat_map(|offset| self.list(offset, true)).collect(),
            _ => Vec::new(),
        }
    }

    /// The data of a value.
    fn data(&'h self, value: &'h [u8]) -> Option<Vec<u8>> {
        let size = u32_at(value, 4)?;
        if size & 1 << 31 != 0 {
            return value.get(8..12)?.get(..(size & 0xff) as usize).map(<[u8]>::to_vec);
        }
        let size = (size as usize).min(MAX_TEXT);
        let cell = self.cell(u32_at(value, 8)?)?;
        if size <= 16_344 || !cell.starts_with(b"db") {
            return cell.get(..size).map(<[u8]>::to_vec);
        }
        let parts = self.cell(u32_at(cell, 4)?)?;
        let mut data = Vec::new();
        for part in parts.as_chunks::<4>().0.iter().take(u16_at(cell, 2)?.into()) {
            if data.len() >= size {
                break;
            }
            let part = self.cell(u32::from_le_bytes(*part))?;
            data.extend_from_slice(&part[..part.len().min(16_344).min(size - data.len())]);
        }
        Some(data)
    }
}

impl<'k> Key<'k> {
    /// The hive of the key.
    pub fn hive(&self) -> &'k Hive<'k> {
        self.hive
    }

    /// The name.
    pub fn name(&self) -> String {
        let name = || {
            let length = usize::from(u16_at(self.cell, 72)?);
            Some(name(self.cell.get(76..76 + length)?, u16_at(self.cell, 2)? & 0x20 != 0))
        };
        name().unwrap_or_default()
    }

    /// The keys inside the key.
    pub fn subkeys(&self) -> impl Iterator<Item = Key<'k>> + use<'k> {
        let (hive, count, list) = (self.hive, u32_at(self.cell, 20), u32_at(self.cell, 28));
        let offsets = match (count, list) {
            (Some(1..), Some(list)) => hive.list(list, false),
            _ => Vec::new(),
        };
        offsets.into_iter().filter_map(move |offset| hive.key(offset))
    }

    /// The key at a path of names with `\` between them, in any case.
    pub fn path(&self, path: &str) -> Option<Key<'k>> {
        path.split('\\').try_fold(*self, |key, name| {
            let name = name.to_lowercase();
            key.subkeys().find(|key| key.name().to_lowercase() == name)
        })
    }

    /// The text of a value, in any case; that of the default value if the name is empty. `None` if it is not a text.
    pub fn text(&self, value: &str) -> Option<String> {
        let count = u32_at(self.cell, 36).filter(|count| *count > 0)? as usize;
        let list = self.hive.cell(u32_at(self.cell, 40)?)?.as_chunks::<4>().0;
        for offset in list.iter().take(count) {
            let Some(cell) = self
                .hive
                .cell(u32::from_le_bytes(*offset))
                .filter(|cell| cell.starts_with(b"vk"))
            else {
                continue;
            };
            let length = usize::from(u16_at(cell, 2)?);
            let found = name(cell.get(20..20 + length)?, u16_at(cell, 16)? & 1 != 0);
            if !found.eq_ignore_ascii_case(value) {
                continue;
            }
            // REG_SZ, REG_EXPAND_SZ, REG_MULTI_SZ
            return match u32_at(cell, 12)? {
                1 | 2 | 7 => Some(text_of(Scalar::String, &self.hive.data(cell)?)),
                _ => None,
            };
        }
        None
    }
}

fn name(bytes: &[u8], is_narrow: bool) -> String {
    text_of(if is_narrow { Scalar::AnsiString } else { Scalar::String }, bytes)
}
