//! The queue that hands out the blocks of the files to the threads of a scan.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use evtx_format::container::layout::Block;

use crate::log::{OpenLog, Opened};
use crate::messages::MessageFinder;
use crate::paths::{FileSplit, ScanPath, Source};
use crate::storage::{Call, LastOpened, ScanError, WAIT};

/// Batch indexes are below this: engines reserve the larger ones.
const BATCH_INDEXES: u64 = 10_000_000_000_000;

/// The batch index of a block: its position in the order of all rows. `files` is the number of files, `file` the index
/// of the block's file among them, and `block` the index of the block in the file. The files share the indexes below
/// 10^13 evenly.
///
/// # Errors
/// [`ScanError::Input`] if the file has more blocks than its share of the indexes.
pub fn batch_index(files: usize, file: usize, block: u64) -> Result<u64, ScanError> {
    let of_each = BATCH_INDEXES / files.max(1) as u64;
    match block < of_each && file < files.max(1) {
        true => Ok(file as u64 * of_each + block),
        false => Err(ScanError::Input(format!(
            "a file of more than {of_each} blocks is too large to be read together with {files} files"
        ))),
    }
}

/// The next piece of work of a thread.
pub(crate) struct Work {
    /// The index of the file among the files of the scan.
    pub(crate) file: usize,
    /// The position of the rows in the order of all rows.
    pub(crate) batch_index: u64,
    /// What is wrong with the file as a whole. Only the first work of a file has it.
    pub(crate) damage: Option<String>,
    /// The log and the block to read, if there is one.
    pub(crate) block: Option<(Arc<OpenLog>, Block)>,
    /// The indices of the blocks after it that were handed out with it.
    pub(crate) rest: Range<u64>,
}

impl Work {
    /// The work with the next block that was handed out, if there is one.
    pub(crate) fn next(mut self) -> Option<Work> {
        let index = self.rest.next()?;
        let (log, _) = self.block?;
        Some(Work {
            batch_index: self.batch_index + 1,
            damage: None,
            block: log.block(index).map(|block| (log, block)),
            ..self
        })
    }
}

/// Files that one thread opens in turn, so that a batch can hold rows of several. Other threads wait for them, so a
/// reservation lasts only for a call. Dropping it marks the remaining files as done, because the thread has failed.
pub(crate) struct Reserved<'q> {
    queue: &'q FileQueue,
    files: Range<usize>,
}

impl<'q> Reserved<'q> {
    pub(crate) fn none(queue: &'q FileQueue) -> Self {
        Reserved { queue, files: 0..0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Lets any thread open the files that are left.
    pub(crate) fn give_back(&mut self) {
        if !self.is_empty() {
            self.queue.leave(std::mem::take(&mut self.files), || FileState::Waiting);
        }
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if !self.is_empty() {
            self.queue.leave(std::mem::take(&mut self.files), || DONE);
        }
    }
}

/// The most files that a thread reserves after the one that it opens.
const MAX_RESERVED: usize = 15;

/// The most blocks of a local file that a thread claims at once. A block of a remote file is claimed alone.
const MAX_BLOCKS: u64 = 8;

/// The most bytes of a file that is reserved. It has one block, unless it has stray chunks.
const SMALL: u64 = 1 << 20;

/// How a scan reads files.
#[derive(Debug)]
pub(crate) struct FileOptions {
    pub(crate) recover: bool,
    pub(crate) verify: bool,
    /// Finds messages, if the scan reads them.
    pub(crate) messages: Option<MessageFinder>,
    /// Whether batches may have rows of several small files, so that a thread reserves these.
    pub(crate) joins_files: bool,
}

pub(crate) struct FileQueue {
    paths: Vec<ScanPath>,
    pub(crate) options: FileOptions,
    progress: Mutex<Progress>,
    opened: Condvar,
    last: LastOpened,
    /// How many threads take part.
    threads: AtomicU64,
}

struct Progress {
    files: Vec<FileState>,
    /// The files before `first` are done. The files from `unopened` on are waiting.
    first: usize,
    unopened: usize,
}

enum FileState {
    /// No thread has opened it.
    Waiting,
    /// No thread has opened it, and one thread will.
    Reserved,
    /// A thread opens and surveys it.
    Opening,
    /// It is open. Holds the index of the next block to hand out.
    Open(Arc<OpenLog>, u64),
    /// All blocks were handed out, or the file was given up.
    Done { given_up: bool },
}

/// A file that a thread opens. If the thread panics, drop marks the file as done, so that no other thread waits for it.
struct Opening<'q>(&'q FileQueue, usize);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.lock().files[self.1] = DONE;
        self.0.opened.notify_all();
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
                unopened: 0,
            }),
            opened: Condvar::new(),
            last: LastOpened::default(),
            threads: AtomicU64::new(0),
        }
    }

    /// Counts a thread that takes part.
    pub(crate) fn join(&self) {
        self.threads.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn last(&self) -> &LastOpened {
        &self.last
    }

    pub(crate) fn path(&self, file: usize) -> &ScanPath {
        &self.paths[file]
    }

    // A poisoned lock stays usable: each change under the lock is one step, which no panic can interrupt.
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next work for a thread whose last work was of the file with index `last_file`, with at most `blocks` blocks;
    /// `None` at the end. The batch indexes that one thread gets rise. Files that are reserved for it come first. If
    /// there are none, the small files after the next one may be reserved.
    pub(crate) fn claim(
        &self,
        call: Call<'_>,
        last_file: usize,
        blocks: u64,
        reserved: &mut Reserved<'_>,
    ) -> Result<Option<Work>, ScanError> {
        let mut progress = self.lock();
        if let Some(file) = reserved.files.next() {
            progress.files[file] = FileState::Opening;
            drop(progress);
            return self.open(call, file, reserved).map(Some);
        }
        let mut small = 0..0;
        loop {
            while progress.first < progress.unopened && matches!(progress.files[progress.first], FileState::Done { .. })
            {
                progress.first += 1;
            }
            let mut is_opening = false;
            let mut unopened = None;
            for file in progress.first.max(last_file)..progress.unopened {
                match progress.files[file] {
                    FileState::Open(..) => return self.claim_blocks(&mut progress, file, blocks).map(Some),
                    FileState::Opening | FileState::Reserved => is_opening = true,
                    FileState::Waiting => {
                        unopened = Some(file);
                        break;
                    }
                    FileState::Done { .. } => {}
                }
            }
            if unopened.is_none() && progress.unopened < self.paths.len() {
                let file = progress.unopened;
                if small.start != file && self.most_reserved(file) > 0 {
                    // Other threads do not wait for a slow file system.
                    drop(progress);
                    small = file..self.end_of_small(file, call);
                    progress = self.lock();
                    if progress.unopened != file {
                        // Another thread was faster. The result for later files still holds.
                        small = progress.unopened..small.end.max(progress.unopened);
                        continue;
                    }
                }
                unopened = Some(file);
                progress.unopened = if small.contains(&file) { small.end } else { file + 1 };
            }
            if let Some(file) = unopened {
                // Small files after it, which were just found or were given back.
                let behind = progress.files[file + 1..progress.unopened].iter().take(MAX_RESERVED);
                let waiting = behind.take_while(|state| matches!(state, FileState::Waiting));
                reserved.files = file + 1..file + 1 + waiting.count();
                progress.files[reserved.files.clone()].fill_with(|| FileState::Reserved);
                progress.files[file] = FileState::Opening;
                drop(progress);
                return self.open(call, file, reserved).map(Some);
            }
            if !is_opening {
                return Ok(None);
            }
            // The file that another thread is opening may have blocks for this one.
            let waited = self.opened.wait_timeout(progress, WAIT);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            call.interrupt.check()?;
            progress = self.lock();
        }
    }

    /// How many files a thread may reserve with the file `file`: fewer when few are left, so that all threads end at
    /// the same time.
    fn most_reserved(&self, file: usize) -> usize {
        if !self.options.joins_files {
            return 0;
        }
        ((self.paths.len() - file) / (4 * self.threads() as usize)).min(MAX_RESERVED)
    }

    /// How many threads take part, one at least.
    fn threads(&self) -> u64 {
        self.threads.load(Ordering::Relaxed).max(1)
    }

    /// The end of the small files from index `first` on, as far as a thread may reserve them. A large file is never
    /// reserved: a thread that has read later files could not help with its blocks.
    fn end_of_small(&self, first: usize, call: Call<'_>) -> usize {
        let is_small = |path: &&ScanPath| {
            matches!(path.source, Source::File)
                && path.split.is_none()
                && !call.storage.is_remote(&path.path)
                && std::fs::metadata(&path.path).is_ok_and(|file| file.is_file() && file.len() <= SMALL)
        };
        let paths = self.paths[first..].iter().take(1 + self.most_reserved(first));
        first + paths.take_while(is_small).count()
    }

    /// Changes the state of files that a thread had reserved.
    fn leave(&self, files: Range<usize>, state: fn() -> FileState) {
        self.lock().files[files].fill_with(state);
        self.opened.notify_all();
    }

    /// Hands out the next blocks of an open file, at most `blocks`. Hands out fewer when few are left, so that all
    /// threads end at the same time.
    fn claim_blocks(&self, progress: &mut Progress, file: usize, blocks: u64) -> Result<Work, ScanError> {
        let mut work = Work {
            file,
            batch_index: 0,
            damage: None,
            block: None,
            rest: 0..0,
        };
        if let FileState::Open(log, next) = &mut progress.files[file] {
            let most = if log.file.is_remote() { 1 } else { MAX_BLOCKS };
            let of_each = log.blocks().saturating_sub(*next) / (4 * self.threads());
            let end = *next + blocks.min(most).min(of_each).max(1);
            batch_index(self.paths.len(), file, end - 1)?;
            work.batch_index = batch_index(self.paths.len(), file, *next)?;
            work.block = log.block(*next).map(|block| (Arc::clone(log), block));
            work.rest = *next + 1..end;
            *next = end;
            if *next >= log.blocks() {
                // The threads that still read its blocks keep it open.
                progress.files[file] = DONE;
            }
        }
        Ok(work)
    }

    /// Opens a file, without the lock, and hands out its first block, with what is wrong with the file. If it has more
    /// blocks, other threads may open the files that are reserved for this one.
    fn open(&self, call: Call<'_>, file: usize, reserved: &mut Reserved<'_>) -> Result<Work, ScanError> {
        let opening = Opening(self, file);
        let opened = self.opened(call, file);
        std::mem::forget(opening);
        let mut progress = self.lock();
        self.opened.notify_all();
        progress.files[file] = DONE;
        let (log, damage) = opened?;
        let mut work = Work {
            file,
            batch_index: batch_index(self.paths.len(), file, 0)?,
            damage: None,
            block: None,
            rest: 0..0,
        };
        let is_whole = log.as_ref().is_none_or(|log| log.blocks() <= 1);
        if let Some(log) = log.filter(|log| log.blocks() > 0) {
            progress.files[file] = FileState::Open(Arc::new(log), 0);
            work = self.claim_blocks(&mut progress, file, 1)?;
        }
        drop(progress);
        if !is_whole {
            reserved.give_back();
        }
        work.damage = damage;
        Ok(work)
    }

    /// Opens and surveys a file. Returns the log, and what is wrong with the file.
    fn opened(&self, call: Call<'_>, file: usize) -> Result<(Option<OpenLog>, Option<String>), ScanError> {
        let path = &self.paths[file];
        let is_first = path.split.as_ref().is_none_or(FileSplit::is_first);
        let open = || {
            let mut opened = OpenLog::open(call, path, self.options.recover)?;
            if let (Opened::Log(log), Some(finder)) = (&mut opened, &self.options.messages)
                && !call.storage.is_remote(path.storage_path())
            {
                log.messages = finder.find(call, path)?;
            }
            Ok(opened)
        };
        match path.patiently(call, open) {
            Ok(Opened::Log(log)) => {
                let mut log = *log;
                let damage = match log.file.failure.take() {
                    _ if !is_first => None,
                    Some(failure) => Some(path.damage(failure)?),
                    None => {
                        let bad_checksum = log.bad_checksum.take().filter(|_| self.options.verify);
                        log.cut_short.take().or(bad_checksum)
                    }
                };
                Ok((Some(log), damage))
            }
            Ok(Opened::Not(_)) if !is_first => Ok((None, None)),
            Ok(Opened::Not(why)) => Ok((None, Some(path.refusal(why)?))),
            Err(error) => Ok((None, Some(path.failure(error)?))),
        }
    }

    /// Gives up a file that cannot be read, so that no more blocks of it are handed out. Returns false if it was given
    /// up before.
    pub(crate) fn give_up(&self, file: usize) -> bool {
        let mut progress = self.lock();
        let before = std::mem::replace(&mut progress.files[file], FileState::Done { given_up: true });
        !matches!(before, FileState::Done { given_up: true })
    }

    /// The share of the scan that was handed out, 0 to 1. Each file counts the same, by the share of its blocks.
    pub(crate) fn progress(&self) -> f64 {
        let progress = self.lock();
        let of_file = |state: &FileState| match state {
            FileState::Done { .. } => 1.0,
            FileState::Open(log, next) => *next as f64 / log.blocks().max(1) as f64,
            FileState::Waiting | FileState::Reserved | FileState::Opening => 0.0,
        };
        let begun = &progress.files[progress.first..progress.unopened];
        let done = progress.first as f64 + begun.iter().map(of_file).sum::<f64>();
        if self.paths.is_empty() {
            1.0
        } else {
            done / self.paths.len() as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
