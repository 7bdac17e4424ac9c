//! Small files, whose rows share batches: which rows come, whichever worker is called.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{on_threads, sample};
use evtx_arrow::{MakeArrays, Options, Scan, Table};
use evtx_format::Interrupt;
use evtx_scan::{FileKind, FileScan, LocalStorage, Worker, expand};

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

/// A worker that is not called holds up no other: between its calls nothing is reserved for it.
#[test]
fn a_worker_that_is_not_called_holds_up_no_other() {
    let folder = folder();
    let scan = scan(&folder);
    let start = Instant::now();
    let is_set = || start.elapsed() > Duration::from_secs(60);
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
