//! Files through the C ABI: how they are laid out, and the messages that stand beside them.

use std::ffi::c_char;
use std::sync::Arc;

use evtx_format::container::layout::Block;
use evtx_format::container::survey::{Search, Survey};
use evtx_format::mta::{self, Messages, MtaError};

use crate::boundary::{bytes, entry, free, put, release, text};
use crate::interrupt::EvtxInterrupt;

/// Bytes of a file to read at once and decode.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxBlock {
    /// Its number in the order of the records.
    pub number: u64,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

/// Finds out how a file is laid out.
pub struct EvtxSurvey(Survey);

impl EvtxSurvey {
    /// The block with a number.
    pub(crate) fn block(&self, number: u64) -> Result<Block, String> {
        let block = self.0.layout().and_then(|layout| layout.block(number));
        block.ok_or_else(|| format!("this file has no block {number}"))
    }
}

/// The file of the messages that stand beside a log, and once it was read the messages.
#[derive(Default)]
pub struct EvtxMessages {
    file: Vec<u8>,
    pub(crate) messages: Option<Arc<Messages>>,
}

/// A survey of a file of `size` bytes. Of one that is `remote` it asks for few ranges, of others for a small
/// one in every chunk. With `recover`, a file that is no log may hold chunks.
///
/// # Safety
/// `out` can be written. The caller frees the survey.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_survey_new(
    size: u64,
    remote: bool,
    recover: bool,
    out: *mut *mut EvtxSurvey,
) -> *mut c_char {
    entry(|| {
        let search = if remote { Search::Bisect } else { Search::Every };
        let survey = EvtxSurvey(Survey::new(size, search, recover));
        // SAFETY: the caller's promise.
        unsafe { put(out, Box::into_raw(Box::new(survey))) };
        Ok(())
    })
}

/// Frees a survey.
///
/// # Safety
/// `survey` is null or came from [`evtx_survey_new`], and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_survey_free(survey: *mut EvtxSurvey) {
    // SAFETY: the caller's promise.
    release(|| unsafe { free(survey) });
}

/// The range of the file to read and push next. `wants` receives whether there is one: none once the survey is done, and
/// `offset` and `len` are left alone then.
///
/// # Safety
/// `survey` is valid, `offset`, `len` and `wants` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_survey_wants(
    survey: *const EvtxSurvey,
    offset: *mut u64,
    len: *mut usize,
    wants: *mut bool,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let range = unsafe { &*survey }.0.wants();
        // SAFETY: the caller's promise.
        unsafe { put(wants, range.is_some()) };
        if let Some(range) = range {
            // SAFETY: the caller's promise.
            unsafe {
                put(offset, range.start);
                put(len, (range.end - range.start) as usize);
            }
        }
        Ok(())
    })
}

/// Takes the bytes of the range that the survey wants. The error says why the file is not a log.
///
/// # Safety
/// `survey` is valid and not in use elsewhere, `data` points to `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_survey_push(survey: *mut EvtxSurvey, data: *const u8, len: usize) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let (survey, bytes) = unsafe { (&mut *survey, bytes(data, len)) };
        survey.0.push(bytes).map_err(|error| error.to_string())
    })
}

/// What the file header's checksum says is wrong, for scans that verify; null if it matches.
///
/// # Safety
/// `survey` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_survey_verify(survey: *const EvtxSurvey) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let survey = unsafe { &*survey };
        match survey.0.header() {
            Some(header) => header.verify().map_err(|error| error.to_string()),
            None => Ok(()),
        }
    })
}

/// How many blocks a file has that was surveyed.
///
/// # Safety
/// `survey` is valid, `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_survey_blocks(survey: *const EvtxSurvey, out: *mut u64) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let layout = unsafe { &*survey }.0.layout();
        // SAFETY: the caller's promise.
        unsafe { put(out, layout.map_or(0, |layout| layout.blocks())) };
        Ok(())
    })
}

/// A block of a file that was surveyed, by its number in the order of the records. An error says that there is none.
///
/// # Safety
/// `survey` is valid, `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_survey_block(survey: *const EvtxSurvey, number: u64, out: *mut EvtxBlock) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let Block { offset, len, .. } = unsafe { &*survey }.block(number)?;
        // SAFETY: the caller's promise.
        unsafe { put(out, EvtxBlock { number, offset, len }) };
        Ok(())
    })
}

/// DuckDB numbers the batches of a pipeline below this.
const BATCH_INDEXES: u64 = 10_000_000_000_000;

/// The position of a block in the order of all rows, of so many files. Files share the numbers that DuckDB has evenly.
fn batch_index(files: u64, file: u64, block: u64) -> Result<u64, String> {
    let of_each = BATCH_INDEXES / files.max(1);
    match block < of_each && file < files.max(1) {
        true => Ok(file * of_each + block),
        false => Err(format!(
            "a file of more than {of_each} MiB is too large to be read among {files} files"
        )),
    }
}

/// The position of a block in the order of all rows: the block with this number in the file with this number, of so many files.
///
/// # Safety
/// `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_batch_index(files: u64, file: u64, block: u64, out: *mut u64) -> *mut c_char {
    entry(|| {
        let index = batch_index(files, file, block)?;
        // SAFETY: the caller's promise.
        unsafe { put(out, index) };
        Ok(())
    })
}

/// Writes the glob of the files that may hold the messages of a log, with a NUL, if it fits in `capacity`
/// bytes. `place` is that glob from the log's folder on, with `{log}` for the log's name. `len` receives its length; 0 for
/// a path that names no file.
///
/// # Safety
/// `log` and `place` are text, `out` has room for `capacity` bytes, `len` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_messages_pattern(
    log: *const c_char,
    log_len: usize,
    place: *const c_char,
    place_len: usize,
    out: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let (log, place) = unsafe { (text(log, log_len)?, text(place, place_len)?) };
        let pattern = Messages::pattern(log, place).unwrap_or_default();
        // SAFETY: the caller's promise.
        unsafe { write_text(&pattern, out, capacity, len) };
        Ok(())
    })
}

/// Writes a path as text, with a NUL, if it fits in `capacity` bytes. What is no UTF-8 becomes U+FFFD. `len` receives the length
/// of the text.
///
/// # Safety
/// `path` points to `path_len` bytes, `out` has room for `capacity` bytes, `len` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_path_text(
    path: *const u8,
    path_len: usize,
    out: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let text = String::from_utf8_lossy(unsafe { bytes(path, path_len) });
        // SAFETY: the caller's promise.
        unsafe { write_text(&text, out, capacity, len) };
        Ok(())
    })
}

/// Writes a text, with a NUL, if it fits in `capacity` bytes. `len` receives its length.
///
/// # Safety
/// `out` has room for `capacity` bytes, `len` can be written.
unsafe fn write_text(text: &str, out: *mut c_char, capacity: usize, len: *mut usize) {
    if text.len() < capacity {
        // SAFETY: the caller's promise, and the text with its NUL fits.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), out, text.len());
            put(out.add(text.len()), 0);
        }
    }
    // SAFETY: the caller's promise.
    unsafe { put(len, text.len()) };
}

/// Messages to be read from a file of `size` bytes. `memory` is how many bytes they may take, and then how many they may
/// take of those. The error says why they are not read.
///
/// # Safety
/// `memory` can be read, it and `out` can be written. The caller frees the messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_messages_new(size: u64, memory: *mut u64, out: *mut *mut EvtxMessages) -> *mut c_char {
    entry(|| {
        let size = usize::try_from(size).ok().filter(|&size| size <= mta::MAX_FILE);
        let size = size.ok_or_else(|| MtaError::TooLarge.to_string())?;
        let needed = mta::memory(size);
        let mut messages = EvtxMessages::default();
        // SAFETY: the caller's promise.
        let fits = needed <= unsafe { *memory } && messages.file.try_reserve_exact(size).is_ok();
        if !fits {
            return Err("there is too little memory to read the messages".to_owned());
        }
        // SAFETY: the caller's promise.
        unsafe {
            put(memory, needed);
            put(out, Box::into_raw(Box::new(messages)));
        }
        Ok(())
    })
}

/// Takes the next bytes of the file.
///
/// # Safety
/// `messages` is valid and not in use elsewhere, `data` points to `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_messages_push(messages: *mut EvtxMessages, data: *const u8, len: usize) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let (messages, data) = unsafe { (&mut *messages, bytes(data, len)) };
        messages.file.extend_from_slice(data);
        Ok(())
    })
}

/// Reads the file, all of whose bytes were pushed. The error says why there are no messages.
///
/// # Safety
/// `messages` is valid and not in use elsewhere, `interrupt` can be asked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_messages_read(messages: *mut EvtxMessages, interrupt: EvtxInterrupt) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let messages = unsafe { &mut *messages };
        let file = std::mem::take(&mut messages.file);
        // SAFETY: the caller's promise.
        let read = unsafe { interrupt.during(|interrupt| Messages::read(file, interrupt)) };
        messages.messages = Some(Arc::new(read.map_err(|error| error.to_string())?));
        Ok(())
    })
}

/// Frees messages. Decoders keep those that they use.
///
/// # Safety
/// `messages` is null or came from [`evtx_messages_new`], and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_messages_free(messages: *mut EvtxMessages) {
    // SAFETY: the caller's promise.
    release(|| unsafe { free(messages) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_no_text_are_shown() {
        let (mut out, mut len) = ([0x7f; 8], 0);
        let path = b"a\xff";
        for (capacity, written) in [(0, &[0x7f; 5][..]), (4, &[0x7f; 5]), (5, b"a\xef\xbf\xbd\0")] {
            // SAFETY: the pointers are to locals, and the capacity is no more than there is.
            let error = unsafe { evtx_path_text(path.as_ptr(), 2, out.as_mut_ptr(), capacity, &mut len) };
            assert!(error.is_null());
            assert_eq!(
                (len, out.map(|byte| byte as u8).get(..5)),
                (4, Some(written)),
                "{capacity}"
            );
        }
    }

    #[test]
    fn blocks_of_a_large_image_come_before_those_of_the_next_file() {
        // 100 TiB, in blocks of 1 MiB.
        let last = 100 << 20;
        for files in [1, 2, 50_000] {
            let end = batch_index(files, 0, last).expect("a number");
            assert!(end < BATCH_INDEXES && end > batch_index(files, 0, last - 1).expect("a number"));
            if files > 1 {
                assert!(end < batch_index(files, 1, 0).expect("a number"));
                assert!(batch_index(files, files - 1, last).expect("a number") < BATCH_INDEXES);
            }
        }
        assert!(batch_index(10_000_000, 0, 1 << 20).is_err(), "no room among so many");
        assert!(batch_index(2, 2, 0).is_err());
    }
}
