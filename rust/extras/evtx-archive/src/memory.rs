//! The memory and the disk of archives: of entries that are open, of the windows of decoders, and of lists of entries.
//!
//! Results must not depend on which thread gets the memory. So an entry for which there is too little is held in a
//! temporary file; without a folder for these, every entry may take the same, and a large one is held compressed. No
//! thread waits for another one to close an entry: an engine can hold back that thread until this one returns rows.

use std::cell::Cell;
use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use evtx_format::{Interrupt, Interrupted};
use evtx_scan::{Lease, LocalFile, Pool, StorageError, StorageFile, WAIT};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Bytes of a segment of memory.
const SEGMENT: usize = 1 << 20;

/// Most bytes that are decompressed at once.
pub(crate) const PIECE: usize = 1 << 16;

/// Most bytes of one entry that are held in memory, if there is a folder for what is larger.
const ENTRY_MEMORY: u64 = 64 << 20;

/// Windows of this size are always allowed: every Zstandard decoder should support half of it (RFC 8878, 3.1.1.1.2).
const FREE_WINDOW: u64 = 16 << 20;

pub(crate) fn unusable<T>(why: impl Into<String>) -> Result<T, StorageError> {
    Err(StorageError::Unusable(why.into()))
}

/// The memory and the disk that the archives of a call share.
#[derive(Debug)]
pub(crate) struct Budget {
    /// The memory of archives, in bytes.
    memory: u64,
    /// Half of it each, for entries and for lists of entries. Without a folder for temporary files, `entries` is unused.
    entries: Pool,
    lists: Pool,
    /// For temporary files.
    disk: Pool,
    folder: Option<PathBuf>,
    /// Whether some thread decompresses with large windows.
    has_large_windows: AtomicBool,
}

impl Budget {
    /// `disk` is how many bytes of temporary files there may be in `folder` at the same time.
    pub(crate) fn new(memory: u64, disk: u64, folder: Option<PathBuf>) -> Self {
        Budget {
            memory,
            entries: Pool::new(memory / 2),
            lists: Pool::new(memory / 2),
            disk: Pool::new(disk),
            folder,
            has_large_windows: AtomicBool::new(false),
        }
    }
}

/// The memory of the window of a decoder. The decoders of a chain share one allowance.
///
/// A sixteenth of the memory is there for each chain. If that is too little, a chain may take half of the memory, one chain
/// at a time. The others wait. That does not take long: one call decompresses all that a chain gives, and waits for
/// nothing else.
#[derive(Debug)]
pub(crate) struct WindowLease {
    chain: Rc<Windows>,
    /// Bytes of the window.
    taken: u64,
}

/// The windows of a chain.
#[derive(Debug)]
struct Windows {
    budget: Arc<Budget>,
    /// Bytes of all of them.
    taken: Cell<u64>,
    /// Whether this is the chain that may take half of the memory.
    is_large: Cell<bool>,
}

impl WindowLease {
    /// The memory of the first decoder of a chain.
    pub(crate) fn new(budget: &Arc<Budget>) -> Self {
        let chain = Rc::new(Windows {
            budget: Arc::clone(budget),
            taken: Cell::new(0),
            is_large: Cell::new(false),
        });
        WindowLease { chain, taken: 0 }
    }

    /// The memory of another decoder of the same chain.
    pub(crate) fn beside(&self) -> Self {
        WindowLease {
            chain: Rc::clone(&self.chain),
            taken: 0,
        }
    }

    /// Takes enough for a window of so many bytes, and may wait for other chains. Returns false if that is too much.
    pub(crate) fn grow_to(&mut self, window: u64, interrupt: Interrupt<'_>) -> Result<bool, Interrupted> {
        let Windows {
            budget,
            taken,
            is_large,
        } = &*self.chain;
        let own = window.max(self.taken);
        let all = taken.get().saturating_add(own - self.taken);
        if all > FREE_WINDOW.max(budget.memory / 16) {
            if all > budget.memory / 2 {
                return Ok(false);
            }
            while !is_large.get() {
                is_large.set(!budget.has_large_windows.swap(true, Ordering::Acquire));
                if !is_large.get() {
                    std::thread::sleep(WAIT);
                    interrupt.check()?;
                }
            }
        }
        taken.set(all);
        self.taken = own;
        Ok(true)
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        if self.is_large.get() {
            self.budget.has_large_windows.store(false, Ordering::Release);
        }
    }
}

/// The memory of the list of entries of an archive. Memory is counted before it is allocated. Beyond 4 MiB it comes from
/// the pool for lists.
#[derive(Debug)]
pub(crate) struct ListMemory {
    lease: Lease,
    used: u64,
    most: u64,
}

/// What a list may take besides twice the size of its archive, and what it may take outside of the memory for lists.
const LIST_MEMORY: u64 = 48 << 20;
const FREE_LIST: u64 = 4 << 20;

impl ListMemory {
    /// Memory for the list of an archive with so many bytes.
    pub(crate) fn new(budget: &Budget, size: u64) -> Self {
        ListMemory {
            lease: budget.lists.lease(),
            used: 0,
            most: LIST_MEMORY.saturating_add(size.saturating_mul(2)),
        }
    }

    /// Takes some.
    ///
    /// # Errors
    /// [`StorageError::Unusable`] if there is too little.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), StorageError> {
        self.used += bytes as u64;
        if self.used > self.most {
            let most = self.most >> 20;
            return unusable(format!("its list of entries takes more than {most} MiB of memory"));
        }
        let more = self.used.saturating_sub(FREE_LIST).saturating_sub(self.lease.taken());
        if self.lease.try_take(more) {
            return Ok(());
        }
        unusable("there is too little memory for its list of entries: memory_limit allows no more")
    }

    /// Returns some, for other parts of the list.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.used -= bytes as u64;
    }
}

/// The decompressed bytes of an entry, or of several, in memory or in a temporary file. They are written from the first to
/// the last, and then read at any offset.
pub(crate) struct EntryBytes {
    budget: Arc<Budget>,
    memory: Lease,
    disk: Lease,
    size: u64,
    /// Room for the next segment, and how many bytes of it are filled.
    last: Vec<u8>,
    filled: usize,
    /// Empty if there is a file.
    segments: Vec<Segment>,
    /// What the segments take of the memory.
    held: u64,
    /// The compressed segment that was read last, and its index.
    inflated: Mutex<(Option<usize>, Vec<u8>)>,
    file: Option<File>,
    /// The file once it is only read.
    spilled: Option<LocalFile>,
}

/// [`SEGMENT`] bytes; the last segment can have fewer.
struct Segment {
    /// Compressed if they are fewer than `len`.
    bytes: Vec<u8>,
    len: usize,
}

impl Segment {
    fn new(bytes: Vec<u8>) -> Self {
        let len = bytes.len();
        Segment { bytes, len }
    }

    /// Compresses the bytes, if that halves them.
    fn deflate(&mut self) {
        let mut deflated = Vec::with_capacity(self.len / 2);
        let status =
            Compress::new(Compression::fast(), false).compress_vec(&self.bytes, &mut deflated, FlushCompress::Finish);
        if let Ok(Status::StreamEnd) = status {
            deflated.shrink_to_fit();
            self.bytes = deflated;
        }
    }

    /// Decompresses the bytes.
    fn inflate(&self, plain: &mut Vec<u8>) {
        plain.clear();
        plain.reserve_exact(self.len);
        // They are our own.
        let _ = Decompress::new(false).decompress_vec(&self.bytes, plain, FlushDecompress::Finish);
        plain.resize(self.len, 0);
    }
}

impl EntryBytes {
    pub(crate) fn new(budget: &Arc<Budget>) -> Self {
        EntryBytes {
            memory: budget.entries.lease(),
            disk: budget.disk.lease(),
            budget: Arc::clone(budget),
            size: 0,
            last: Vec::new(),
            filled: 0,
            segments: Vec::new(),
            held: 0,
            inflated: Mutex::default(),
            file: None,
            spilled: None,
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size + self.filled as u64
    }

    /// Lets `read` fill a buffer of at most `most` bytes; `read` returns how many. Returns the filled bytes.
    ///
    /// # Errors
    /// Those of [`end`](Self::end).
    pub(crate) fn add(&mut self, most: u64, read: impl FnOnce(&mut [u8]) -> usize) -> Result<&[u8], StorageError> {
        if self.filled == SEGMENT {
            self.end()?;
        }
        if self.filled == self.last.len() {
            // Most entries are smaller than a piece, or much larger.
            let mut larger = vec![0; if self.filled == 0 { PIECE } else { SEGMENT }];
            larger[..self.filled].copy_from_slice(&self.last);
            self.last = larger;
        }
        let (start, room) = (self.filled, self.last.len() - self.filled);
        let room = room.min(PIECE).min(usize::try_from(most).unwrap_or(PIECE));
        self.filled += read(&mut self.last[start..start + room]);
        Ok(&self.last[start..self.filled])
    }

    /// Ends a segment. Only the last one may be short.
    ///
    /// # Errors
    /// [`StorageError::Unusable`] if there is too little memory and disk. The segment is then left out.
    pub(crate) fn end(&mut self) -> Result<(), StorageError> {
        let mut segment = std::mem::take(&mut self.last);
        segment.truncate(std::mem::take(&mut self.filled));
        let more = segment.len() as u64;
        if more == 0 {
            return Ok(());
        }
        let size = self.size + more;
        let mut segment = Segment::new(segment);
        let in_memory = match &self.budget.folder {
            Some(_) => self.file.is_none() && size <= ENTRY_MEMORY && self.memory.try_take(more),
            None => {
                if size > self.budget.memory / 8 {
                    segment.deflate();
                }
                self.held + segment.bytes.len() as u64 <= self.budget.memory / 4
            }
        };
        if in_memory {
            segment.bytes.shrink_to_fit();
            self.held += segment.bytes.len() as u64;
            self.segments.push(segment);
        } else {
            self.write(&segment.bytes)?;
        }
        self.size = size;
        Ok(())
    }

    fn write(&mut self, segment: &[u8]) -> Result<(), StorageError> {
        let before = if self.file.is_none() { self.size } else { 0 };
        let Some(folder) = &self.budget.folder else {
            return unusable(format!(
                "it takes more than {} bytes of memory, and there is no folder for temporary files: set temp_directory, or extract the file",
                self.budget.memory / 4
            ));
        };
        if !self.disk.try_take(before + segment.len() as u64) {
            return unusable("the entries that are open take more of the disk than max_temp_directory_size allows");
        }
        let failed = |error| StorageError::Unusable(format!("its temporary file fails: {error}"));
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let mut file = temporary(folder).map_err(failed)?;
                // The bytes stay in memory if they cannot be written.
                self.segments
                    .iter()
                    .try_for_each(|segment| file.write_all(&segment.bytes))
                    .map_err(failed)?;
                self.segments = Vec::new();
                self.memory.give_back();
                self.file.insert(file)
            }
        };
        let written = file.write_all(segment);
        if written.is_err() {
            // The next read is at an offset, and the size says what counts.
            let _ = file.seek(SeekFrom::Start(self.size));
        }
        written.map_err(failed)
    }

    /// The bytes as a file.
    pub(crate) fn into_file(mut self) -> Arc<dyn StorageFile> {
        self.spilled = self.file.take().map(|file| LocalFile::new(file, self.size));
        Arc::new(self)
    }
}

/// Creates an unnamed file in a folder. Creates a missing folder for that, and removes it again if possible.
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
            // Another thread may have just removed the folder. Linux then says that it is not found, or EPERM.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) && tries < 100 => {
                std::thread::yield_now();
            }
            other => return other,
        }
    }
}

impl StorageFile for EntryBytes {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        if let Some(file) = &self.spilled {
            return file.read_at(buffer, offset);
        }
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let index = usize::try_from(at / SEGMENT as u64).unwrap_or(usize::MAX);
            let start = (at % SEGMENT as u64) as usize;
            let Some(segment) = self.segments.get(index).filter(|segment| segment.len > start) else {
                return unusable(format!("there are only {} bytes of it", self.size));
            };
            let end = segment.len.min(start + buffer.len() - done);
            let part = &mut buffer[done..done + end - start];
            if segment.bytes.len() == segment.len {
                part.copy_from_slice(&segment.bytes[start..end]);
            } else {
                let mut inflated = self.inflated.lock().unwrap_or_else(PoisonError::into_inner);
                let (last, plain) = &mut *inflated;
                if last.replace(index) != Some(index) {
                    segment.inflate(plain);
                }
                part.copy_from_slice(&plain[start..end]);
            }
            done += end - start;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn held(budget: &Arc<Budget>, segments: usize) -> Result<EntryBytes, StorageError> {
        let mut held = EntryBytes::new(budget);
        for segment in 0..segments {
            for _ in 0..SEGMENT / PIECE {
                held.add(u64::MAX, |buffer| {
                    buffer.fill(segment as u8);
                    buffer.len()
                })?;
            }
        }
        held.add(7, |buffer| {
            buffer.copy_from_slice(b"the end");
            7
        })?;
        held.end()?;
        Ok(held)
    }

    fn refused(budget: &Arc<Budget>, segments: usize) -> String {
        held(budget, segments).map(drop).expect_err("too much").to_string()
    }

    fn left(budget: &Budget) -> [u64; 2] {
        [budget.entries.left(), budget.disk.left()]
    }

    fn check(file: &dyn StorageFile, segments: usize) {
        let size = segments * SEGMENT + 7;
        assert_eq!(file.size(), size as u64);
        let mut buffer = vec![0; size];
        file.read_at(&mut buffer, 0).expect("all of it");
        assert!(
            buffer.ends_with(b"the end")
                && (0..segments).all(|segment| buffer[(segment + 1) * SEGMENT - 1] == segment as u8)
        );
        file.read_at(&mut buffer[..12], size as u64 - 12)
            .expect("across segments");
        assert!(buffer[..12].ends_with(b"the end"));
        assert!(file.read_at(&mut buffer[..8], size as u64 - 7).is_err());
        assert!(file.read_at(&mut buffer[..8], u64::MAX - 8).is_err());
    }

    #[test]
    fn what_is_too_large_for_memory_is_in_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("not/yet");
        let budget = Arc::new(Budget::new(200 * MIB, 70 * MIB, Some(inner.clone())));
        let small = held(&budget, 3).expect("it fits");
        assert!(small.file.is_none() && left(&budget) == [97 * MIB - 7, 70 * MIB]);
        let large = held(&budget, 64).expect("there is a folder");
        assert!(large.file.is_some() && left(&budget) == [97 * MIB - 7, 6 * MIB - 7]);
        assert!(!inner.exists(), "nothing is left of the file");
        let why = refused(&budget, 64);
        assert!(why.contains("max_temp_directory_size"), "{why}");
        check(&*small.into_file(), 3);
        check(&*large.into_file(), 64);
        let why = refused(&budget, 70);
        assert!(why.contains("max_temp_directory_size"), "{why}");
        assert_eq!(left(&budget), [100 * MIB, 70 * MIB]);
    }

    #[test]
    fn entries_that_find_too_little_memory_are_in_files() {
        let folder = tempfile::tempdir().expect("a folder").path().to_owned();
        let budget = Arc::new(Budget::new(10 * MIB, 100 * MIB, Some(folder)));
        let all: Vec<_> = (0..5).map(|_| held(&budget, 2).expect("disk")).collect();
        assert_eq!(all.iter().filter(|held| held.file.is_some()).count(), 3);
        all.into_iter().for_each(|held| check(&*held.into_file(), 2));
        assert_eq!(left(&budget), [5 * MIB, 100 * MIB]);
    }

    #[test]
    fn without_a_folder_every_entry_may_take_the_same() {
        let budget = Arc::new(Budget::new(8 * MIB, u64::MAX, None));
        let open: Vec<_> = (0..8).map(|_| held(&budget, 1).expect("it fits")).collect();
        let mut numbers = 0_u32..;
        let mut random = EntryBytes::new(&budget);
        let mut fill = |buffer: &mut [u8]| {
            let bytes = numbers
                .by_ref()
                .flat_map(|i| crc32fast::hash(&i.to_le_bytes()).to_le_bytes());
            buffer.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
            buffer.len()
        };
        let added = (0..100).find_map(|_| random.add(u64::MAX, &mut fill).err());
        let why = added.expect("too many").to_string();
        assert!(why.contains("temp_directory"), "{why}");
        assert_eq!(random.size(), 2 * MIB);
        check(&*held(&budget, 100).expect("compressed, it fits").into_file(), 100);
        open.into_iter().for_each(|held| check(&*held.into_file(), 1));
        let budget = Arc::new(Budget::new(280 * MIB, 0, None));
        check(&*held(&budget, 66).expect("the memory is there").into_file(), 66);
        let missing = Arc::new(Budget::new(0, u64::MAX, Some("/dev/null/folder".into())));
        let why = refused(&missing, 1);
        assert!(why.contains("its temporary file fails"), "{why}");
    }

    #[test]
    fn one_chain_at_a_time_has_large_windows() {
        let budget = Arc::new(Budget::new(200 * MIB, 0, None));
        let grow_to = |lease: &mut WindowLease, mib: u64| lease.grow_to(mib * MIB, Interrupt::NEVER);
        let mut small = WindowLease::new(&budget);
        assert!(grow_to(&mut small, 16) == Ok(true) && grow_to(&mut small, 8) == Ok(true));
        let mut large = WindowLease::new(&budget);
        assert_eq!(grow_to(&mut large, 101), Ok(false));
        assert_eq!(grow_to(&mut large, 17), Ok(true));
        assert_eq!(grow_to(&mut large, 80), Ok(true), "a later frame has a larger one");
        assert_eq!(grow_to(&mut large.beside(), 21), Ok(false), "a chain counts as a whole");
        assert_eq!(grow_to(&mut large.beside(), 20), Ok(true));
        let looks = AtomicUsize::new(0);
        let is_set = || looks.fetch_add(1, Ordering::SeqCst) > 3;
        let waits = WindowLease::new(&budget).grow_to(17 * MIB, Interrupt::new(&is_set));
        assert_eq!(waits, Err(Interrupted));
        std::thread::scope(|scope| {
            let (opened, open) = mpsc::channel();
            let budget = &budget;
            let other = scope.spawn(move || {
                opened.send(()).expect("somebody waits");
                WindowLease::new(budget).grow_to(17 * MIB, Interrupt::NEVER)
            });
            open.recv().expect("it has begun");
            drop(large);
            assert_eq!(other.join().expect("no panic"), Ok(true));
        });
        assert!(!budget.has_large_windows.load(Ordering::SeqCst));
    }
}
