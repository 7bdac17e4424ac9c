//! The queue that hands out the blocks of the files to the threads of a scan.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use evtx_arrow::Scan;
use evtx_format::container::layout::Block;

use crate::beside::BesideLogs;
use crate::file::{Buffer, SMALL};
use crate::log::{OpenLog, Opened};
use crate::scan_path::{FileSplit, ScanPath, Source};
use crate::storage::{Call, LastOpened, ScanError, WAIT};

/// Batch indexes are below this: engines reserve the larger ones.
const BATCH_INDEXES: u64 = 10_000_000_000_000;

/// The index of batches that come after all others. DuckDB refuses the two largest below [`BATCH_INDEXES`].
pub(crate) const LAST_INDEX: u64 = BATCH_INDEXES - 3;

/// The batch index of a block: its position in the order of all rows. `files` is the number of files, `file` the index
/// of the block's file among them, and `block` the index of the block in the file. The files share the indexes below
/// 10^13 evenly.
///
/// # Errors
/// [`ScanError::Input`] if the file has more blocks than its share of the indexes.
pub fn batch_index(files: usize, file: usize, block: u64) -> Result<u64, ScanError> {
    let of_each = BATCH_INDEXES / files.max(1) as u64;
    if block < of_each && file < files.max(1) {
        Ok(file as u64 * of_each + block)
    } else {
        Err(ScanError::Input(format!(
            "a file of more than {of_each} blocks is too large to be read together with {files} files"
        )))
    }
}

/// The next piece of work of a thread.
pub(crate) struct Work {
    /// The index of the file among the files of the scan.
    pub(crate) file: usize,
    /// The position of the rows in the order of all rows.
    pub(crate) batch_index: u64,
    /// What is wrong with the file as a whole, a text for a row each. Only the first work of a file has it.
    pub(crate) damage: Vec<String>,
    /// The log and the block to read, if there is one.
    pub(crate) block: Option<(Arc<OpenLog>, Block)>,
    /// The indices of the blocks after it that were handed out with it.
    more_blocks: Range<u64>,
    /// The small files after its file that were handed out with it. No other thread waits for them.
    more_files: Range<usize>,
}

impl Work {
    /// Whether more of the same file was handed out with it, or of others if `joins_files`.
    pub(crate) fn has_more(&self, joins_files: bool) -> bool {
        !self.more_blocks.is_empty() || joins_files && !self.more_files.is_empty()
    }

    /// Work without damage and without more files.
    fn new(file: usize, batch_index: u64, block: Option<(Arc<OpenLog>, Block)>, more_blocks: Range<u64>) -> Self {
        Work {
            file,
            batch_index,
            damage: Vec::new(),
            block,
            more_blocks,
            more_files: 0..0,
        }
    }

    /// A block of a log, or what is wrong with the log, whose rows come after all others.
    pub(crate) fn last(file: usize, block: Option<(Arc<OpenLog>, Block)>, damage: Vec<String>) -> Self {
        Work {
            damage,
            ..Work::new(file, LAST_INDEX, block, 0..0)
        }
    }

    /// Leaves out the rest of the file.
    pub(crate) fn give_up(&mut self) {
        self.more_blocks = 0..0;
    }
}

/// How much work a thread asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// The index of the file of its last work.
    pub(crate) last_file: usize,
    /// How many blocks would give a batch enough rows.
    pub(crate) blocks: u64,
    /// Whether it asks for a long claim, because the engine restores the order of the rows.
    pub(crate) long_claim: bool,
}

/// The most blocks of a local file that a thread claims at once. A block of a remote file is claimed alone.
const MAX_BLOCKS: u64 = 8;

/// The most blocks of a long claim. Their rows are about a row group of DuckDB, 122,880 rows. Ordered sinks copy
/// batches that have fewer.
const LONG_CLAIM_BLOCKS: u64 = 128;

/// The most small files that a thread claims with another, and the most bytes of them, in a long claim or not.
const MAX_SMALL: usize = 255;
const SMALL_FILES: u64 = 8 << 20;
const LONG_CLAIM_BYTES: u64 = 32 << 20;

/// How a scan reads files.
#[derive(Debug)]
pub(crate) struct FileOptions {
    pub(crate) scan: Arc<Scan>,
    /// Finds what is beside logs, if the scan reads that.
    pub(crate) beside: Option<Box<dyn BesideLogs>>,
    /// Whether batches may have rows of several small files.
    pub(crate) joins_files: bool,
}

pub(crate) struct FileQueue {
    paths: Vec<ScanPath>,
    pub(crate) options: FileOptions,
    progress: Mutex<Progress>,
    changed: Condvar,
    pub(crate) last: LastOpened,
    /// How many threads take part.
    threads: AtomicU64,
    /// By number of files, from 0 on, how many bytes the first files have. Asked for when the engine shows progress.
    bytes_before: OnceLock<Vec<u64>>,
}

struct Progress {
    files: Vec<FileState>,
    /// The files before this index are done.
    first: usize,
    /// The index of the next file to open. This file and those after it are waiting.
    next_unopened: usize,
}

enum FileState {
    /// No thread has opened it.
    Waiting,
    /// A thread opens and surveys it.
    Opening,
    /// It is open. Holds the index of the next block to hand out, and how many a long claim has.
    Open(Arc<OpenLog>, u64, Option<u64>),
    /// All of it was handed out, or it was given up.
    Done { given_up: bool },
}

/// A file that a thread opens. If the thread panics, drop marks the file as done, so that no other thread waits for it.
struct Opening<'q> {
    queue: &'q FileQueue,
    file: usize,
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.queue.lock().files[self.file] = DONE;
        self.queue.changed.notify_all();
    }
}

const DONE: FileState = FileState::Done { given_up: false };

impl FileQueue {
    pub(crate) fn new(paths: Vec<ScanPath>, options: FileOptions) -> Self {
        let files = paths.iter().map(|_| FileState::Waiting).collect();
        FileQueue {
            paths,
            options,
            progress: Mutex::new(Progress {
                files,
                first: 0,
                next_unopened: 0,
            }),
            changed: Condvar::new(),
            last: LastOpened::default(),
            threads: AtomicU64::new(0),
            bytes_before: OnceLock::new(),
        }
    }

    /// Counts a thread that takes part.
    pub(crate) fn join(&self) {
        self.threads.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn paths(&self) -> &[ScanPath] {
        &self.paths
    }

    pub(crate) fn path(&self, file: usize) -> &ScanPath {
        &self.paths[file]
    }

    // A poisoned lock stays usable: each change under the lock is one step, which no panic can interrupt.
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next work for a thread; `None` at the end. The batch indexes that one thread gets rise.
    pub(crate) fn claim(&self, call: Call<'_>, wanted: Wanted, buffer: &mut Buffer) -> Result<Option<Work>, ScanError> {
        let mut progress = self.lock();
        let mut small_end = None;
        loop {
            while progress.first < progress.next_unopened
                && matches!(progress.files[progress.first], FileState::Done { .. })
            {
                progress.first += 1;
            }
            let mut is_opening = false;
            for file in progress.first.max(wanted.last_file)..progress.next_unopened {
                match progress.files[file] {
                    FileState::Open(..) => return self.claim_blocks(&mut progress, file, wanted).map(Some),
                    FileState::Opening => is_opening = true,
                    FileState::Waiting | FileState::Done { .. } => {}
                }
            }
            if progress.next_unopened < self.paths.len() {
                let file = progress.next_unopened;
                let Some(end) = small_end else {
                    // Other threads must not wait for a slow file system. They can claim files meanwhile.
                    drop(progress);
                    small_end = Some(self.end_of_small(file, call, wanted.long_claim));
                    progress = self.lock();
                    continue;
                };
                // If other threads have claimed some of the small files, those up to the same end are left.
                let small = file..end.max(file);
                progress.next_unopened = small.end.max(file + 1);
                if !small.is_empty() {
                    progress.files[small.clone()].fill_with(|| DONE);
                    drop(progress);
                    return self.open_small(call, small, buffer);
                }
                progress.files[file] = FileState::Opening;
                drop(progress);
                return self.open(call, file).map(Some);
            }
            if !is_opening {
                return Ok(None);
            }
            // The file that another thread is opening may have blocks for this one.
            let waited = self.changed.wait_timeout(progress, WAIT);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            call.interrupt.check()?;
            progress = self.lock();
        }
    }

    /// How many threads take part, one at least.
    fn threads(&self) -> u64 {
        self.threads.load(Ordering::Relaxed).max(1)
    }

    /// The end of the small files from index `first` on, as far as a thread may claim them: fewer when few are left, so
    /// that all threads end at the same time. A large file is not among them: all threads read its blocks.
    fn end_of_small(&self, first: usize, call: Call<'_>, long_claim: bool) -> usize {
        let mut left = if long_claim { LONG_CLAIM_BYTES } else { SMALL_FILES };
        let mut is_small = |path: &&ScanPath| {
            let is_local = matches!(path.source, Source::File) && path.split.is_none();
            let file = (is_local && !call.storage.is_remote(&path.path)).then(|| std::fs::metadata(&path.path));
            let Some(Ok(file)) = file else { return false };
            let fits = file.is_file() && file.len() <= SMALL.min(left);
            left = left.saturating_sub(file.len());
            fits
        };
        let most = 1 + ((self.paths.len() - first) / (4 * self.threads() as usize)).min(MAX_SMALL);
        first + self.paths[first..].iter().take(most).take_while(&mut is_small).count()
    }

    /// Hands out the next blocks of an open file. Hands out fewer when few are left, so that all threads end at the same
    /// time.
    fn claim_blocks(&self, progress: &mut Progress, file: usize, wanted: Wanted) -> Result<Work, ScanError> {
        let FileState::Open(log, next, claim) = &mut progress.files[file] else {
            return Ok(Work::new(file, batch_index(self.paths.len(), file, 0)?, None, 0..0));
        };
        let left = log.layout.blocks().saturating_sub(*next);
        let blocks = if log.file.is_remote {
            1
        } else if wanted.long_claim {
            // Runs of one length, as many for each thread.
            *claim.get_or_insert_with(|| {
                let threads = self.threads().max(2);
                left.div_ceil(left.div_ceil(LONG_CLAIM_BLOCKS).next_multiple_of(threads).max(1))
            })
        } else {
            wanted.blocks.min(MAX_BLOCKS).min(left / (4 * self.threads()))
        };
        let more_blocks = *next + 1..*next + blocks.min(left).max(1);
        batch_index(self.paths.len(), file, more_blocks.end - 1)?;
        let batch_index = batch_index(self.paths.len(), file, *next)?;
        let block = log.layout.block(*next).map(|block| (Arc::clone(log), block));
        *next = more_blocks.end;
        if *next >= log.layout.blocks() {
            // The threads that still read its blocks keep it open.
            progress.files[file] = DONE;
        }
        Ok(Work::new(file, batch_index, block, more_blocks))
    }

    /// Opens a file, without the lock, and hands out its first block, with what is wrong with the file.
    fn open(&self, call: Call<'_>, file: usize) -> Result<Work, ScanError> {
        let opening = Opening { queue: self, file };
        let result = self.open_log(call, file, None);
        std::mem::forget(opening);
        let mut progress = self.lock();
        self.changed.notify_all();
        progress.files[file] = DONE;
        let (log, damage) = result?;
        if let Some(log) = log.filter(|log| log.layout.blocks() > 0) {
            progress.files[file] = FileState::Open(Arc::new(log), 0, None);
        }
        // A query with a small limit needs no more.
        let first = Wanted {
            last_file: file,
            blocks: 1,
            long_claim: false,
        };
        let work = self.claim_blocks(&mut progress, file, first)?;
        Ok(Work { damage, ..work })
    }

    /// Opens the first of the small files that a thread has claimed, and hands out all of its blocks. The file is read at
    /// once, because opening it and each read take as long as reading some 10 KiB.
    fn open_small(
        &self,
        call: Call<'_>,
        mut files: Range<usize>,
        buffer: &mut Buffer,
    ) -> Result<Option<Work>, ScanError> {
        let Some(file) = files.next() else { return Ok(None) };
        let (log, damage) = self.open_log(call, file, Some(buffer))?;
        let blocks = log.as_ref().map_or(0, |log| log.layout.blocks());
        Ok(Some(Work {
            file,
            batch_index: batch_index(self.paths.len(), file, 0)?,
            damage,
            block: log.and_then(|log| log.layout.block(0).map(|block| (Arc::new(log), block))),
            more_blocks: 1..blocks,
            more_files: files,
        }))
    }

    /// The next block or file that was handed out with this work, if there is one.
    pub(crate) fn next(&self, call: Call<'_>, mut work: Work, buffer: &mut Buffer) -> Result<Option<Work>, ScanError> {
        if let Some(index) = work.more_blocks.next()
            && let Some((log, _)) = work.block
        {
            return Ok(Some(Work {
                batch_index: batch_index(self.paths.len(), work.file, index)?,
                damage: Vec::new(),
                block: log.layout.block(index).map(|block| (log, block)),
                ..work
            }));
        }
        // Lets go of the last file, which may close it, before another one is opened.
        drop(work.block);
        self.open_small(call, work.more_files, buffer)
    }

    /// Opens and surveys a file. Reads a small one into the buffer. Returns the log, and what is wrong with the file.
    pub(crate) fn open_log(
        &self,
        call: Call<'_>,
        file: usize,
        buffer: Option<&mut Buffer>,
    ) -> Result<(Option<OpenLog>, Vec<String>), ScanError> {
        let path = &self.paths[file];
        let is_first = path.split.as_ref().is_none_or(FileSplit::is_first);
        let open = || {
            let mut opened = OpenLog::open(call, path, &self.options.scan, buffer)?;
            if let (Opened::Log(log), Some(finder)) = (&mut opened, &self.options.beside)
                && !call.storage.is_remote(path.storage_path())
            {
                log.beside = finder.find(call, path)?;
            }
            Ok(opened)
        };
        match open() {
            Ok(Opened::Log(log)) => {
                let mut log = *log;
                let damage = match log.file.failure.take() {
                    _ if !is_first => None,
                    Some(failure) => Some(path.damage(failure)?),
                    None => {
                        let bad_checksum = log.bad_checksum.take().filter(|_| self.options.scan.verifies());
                        log.cut_short.take().or(bad_checksum)
                    }
                };
                let damage = log.file.damage().iter().cloned().chain(damage).collect();
                Ok((Some(log), damage))
            }
            Ok(Opened::Not(_)) if !is_first => Ok((None, Vec::new())),
            Ok(Opened::Not(why)) => Ok((None, vec![path.not_a_log(why)?])),
            Err(error) => Ok((None, vec![path.failure(error)?])),
        }
    }

    /// Gives up a file that cannot be read, so that no more blocks of it are handed out. Returns false if it was given
    /// up before.
    pub(crate) fn give_up(&self, file: usize) -> bool {
        let mut progress = self.lock();
        let before = std::mem::replace(&mut progress.files[file], FileState::Done { given_up: true });
        !matches!(before, FileState::Done { given_up: true })
    }

    /// The share of the bytes of all files that was handed out, 0 to 1.
    pub(crate) fn progress(&self) -> f64 {
        let before = self.bytes_before.get_or_init(|| bytes_before(&self.paths));
        let progress = self.lock();
        let of_file = |state: &FileState| match state {
            FileState::Done { .. } => 1.0,
            FileState::Open(log, next, _) => *next as f64 / log.layout.blocks().max(1) as f64,
            FileState::Waiting | FileState::Opening => 0.0,
        };
        let begun = progress.first..progress.next_unopened;
        let bytes = |file: usize| (before[file + 1] - before[file]) as f64 * of_file(&progress.files[file]);
        let done = before[begun.start] as f64 + begun.map(bytes).sum::<f64>();
        match before.last() {
            Some(&all) if all > 0 => done / all as f64,
            _ => 1.0,
        }
    }
}

/// How many bytes the first files have, by their number. Files of unknown size, which are remote or in archives, count
/// like the average of the others.
fn bytes_before(paths: &[ScanPath]) -> Vec<u64> {
    let size = |path: &ScanPath| match path.source {
        Source::File if path.split.is_none() => std::fs::metadata(&path.path).ok().map(|file| file.len()),
        _ => None,
    };
    let sizes: Vec<Option<u64>> = paths.iter().map(size).collect();
    let known = sizes.iter().flatten();
    let average = known
        .clone()
        .sum::<u64>()
        .checked_div(known.count() as u64)
        .unwrap_or(1);
    let sums = sizes.iter().scan(0, |sum: &mut u64, size| {
        *sum = sum.saturating_add(size.unwrap_or(average));
        Some(*sum)
    });
    std::iter::once(0).chain(sums).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder has few large logs, and many small ones.
    #[test]
    fn files_count_by_their_bytes_in_progress() {
        let folder = std::env::temp_dir().join(format!("evtx-progress-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = |name: &str, bytes: usize| {
            let path = folder.join(name);
            std::fs::write(&path, vec![0; bytes]).expect("a file");
            ScanPath::named(&path.display().to_string())
        };
        let unknown = ScanPath::named("s3://unknown");
        let paths = vec![path("large", 9000), path("small", 500), unknown, path("empty", 0)];
        assert_eq!(bytes_before(&paths), [0, 9000, 9500, 12_666, 12_666]);
        let options = FileOptions {
            scan: Arc::new(Scan::new(evtx_arrow::Options::default(), &[])),
            beside: None,
            joins_files: false,
        };
        let queue = FileQueue::new(paths, options);
        assert_eq!(queue.progress(), 0.0);
        queue.lock().next_unopened = 2;
        assert!(queue.give_up(0));
        assert_eq!(queue.progress(), 9000.0 / 12_666.0);
        let all = queue.paths().len();
        (queue.lock().first, queue.lock().next_unopened) = (all, all);
        assert_eq!(queue.progress(), 1.0);
        assert_eq!(bytes_before(&[]), [0]);
        std::fs::remove_dir_all(folder).expect("no folder");
    }

    #[test]
    fn blocks_of_a_large_image_come_before_those_of_the_next_file() {
        // 100 TiB, in blocks of 1 MiB.
        let last = 100 << 20;
        for files in [1, 2, 50_000] {
            let end = batch_index(files, 0, last).expect("a number");
            assert!(end < BATCH_INDEXES && end > batch_index(files, 0, last - 1).expect("a number"));
            if files > 1 {
                assert!(end < batch_index(files, 1, 0).expect("a number"));
                assert!(batch_index(files, files - 1, last).expect("a number") < BATCH_INDEXES);
            }
        }
        assert!(batch_index(10_000_000, 0, 1 << 20).is_err(), "no room among so many");
        assert!(batch_index(2, 2, 0).is_err());
    }
}
