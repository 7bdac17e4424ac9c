//! A storage of the files that were dropped on the page.

use std::collections::BTreeMap;
use std::sync::Arc;

use evtx_format::Interrupt;
use evtx_scan::{Storage, StorageError, StorageFile};
use glob::{MatchOptions, Pattern};

/// Reads from the file with a number, from so many bytes after its start on. Returns how many bytes it has read.
pub type Read = dyn Fn(u32, u64, &mut [u8]) -> usize + Send + Sync;

/// The files that were dropped, by their paths.
pub struct DroppedFiles {
    read: Arc<Read>,
    files: BTreeMap<String, (u32, u64)>,
}

/// A file that was dropped. Only the parts that are asked for are in memory.
struct DroppedFile {
    read: Arc<Read>,
    number: u32,
    size: u64,
}

impl DroppedFiles {
    /// No files yet.
    pub fn new(read: Box<Read>) -> Self {
        DroppedFiles {
            read: read.into(),
            files: BTreeMap::new(),
        }
    }

    /// Sets the files: their paths, and their sizes in bytes. Their numbers are their places in the list.
    pub fn set(&mut self, files: impl Iterator<Item = (String, u64)>) {
        self.files = (0..)
            .zip(files)
            .map(|(number, (path, size))| (path, (number, size)))
            .collect();
    }
}

impl Storage for DroppedFiles {
    fn glob(&self, pattern: &str, _interrupt: Interrupt<'_>) -> Result<Vec<Vec<u8>>, StorageError> {
        if self.files.contains_key(pattern) {
            return Ok(vec![pattern.as_bytes().to_vec()]);
        }
        let compiled = Pattern::new(pattern).map_err(|error| StorageError::Failed(format!("{pattern}: {error}")))?;
        let options = MatchOptions {
            require_literal_separator: true,
            ..MatchOptions::new()
        };
        let matching = self.files.keys().filter(|path| compiled.matches_with(path, options));
        Ok(matching.map(|path| path.clone().into_bytes()).collect())
    }

    fn exists(&self, path: &str) -> Result<bool, StorageError> {
        Ok(self.files.contains_key(path))
    }

    /// Every read asks the browser.
    fn is_remote(&self, _: &str) -> bool {
        false
    }

    fn open(&self, path: &str) -> Result<Arc<dyn StorageFile>, StorageError> {
        let known = self.files.get(path);
        let &(number, size) = known.ok_or_else(|| StorageError::Failed(format!("there is no file \"{path}\"")))?;
        let read = Arc::clone(&self.read);
        Ok(Arc::new(DroppedFile { read, number, size }))
    }
}

impl StorageFile for DroppedFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        let count = (self.read)(self.number, offset, buffer);
        if count == buffer.len() {
            return Ok(());
        }
        let end = offset + count as u64;
        let text = format!("the browser cannot read the file at byte {end}: it was moved, changed or closed");
        Err(StorageError::Failed(text))
    }
}
