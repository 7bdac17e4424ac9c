//! A storage of the engine's files, by callbacks.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::time::Duration;

use evtx_format::{Interrupt, Interrupted};
use evtx_scan::{Modified, Storage, StorageError, StorageFile};

use crate::boundary::{Code, bytes, release};

/// What a callback of a storage returns.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvtxStorageCode {
    /// It succeeded.
    Done,
    /// The query was interrupted.
    Interrupted,
    /// It failed. The last text that it has pushed is the reason.
    Failed,
}

impl Code for EvtxStorageCode {
    const ALL: &[Self] = &[
        EvtxStorageCode::Done,
        EvtxStorageCode::Interrupted,
        EvtxStorageCode::Failed,
    ];
    const WHAT: &str = "outcome of a storage";
}

/// Texts that a callback of a storage returns, by [`evtx_texts_push`].
#[derive(Default)]
pub struct EvtxTexts(Vec<Vec<u8>>);

/// Adds a text. Its bytes are copied, and need not be UTF-8.
///
/// # Safety
/// `texts` is valid and not in use elsewhere, `data` points to `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_texts_push(texts: *mut EvtxTexts, data: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    release(|| unsafe { (*texts).0.push(bytes(data, len).to_vec()) });
}

/// What is known of an open file.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxFileInfo {
    /// Its size in bytes.
    pub size: u64,
    /// A number that is another if the file was modified since.
    pub modified: i64,
    /// How many nanoseconds ago it was modified; negative if that is not known.
    pub age: i64,
}

/// The engine's files, as callbacks, for one call. `read_at` and `close` can be called from any thread, the others only
/// from the thread of the call. Those with `texts` return an `EvtxStorageCode`. None may throw an exception.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxStorage {
    /// A pointer of the engine, which the callbacks with a `state` receive.
    pub state: *mut c_void,
    /// Pushes the paths of the files that match a pattern, or the reason of a failure.
    pub glob:
        unsafe extern "C" fn(state: *mut c_void, pattern: *const c_char, len: usize, texts: *mut EvtxTexts) -> u32,
    /// Writes to `exists` whether a path names a file.
    pub exists: unsafe extern "C" fn(
        state: *mut c_void,
        path: *const c_char,
        len: usize,
        exists: *mut bool,
        texts: *mut EvtxTexts,
    ) -> u32,
    /// Returns whether a file is remote: every read of it takes long.
    pub is_remote: unsafe extern "C" fn(state: *mut c_void, path: *const c_char, len: usize) -> bool,
    /// Opens a file. Writes a pointer for `read_at` and `close` to `file`, and what is known of the file to `info`. The
    /// core closes the file once.
    pub open: unsafe extern "C" fn(
        state: *mut c_void,
        path: *const c_char,
        len: usize,
        file: *mut *mut c_void,
        info: *mut EvtxFileInfo,
        texts: *mut EvtxTexts,
    ) -> u32,
    /// Fills a buffer with the bytes of a file from an offset on. Several threads can call it at the same time, also
    /// for the same file.
    pub read_at:
        unsafe extern "C" fn(file: *mut c_void, buffer: *mut u8, len: usize, offset: u64, texts: *mut EvtxTexts) -> u32,
    /// Closes a file.
    pub close: unsafe extern "C" fn(file: *mut c_void),
    /// Returns whether the query was interrupted. It is called up to a million times a second.
    pub is_set: unsafe extern "C" fn(state: *mut c_void) -> bool,
}

impl EvtxStorage {
    /// Runs work with the storage and its interrupt.
    ///
    /// # Safety
    /// The callbacks do what [`EvtxStorage`] says, until the work is done and the files that it opened are closed.
    pub(crate) unsafe fn during<T>(self, work: impl FnOnce(&dyn Storage, Interrupt<'_>) -> T) -> T {
        // SAFETY: the caller's promise.
        let is_set = || unsafe { (self.is_set)(self.state) };
        work(&Borrowed(self), Interrupt::new(&is_set))
    }
}

/// A storage whose callbacks can be called, by the promise of [`EvtxStorage::during`].
struct Borrowed(EvtxStorage);

struct OpenFile {
    storage: EvtxStorage,
    file: *mut c_void,
    info: EvtxFileInfo,
}

// SAFETY: files are read and closed from any thread, as `EvtxStorage` says; its state is not used for that.
unsafe impl Send for OpenFile {}
// SAFETY: likewise, and several threads read at once.
unsafe impl Sync for OpenFile {}

fn outcome(code: u32, texts: EvtxTexts) -> Result<Vec<Vec<u8>>, StorageError> {
    match EvtxStorageCode::decode(code) {
        Ok(EvtxStorageCode::Done) => Ok(texts.0),
        Ok(EvtxStorageCode::Interrupted) => Err(Interrupted.into()),
        Ok(EvtxStorageCode::Failed) => {
            let text = texts.0.last().map(|text| String::from_utf8_lossy(text).into_owned());
            Err(StorageError::Failed(text.unwrap_or_default()))
        }
        Err(text) => Err(StorageError::Failed(text)),
    }
}

impl Storage for Borrowed {
    fn glob(&self, pattern: &str) -> Result<Vec<Vec<u8>>, StorageError> {
        let mut texts = EvtxTexts::default();
        // SAFETY: the promise of `during`.
        let code = unsafe { (self.0.glob)(self.0.state, pattern.as_ptr().cast(), pattern.len(), &mut texts) };
        outcome(code, texts)
    }

    fn exists(&self, path: &str) -> Result<bool, StorageError> {
        let (mut exists, mut texts) = (false, EvtxTexts::default());
        // SAFETY: the promise of `during`.
        let code = unsafe { (self.0.exists)(self.0.state, path.as_ptr().cast(), path.len(), &mut exists, &mut texts) };
        outcome(code, texts)?;
        Ok(exists)
    }

    fn is_remote(&self, path: &str) -> bool {
        // SAFETY: the promise of `during`.
        unsafe { (self.0.is_remote)(self.0.state, path.as_ptr().cast(), path.len()) }
    }

    fn open(&self, path: &str) -> Result<Arc<dyn StorageFile>, StorageError> {
        let (mut file, mut texts) = (std::ptr::null_mut(), EvtxTexts::default());
        let mut info = EvtxFileInfo {
            size: 0,
            modified: 0,
            age: -1,
        };
        let (start, len) = (path.as_ptr().cast(), path.len());
        // SAFETY: the promise of `during`.
        let code = unsafe { (self.0.open)(self.0.state, start, len, &mut file, &mut info, &mut texts) };
        outcome(code, texts)?;
        Ok(Arc::new(OpenFile {
            storage: self.0,
            file,
            info,
        }))
    }
}

impl StorageFile for OpenFile {
    fn size(&self) -> u64 {
        self.info.size
    }

    fn modified(&self) -> Option<Modified> {
        Some(Modified {
            stamp: self.info.modified,
            age: Duration::from_nanos(self.info.age.try_into().ok()?),
        })
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        let mut texts = EvtxTexts::default();
        // SAFETY: the file is open, and the buffer is as long as is said.
        let code = unsafe { (self.storage.read_at)(self.file, buffer.as_mut_ptr(), buffer.len(), offset, &mut texts) };
        outcome(code, texts).map(drop)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // SAFETY: the file was opened, and is closed once.
        unsafe { (self.storage.close)(self.file) };
    }
}
