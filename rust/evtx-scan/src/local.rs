//! A storage of the files of this machine.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use crate::storage::{Modified, Storage, StorageError, StorageFile};

/// A storage of the files of this machine, by the paths of its file systems.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalStorage;

/// An open file of this machine.
pub(crate) struct LocalFile {
    file: File,
    size: u64,
    modified: Option<Modified>,
}

impl LocalFile {
    pub(crate) fn new(file: File, size: u64) -> Self {
        LocalFile {
            file,
            size,
            modified: None,
        }
    }
}

fn failed(path: &str, error: impl std::fmt::Display) -> StorageError {
    StorageError::Failed(format!("Cannot read \"{path}\": {error}"))
}

fn modified(time: SystemTime) -> Option<Modified> {
    let since_epoch = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(Modified {
        stamp: i64::try_from(since_epoch.as_nanos()).ok()?,
        age: time.elapsed().ok()?,
    })
}

impl Storage for LocalStorage {
    fn glob(&self, pattern: &str) -> Result<Vec<Vec<u8>>, StorageError> {
        if Path::new(pattern).is_file() {
            return Ok(vec![pattern.as_bytes().to_vec()]);
        }
        let paths = glob::glob(pattern).map_err(|error| failed(pattern, error))?;
        let files = paths.filter_map(Result::ok).filter(|path| path.is_file());
        Ok(files.map(|path| path.into_os_string().into_encoded_bytes()).collect())
    }

    fn exists(&self, path: &str) -> Result<bool, StorageError> {
        Ok(Path::new(path).is_file())
    }

    fn is_remote(&self, _path: &str) -> bool {
        false
    }

    fn open(&self, path: &str) -> Result<Arc<dyn StorageFile>, StorageError> {
        let kind = std::fs::metadata(path).map_err(|error| failed(path, error))?;
        if !kind.is_file() {
            // To open a pipe would block until a process writes to it.
            return Err(failed(path, "it is not a regular file"));
        }
        let file = File::open(path).map_err(|error| failed(path, error))?;
        Ok(Arc::new(LocalFile {
            file,
            size: kind.len(),
            modified: kind.modified().ok().and_then(modified),
        }))
    }
}

impl StorageFile for LocalFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn modified(&self) -> Option<Modified> {
        self.modified
    }

    #[cfg(unix)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        let read = std::os::unix::fs::FileExt::read_exact_at(&self.file, buffer, offset);
        read.map_err(|error| StorageError::Failed(error.to_string()))
    }

    #[cfg(windows)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            match std::os::windows::fs::FileExt::seek_read(&self.file, &mut buffer[done..], at) {
                Ok(0) => return Err(StorageError::Failed("the file ends before its size".to_owned())),
                Ok(count) => done += count,
                Err(error) => return Err(StorageError::Failed(error.to_string())),
            }
        }
        Ok(())
    }
}
