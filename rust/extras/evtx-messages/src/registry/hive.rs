//! Registry hives (`regf`): keys and values.
//!
//! `notatin` does not qualify: a list of keys that contains itself overflows its stack (1.0.1), it reads all values of a key
//! at once, and nothing can interrupt it.
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

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use evtx_format::Interrupt;
use evtx_format::bytes::{u16_at, u32_at};
use evtx_format::value::Scalar;
use hashbrown::HashMap;

use crate::binary::table::text_of;
use crate::error::{Error, Result};

/// The size of the header.
const HEADER: usize = 4096;
/// The longest text of a value, in bytes. *(choice)*
const MAX_TEXT: usize = 64 << 10;
/// The longest names of keys and of the values that are asked for, in bytes: 255 characters. Windows allows no longer keys.
const MAX_NAME: usize = 510;
/// The bytes of all texts that are read, at most. Windows has some 100 KiB of them for its providers. *(choice)*
const MAX_TEXTS: usize = 8 << 20;

/// An open hive. Work is bounded by the size of the file: reading fails when more cells were read than it can have.
#[derive(Debug)]
pub struct Hive<'h> {
    /// The bytes after the header.
    cells: &'h [u8],
    root: u32,
    /// How many bytes of cells the header claims.
    size: u32,
    /// The cells that may still be read, so that keys in a circle end.
    steps: Cell<usize>,
    /// The texts that were read, by the offsets and sizes of their data: keys can share a value.
    texts: RefCell<HashMap<(u32, u32), Arc<str>>>,
    /// The bytes of texts that may still be read, because data can overlap.
    text_room: Cell<usize>,
    interrupt: Interrupt<'h>,
    /// Why reading ended early.
    failure: RefCell<Option<Error>>,
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
            texts: RefCell::default(),
            text_room: Cell::new(MAX_TEXTS),
            interrupt,
            failure: RefCell::default(),
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
    /// Why reading ended early, if it did: what was read is incomplete then.
    pub fn check(&self) -> Result<()> {
        self.interrupt.check()?;
        self.failure.borrow().clone().map_or(Ok(()), Err)
    }

    /// Ends reading.
    fn fail<T>(&self, why: Error) -> Option<T> {
        self.failure.borrow_mut().get_or_insert(why);
        self.steps.set(0);
        None
    }

    /// The data of the cell at an offset; `None` if it is outside of the hive, or if reading has to end.
    fn cell(&'h self, offset: u32) -> Option<&'h [u8]> {
        let Some(left) = self.steps.get().checked_sub(1) else {
            return self.fail(Error::Damaged {
                what: "a hive",
                offset: HEADER as u64 + u64::from(offset),
                why: "its keys refer to more cells than it can have",
            });
        };
        self.steps.set(left);
        if left % 16 == 0
            && let Err(interrupted) = self.interrupt.check()
        {
            return self.fail(interrupted.into());
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

    /// The items of a list of keys, each with its offset first, and whether they are lists themselves.
    fn list(&'h self, offset: u32) -> (Items<'h>, bool) {
        let list = || {
            let cell = self.cell(offset)?;
            let (size, is_outer) = match cell.get(..2)? {
                b"lf" | b"lh" => (8, false),
                b"li" => (4, false),
                b"ri" => (4, true),
                _ => return None,
            };
            let (items, count) = (cell.get(4..)?, usize::from(u16_at(cell, 2)?));
            Some((items[..items.len().min(size * count)].chunks_exact(size), is_outer))
        };
        list().unwrap_or((NONE.chunks_exact(4), false))
    }

    /// The text of a value. Those that have the same data share it.
    fn text(&'h self, value: &'h [u8]) -> Option<Arc<str>> {
        let key = (u32_at(value, 8)?, u32_at(value, 4)?);
        if let Some(known) = self.texts.borrow().get(&key) {
            return Some(Arc::clone(known));
        }
        let data = self.data(value)?;
        // Even an empty text takes some.
        let Some(room) = self.text_room.get().checked_sub(data.len() + 64) else {
            let (offset, size) = (HEADER as u64 + u64::from(key.0), MAX_TEXTS + data.len());
            return self.fail(Error::too_large("the values of providers", offset, size, MAX_TEXTS));
        };
        self.text_room.set(room);
        let text: Arc<str> = text_of(Scalar::String, &data).into();
        self.texts.borrow_mut().insert(key, Arc::clone(&text));
        Some(text)
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
    /// The name.
    pub fn name(&self) -> String {
        let name = || {
            let length = usize::from(u16_at(self.cell, 72)?).min(MAX_NAME);
            Some(name(self.cell.get(76..76 + length)?, u16_at(self.cell, 2)? & 0x20 != 0))
        };
        name().unwrap_or_default()
    }

    /// The keys inside the key. A list of lists has one level.
    pub fn subkeys(&self) -> impl Iterator<Item = Key<'k>> + use<'k> {
        let (hive, count, list) = (self.hive, u32_at(self.cell, 20), u32_at(self.cell, 28));
        let (items, is_outer) = match (count, list) {
            (Some(1..), Some(list)) => hive.list(list),
            _ => (NONE.chunks_exact(4), false),
        };
        let (mut lists, mut keys) = (NONE.chunks_exact(4), items);
        if is_outer {
            std::mem::swap(&mut lists, &mut keys);
        }
        let offset = |item: &[u8]| u32_at(item, 0).unwrap_or_default();
        let offsets = std::iter::from_fn(move || {
            loop {
                if let Some(key) = keys.next() {
                    return Some(offset(key));
                }
                let (items, is_outer) = hive.list(offset(lists.next()?));
                keys = if is_outer { NONE.chunks_exact(4) } else { items };
            }
        });
        offsets
            .take_while(|_| hive.steps.get() > 0)
            .filter_map(|offset| hive.key(offset))
    }

    /// The key at a path of names with `\` between them, in any case.
    pub fn path(&self, path: &str) -> Option<Key<'k>> {
        path.split('\\').try_fold(*self, |key, name| {
            let name = name.to_lowercase();
            key.subkeys().find(|key| key.name().to_lowercase() == name)
        })
    }

    /// The text of a value, in any case; that of the default value if the name is empty. `None` if it is not a text.
    pub fn text(&self, value: &str) -> Option<Arc<str>> {
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
            let bytes = cell.get(20..20 + length).filter(|name| name.len() <= MAX_NAME);
            let found = name(bytes.unwrap_or(b"?"), u16_at(cell, 16)? & 1 != 0);
            if !found.eq_ignore_ascii_case(value) {
                continue;
            }
            // REG_SZ, REG_EXPAND_SZ, REG_MULTI_SZ
            return match u32_at(cell, 12)? {
                1 | 2 | 7 => self.hive.text(cell),
                _ => None,
            };
        }
        None
    }
}

/// The items of a list of keys.
type Items<'h> = std::slice::ChunksExact<'h, u8>;
/// No items.
const NONE: &[u8] = &[];

fn name(bytes: &[u8], is_narrow: bool) -> String {
    text_of(if is_narrow { Scalar::AnsiString } else { Scalar::String }, bytes)
}
