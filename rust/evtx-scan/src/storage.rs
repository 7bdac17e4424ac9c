//! Storages: where a scan finds and reads files; and the errors of a scan.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evtx_arrow::{DecodeError, Poisoned};
use evtx_format::{Interrupt, Interrupted};

/// How long a thread waits for another one before it looks for an interrupt.
pub(crate) const WAIT: Duration = Duration::from_millis(20);

/// Why a storage cannot do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The caller has interrupted the work.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The storage failed. Holds the reason, as a text for the user.
    #[error("{0}")]
    Failed(String),
    /// What an entry of an archive needs is held by others. It can be opened again when they are closed. This never
    /// leaves the crate.
    #[error("other entries that are open take the memory and the disk that are left")]
    Busy,
    /// An archive is damaged, or has what is not read. Holds the reason, as a text for the user.
    #[error("{0}")]
    Archive(String),
    /// A file is not as it was when the scan was planned, or could be read before and cannot be now. Every scan ends with
    /// it. Holds a text for the user that names the file.
    #[error("{0}")]
    Changed(String),
}

pub(crate) fn archive_error<T>(text: impl Into<String>) -> Result<T, StorageError> {
    Err(StorageError::Archive(text.into()))
}

/// Sorts as [`slice::sort_by`], and looks for an interrupt in between: runs are sorted, and then pairs of them, which the
/// sort of the standard library merges in linear time.
///
/// # Errors
/// [`Interrupted`]. The items are then in any order.
pub(crate) fn sort_by<T>(
    items: &mut [T],
    compare: impl Fn(&T, &T) -> Ordering,
    interrupt: Interrupt<'_>,
) -> Result<(), Interrupted> {
    let mut run = 1 << 14;
    loop {
        for run in items.chunks_mut(run) {
            interrupt.check()?;
            run.sort_by(&compare);
        }
        if run >= items.len() {
            return Ok(());
        }
        run *= 2;
    }
}

/// A place with files. A scan uses it from the calling thread, which can be another one for each call.
pub trait Storage {
    /// The paths of the files that match a pattern: `*`, `?` and `[..]`, and `**` for any number of folders. A path
    /// without these matches the file with that path. Paths are bytes, because file systems allow any.
    ///
    /// # Errors
    /// [`StorageError`] if the storage fails or is interrupted. It is not an error that no file matches.
    fn glob(&self, pattern: &str) -> Result<Vec<Vec<u8>>, StorageError>;

    /// Whether a path names a file.
    ///
    /// # Errors
    /// [`StorageError`] if the storage fails or is interrupted.
    fn exists(&self, path: &str) -> Result<bool, StorageError>;

    /// Whether the file with this path is remote: every read takes long, whatever its size.
    fn is_remote(&self, path: &str) -> bool;

    /// Opens a file.
    ///
    /// # Errors
    /// [`StorageError`] if the file cannot be opened, or cannot be read at offsets.
    fn open(&self, path: &str) -> Result<Arc<dyn StorageFile>, StorageError>;

    /// The size of a file in bytes, as the storage lists it.
    ///
    /// # Errors
    /// [`StorageError`] if the storage fails.
    fn size(&self, path: &str) -> Result<u64, StorageError> {
        self.open(path).map(|file| file.size())
    }
}

/// An open file. Several threads can read it at the same time.
pub trait StorageFile: Send + Sync {
    /// The size in bytes that the file had when it was opened.
    fn size(&self) -> u64;

    /// When the file was last modified, as it was opened. `None` if the storage cannot tell: nothing is then kept of it.
    fn modified(&self) -> Option<Modified> {
        None
    }

    /// Fills a buffer with the bytes from an offset on, in bytes from the start of the file.
    ///
    /// # Errors
    /// [`StorageError`] if not all of them can be read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError>;
}

/// When a file was last modified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modified {
    /// A number that is another if the file was modified since, in units of the storage.
    pub stamp: i64,
    /// How long ago it was.
    pub age: Duration,
}

/// Why a scan ends early.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The caller has interrupted the scan.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The arguments of the call cannot be used. The text says why.
    #[error("{0}")]
    Input(String),
    /// No file matches a path or glob. The text names it.
    #[error("{0}")]
    NoFiles(String),
    /// The storage failed for a file that the caller named. Holds the text of the storage.
    #[error("{0}")]
    Storage(String),
    /// A file that the caller named is not a log, or is damaged and the scan shall fail then. The text names the file.
    #[error("{0}")]
    File(String),
    /// The rows cannot be decoded.
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
            StorageError::Failed(text) | StorageError::Changed(text) => ScanError::Storage(text),
            StorageError::Archive(text) => ScanError::File(text),
            StorageError::Busy => ScanError::File(error.to_string()),
        }
    }
}

/// What each call gets from its caller: the storage, and the way to interrupt it.
#[derive(Clone, Copy)]
pub(crate) struct Call<'c> {
    pub(crate) storage: &'c dyn Storage,
    pub(crate) interrupt: Interrupt<'c>,
    pub(crate) last: &'c LastOpened,
}

/// The archive that was opened last. Its entries are read one after the other, and share the open file.
#[derive(Default)]
pub(crate) struct LastOpened(Mutex<Option<(String, Arc<dyn StorageFile>)>>);

impl LastOpened {
    pub(crate) fn open(&self, storage: &dyn Storage, path: &str) -> Result<Arc<dyn StorageFile>, StorageError> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, file)) = last.as_ref().filter(|(known, _)| known == path) {
            return Ok(Arc::clone(file));
        }
        let file = storage.open(path)?;
        *last = Some((path.to_owned(), Arc::clone(&file)));
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_items_are_sorted_unless_interrupted() {
        for len in [0_u32, 1, 16_384, 100_000] {
            let mut items: Vec<_> = (0..len).map(|i| (i.wrapping_mul(2_654_435_761) >> 20, i)).collect();
            let mut expected = items.clone();
            expected.sort();
            sort_by(&mut items, |a, b| a.0.cmp(&b.0), Interrupt::NEVER).expect("no interrupt");
            assert!(items == expected, "{len} items, the same ones in their order");
        }
        let looks = std::cell::Cell::new(0);
        let is_set = || looks.replace(looks.get() + 1) == 5;
        let sorted = sort_by(&mut [0; 100_000], |a, b| b.cmp(a), Interrupt::new(&is_set));
        assert_eq!((sorted, looks.get()), (Err(Interrupted), 6));
    }
}
