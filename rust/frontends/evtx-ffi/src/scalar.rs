//! What a scalar function is: its parameters and its result, and calls for a vector of rows at a time.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use evtx_format::Interrupt;
use evtx_scan::{ScanError, Storage};

use crate::boundary::{EvtxError, EvtxText};

/// A vector of DuckDB.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxVector {
    /// The elements in DuckDB's form. A struct has none.
    pub data: *const c_void,
    /// A bit per element, 0 for NULL; null if no element is NULL.
    pub validity: *const u64,
    /// The index of the element of each row; null if it is that of the row.
    pub selection: *const u32,
    /// How many rows there are.
    pub rows: usize,
}

impl EvtxVector {
    /// The index of the element of a row; `None` for NULL.
    fn element(&self, row: usize) -> Option<usize> {
        assert!(row < self.rows, "a vector has too few rows");
        let element = if self.selection.is_null() {
            row
        } else {
            // SAFETY: the selection has an index for each row.
            unsafe { *self.selection.add(row) as usize }
        };
        // SAFETY: `element` is the index of an element, so the validity has a bit for it.
        let is_valid =
            self.validity.is_null() || unsafe { *self.validity.add(element / 64) } >> (element % 64) & 1 != 0;
        is_valid.then_some(element)
    }

    /// Whether a row is not NULL.
    pub(crate) fn is_valid(&self, row: usize) -> bool {
        self.element(row).is_some()
    }

    /// The value in a row; `None` for NULL.
    ///
    /// # Safety
    /// The elements are values of the type, and each row has one.
    pub unsafe fn value<T: Copy>(&self, row: usize) -> Option<T> {
        let element = self.element(row)?;
        // SAFETY: by the contract of this function.
        Some(unsafe { self.data.cast::<T>().add(element).read_unaligned() })
    }

    /// The bytes in a row; `None` for NULL.
    ///
    /// # Safety
    /// The elements are VARCHAR or BLOB, and each row has one, which lives as long as `'a`.
    pub unsafe fn bytes<'a>(&self, row: usize) -> Option<&'a [u8]> {
        let element = self.element(row)?;
        // SAFETY: by the contract of this function. A value has its length in 4 bytes, then up to 12 bytes, or 4 bytes and a
        // pointer to all.
        unsafe {
            let start = self.data.cast::<u8>().add(element * 16);
            let len = start.cast::<u32>().read_unaligned() as usize;
            let bytes = if len <= 12 {
                start.add(4)
            } else {
                start.add(8).cast::<*const u8>().read_unaligned()
            };
            Some(std::slice::from_raw_parts(bytes, len))
        }
    }

    /// The text in a row; `None` for NULL.
    ///
    /// # Errors
    /// If the text is not UTF-8.
    ///
    /// # Safety
    /// As for [`bytes`](Self::bytes).
    pub unsafe fn text<'a>(&self, row: usize) -> Result<Option<&'a str>, EvtxError> {
        // SAFETY: by the contract of this function.
        let bytes = unsafe { self.bytes(row) };
        Ok(bytes.map(|bytes| EvtxText::borrowed(bytes).text()).transpose()?)
    }

    /// The indexes of the items of the list in a row; none for NULL.
    ///
    /// # Safety
    /// The elements are lists or maps.
    pub(crate) unsafe fn items(&self, row: usize) -> std::ops::Range<usize> {
        // SAFETY: a list is the index of its first item and their count.
        let [first, count] = unsafe { self.value::<[u64; 2]>(row) }.unwrap_or_default();
        first as usize..first.saturating_add(count) as usize
    }
}

/// Vectors of lists of pairs of texts: MAP(VARCHAR, VARCHAR), or a list of its entries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pairs {
    pub(crate) lists: EvtxVector,
    keys: EvtxVector,
    values: EvtxVector,
}

impl Pairs {
    /// The pairs of a vector that is followed by those in it.
    pub(crate) fn new([lists, _, keys, values]: [EvtxVector; 4]) -> Self {
        Pairs { lists, keys, values }
    }

    /// The pairs in a row that have a key.
    ///
    /// # Safety
    /// The vectors are what they are taken for, and live as long as `'a`.
    pub(crate) unsafe fn row<'a>(
        &self,
        row: usize,
    ) -> impl Iterator<Item = Result<(&'a str, Option<&'a str>), EvtxError>> {
        // SAFETY: by the contract of this function.
        let pairs = unsafe { self.lists.items(row) };
        pairs.filter_map(|pair| {
            // SAFETY: likewise.
            let (key, value) = unsafe { (self.keys.text(pair), self.values.text(pair)) };
            key.transpose().map(|key| Ok((key?, value?)))
        })
    }
}

/// Structs of columns. Texts are views, as the writers of vectors need them.
pub(crate) fn structs(fields: &Fields, columns: Vec<ArrayRef>) -> ArrayRef {
    let of = |(field, column): (&FieldRef, &ArrayRef)| Field::clone(field).with_data_type(column.data_type().clone());
    let fields = fields.iter().zip(&columns).map(of).collect();
    Arc::new(StructArray::new(fields, columns, None))
}

/// A parameter or a column that is a text.
pub(crate) fn text(name: &str) -> Field {
    Field::new(name, DataType::Utf8, true)
}

/// A parameter or a column that is a map of texts.
pub(crate) fn map(name: &str) -> Field {
    let pair = DataType::Struct(["key", "value"].map(text).into_iter().collect());
    Field::new(
        name,
        DataType::Map(Field::new("entries", pair, false).into(), false),
        true,
    )
}

/// How long to wait before the next look for an interrupt.
const PAUSE: Duration = Duration::from_millis(5);

/// Locks what threads share, which one of them can hold for seconds.
///
/// # Errors
/// [`Interrupted`](evtx_format::Interrupted).
pub(crate) fn locked<'m, T>(shared: &'m Mutex<T>, interrupt: Interrupt<'_>) -> Result<MutexGuard<'m, T>, EvtxError> {
    loop {
        match shared.try_lock() {
            Ok(locked) => return Ok(locked),
            Err(TryLockError::Poisoned(locked)) => return Ok(locked.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
        }
        interrupt.check().map_err(ScanError::from)?;
    }
}

/// The bytes of text that were read since the last check for an interrupt.
#[derive(Debug, Default)]
pub(crate) struct Unchecked(usize);

impl Unchecked {
    /// Adds some bytes. Checks for an interrupt after 64 KiB.
    ///
    /// # Errors
    /// [`ScanError::Interrupted`].
    pub(crate) fn add(&mut self, bytes: usize, interrupt: Interrupt<'_>) -> Result<(), ScanError> {
        self.0 += bytes;
        if self.0 > 1 << 16 {
            self.0 = 0;
            interrupt.check()?;
        }
        Ok(())
    }
}

/// What a call gets from its caller: the storage, and the way to interrupt it.
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the names say it
pub struct Caller<'c> {
    pub storage: &'c dyn Storage,
    pub interrupt: Interrupt<'c>,
}

/// What a thread keeps of a scalar function between its calls.
pub trait Scalar: Send {
    /// The result for the rows of some vectors: an array of the type of the function's result, with a row for each.
    ///
    /// # Errors
    /// What is wrong with the arguments, and [`Interrupted`](evtx_format::Interrupted).
    ///
    /// # Safety
    /// The vectors are those of the parameters. After a list or a struct come the vectors of its items or fields.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError>;
}

/// The function that reads a log from row to row.
pub(crate) const CONTENT_ROW: &str = "evtx_content_row";

/// The functions that are not repeated, nor are their arguments compared: a row of the last three tells of those before it.
const VOLATILE: [&str; 4] = [CONTENT_ROW, "evtx_fact_row", "evtx_log_hours", "evtx_record_names"];

/// Makes what a thread keeps.
type Make = Box<dyn Fn() -> Box<dyn Scalar> + Send + Sync>;

/// A scalar function. Functions of one name follow each other.
pub struct ScalarFunction {
    /// Its name.
    pub name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) example: &'static str,
    /// Its parameters.
    pub parameters: Vec<Field>,
    /// What it returns.
    pub result: Field,
    pub(crate) make: Make,
}

impl ScalarFunction {
    /// Whether its calls must not be repeated, nor its arguments be compared.
    pub fn is_volatile(&self) -> bool {
        VOLATILE.contains(&self.name)
    }

    /// What a thread keeps between calls.
    pub fn thread(&self) -> Box<dyn Scalar> {
        (self.make)()
    }
}
