//! The C ABI of `evtx-arrow`, for the DuckDB extension. The only crate with `unsafe`.
//!
//! One error channel: a function that can fail returns an error text, which the caller frees with
//! [`evtx_error_free`], or null if it succeeded. What it has to tell goes through pointers. Panics are caught in every
//! entry, by `entry` or `release`, and become such a text where there is someone to tell.
//! Nothing here calls back into the caller but what takes an [`EvtxInterrupt`].
//!
//! Pointers to text are UTF-8 with a length and are only read during the call.

mod file;
mod filter;
mod interrupt;
#[cfg(test)]
mod reference;
mod report;
mod table;

use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::{Array, DictionaryArray, StringViewArray, StructArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Fields, Schema, SchemaRef};
use evtx_arrow::{Decoder, MakeArrays, OnError, Options, Scan};
use evtx_format::mta::Messages;

pub use crate::file::{
    EvtxBlock, EvtxMessages, EvtxSurvey, evtx_batch_index, evtx_messages_free, evtx_messages_new,
    evtx_messages_pattern, evtx_messages_push, evtx_messages_read, evtx_path_text, evtx_survey_block,
    evtx_survey_blocks, evtx_survey_free, evtx_survey_new, evtx_survey_push, evtx_survey_verify, evtx_survey_wants,
};
pub use crate::filter::{
    EvtxFilter, EvtxNode, EvtxNodeKind, evtx_filter_drops_file, evtx_filter_free, evtx_filter_new,
};
pub use crate::interrupt::EvtxInterrupt;
pub use crate::report::{
    EvtxReport, EvtxReportKind, evtx_report_end, evtx_report_flush, evtx_report_free, evtx_report_new,
    evtx_report_push, evtx_report_schema, evtx_report_start,
};
pub use crate::table::{
    EvtxEvents, EvtxTable, evtx_table_columns, evtx_table_free, evtx_table_new, evtx_table_of_events, evtx_table_schema,
};

/// What becomes of damage.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvtxOnError {
    /// Rows with an error.
    Report,
    /// No rows.
    Skip,
    /// The end of the scan.
    Fail,
}

impl Code for EvtxOnError {
    const ALL: &[Self] = &[EvtxOnError::Report, EvtxOnError::Skip, EvtxOnError::Fail];
    const WHAT: &str = "choice for on_error";
}

/// The options of a scan.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxOptions {
    /// What becomes of damage, an `EvtxOnError`.
    pub on_error: u32,
    /// Whether checksums are compared.
    pub verify: bool,
    /// Whether there is a column of each event's XML.
    pub xml: bool,
    /// Whether there is a column of each event's JSON.
    pub json: bool,
    /// Whether there are columns for where a record stands.
    pub location: bool,
    /// Whether there are also records that a chunk's bookkeeping does not reach, and chunks of files that are no logs.
    pub recover: bool,
}

impl TryFrom<EvtxOptions> for Options {
    type Error = String;

    fn try_from(options: EvtxOptions) -> Result<Self, String> {
        Ok(Options {
            on_error: match EvtxOnError::decode(options.on_error)? {
                EvtxOnError::Report => OnError::Report,
                EvtxOnError::Skip => OnError::Skip,
                EvtxOnError::Fail => OnError::Fail,
            },
            verify: options.verify,
            xml: options.xml,
            json: options.json,
            location: options.location,
            recover: options.recover,
        })
    }
}

/// What the threads of a query share.
pub struct EvtxScan(Arc<Scan>);

/// Decodes blocks of files, for one thread.
pub struct EvtxDecoder(Decoder);

// Which threads have what. The compiler checks it of the types; C++ has to keep to it.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    const fn handed_on<T: Send>() {}
    // A query's threads read these at once, and the last to go frees them.
    shared::<Scan>();
    shared::<EvtxScan>();
    shared::<Messages>();
    shared::<EvtxMessages>();
    shared::<EvtxTable>();
    shared::<EvtxFilter>();
    shared::<EvtxSurvey>();
    // These are one thread's at a time, and DuckDB can go on with its work in another.
    handed_on::<Decoder>();
    handed_on::<EvtxDecoder>();
    handed_on::<EvtxReport>();
};

type Outcome = Result<(), String>;

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
fn entry(body: impl FnOnce() -> Outcome) -> *mut c_char {
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
fn release(body: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
        // To drop it could panic too.
        std::mem::forget(panic);
    }
}

/// # Safety
/// `text` points to `len` readable bytes that stay unchanged while the result is used, or `len` is 0.
unsafe fn bytes<'a>(text: *const u8, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(text, len) }
}

/// # Safety
/// As [`bytes`].
unsafe fn text<'a>(text: *const c_char, len: usize) -> Result<&'a str, String> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes(text.cast(), len) };
    std::str::from_utf8(bytes).map_err(|error| format!("text that is no UTF-8: {error}"))
}

/// # Safety
/// `out` can be written.
unsafe fn put<T>(out: *mut T, value: T) {
    // SAFETY: the caller's promise. `write` does not drop what was there, which may be uninitialised.
    unsafe { out.write(value) }
}

fn export_schema(schema: &SchemaRef) -> Result<FFI_ArrowSchema, String> {
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

/// The choice for `on_error` that a name stands for, an `EvtxOnError`. An error lists the choices.
///
/// # Safety
/// `name` is text, `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_on_error(name: *const c_char, name_len: usize, out: *mut u32) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, name_len) }?;
        let on_error = match name.parse()? {
            OnError::Report => EvtxOnError::Report,
            OnError::Skip => EvtxOnError::Skip,
            OnError::Fail => EvtxOnError::Fail,
        };
        // SAFETY: the caller's promise.
        unsafe { put(out, on_error as u32) };
        Ok(())
    })
}

/// A scan of the columns with these indexes in the schema of the table, in this order, without the rows that `filter` drops,
/// if that is not null.
///
/// # Safety
/// `table` is valid, `columns` points to `column_count` indexes, `filter` is null or valid and made for the same table,
/// `out` can be written. The caller frees the scan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_scan_new(
    table: *const EvtxTable,
    columns: *const usize,
    column_count: usize,
    filter: *const EvtxFilter,
    out: *mut *mut EvtxScan,
) -> *mut c_char {
    entry(|| {
        let columns = match column_count {
            0 => &[],
            // SAFETY: the caller's promise.
            _ => unsafe { std::slice::from_raw_parts(columns, column_count) },
        };
        // SAFETY: the caller's promise.
        let predicates = unsafe { filter.as_ref() }.map_or(&[][..], |filter| &filter.predicates);
        // SAFETY: the caller's promise.
        let table = unsafe { &*table }.0.clone();
        let scan = Scan::filtered(table, columns, predicates);
        let scan = EvtxScan(Arc::new(scan));
        // SAFETY: the caller's promise.
        unsafe { put(out, Box::into_raw(Box::new(scan))) };
        Ok(())
    })
}

/// Frees a scan. Decoders keep what they need of it.
///
/// # Safety
/// `scan` is null or came from [`evtx_scan_new`], and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_scan_free(scan: *mut EvtxScan) {
    // SAFETY: the caller's promise.
    release(|| unsafe { free(scan) });
}

/// The schema of the batches of a scan, but with maps as lists of their entries: the two are the same in memory.
///
/// # Safety
/// `scan` is valid, `out` can be written. The caller releases the schema.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_scan_schema(scan: *const EvtxScan, out: *mut FFI_ArrowSchema) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let scan = unsafe { &*scan };
        let schema = scan.0.schema();
        let fields = schema.fields().iter().map(|field| match field.data_type() {
            DataType::Map(entries, _) => {
                let list = DataType::List(Arc::clone(entries));
                Arc::new(field.as_ref().clone().with_data_type(list))
            }
            _ => Arc::clone(field),
        });
        let schema = export_schema(&Arc::new(Schema::new(fields.collect::<Fields>())))?;
        // SAFETY: the caller's promise.
        unsafe { put(out, schema) };
        Ok(())
    })
}

/// Whether a scan reads messages, so that those beside a log are of use.
///
/// # Safety
/// `scan` is valid, `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_scan_reads_messages(scan: *const EvtxScan, out: *mut bool) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let reads = unsafe { &*scan }.0.reads_messages();
        // SAFETY: the caller's promise.
        unsafe { put(out, reads) };
        Ok(())
    })
}

/// Makes the arrays of a decoder: in a build that checks what it can, as `evtx-arrow` does, else without another look at each
/// value.
const ARRAYS: MakeArrays = if cfg!(debug_assertions) {
    MakeArrays::CHECKED
} else {
    TRUSTED
};

const TRUSTED: MakeArrays = MakeArrays {
    strings: |strings| {
        let (views, buffers, nulls) = strings.into_parts();
        // SAFETY: by what holds for all `Strings`. The tests of `evtx-arrow` read the same logs with all of it checked.
        Ok(unsafe { StringViewArray::new_unchecked(views, buffers.into(), nulls) })
    },
    dictionary: |numbers| {
        let (numbers, values) = numbers.into_parts();
        // SAFETY: likewise, for all `Numbers`.
        Ok(unsafe { DictionaryArray::new_unchecked(numbers, values) })
    },
};

/// A decoder for a scan.
///
/// # Safety
/// `scan` is valid, `out` can be written. The caller frees the decoder.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_decoder_new(scan: *const EvtxScan, out: *mut *mut EvtxDecoder) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let scan = unsafe { &*scan };
        let decoder = EvtxDecoder(Decoder::new(Arc::clone(&scan.0)).with_arrays(ARRAYS));
        // SAFETY: the caller's promise.
        unsafe { put(out, Box::into_raw(Box::new(decoder))) };
        Ok(())
    })
}

/// Frees a decoder. Batches that it gave stay valid.
///
/// # Safety
/// `decoder` is null or came from [`evtx_decoder_new`], and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_decoder_free(decoder: *mut EvtxDecoder) {
    // SAFETY: the caller's promise.
    release(|| unsafe { free(decoder) });
}

/// Begins the block with a number of a file that was surveyed, with the messages that stand beside the file, or null.
///
/// # Safety
/// `decoder` is valid and not in use elsewhere, `filename` is text, `messages` is null or valid, `survey` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_decoder_start(
    decoder: *mut EvtxDecoder,
    filename: *const c_char,
    filename_len: usize,
    messages: *const EvtxMessages,
    survey: *const EvtxSurvey,
    number: u64,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let (decoder, filename) = unsafe { (&mut *decoder, text(filename, filename_len)?) };
        // SAFETY: the caller's promise.
        let messages = unsafe { messages.as_ref() }.and_then(|messages| messages.messages.clone());
        // SAFETY: the caller's promise.
        let block = unsafe { &*survey }.block(number)?;
        decoder.0.start(&filename.into(), messages, block);
        Ok(())
    })
}

/// Decodes until the batch is full or the block is done. `data` is what is left of the block; `consumed`
/// receives how many of its bytes were. After an error, another block may be started.
///
/// # Safety
/// `decoder` is valid and not in use elsewhere, `data` points to `len` bytes, `interrupt` can be asked, `consumed` can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_decoder_decode(
    decoder: *mut EvtxDecoder,
    data: *const u8,
    len: usize,
    interrupt: EvtxInterrupt,
    consumed: *mut usize,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let (decoder, bytes) = unsafe { (&mut *decoder, bytes(data, len)) };
        // SAFETY: the caller's promise.
        let count = unsafe { interrupt.during(|interrupt| decoder.0.decode(bytes, interrupt)) };
        let count = count.map_err(|error| error.to_string())?;
        // SAFETY: the caller's promise.
        unsafe { put(consumed, count) };
        Ok(())
    })
}

/// Hands the batch out, as a struct array of the scan's schema. `rows` receives its length; if that is 0,
/// `out` is left alone.
///
/// # Safety
/// `decoder` is valid and not in use elsewhere, `out` and `rows` can be written. The caller releases the
/// array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_decoder_flush(
    decoder: *mut EvtxDecoder,
    out: *mut FFI_ArrowArray,
    rows: *mut usize,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let decoder = unsafe { &mut *decoder };
        let batch = decoder.0.flush().map_err(|error| error.to_string())?;
        // SAFETY: the caller's promise.
        unsafe { put(rows, batch.as_ref().map_or(0, |batch| batch.num_rows())) };
        if let Some(batch) = batch {
            let array = FFI_ArrowArray::new(&StructArray::from(batch).to_data());
            // SAFETY: the caller's promise.
            unsafe { put(out, array) };
        }
        Ok(())
    })
}

/// Whether all of the block was decoded.
///
/// # Safety
/// `decoder` is valid, `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_decoder_is_done(decoder: *const EvtxDecoder, out: *mut bool) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let is_done = unsafe { &*decoder }.0.is_done();
        // SAFETY: the caller's promise.
        unsafe { put(out, is_done) };
        Ok(())
    })
}

/// Adds a row that says what is wrong with a file as a whole, or fails with that, or does nothing, as the
/// scan was told.
///
/// # Safety
/// `decoder` is valid and not in use elsewhere, `filename` and `what` are text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_decoder_report_file(
    decoder: *mut EvtxDecoder,
    filename: *const c_char,
    filename_len: usize,
    what: *const c_char,
    what_len: usize,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let (decoder, filename, what) =
            unsafe { (&mut *decoder, text(filename, filename_len)?, text(what, what_len)?) };
        decoder
            .0
            .report_file(&filename.into(), what)
            .map_err(|error| error.to_string())
    })
}

/// # Safety
/// `object` is null or came from `Box::into_raw`, and is freed once.
unsafe fn free<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(object) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: EvtxInterrupt = EvtxInterrupt {
        is_set: None,
        state: std::ptr::null_mut(),
    };

    const OPTIONS: EvtxOptions = EvtxOptions {
        on_error: 0,
        verify: false,
        xml: false,
        json: false,
        location: false,
        recover: false,
    };

    fn take(error: *mut c_char) -> Option<String> {
        if error.is_null() {
            return None;
        }
        // SAFETY: it came from `entry`.
        Some(unsafe { CString::from_raw(error) }.into_string().expect("UTF-8"))
    }

    /// The header that the C++ side is built with.
    const HEADER: &str = include_str!(concat!(env!("OUT_DIR"), "/evtx_ffi.h"));

    #[test]
    fn the_header_is_generated_in_the_build_folder() {
        let out = std::path::Path::new(env!("OUT_DIR"));
        let beside = out.ancestors().nth(3).expect("a folder").join("include/evtx_ffi.h");
        assert_eq!(std::fs::read_to_string(beside).expect("the header"), HEADER);
        assert!(HEADER.contains("evtx_error_free"));
        let manifest = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(!out.starts_with(manifest), "{out:?}");
    }

    #[test]
    fn panics_become_errors() {
        let text = take(entry(|| panic!("at {}", 7))).expect("an error");
        assert!(text.contains("internal error") && text.ends_with("at 7"), "{text}");
        assert_eq!(take(entry(|| Ok(()))), None);
    }

    #[test]
    fn panics_of_what_is_freed_stay_here() {
        struct Panics;
        impl Drop for Panics {
            fn drop(&mut self) {
                panic!("in a drop");
            }
        }
        let object = Box::into_raw(Box::new(Panics));
        // SAFETY: it came from a box, and is freed once.
        release(|| unsafe { free(object) });
        release(|| std::panic::panic_any(Panics));
    }

    /// The code of the entries in a source, by their names, without the comments.
    fn entries(source: &str) -> Vec<(&str, String)> {
        let rest = source.split("extern \"C\" fn ").skip(1);
        // Types of functions have no name.
        let named = rest.filter(|rest| rest.starts_with(|first: char| first.is_alphabetic()));
        let code = |rest: &str| {
            let body = rest.split_once("{\n").and_then(|(_, rest)| rest.split_once("\n}\n"));
            let lines = body.unwrap_or_default().0.lines();
            let lines: Vec<_> = lines.filter(|line| !line.trim().starts_with("//")).collect();
            lines.join("\n")
        };
        let name = |rest: &str| rest.find('(').unwrap_or_default();
        named.map(|rest| (&rest[..name(rest)], code(rest))).collect()
    }

    #[test]
    fn every_entry_catches_panics() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut names = Vec::new();
        for file in std::fs::read_dir(folder).expect("the sources") {
            let source = std::fs::read_to_string(file.expect("a file").path()).expect("a source");
            for (name, code) in entries(&source) {
                let frees = name.ends_with("_free");
                let start = if frees { "    release(|| " } else { "    entry(|| {" };
                // A single statement: all others would stand as far to the left.
                let statements = code
                    .lines()
                    .filter(|line| line[4..].starts_with(|first| !" })".contains(first)));
                assert!(code.starts_with(start) && statements.count() == 1, "{name}:\n{code}");
                names.push(name.to_owned());
            }
        }
        names.sort();
        let declared = HEADER.split("evtx_").skip(1).filter_map(|rest| {
            let name = rest.split(|next: char| !next.is_alphanumeric() && next != '_').next()?;
            rest[name.len()..].starts_with('(').then(|| format!("evtx_{name}"))
        });
        let mut declared: Vec<_> = declared.collect();
        declared.sort();
        assert_eq!(names, declared, "the header declares what was looked at");
    }

    #[test]
    fn a_file_is_read_through_the_c_abi() {
        let mut file = vec![0; 4096 + 65_536];
        file[..8].copy_from_slice(b"ElfFile\0");
        file[4096] = b'x';
        // SAFETY: every pointer is to a local of the right type, and each object is freed once.
        unsafe {
            let options = EvtxOptions {
                on_error: EvtxOnError::Report as u32,
                ..OPTIONS
            };
            let mut survey = std::ptr::null_mut();
            assert_eq!(
                take(evtx_survey_new(file.len() as u64, false, false, &mut survey)),
                None
            );
            let (mut offset, mut len) = (0, 0);
            let mut wants = false;
            loop {
                assert_eq!(take(evtx_survey_wants(survey, &mut offset, &mut len, &mut wants)), None);
                if !wants {
                    break;
                }
                assert_eq!(
                    take(evtx_survey_push(survey, file[offset as usize..].as_ptr(), len)),
                    None
                );
            }
            assert!(
                take(evtx_survey_verify(survey))
                    .expect("no checksum")
                    .contains("file header")
            );
            let mut block = EvtxBlock {
                number: 1,
                offset: 0,
                len: 0,
            };
            let mut blocks = 0;
            assert_eq!(take(evtx_survey_blocks(survey, &mut blocks)), None);
            assert_eq!(blocks, 1);
            assert_eq!(take(evtx_survey_block(survey, 0, &mut block)), None);
            let error = take(evtx_survey_block(survey, 1, &mut EvtxBlock { ..block }));
            assert_eq!(error.as_deref(), Some("this file has no block 1"));
            assert_eq!((block.number, block.offset, block.len), (0, 4096, 65_536));

            let mut table = std::ptr::null_mut();
            assert_eq!(take(evtx_table_new(options, &mut table)), None);
            let mut filter = std::ptr::null_mut();
            let node = |kind: EvtxNodeKind, children| EvtxNode {
                kind: kind as u32,
                children,
                number: 0,
                start: 0,
                len: 0,
            };
            let nodes = [node(EvtxNodeKind::Column, 0), node(EvtxNodeKind::IsNull, 1)];
            assert_eq!(
                take(evtx_filter_new(
                    table,
                    nodes.as_ptr(),
                    nodes.len(),
                    std::ptr::null(),
                    0,
                    &mut filter
                )),
                None
            );
            let mut drops = true;
            assert_eq!(take(evtx_filter_drops_file(filter, c"x".as_ptr(), 1, &mut drops)), None);
            assert!(!drops, "a name tells nothing of record IDs");

            let mut scan = std::ptr::null_mut();
            let columns = [0_usize, 23];
            assert_eq!(
                take(evtx_scan_new(table, columns.as_ptr(), columns.len(), filter, &mut scan)),
                None
            );
            let mut schema = FFI_ArrowSchema::empty();
            assert_eq!(take(evtx_scan_schema(scan, &mut schema)), None);
            assert_eq!(schema.child(1).name(), Some("error"));
            let mut decoder = std::ptr::null_mut();
            assert_eq!(take(evtx_decoder_new(scan, &mut decoder)), None);
            evtx_scan_free(scan);
            evtx_filter_free(filter);
            evtx_table_free(table);
            assert_eq!(
                take(evtx_decoder_start(
                    decoder,
                    c"x".as_ptr(),
                    1,
                    std::ptr::null(),
                    survey,
                    0
                )),
                None
            );
            evtx_survey_free(survey);
            let mut consumed = 0;
            assert_eq!(
                take(evtx_decoder_decode(
                    decoder,
                    file[4096..].as_ptr(),
                    65_536,
                    NEVER,
                    &mut consumed
                )),
                None
            );
            assert_eq!(consumed, 65_536);
            let mut is_done = false;
            assert_eq!(take(evtx_decoder_is_done(decoder, &mut is_done)), None);
            assert!(is_done);
            let (mut array, mut rows) = (FFI_ArrowArray::empty(), 0);
            assert_eq!(take(evtx_decoder_flush(decoder, &mut array, &mut rows)), None);
            assert_eq!((rows, array.len()), (1, 1));
            evtx_decoder_free(decoder);
        }
    }

    fn check_codes<T: Code + std::fmt::Debug>(number: fn(T) -> u32) {
        for (place, code) in T::ALL.iter().enumerate() {
            assert_eq!(number(*code), place as u32, "{code:?}");
        }
        assert!(T::decode(T::ALL.len() as u32).is_err());
    }

    #[test]
    fn codes_are_the_numbers_of_their_variants() {
        check_codes::<EvtxNodeKind>(|code| code as u32);
        check_codes::<EvtxOnError>(|code| code as u32);
        check_codes::<EvtxReportKind>(|code| code as u32);
    }

    #[test]
    fn numbers_that_no_enum_has_are_errors() {
        let options = EvtxOptions { on_error: 3, ..OPTIONS };
        let (mut table, mut report) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the pointers are to locals, or null where they may be.
        let errors = unsafe {
            [
                take(evtx_table_new(options, &mut table)),
                take(evtx_report_new(u32::MAX, std::ptr::null(), &mut report)),
            ]
        };
        assert_eq!(
            errors.map(Option::unwrap_or_default),
            ["3 is no choice for on_error", "4294967295 is no kind of report"]
        );
        assert!(table.is_null() && report.is_null());
    }

    #[test]
    fn unknown_choices_list_the_known_ones() {
        let mut out = 0;
        // SAFETY: the text is one, and `out` a local.
        let error = unsafe { take(evtx_on_error(c"nonsense".as_ptr(), 8, &mut out)) };
        assert_eq!(
            error.as_deref(),
            Some("on_error must be one of 'report', 'skip', 'fail', not 'nonsense'")
        );
    }

    #[test]
    fn reports_are_read_through_the_c_abi() {
        let mut file = vec![0; 4096 + 65_536];
        file[..8].copy_from_slice(b"ElfFile\0");
        // SAFETY: every pointer is to a local of the right type, and each object is freed once.
        unsafe {
            for (kind, rows_then) in [
                (EvtxReportKind::Events, 0),
                (EvtxReportKind::Files, 1),
                (EvtxReportKind::Chunks, 1),
            ] {
                let mut report = std::ptr::null_mut();
                assert_eq!(take(evtx_report_new(kind as u32, std::ptr::null(), &mut report)), None);
                let mut schema = FFI_ArrowSchema::empty();
                assert_eq!(take(evtx_report_schema(report, &mut schema)), None);
                assert_eq!(
                    take(evtx_report_start(report, c"x".as_ptr(), 1, file.len() as u64)),
                    None
                );
                assert_eq!(take(evtx_report_push(report, file.as_ptr(), 4096, NEVER)), None);
                assert_eq!(
                    take(evtx_report_push(report, file[4096..].as_ptr(), 65_536, NEVER)),
                    None
                );
                assert_eq!(take(evtx_report_end(report, std::ptr::null(), 0)), None);
                let (mut array, mut rows) = (FFI_ArrowArray::empty(), 7);
                assert_eq!(take(evtx_report_flush(report, true, &mut array, &mut rows)), None);
                assert_eq!(rows, rows_then, "{kind:?}");
                assert_eq!(take(evtx_report_start(report, c"y".as_ptr(), 1, 0)), None);
                let why = take(evtx_report_push(report, std::ptr::null(), 0, NEVER)).expect("no log");
                assert!(why.contains("the file is empty"), "{why}");
                evtx_report_free(report);
            }
        }
    }
}
