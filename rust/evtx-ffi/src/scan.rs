//! Scans and decoders through the C ABI.

use std::ffi::c_char;
use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::{Array, DictionaryArray, StringViewArray, StructArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Fields, Schema};
use evtx_arrow::{Decoder, MakeArrays, Scan};
use evtx_format::mta::Messages;

use crate::boundary::{bytes, entry, export_schema, free, put, release, text};
use crate::file::{EvtxMessages, EvtxSurvey};
use crate::filter::EvtxFilter;
use crate::interrupt::EvtxInterrupt;
use crate::report::EvtxReport;
use crate::table::EvtxTable;

/// What the threads of a query share.
pub struct EvtxScan(pub(crate) Arc<Scan>);

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
