//! The one place where arrays are made of what builders wrote, checked or not.

use std::sync::Arc;

use arrow_array::builder::PrimitiveBuilder;
use arrow_array::types::{ArrowPrimitiveType, Int32Type};
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

/// Strings as a builder wrote them. Nothing outside of this crate can make such, so whoever is given some may rely on
/// what holds for them: every string is UTF-8, and every view that is not NULL is that of a string of the buffers.
#[derive(Debug)]
pub struct Strings {
    pub(super) views: ScalarBuffer<u128>,
    pub(super) buffers: Vec<Buffer>,
    pub(super) nulls: Option<NullBuffer>,
}

impl Strings {
    /// The views, the buffers that they point into, and which are not NULL.
    pub fn into_parts(self) -> (ScalarBuffer<u128>, Vec<Buffer>, Option<NullBuffer>) {
        (self.views, self.buffers, self.nulls)
    }
}

/// Indices of values as a builder wrote them. As of [`Strings`], it holds for all there are that every index which is
/// not NULL is that of one of the values.
#[derive(Debug)]
pub struct Indices {
    indices: Int32Array,
    values: ArrayRef,
}

impl Indices {
    /// Only builders may, of what they have numbered.
    pub(crate) fn new(indices: Int32Array, values: ArrayRef) -> Self {
        Indices { indices, values }
    }

    /// The indices and the values.
    pub fn into_parts(self) -> (Int32Array, ArrayRef) {
        (self.indices, self.values)
    }
}

/// What makes the arrays of a batch out of what the builders wrote.
///
/// [`MakeArrays::CHECKED`] looks through all of it once more. A caller that may use `unsafe` can do without. The
/// functions are safe to call as they take what only builders make; those of Arrow that skip the check are not:
///
/// ```compile_fail
/// let make = evtx_arrow::MakeArrays::CHECKED;
/// let strings = (make.strings)(vec![u128::MAX].into(), vec![], None);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct MakeArrays {
    /// Makes strings.
    pub strings: fn(Strings) -> Result<StringViewArray, ArrowError>,
    /// Makes a dictionary.
    pub dictionary: fn(Indices) -> Result<DictionaryArray<Int32Type>, ArrowError>,
}

impl MakeArrays {
    /// With all checks.
    pub const CHECKED: MakeArrays = MakeArrays {
        strings: |strings| {
            let (views, buffers, nulls) = strings.into_parts();
            StringViewArray::try_new(views, buffers, nulls)
        },
        dictionary: |indices| {
            let (indices, values) = indices.into_parts();
            DictionaryArray::try_new(indices, values)
        },
    };
}

/// Takes a batch's values, and leaves room for as many.
pub(crate) fn take<T>(values: &mut Vec<T>) -> Vec<T> {
    let room = Vec::with_capacity(values.len());
    std::mem::replace(values, room)
}

/// Ends a batch's column, and leaves room for as many values.
pub(super) fn finish_primitive<T: ArrowPrimitiveType>(builder: &mut PrimitiveBuilder<T>) -> ArrayRef {
    let array = builder.finish();
    *builder = PrimitiveBuilder::with_capacity(array.len());
    Arc::new(array)
}
