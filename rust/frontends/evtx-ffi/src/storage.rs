//! The files of the engine as a storage, by callbacks.

use std::ffi::c_void;
use std::sync::Arc;

use evtx_format::{Interrupt, Interrupted};
use evtx_scan::{LocalStorage, Modified, Storage, StorageError, StorageFile, has_glob};

use crate::boundary::{EvtxText, release};

/// The outcome of a callback of a storage.
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

/// Texts that a callback of a storage returns, by [`evtx_texts_push`].
#[derive(Default)]
pub struct EvtxTexts(Vec<Vec<u8>>);

/// Adds a text. Its bytes are copied, and need not be UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_texts_push(texts: Option<&mut EvtxTexts>, text: EvtxText<'_>) {
    release(|| texts.into_iter().for_each(|texts| texts.0.push(text.get().to_vec())));
}

/// The files of the engine, as callbacks for one call. Only `read_at` and `close` are called from other threads. No
/// callback may throw an exception.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxStorage {
    /// A pointer of the engine, which the callbacks with a `state` receive.
    pub state: *mut c_void,
    /// Pushes the paths of the files that match a pattern, or the reason of a failure.
    pub glob: unsafe extern "C" fn(state: *mut c_void, pattern: EvtxText<'_>, texts: &mut EvtxTexts) -> EvtxStorageCode,
    /// Writes to `exists` whether a path names a file.
    pub exists: unsafe extern "C" fn(
        state: *mut c_void,
        path: EvtxText<'_>,
        exists: &mut bool,
        texts: &mut EvtxTexts,
    ) -> EvtxStorageCode,
    /// Returns whether a file is remote: every read of it takes long.
    pub is_remote: unsafe extern "C" fn(state: *mut c_void, path: EvtxText<'_>) -> bool,
    /// Opens a file, which the core closes once. Writes a pointer for `read_at` and `close` to `file`, and its size in
    /// bytes to `size`.
    pub open: unsafe extern "C" fn(
        state: *mut c_void,
        path: EvtxText<'_>,
        file: &mut *mut c_void,
        size: &mut u64,
        texts: &mut EvtxTexts,
    ) -> EvtxStorageCode,
    /// Fills a buffer with the bytes of a file from an offset on. Threads can call it at the same time.
    pub read_at: unsafe extern "C" fn(
        file: *mut c_void,
        buffer: *mut u8,
        len: usize,
        offset: u64,
        texts: &mut EvtxTexts,
    ) -> EvtxStorageCode,
    /// Closes a file.
    pub close: unsafe extern "C" fn(file: *mut c_void),
    /// Returns whether the query was interrupted. It is called up to a million times a second.
    pub is_set: unsafe extern "C" fn(state: *mut c_void) -> bool,
}

impl EvtxStorage {
    /// Runs work with the storage and its interrupt.
    pub(crate) fn during<T>(self, work: impl FnOnce(&dyn Storage, Interrupt<'_>) -> T) -> T {
        // SAFETY: the callback takes this state, during the call that passed the storage.
        let is_set = || unsafe { (self.is_set)(self.state) };
        work(&Borrowed(self), Interrupt::new(&is_set))
    }
}

/// Runs a callback, and returns the texts that it has pushed.
fn call(callback: impl FnOnce(&mut EvtxTexts) -> EvtxStorageCode) -> Result<Vec<Vec<u8>>, StorageError> {
    let mut texts = EvtxTexts::default();
    match callback(&mut texts) {
        EvtxStorageCode::Done => Ok(texts.0),
        EvtxStorageCode::Interrupted => Err(Interrupted.into()),
        EvtxStorageCode::Failed => {
            let reason = texts.0.last().map(|text| String::from_utf8_lossy(text).into_owned());
            Err(StorageError::Failed(reason.unwrap_or_default()))
        }
    }
}

/// A storage during the call that passed it.
struct Borrowed(EvtxStorage);

impl Borrowed {
    /// The local files that match a pattern, with checks for an interrupt: DuckDB has none within a folder, and fails for a
    /// folder with a name that is not UTF-8. `None` if only DuckDB knows what the pattern means or whether it allows the files.
    fn walk(&self, pattern: &str, interrupt: Interrupt<'_>) -> Result<Option<Vec<Vec<u8>>>, StorageError> {
        let is_special =
            |text: &str| text.starts_with('~') || text.contains("://") || !cfg!(windows) && text.contains('\\');
        if !has_glob(pattern) || is_special(pattern) || self.is_remote(pattern) {
            return Ok(None);
        }
        // DuckDB's settings can forbid the files. DuckDB's own error then does not tell what is there.
        let is_forbidden = |path: &str| match self.exists(path) {
            Err(StorageError::Failed(_)) => Ok(true),
            allowed => allowed.map(|_| false),
        };
        if is_forbidden(pattern)? {
            return Ok(None);
        }
        let files = LocalStorage.glob(pattern, interrupt)?;
        for file in files.iter().filter_map(|file| std::str::from_utf8(file).ok()) {
            interrupt.check()?;
            if is_forbidden(file)? {
                return Ok(None);
            }
        }
        Ok(Some(files).filter(|files| !files.is_empty()))
    }
}

impl Storage for Borrowed {
    fn glob(&self, pattern: &str, interrupt: Interrupt<'_>) -> Result<Vec<Vec<u8>>, StorageError> {
        if let Some(files) = self.walk(pattern, interrupt)? {
            return Ok(files);
        }
        // SAFETY: as in `during`.
        call(|texts| unsafe { (self.0.glob)(self.0.state, EvtxText::of(pattern), texts) })
    }

    fn exists(&self, path: &str) -> Result<bool, StorageError> {
        let mut exists = false;
        // SAFETY: as in `during`.
        call(|texts| unsafe { (self.0.exists)(self.0.state, EvtxText::of(path), &mut exists, texts) })?;
        Ok(exists)
    }

    fn is_remote(&self, path: &str) -> bool {
        // SAFETY: as in `during`.
        unsafe { (self.0.is_remote)(self.0.state, EvtxText::of(path)) }
    }

    fn open(&self, path: &str) -> Result<Arc<dyn StorageFile>, StorageError> {
        let (mut file, mut size) = (std::ptr::null_mut(), 0);
        // SAFETY: as in `during`.
        call(|texts| unsafe { (self.0.open)(self.0.state, EvtxText::of(path), &mut file, &mut size, texts) })?;
        Ok(Arc::new(OpenFile {
            storage: self.0,
            file,
            size,
            path: path.to_owned(),
        }))
    }

    fn size(&self, path: &str) -> Result<u64, StorageError> {
        match std::fs::metadata(path) {
            Ok(local) if local.is_file() => Ok(local.len()),
            _ => self.open(path).map(|file| file.size()),
        }
    }
}

struct OpenFile {
    storage: EvtxStorage,
    file: *mut c_void,
    size: u64,
    path: String,
}

// SAFETY: any thread can read and close a file, as `EvtxStorage` says. Its state is not used for that.
unsafe impl Send for OpenFile {}
// SAFETY: likewise, several at once.
unsafe impl Sync for OpenFile {}

impl StorageFile for OpenFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn modified(&self) -> Option<Modified> {
        Modified::of(&std::fs::metadata(&self.path).ok()?)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        let (start, len) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: the file is open, and the buffer has `len` bytes.
        call(|texts| unsafe { (self.storage.read_at)(self.file, start, len, offset, texts) }).map(drop)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // SAFETY: the file was opened, and is closed once.
        unsafe { (self.storage.close)(self.file) };
    }
}
