//! The block of a provider, and what the files of catalogs consist of.

use std::io::Read;
use std::sync::Arc;

use evtx_format::Interrupt;
use flate2::bufread::ZlibDecoder;

use crate::error::{Error, Result};
use crate::row::{Field, ValueMap};
use evtx_format::bytes::{array_at, u32_at};

/// The longest text of a message, in bytes. A table of messages in a binary has at most 64 KiB for each. *(choice)*
pub const MAX_MESSAGE: usize = 1 << 20;

pub(super) const MAGIC: [u8; 8] = *b"EVTXMSGS";
pub(super) const VERSION: u32 = 2;
/// The version before, whose messages and parameters have no file. It is read, not written.
pub(super) const WITHOUT_FILES: u32 = 1;
/// The header in bytes.
pub(super) const HEADER: usize = 24;
/// The uncompressed size of a block, at most. *(choice)*
pub(super) const MAX_BLOCK: usize = 16 << 20;
/// The uncompressed size of the directory, at most: 60,000 providers. *(choice)*
pub(super) const MAX_DIRECTORY: usize = 4 << 20;
/// The uncompressed sizes of all blocks together, at most. *(choice)*
pub(super) const MAX_BLOCKS: usize = 1 << 30;

/// The texts of a row, at most, in bytes. *(choice)*
pub(super) const MAX_ROW: usize = 2 << 20;
/// How many times larger than its compressed bytes a zlib stream can be, at most.
const MAX_RATIO: usize = 1032;

/// The u32 of a message, in the order of the file.
pub(super) mod column {
    /// The event ID, and in the upper 16 bits the version plus 1, or 0.
    pub(crate) const EVENT: usize = 0;
    /// The qualifiers, and the flags [`HAS_QUALIFIERS`] and [`HAS_MESSAGE_ID`].
    pub(crate) const QUALIFIERS: usize = 1;
    pub(crate) const MESSAGE_ID: usize = 2;
    pub(crate) const LANGUAGE: usize = 3;
    pub(crate) const TEXT: usize = 4;
    pub(crate) const CHANNEL: usize = 5;
    pub(crate) const LEVEL: usize = 6;
    pub(crate) const TASK: usize = 7;
    pub(crate) const OPCODE: usize = 8;
    pub(crate) const KEYWORDS: usize = 9;
    pub(crate) const FIELDS: usize = 10;
    pub(crate) const FILE: usize = 11;
    pub(crate) const COUNT: usize = 12;

    pub(crate) const HAS_QUALIFIERS: u32 = 1 << 16;
    pub(crate) const HAS_MESSAGE_ID: u32 = 1 << 17;
}

/// A message as its u32.
pub(super) type Record = [u32; column::COUNT];

/// A parameter as its u32: ID, language, text, file.
pub(super) type ParameterRecord = [u32; 4];

/// Where compressed bytes are in a file, and what they have to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) what: &'static str,
    /// From the start of the file, in bytes.
    pub(super) offset: u64,
    pub(super) compressed: u32,
    pub(super) size: u32,
    pub(super) checksum: u32,
}

impl Packed {
    /// Decompresses the bytes of a file.
    ///
    /// # Errors
    /// If they are not all there, larger than `most`, or damaged; and if the work is interrupted.
    pub(super) fn unpack(&self, file: &[u8], most: usize, interrupt: Interrupt<'_>) -> Result<Vec<u8>> {
        let Packed { what, offset, .. } = *self;
        let damaged = |why| Error::Damaged { what, offset, why };
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = file.get(start..).unwrap_or(&[]);
        let packed = rest.get(..self.compressed as usize).ok_or(Error::Truncated {
            what,
            offset,
            need: self.compressed.into(),
            have: rest.len() as u64,
        })?;
        let size = self.size as usize;
        if size > most {
            return Err(Error::too_large(what, offset, size, most));
        }
        let mut bytes = Vec::with_capacity((size + 1).min(MAX_RATIO * packed.len() + 1));
        let mut decoder = ZlibDecoder::new(packed).take(size as u64 + 1);
        loop {
            interrupt.check()?;
            let read = decoder.by_ref().take(1 << 16).read_to_end(&mut bytes);
            if read.map_err(|_| damaged("it cannot be decompressed"))? == 0 {
                break;
            }
        }
        if bytes.len() != size {
            return Err(damaged("it has another size than the directory says"));
        }
        let computed = crc32fast::hash(&bytes);
        if computed != self.checksum {
            let stored = self.checksum;
            return Err(Error::Checksum {
                what,
                offset,
                stored,
                computed,
            });
        }
        Ok(bytes)
    }
}

/// The messages of a provider. References in it are checked when they are followed.
#[derive(Debug)]
pub(super) struct Block {
    bytes: Vec<u8>,
    strings: usize,
    lists: usize,
    /// How many items the lists have together.
    list_items: usize,
    messages: usize,
    message_count: usize,
    parameters: usize,
    parameter_count: usize,
    text: usize,
    /// How many numbers a message and a parameter lack.
    missing: usize,
}

impl Block {
    /// A block of a catalog of a version, from its uncompressed bytes; `None` if its parts do not have the sizes that its
    /// header says.
    pub(super) fn new(bytes: Vec<u8>, version: u32) -> Option<Self> {
        let missing = usize::from(version == WITHOUT_FILES);
        let mut at = 20_usize;
        let mut part = |index: usize, size: usize| {
            let count = u32_at(&bytes, 4 * index)? as usize;
            let start = at;
            at = at.checked_add(count.checked_mul(size)?)?;
            Some((start, count))
        };
        let (strings, string_count) = part(0, 4)?;
        let (lists, list_items) = part(2, 4)?;
        let (messages, message_count) = part(3, 4 * (column::COUNT - missing))?;
        let (parameters, parameter_count) = part(4, size_of::<ParameterRecord>() - 4 * missing)?;
        let (text, _) = part(1, 1)?;
        if at != bytes.len() || strings + 4 * string_count != lists {
            return None;
        }
        std::str::from_utf8(&bytes[text..]).ok()?;
        Some(Block {
            bytes,
            strings,
            lists,
            list_items,
            messages,
            message_count,
            parameters,
            parameter_count,
            text,
            missing,
        })
    }

    pub(super) fn message_count(&self) -> usize {
        self.message_count
    }

    pub(super) fn parameter_count(&self) -> usize {
        self.parameter_count
    }

    /// The message at an index below [`message_count`](Self::message_count).
    pub(super) fn message(&self, index: usize) -> Record {
        self.numbers(self.messages, index)
    }

    /// The parameter at an index below [`parameter_count`](Self::parameter_count).
    pub(super) fn parameter(&self, index: usize) -> ParameterRecord {
        self.numbers(self.parameters, index)
    }

    /// The numbers of the item at an index; 0 for the last one if it is missing.
    fn numbers<const N: usize>(&self, start: usize, index: usize) -> [u32; N] {
        let (count, at) = (N - self.missing, start + index * 4 * (N - self.missing));
        std::array::from_fn(|i| u32_at(&self.bytes, at + 4 * i).filter(|_| i < count).unwrap_or(0))
    }

    /// The string of a reference; `None` if there is none.
    pub(super) fn string(&self, reference: u32) -> Option<&str> {
        let index = (reference as usize).checked_sub(1)?;
        let end_at = |index: usize| {
            let at = self.strings + 4 * index;
            if at + 4 > self.lists {
                return None;
            }
            u32_at(&self.bytes, at).map(|end| end as usize)
        };
        let start = if index == 0 { 0 } else { end_at(index - 1)? };
        let text = self.bytes.get(self.text..)?.get(start..end_at(index)?)?;
        // The whole text is valid, but a string might end inside a character.
        std::str::from_utf8(text).ok()
    }

    /// The items of the list of a reference; empty if there is none.
    pub(super) fn list(&self, reference: u32) -> &[[u8; 4]] {
        let items = || {
            let index = (reference as usize).checked_sub(1)?;
            let all = self.bytes.get(self.lists..self.lists + 4 * self.list_items)?;
            let (length, rest) = all.as_chunks::<4>().0.get(index..)?.split_first()?;
            rest.get(..u32::from_le_bytes(*length) as usize)
        };
        items().unwrap_or(&[])
    }

    /// The number of fields in the list of a reference; `None` if there is no list.
    pub(super) fn field_count(&self, reference: u32) -> Option<usize> {
        (reference != 0).then(|| self.list(reference).len() / 3)
    }

    /// The names of the fields in the list of a reference.
    pub(super) fn field_names(&self, reference: u32) -> impl Iterator<Item = &str> {
        let fields = self.list(reference).as_chunks::<3>().0;
        let name = |[name, ..]: &[[u8; 4]; 3]| self.string(u32::from_le_bytes(*name)).unwrap_or_default();
        fields.iter().map(name)
    }

    /// The fields of a reference, and the maps that they name; `None` if their texts take more than `room`.
    pub(super) fn fields(&self, reference: u32, mut room: usize) -> Option<(Vec<Field>, Vec<ValueMap>)> {
        let (mut fields, mut maps) = (Vec::new(), Vec::<ValueMap>::new());
        for &[name, types, map] in self.list(reference).as_chunks::<3>().0 {
            let number = u32::from_le_bytes;
            let name = self.string(number(name)).unwrap_or_default();
            room = room.checked_sub(name.len() + size_of::<Field>())?;
            let map = match self.list_head(number(map)) {
                None => None,
                Some((name, is_bit_map, entries)) => {
                    room = room.checked_sub(name.len())?;
                    let name: Arc<str> = name.into();
                    // Fields share few maps. A crafted list could name many.
                    if maps.len() < MAX_MAPS && !maps.iter().any(|known| known.name == name) {
                        maps.push(self.map(name.clone(), is_bit_map, entries, &mut room)?);
                    }
                    Some(name)
                }
            };
            fields.push(Field {
                name: name.into(),
                in_type: types[0],
                out_type: types[1],
                map,
            });
        }
        Some((fields, maps))
    }

    /// The name, the kind and the entries of a map.
    fn list_head(&self, reference: u32) -> Option<(&str, bool, &[[u8; 4]])> {
        let [name, is_bit_map, entries @ ..] = self.list(reference) else {
            return None;
        };
        let name = self.string(u32::from_le_bytes(*name))?;
        Some((name, is_bit_map[0] == 1, entries))
    }

    fn map(&self, name: Arc<str>, is_bit_map: bool, entries: &[[u8; 4]], room: &mut usize) -> Option<ValueMap> {
        let mut texts = Vec::new();
        for &[value, text] in entries.as_chunks::<2>().0 {
            let Some(text) = self.string(u32::from_le_bytes(text)) else {
                continue;
            };
            *room = room.checked_sub(text.len() + 32)?;
            texts.push((u32::from_le_bytes(value), text.into()));
        }
        Some(ValueMap {
            name,
            is_bit_map,
            entries: texts,
        })
    }

    /// The indexes of the messages of an event.
    pub(super) fn messages_of(&self, event_id: u16) -> std::ops::Range<usize> {
        let id = |index| self.message(index)[column::EVENT] as u16;
        let start = partition_point(self.message_count, |index| id(index) < event_id);
        let end = partition_point(self.message_count, |index| id(index) <= event_id);
        start..end
    }

    /// The indexes of the parameters with an ID.
    pub(super) fn parameters_of(&self, id: u32) -> std::ops::Range<usize> {
        let start = partition_point(self.parameter_count, |index| self.parameter(index)[0] < id);
        let end = partition_point(self.parameter_count, |index| self.parameter(index)[0] <= id);
        start..end.max(start)
    }
}

/// The maps of one event, at most. *(choice)*
const MAX_MAPS: usize = 256;

/// The first index below `count` for which `before` is false; `count` if there is none. Ends on any input.
fn partition_point(count: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The number at `at` and the position after it.
pub(super) fn take<const N: usize>(bytes: &[u8], at: &mut usize) -> Option<[u8; N]> {
    let found = array_at(bytes, *at)?;
    *at += N;
    Some(found)
}
