//! What workers claim at once: small files, and long claims of blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use evtx_arrow::{MakeArrays, Options, Scan, Table};
use evtx_format::Interrupt;
use evtx_scan::{FileKind, FileScan, LocalStorage, Storage, StorageError, StorageFile, Worker, expand};

use super::common::{on_threads, sample};

const HEADER: usize = 4096;
const FILES: usize = 40;

/// A folder of logs of 15 chunks, and of as many that are empty behind them.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let log = sample("DC01-Security.evtx");
    let (header, chunks) = log.split_at(HEADER);
    let full = [header, &chunks[..65536].repeat(15)].concat();
    // The number of chunks in the header.
    let mut empty = header.to_vec();
    empty[42..44].fill(0);
    for number in 0..FILES {
        std::fs::write(folder.path().join(format!("a{number:02}.evtx")), &full).expect("a log");
        std::fs::write(folder.path().join(format!("b{number:02}.evtx")), &empty).expect("an empty log");
    }
    folder
}

fn scan(folder: &tempfile::TempDir) -> Arc<FileScan> {
    let pattern = format!("{}/*.evtx", folder.path().display());
    let paths = expand(&LocalStorage, &pattern, FileKind::Logs, "test", Interrupt::NEVER).expect("logs");
    assert_eq!(paths.len(), 2 * FILES);
    let record_id = Scan::new(Table::from(Options::default()), &[0]);
    FileScan::new(Arc::new(record_id), paths, None).joining_files().into()
}

/// A worker that is not called holds up no other: no other waits for what it has claimed.
#[test]
fn a_worker_that_is_not_called_holds_up_no_other() {
    let folder = folder();
    let scan = scan(&folder);
    // It only ends a hang.
    let start = Instant::now();
    let is_set = || start.elapsed() > Duration::from_secs(600);
    let mut workers = [(); 3].map(|()| Worker::new(&scan, MakeArrays::CHECKED));
    let mut batches = Vec::new();
    let mut next = |worker: &mut Worker| {
        let batch = worker
            .next(&LocalStorage, Interrupt::new(&is_set))
            .expect("no worker waits for another");
        batch
            .map(|batch| batches.push((batch.index, batch.rows.num_rows())))
            .is_some()
    };
    for worker in &mut workers {
        assert!(next(worker));
    }
    for worker in workers.iter_mut().rev() {
        while next(worker) {}
    }
    let rows = batches.iter().map(|(_, rows)| rows).sum::<usize>();
    assert_eq!(rows % (15 * FILES), 0);
    assert!(rows > 15 * FILES);
    // A file with more rows than a batch has several of the same index.
    batches.sort_unstable();
    assert!(batches.len() < 2 * FILES, "{}", batches.len());
}

#[test]
fn threads_read_each_file_once() {
    let folder = folder();
    let count = |threads| {
        let (scan, rows) = (scan(&folder), AtomicUsize::new(0));
        let read = on_threads(threads, || {
            let mut worker = Worker::new(&scan, MakeArrays::CHECKED);
            let mut last = 0;
            while let Some(batch) = worker.next(&LocalStorage, Interrupt::NEVER)? {
                assert!(batch.index >= last);
                last = batch.index;
                rows.fetch_add(batch.rows.num_rows(), Ordering::Relaxed);
            }
            Ok(())
        });
        read.expect("rows");
        rows.into_inner()
    };
    assert!(count(1) > 0);
    for threads in [2, 3, 8] {
        assert_eq!(count(threads), count(1));
    }
}

/// Local files that cannot be read past an offset. Counts the reads.
struct Broken {
    end: u64,
    reads: Arc<AtomicUsize>,
}

struct BrokenFile(Arc<dyn StorageFile>, Broken);

impl Storage for Broken {
    fn glob(&self, pattern: &str, interrupt: Interrupt<'_>) -> Result<Vec<Vec<u8>>, StorageError> {
        LocalStorage.glob(pattern, interrupt)
    }

    fn exists(&self, path: &str) -> Result<bool, StorageError> {
        LocalStorage.exists(path)
    }

    fn is_remote(&self, _: &str) -> bool {
        false
    }

    fn open(&self, path: &str) -> Result<Arc<dyn StorageFile>, StorageError> {
        let (end, reads) = (self.end, Arc::clone(&self.reads));
        Ok(Arc::new(BrokenFile(LocalStorage.open(path)?, Broken { end, reads })))
    }
}

impl StorageFile for BrokenFile {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        self.1.reads.fetch_add(1, Ordering::Relaxed);
        if offset + buffer.len() as u64 > self.1.end {
            Err(StorageError::Failed("the disk is broken".to_owned()))
        } else {
            self.0.read_at(buffer, offset)
        }
    }
}

#[test]
fn a_small_log_is_read_at_once_or_as_far_as_it_can_be_read() {
    let folder = folder();
    let read = |end| {
        let storage = Broken {
            end,
            reads: Arc::default(),
        };
        let (mut worker, mut rows) = (Worker::new(&scan(&folder), MakeArrays::CHECKED), 0);
        while let Some(batch) = worker.next(&storage, Interrupt::NEVER).expect("rows") {
            rows += batch.rows.num_rows();
        }
        (rows, storage.reads.load(Ordering::Relaxed))
    };
    let (rows, reads) = read(u64::MAX);
    assert_eq!(reads, 2 * FILES);
    // A row for each file says why it cannot be read further.
    let (some, _) = read((HEADER + 5 * 65536) as u64);
    assert_eq!(some, rows / 3 + FILES);
}

/// An engine that restores the order gets long claims of blocks, whose batches have one index.
#[test]
fn claims_are_long_for_an_engine_that_keeps_the_order() {
    const CHUNKS: u16 = 24 * 16;
    let log = sample("DC01-Security.evtx");
    let (header, chunks) = log.split_at(HEADER);
    let mut log = [header, &chunks[..65536].repeat(CHUNKS.into())].concat();
    log[42..44].copy_from_slice(&CHUNKS.to_le_bytes());
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long.evtx");
    std::fs::write(&path, log).expect("a log");
    let path = path.display().to_string();
    let paths = expand(&LocalStorage, &path, FileKind::Logs, "test", Interrupt::NEVER).expect("a log");
    let table = Table::from(Options {
        location: true,
        ..Options::default()
    });
    let chunk_index = table.schema().index_of("chunk_index").expect("a column");
    let scan = Arc::new(FileScan::new(Scan::new(table, &[chunk_index]).into(), paths, None));
    let mut workers = [(); 2].map(|()| (Worker::new(&scan, MakeArrays::CHECKED), 0));
    let mut batches = Vec::new();
    let mut next = |(worker, last): &mut (Worker, u64)| {
        let batch = worker.next(&LocalStorage, Interrupt::NEVER).expect("rows");
        worker.keep_order(true);
        let Some(batch) = batch else { return false };
        assert!(batch.index >= *last);
        *last = batch.index;
        batches.push((batch.index, batch.rows));
        true
    };
    while workers
        .iter_mut()
        .map(&mut next)
        .fold(false, |any, has_rows| any | has_rows)
    {}
    // Each worker has its first block and one long claim. The sort is stable.
    batches.sort_by_key(|(index, _)| *index);
    assert_eq!(batches.chunk_by(|(one, _), (other, _)| one == other).count(), 4);
    let chunks = batches
        .iter()
        .flat_map(|(_, rows)| rows.column(0).as_primitive::<UInt32Type>().values());
    assert!(chunks.is_sorted());
}
