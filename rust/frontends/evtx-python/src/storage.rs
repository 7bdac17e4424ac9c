//! A storage over Python's file systems. The Python part wraps those of `pyarrow.fs` and fsspec in a `Files`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evtx_format::{Interrupt, Interrupted};
use evtx_scan::{LocalStorage, Storage, StorageError, StorageFile};
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

use crate::signals::Signals;

/// The file system of a scan.
#[derive(Clone)]
pub(crate) enum Files {
    /// That of this machine.
    Local,
    /// A file system of Python.
    Python(Arc<PythonFiles>),
}

impl Files {
    /// Does `work` with the storage. An interrupt in a call of Python goes to `signals`.
    pub(crate) fn with<T>(&self, signals: &Arc<Signals>, work: impl FnOnce(&dyn Storage) -> T) -> T {
        match self {
            Files::Local => work(&LocalStorage),
            Files::Python(files) => work(&PythonStorage {
                files: Arc::clone(files),
                signals: Arc::clone(signals),
            }),
        }
    }

    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Files::Local)
    }
}

/// A file system of Python, and the sizes that it has listed.
pub(crate) struct PythonFiles {
    files: Py<PyAny>,
    /// The listed sizes of files, in bytes.
    sizes: Mutex<HashMap<String, u64>>,
    /// The exception of the last failed call.
    failure: Mutex<Option<PyErr>>,
}

impl PythonFiles {
    pub(crate) fn new(files: Py<PyAny>) -> Self {
        PythonFiles {
            files,
            sizes: Mutex::default(),
            failure: Mutex::default(),
        }
    }

    /// The exception of the last failed call. Returns it once.
    pub(crate) fn take_failure(&self) -> Option<PyErr> {
        locked(&self.failure).take()
    }

    /// Keeps the size of a file.
    pub(crate) fn know_size(&self, path: String, size: u64) {
        locked(&self.sizes).insert(path, size);
    }

    fn known_size(&self, path: &str) -> Option<u64> {
        locked(&self.sizes).get(path).copied()
    }
}

/// Locks what each change leaves sound, even if a thread panicked.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct PythonStorage {
    files: Arc<PythonFiles>,
    signals: Arc<Signals>,
}

/// An open file. It is closed when Python frees it.
struct PythonFile {
    path: String,
    file: Py<PyAny>,
    size: u64,
    /// Whether a read has succeeded.
    has_read: AtomicBool,
    storage: PythonStorage,
}

impl PythonStorage {
    /// Calls Python.
    fn call<T>(&self, path: &str, call: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<T>) -> Result<T, StorageError> {
        let called = Python::try_attach(|py| {
            call(py, &self.files.files).map_err(|error| {
                if !error.is_instance_of::<PyException>(py) {
                    self.signals.set(error);
                    return StorageError::Interrupted(Interrupted);
                }
                let text = format!("Cannot read \"{path}\": {error}");
                *locked(&self.files.failure) = Some(error);
                StorageError::Failed(text)
            })
        });
        called.unwrap_or(Err(StorageError::Interrupted(Interrupted)))
    }

    /// Lists the files in a folder, and in its subfolders if `is_deep`.
    fn list(&self, folder: &str, is_deep: bool) -> Result<Vec<(String, u64)>, StorageError> {
        self.call(folder, |py, files| {
            files.call_method1(py, "list", (folder, is_deep))?.extract(py)
        })
    }
}

impl Storage for PythonStorage {
    fn glob(&self, pattern: &str, _interrupt: Interrupt<'_>) -> Result<Vec<Vec<u8>>, StorageError> {
        let Some(wildcard) = pattern.find(['*', '?', '[']) else {
            let exists = self.exists(pattern)?;
            return Ok(exists.then(|| pattern.as_bytes().to_vec()).into_iter().collect());
        };
        let compiled =
            glob::Pattern::new(pattern).map_err(|error| StorageError::Failed(format!("{pattern}: {error}")))?;
        let folder = pattern[..wildcard].rfind('/').map_or(0, |slash| slash + 1);
        let (folder, rest) = pattern.split_at(folder);
        let listed = self.list(folder, rest.contains('/') || rest.contains("**"))?;
        let options = glob::MatchOptions {
            require_literal_separator: true,
            ..glob::MatchOptions::new()
        };
        let matching = listed
            .into_iter()
            .filter(|(path, _)| compiled.matches_with(path, options));
        Ok(matching
            .map(|(path, size)| {
                self.files.know_size(path.clone(), size);
                path.into_bytes()
            })
            .collect())
    }

    fn exists(&self, path: &str) -> Result<bool, StorageError> {
        if self.files.known_size(path).is_some() {
            return Ok(true);
        }
        let size: Option<u64> = self.call(path, |py, files| files.call_method1(py, "size", (path,))?.extract(py))?;
        if let Some(size) = size {
            self.files.know_size(path.to_owned(), size);
        }
        Ok(size.is_some())
    }

    fn is_remote(&self, _path: &str) -> bool {
        true
    }

    fn open(&self, path: &str) -> Result<Arc<dyn StorageFile>, StorageError> {
        let known = self.files.known_size(path);
        let (file, size) = self.call(path, |py, files| {
            files
                .call_method1(py, "open", (path, known))?
                .extract::<(Py<PyAny>, u64)>(py)
        })?;
        Ok(Arc::new(PythonFile {
            path: path.to_owned(),
            file,
            size,
            has_read: AtomicBool::new(false),
            storage: PythonStorage {
                files: Arc::clone(&self.files),
                signals: Arc::clone(&self.signals),
            },
        }))
    }

    fn size(&self, path: &str) -> Result<u64, StorageError> {
        if !self.exists(path)? {
            return Err(StorageError::Failed(format!("Cannot read \"{path}\": no such file")));
        }
        Ok(self.files.known_size(path).unwrap_or(0))
    }
}

impl StorageFile for PythonFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        let (len, mut is_short) = (buffer.len(), false);
        let read = self.storage.call(&self.path, |py, _| {
            let bytes = self.file.call_method1(py, "read", (offset, len))?;
            let bytes: &[u8] = bytes.extract(py)?;
            let (path, found) = (&self.path, bytes.len());
            if found > len {
                let text = format!("{path}: the file system returned {found} bytes where {len} were asked for");
                return Err(PyValueError::new_err(text));
            }
            if found < len {
                is_short = true;
                let text = format!(
                    "{path} ends at byte {}, before byte {}",
                    offset + found as u64,
                    offset + len as u64
                );
                return Err(pyo3::exceptions::PyEOFError::new_err(text));
            }
            buffer.copy_from_slice(bytes);
            Ok(())
        });
        let was_read = self.has_read.fetch_or(read.is_ok(), Ordering::Relaxed);
        // A file whose first read fails becomes a row. Later, rows have left already, and the caller may try again.
        read.map_err(|error| match error {
            StorageError::Failed(why) if was_read || is_short => StorageError::Changed(why),
            error => error,
        })
    }
}
