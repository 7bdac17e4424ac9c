//! A storage of the files of this machine.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use evtx_format::{Interrupt, Interrupted};
use glob::{MatchOptions, Pattern, PatternError};

use crate::globs::split_verbatim;
use crate::storage::{Modified, Storage, StorageError, StorageFile, separator, separators};

/// A storage of the files of this machine, by the paths of its file systems.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalStorage;

/// An open file of this machine.
pub struct LocalFile {
    file: File,
    size: u64,
}

impl LocalFile {
    /// A file with a size in bytes.
    pub fn new(file: File, size: u64) -> Self {
        LocalFile { file, size }
    }
}

fn failed(path: &str, error: impl std::fmt::Display) -> StorageError {
    StorageError::Failed(format!("Cannot read \"{path}\": {error}"))
}

impl Storage for LocalStorage {
    fn glob(&self, pattern: &str, interrupt: Interrupt<'_>) -> Result<Vec<Vec<u8>>, StorageError> {
        if Path::new(pattern).is_file() {
            return Ok(vec![pattern.as_bytes().to_vec()]);
        }
        let walk = Walk::new(pattern, MatchOptions::new(), true).map_err(|error| failed(pattern, error))?;
        let mut files = Vec::new();
        walk.visit(interrupt, &mut |path, found| {
            if matches!(found, Visited::File) {
                files.push(path.into_os_string().into_encoded_bytes());
            }
        })?;
        Ok(files)
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
            // Opening a pipe would block until a process writes to it.
            return Err(failed(path, "it is not a regular file"));
        }
        let file = File::open(path).map_err(|error| failed(path, error))?;
        Ok(Arc::new(LocalFile::new(file, kind.len())))
    }

    fn size(&self, path: &str) -> Result<u64, StorageError> {
        let kind = std::fs::metadata(path).map_err(|error| failed(path, error))?;
        Ok(kind.len())
    }
}

/// Paths that an engine's glob of local files may silently omit, each with the reason: folders that cannot be listed,
/// and broken links whose names match. Files without a reason can be read: some globs miss paths with a backslash.
///
/// # Errors
/// [`Interrupted`].
pub(crate) fn out_of_reach(
    glob: &str,
    is_wanted: &dyn Fn(&str) -> bool,
    interrupt: Interrupt<'_>,
) -> Result<BTreeMap<String, Option<String>>, Interrupted> {
    let mut reasons = BTreeMap::new();
    let any_case = MatchOptions {
        case_sensitive: false,
        ..MatchOptions::new()
    };
    let Ok(walk) = Walk::new(glob.strip_prefix("file://").unwrap_or(glob), any_case, false) else {
        return Ok(reasons);
    };
    walk.visit(interrupt, &mut |path, found| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let reason = match found {
            Visited::BrokenLink(error) if is_wanted(&name) => {
                Some(format!("it is a link, and where it leads: {error}"))
            }
            Visited::ClosedFolder(error) => Some(error.to_string()),
            Visited::File if is_wanted(&name) && path.to_str().is_some_and(|path| path.contains('\\')) => None,
            _ => return,
        };
        reasons.insert(
            path.to_string_lossy().trim_end_matches(separators(false)).to_owned(),
            reason,
        );
    })?;
    Ok(reasons)
}

/// A walk over what a glob names. `**` does not follow links to folders, so that links in a circle end.
struct Walk {
    /// How the path starts, if it is a verbatim one of Windows.
    start: OsString,
    /// The separator between the folders of paths.
    slash: &'static str,
    /// The patterns between the slashes, each with its text.
    parts: Vec<(Pattern, String)>,
    /// How the names of files match. In Windows, those of folders match in any case.
    options: MatchOptions,
    /// Whether it visits all files, not only those whose paths have a backslash.
    has_files: bool,
}

/// What a walk finds at a path.
enum Visited {
    /// A file, or a link to one.
    File,
    /// A link to nothing.
    BrokenLink(io::Error),
    /// A folder that cannot be listed.
    ClosedFolder(io::Error),
}

impl Walk {
    fn new(glob: &str, options: MatchOptions, has_files: bool) -> Result<Self, PatternError> {
        let (start, rest) = split_verbatim(glob);
        // `**` beside other letters is the same as `*`.
        let parts = rest.split(separators(false)).map(|part| match part {
            "**" => part.to_owned(),
            _ => single_stars(part),
        });
        let parts = parts.map(|part| Ok((Pattern::new(&part)?, part)));
        Ok(Walk {
            start: start.into(),
            slash: if separator(glob, separators(false)) == '/' {
                "/"
            } else {
                "\\"
            },
            parts: parts.collect::<Result<_, _>>()?,
            options,
            has_files,
        })
    }

    /// Calls `tell` for each find, in any order. A name that is not UTF-8 is matched by its lossy text.
    fn visit(&self, interrupt: Interrupt<'_>, tell: &mut dyn FnMut(PathBuf, Visited)) -> Result<(), Interrupted> {
        let folder_options = MatchOptions {
            case_sensitive: !cfg!(windows),
            ..MatchOptions::new()
        };
        // Folders, with a slash at the end, and the index of the next pattern.
        let mut folders = vec![(self.start.clone(), 0)];
        while let Some((folder, at)) = folders.pop() {
            let (pattern, text) = &self.parts[at];
            let (is_last, is_deep) = (at + 1 == self.parts.len(), text == "**");
            if !text.contains(['*', '?', '[']) && !is_last {
                folders.push((joined(&folder, text, self.slash), at + 1));
                continue;
            }
            let is_in_odd = !self.has_files && has_backslash(&folder);
            if is_deep && !is_last {
                folders.push((folder.clone(), at + 1));
            }
            let entries = match std::fs::read_dir(if folder.is_empty() { OsStr::new(".") } else { &folder }) {
                Ok(entries) => entries,
                Err(error) => {
                    if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
                        tell(folder.into(), Visited::ClosedFolder(error));
                    }
                    continue;
                }
            };
            for entry in entries {
                interrupt.check()?;
                let Ok(entry) = entry else { continue };
                let Ok(kind) = entry.file_type() else { continue };
                let name = entry.file_name();
                if kind.is_file() && !self.has_files && !is_in_odd && !has_backslash(&name) {
                    continue;
                }
                if is_last && !(is_deep && kind.is_dir()) {
                    if kind.is_dir() || !pattern.matches_with(&name.to_string_lossy(), self.options) {
                        continue;
                    }
                    let path = PathBuf::from(joined(&folder, &name, ""));
                    match kind.is_symlink().then(|| std::fs::metadata(&path)) {
                        None if kind.is_file() => tell(path, Visited::File),
                        Some(Ok(leads)) if leads.is_file() => tell(path, Visited::File),
                        Some(Err(error)) => tell(path, Visited::BrokenLink(error)),
                        _ => {}
                    }
                } else if is_deep && kind.is_dir() {
                    folders.push((joined(&folder, &name, self.slash), at));
                } else if !is_deep
                    && pattern.matches_with(&name.to_string_lossy(), folder_options)
                    && entry.path().is_dir()
                {
                    folders.push((joined(&folder, &name, self.slash), at + 1));
                }
            }
        }
        Ok(())
    }
}

/// A pattern with one `*` for several in a row.
pub fn single_stars(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    for letter in part.chars() {
        if letter != '*' || !out.ends_with('*') {
            out.push(letter);
        }
    }
    out
}

fn has_backslash(path: &OsStr) -> bool {
    !cfg!(windows) && path.as_encoded_bytes().contains(&b'\\')
}

fn joined(folder: &OsStr, name: impl AsRef<OsStr>, end: &str) -> OsString {
    let mut path = folder.to_owned();
    path.push(name);
    path.push(end);
    path
}

impl StorageFile for LocalFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn modified(&self) -> Option<Modified> {
        Modified::of(&self.file.metadata().ok()?)
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

    /// A platform without files, such as WebAssembly in a browser.
    #[cfg(not(any(unix, windows)))]
    fn read_at(&self, _: &mut [u8], _: u64) -> Result<(), StorageError> {
        Err(StorageError::Failed(ErrorKind::Unsupported.to_string()))
    }
}
