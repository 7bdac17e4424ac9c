//! A file that a call reads, and what becomes of a failure to read it.

use std::ops::Range;
use std::sync::Arc;

use crate::skipped::advice_on_other;
use crate::storage::{ALL_READ, Call, Holds, NestedFile, OpenFile, ScanError, Storage, StorageError};

/// The path of a file that a call reads.
#[derive(Debug, Clone)]
pub struct ScanPath {
    /// The path as text. U+FFFD replaces bytes that are not UTF-8.
    pub path: String,
    /// Whether the caller named the file: if it is not a log, that is then an error, and otherwise a row.
    pub explicitly_named: bool,
    pub(crate) source: Source,
    /// What of the file is read; `None` for all of it.
    pub(crate) split: Option<FileSplit>,
}

/// A share of a file, as it was planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSplit {
    /// The size of the file in bytes when the split was planned. A file that is smaller when it is read is an error.
    pub size: u64,
    /// The slots of 64 KiB after the file header that are read; `None` for the whole file. The split with slot 0
    /// reports what is wrong with the file as a whole.
    pub slots: Option<Range<u64>>,
}

impl FileSplit {
    /// Whether the split reports what is wrong with the file as a whole.
    pub(crate) fn is_first(&self) -> bool {
        self.slots.as_ref().is_none_or(|slots| slots.start == 0)
    }
}

/// Where the bytes of a file are.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// In the file of the storage with the path.
    File,
    /// In another file.
    Nested(Arc<dyn NestedFile>),
    /// They cannot be read, for this reason.
    Unreadable(Arc<str>),
    /// They are not read, and what to do about that.
    Skipped(Box<Source>, &'static str),
}

impl ScanPath {
    pub(crate) fn new(path: String, explicitly_named: bool, source: Source) -> Self {
        ScanPath {
            path,
            explicitly_named,
            source,
            split: None,
        }
    }

    /// A file of the storage that the caller named.
    pub fn named(path: &str) -> Self {
        ScanPath::new(path.to_owned(), true, Source::File)
    }

    /// A split of a file of the storage.
    pub fn of_split(path: String, explicitly_named: bool, split: FileSplit) -> Self {
        ScanPath {
            split: Some(split),
            ..ScanPath::new(path, explicitly_named, Source::File)
        }
    }

    /// The file that `make` makes of this one, at the same path. Not of one that cannot be read.
    pub fn made(self, make: impl FnOnce(ScanPath) -> Arc<dyn NestedFile>) -> Self {
        match self.source {
            Source::Unreadable(_) | Source::Skipped(..) => self,
            Source::File | Source::Nested(_) => {
                ScanPath::new(self.path.clone(), self.explicitly_named, Source::Nested(make(self)))
            }
        }
    }

    /// A file of the storage, or one in another file, that was found.
    pub fn found(path: String, nested: Option<Arc<dyn NestedFile>>) -> Self {
        ScanPath::new(path, false, nested.map_or(Source::File, Source::Nested))
    }

    /// A file that was found and cannot be read, for this reason.
    pub fn unreadable(path: String, why: &str) -> Self {
        ScanPath::new(path, false, Source::Unreadable(why.into()))
    }

    /// Why the file cannot be read, if that is known without a look at it.
    pub fn why_unreadable(&self) -> Option<&str> {
        match &self.source {
            Source::Unreadable(why) => Some(why),
            Source::Skipped(_, why) => Some(why),
            _ => None,
        }
    }

    /// Whether the file is in another one, or made of one.
    pub fn is_nested(&self) -> bool {
        self.nested().is_some()
    }

    /// The file, if it is in another one, or made of one.
    pub fn nested(&self) -> Option<&Arc<dyn NestedFile>> {
        match &self.source {
            Source::Nested(file) => Some(file),
            _ => None,
        }
    }

    /// The path of the file of the storage: of a nested file that of the outer one.
    pub fn storage_path(&self) -> &str {
        match &self.source {
            Source::Nested(file) => file.outer(),
            _ => &self.path,
        }
    }

    /// About how many bytes the file has: `of_remote` if it is remote. Nothing is read of it.
    ///
    /// # Errors
    /// [`StorageError`] if it cannot be opened.
    pub fn size(&self, storage: &dyn Storage, of_remote: u64) -> Result<u64, StorageError> {
        let source = match &self.source {
            Source::Skipped(source, _) => source,
            source => source,
        };
        match source {
            Source::Unreadable(why) => Err(StorageError::Unusable(why.to_string())),
            _ if storage.is_remote(self.storage_path()) => Ok(of_remote),
            Source::Nested(file) => file.estimate(storage),
            Source::File | Source::Skipped(..) => storage.size(&self.path),
        }
    }

    /// About how many bytes a file has that is only reported; 0 for others, and if it is remote.
    pub fn size_if_skipped(&self, storage: &dyn Storage) -> u64 {
        match self.source {
            Source::Skipped(..) => self.size(storage, 0).unwrap_or(0),
            _ => 0,
        }
    }

    /// Opens the file.
    ///
    /// # Errors
    /// [`StorageError`] if nothing of it can be read.
    pub fn open(&self, call: Call<'_>) -> Result<OpenFile, StorageError> {
        match &self.source {
            Source::File => Ok(OpenFile {
                is_remote: call.storage.is_remote(&self.path),
                file: call.storage.open(&self.path)?,
                failure: None,
            }),
            Source::Nested(file) => file.open(call),
            Source::Unreadable(why) => Err(StorageError::Unusable(why.to_string())),
            Source::Skipped(_, why) => Err(StorageError::Unusable((*why).to_owned())),
        }
    }

    /// What becomes of a failure to read the file: a text for its row.
    ///
    /// # Errors
    /// [`ScanError`] if the caller named the file, or has interrupted the work.
    pub fn failure(&self, error: StorageError) -> Result<String, ScanError> {
        match error {
            StorageError::Unusable(why) if matches!(self.source, Source::Skipped(..)) => Ok(format!("not read: {why}")),
            StorageError::Unusable(why) if !self.explicitly_named && why.starts_with(ALL_READ) => Ok(why),
            StorageError::Failed(why) | StorageError::Unusable(why) if !self.explicitly_named => {
                Ok(format!("cannot be read: {why}"))
            }
            StorageError::Unusable(why) => self.unusable(why),
            error => Err(error.into()),
        }
    }

    /// What becomes of a file that is not what it should be: a text for its row.
    ///
    /// # Errors
    /// [`ScanError::Refused`] if the caller named the file.
    pub fn unusable(&self, why: String) -> Result<String, ScanError> {
        let path = self.path.clone();
        if self.explicitly_named {
            Err(ScanError::Refused { path, why })
        } else {
            Ok(why)
        }
    }

    /// What becomes of a file that is not a log: a text for its row.
    ///
    /// # Errors
    /// [`ScanError::Refused`] with advice if the caller named the file.
    pub fn not_a_log(&self, why: String) -> Result<String, ScanError> {
        match advice_on_other(&self.path).filter(|_| self.explicitly_named) {
            Some(advice) => self.unusable(format!("{why}; {advice}")),
            None => self.unusable(why),
        }
    }

    /// The same for a report on files, which has advice on what a glob has found, too.
    ///
    /// # Errors
    /// [`ScanError::Refused`] with advice if the caller named the file.
    pub fn not_a_log_in_report(&self, why: String, storage: &dyn Storage) -> Result<String, ScanError> {
        let name = match storage.nesting().holds(&self.path) {
            Holds::File(inner) => inner,
            Holds::Bytes | Holds::Folder => &self.path,
        };
        match advice_on_other(name).filter(|_| !self.explicitly_named) {
            Some(advice) => Ok(format!("not read: {advice}")),
            None => self.not_a_log(why),
        }
    }

    /// What becomes of damage to a file that can be read in part: a text for its row, also if the caller named it.
    ///
    /// # Errors
    /// [`ScanError`] if the storage failed for a file that the caller named, or the caller has interrupted the work.
    pub fn damage(&self, error: StorageError) -> Result<String, ScanError> {
        match error {
            StorageError::Unusable(why) => Ok(format!("cannot be read: {why}")),
            error => self.failure(error),
        }
    }
}
