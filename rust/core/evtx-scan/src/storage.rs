//! Storages: where a scan finds and reads files, and the errors of a scan.

use std::cmp::Ordering;
use std::fmt;
use std::fmt::Debug;
use std::fs::Metadata;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use evtx_arrow::{DecodeError, Doubt};
use evtx_format::{Interrupt, Interrupted, printable};

/// How long a thread waits for another one before it checks for an interrupt.
pub const WAIT: Duration = Duration::from_millis(20);

/// Results are kept of files that were modified longer ago. A later change might not change the time.
pub const SETTLED: Duration = Duration::from_secs(3);

/// Why a storage cannot do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The caller interrupted the work.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The storage failed. Holds the reason, as a text for the user.
    #[error("{0}")]
    Failed(String),
    /// The content of a file is damaged, or of a kind that cannot be read. Holds the reason, as a text for the user.
    #[error("{0}")]
    Unusable(String),
    /// A file differs from the file that was planned, or could be read before and cannot be read now. It ends every
    /// scan. Holds a text for the user that names the file.
    #[error("{0}")]
    Changed(String),
}

/// Sorts like [`slice::sort_by`], and checks for an interrupt in between. Sorts short runs first and then pairs of
/// runs, which the standard library merges in linear time.
///
/// # Errors
/// [`Interrupted`]. The items are then in any order.
pub fn sort_by<T>(
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

/// A file system, local or remote. A scan uses it from the calling thread, which can be another one for each call.
pub trait Storage {
    /// The paths of the files that match a pattern: `*`, `?` and `[..]`, and `**` for any number of folders. A path
    /// without these matches the file with that path. Paths are bytes, because file systems allow any.
    ///
    /// # Errors
    /// [`StorageError`] if the storage fails or is interrupted. It is not an error that no file matches.
    fn glob(&self, pattern: &str, interrupt: Interrupt<'_>) -> Result<Vec<Vec<u8>>, StorageError>;

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

    /// Which files hold other files, by their names.
    fn nesting(&self) -> &'static Nesting {
        &Nesting::NONE
    }

    /// Lists files in the file `outer`, which holds others according to [`nesting`](Self::nesting): those that `inner`
    /// names, which can be a name, a pattern or a folder in it; without `inner`, all whose names are wanted.
    ///
    /// # Errors
    /// [`StorageError`] if nothing can be listed.
    fn list(
        &self,
        outer: &str,
        inner: Option<&str>,
        is_wanted: &dyn Fn(&str) -> bool,
        interrupt: Interrupt<'_>,
    ) -> Result<Listing, StorageError> {
        let _ = (outer, inner, is_wanted, interrupt);
        Ok(Listing::default())
    }
}

/// Which files hold other files: how their names end, in any case.
#[derive(Debug)]
pub struct Nesting {
    /// Files that paths lead into, as into folders.
    pub folders: &'static [&'static str],
    /// Files that hold one file. Its name is theirs without this end.
    pub files: &'static [&'static str],
}

/// What a file holds, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds<'p> {
    /// Only its own bytes.
    Bytes,
    /// One file, with this path.
    File(&'p str),
    /// Any files, each with a name.
    Folder,
}

impl Nesting {
    /// No file holds others.
    pub const NONE: Nesting = Nesting {
        folders: &[],
        files: &[],
    };

    /// What the file with a path holds.
    pub fn holds<'p>(&self, path: &'p str) -> Holds<'p> {
        if self.folders.iter().any(|end| ends_with(path, end)) {
            Holds::Folder
        } else {
            self.files
                .iter()
                .find_map(|end| without(path, end))
                .map_or(Holds::Bytes, Holds::File)
        }
    }
}

/// A path without its end, if it ends so, in any case. The query of a URL does not count.
fn without<'p>(path: &'p str, end: &str) -> Option<&'p str> {
    let path = match path.split_once('?') {
        Some((start, _)) if start.contains("://") => start,
        _ => path,
    };
    let (start, own) = path.split_at_checked(path.len().checked_sub(end.len())?)?;
    own.eq_ignore_ascii_case(end).then_some(start)
}

/// What separates the folders of a path. Windows allows both, in the paths of its own files.
pub fn separators(is_remote: bool) -> &'static [char] {
    if cfg!(windows) && !is_remote {
        &['/', '\\']
    } else {
        &['/']
    }
}

/// The separator with which to continue a path: the first one in it.
pub(crate) fn separator(path: &str, separators: &[char]) -> char {
    path.chars().find(|letter| separators.contains(letter)).unwrap_or('/')
}

/// Whether a path ends so, in any case. The query of a URL does not count.
pub fn ends_with(path: &str, end: &str) -> bool {
    without(path, end).is_some()
}

/// Files in another file.
#[derive(Debug, Default)]
pub struct Listing {
    /// The files.
    pub files: Vec<ListedFile>,
    /// Why there may be more. One starts with [`ALL_READ`] if the files before that are all there.
    pub failures: Vec<String>,
}

/// How one of the [`failures`](Listing::failures) starts that has cost no file.
pub const ALL_READ: &str = "all was read";

/// A file in another file, as it is listed.
#[derive(Debug)]
pub struct ListedFile {
    /// Its path: that of the outer file, a slash, and its name; or that of the outer file, if that holds only one.
    pub path: String,
    /// Whether it was asked for by its name, not by a pattern or a folder.
    pub is_named: bool,
    /// The file, or why it is not read.
    pub file: Result<Arc<dyn NestedFile>, String>,
}

/// A file in another file.
pub trait NestedFile: Debug + Send + Sync {
    /// The path of the outer file.
    fn outer(&self) -> &str;

    /// What the outer file holds.
    fn outer_holds(&self) -> Holds<'_>;

    /// An estimate of its size in bytes.
    ///
    /// # Errors
    /// [`StorageError`] if the outer file cannot be opened.
    fn estimate(&self, storage: &dyn Storage) -> Result<u64, StorageError>;

    /// Opens it, with the storage of the outer file. Of a damaged file, opens what can be read.
    ///
    /// # Errors
    /// [`StorageError`] if nothing of it can be read.
    fn open(&self, call: Call<'_>) -> Result<OpenFile, StorageError>;

    /// The files in the same outer file whose names match a glob, with their paths. The case of letters does not matter.
    /// None if they are too many to be compared.
    fn beside(&self, glob: &str) -> Vec<(String, Arc<dyn NestedFile>)>;
}

/// A file that was opened.
pub struct OpenFile {
    /// The file.
    pub file: Arc<dyn StorageFile>,
    /// Whether every read takes long, whatever its size.
    pub is_remote: bool,
    /// Why the file has other bytes than it should, or fewer.
    pub failure: Option<StorageError>,
}

/// An open file. Several threads can read it at the same time.
pub trait StorageFile: Send + Sync {
    /// The size in bytes that the file had when it was opened.
    fn size(&self) -> u64;

    /// When the file was last modified. `None` if unknown: no results are then kept of the file.
    fn modified(&self) -> Option<Modified> {
        None
    }

    /// What of another file could not become a part of this one, which was made of it: a text for a row each.
    fn damage(&self) -> &[String] {
        &[]
    }

    /// The records of this one that may be no events, by record ID.
    fn doubts(&self) -> Arc<[Doubt]> {
        Arc::default()
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
    /// A number that differs if the file was modified since, in units of the storage.
    pub stamp: i64,
    /// How long ago it was.
    pub age: Duration,
}

impl Modified {
    /// When a file of this machine was last modified, and its size. `None` if that is unknown. A time in the future has no age.
    pub fn of(file: &Metadata) -> Option<Self> {
        let time = file.modified().ok()?;
        let nanos = match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => since.as_nanos() as i64,
            Err(before) => -(before.duration().as_nanos() as i64),
        };
        Some(Modified {
            // A log grows by chunks, so the two do not cancel out each other.
            stamp: nanos.wrapping_add(file.len().rotate_right(16).cast_signed()),
            age: time.elapsed().unwrap_or_default(),
        })
    }
}

/// Why a scan ends early. Its text is [`printable`].
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The caller has interrupted the scan.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The arguments of the call cannot be used. The text says why.
    #[error("{}", printable(.0))]
    Input(String),
    /// No file matches a path or glob. The text names it.
    #[error("{}", printable(.0))]
    NoFiles(String),
    /// The storage failed for a file that the caller named. Holds the text of the storage.
    #[error("{}", printable(.0))]
    Storage(String),
    /// A file that the caller named is not what it should be, such as a log.
    #[error("{}: {}", printable(path), printable(why))]
    Refused {
        /// The path of the file.
        path: String,
        /// What it is instead.
        why: String,
    },
    /// A file that the caller named cannot be used, or is damaged and the scan fails on damage. The text names the file.
    #[error("{}", printable(.0))]
    File(String),
    /// The rows cannot be decoded.
    #[error(transparent)]
    Decode(DecodeError),
}

impl ScanError {
    /// The error with a sentence before its text. It no longer is one of the storage, whose text an engine may keep.
    pub fn within(self, why: &str) -> Self {
        match self {
            ScanError::Interrupted(interrupted) => ScanError::Interrupted(interrupted),
            other => ScanError::File(format!("{why}: {other}")),
        }
    }
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

impl From<StorageError> for ScanError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Interrupted(interrupted) => ScanError::Interrupted(interrupted),
            StorageError::Failed(text) | StorageError::Changed(text) => ScanError::Storage(text),
            StorageError::Unusable(text) => ScanError::File(text),
        }
    }
}

/// What each call gets from its caller: the storage, and the way to interrupt it.
#[derive(Clone, Copy)]
pub struct Call<'c> {
    /// The storage.
    pub storage: &'c dyn Storage,
    /// The caller's interrupt.
    pub interrupt: Interrupt<'c>,
    /// The outer file that was opened last.
    pub last: &'c LastOpened,
}

impl<'c> Call<'c> {
    /// What a call gets.
    pub fn new(storage: &'c dyn Storage, interrupt: Interrupt<'c>, last: &'c LastOpened) -> Self {
        Call {
            storage,
            interrupt,
            last,
        }
    }
}

/// The outer file that was opened last, or what was made of it. Nested files are read one after the other, and share it.
#[derive(Default)]
pub struct LastOpened(Mutex<Option<Last>>);

struct Last {
    file: Arc<dyn StorageFile>,
    /// The path of an outer file; `None` for what was made of one.
    path: Option<String>,
}

impl LastOpened {
    /// Keeps what was made of an outer file until another one is opened.
    pub fn keep(&self, made: Arc<dyn StorageFile>) {
        // What is dropped can be large, and others do not wait for that.
        let before = self.lock().replace(Last { file: made, path: None });
        drop(before);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Last>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call<'_> {
    /// Opens an outer file, unless it is the one that was opened last.
    ///
    /// # Errors
    /// Those of [`Storage::open`].
    pub fn open_outer(&self, path: &str) -> Result<Arc<dyn StorageFile>, StorageError> {
        let mut last = self.last.lock();
        if let Some(Last {
            file,
            path: Some(known),
        }) = &*last
            && known == path
        {
            return Ok(Arc::clone(file));
        }
        let file = self.storage.open(path)?;
        *last = Some(Last {
            file: Arc::clone(&file),
            path: Some(path.to_owned()),
        });
        Ok(file)
    }
}

/// The result of the storage; `None` if it failed.
///
/// # Errors
/// [`ScanError::Interrupted`].
pub fn unless_failed<T>(outcome: Result<T, StorageError>) -> Result<Option<T>, ScanError> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(StorageError::Interrupted(interrupted)) => Err(interrupted.into()),
        Err(_) => Ok(None),
    }
}

/// A password. It is not shown.
#[derive(Clone)]
pub struct Password(Arc<str>);

impl From<String> for Password {
    fn from(text: String) -> Self {
        Password(text.into())
    }
}

impl Password {
    /// Its text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("...")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_continues_as_it_starts() {
        let windows = ['/', '\\'];
        assert_eq!(separator(r"C:\case/x", &windows), '\\');
        assert_eq!(separator(r"C:/case\x", &windows), '/');
        assert_eq!(separator("case", &windows), '/');
        assert_eq!(separator(r"a\b", separators(true)), '/');
        assert_eq!(separators(false), if cfg!(windows) { &windows[..] } else { &['/'] });
    }

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
