//! Template instances and the template definitions that they refer to (MS-EVEN6, section 2.2.12).
//!
//! An instance is the token 0x0c, a byte (1), the template ID u32 and the chunk offset u32 of the definition. At its
//! first use in a chunk, the definition follows. Then comes the **value table**: a count u32, as many **value
//! descriptors** {size u16, type u8, 0 u8}, and the values, one after the other.

use std::ops::Range;

use bumpalo::Bump;

use crate::bytes::{Cursor, array_at, u32_at, u64_at};
use crate::error::{Error, ErrorKind, Result};
use crate::value::types::{Sizes, TYPES, usual_sizes};
use crate::value::{Scalar, Value, ValueType};

/// Bytes of a definition before its body: next u32, GUID 16, size u32.
pub const DEFINITION_HEADER: usize = 24;

/// A template definition in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition {
    /// The GUID in the provider's manifest, as stored: u32, u16, u16, 8 bytes. Templates of a crafted file can share
    /// one.
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
    /// [`ErrorKind::Truncated`] if it runs past the end of the chunk.
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

    /// The template ID in its instances: the first four bytes of its GUID, little endian (seen in all logs).
    pub fn template_id(&self) -> u32 {
        u32_at(&self.guid, 0).unwrap_or_default()
    }
}

/// A value descriptor: the place of a value in its chunk, and its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueDescriptor {
    /// Chunk offset of the value's bytes.
    pub offset: u32,
    /// Size in bytes.
    pub size: u16,
    /// The type of the value.
    pub value_type: ValueType,
}

/// Value descriptors that follow each other in a value table. Their values follow each other too.
#[derive(Debug, Clone, Copy)]
pub struct ValueDescriptors<'a> {
    /// The index of the first descriptor in the value table.
    pub first: u16,
    /// The descriptors as stored: {size u16, type u8, 0 u8}, little endian.
    pub descriptors: &'a [[u8; 4]],
    /// The chunk offset of each value.
    pub offsets: &'a [u32],
    /// Chunk offset of the first descriptor.
    pub at: u32,
}

impl ValueDescriptors<'_> {
    /// How many descriptors there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.descriptors.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.descriptors.is_empty()
    }

    /// Chunk offset of the end of a value. `index` counts from the first of these descriptors.
    #[inline]
    pub fn end(&self, index: usize) -> usize {
        self.offsets[index] as usize + value_size(self.descriptors[index])
    }
}

/// The size of a value in bytes, from its stored descriptor.
#[inline]
pub fn value_size([low, high, ..]: [u8; 4]) -> usize {
    usize::from(u16::from_le_bytes([low, high]))
}

impl ValueDescriptor {
    /// The range in the chunk of the BinXML stream that is the value; `None` if the value is not BinXML or is empty.
    #[inline]
    pub fn stream(&self) -> Option<Range<usize>> {
        let start = self.offset as usize;
        let is_stream = self.value_type.scalar == Scalar::BinXml && !self.value_type.array && self.size > 0;
        is_stream.then(|| start..start + usize::from(self.size))
    }
}

// The flags of a type. COMPOUND: the value is an array or a stream. SPECIAL: a valid size does not mean that the value
// is valid. UNKNOWN: the byte does not name a type.
const COMPOUND: u8 = 1;
const SPECIAL: u8 = 2;
const UNKNOWN: u8 = 4;

/// The flags of each type, by type byte.
const FLAGS: [u8; 256] = {
    let mut flags = [UNKNOWN; 256];
    let mut byte = 0;
    while byte < 256 {
        if let Some(value_type) = TYPES[byte] {
            let compound = value_type.array || matches!(value_type.scalar, Scalar::BinXml);
            let special = usual_sizes(value_type).is_none();
            flags[byte] = (COMPOUND * compound as u8) | (SPECIAL * special as u8);
        }
        byte += 1;
    }
    flags
};

/// A set of substitutions, with two bits for each index modulo 32: indices that are equal modulo 32 share bits.
#[derive(Debug, Clone, Copy, Default)]
pub struct SubstitutionSet(u64);

impl SubstitutionSet {
    /// How many substitutions have bits of their own.
    const OWN: usize = 32;
    // In each pair of bits, the one for compound and the one for special values.
    const COMPOUND: SubstitutionSet = SubstitutionSet(u64::MAX / 3 * COMPOUND as u64);
    const SPECIAL: SubstitutionSet = SubstitutionSet(u64::MAX / 3 * SPECIAL as u64);

    /// Adds a substitution.
    pub fn insert(&mut self, substitution: usize) {
        self.0 |= 3 << (2 * (substitution % Self::OWN));
    }

    /// Adds a substitution if it has bits of its own. Only sets that are filled in this way are exact.
    pub fn insert_own(&mut self, substitution: usize) {
        if substitution < Self::OWN {
            self.insert(substitution);
        }
    }
}

/// The value table of an instance: the place and type of each value. The values are not decoded.
#[derive(Debug, Clone, Copy)]
pub struct ValueTable<'a>(&'a Table<'a>);

#[derive(Debug)]
struct Table<'a> {
    chunk: &'a [u8],
    /// The descriptors as stored: {size u16, type u8, 0 u8}, little endian.
    descriptors: &'a [[u8; 4]],
    /// The chunk offset of each value.
    offsets: &'a [u32],
    /// For each substitution, the flags of its type.
    flags: SubstitutionSet,
    /// Whether the values are anywhere in the chunk, as those of an [implicit template](super::ImplicitTemplate).
    /// Otherwise they follow each other.
    is_scattered: bool,
}

impl<'a> ValueTable<'a> {
    /// A table without values.
    pub fn none() -> Self {
        ValueTable(&Table {
            chunk: &[],
            descriptors: &[],
            offsets: &[],
            flags: SubstitutionSet(0),
            is_scattered: false,
        })
    }

    /// How many values it has.
    pub fn count(self) -> u16 {
        u16::try_from(self.0.descriptors.len()).unwrap_or(u16::MAX)
    }

    /// A table of strings anywhere in a chunk: the descriptor of each, and its chunk offset. Its values do not follow each
    /// other, so it has no [`consecutive`](Self::consecutive) descriptors.
    pub(super) fn scattered(chunk: &'a [u8], descriptors: &'a [[u8; 4]], offsets: &'a [u32], arena: &'a Bump) -> Self {
        ValueTable(arena.alloc(Table {
            chunk,
            descriptors,
            offsets,
            flags: SubstitutionSet(0),
            is_scattered: true,
        }))
    }

    /// Reads the table at the cursor, which is before its count, and moves the cursor after the values.
    #[inline]
    fn read(chunk: &'a [u8], cursor: &mut Cursor<'a>, arena: &'a Bump) -> Result<Self> {
        let count = cursor.u32("a value table")?;
        let table = ValueTable::table(chunk, cursor.pos(), cursor.end(), count, arena);
        let (values, end) = table.ok_or_else(|| ValueTable::fault(*cursor, count))?;
        cursor.skip(end - cursor.pos(), "values")?;
        Ok(values)
    }

    /// The table of `count` values whose descriptors start at `at`, and the chunk offset of the end of its values.
    /// `None` if that is after `until`, or if a type byte does not name a type.
    // Out of line, so that its inlined callers stay small. The result is returned in registers.
    #[inline(never)]
    fn table(chunk: &'a [u8], at: usize, until: usize, count: u32, arena: &'a Bump) -> Option<(Self, usize)> {
        // The bytes must back the count before memory is reserved for it.
        let descriptors = chunk.get(at..until)?.as_chunks::<4>().0.get(..count as usize)?;
        let (mut end, mut flags, mut all) = (at + 4 * descriptors.len(), 0_u64, 0);
        let offsets = arena.alloc_slice_fill_with(descriptors.len(), |i| {
            let [.., byte, _] = descriptors[i];
            let offset = end as u32;
            end += value_size(descriptors[i]);
            let own = u64::from(FLAGS[usize::from(byte)]);
            flags = (flags | own).rotate_right(2);
            all |= own;
            offset
        });
        if all & u64::from(UNKNOWN) != 0 || end > until {
            return None;
        }
        let table = Table {
            chunk,
            descriptors,
            offsets,
            flags: SubstitutionSet(flags.rotate_left(count.wrapping_mul(2))),
            is_scattered: false,
        };
        Some((ValueTable(arena.alloc(table)), end))
    }

    /// Why the table of `count` values cannot be read. The cursor is before its descriptors.
    #[cold]
    fn fault(mut cursor: Cursor<'_>, count: u32) -> Error {
        let at = cursor.pos();
        let descriptors = match cursor.take((count as usize).saturating_mul(4), "the value descriptors") {
            Ok(descriptors) => descriptors.as_chunks::<4>().0,
            Err(error) => return error,
        };
        if let Some(odd) = descriptors.iter().position(|d| ValueType::from_byte(d[2]).is_none()) {
            return Error::new(at + 4 * odd + 2, ErrorKind::ValueType(descriptors[odd][2]));
        }
        cursor.error(ErrorKind::ValueTable {
            claimed: descriptors.iter().map(|&descriptor| value_size(descriptor)).sum(),
            available: cursor.end().saturating_sub(cursor.pos()),
        })
    }

    /// The descriptor with an index; `None` if the table has no such descriptor.
    #[inline]
    pub fn descriptor(self, index: usize) -> Option<ValueDescriptor> {
        let [low, high, byte, _] = *self.0.descriptors.get(index)?;
        Some(ValueDescriptor {
            offset: *self.0.offsets.get(index)?,
            size: u16::from_le_bytes([low, high]),
            value_type: ValueType::from_byte(byte)?,
        })
    }

    /// Whether one of some substitutions may hold an array or a stream. If false, none does.
    #[inline]
    pub fn may_be_compound(self, substitutions: SubstitutionSet) -> bool {
        self.0.flags.0 & SubstitutionSet::COMPOUND.0 & substitutions.0 != 0
    }

    /// Whether a substitution may hold an array or a stream that is not in a set of [own](SubstitutionSet::insert_own)
    /// bits.
    #[inline]
    pub fn may_be_compound_beyond(self, substitutions: SubstitutionSet) -> bool {
        self.may_be_compound(SubstitutionSet(!substitutions.0))
            || self.0.descriptors.len() > SubstitutionSet::OWN && self.0.flags.0 & SubstitutionSet::COMPOUND.0 != 0
    }

    /// The descriptors of arrays and BinXML values, with their indices.
    pub fn compound(self) -> impl Iterator<Item = (usize, ValueDescriptor)> {
        self.indices(SubstitutionSet::COMPOUND)
            .filter_map(move |index| Some((index, self.descriptor(index)?)))
            .filter(|(_, descriptor)| descriptor.value_type.array || descriptor.value_type.scalar == Scalar::BinXml)
    }

    /// The indices of the values whose types have a flag. In a table of more than 32 values, others are among them.
    #[inline(always)]
    fn indices(self, flag: SubstitutionSet) -> impl Iterator<Item = usize> {
        let all = self.0.flags.0 & flag.0;
        let len = if all == 0 { 0 } else { self.0.descriptors.len() };
        (0..len).step_by(SubstitutionSet::OWN).flat_map(move |base| {
            let mut left = all;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(base + bit / 2)
            })
        })
    }

    /// The range in the chunk of the BinXML stream that a substitution holds; `None` if it holds none.
    #[inline]
    pub fn stream(self, substitution: u16) -> Option<Range<usize>> {
        self.descriptor(usize::from(substitution))?.stream()
    }

    /// The value of a substitution; `None` if the table has no value for it, which counts as an empty value.
    #[inline]
    pub fn get(self, substitution: u16) -> Option<Value<'a>> {
        Some(self.value(self.descriptor(usize::from(substitution))?))
    }

    /// The bytes of a single value of type `scalar` with `N` bytes, at most 255; `None` for other values.
    #[inline(always)]
    pub fn fixed<const N: usize>(self, substitution: u16, scalar: Scalar) -> Option<[u8; N]> {
        let index = usize::from(substitution);
        let &[low, high, byte, _] = self.0.descriptors.get(index)?;
        if [low, high, byte] != [N as u8, 0, scalar as u8] {
            return None;
        }
        array_at(self.0.chunk, *self.0.offsets.get(index)? as usize)
    }

    /// The number in a substitution if it is a single unsigned integer of its type's usual size. `None` for other
    /// values, and where the chunk ends too soon after the value; [`get`](Self::get) gives those.
    #[inline(always)]
    pub fn unsigned(self, substitution: u16) -> Option<u64> {
        /// By type byte, in bytes.
        const SIZES: [u8; 256] = {
            let mut sizes = [0; 256];
            sizes[Scalar::UInt8 as usize] = 1;
            sizes[Scalar::UInt16 as usize] = 2;
            sizes[Scalar::UInt32 as usize] = 4;
            sizes[Scalar::UInt64 as usize] = 8;
            sizes
        };
        let index = usize::from(substitution);
        let &[size, high, byte, _] = self.0.descriptors.get(index)?;
        let of_type = SIZES[usize::from(byte)];
        if of_type == 0 || [size, high] != [of_type, 0] {
            return None;
        }
        // Reads eight bytes and masks off those after the value.
        let bytes = u64_at(self.0.chunk, *self.0.offsets.get(index)? as usize)?;
        Some(bytes & u64::MAX >> (64 - 8 * u32::from(size)))
    }

    /// Whether the type of a substitution's value is NULL.
    #[inline(always)]
    pub fn is_null(self, substitution: u16) -> bool {
        let descriptor = self.0.descriptors.get(usize::from(substitution));
        descriptor.is_some_and(|descriptor| descriptor[2] == Scalar::Null as u8)
    }

    /// The value of a descriptor of this table.
    #[inline]
    pub fn value(self, descriptor: ValueDescriptor) -> Value<'a> {
        let (start, size) = (descriptor.offset as usize, usize::from(descriptor.size));
        Value {
            value_type: descriptor.value_type,
            bytes: self.0.chunk.get(start..start + size).unwrap_or(&[]),
        }
    }

    /// The descriptors of `count` values from index `first` on; `None` if the table does not have as many, or if its values
    /// do not follow each other.
    #[inline]
    pub fn consecutive(self, first: u16, count: usize) -> Option<ValueDescriptors<'a>> {
        if self.0.is_scattered {
            return None;
        }
        let range = usize::from(first)..usize::from(first) + count;
        // The first value starts where the descriptors end.
        let left = 4 * (self.0.descriptors.len() as u32).checked_sub(u32::from(first))?;
        Some(ValueDescriptors {
            first,
            at: self.0.offsets.first().map_or(0, |start| start.saturating_sub(left)),
            descriptors: self.0.descriptors.get(range.clone())?,
            offsets: self.0.offsets.get(range)?,
        })
    }

    /// The `count` stored descriptors at a chunk offset; empty if they run past the end of the chunk.
    #[inline]
    pub fn descriptors(self, at: u32, count: usize) -> &'a [[u8; 4]] {
        let start = at as usize;
        let bytes = self.0.chunk.get(start..start + 4 * count).unwrap_or_default();
        bytes.as_chunks().0
    }

    /// The stored descriptors of `count` values from index `first` on, and the bytes of these values; as
    /// [`consecutive`](Self::consecutive).
    #[inline]
    pub fn range(self, first: u16, count: usize) -> Option<(&'a [[u8; 4]], &'a [u8])> {
        let range = self.consecutive(first, count)?;
        let bytes = match (range.offsets.first(), range.len().checked_sub(1)) {
            (Some(&start), Some(last)) => self.0.chunk.get(start as usize..range.end(last)),
            _ => None,
        };
        Some((range.descriptors, bytes.unwrap_or_default()))
    }

    /// How many bytes at the chunk offsets `a` and `b` are equal, up to the first difference; at most `len`.
    #[inline]
    pub fn agreement(self, a: usize, b: usize, len: usize) -> usize {
        const BLOCK: usize = 16;
        let slice = |at: usize| self.0.chunk.get(at..at + len).unwrap_or_default();
        let (a, b) = (slice(a), slice(b));
        let blocks = a.as_chunks::<BLOCK>().0.iter().zip(b.as_chunks::<BLOCK>().0);
        for (i, (a, b)) in blocks.enumerate() {
            let differ = u128::from_le_bytes(*a) ^ u128::from_le_bytes(*b);
            if differ != 0 {
                return i * BLOCK + differ.trailing_zeros() as usize / 8;
            }
        }
        // The bytes after the last whole block are compared together with some before them, which are equal.
        match (a.last_chunk::<BLOCK>(), b.last_chunk::<BLOCK>()) {
            (Some(last_of_a), Some(last_of_b)) if a.len() == b.len() => {
                let differ = u128::from_le_bytes(*last_of_a) ^ u128::from_le_bytes(*last_of_b);
                a.len() - BLOCK + differ.trailing_zeros() as usize / 8
            }
            _ => {
                let same = a.len().min(b.len()) / BLOCK * BLOCK;
                let rest = a.iter().zip(b).skip(same);
                same + rest.take_while(|(a, b)| a == b).count()
            }
        }
    }

    /// Checks every value against its type.
    ///
    /// # Errors
    /// The error of the first value that does not pass [`Value::check`].
    pub fn check(self) -> Result<()> {
        let mismatches = self.0.descriptors.iter().map(|&[low, high, byte, _]| {
            Sizes::OF_TYPES[usize::from(byte)].mismatch_bits(u16::from_le_bytes([low, high]))
        });
        if mismatches.fold(0, std::ops::BitOr::bitor) != 0 {
            return self.check_all();
        }
        for index in self.indices(SubstitutionSet::SPECIAL) {
            if let Some(descriptor) = self.descriptor(index) {
                self.value(descriptor).check(descriptor.offset as usize)?;
            }
        }
        Ok(())
    }

    #[cold]
    fn check_all(self) -> Result<()> {
        let mut descriptors = (0..self.0.descriptors.len()).filter_map(|index| self.descriptor(index));
        descriptors.try_for_each(|descriptor| self.value(descriptor).check(descriptor.offset as usize))
    }
}

/// A template instance.
#[derive(Debug, Clone, Copy)]
pub struct Instance<'a> {
    /// The template ID: the first four bytes of the template's GUID, little endian.
    pub template_id: u32,
    /// Chunk offset of the template definition.
    pub definition: u32,
    /// The values of the substitutions.
    pub values: ValueTable<'a>,
}

impl<'a> Instance<'a> {
    /// Reads the instance whose token 0x0c the cursor has just passed, and moves the cursor after its values.
    #[inline]
    pub(crate) fn read(chunk: &'a [u8], cursor: &mut Cursor<'a>, arena: &'a Bump) -> Result<Self> {
        cursor.skip(1, "a template instance")?;
        let template_id = cursor.u32("a template instance")?;
        let definition = cursor.u32("a template instance")?;
        if definition as usize == cursor.pos() {
            let inline = Definition::read(chunk, definition)?;
            cursor.skip(DEFINITION_HEADER + inline.size as usize, "a template definition")?;
        }
        let values = ValueTable::read(chunk, cursor, arena)?;
        Ok(Instance {
            template_id,
            definition,
            values,
        })
    }

    /// The instance at the start of a stream, as nearly all streams are, and the chunk offset of its end. `None` for
    /// other streams, and if the definition is inline or the instance is damaged.
    #[inline(always)]
    pub(crate) fn leading(chunk: &'a [u8], stream: Range<usize>, arena: &'a Bump) -> Option<(Self, usize)> {
        let head = chunk.get(stream.clone())?.first_chunk::<LEADING_HEAD>()?;
        let at = stream.start + LEADING_HEAD;
        let definition = u32_at(head, 10)?;
        if head[0] != 0x0f || head[4] != 0x0c || definition as usize == at - 4 {
            return None;
        }
        let (values, end) = ValueTable::table(chunk, at, stream.end, u32_at(head, 14)?, arena)?;
        let instance = Instance {
            template_id: u32_at(head, 6)?,
            definition,
            values,
        };
        Some((instance, end))
    }
}

/// The bytes before the descriptors of a leading instance: a fragment header, and the instance up to its count.
const LEADING_HEAD: usize = 18;

#[cfg(test)]
mod tests {
    use super::*;

    /// Types, half of them those of most values.
    const TYPE_BYTES: &[u8] = &[
        0, 1, 1, 4, 6, 8, 8, 10, 15, 17, 20, 21, 2, 13, 14, 16, 19, 33, 0x81, 0x88, 0x93,
    ];

    /// A stream of an instance whose definition is elsewhere, and of values of the types, most of their usual size.
    fn stream(types: &[(u8, u8, u16)]) -> Vec<u8> {
        let mut stream = vec![0x0f, 1, 1, 0, 0x0c, 1, 7, 0, 0, 0, 0, 0, 0, 0];
        stream.extend((types.len() as u32).to_le_bytes());
        let sizes = types.iter().map(|&(byte, odd, size)| {
            let fixed = ValueType::from_byte(byte).and_then(|value_type| value_type.scalar.fixed_size());
            fixed.filter(|_| odd > 0).map_or(size, |fixed| fixed as u16)
        });
        let sizes: Vec<u16> = sizes.collect();
        for (&(byte, ..), size) in types.iter().zip(&sizes) {
            stream.extend(size.to_le_bytes());
            stream.extend([byte, 0]);
        }
        // The bytes of a SID with one sub-authority.
        let sid = [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
        for &size in &sizes {
            stream.extend(sid.iter().cycle().take(size.into()));
        }
        stream
    }

    #[test]
    fn a_number_has_the_size_of_its_type() {
        for byte in (0..=u8::MAX).filter(|&byte| ValueType::from_byte(byte).is_some()) {
            for size in 0..300 {
                // Another value follows, so that the chunk does not end.
                let stream = stream(&[(byte, 0, size), (1, 0, 8)]);
                let arena = Bump::new();
                let (instance, _) = Instance::leading(&stream, 0..stream.len(), &arena).expect("an instance");
                let usual = [(4, 1), (6, 2), (8, 4), (10, 8)].contains(&(byte, size));
                let number = instance.values.get(0).and_then(Value::to_u64).filter(|_| usual);
                assert_eq!(instance.values.unsigned(0), number, "type {byte:#x}, {size} bytes");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn tables_agree_with_their_descriptors(
            types in proptest::collection::vec((proptest::sample::select(TYPE_BYTES), 0_u8..20, 0_u16..16), 0..80),
        ) {
            let stream = stream(&types);
            let arena = Bump::new();
            let (instance, end) = Instance::leading(&stream, 0..stream.len(), &arena).expect("an instance");
            let values = instance.values;
            proptest::prop_assert_eq!(end, stream.len());
            let mut cursor = Cursor::new(&stream, 5, stream.len());
            let read = Instance::read(&stream, &mut cursor, &arena).expect("an instance");
            proptest::prop_assert_eq!((read.definition, cursor.pos()), (instance.definition, end));
            let descriptors: Vec<ValueDescriptor> = (0..types.len()).filter_map(|index| values.descriptor(index)).collect();
            proptest::prop_assert_eq!(descriptors.len(), types.len());
            proptest::prop_assert!((0..types.len()).all(|index| values.descriptor(index) == read.values.descriptor(index)));
            proptest::prop_assert_eq!(values.check(), values.check_all());
            let is_compound = |of: &ValueDescriptor| of.value_type.array || of.value_type.scalar == Scalar::BinXml;
            let compound: Vec<usize> = (0..descriptors.len()).filter(|&index| is_compound(&descriptors[index])).collect();
            proptest::prop_assert_eq!(values.compound().map(|(index, _)| index).collect::<Vec<_>>(), compound.clone());
            proptest::prop_assert_eq!(values.may_be_compound_beyond(SubstitutionSet::default()), !compound.is_empty());
            for index in 0..descriptors.len() {
                let mut substitutions = SubstitutionSet::default();
                substitutions.insert(index);
                proptest::prop_assert!(values.may_be_compound(substitutions) || !compound.contains(&index));
                let mut own = SubstitutionSet::default();
                own.insert_own(index);
                proptest::prop_assert!(values.may_be_compound_beyond(own) || compound.iter().all(|&other| other == index));
                let mut absent = SubstitutionSet::default();
                absent.insert_own(index + descriptors.len());
                proptest::prop_assert!(values.may_be_compound_beyond(absent) || compound.is_empty());
                if descriptors.len() <= SubstitutionSet::OWN {
                    proptest::prop_assert_eq!(values.may_be_compound(substitutions), compound.contains(&index));
                }
            }
            // A table that runs past the end is an error only of the slower reader.
            for until in 0..stream.len() {
                let cut = Instance::leading(&stream, 0..until, &arena).is_some();
                let read = Instance::read(&stream, &mut Cursor::new(&stream, 5, until), &arena);
                proptest::prop_assert_eq!(cut, read.is_ok() && until >= 18);
            }
        }

        #[test]
        fn bytes_agree_as_far_as_they_are_the_same(chunk in proptest::collection::vec(0_u8..2, 0..200), a in 0_usize..80, b in 0_usize..80, len in 0_usize..80) {
            let values = ValueTable(&Table { chunk: &chunk, ..*ValueTable::none().0 });
            let expected = match (chunk.get(a..a + len), chunk.get(b..b + len)) {
                (Some(a), Some(b)) => a.iter().zip(b).take_while(|(a, b)| a == b).count(),
                _ => 0,
            };
            proptest::prop_assert_eq!(values.agreement(a, b, len), expected);
            if a + 2 * len <= chunk.len() {
                let again = [&chunk[..a + len], &chunk[a..]].concat();
                let values = ValueTable(&Table { chunk: &again, ..*ValueTable::none().0 });
                proptest::prop_assert_eq!(values.agreement(a, a + len, len), len);
            }
        }
    }
}
