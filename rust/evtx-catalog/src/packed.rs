//! Reads the bytes of the catalog: its directory and its blocks.

use std::ops::Range;
use std::sync::Arc;

use evtx_format::value::ValueType;
use flate2::{Decompress, FlushDecompress, Status};

/// The most bytes of an unpacked directory or block.
const MAX_UNPACKED: usize = 1 << 20;

/// The catalog is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the catalog of events is damaged")]
pub(crate) struct Damaged;

/// The fields of an event: their names and types.
pub(crate) type Fields = Arc<[(Arc<str>, ValueType)]>;

/// The packed bytes of a block, and the providers of its events.
#[derive(Debug, Clone)]
pub(crate) struct BlockEntry {
    packed: &'static [u8],
    /// Its unpacked size, in bytes.
    size: usize,
    pub(crate) providers: Vec<Arc<str>>,
}

/// An event of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockEvent {
    /// The index of its provider in the block.
    pub(crate) provider: usize,
    pub(crate) id: u32,
    pub(crate) version: u8,
    /// The index of its field list in the block.
    field_list: usize,
}

/// An unpacked block. Its names and field lists stay bytes, because a query needs few of them.
#[derive(Debug, Default)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    /// The names, as ranges of the bytes.
    names: Vec<Range<usize>>,
    /// The offsets of the field lists in the bytes. Many events share one.
    field_lists: Vec<usize>,
    pub(crate) events: Vec<BlockEvent>,
}

/// The blocks of a catalog.
///
/// # Errors
/// [`Damaged`].
pub(crate) fn directory(catalog: &'static [u8]) -> Result<Vec<BlockEntry>, Damaged> {
    let (packed_size, rest) = catalog.split_first_chunk().ok_or(Damaged)?;
    let (size, rest) = rest.split_first_chunk().ok_or(Damaged)?;
    let (packed, mut rest) = split(rest, to_size(u32::from_le_bytes(*packed_size))?)?;
    let unpacked = unpack(packed, to_size(u32::from_le_bytes(*size))?)?;
    let mut directory = Reader::at(&unpacked, 0);
    let mut blocks = Vec::new();
    for _ in 0..directory.number()? {
        let packed_size = directory.size()?;
        let size = directory.size()?;
        let (packed, others) = split(rest, packed_size)?;
        rest = others;
        let mut providers = Vec::new();
        for _ in 0..directory.number()? {
            providers.push(directory.name()?.into());
        }
        blocks.push(BlockEntry {
            packed,
            size,
            providers,
        });
    }
    directory.end()?;
    if rest.is_empty() { Ok(blocks) } else { Err(Damaged) }
}

impl BlockEntry {
    /// The events of the block.
    ///
    /// # Errors
    /// [`Damaged`].
    pub(crate) fn read(&self) -> Result<Block, Damaged> {
        Block::read(unpack(self.packed, self.size)?, self.providers.len())
    }
}

impl Block {
    /// Reads the unpacked bytes of a block with this number of providers.
    ///
    /// # Errors
    /// [`Damaged`].
    fn read(bytes: Vec<u8>, providers: usize) -> Result<Self, Damaged> {
        let mut reader = Reader::at(&bytes, 0);
        let mut names = Vec::new();
        for _ in 0..reader.number()? {
            let name = reader.name()?;
            names.push(reader.at - name.len()..reader.at);
        }
        let mut field_lists = Vec::new();
        for _ in 0..reader.number()? {
            field_lists.push(reader.at);
            reader.field_list(|name, _| names.get(name).map(|_| ()).ok_or(Damaged))?;
        }
        let mut events = Vec::new();
        for provider in 0..providers {
            let mut id = 0_u32;
            for _ in 0..reader.number()? {
                id = id.checked_add(reader.number()?).ok_or(Damaged)?;
                let version = reader.byte()?;
                let field_list = reader.size()?;
                if field_list >= field_lists.len() {
                    return Err(Damaged);
                }
                events.push(BlockEvent {
                    provider,
                    id,
                    version,
                    field_list,
                });
            }
        }
        reader.end()?;
        Ok(Block {
            bytes,
            names,
            field_lists,
            events,
        })
    }

    /// The fields of an event, and whether they are in `UserData`.
    ///
    /// # Errors
    /// [`Damaged`], for an event of another block.
    pub(crate) fn fields(&self, event: BlockEvent) -> Result<(Fields, bool), Damaged> {
        let start = *self.field_lists.get(event.field_list).ok_or(Damaged)?;
        let mut fields = Vec::new();
        let in_user_data = Reader::at(&self.bytes, start).field_list(|name, value_type| {
            let name = self.names.get(name).ok_or(Damaged)?;
            let name = self.bytes.get(name.clone()).ok_or(Damaged)?;
            fields.push((text(name)?.into(), value_type));
            Ok(())
        })?;
        Ok((fields.into(), in_user_data))
    }
}

fn unpack(packed: &[u8], size: usize) -> Result<Vec<u8>, Damaged> {
    if size > MAX_UNPACKED {
        return Err(Damaged);
    }
    let mut unpacked = vec![0; size];
    let mut stream = Decompress::new(true);
    match stream.decompress(packed, &mut unpacked, FlushDecompress::Finish) {
        Ok(Status::StreamEnd) if stream.total_out() == size as u64 => Ok(unpacked),
        _ => Err(Damaged),
    }
}

fn split(bytes: &[u8], at: usize) -> Result<(&[u8], &[u8]), Damaged> {
    bytes.split_at_checked(at).ok_or(Damaged)
}

fn to_size(number: u32) -> Result<usize, Damaged> {
    usize::try_from(number).map_err(|_| Damaged)
}

fn text(bytes: &[u8]) -> Result<&str, Damaged> {
    std::str::from_utf8(bytes).map_err(|_| Damaged)
}

/// Reads bytes from an offset on. Counts in the bytes cannot make it read past their end.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn at(bytes: &'a [u8], at: usize) -> Self {
        Reader { bytes, at }
    }

    fn byte(&mut self) -> Result<u8, Damaged> {
        let byte = *self.bytes.get(self.at).ok_or(Damaged)?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u32, Damaged> {
        let mut number = 0;
        for shift in (0..28).step_by(7) {
            let byte = self.byte()?;
            number |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Damaged)
    }

    fn size(&mut self) -> Result<usize, Damaged> {
        to_size(self.number()?)
    }

    fn name(&mut self) -> Result<&'a str, Damaged> {
        let len = self.size()?;
        let end = self.at.checked_add(len).ok_or(Damaged)?;
        let name = text(self.bytes.get(self.at..end).ok_or(Damaged)?)?;
        self.at = end;
        Ok(name)
    }

    /// Reads a field list: calls `take` with the index of each field's name and its type. Returns whether the fields are
    /// in `UserData`.
    fn field_list(&mut self, mut take: impl FnMut(usize, ValueType) -> Result<(), Damaged>) -> Result<bool, Damaged> {
        let head = self.number()?;
        for _ in 0..head >> 1 {
            let name = self.size()?;
            take(name, ValueType::from_byte(self.byte()?).ok_or(Damaged)?)?;
        }
        Ok(head & 1 == 1)
    }

    /// Fails if there are more bytes.
    fn end(self) -> Result<(), Damaged> {
        match self.at == self.bytes.len() {
            true => Ok(()),
            false => Err(Damaged),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOG: &[u8] = include_bytes!("../data/events.bin");

    #[test]
    fn what_is_unpacked_is_small() {
        let blocks = directory(CATALOG).expect("a directory");
        let largest = blocks.iter().map(|block| block.size).max().expect("a block");
        let all: usize = blocks.iter().map(|block| block.size).sum();
        assert!(largest <= 256 << 10, "{largest}");
        assert!(all <= 4 << 20, "{all}");
    }

    /// Changes a byte at a time and reads. Any result will do, but no panic.
    #[test]
    fn damage_is_an_error_and_no_panic() {
        let blocks = directory(CATALOG).expect("a directory");
        let block = blocks.iter().min_by_key(|block| block.size).expect("a block");
        let unpacked = unpack(block.packed, block.size).expect("a block");
        let mut damaged = 0;
        for at in 0..unpacked.len().min(1 << 9) {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = unpacked.clone();
                changed[at] = value;
                match Block::read(changed, block.providers.len()) {
                    Ok(block) => block.events.iter().for_each(|event| _ = block.fields(*event)),
                    Err(Damaged) => damaged += 1,
                }
            }
            let cut = unpacked[..at].to_vec();
            assert_eq!(Block::read(cut, block.providers.len()).err(), Some(Damaged));
        }
        assert!(damaged > 0);
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        for len in [0, 3, 7, 8, 100, CATALOG.len() - 1] {
            assert_eq!(directory(&CATALOG[..len]).err(), Some(Damaged), "{len}");
        }
        for at in [0, 3, 4, 7, 8, 9, 500] {
            let mut changed = CATALOG.to_vec();
            changed[at] ^= 0xff;
            assert_eq!(directory(changed.leak()).err(), Some(Damaged), "{at}");
        }
        let mut longer = CATALOG.to_vec();
        longer.push(0);
        assert_eq!(directory(longer.leak()).err(), Some(Damaged));
    }

    #[test]
    fn an_unpacked_size_is_bounded() {
        assert_eq!(unpack(&[], MAX_UNPACKED + 1), Err(Damaged));
        assert_eq!(unpack(&[], 0), Err(Damaged));
    }
}
