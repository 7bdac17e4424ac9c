//! Archives as they are found and as they should not be: which rows or which error they give.

#[path = "../../../../core/evtx-scan/tests/all/common/mod.rs"]
mod common;
mod campaign;
mod compressed;
mod crafted;
mod damaged;
mod encrypted;
mod hidden;
mod limits;
mod messages;
mod packed;
mod sevens;
mod sevens_hostile;
mod tars;
mod zips;

use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::{Array, StringViewArray};
use common::{on_threads, sample};
use cpu_time::ThreadTime;
use crafted::{Crafted, craft, end, stored};
use evtx_archive::{ArchiveStorage, Archives};
use evtx_arrow::{MakeArrays, Options, Scan, Table};
use evtx_format::{Interrupt, Interrupted};
use evtx_reports::{FileReport, ReportScan, ReportThreads};
use evtx_scan::{
    Call, FileKind, FileScan, LastOpened, ScanError, ScanPath, Storage, StorageError, StorageFile, Worker, expand,
};
use lzma_rust2::{XzOptions, XzWriter};
use zip::unstable::write::FileOptionsExt;
use zip::write::SimpleFileOptions;
use zip::{AesMode, CompressionMethod, ZipWriter};

/// The most processor time that the thread may take for an archive. Work that grows with the square of the entries takes
/// minutes.
const MAX_TIME: Duration = Duration::from_secs(20);

/// Prints how long something took, and how many seconds it may take, for `bench/promises.py`. Tests assert no time.
fn promised(what: &str, took: Duration, seconds: u64) {
    println!("promise: {what}: {:.3} s of {seconds} s", took.as_secs_f64());
}

/// Files in memory, and how often they were opened and read.
#[derive(Default)]
struct Memory {
    files: BTreeMap<String, Arc<[u8]>>,
    opens: AtomicUsize,
    reads: Arc<AtomicUsize>,
    is_remote: bool,
    fails_behind: Option<u64>,
}

struct MemoryFile {
    bytes: Arc<[u8]>,
    reads: Arc<AtomicUsize>,
    fails_behind: Option<u64>,
}

impl Memory {
    fn with(mut self, path: &str, bytes: &[u8]) -> Self {
        self.files.insert(path.to_owned(), bytes.into());
        self
    }
}

impl Storage for Memory {
    fn glob(&self, pattern: &str, _interrupt: Interrupt<'_>) -> Result<Vec<Vec<u8>>, StorageError> {
        let glob = glob::Pattern::new(pattern).expect("a pattern");
        let options = glob::MatchOptions {
            require_literal_separator: true,
            ..glob::MatchOptions::new()
        };
        let found = self
            .files
            .keys()
            .filter(|path| *path == pattern || glob.matches_with(path, options));
        Ok(found.map(|path| path.as_bytes().to_vec()).collect())
    }

    fn exists(&self, path: &str) -> Result<bool, StorageError> {
        Ok(self.files.contains_key(path))
    }

    fn is_remote(&self, _path: &str) -> bool {
        self.is_remote
    }

    fn open(&self, path: &str) -> Result<Arc<dyn StorageFile>, StorageError> {
        self.opens.fetch_add(1, Ordering::Relaxed);
        let bytes = self
            .files
            .get(path)
            .ok_or_else(|| StorageError::Failed(format!("no {path}")))?;
        Ok(Arc::new(MemoryFile {
            bytes: Arc::clone(bytes),
            reads: Arc::clone(&self.reads),
            fails_behind: self.fails_behind,
        }))
    }
}

impl StorageFile for MemoryFile {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let end = offset + buffer.len() as u64;
        if self
            .fails_behind
            .is_some_and(|limit| end > limit && end < self.size() - 1000)
        {
            return Err(StorageError::Failed("the disk is broken".to_owned()));
        }
        let bytes = self.bytes.get(offset as usize..end as usize);
        buffer.copy_from_slice(bytes.ok_or_else(|| StorageError::Failed("behind the end".to_owned()))?);
        Ok(())
    }
}

fn plain() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(CompressionMethod::Stored)
}

fn deflated() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(CompressionMethod::Deflated)
}

fn zip(entries: &[(&str, &[u8], SimpleFileOptions)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes, options) in entries {
        writer.start_file(*name, *options).expect("an entry");
        writer.write_all(bytes).expect("its bytes");
    }
    writer.finish().expect("an archive").into_inner()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(1)).expect("options");
    writer.write_all(bytes).expect("bytes");
    writer.finish().expect("a stream")
}

fn with_password(password: &str) -> Archives {
    Archives::new(256 << 20, 0, None).with_password(Some(&password.to_owned().into()))
}

fn paths(storage: &Memory, pattern: &str, archives: &Archives) -> Result<Vec<ScanPath>, ScanError> {
    let storage = ArchiveStorage::new(storage, archives);
    expand(&storage, pattern, FileKind::Logs, "a test", Interrupt::NEVER)
}

/// By file, in order: its rows without an error, and its errors.
type Rows = Vec<(String, usize, Vec<String>)>;

/// Reads the folder `l`, in which many logs of so many bytes are, with too little memory: the rows are the same on any
/// number of threads. With a temporary folder, all logs are read.
fn check_short_memory(storage: &Memory, log: usize) {
    // Each entry may take a quarter, in which 30 logs have room as they are held: compressed.
    let rows = |threads| read(storage, "l", &Archives::new(5 * log as u64, 0, None), threads).expect("rows");
    let alone = rows(1);
    let failed = |rows: &Rows| rows.iter().filter(|(_, _, errors)| !errors.is_empty()).count();
    assert!((25..40).contains(&failed(&alone)), "{}", failed(&alone));
    for threads in [2, 4, 8] {
        assert_eq!(rows(threads), alone, "{threads} threads");
    }
    let folder = tempfile::tempdir().expect("a folder").path().to_owned();
    let whole = read(storage, "l", &Archives::new(0, 120 * log as u64, Some(folder)), 4).expect("rows");
    let errors: Vec<_> = whole.iter().flat_map(|(_, _, errors)| errors).collect();
    assert_eq!(errors, [""; 0]);
}

fn read(storage: &Memory, pattern: &str, archives: &Archives, threads: usize) -> Result<Rows, ScanError> {
    let paths = paths(storage, pattern, archives)?;
    let table = Table::from(Options::default());
    let column = table.schema().index_of("error").expect("a column");
    let scan = Arc::new(FileScan::new(
        Arc::new(Scan::new(table, &[column])),
        paths.clone(),
        None,
    ));
    let rows: Mutex<Rows> = Mutex::new(paths.iter().map(|path| (path.path.clone(), 0, Vec::new())).collect());
    on_threads(threads, || {
        let mut worker = Worker::new(&scan, MakeArrays::CHECKED);
        while let Some(batch) = worker.next(storage, Interrupt::NEVER)? {
            let errors = batch
                .rows
                .column(0)
                .as_any()
                .downcast_ref::<StringViewArray>()
                .expect("texts");
            let (path, sound, found) = &mut rows.lock().expect("no panic")[batch.file];
            *sound += errors.null_count();
            let own = errors.iter().flatten().map(|text| text.replacen(path.as_str(), "", 1));
            found.extend(own);
        }
        Ok(())
    })?;
    Ok(rows.into_inner().expect("no panic"))
}

fn file(path: &str, rows: usize, errors: &[&str]) -> (String, usize, Vec<String>) {
    (
        path.to_owned(),
        rows,
        errors.iter().map(|error| (*error).to_owned()).collect(),
    )
}

fn rows_of(bytes: &[u8]) -> Rows {
    read(
        &Memory::default().with("a.zip", bytes),
        "a.zip",
        &Archives::default(),
        1,
    )
    .expect("rows")
}

fn error_of(bytes: &[u8]) -> String {
    let storage = Memory::default().with("a.zip", bytes);
    read(&storage, "a.zip", &Archives::default(), 1)
        .expect_err("an error")
        .to_string()
}
