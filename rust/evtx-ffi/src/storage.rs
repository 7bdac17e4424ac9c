//! The engine's files, through functions that it gives.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use evtx_format::{Interrupt, Interrupted};
use evtx_scan::{Storage, StorageError, StorageFile};

use crate::boundary::{Code, bytes, release};

/// What a function of a storage returns.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvtxStorageCode {
    /// It did what it was asked for.
    Done,
    /// The caller wants no more.
    Interrupted,
    /// It cannot. It has pushed why.
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

/// Texts that a function of a storage gives, by [`evtx_texts_push`].
#[derive(Default)]
pub struct EvtxTexts(Vec<Vec<u8>>);

/// Adds a text of any bytes.
///
/// # Safety
/// `texts` is valid and not in use elsewhere, `data` points to `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_texts_push(texts: *mut EvtxTexts, data: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    release(|| unsafe { (*texts).0.push(bytes(data, len).to_vec()) });
}

/// The engine's files, for one call. The functions are called in the thread of that call only, but for those of files.
/// They return an `EvtxStorageCode`, and nothing is thrown through them.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxStorage {
    /// The engine's, for the functions that take a state.
    pub state: *mut c_void,
    /// Pushes the paths of the files that a pattern stands for, or why it cannot tell.
    pub glob:
        unsafe extern "C" fn(state: *mut c_void, pattern: *const c_char, len: usize, texts: *mut EvtxTexts) -> u32,
    /// Tells whether a path names a file.
    pub exists: unsafe extern "C" fn(
        state: *mut c_void,
        path: *const c_char,
        len: usize,
        exists: *mut bool,
        texts: *mut EvtxTexts,
    ) -> u32,
    /// Whether a read of a file takes long.
    pub is_remote: unsafe extern "C" fn(state: *mut c_void, path: *const c_char, len: usize) -> bool,
    /// Opens a file, whose size it tells. It is closed once, by `close`.
    pub open: unsafe extern "C" fn(
        state: *mut c_void,
        path: *const c_char,
        len: usize,
        file: *mut *mut c_void,
        size: *mut u64,
        texts: *mut EvtxTexts,
    ) -> u32,
    /// Fills a buffer with the bytes of a file from an offset on. It is called from any thread, and from several at
    /// once.
    pub read_at:
        unsafe extern "C" fn(file: *mut c_void, buffer: *mut u8, len: usize, offset: u64, texts: *mut EvtxTexts) -> u32,
    /// Closes a file. It is called from any thread.
    pub close: unsafe extern "C" fn(file: *mut c_void),
    /// Whether the call shall end. It may be asked up to a million times a second.
    pub is_set: unsafe extern "C" fn(state: *mut c_void) -> bool,
}

impl EvtxStorage {
    /// Runs work with the storage, and with the question whether to go on.
    ///
    /// # Safety
    /// The functions do what is said of them, while the work is run.
    pub(crate) unsafe fn during<T>(self, work: impl FnOnce(&dyn Storage, Interrupt<'_>) -> T) -> T {
        // SAFETY: the caller's promise.
        let is_set = || unsafe { (self.is_set)(self.state) };
        work(&Borrowed(self), Interrupt::new(&is_set))
    }
}

/// A storage whose functions can be called, by the promise of [`EvtxStorage::during`].
struct Borrowed(EvtxStorage);

struct OpenFile {
    storage: EvtxStorage,
    file: *mut c_void,
    size: u64,
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
        let (mut file, mut size, mut texts) = (std::ptr::null_mut(), 0, EvtxTexts::default());
        let (start, len) = (path.as_ptr().cast(), path.len());
        // SAFETY: the promise of `during`.
        let code = unsafe { (self.0.open)(self.0.state, start, len, &mut file, &mut size, &mut texts) };
        outcome(code, texts)?;
        Ok(Arc::new(OpenFile {
            storage: self.0,
            file,
            size,
        }))
    }
}

impl StorageFile for OpenFile {
    fn size(&self) -> u64 {
        self.size
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
