//! What every entry does: it catches panics, hands errors on as text, and checks what comes in.

use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_schema::SchemaRef;
use arrow_schema::ffi::FFI_ArrowSchema;

pub(crate) type Outcome = Result<(), String>;

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
        Err(format!("internal error in the EVTX reader, please report it: {text}"))
    });
    match outcome {
        Ok(()) => std::ptr::null_mut(),
        Err(text) => {
            let text = text.replace('\0', "\\0");
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

pub(crate) fn export_schema(schema: &SchemaRef) -> Result<FFI_ArrowSchema, String> {
    FFI_ArrowSchema::try_from(schema.as_ref()).map_err(|error| error.to_string())
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
