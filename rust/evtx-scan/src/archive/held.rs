//! Decompressed bytes: in memory up to a limit, beyond it in a temporary file.

use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::local::LocalFile;
use crate::storage::{StorageError, StorageFile};

/// Bytes of a piece of the memory.
pub(crate) const PIECE: usize = 1 << 20;

/// Most bytes of one entry that are held in memory, if there is a folder for what is larger.
const ENTRY_MEMORY: u64 = 64 << 20;

/// Bytes of memory that a decoder may take without a share of the budget. Every Zstandard decoder should have as many
/// for its window (RFC 8878, 3.1.1.1.2).
const FREE_WINDOW: u64 = 8 << 20;

/// What entries that are held at the same time may take together.
#[derive(Debug)]
pub(crate) struct Budget {
    memory: AtomicU64,
    disk: AtomicU64,
    /// Where temporary files are made.
    folder: Option<PathBuf>,
}

impl Budget {
    /// `disk` is how many bytes of temporary files there may be in `folder` at the same time.
    pub(crate) fn new(memory: u64, disk: u64, folder: Option<PathBuf>) -> Self {
        Budget {
            memory: AtomicU64::new(memory),
            disk: AtomicU64::new(disk),
            folder,
        }
    }
}

/// A part of a budget. Drop gives it back.
pub(crate) struct Share {
    budget: Arc<Budget>,
    memory: u64,
    disk: u64,
}

impl Share {
    /// A part that is empty.
    pub(crate) fn new(budget: &Arc<Budget>) -> Self {
        Share {
            budget: Arc::clone(budget),
            memory: 0,
            disk: 0,
        }
    }

    /// Makes the part so large that a decoder can have a window of so many bytes. Returns whether it is.
    pub(crate) fn covers(&mut self, window: u64) -> bool {
        let more = window.saturating_sub(self.memory);
        window <= FREE_WINDOW || take(&self.budget.memory, &mut self.memory, more)
    }
}

fn take(left: &AtomicU64, taken: &mut u64, more: u64) -> bool {
    let take = |left: u64| left.checked_sub(more);
    let is_taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
    *taken += if is_taken { more } else { 0 };
    is_taken
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.memory.fetch_add(self.memory, Ordering::Relaxed);
        self.budget.disk.fetch_add(self.disk, Ordering::Relaxed);
    }
}

/// Bytes that are held. They are written from the first to the last, and then read at any offset.
pub(crate) struct Held {
    share: Share,
    size: u64,
    /// Pieces of [`PIECE`] bytes; the last one can be shorter. Empty if there is a file.
    pieces: Vec<Vec<u8>>,
    file: Option<File>,
}

impl Held {
    pub(crate) fn new(budget: &Arc<Budget>) -> Self {
        Held {
            share: Share::new(budget),
            size: 0,
            pieces: Vec::new(),
            file: None,
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Adds a piece: [`PIECE`] bytes, or fewer if it is the last one. Returns why that cannot be, as a text for the
    /// user.
    pub(crate) fn push(&mut self, mut piece: Vec<u8>) -> Result<(), String> {
        let more = piece.len() as u64;
        let is_small = self.size + more <= ENTRY_MEMORY || self.share.budget.folder.is_none();
        let is_small = is_small && self.file.is_none();
        if is_small && take(&self.share.budget.memory, &mut self.share.memory, more) {
            piece.shrink_to_fit();
            self.pieces.push(piece);
        } else {
            self.write(&piece)?;
        }
        self.size += more;
        Ok(())
    }

    fn write(&mut self, piece: &[u8]) -> Result<(), String> {
        let before = if self.file.is_none() { self.size } else { 0 };
        let more = before + piece.len() as u64;
        let Some(folder) = &self.share.budget.folder else {
            let text = "it takes more memory than is left, and temp_directory names no folder for it";
            return Err(text.to_owned());
        };
        if !take(&self.share.budget.disk, &mut self.share.disk, more) {
            let text = "the entries that are open take more memory than is left, and more of the disk than \
                        max_temp_directory_size allows";
            return Err(text.to_owned());
        }
        let failed = |error| format!("it takes more memory than is left, and its temporary file fails: {error}");
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let mut file = temporary(folder).map_err(failed)?;
                // What is in memory stays there if it cannot be written.
                self.pieces
                    .iter()
                    .try_for_each(|piece| file.write_all(piece))
                    .map_err(failed)?;
                self.pieces = Vec::new();
                let freed = std::mem::take(&mut self.share.memory);
                self.share.budget.memory.fetch_add(freed, Ordering::Relaxed);
                self.file.insert(file)
            }
        };
        let written = file.write_all(piece);
        if written.is_err() {
            // The next read is at an offset, and the size says what counts.
            let _ = file.seek(SeekFrom::Start(self.size));
        }
        written.map_err(failed)
    }

    /// The bytes as a file.
    pub(crate) fn into_file(mut self) -> Arc<dyn StorageFile> {
        match self.file.take() {
            Some(file) => Arc::new(Spilled {
                file: LocalFile::new(file, self.size),
                _share: self.share,
            }),
            None => Arc::new(self),
        }
    }
}

/// Makes a file without a name in a folder. A folder that is not there is made for that, and removed again if it can
/// be.
fn temporary(folder: &PathBuf) -> std::io::Result<File> {
    let mut tries = 0;
    loop {
        let is_made = !folder.is_dir() && std::fs::create_dir_all(folder).is_ok();
        let file = tempfile::tempfile_in(folder);
        if is_made {
            let _ = std::fs::remove_dir(folder);
        }
        tries += 1;
        match file {
            // Another thread has just removed it.
            Err(error) if error.kind() == ErrorKind::NotFound && tries < 100 => std::thread::yield_now(),
            other => return other,
        }
    }
}

impl StorageFile for Held {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let piece = usize::try_from(at / PIECE as u64).ok().and_then(|i| self.pieces.get(i));
            let rest = piece
                .and_then(|piece| piece.get(at as usize % PIECE..))
                .unwrap_or_default();
            if rest.is_empty() {
                return Err(StorageError::Archive(format!(
                    "there are only {} bytes of it",
                    self.size
                )));
            }
            let len = rest.len().min(buffer.len() - done);
            buffer[done..done + len].copy_from_slice(&rest[..len]);
            done += len;
        }
        Ok(())
    }
}

struct Spilled {
    file: LocalFile,
    _share: Share,
}

impl StorageFile for Spilled {
    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        self.file.read_at(buffer, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(budget: &Arc<Budget>, pieces: usize) -> Result<Held, String> {
        let mut held = Held::new(budget);
        (0..pieces).try_for_each(|piece| held.push(vec![piece as u8; PIECE]))?;
        held.push(b"the end".to_vec())?;
        Ok(held)
    }

    fn check(file: &dyn StorageFile, pieces: usize) {
        let size = pieces * PIECE + 7;
        assert_eq!(file.size(), size as u64);
        let mut buffer = vec![0; size];
        file.read_at(&mut buffer, 0).expect("all of it");
        assert!(
            buffer.ends_with(b"the end") && (0..pieces).all(|piece| buffer[(piece + 1) * PIECE - 1] == piece as u8)
        );
        file.read_at(&mut buffer[..12], size as u64 - 12)
            .expect("across pieces");
        assert!(buffer[..12].ends_with(b"the end"));
        assert!(file.read_at(&mut buffer[..8], size as u64 - 7).is_err());
        assert!(file.read_at(&mut buffer[..8], u64::MAX - 8).is_err());
    }

    #[test]
    fn what_is_too_large_for_memory_is_in_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("not/yet");
        let left = |budget: &Budget| budget.memory.load(Ordering::Relaxed);
        let budget = Arc::new(Budget::new(200 << 20, 70 << 20, Some(inner.clone())));
        let small = held(&budget, 3).expect("it fits");
        assert!(small.file.is_none() && left(&budget) == (197 << 20) - 7);
        let large = held(&budget, 64).expect("there is a folder");
        assert!(large.file.is_some() && left(&budget) == (197 << 20) - 7);
        assert!(!inner.exists(), "nothing is left of the file");
        let why = held(&budget, 64).map(drop).expect_err("the disk is taken");
        assert!(why.contains("max_temp_directory_size"), "{why}");
        check(&*small.into_file(), 3);
        check(&*large.into_file(), 64);
        assert_eq!(left(&budget), 200 << 20);
        assert_eq!(budget.disk.load(Ordering::Relaxed), 70 << 20);
    }

    #[test]
    fn a_large_window_is_a_part_of_the_memory() {
        let budget = Arc::new(Budget::new(100 << 20, 0, None));
        let left = || budget.memory.load(Ordering::Relaxed) >> 20;
        let mut share = Share::new(&budget);
        assert!(share.covers(8 << 20) && left() == 100);
        assert!(share.covers(64 << 20) && left() == 36);
        assert!(share.covers(16 << 20) && left() == 36);
        assert!(!share.covers(128 << 20) && left() == 36);
        assert!(!Share::new(&budget).covers(64 << 20));
        drop(share);
        assert_eq!(left(), 100);
    }

    #[test]
    fn without_a_folder_there_is_a_reason() {
        let budget = Arc::new(Budget::new(2 << 20, u64::MAX, None));
        let why = held(&budget, 2).map(drop).expect_err("too much");
        assert!(why.contains("temp_directory"), "{why}");
        assert_eq!(budget.memory.load(Ordering::Relaxed), 2 << 20);
        let budget = Arc::new(Budget::new(70 << 20, 0, None));
        check(&*held(&budget, 66).expect("the memory is there").into_file(), 66);
        let missing = Arc::new(Budget::new(0, u64::MAX, Some("/dev/null/folder".into())));
        let why = held(&missing, 1).map(drop).expect_err("no folder");
        assert!(why.contains("its temporary file fails"), "{why}");
    }
}
