//! The boundary that every function of the C ABI passes: it catches panics, returns errors as text, and checks input.

use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::SchemaRef;
use arrow_schema::ffi::FFI_ArrowSchema;
use evtx_scan::ScanError;

pub(crate) type Outcome = Result<(), Failure>;

/// The kind of an error.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvtxErrorKind {
    /// Every other error: an argument cannot be used, a log is damaged, or the core has panicked.
    Input,
    /// No file matches a path or glob.
    NoFiles,
    /// A function of the storage failed. The caller knows its own error.
    Storage,
    /// The caller has interrupted the call.
    Interrupted,
}

impl Code for EvtxErrorKind {
    const ALL: &[Self] = &[
        EvtxErrorKind::Input,
        EvtxErrorKind::NoFiles,
        EvtxErrorKind::Storage,
        EvtxErrorKind::Interrupted,
    ];
    const WHAT: &str = "kind of error";
}

/// The error of a function of the C ABI.
pub(crate) struct Failure {
    kind: EvtxErrorKind,
    text: String,
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        let kind = EvtxErrorKind::Input;
        Failure { kind, text }
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<ScanError> for Failure {
    fn from(error: ScanError) -> Self {
        let kind = match error {
            ScanError::Interrupted(_) => EvtxErrorKind::Interrupted,
            ScanError::NoFiles(_) => EvtxErrorKind::NoFiles,
            ScanError::Storage(_) => EvtxErrorKind::Storage,
            ScanError::Input(_) | ScanError::File(_) | ScanError::Decode(_) => EvtxErrorKind::Input,
        };
        let text = error.to_string();
        Failure { kind, text }
    }
}

/// An enum that crosses the boundary as a number. The number that the caller passes can be any.
pub(crate) trait Code: Copy + 'static {
    /// The variants. The index of each is its number.
    const ALL: &[Self];
    /// What the enum is, for the error of a number that is not one of its variants.
    const WHAT: &str;

    fn decode(code: u32) -> Result<Self, String> {
        let known = Self::ALL.get(code as usize);
        known.copied().ok_or_else(|| format!("{code} is no {}", Self::WHAT))
    }
}

/// Runs the body of a function. Returns null, or the text of its error or panic, which the caller frees.
pub(crate) fn entry(body: impl FnOnce() -> Outcome) -> *mut c_char {
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        // Leaked, because the drop of the payload could panic too.
        std::mem::forget(panic);
        Err(format!("internal error in the EVTX reader, please report it: {text}").into())
    });
    match outcome {
        Ok(()) => std::ptr::null_mut(),
        Err(Failure { kind, text }) => {
            let text = format!("{}{}", kind as u32, text.replace('\0', "\\0"));
            CString::new(text).map_or(std::ptr::null_mut(), CString::into_raw)
        }
    }
}

/// Runs the body of a function that returns nothing. A panic in it is ignored, because nobody could be told.
pub(crate) fn release(body: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
        // Leaked, because the drop of the payload could panic too.
        std::mem::forget(panic);
    }
}

/// The bytes of a caller.
///
/// # Safety
/// `text` points to `len` readable bytes that stay unchanged while the result is used, or `len` is 0.
pub(crate) unsafe fn bytes<'a>(text: *const u8, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(text, len) }
}

/// The text of a caller; an error if it is not UTF-8.
///
/// # Safety
/// As [`bytes`].
pub(crate) unsafe fn text<'a>(text: *const c_char, len: usize) -> Result<&'a str, String> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes(text.cast(), len) };
    std::str::from_utf8(bytes).map_err(|error| format!("text that is no UTF-8: {error}"))
}

/// A text in UTF-8. One that the core gives stays where it is as long as the library is loaded. Null for none.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvtxText {
    /// The text, `len` bytes of it.
    pub data: *const c_char,
    /// How many bytes there are.
    pub len: usize,
}

impl EvtxText {
    pub(crate) const NONE: EvtxText = EvtxText {
        data: std::ptr::null(),
        len: 0,
    };

    /// Points to a text that has to stay as long as this is used.
    pub(crate) fn borrowed(text: &str) -> Self {
        EvtxText {
            data: text.as_ptr().cast(),
            len: text.len(),
        }
    }

    /// A text that is never freed.
    pub(crate) fn leaked(text: String) -> Self {
        EvtxText::borrowed(Box::leak(text.into_boxed_str()))
    }
}

/// A function as it is registered.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvtxFunction {
    /// Its name.
    pub name: EvtxText,
    /// What it gives.
    pub description: EvtxText,
    /// A statement with it.
    pub example: EvtxText,
}

impl EvtxFunction {
    /// The texts have to stay as long as this is used.
    pub(crate) fn borrowed(name: &str, description: &str, example: &str) -> Self {
        EvtxFunction {
            name: EvtxText::borrowed(name),
            description: EvtxText::borrowed(description),
            example: EvtxText::borrowed(example),
        }
    }
}

/// How many bytes a size as DuckDB writes it (`24.9 GiB`) is; 0 if it cannot be read.
pub(crate) fn size(text: &str) -> u64 {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let power = units.iter().position(|known| unit == *known);
    let bytes = number.parse::<f64>().ok().zip(power);
    bytes.map_or(0, |(number, power)| (number * 1024_f64.powi(power as i32)) as u64)
}

/// Writes a result.
///
/// # Safety
/// `out` can be written.
pub(crate) unsafe fn put<T>(out: *mut T, value: T) {
    // SAFETY: the caller's promise. `write` does not drop what was there, which may be uninitialised.
    unsafe { out.write(value) }
}

/// Writes the entry of a list, if there is one, and whether there is.
///
/// # Safety
/// `out` and `known` can be written.
pub(crate) unsafe fn put_entry<T>(found: Option<T>, out: *mut T, known: *mut bool) {
    // SAFETY: the caller's promise.
    unsafe { put(known, found.is_some()) };
    if let Some(found) = found {
        // SAFETY: the caller's promise.
        unsafe { put(out, found) };
    }
}

/// Writes the address and the length of a text, which the core keeps. Writes null and 0 for `None`.
///
/// # Safety
/// `data` and `len` can be written.
pub(crate) unsafe fn put_text(value: Option<&str>, data: *mut *const c_char, len: *mut usize) {
    // SAFETY: the caller's promise.
    unsafe {
        put(data, value.map_or(std::ptr::null(), |text| text.as_ptr().cast()));
        put(len, value.map_or(0, str::len));
    }
}

pub(crate) fn export_schema(schema: &SchemaRef) -> Result<FFI_ArrowSchema, String> {
    FFI_ArrowSchema::try_from(schema.as_ref()).map_err(|error| error.to_string())
}

/// Writes a batch as a struct array to `out`, and its number of rows to `rows`. Does not write `out` if there is no
/// batch; `rows` receives 0 then.
///
/// # Safety
/// `out` and `rows` can be written.
pub(crate) unsafe fn hand_out(batch: Option<RecordBatch>, out: *mut FFI_ArrowArray, rows: *mut usize) {
    // SAFETY: the caller's promise.
    unsafe { put(rows, batch.as_ref().map_or(0, RecordBatch::num_rows)) };
    if let Some(batch) = batch {
        let array = FFI_ArrowArray::new(&StructArray::from(batch).to_data());
        // SAFETY: the caller's promise.
        unsafe { put(out, array) };
    }
}

/// Frees an error text.
///
/// # Safety
/// `error` is null or came from a function of this library, and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_error_free(error: *mut c_char) {
    release(|| {
        if !error.is_null() {
            // SAFETY: the caller's promise.
            drop(unsafe { CString::from_raw(error) });
        }
    });
}

/// Frees an object.
///
/// # Safety
/// `object` is null or came from `Box::into_raw`, and is freed once.
pub(crate) unsafe fn free<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(object) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_duckdb_writes_them() {
        assert_eq!(size("24.9 GiB"), 26_736_171_417);
        assert_eq!(
            (size("512 bytes"), size("1.0 MiB"), size("2.5 KiB")),
            (512, 1 << 20, 2560)
        );
        assert_eq!((size("80% of RAM"), size(""), size("-1 KiB")), (0, 0, 0));
    }
}
