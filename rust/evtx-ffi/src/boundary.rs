//! What every entry does: it catches panics, hands errors on as text, and checks what comes in.

use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::SchemaRef;
use arrow_schema::ffi::FFI_ArrowSchema;
use evtx_scan::ScanError;

pub(crate) type Outcome = Result<(), Failure>;

/// What an error is about.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvtxErrorKind {
    /// What was asked for cannot be.
    Input,
    /// There are no such files.
    NoFiles,
    /// The storage failed. What it failed with is the caller's to tell.
    Storage,
    /// The caller wants no more.
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

/// Why an entry does not do what it was asked for.
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

/// An enum that crosses the boundary as a number. What comes back may be any.
pub(crate) trait Code: Copy + 'static {
    /// The variants, each at the place that its number is.
    const ALL: &[Self];
    /// What a number that is none of theirs should have been.
    const WHAT: &str;

    fn decode(code: u32) -> Result<Self, String> {
        let known = Self::ALL.get(code as usize);
        known.copied().ok_or_else(|| format!("{code} is no {}", Self::WHAT))
    }
}

/// Runs an entry's body. Its error or panic becomes the error text; null for success.
pub(crate) fn entry(body: impl FnOnce() -> Outcome) -> *mut c_char {
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        // To drop it could panic too.
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

/// Runs the body of an entry that frees something. What panics there has nobody to be told to.
pub(crate) fn release(body: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
        // To drop it could panic too.
        std::mem::forget(panic);
    }
}

/// # Safety
/// `text` points to `len` readable bytes that stay unchanged while the result is used, or `len` is 0.
pub(crate) unsafe fn bytes<'a>(text: *const u8, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(text, len) }
}

/// # Safety
/// As [`bytes`].
pub(crate) unsafe fn text<'a>(text: *const c_char, len: usize) -> Result<&'a str, String> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes(text.cast(), len) };
    std::str::from_utf8(bytes).map_err(|error| format!("text that is no UTF-8: {error}"))
}

/// # Safety
/// `out` can be written.
pub(crate) unsafe fn put<T>(out: *mut T, value: T) {
    // SAFETY: the caller's promise. `write` does not drop what was there, which may be uninitialised.
    unsafe { out.write(value) }
}

/// Hands out a text that stays where it is; null for none.
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

/// Hands out a batch as a struct array. `rows` receives its length; if that is 0, `out` is left alone.
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

/// # Safety
/// `object` is null or came from `Box::into_raw`, and is freed once.
pub(crate) unsafe fn free<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(object) });
    }
}
