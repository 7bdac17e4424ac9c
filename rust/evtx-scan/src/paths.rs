//! The files that a call reads.

use evtx_format::Interrupt;

use crate::storage::{ScanError, Storage};

/// A path that a call reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanPath {
    /// As text.
    pub path: String,
    /// Whether the caller named it, rather than a glob found it. What is no log is an error then, and a row otherwise.
    pub explicitly_named: bool,
    /// Whether its bytes are that text. If they are not UTF-8, there is nothing to open it by.
    pub is_text: bool,
}

fn has_glob(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

/// The files that a path, a glob, or a folder stands for, in the order of their paths. `function` is who asks.
///
/// # Errors
/// [`ScanError::NoFiles`] if there are none, [`ScanError::Input`] if the path is empty, and those of the storage.
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
        // A folder stands for the logs in it, as for DuckDB's own readers.
        found = storage.glob(&format!("{path}/**/*.[eE][vV][tT][xX]"))?;
        is_named = false;
        if found.is_empty() {
            // Fails with the reason why it cannot be read, if it cannot.
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
            // No query can name what is no text.
            explicitly_named: is_named && is_text,
            is_text,
        }
    });
    Ok(paths.collect())
}
