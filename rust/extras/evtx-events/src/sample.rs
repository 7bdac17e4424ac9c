//! The fields of events, found in files before a scan runs.
//!
//! The calling thread opens the files. Other threads read blocks of them, in rounds. Their results are merged in the
//! order of the files, so that the columns do not depend on the threads. The results for a file are kept for the next
//! scan, as long as the file does not change.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use evtx_arrow::{EventField, Events};
use evtx_format::Interrupt;
use evtx_format::container::chunk::CHUNK_SIZE;
use evtx_format::container::header::{FILE_HEADER, FileHeader};
use evtx_format::container::records::PromisedIds;
use evtx_scan::{
    Buffer, Call, LastOpened, LogFile, MAX_THREADS, SETTLED, ScanError, ScanPath, Storage, on_threads, unless_failed,
};

use crate::collected::CollectedEvents;
use crate::collector::EventCollector;
use crate::columns::MAX_FIELDS;
use crate::slots::{Slots, SlotsError};

/// The most bytes that are read of local files for the fields of events: by default, and of a given number of files.
const MAX_BYTES: u64 = 4 << 30;
const SAMPLE_BYTES: u64 = 512 << 20;

/// How many remote files are read by default, and how many blocks of each. The scan mostly needs the first block, too.
const REMOTE_FILES: usize = 100;
const REMOTE_BLOCKS: u64 = 1;

/// How many blocks the threads read in a round.
const ROUND: usize = 64;

/// Most bytes that are kept of all files, and of one.
const KEPT_BYTES: usize = 16 << 20;
const KEPT_OF_FILE: usize = 1 << 20;

/// How many bytes at the start of a file's header have fields.
const HEADER_FIELDS: usize = 128;

/// How much of the files is read for the fields of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SampleSize {
    /// All local files, and some remote ones. Only parts if local files are very large together.
    #[default]
    Local,
    /// So many files, evenly spread. Only parts of large ones.
    Files(usize),
    /// All files. Local ones in full.
    All,
}

/// Identifies the content of a file and the question that was asked about it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Identity {
    path: String,
    size: u64,
    modified: i64,
    header: Vec<u8>,
    stride: u64,
    events: Arc<Events>,
}

/// Results that are kept. When they take too much memory, all are forgotten.
#[derive(Default)]
struct Kept {
    found: HashMap<Identity, Arc<CollectedEvents>>,
    bytes: usize,
}

fn kept() -> MutexGuard<'static, Kept> {
    static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);
    // Each change under the lock leaves it valid.
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kept {
    fn insert(&mut self, identity: Identity, found: CollectedEvents) {
        // The events' IDs and names are shared by all files of a scan, and count for each.
        let of_events = 4 * identity.events.ids.as_ref().map_or(0, |ids| ids.len());
        let bytes = size_of::<Identity>() + identity.path.len() + identity.header.len() + of_events + found.bytes();
        if bytes > KEPT_OF_FILE || self.found.contains_key(&identity) {
            return;
        }
        if self.bytes + bytes > KEPT_BYTES {
            *self = Kept::default();
        }
        self.bytes += bytes;
        self.found.insert(identity, Arc::new(found));
    }
}

/// Reads the fields of events from files, with at most `threads` threads. Skips unreadable files: the scan reports
/// them. The fields come with a warning if bytes were left out that the caller did not exclude, or fields.
///
/// # Errors
/// [`ScanError::Interrupted`], and [`ScanError::Decode`] if a thread has panicked.
pub(crate) fn read_sample(
    events: Events,
    storage: &dyn Storage,
    paths: &[ScanPath],
    size: SampleSize,
    threads: usize,
    interrupt: Interrupt<'_>,
) -> Result<(Vec<EventField>, Option<String>), ScanError> {
    let last = LastOpened::default();
    let call = Call::new(storage, interrupt, &last);
    let chosen = chosen(paths, size, storage);
    let mut bytes = 0;
    for path in &chosen {
        interrupt.check()?;
        bytes += unless_failed(path.size(storage, 0))?.unwrap_or(0);
    }
    let limit = match size {
        SampleSize::Local => MAX_BYTES,
        SampleSize::Files(_) => SAMPLE_BYTES,
        SampleSize::All => u64::MAX,
    };
    let stride = bytes.div_ceil(limit).max(1);
    let warning = (stride > 1 && size == SampleSize::Local).then(|| {
        format!(
            "the logs have {} MiB, of which one MiB in {stride} is read to find the columns of the events; fields that \
             only the others have are in event_data; with sample_size -1, all is read",
            bytes >> 20
        )
    });
    let mut reading = Reading::new(events, threads, call);
    for path in chosen {
        reading.file(path, stride)?;
    }
    reading.round()?;
    let fields = reading.catalog.fields();
    let is_full = (fields.len() >= MAX_FIELDS).then(|| {
        format!(
            "the events have {MAX_FIELDS} fields or more: no more of them have columns, all others are in event_data"
        )
    });
    let warnings: Vec<String> = warning.into_iter().chain(is_full).collect();
    Ok((fields, (!warnings.is_empty()).then(|| warnings.join("\n"))))
}

/// The files to read.
fn chosen<'p>(paths: &'p [ScanPath], size: SampleSize, storage: &dyn Storage) -> Vec<&'p ScanPath> {
    let spread = |count: usize, of: usize| {
        let count = count.min(of);
        (0..count).map(move |i| i * of / count)
    };
    match size {
        SampleSize::All => paths.iter().collect(),
        SampleSize::Files(count) => spread(count, paths.len()).map(|at| &paths[at]).collect(),
        SampleSize::Local => {
            let is_remote = |path: &&ScanPath| storage.is_remote(path.storage_path());
            let (remote, local): (Vec<_>, Vec<_>) = paths.iter().partition(is_remote);
            let some = spread(REMOTE_FILES, remote.len()).map(|at| remote[at]);
            local.into_iter().chain(some).collect()
        }
    }
}

/// A read of the blocks of files.
struct Reading<'c> {
    events: Arc<Events>,
    call: Call<'c>,
    catalog: EventCollector,
    /// For each thread one.
    readers: Vec<(EventCollector, Buffer)>,
    /// The steps of the next round, in the order of the files.
    steps: Vec<Step>,
    /// The results for the current file; `None` if it cannot be read in full.
    of_file: Option<CollectedEvents>,
}

/// A block of a file, for a thread.
struct Block {
    file: Arc<LogFile>,
    offset: u64,
    len: u64,
    /// The IDs that the file header promises to the chunks.
    promised: PromisedIds,
    found: OnceLock<CollectedEvents>,
}

/// A step of a round.
enum Step {
    /// It was found before.
    Known(Arc<CollectedEvents>),
    /// The next block of the file at hand.
    Block(Block),
    /// The file ends.
    End(Option<Identity>),
}

impl<'c> Reading<'c> {
    fn new(events: Events, threads: usize, call: Call<'c>) -> Self {
        let catalog = EventCollector::new(Some(events.clone()));
        Reading {
            readers: (0..threads.clamp(1, MAX_THREADS))
                .map(|_| (catalog.beside(), Buffer::default()))
                .collect(),
            catalog,
            events: Arc::new(events),
            call,
            steps: Vec::new(),
            of_file: Some(CollectedEvents::default()),
        }
    }

    /// Reads a file: the first of each `stride` blocks.
    fn file(&mut self, path: &ScanPath, stride: u64) -> Result<(), ScanError> {
        self.call.interrupt.check()?;
        let call = self.call;
        let Some(file) = unless_failed(LogFile::open(call, path))? else {
            return Ok(());
        };
        let mut header = Buffer::default();
        let len = file.size().min(FILE_HEADER as u64);
        let is_read = unless_failed(file.read(&mut header, 0, len))?.is_some();
        let Some(known) = FileHeader::read(&header, file.size()).ok().filter(|_| is_read) else {
            return Ok(());
        };
        let modified = file.modified().filter(|modified| {
            let is_settled = modified.age > SETTLED;
            // Windows does not set the time of a file that it writes through memory, as it does with logs in use.
            is_settled && !(cfg!(windows) && known.is_dirty())
        });
        let is_remote = call.storage.is_remote(path.storage_path());
        let identity = modified.filter(|_| !is_remote).map(|modified| Identity {
            path: path.path.clone(),
            size: file.size(),
            modified: modified.stamp,
            header: header[..HEADER_FIELDS].to_vec(),
            stride,
            events: Arc::clone(&self.events),
        });
        let found = identity
            .as_ref()
            .and_then(|identity| kept().found.get(identity).cloned());
        if let Some(found) = found {
            self.steps.push(Step::Known(found));
            return Ok(());
        }
        let blocks = if is_remote { REMOTE_BLOCKS } else { u64::MAX };
        let (file, mut offset) = (Arc::new(file), FILE_HEADER as u64);
        for _ in 0..blocks {
            let len = file.block_size().min(file.size().saturating_sub(offset));
            if len == 0 {
                break;
            }
            self.steps.push(Step::Block(Block {
                file: Arc::clone(&file),
                offset,
                len,
                promised: PromisedIds::of_log(&known),
                found: OnceLock::new(),
            }));
            offset = offset.saturating_add(stride.saturating_mul(file.block_size()));
            if self.steps.len() >= ROUND {
                self.round()?;
            }
        }
        self.steps.push(Step::End(identity));
        Ok(())
    }

    /// Reads the blocks, and puts together what they have.
    fn round(&mut self) -> Result<(), ScanError> {
        let next = AtomicUsize::new(0);
        let threads = self.readers.len().min(self.steps.len());
        let read =
            |(reader, bytes): &mut _, interrupt: Interrupt<'_>| read_next(reader, bytes, &self.steps, &next, interrupt);
        on_threads(&mut self.readers[..threads], self.call.interrupt, read, || Ok(()))?;
        for step in self.steps.drain(..) {
            match step {
                // Fields over the limit get no columns.
                Step::Known(found) => _ = self.catalog.absorb(&found),
                Step::Block(block) => {
                    let found = block.found.into_inner();
                    if let Some(found) = &found {
                        _ = self.catalog.absorb(found);
                    }
                    let of_file = self.of_file.take().zip(found);
                    self.of_file = of_file.and_then(|(mut of_file, found)| {
                        of_file.absorb(&found).ok()?;
                        Some(of_file)
                    });
                }
                Step::End(identity) => {
                    let of_file = self.of_file.replace(CollectedEvents::default());
                    if let Some((identity, found)) = identity.zip(of_file) {
                        kept().insert(identity, found);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Reads blocks until there are no more.
fn read_next(
    reader: &mut EventCollector,
    bytes: &mut Buffer,
    steps: &[Step],
    next: &AtomicUsize,
    interrupt: Interrupt<'_>,
) -> Result<(), ScanError> {
    while let Some(step) = steps.get(next.fetch_add(1, Ordering::Relaxed)) {
        interrupt.check()?;
        let Step::Block(block) = step else { continue };
        if unless_failed(block.file.read(bytes, block.offset, block.len))?.is_none() {
            continue;
        }
        let first = (block.offset - FILE_HEADER as u64) / CHUNK_SIZE as u64;
        let slots = Slots {
            bytes,
            first,
            promised: block.file.promised(bytes, first, block.promised)?,
            ..Slots::default()
        };
        let outcome = reader.push(slots, interrupt);
        let found = reader.take();
        match outcome {
            Err(SlotsError::Interrupted(interrupted)) => return Err(interrupted.into()),
            // Fields over the limit get no columns.
            Ok(()) | Err(SlotsError::TooManyEvents(_)) => {}
        }
        _ = block.found.set(found);
    }
    Ok(())
}
