//! Arrow arrays, written into the vectors of DuckDB.
//!
//! DuckDB has fixed-size values as Arrow has them, except that a boolean takes a byte, and a GUID is a number with an
//! inverted sign. A text is its length in 4 bytes and up to 12 bytes, or 4 bytes and a pointer into the heap of its
//! vector. A list is the index of its first item and their count. Source: `duckdb_cpp.hpp`.

use std::borrow::Cow;
use std::ffi::c_void;
use std::sync::Arc;

use arrow_array::builder::make_view;
use arrow_array::cast::AsArray;
use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::types::{ByteArrayType, Int32Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, GenericByteArray, StringViewArray, StructArray};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_data::{ByteView, MAX_INLINE_VIEW_LEN};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field, FieldRef, Schema};
use evtx_arrow::MakeArrays;

use crate::boundary::{EvtxFailure, EvtxOwned, EvtxSlice, entry, export_schema, produce, release, required};

/// Arrays to write into vectors. After a list or a struct come the arrays of its items or fields.
#[derive(Default)]
pub struct EvtxArrays {
    arrays: Vec<(ArrayRef, FieldRef, Option<NullBuffer>)>,
    needs: Vec<EvtxArray>,
}

/// What an array needs of its vector.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvtxArray {
    /// How many rows it has.
    pub rows: usize,
    /// Whether a row is NULL.
    pub has_nulls: bool,
    /// Whether it has data of its own. A struct has none.
    pub has_data: bool,
    /// How many bytes of the vector's heap it takes.
    pub heap: usize,
    /// How many arrays of items or fields follow, without theirs.
    pub children: usize,
}

/// The memory of a vector, with room for what an [`EvtxArray`] needs.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxRoom {
    /// Its data. Null for a struct.
    pub data: *mut c_void,
    /// Its validity mask: a bit for each row, in words of 64 bits.
    pub validity: *mut u64,
    /// Bytes of its heap.
    pub heap: *mut u8,
    /// Whether these have the bytes of the texts already.
    pub is_filled: bool,
}

impl EvtxArrays {
    /// The arrays of columns with these fields.
    pub(crate) fn new(columns: impl Iterator<Item = (ArrayRef, FieldRef)>) -> Self {
        let mut arrays = EvtxArrays::default();
        columns.for_each(|(array, field)| arrays.push(array, field));
        arrays
    }

    /// An array alone.
    pub fn of(array: ArrayRef) -> Self {
        let field = Field::new_list_field(array.data_type().clone(), true);
        let mut arrays = EvtxArrays::default();
        arrays.push(array, field.into());
        arrays
    }

    /// What each array needs of its vector.
    pub fn needs(&self) -> &[EvtxArray] {
        &self.needs
    }

    /// The bytes that the texts of an array take of the heap of its vector.
    pub fn heap(&self, index: usize) -> Cow<'_, [u8]> {
        let buffers = buffers(&self.arrays[index].0);
        match buffers[..] {
            [bytes] => Cow::Borrowed(bytes),
            _ => Cow::Owned(buffers.concat()),
        }
    }

    /// Writes the first arrays into rooms of their own. An array whose room is empty is left out.
    ///
    /// # Safety
    /// Each room has what the array needs.
    pub unsafe fn write(&self, rooms: &[EvtxRoom]) {
        // Structs have no data, but can be NULL.
        let is_used = |(_, room): &(_, &EvtxRoom)| !room.data.is_null() || !room.validity.is_null();
        for ((array, field, nulls), room) in self.arrays.iter().zip(rooms).filter(is_used) {
            // SAFETY: by the contract of this function.
            unsafe { write(array, field, nulls.as_ref(), room) };
        }
    }

    fn push(&mut self, array: ArrayRef, field: FieldRef) {
        let children: Vec<(ArrayRef, FieldRef)> = match array.data_type() {
            DataType::List(item) => vec![(Arc::clone(array.as_list::<i32>().values()), Arc::clone(item))],
            DataType::Map(entries, _) => vec![(Arc::new(array.as_map().entries().clone()), Arc::clone(entries))],
            DataType::Struct(fields) => array
                .as_struct()
                .columns()
                .iter()
                .cloned()
                .zip(fields.iter().cloned())
                .collect(),
            _ => Vec::new(),
        };
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        self.needs.push(EvtxArray {
            rows: array.len(),
            has_nulls: nulls.is_some(),
            has_data: !matches!(array.data_type(), DataType::Struct(_)),
            heap: buffers(&array).iter().map(|bytes| bytes.len()).sum(),
            children: children.len(),
        });
        self.arrays.push((array, field, nulls));
        children.into_iter().for_each(|(array, field)| self.push(array, field));
    }
}

/// What an array puts into a heap, one after the other: the buffers with the bytes of its texts.
fn buffers(array: &dyn Array) -> Vec<&[u8]> {
    match array.data_type() {
        // Without rows, it can still share the bytes of other arrays.
        _ if array.is_empty() => vec![&[]],
        DataType::Utf8 => vec![array.as_string::<i32>().value_data()],
        DataType::Binary => vec![array.as_binary::<i32>().value_data()],
        DataType::Utf8View => array.as_string_view().data_buffers().iter().map(|it| &**it).collect(),
        DataType::Dictionary(..) => buffers(array.as_any_dictionary().values()),
        _ => Vec::new(),
    }
}

/// Writes values one after the other.
///
/// # Safety
/// There is room for them.
unsafe fn fill<T>(to: *mut T, values: impl Iterator<Item = T>) {
    for (index, value) in values.enumerate() {
        // SAFETY: by the contract of this function.
        unsafe { to.add(index).write_unaligned(value) };
    }
}

/// Copies bytes. Returns where they end.
///
/// # Safety
/// There is room for them.
unsafe fn copy(bytes: &[u8], to: *mut u8) -> *mut u8 {
    // SAFETY: by the contract of this function. The memory of vectors is not that of arrays.
    unsafe {
        to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        to.add(bytes.len())
    }
}

/// Writes an array.
///
/// # Safety
/// The room is that of a vector of the field's type, with what the array needs.
unsafe fn write(array: &dyn Array, field: &Field, nulls: Option<&NullBuffer>, room: &EvtxRoom) {
    let lists = |offsets: &[i32]| {
        let lists = offsets
            .windows(2)
            .map(|ends| [ends[0] as u64, (ends[1] - ends[0]) as u64]);
        // SAFETY: by the contract of this function.
        unsafe { fill(room.data.cast(), lists) };
    };
    // SAFETY: likewise. The module says what DuckDB has for a value of each type.
    unsafe {
        if let Some(nulls) = nulls {
            // The padded words have one too many if the last is full.
            let words = nulls.inner().bit_chunks().iter_padded();
            fill(room.validity, words.take(nulls.len().div_ceil(64)));
        }
        match array.data_type() {
            DataType::Struct(_) => {}
            DataType::List(_) => lists(array.as_list::<i32>().offsets()),
            DataType::Map(..) => lists(array.as_map().offsets()),
            DataType::Boolean => fill(room.data.cast(), array.as_boolean().values().iter()),
            DataType::FixedSizeBinary(_) if field.extension_type_name() == Some("arrow.uuid") => {
                let guids = array.as_fixed_size_binary().value_data().as_chunks().0.iter();
                fill(
                    room.data.cast(),
                    guids.map(|guid| u128::from_be_bytes(*guid) ^ 1 << 127),
                );
            }
            DataType::FixedSizeBinary(_) => _ = copy(array.as_fixed_size_binary().value_data(), room.data.cast()),
            fixed if fixed.primitive_width().is_some() => {
                let bytes = array.len() * fixed.primitive_width().unwrap_or_default();
                copy(&array.to_data().buffers()[0][..bytes], room.data.cast());
            }
            _ => {
                let mut end = room.heap;
                let starts = buffers(array).into_iter().map(|bytes| {
                    let start = end;
                    end = if room.is_filled {
                        end.wrapping_add(bytes.len())
                    } else {
                        copy(bytes, end)
                    };
                    start
                });
                texts(array, &starts.collect::<Vec<_>>(), room.data.cast());
            }
        }
    }
}

/// Writes texts.
///
/// # Safety
/// There is room for them, and the bytes of each of the array's [`buffers`] are at one of `starts`.
unsafe fn texts(array: &dyn Array, starts: &[*mut u8], to: *mut u128) {
    // SAFETY: by the contract of this function.
    unsafe {
        match array.data_type() {
            DataType::Utf8 => texts_with_offsets(array.as_string::<i32>(), starts[0], to),
            DataType::Binary => texts_with_offsets(array.as_binary::<i32>(), starts[0], to),
            DataType::Utf8View => texts_with_views(array.as_string_view(), starts, to),
            _ => {
                let dictionary = array.as_dictionary::<Int32Type>();
                let mut values = vec![0; dictionary.values().len()];
                texts(dictionary.values(), starts, values.as_mut_ptr());
                let keys = dictionary.keys().values().iter();
                fill(
                    to,
                    keys.map(|&key| values.get(key as usize).copied().unwrap_or_default()),
                );
            }
        }
    }
}

/// # Safety
/// As for [`texts`].
unsafe fn texts_with_offsets<T: ByteArrayType>(array: &GenericByteArray<T>, bytes_at: *mut u8, to: *mut u128) {
    let (offsets, bytes) = (array.value_offsets(), array.value_data());
    let values = offsets.windows(2).map(|ends| {
        let (start, end) = (ends[0].as_usize(), ends[1].as_usize());
        let view = make_view(&bytes[start..end], 0, 0);
        if end - start <= INLINE {
            return view;
        }
        // SAFETY: all bytes are there.
        pointing(view, unsafe { bytes_at.add(start) })
    });
    // SAFETY: by the contract of this function.
    unsafe { fill(to, values) };
}

/// # Safety
/// As for [`texts`].
unsafe fn texts_with_views(array: &StringViewArray, starts: &[*mut u8], to: *mut u128) {
    let values = array.views().iter().map(|&view| match ByteView::from(view) {
        ByteView { length, .. } if length as usize <= INLINE => view,
        long => {
            let start = starts[long.buffer_index as usize];
            // SAFETY: the view is one of the array, whose buffers are there.
            pointing(view, unsafe { start.add(long.offset as usize) })
        }
    });
    // SAFETY: by the contract of this function.
    unsafe { fill(to, values) };
}

/// The most bytes of a text that is stored without a pointer.
const INLINE: usize = MAX_INLINE_VIEW_LEN as usize;

/// A view of a long text, with a pointer in place of the index of a buffer and an offset.
fn pointing(view: u128, to: *const u8) -> u128 {
    view & u128::from(u64::MAX) | (to.expose_provenance() as u128) << 64
}

/// How decoders make arrays. A build with debug assertions checks each value again; others trust the builders.
pub(crate) const ARRAYS: MakeArrays = if cfg!(debug_assertions) {
    MakeArrays::CHECKED
} else {
    TRUSTED
};

const TRUSTED: MakeArrays = MakeArrays {
    strings: |strings| {
        let (views, buffers, nulls) = strings.into_parts();
        // SAFETY: `Strings` guarantees valid views and UTF-8. The tests of `evtx-arrow` check such arrays.
        Ok(unsafe { StringViewArray::new_unchecked(views, buffers.into(), nulls) })
    },
    dictionary: |indices| {
        let (indices, values) = indices.into_parts();
        // SAFETY: `Indices` guarantees that each index is that of a value.
        Ok(unsafe { DictionaryArray::new_unchecked(indices, values) })
    },
};

/// Returns what the arrays need of their vectors. Valid until the arrays are freed.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_arrays_needs<'a>(
    arrays: Option<&'a EvtxArrays>,
    out: Option<&mut EvtxSlice<'a, EvtxArray>>,
) -> EvtxFailure {
    produce(out, || Ok(EvtxSlice::borrowed(required(arrays)?.needs())))
}

/// Exports the array with this index, as the only column of a struct array, and the schema if it is asked for.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_arrays_export(
    arrays: Option<&EvtxArrays>,
    index: usize,
    schema: Option<&mut FFI_ArrowSchema>,
    out: Option<&mut FFI_ArrowArray>,
) -> EvtxFailure {
    produce(out, || {
        let (array, field, _) = required(required(arrays)?.arrays.get(index))?;
        let column = StructArray::from(vec![(Arc::clone(field), Arc::clone(array))]);
        if let Some(schema) = schema {
            *schema = export_schema(&Schema::new(column.fields().clone()))?;
        }
        Ok(FFI_ArrowArray::new(&column.to_data()))
    })
}

/// Writes the first arrays, as [`EvtxArrays::write`] says.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_arrays_write(arrays: Option<&EvtxArrays>, rooms: EvtxSlice<'_, EvtxRoom>) -> EvtxFailure {
    entry(|| {
        // SAFETY: the caller passes the rooms of the arrays' vectors.
        unsafe { required(arrays)?.write(rooms.get()) };
        Ok(())
    })
}

/// Frees arrays.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_arrays_free(arrays: EvtxOwned<EvtxArrays>) {
    release(|| drop(arrays));
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{Float64Type, UInt16Type};
    use arrow_array::{
        BinaryArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, ListArray, PrimitiveArray, StringArray,
    };
    use arrow_schema::Fields;

    use super::*;

    /// The memory of a vector.
    struct Vector {
        data: Vec<u128>,
        validity: Vec<u64>,
        heap: Vec<u8>,
    }

    /// What follows the memory that a vector needs.
    const GUARD: u8 = 0xa5;

    /// The vectors that arrays are written into.
    fn written(arrays: &EvtxArrays) -> Vec<Vector> {
        let mut needs = EvtxSlice::NONE;
        assert!(evtx_arrays_needs(Some(arrays), Some(&mut needs)).is_none());
        let of = |need: &EvtxArray| Vector {
            data: vec![0; need.rows],
            validity: vec![u64::from_le_bytes([GUARD; 8]); need.rows.div_ceil(64) + 1],
            heap: vec![GUARD; need.heap + 1],
        };
        let mut vectors: Vec<_> = needs.get().iter().map(of).collect();
        let room = |(vector, need): (&mut Vector, &EvtxArray)| EvtxRoom {
            data: if need.has_data {
                vector.data.as_mut_ptr().cast()
            } else {
                std::ptr::null_mut()
            },
            validity: if need.has_nulls {
                vector.validity.as_mut_ptr()
            } else {
                std::ptr::null_mut()
            },
            heap: vector.heap.as_mut_ptr(),
            is_filled: false,
        };
        let rooms: Vec<_> = vectors.iter_mut().zip(needs.get()).map(room).collect();
        assert!(evtx_arrays_write(Some(arrays), EvtxSlice::borrowed(&rooms)).is_none());
        for vector in &vectors {
            assert_eq!(vector.validity.last(), Some(&u64::from_le_bytes([GUARD; 8])));
            assert_eq!(vector.heap.last(), Some(&GUARD));
        }
        vectors
    }

    /// The first values of a vector, as DuckDB reads them.
    fn values<T: Copy>(vector: &Vector, rows: usize) -> Vec<T> {
        assert!(rows * size_of::<T>() <= size_of_val(&*vector.data));
        // SAFETY: every number is one of these types.
        let values = unsafe { std::slice::from_raw_parts(vector.data.as_ptr().cast::<T>(), rows) };
        values.to_vec()
    }

    /// The text of a row, as DuckDB reads it: in line, or in the heap of its vector.
    fn text(vector: &Vector, row: usize) -> &[u8] {
        let len = vector.data[row] as u32 as usize;
        if len <= 12 {
            // SAFETY: the bytes follow the length.
            return unsafe { std::slice::from_raw_parts(vector.data[row..].as_ptr().cast::<u8>().add(4), len) };
        }
        let start = (vector.data[row] >> 64) as usize - vector.heap.as_ptr().addr();
        let text = &vector.heap[start..start + len];
        assert_eq!(
            text[..4],
            (vector.data[row] as u64 >> 32).to_le_bytes()[..4],
            "the prefix"
        );
        text
    }

    fn one(array: impl Array + 'static) -> Vector {
        written(&EvtxArrays::of(Arc::new(array))).remove(0)
    }

    #[test]
    fn values_are_as_duckdb_has_them() {
        let numbers = one(PrimitiveArray::<UInt16Type>::from(vec![Some(7), None, Some(0x1234)]));
        assert_eq!(
            (values::<u16>(&numbers, 3)[2], numbers.validity[0] & 7),
            (0x1234, 0b101)
        );
        assert_eq!(
            values::<f64>(&one(PrimitiveArray::<Float64Type>::from(vec![1.5, -2.0])), 2),
            [1.5, -2.0]
        );
        assert_eq!(
            values::<u8>(&one(BooleanArray::from(vec![true, false, true])), 3),
            [1, 0, 1]
        );
        let bytes = (1..=16).collect::<Vec<u8>>();
        let fixed = || FixedSizeBinaryArray::try_from_iter([&bytes].into_iter()).expect("an array");
        assert_eq!(
            values::<u128>(&one(fixed()), 1),
            [0x100f_0e0d_0c0b_0a09_0807_0605_0403_0201]
        );
        let mut arrays = EvtxArrays::default();
        arrays.push(Arc::new(fixed()), Arc::new(evtx_arrow::uuid_field("guid")));
        assert_eq!(
            values::<u128>(&written(&arrays)[0], 1),
            [0x8102_0304_0506_0708_090a_0b0c_0d0e_0f10]
        );
    }

    #[test]
    fn a_mask_has_a_word_for_each_64_rows() {
        for rows in [1, 63, 64, 65, 128, 2048] {
            let nulls = one((0..rows)
                .map(|row| (row % 3 > 0).then_some(row as u16))
                .collect::<PrimitiveArray<UInt16Type>>());
            let bit = |row: usize| nulls.validity[row / 64] >> (row % 64) & 1 == 1;
            assert!((0..rows).all(|row| bit(row) == (row % 3 > 0)), "{rows}");
        }
    }

    #[test]
    fn texts_are_in_line_or_in_the_heap() {
        let texts = ["", "twelve bytes", "thirteen byte", "a text that is longer than that"];
        let expected: Vec<_> = texts.iter().map(|text| text.as_bytes()).collect();
        let keys = PrimitiveArray::<Int32Type>::from(vec![0, 1, 2, 3]);
        let dictionary = DictionaryArray::new(keys, Arc::new(StringArray::from(texts.to_vec())));
        for vector in [
            one(StringArray::from(texts.to_vec())),
            one(StringArray::from_iter_values(["another one", "of a slice"].iter().chain(&texts)).slice(2, 4)),
            one(StringViewArray::from(texts.to_vec())),
            one(BinaryArray::from(expected.clone())),
            one(dictionary),
        ] {
            assert_eq!((0..4).map(|row| text(&vector, row)).collect::<Vec<_>>(), expected);
        }
        let unknown = one(DictionaryArray::<Int32Type>::from_iter([None::<&str>, None]));
        assert_eq!((unknown.validity[0] & 3, text(&unknown, 0)), (0, &b""[..]));
        let nothing = StringViewArray::from(texts.to_vec()).slice(0, 0);
        assert!(!nothing.data_buffers().is_empty());
        assert_eq!(EvtxArrays::of(Arc::new(nothing)).needs()[0].heap, 0);
    }

    #[test]
    fn structs_can_be_null() {
        let names: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
        let fields = Fields::from(vec![Field::new("name", DataType::Utf8, true)]);
        let structs = StructArray::new(fields, vec![names], Some(vec![true, false].into()));
        let vectors = written(&EvtxArrays::of(Arc::new(structs)));
        assert_eq!(vectors[0].validity[0] & 3, 0b01);
    }

    #[test]
    fn lists_come_before_their_items() {
        let names: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
        let fields = Fields::from(vec![Field::new("name", DataType::Utf8, false)]);
        let items = StructArray::new(fields.clone(), vec![names], None);
        let offsets = arrow_buffer::OffsetBuffer::from_lengths([2, 0, 1]);
        let item = Field::new_list_field(DataType::Struct(fields), true);
        let lists = ListArray::new(
            item.into(),
            offsets,
            Arc::new(items),
            Some(vec![true, false, true].into()),
        );
        let arrays = EvtxArrays::of(Arc::new(lists));
        let needs = arrays.needs.iter();
        let needs = needs.map(|need| (need.rows, need.has_nulls, need.has_data, need.children));
        assert_eq!(
            needs.collect::<Vec<_>>(),
            [(3, true, true, 1), (3, false, false, 1), (3, false, true, 0)]
        );
        let vectors = written(&arrays);
        assert_eq!(values::<[u64; 2]>(&vectors[0], 3), [[0, 2], [2, 0], [2, 1]]);
        assert_eq!(vectors[0].validity[0] & 7, 0b101);
        assert_eq!(
            (0..3).map(|row| text(&vectors[2], row)).collect::<Vec<_>>(),
            [b"a", b"b", b"c"]
        );
    }
}
