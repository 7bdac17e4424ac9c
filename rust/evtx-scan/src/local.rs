//! A storage of the files of this machine.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use evtx_format::{Interrupt, Interrupted};

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

    fn size(&self, path: &str) -> Result<u64, StorageError> {
        let kind = std::fs::metadata(path).map_err(|error| failed(path, error))?;
        Ok(kind.len())
    }
}

/// What a glob of this machine's files cannot look at, with the reasons: folders that cannot be listed, and links to
/// nothing whose names match. A glob leaves them out without a word. `**` does not follow links to folders, as in DuckDB.
///
/// # Errors
/// [`Interrupted`].
pub(crate) fn out_of_reach(
    glob: &str,
    is_wanted: &dyn Fn(&str) -> bool,
    interrupt: Interrupt<'_>,
) -> Result<BTreeMap<String, String>, Interrupted> {
    let mut found = BTreeMap::new();
    let parts: Vec<&str> = glob.strip_prefix("file://").unwrap_or(glob).split('/').collect();
    let patterns: Result<Vec<_>, _> = parts.iter().map(|part| glob::Pattern::new(part)).collect();
    let Ok(patterns) = patterns else {
        return Ok(found);
    };
    // Folders, with the slash behind them, and which part of the glob comes next.
    let mut folders = vec![(String::new(), 0)];
    while let Some((folder, at)) = folders.pop() {
        let (is_last, is_deep) = (at + 1 == parts.len(), parts[at] == "**");
        if !parts[at].contains(['*', '?', '[']) && !is_last {
            folders.push((format!("{folder}{}/", parts[at]), at + 1));
            continue;
        }
        if is_deep && !is_last {
            folders.push((folder.clone(), at + 1));
        }
        let path = if folder.is_empty() { "." } else { &folder };
        let entries = match std::fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) => {
                if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
                    found.insert(folder.trim_end_matches('/').to_owned(), error.to_string());
                }
                continue;
            }
        };
        for entry in entries {
            interrupt.check()?;
            let Ok(entry) = entry else { continue };
            let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else {
                continue;
            };
            let is_match = || patterns[at].matches_with(&name, ANY_CASE);
            if is_last {
                if kind.is_symlink()
                    && is_match()
                    && is_wanted(&name)
                    && let Err(error) = std::fs::metadata(entry.path())
                {
                    found.insert(
                        format!("{folder}{name}"),
                        format!("it is a link, and where it leads: {error}"),
                    );
                }
            } else if is_deep && kind.is_dir() {
                folders.push((format!("{folder}{name}/"), at));
            } else if !is_deep && patterns[at].matches(&name) && entry.path().is_dir() {
                folders.push((format!("{folder}{name}/"), at + 1));
            }
        }
    }
    Ok(found)
}

const ANY_CASE: glob::MatchOptions = glob::MatchOptions {
    case_sensitive: false,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

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
