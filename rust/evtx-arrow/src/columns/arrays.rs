//! Makes Arrow arrays of the buffers that the builders have written, with or without Arrow's checks.

use std::sync::Arc;

use arrow_array::builder::PrimitiveBuilder;
use arrow_array::types::{ArrowPrimitiveType, Int32Type};
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

/// Strings that a builder has written.
///
/// Only this crate can make them, so a caller can rely on what holds for all of them: every string is UTF-8, and every
/// view that is not NULL is valid for the buffers.
#[derive(Debug)]
pub struct Strings {
    pub(super) views: ScalarBuffer<u128>,
    pub(super) buffers: Vec<Buffer>,
    pub(super) nulls: Option<NullBuffer>,
}

impl Strings {
    /// The views, the buffers to which they point, and the null buffer.
    pub fn into_parts(self) -> (ScalarBuffer<u128>, Vec<Buffer>, Option<NullBuffer>) {
        (self.views, self.buffers, self.nulls)
    }
}

/// Indices of values that a builder has written.
///
/// Only this crate can make them, so a caller can rely on what holds for all of them: every index that is not NULL is
/// the index of a value.
#[derive(Debug)]
pub struct Indices {
    indices: Int32Array,
    values: ArrayRef,
}

impl Indices {
    /// Indices of values. Only builders may call this, with indices that they have given to the values.
    pub(crate) fn new(indices: Int32Array, values: ArrayRef) -> Self {
        Indices { indices, values }
    }

    /// The indices and the values.
    pub fn into_parts(self) -> (Int32Array, ArrayRef) {
        (self.indices, self.values)
    }
}

/// The functions that make the arrays of a batch from the buffers of the builders.
///
/// [`MakeArrays::CHECKED`] lets Arrow check every value once more, which takes a tenth of a scan. A caller that may use
/// `unsafe` code can pass functions without the check. Those are sound as safe functions, because only builders can
/// make their arguments:
///
/// ```compile_fail
/// let make = evtx_arrow::MakeArrays::CHECKED;
/// let strings = (make.strings)(vec![u128::MAX].into(), vec![], None);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct MakeArrays {
    /// Makes an array of strings.
    pub strings: fn(Strings) -> Result<StringViewArray, ArrowError>,
    /// Makes a dictionary array.
    pub dictionary: fn(Indices) -> Result<DictionaryArray<Int32Type>, ArrowError>,
}

impl MakeArrays {
    /// Functions with all checks of Arrow.
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

/// Takes the values of a batch, and leaves an empty vector with capacity for as many.
pub(crate) fn take<T>(values: &mut Vec<T>) -> Vec<T> {
    let room = Vec::with_capacity(values.len());
    std::mem::replace(values, room)
}

/// Ends the column of a batch, and leaves an empty builder with capacity for as many values.
pub(super) fn finish_primitive<T: ArrowPrimitiveType>(builder: &mut PrimitiveBuilder<T>) -> ArrayRef {
    let array = builder.finish();
    *builder = PrimitiveBuilder::with_capacity(array.len());
    Arc::new(array)
}
