//! Template instances and the definitions that they refer to.
//!
//! An instance is the token 0x0c, a byte (1), a template ID u32 and the chunk offset u32 of its definition.
//! At the first use in a chunk the definition follows right there. Then the **value table**: a count u32, as
//! many descriptors {size u16, type u8, 0 u8}, and the values back to back.

use std::ops::Range;

use bumpalo::Bump;

use crate::bytes::{Cursor, array_at, u32_at};
use crate::error::{Error, ErrorKind, Result};
use crate::value::{Scalar, Value, ValueType};
use crate::value_type::passes_by_size;

/// Bytes of a definition before its body: next u32, GUID 16, size u32.
pub const DEFINITION_HEADER: usize = 24;

/// A template definition in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition {
    /// Identifies the template in its provider's manifest. Crafted files can give one to several templates.
    pub guid: [u8; 16],
    /// Chunk offset of the body, a BinXML stream.
    pub body: u32,
    /// Size of the body in bytes.
    pub size: u32,
}

impl Definition {
    /// Reads the definition at a chunk offset.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`] where it runs past the chunk.
    pub fn read(chunk: &[u8], offset: u32) -> Result<Self> {
        let at = offset as usize;
        let body = at.saturating_add(DEFINITION_HEADER);
        let header = at.checked_add(4).and_then(|guid| array_at::<16>(chunk, guid));
        let size = at.checked_add(20).and_then(|size| u32_at(chunk, size));
        match (header, size) {
            (Some(guid), Some(size)) if size as usize <= chunk.len().saturating_sub(body) => Ok(Definition {
                guid,
                body: body as u32,
                size,
            }),
            _ => {
                let kind = ErrorKind::Truncated {
                    what: "a template definition",
                    need: DEFINITION_HEADER + size.unwrap_or(0) as usize,
                    have: chunk.len().saturating_sub(at),
                };
                Err(Error::new(at, kind))
            }
        }
    }
}

/// Where a value stands in its chunk, and its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Chunk offset of the value's bytes.
    pub offset: u32,
    /// Size in bytes.
    pub size: u16,
    /// Type, as the descriptor gives it.
    pub value_type: ValueType,
}

/// Slots that follow each other, and so do their values.
#[derive(Debug, Clone, Copy)]
pub struct Slots<'a> {
    /// The number of the first.
    pub first: u16,
    /// {size u16, type u8, 0 u8} of each value.
    pub descriptors: &'a [[u8; 4]],
    /// Chunk offset of each value.
    pub offsets: &'a [u32],
    /// Chunk offset of the descriptors.
    pub at: u32,
}

impl Slots<'_> {
    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.descriptors.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.descriptors.is_empty()
    }

    /// Chunk offset behind a value.
    #[inline]
    pub fn end(&self, number: usize) -> usize {
        self.offsets[number] as usize + value_size(self.descriptors[number])
    }
}

/// The size of the value that a descriptor is of, in bytes.
#[inline]
pub fn value_size([low, high, ..]: [u8; 4]) -> usize {
    usize::from(u16::from_le_bytes([low, high]))
}

impl Slot {
    /// Where the stream that the slot holds is in the chunk; `None` where it holds none.
    #[inline]
    pub fn stream(&self) -> Option<Range<usize>> {
        let start = self.offset as usize;
        let is_stream = self.value_type.scalar == Scalar::BinXml && !self.value_type.array && self.size > 0;
        is_stream.then(|| start..start + usize::from(self.size))
    }
}

/// What [`KINDS`] says of a type: it is an array or a stream; it is none.
const COMPOUND: u8 = 1;
const UNKNOWN: u8 = 2;

/// What the reader of a value table has to know of each type.
const KINDS: [u8; 256] = {
    let mut kinds = [UNKNOWN; 256];
    let mut byte = 0;
    while byte < 256 {
        if let Some(value_type) = ValueType::named_by(byte as u8) {
            let compound = value_type.array || matches!(value_type.scalar, Scalar::BinXml);
            kinds[byte] = if compound { COMPOUND } else { 0 };
        }
        byte += 1;
    }
    kinds
};

/// The value table of an instance: where each value stands, none of them decoded.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a>(&'a Table<'a>);

#[derive(Debug)]
struct Table<'a> {
    chunk: &'a [u8],
    /// {size u16, type u8, 0 u8} of each value.
    descriptors: &'a [[u8; 4]],
    /// Chunk offset of each value.
    offsets: &'a [u32],
    /// Which of the first 64 values hold arrays or streams.
    compound: u64,
}

impl<'a> Values<'a> {
    /// A table without values.
    pub fn none() -> Self {
        Values(&Table {
            chunk: &[],
            descriptors: &[],
            offsets: &[],
            compound: 0,
        })
    }

    /// Reads the table whose count the cursor stands before, and moves behind its values.
    #[inline]
    fn read(chunk: &'a [u8], cursor: &mut Cursor<'a>, arena: &'a Bump) -> Result<Self> {
        let count = cursor.u32("a value table")? as usize;
        let at = cursor.pos();
        // The descriptors must be there before anything is reserved for them.
        let (descriptors, _) = cursor
            .take(count.saturating_mul(4), "the value descriptors")?
            .as_chunks::<4>();
        let start = cursor.pos();
        let (mut end, mut compound, mut kinds) = (start, 0_u64, 0);
        let offsets = arena.alloc_slice_fill_with(descriptors.len(), |i| {
            let [.., byte, _] = descriptors[i];
            let offset = end as u32;
            end += value_size(descriptors[i]);
            let kind = KINDS[usize::from(byte)];
            compound |= u64::from(kind & COMPOUND) << (i & 63);
            kinds |= kind;
            offset
        });
        if kinds & UNKNOWN != 0 {
            let odd = descriptors.iter().position(|d| ValueType::from_byte(d[2]).is_none());
            let odd = odd.unwrap_or_default();
            return Err(Error::new(at + 4 * odd + 2, ErrorKind::ValueType(descriptors[odd][2])));
        }
        let before = *cursor;
        cursor.skip(end - start, "values").map_err(|error| match error.kind {
            ErrorKind::Truncated { have, .. } => before.error(ErrorKind::ValueTable {
                claimed: end - start,
                room: have,
            }),
            _ => error,
        })?;
        Ok(Values(arena.alloc(Table {
            chunk,
            descriptors,
            offsets,
            compound,
        })))
    }

    /// A slot; `None` where the table has none.
    #[inline]
    pub fn slot(self, number: usize) -> Option<Slot> {
        let [low, high, byte, _] = *self.0.descriptors.get(number)?;
        Some(Slot {
            offset: *self.0.offsets.get(number)?,
            size: u16::from_le_bytes([low, high]),
            value_type: ValueType::from_byte(byte)?,
        })
    }

    /// The slots that hold arrays or streams, with their numbers.
    #[inline]
    pub fn compound_slots(self) -> CompoundSlots<'a> {
        CompoundSlots {
            values: self,
            left: self.0.compound,
            base: 0,
        }
    }

    /// The value of a hole; `None` where the table has none for it, which counts as empty.
    #[inline]
    pub fn get(self, hole: u16) -> Option<Value<'a>> {
        self.slot(usize::from(hole)).map(|slot| self.value(slot))
    }

    /// The value in a slot of this table.
    #[inline]
    pub fn value(self, slot: Slot) -> Value<'a> {
        let start = slot.offset as usize;
        Value {
            value_type: slot.value_type,
            bytes: self.0.chunk.get(start..start + usize::from(slot.size)).unwrap_or(&[]),
        }
    }

    /// The slots of `count` values from `first` on; `None` where the table does not have as many.
    #[inline]
    pub fn slots(self, first: u16, count: usize) -> Option<Slots<'a>> {
        let range = usize::from(first)..usize::from(first) + count;
        // The values stand behind the descriptors.
        let left = 4 * (self.0.descriptors.len() as u32).checked_sub(u32::from(first))?;
        Some(Slots {
            first,
            at: self.0.offsets.first().map_or(0, |start| start.saturating_sub(left)),
            descriptors: self.0.descriptors.get(range.clone())?,
            offsets: self.0.offsets.get(range)?,
        })
    }

    /// The descriptors at a chunk offset, as far as they are in the chunk.
    #[inline]
    pub fn descriptors(self, at: u32, count: usize) -> &'a [[u8; 4]] {
        let start = at as usize;
        let bytes = self.0.chunk.get(start..start + 4 * count).unwrap_or_default();
        bytes.as_chunks().0
    }

    /// The bytes of values that follow each other.
    #[inline]
    pub fn bytes(self, slots: &Slots<'a>) -> &'a [u8] {
        match (slots.offsets.first(), slots.len().checked_sub(1)) {
            (Some(&start), Some(last)) => self.0.chunk.get(start as usize..slots.end(last)).unwrap_or_default(),
            _ => &[],
        }
    }

    /// How many bytes of the chunk from `a` on are the same as from `b` on, of at most `len`.
    #[inline]
    pub fn agreement(self, a: usize, b: usize, len: usize) -> usize {
        const BLOCK: usize = 16;
        let slice = |at: usize| self.0.chunk.get(at..at + len).unwrap_or_default();
        let (a, b) = (slice(a), slice(b));
        let (a_blocks, a_rest) = a.as_chunks::<BLOCK>();
        let (b_blocks, b_rest) = b.as_chunks::<BLOCK>();
        for (i, (a, b)) in a_blocks.iter().zip(b_blocks).enumerate() {
            let differ = u128::from_le_bytes(*a) ^ u128::from_le_bytes(*b);
            if differ != 0 {
                return i * BLOCK + differ.trailing_zeros() as usize / 8;
            }
        }
        let rest = a_rest.iter().zip(b_rest).take_while(|(a, b)| a == b);
        a.len().min(b.len()) / BLOCK * BLOCK + rest.count()
    }

    /// Checks every value against its type.
    ///
    /// # Errors
    /// That of the first value that does not pass [`Value::check`].
    pub fn check(self) -> Result<()> {
        for (number, &[low, high, byte, _]) in self.0.descriptors.iter().enumerate() {
            if !passes_by_size(byte, u16::from_le_bytes([low, high]))
                && let Some(slot) = self.slot(number)
            {
                self.value(slot).check(slot.offset as usize)?;
            }
        }
        Ok(())
    }
}

/// Iterates over the slots that hold arrays or streams.
#[derive(Debug)]
pub struct CompoundSlots<'a> {
    values: Values<'a>,
    /// Which of the 64 slots from `base` on may be such.
    left: u64,
    base: usize,
}

impl Iterator for CompoundSlots<'_> {
    type Item = (usize, Slot);

    #[inline]
    fn next(&mut self) -> Option<(usize, Slot)> {
        loop {
            while self.left != 0 {
                let number = self.base + self.left.trailing_zeros() as usize;
                self.left &= self.left - 1;
                if let Some(slot) = self.values.slot(number)
                    && (slot.value_type.array || slot.value_type.scalar == Scalar::BinXml)
                {
                    return Some((number, slot));
                }
            }
            // A bit of a larger table stands for a slot in each 64.
            self.base += 64;
            if self.base >= self.values.0.offsets.len() {
                return None;
            }
            self.left = self.values.0.compound;
        }
    }
}

/// A template instance.
#[derive(Debug, Clone, Copy)]
pub struct Instance<'a> {
    /// Chunk offset of the definition.
    pub definition: u32,
    /// What fills its holes.
    pub values: Values<'a>,
}

impl<'a> Instance<'a> {
    /// Reads the instance whose 0x0c token the cursor has just passed, and moves behind its values.
    #[inline]
    pub(crate) fn read(chunk: &'a [u8], cursor: &mut Cursor<'a>, arena: &'a Bump) -> Result<Self> {
        cursor.skip(5, "a template instance")?;
        let definition = cursor.u32("a template instance")?;
        if definition as usize == cursor.pos() {
            let inline = Definition::read(chunk, definition)?;
            cursor.skip(DEFINITION_HEADER + inline.size as usize, "a template definition")?;
        }
        let values = Values::read(chunk, cursor, arena)?;
        Ok(Instance { definition, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn bytes_agree_as_far_as_they_are_the_same(chunk in proptest::collection::vec(0_u8..2, 0..200), a in 0_usize..80, b in 0_usize..80, len in 0_usize..80) {
            let values = Values(&Table { chunk: &chunk, ..*Values::none().0 });
            let expected = match (chunk.get(a..a + len), chunk.get(b..b + len)) {
                (Some(a), Some(b)) => a.iter().zip(b).take_while(|(a, b)| a == b).count(),
                _ => 0,
            };
            proptest::prop_assert_eq!(values.agreement(a, b, len), expected);
            if a + 2 * len <= chunk.len() {
                let again = [&chunk[..a + len], &chunk[a..]].concat();
                let values = Values(&Table { chunk: &again, ..*Values::none().0 });
                proptest::prop_assert_eq!(values.agreement(a, a + len, len), len);
            }
        }
    }
}
