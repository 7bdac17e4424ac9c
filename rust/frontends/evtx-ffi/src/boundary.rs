//! What every function of the C ABI is made of: errors and panics, objects, and slices of the caller's memory.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_schema::Schema;
use arrow_schema::ffi::FFI_ArrowSchema;
use evtx_format::{Interrupted, printable};
use evtx_scan::ScanError;

/// A text as a literal of SQL.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The kind of an error.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvtxErrorKind {
    /// Every other error: an unusable argument, a damaged log, or a panic of the core.
    Input,
    /// No file matches a path or glob.
    NoFiles,
    /// A callback of the storage failed. The caller knows why.
    Storage,
    /// The caller has interrupted the call.
    Interrupted,
    /// A value cannot be cast.
    Conversion,
    /// A statement names an option or a column that does not exist.
    Binder,
}

/// The error of a function of the C ABI.
#[repr(C)]
#[derive(Debug)]
pub struct EvtxError {
    /// Its kind.
    pub kind: EvtxErrorKind,
    /// Its message, valid until the error is freed.
    pub message: EvtxText<'static>,
}

impl EvtxError {
    /// Its message.
    pub fn text(&self) -> &str {
        self.message.text().unwrap_or_default()
    }

    pub(crate) fn new(kind: EvtxErrorKind, message: String) -> Self {
        // DuckDB takes messages as C strings, and clients print them.
        let message = EvtxText::leaked(printable(&message).into_owned().into_bytes());
        EvtxError { kind, message }
    }
}

impl Drop for EvtxError {
    fn drop(&mut self) {
        let EvtxSlice { data, len, .. } = self.message;
        // SAFETY: `new` leaked a boxed text of this address and length, and nothing else frees it.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(data.cast_mut(), len)) });
    }
}

impl From<String> for EvtxError {
    fn from(message: String) -> Self {
        EvtxError::new(EvtxErrorKind::Input, message)
    }
}

impl From<&str> for EvtxError {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl From<ScanError> for EvtxError {
    fn from(error: ScanError) -> Self {
        let kind = match error {
            ScanError::Interrupted(_) => EvtxErrorKind::Interrupted,
            ScanError::NoFiles(_) => EvtxErrorKind::NoFiles,
            ScanError::Storage(_) => EvtxErrorKind::Storage,
            ScanError::Input(_) | ScanError::File(_) | ScanError::Refused { .. } | ScanError::Decode(_) => {
                EvtxErrorKind::Input
            }
        };
        let hint = match &error {
            // A database of messages that is damaged is not meant as a table of events.
            ScanError::Refused { path, why } if why.starts_with("not an EVTX log") => table_hint(path),
            _ => None,
        };
        EvtxError::new(kind, format!("{error}{}", hint.unwrap_or_default()))
    }
}

impl From<Interrupted> for EvtxError {
    fn from(interrupted: Interrupted) -> Self {
        ScanError::from(interrupted).into()
    }
}

/// How to query a file that has the name of a table; `None` if it has another name.
fn table_hint(path: &str) -> Option<String> {
    let quoted = format!("'{}'", path.replace('\'', "''"));
    let ending = path.rsplit_once('.')?.1.to_ascii_lowercase();
    Some(match ending.as_str() {
        "parquet" => format!(
            ". This is a table: query it with FROM {quoted}, and use the macros over tables, such as \
             evtx_timeline_of({quoted})"
        ),
        "csv" | "tsv" | "json" | "jsonl" | "ndjson" => format!(". This is a table: query it with FROM {quoted}"),
        "duckdb" | "db" => format!(
            ". This is a database: open it with ATTACH {quoted} AS db, and use the macros over tables, such as \
             evtx_timeline_of('db.events')"
        ),
        _ => return None,
    })
}

/// An object that belongs to whoever holds the pointer. Null for none.
///
/// cbindgen:ignore
pub type EvtxOwned<T> = Option<Box<T>>;

/// The error of a function, which the caller frees with [`evtx_error_free`]. Null if it has succeeded.
pub type EvtxFailure = EvtxOwned<EvtxError>;

/// Runs the body of a function that returns nothing. A panic is ignored, because nobody could be told.
pub fn release(body: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
        // Leaked, because dropping the payload could panic too.
        std::mem::forget(panic);
    }
}

/// Runs the body of a function that can fail. Returns null, or its error or panic.
pub fn entry(body: impl FnOnce() -> Result<(), EvtxError>) -> EvtxFailure {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        // Leaked, because dropping the payload could panic too.
        std::mem::forget(panic);
        Err(internal(&text.unwrap_or_default()))
    });
    result.err().map(Box::new)
}

/// As [`entry`], and writes the result of the body to `out`.
pub(crate) fn produce<T>(out: Option<&mut T>, body: impl FnOnce() -> Result<T, EvtxError>) -> EvtxFailure {
    entry(|| {
        let out = required(out)?;
        *out = body()?;
        Ok(())
    })
}

fn internal(what: &str) -> EvtxError {
    format!("internal error in the EVTX reader, please report it: {what}").into()
}

/// An object that the caller must pass.
pub(crate) fn required<T>(object: Option<T>) -> Result<T, EvtxError> {
    object.ok_or_else(|| internal("a required pointer is null"))
}

/// A range of elements in memory. Those of the core are always valid, unless the function says otherwise. Those of the
/// caller are read during the call only.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxSlice<'a, T> {
    /// The first element; null for no slice.
    pub(crate) data: *const T,
    /// How many elements there are.
    len: usize,
    lifetime: PhantomData<&'a [T]>,
}

// SAFETY: it is a `&[T]`, which threads can share.
unsafe impl<T: Sync> Send for EvtxSlice<'_, T> {}
// SAFETY: likewise.
unsafe impl<T: Sync> Sync for EvtxSlice<'_, T> {}

impl<'a, T> EvtxSlice<'a, T> {
    pub(crate) const NONE: Self = EvtxSlice {
        data: std::ptr::null(),
        len: 0,
        lifetime: PhantomData,
    };

    /// The elements of a slice.
    pub fn borrowed(slice: &'a [T]) -> Self {
        EvtxSlice {
            data: slice.as_ptr(),
            len: slice.len(),
            lifetime: PhantomData,
        }
    }

    /// The elements; none if there is no slice.
    pub fn get(&self) -> &'a [T] {
        if self.len == 0 || self.data.is_null() {
            return &[];
        }
        // SAFETY: this module makes slices of references. The caller passes `len` readable elements that stay unchanged
        // during the call, which the lifetimes of parameters do not outlast.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl<T> Default for EvtxSlice<'_, T> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<T> EvtxSlice<'static, T> {
    /// A slice that is never freed.
    pub(crate) fn leaked(elements: impl Into<Box<[T]>>) -> Self {
        EvtxSlice::borrowed(Box::leak(elements.into()))
    }
}

/// A text in UTF-8. Null for NULL.
pub type EvtxText<'a> = EvtxSlice<'a, u8>;

impl<'a> EvtxText<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        EvtxSlice::borrowed(text.as_bytes())
    }

    pub(crate) fn of_option(text: Option<&'a str>) -> Self {
        text.map_or(EvtxText::NONE, EvtxText::of)
    }

    /// The text; an error if it is not UTF-8.
    pub fn text(&self) -> Result<&'a str, String> {
        let bytes = self.get();
        // Most texts are short and in ASCII, which the standard library would check byte by byte.
        if bytes.is_ascii() {
            // SAFETY: ASCII is UTF-8.
            return Ok(unsafe { std::str::from_utf8_unchecked(bytes) });
        }
        std::str::from_utf8(bytes).map_err(|error| format!("a text is not UTF-8: {error}"))
    }
}

/// The texts of a slice.
pub(crate) fn texts<'a>(texts: EvtxSlice<'a, EvtxText<'a>>) -> Result<Vec<&'a str>, String> {
    texts.get().iter().map(EvtxText::text).collect()
}

/// The documentation of a function in SQL.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxFunction {
    /// Its name.
    pub name: EvtxText<'static>,
    /// What it returns, in a sentence or two.
    pub description: EvtxText<'static>,
    /// A statement that calls it.
    pub example: EvtxText<'static>,
}

impl EvtxFunction {
    pub(crate) fn new(name: &'static str, description: &'static str, example: &'static str) -> Self {
        EvtxFunction {
            name: EvtxText::of(name),
            description: EvtxText::of(description),
            example: EvtxText::of(example),
        }
    }
}

/// The bytes of a size as DuckDB writes it (`24.9 GiB`); 0 if it cannot be read.
pub(crate) fn size(text: &str) -> u64 {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let power = units.iter().position(|known| unit == *known);
    let bytes = number.parse::<f64>().ok().zip(power);
    bytes.map_or(0, |(number, power)| (number * 1024_f64.powi(power as i32)) as u64)
}

pub(crate) fn export_schema(schema: &Schema) -> Result<FFI_ArrowSchema, EvtxError> {
    FFI_ArrowSchema::try_from(schema).map_err(|error| error.to_string().into())
}

/// Frees an error.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_error_free(error: EvtxFailure) {
    release(|| drop(error));
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
        assert!(size("16383.9 PiB") > 1 << 63);
        assert_eq!((size("80% of RAM"), size(""), size("-1 KiB")), (0, 0, 0));
    }
}
