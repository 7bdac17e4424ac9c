//! Makes Arrow arrays from the buffers of the builders, with or without Arrow's checks.

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

/// Strings that a builder has written.
///
/// Only this crate can make them. Every string is UTF-8, and every view that is not NULL is valid for the buffers.
#[derive(Debug)]
pub struct Strings {
    pub(crate) views: ScalarBuffer<u128>,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) nulls: Option<NullBuffer>,
}

impl Strings {
    /// The views, the buffers to which they point, and the null buffer.
    pub fn into_parts(self) -> (ScalarBuffer<u128>, Vec<Buffer>, Option<NullBuffer>) {
        (self.views, self.buffers, self.nulls)
    }
}

/// Indices of values that a builder has written.
///
/// Only this crate can make them. Every index that is not NULL is the index of a value.
#[derive(Debug)]
pub struct Indices {
    indices: Int32Array,
    values: ArrayRef,
}

impl Indices {
    /// Indices of values. Only builders may call this, with indices that they gave to the values.
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
/// With [`MakeArrays::CHECKED`], Arrow checks every value, which takes a tenth of a scan. Callers that may use `unsafe`
/// code can pass functions without the checks. These are sound as safe functions, because only builders can make their
/// arguments:
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
    /// Functions with all of Arrow's checks.
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

/// What the builders of values do.
pub(crate) trait Build {
    /// How many bytes of text it has.
    fn bytes(&self) -> usize {
        0
    }

    /// Ends the batch.
    fn finish(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError>;

    /// The rows so far. They stay in the builder.
    fn finish_cloned(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError>;
}

/// Takes the values of a batch and leaves an empty vector with the same capacity.
pub(crate) fn take<T>(values: &mut Vec<T>) -> Vec<T> {
    let empty = Vec::with_capacity(values.len());
    std::mem::replace(values, empty)
}
