//! What a scan asks of the place where files are.

use std::sync::Arc;

use evtx_arrow::{DecodeError, Poisoned};
use evtx_format::{Interrupt, Interrupted};

/// Why a storage does not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The caller wants no more.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// It cannot, for this reason.
    #[error("{0}")]
    Failed(String),
}

/// Where files are. It is used from the thread that calls, which may be another one each time.
pub trait Storage {
    /// The paths of the files that a pattern stands for, with `*`, `?`, `[..]`, and `**` for any number of folders. A
    /// path without these stands for the file that it names, if there is one. Paths are bytes, as file systems have
    /// them.
    ///
    /// # Errors
    /// [`StorageError`]; no file is none.
    fn glob(&self, pattern: &str) -> Result<Vec<Vec<u8>>, StorageError>;

    /// Whether a path names a file.
    ///
    /// # Errors
    /// [`StorageError`].
    fn exists(&self, path: &str) -> Result<bool, StorageError>;

    /// Whether a read takes long, whatever its size.
    fn is_remote(&self, path: &str) -> bool;

    /// Opens a file.
    ///
    /// # Errors
    /// [`StorageError`] if it cannot be read at offsets.
    fn open(&self, path: &str) -> Result<Arc<dyn StorageFile>, StorageError>;
}

/// A file that was opened. Threads can read it at once.
pub trait StorageFile: Send + Sync {
    /// Its size in bytes, when it was opened.
    fn size(&self) -> u64;

    /// Fills a buffer with the bytes from an offset on.
    ///
    /// # Errors
    /// [`StorageError`] if they are not all there.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError>;
}

/// Why a scan ends early.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The caller wants no more.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// What was asked for cannot be: the text says why.
    #[error("{0}")]
    Input(String),
    /// There are no such files.
    #[error("{0}")]
    NoFiles(String),
    /// The storage fails at a file that the caller named.
    #[error("{0}")]
    Storage(String),
    /// A file that the caller named is no log, or a scan fails at damage. The text names the file.
    #[error("{0}")]
    File(String),
    /// The rows cannot be made.
    #[error(transparent)]
    Decode(DecodeError),
}

impl From<DecodeError> for ScanError {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Interrupted(interrupted) => ScanError::Interrupted(interrupted),
            DecodeError::Damaged(text) => ScanError::File(text),
            other => ScanError::Decode(other),
        }
    }
}

impl From<Poisoned> for ScanError {
    fn from(poisoned: Poisoned) -> Self {
        ScanError::Decode(poisoned.into())
    }
}

impl From<StorageError> for ScanError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Interrupted(interrupted) => ScanError::Interrupted(interrupted),
            StorageError::Failed(text) => ScanError::Storage(text),
        }
    }
}

/// What a call works with: the storage, and whether to go on.
#[derive(Clone, Copy)]
pub(crate) struct Call<'c> {
    pub(crate) storage: &'c dyn Storage,
    pub(crate) interrupt: Interrupt<'c>,
}
