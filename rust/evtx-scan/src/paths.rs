//! The paths of the files that a call reads.

use evtx_format::Interrupt;

use crate::storage::{ScanError, Storage};

/// The path of a file that a call reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanPath {
    /// The path as text. U+FFFD replaces bytes that are not UTF-8.
    pub path: String,
    /// Whether the caller named the file. If it is not a log, that is an error. False if a glob found the file: then it
    /// becomes a row that says what is wrong.
    pub explicitly_named: bool,
    /// Whether the path is UTF-8. If not, the file cannot be opened, because a storage opens files by their text.
    pub is_text: bool,
}

fn has_glob(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

/// The files that a path, a glob, or a folder stands for, sorted by path. `function` is the name of the SQL function,
/// for errors.
///
/// # Errors
/// [`ScanError::NoFiles`] if there are none, [`ScanError::Input`] if the path is empty, [`ScanError::Interrupted`],
/// and the errors of the storage.
pub fn expand(
    storage: &dyn Storage,
    path: &str,
    function: &str,
    interrupt: Interrupt<'_>,
) -> Result<Vec<ScanPath>, ScanError> {
    interrupt.check()?;
    if path.is_empty() {
        return Err(ScanError::Input(format!("{function} cannot take an empty path")));
    }
    let is_glob = has_glob(path);
    let mut is_named = !is_glob || storage.exists(path)?;
    let mut found = storage.glob(path)?;
    if found.is_empty() && !is_glob {
        // A folder stands for all logs in it and in its subfolders, as in DuckDB's own readers.
        found = storage.glob(&format!("{path}/**/*.[eE][vV][tT][xX]"))?;
        is_named = false;
        if found.is_empty() {
            // If the path cannot be read, this fails with the reason.
            storage.open(path)?;
        }
    }
    if found.is_empty() {
        let text = format!("No files found that match the pattern \"{path}\"");
        return Err(ScanError::NoFiles(text));
    }
    found.sort_unstable();
    let paths = found.into_iter().map(|bytes| {
        let (path, is_text) = match String::from_utf8(bytes) {
            Ok(path) => (path, true),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), false),
        };
        ScanPath {
            path,
            // A query is UTF-8, so it cannot have named such a path.
            explicitly_named: is_named && is_text,
            is_text,
        }
    });
    Ok(paths.collect())
}
