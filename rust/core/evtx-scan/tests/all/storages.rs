//! Scans over storages that do what storages do: fail, are slow, shrink, lie about sizes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::{Array, StringViewArray, UInt64Array};
use evtx_arrow::{MakeArrays, OnError, Options, Scan, Table};
use evtx_format::{Interrupt, Interrupted};
use evtx_query::{Arguments, Query};
use evtx_reports::{ChunkReport, FileReport, Report, ReportScan, ReportThreads, SchemaReport};
use evtx_scan::{
    ArgumentValue, FileKind, FileScan, FileSplit, LocalStorage, Modified, ScanError, ScanPath, Storage, StorageError,
    StorageFile, Worker, expand,
};

use super::common::{SAMPLES, on_threads, sample};

/// What a storage in memory does with a file.
#[derive(Debug, Clone, Default)]
struct Manner {
    /// How many more bytes it says that there are, or fewer.
    lie: i64,
    /// Reads fail that reach behind this offset.
    fails_behind: Option<u64>,
    /// How long a read takes.
    slow: Duration,
    /// Whether a read takes long, whatever its size.
    is_remote: bool,
    /// Whether a read panics.
    panics: bool,
    /// When it was modified, if that is known.
    modified: Option<Modified>,
    /// Whether the reads up to this number modify it.
    modifying: usize,
    /// How often it can be opened, if not always.
    opens: Option<usize>,
    /// Whether it is modified before each time that it is opened.
    is_rewritten: bool,
}

/// Files in memory.
#[derive(Default)]
struct Memory {
    files: BTreeMap<String, (Arc<[u8]>, Manner)>,
    reads: Arc<AtomicUsize>,
    opens: AtomicUsize,
    /// Whether the caller wants no more, which only the storage knows.
    is_interrupted: Arc<AtomicBool>,
}

struct MemoryFile {
    bytes: Arc<[u8]>,
    manner: Manner,
    /// How often it was rewritten.
    rewritten: i64,
    reads: Arc<AtomicUsize>,
    is_interrupted: Arc<AtomicBool>,
}

impl Memory {
    fn with(mut self, path: &str, bytes: &[u8], manner: Manner) -> Self {
        self.files.insert(path.to_owned(), (bytes.into(), manner));
        self
    }
}

impl Storage for Memory {
    fn glob(&self, pattern: &str, _interrupt: Interrupt<'_>) -> Result<Vec<Vec<u8>>, StorageError> {
        let glob = glob::Pattern::new(pattern).expect("a pattern");
        let is_match = |path: &&String| path.as_str() == pattern || glob.matches(path);
        Ok(self
            .files
            .keys()
            .filter(is_match)
            .map(|path| path.as_bytes().to_vec())
            .collect())
    }

    fn exists(&self, path: &str) -> Result<bool, StorageError> {
        Ok(self.files.contains_key(path))
    }

    fn is_remote(&self, path: &str) -> bool {
        self.files.get(path).is_some_and(|(_, manner)| manner.is_remote)
    }

    fn open(&self, path: &str) -> Result<Arc<dyn StorageFile>, StorageError> {
        let (bytes, manner) = self
            .files
            .get(path)
            .ok_or_else(|| StorageError::Failed(format!("no {path}")))?;
        let opens = self.opens.fetch_add(1, Ordering::Relaxed);
        if manner.opens.is_some_and(|most| opens >= most) {
            return Err(StorageError::Failed("the file is gone".to_owned()));
        }
        Ok(Arc::new(MemoryFile {
            bytes: Arc::clone(bytes),
            manner: manner.clone(),
            rewritten: if manner.is_rewritten { opens as i64 } else { 0 },
            reads: Arc::clone(&self.reads),
            is_interrupted: Arc::clone(&self.is_interrupted),
        }))
    }
}

impl StorageFile for MemoryFile {
    fn size(&self) -> u64 {
        (self.bytes.len() as u64).saturating_add_signed(self.manner.lie)
    }

    fn modified(&self) -> Option<Modified> {
        let reads = self.reads.load(Ordering::Relaxed).min(self.manner.modifying) as i64;
        self.manner.modified.map(|modified| Modified {
            stamp: modified.stamp + reads + self.rewritten,
            ..modified
        })
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(self.manner.slow);
        assert!(!self.manner.panics, "at a read");
        if self.is_interrupted.load(Ordering::Relaxed) {
            return Err(Interrupted.into());
        }
        let end = offset.saturating_add(buffer.len() as u64);
        if self.manner.fails_behind.is_some_and(|limit| end > limit) {
            return Err(StorageError::Failed("the disk is broken".to_owned()));
        }
        let range = offset as usize..end.min(usize::MAX as u64) as usize;
        let bytes = self
            .bytes
            .get(range)
            .ok_or_else(|| StorageError::Failed("the file has become shorter".to_owned()))?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}

/// A log of so many copies of a sample's first chunk.
fn long(name: &str, chunks: usize) -> Vec<u8> {
    let log = sample(name);
    let chunk = &log[4096..][..65_536];
    [&log[..4096], &chunk.repeat(chunks)].concat()
}

fn paths(storage: &dyn Storage, pattern: &str) -> Vec<ScanPath> {
    expand(storage, pattern, FileKind::Logs, "a test", Interrupt::NEVER).expect("files")
}

fn file_scan(options: Options, paths: Vec<ScanPath>) -> Arc<FileScan> {
    let table = Table::from(options);
    let schema = table.schema();
    let columns = ["record_id", "error"].map(|name| schema.index_of(name).expect("a column"));
    Arc::new(FileScan::new(Arc::new(Scan::new(table, &columns)), paths, None))
}

/// Record IDs and errors, in the order of all rows.
type Rows = Vec<(Option<u64>, Option<String>)>;

/// Reads a scan with so many threads.
fn rows(storage: &(dyn Storage + Sync), scan: &Arc<FileScan>, threads: usize) -> Result<Rows, ScanError> {
    let found = Mutex::new(Vec::new());
    on_threads(threads, || {
        let mut worker = Worker::new(scan, MakeArrays::CHECKED);
        let mut last = 0;
        while let Some(batch) = worker.next(storage, Interrupt::NEVER)? {
            assert!(batch.index >= last, "the positions of a worker rise");
            last = batch.index;
            let ids = batch
                .rows
                .column(0)
                .as_any()
                .downcast_ref::<UInt64Array>()
                .expect("IDs");
            let errors = batch
                .rows
                .column(1)
                .as_any()
                .downcast_ref::<StringViewArray>()
                .expect("texts");
            let rows: Rows = ids
                .iter()
                .zip(errors.iter().map(|text| text.map(str::to_owned)))
                .collect();
            found.lock().expect("no panic").push((batch.index, rows));
        }
        Ok(())
    })?;
    let mut found = found.into_inner().expect("no panic");
    // Batches of one block come from one thread, in order.
    found.sort_by_key(|(index, _)| *index);
    Ok(found.into_iter().flat_map(|(_, rows)| rows).collect())
}

#[test]
fn local_files_are_read_in_order_by_any_number_of_threads() {
    let paths = paths(&LocalStorage, SAMPLES);
    assert!(paths.len() >= 14 && paths.iter().all(|path| !path.explicitly_named));
    let one = rows(&LocalStorage, &file_scan(Options::default(), paths.clone()), 1).expect("rows");
    assert!(one.len() > 400, "{}", one.len());
    for threads in [2, 5] {
        let many = rows(&LocalStorage, &file_scan(Options::default(), paths.clone()), threads).expect("rows");
        assert_eq!(one, many);
    }
    let scan = file_scan(Options::default(), paths);
    assert_eq!(scan.progress(), 0.0);
    rows(&LocalStorage, &scan, 2).expect("rows");
    assert_eq!(scan.progress(), 1.0);
}

/// A log of so many chunks with four records each, whose IDs rise by one.
fn numbered(chunks: usize) -> Vec<u8> {
    let mut log = long("WS07-Security.evtx", chunks);
    let mut id = 0_u64;
    for chunk in log[4096..].chunks_exact_mut(65_536) {
        let mut at = 512;
        for (header, known) in [(24, id), (32, id + 3)] {
            chunk[header..header + 8].copy_from_slice(&known.to_le_bytes());
        }
        while chunk[at..].starts_with(b"**\0\0") {
            chunk[at + 8..at + 16].copy_from_slice(&id.to_le_bytes());
            id += 1;
            at += u32::from_le_bytes(chunk[at + 4..at + 8].try_into().expect("a size")) as usize;
        }
    }
    log
}

#[test]
fn a_batch_has_rows_of_several_blocks_if_these_have_few() {
    let (chunks, of_each) = (400, 4);
    let log = numbered(chunks);
    let storage = Memory::default().with("log", &log, Manner::default());
    let scan = || file_scan(Options::default(), paths(&storage, "log"));
    let mut batches = Vec::new();
    let mut worker = Worker::new(&scan(), MakeArrays::CHECKED);
    while let Some(batch) = worker.next(&storage, Interrupt::NEVER).expect("rows") {
        batches.push((batch.index, batch.rows.num_rows()));
    }
    // One block, then those that are claimed together: a quarter of what is left, at most eight.
    assert_eq!(batches[..4], [(0, 64), (1, 384), (7, 256), (11, 192)]);
    let whole: Vec<_> = (0..of_each * chunks as u64).map(|id| (Some(id), None)).collect();
    for threads in [1, 2, 5] {
        assert_eq!(
            rows(&storage, &scan(), threads).expect("rows"),
            whole,
            "{threads} threads"
        );
    }
}

#[test]
fn blocks_of_many_rows_and_those_of_remote_files_are_claimed_one_by_one() {
    // 40 records in each chunk, so 640 in a block of a local file.
    let dense = long("dirty.evtx", 160);
    let remote = Manner {
        is_remote: true,
        ..Manner::default()
    };
    let storage = Memory::default()
        .with("dense", &dense, Manner::default())
        .with("remote", &numbered(1024), remote);
    let indices = |name, batches| {
        let mut worker = Worker::new(
            &file_scan(Options::default(), paths(&storage, name)),
            MakeArrays::CHECKED,
        );
        let mut next = || worker.next(&storage, Interrupt::NEVER).expect("rows").expect("a batch");
        Vec::from_iter(std::iter::repeat_with(|| next().index).take(batches))
    };
    assert_eq!(indices("dense", 10), (0..10).collect::<Vec<_>>());
    storage.reads.store(0, Ordering::Relaxed);
    assert_eq!(indices("remote", 1), [0]);
    // What a LIMIT does not need is not read.
    assert_eq!(storage.reads.load(Ordering::Relaxed), 1);
    assert_eq!(indices("remote", 4), (0..4).collect::<Vec<_>>());
}

#[test]
fn a_read_that_fails_loses_no_rows_of_the_blocks_before() {
    let log = numbered(400);
    // The block with index 10 reaches behind it, one of several that are claimed together.
    let manner = Manner {
        fails_behind: Some(10 << 20 | 5000),
        ..Manner::default()
    };
    let storage = Memory::default().with("logs/log", &log, manner);
    let found = rows(&storage, &file_scan(Options::default(), paths(&storage, "logs/*")), 1).expect("rows");
    let mut want: Vec<_> = (0..10 * 16 * 4).map(|id| (Some(id), None)).collect();
    want.push((None, Some("logs/log: cannot be read: the disk is broken".to_owned())));
    assert!(found == want, "{:?}", found.last());
}

#[test]
fn a_file_that_changes_while_it_is_read_says_so_once() {
    let log = numbered(400);
    let manner = |modifying| Manner {
        modified: Some(Modified {
            stamp: 7,
            age: Duration::ZERO,
        }),
        modifying,
        ..Manner::default()
    };
    for (modifying, threads) in [(0, 1), (3, 1), (20, 1), (20, 4)] {
        let storage = Memory::default().with("logs/log", &log, manner(modifying));
        let found = rows(
            &storage,
            &file_scan(Options::default(), paths(&storage, "logs/*")),
            threads,
        )
        .expect("rows");
        let (records, errors): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, error)| error.is_none());
        assert_eq!(records.len(), 400 * 4, "each record has its row");
        let text = "logs/log: the file was modified while it was read: records of before and after it can be mixed, or missing";
        let expected = (modifying > 0).then(|| (None, Some(text.to_owned())));
        assert_eq!(errors, Vec::from_iter(expected), "{modifying} reads modify it");
    }
}

/// A scan that correlates all events: its rows are the bursts of two or more of a channel.
fn correlating(storage: &Memory) -> Arc<FileScan> {
    let text = "title: b\nname: b\nlogsource: {product: windows}\ndetection: {a: {EventID|exists: true}, condition: a}\n---\n\
        title: c\ncorrelation: {type: event_count, rules: [b], group-by: [Channel], timespan: 9999d, condition: {gte: 2}}\n";
    let rules = tempfile::NamedTempFile::with_suffix(".yml").expect("a file");
    std::fs::write(&rules, text).expect("rules");
    let mut arguments = Arguments::new(Query::Matches);
    let value = ArgumentValue::List(vec![rules.path().to_str().expect("text").to_owned()]);
    let argument = Query::Matches.argument("rules").expect("an argument");
    arguments.set(argument, value, "a test").expect("a path");
    let call = arguments
        .call(Vec::new(), 1, u64::MAX, &LocalStorage, "a test", Interrupt::NEVER)
        .expect("rules");
    let schema = call.table.schema();
    let columns = ["record_id", "error"].map(|name| schema.index_of(name).expect("a column"));
    let scan = Arc::new(Scan::new(call.table, &columns));
    Arc::new(FileScan::new(scan, paths(storage, "logs/*"), None))
}

/// What is wrong with each row of such a scan of one log.
fn bursts(manner: Manner, threads: usize) -> Vec<Option<String>> {
    let storage = Memory::default().with("logs/log", &long("DC01-Security.evtx", 3), manner);
    let found = rows(&storage, &correlating(&storage), threads).expect("rows");
    found.into_iter().map(|(_, error)| error).collect()
}

#[test]
fn rows_on_a_log_that_is_gone_are_not_in_a_batch_of_another_log() {
    let gone = Manner {
        opens: Some(1),
        ..Manner::default()
    };
    let storage = Memory::default()
        .with("logs/a", &sample("DC01-Security.evtx"), gone)
        .with("logs/b", &sample("DC01-Sysmon.evtx"), Manner::default());
    let mut worker = Worker::new(&correlating(&storage), MakeArrays::CHECKED);
    let mut found = Vec::new();
    while let Some(batch) = worker.next(&storage, Interrupt::NEVER).expect("rows") {
        let errors = batch.rows.num_rows() - batch.rows.column(1).null_count();
        found.push((batch.file, errors, batch.rows.num_rows() > errors));
    }
    assert_eq!(found, [(0, 1, false), (1, 0, true)]);
}

#[test]
fn bursts_of_a_log_that_changes_between_the_passes_are_rows_or_a_row_says_why() {
    let valid = bursts(Manner::default(), 1);
    assert!(!valid.is_empty() && valid.iter().all(Option::is_none));
    for threads in [1, 3] {
        let gone = bursts(
            Manner {
                opens: Some(1),
                ..Manner::default()
            },
            threads,
        );
        let why = format!(
            "logs/log: {} bursts of correlations could not be read again",
            valid.len()
        );
        assert_eq!(gone, [Some(why)]);
    }
    let modified = Some(Modified {
        stamp: 7,
        age: Duration::ZERO,
    });
    // It is rewritten between the passes, or while the first one reads it.
    for (is_rewritten, modifying) in [(true, 0), (false, 1)] {
        let manner = Manner {
            modified,
            modifying,
            is_rewritten,
            ..Manner::default()
        };
        let (rows, errors): (Vec<_>, Vec<_>) = bursts(manner, 1).into_iter().partition(Option::is_none);
        assert_eq!(rows.len(), valid.len());
        let [Some(why)] = &errors[..] else {
            panic!("{errors:?}");
        };
        assert!(why.contains("was modified"), "{why}");
    }
}

#[test]
fn a_path_that_is_no_file_says_why() {
    let expand = |path| expand(&LocalStorage, path, FileKind::Logs, "a test", Interrupt::NEVER);
    assert!(matches!(expand(""), Err(ScanError::Input(text)) if text == "a test cannot take an empty path"));
    assert!(matches!(expand("/nowhere/*.evtx"), Err(ScanError::NoFiles(_))));
    assert!(matches!(expand("/nowhere/log.evtx"), Err(ScanError::Storage(text)) if text.contains("/nowhere/log.evtx")));
    assert!(matches!(expand("/dev/null"), Err(ScanError::Storage(text)) if text.contains("not a regular file")));
    let named = expand(&format!("{SAMPLES}/dirty.evtx")).expect("a file");
    assert!(named.len() == 1 && named[0].explicitly_named);
}

/// A folder is read for logs. What looks like other evidence is only reported, unless a path or a glob names it.
#[test]
fn other_evidence_in_a_folder_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = std::fs::read(format!("{SAMPLES}/dirty.evtx")).expect("a sample");
    for (name, bytes) in [
        ("a.evtx", &log[..]),
        ("b.evtx.BAK", &log),
        ("c.Evt", b"an old log"),
        ("disk.E01", b""),
        ("notes.txt", b""),
        ("part.7z.001", b"7z"),
    ] {
        std::fs::write(folder.path().join(name), bytes).expect("a file");
    }
    let folder = folder.path().to_str().expect("text");
    let names = |path: &str, kind| -> Vec<(String, bool)> {
        let found = expand(&LocalStorage, path, kind, "a test", Interrupt::NEVER).expect("files");
        let name = |found: &ScanPath| (found.path.replacen(folder, "", 1), found.why_unreadable().is_none());
        found.iter().map(name).collect()
    };
    let named = |names: &[(&str, bool)]| -> Vec<_> { names.iter().map(|&(name, is)| (name.to_owned(), is)).collect() };
    assert_eq!(names(folder, FileKind::Logs), named(&[("/a.evtx", true)]));
    let all = [
        ("/a.evtx", true),
        ("/b.evtx.BAK", false),
        ("/c.Evt", false),
        ("/disk.E01", false),
        ("/part.7z.001", false),
    ];
    assert_eq!(names(folder, FileKind::Evidence), named(&all));
    for kind in [FileKind::Logs, FileKind::Evidence] {
        let backup = named(&[("/b.evtx.BAK", true)]);
        assert_eq!(names(&format!("{folder}/b.evtx.BAK"), kind), backup);
        assert_eq!(names(&format!("{folder}/b*"), kind), backup);
    }
    let named = paths(&LocalStorage, &format!("{folder}/c.Evt"));
    let error = rows(&LocalStorage, &file_scan(Options::default(), named), 1)
        .expect_err("it is named")
        .to_string();
    assert!(
        error.contains("not an EVTX log: ") && error.ends_with("`wevtutil epl old.evt new.evtx /lf:true`"),
        "{error}"
    );
    // A report has the same advice for a folder and for a glob. The bytes of what a glob has found decide.
    let advice = |path: &str| {
        let paths = expand(&LocalStorage, path, FileKind::Evidence, "a test", Interrupt::NEVER).expect("files");
        let rows = report(&LocalStorage, FileReport::default(), paths, 1).expect("rows");
        let find = |text: &str| rows.iter().filter(|row| row.contains(text)).count();
        let notes = find("notes.txt") == find("not an EVTX log: the file is empty");
        (rows.len(), find("not read: it is"), find("not read: its name"), notes)
    };
    assert_eq!(advice(folder), (5, 3, 1, true));
    assert_eq!(advice(&format!("{folder}/*")), (6, 3, 0, true));
    assert_eq!(advice(&format!("{folder}/**")), (6, 3, 0, true));
    for name in ["a.evtx", "b.evtx.BAK"] {
        std::fs::remove_file(format!("{folder}/{name}")).expect("a file");
    }
    let none = expand(&LocalStorage, folder, FileKind::Logs, "a test", Interrupt::NEVER).expect_err("no logs");
    let expected = format!("No logs found in \"{folder}\"; evtx_file_metadata lists what was not read");
    assert_eq!(none.to_string(), expected);
}

#[test]
fn a_file_that_fails_is_a_row_or_an_error() {
    let valid = long("dirty.evtx", 80);
    let half = Manner {
        fails_behind: Some(3 << 20),
        ..Manner::default()
    };
    let fails = Manner {
        fails_behind: Some(0),
        ..Manner::default()
    };
    let storage = Memory::default()
        .with("logs/a", &valid, half)
        .with("logs/b", &valid, Manner::default())
        .with("logs/c", &valid, fails)
        .with("logs/d", b"no log", Manner::default());
    let whole = rows(&storage, &file_scan(Options::default(), paths(&storage, "logs/b")), 1).expect("rows");
    for threads in [1, 3] {
        let all = rows(
            &storage,
            &file_scan(Options::default(), paths(&storage, "logs/*")),
            threads,
        )
        .expect("rows");
        let errors: Vec<_> = all.iter().filter_map(|(_, error)| error.as_deref()).collect();
        assert_eq!(
            errors,
            [
                "logs/a: cannot be read: the disk is broken",
                "logs/c: cannot be read: the disk is broken",
                "logs/d: not an EVTX log: it starts with \"no log\" in place of \"ElfFile\\0\"",
            ]
        );
        // All of the second, and two or three blocks of the first.
        let valid = all.len() - errors.len() - whole.len();
        assert!(
            valid > whole.len() / 2 && valid < whole.len(),
            "{valid} of {}",
            whole.len()
        );
    }
    for (named, expected) in [("logs/a", "the disk is broken"), ("logs/c", "the disk is broken")] {
        let scan = file_scan(Options::default(), paths(&storage, named));
        let error = rows(&storage, &scan, 2).expect_err("it is named");
        assert!(
            matches!(&error, ScanError::Storage(text) if text == expected),
            "{error:?}"
        );
    }
    let error = rows(&storage, &file_scan(Options::default(), paths(&storage, "logs/d")), 1).expect_err("no log");
    assert!(
        matches!(&error, ScanError::Refused { path, why } if path == "logs/d" && why.starts_with("not an EVTX log")),
        "{error:?}"
    );
}

#[test]
fn sizes_that_are_no_longer_right_lose_nothing_before_them() {
    let log = long("dirty.evtx", 40);
    let whole = {
        let storage = Memory::default().with("log", &log, Manner::default());
        rows(&storage, &file_scan(Options::default(), paths(&storage, "log")), 1).expect("rows")
    };
    for lie in [1, 70_000, 5 << 20, i64::MAX, -1, -70_000, -(2 << 20), -(1 << 40)] {
        let manner = Manner {
            lie,
            ..Manner::default()
        };
        let storage = Memory::default().with("logs/log", &log, manner);
        let scan = file_scan(Options::default(), paths(&storage, "logs/*"));
        let Ok(found) = rows(&storage, &scan, 2) else {
            // There is no number for all the blocks that it should have.
            assert_eq!(lie, i64::MAX);
            continue;
        };
        let damaged = found.iter().filter(|(_, error)| error.is_some()).count();
        let valid: Vec<_> = found.iter().filter(|(_, error)| error.is_none()).cloned().collect();
        assert!(damaged <= 2, "{lie}: {damaged}");
        assert_eq!(valid, whole[..valid.len()], "{lie}");
        // A block that reaches behind the end cannot be read.
        let blocks = (log.len() as i64 + lie.clamp(-(log.len() as i64), 0)) / (1 << 20) - 1;
        let least = whole.len() as i64 * blocks.max(0) / 40 * 16;
        assert!(
            valid.len() as i64 >= least || lie > 5 << 20,
            "{lie}: {} of {}",
            valid.len(),
            whole.len()
        );
    }
}

/// Makes a report with so many threads. Returns its rows in order, as text.
fn report<R: Report + 'static>(
    storage: &(dyn Storage + Sync),
    report: R,
    paths: Vec<ScanPath>,
    threads: usize,
) -> Result<Vec<String>, ScanError> {
    let columns: Vec<usize> = (0..R::schema().fields().len()).collect();
    let scan = ReportScan::new(report, paths, &columns);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let work = || -> Result<(), ScanError> {
            let mut thread = scan.thread();
            let mut last = 0;
            while let Some(batch) = thread.next(storage, Interrupt::NEVER)? {
                assert!(batch.index >= last, "the positions of a thread rise");
                last = batch.index;
                found.lock().expect("no panic").push((batch.index, batch.rows));
            }
            Ok(())
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        // All of them end, whatever becomes of one.
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        ended.into_iter().try_for_each(|ended| ended.unwrap_or(Ok(())))
    })?;
    let mut found = found.into_inner().expect("no panic");
    found.sort_by_key(|(index, _)| *index);
    let rows = found
        .iter()
        .flat_map(|(_, batch)| (0..batch.num_rows()).map(|row| format!("{:?}", batch.slice(row, 1))));
    Ok(rows.collect())
}

/// Logs of all kinds, one of several pieces, in the middle.
fn folder(manner: &Manner) -> Memory {
    [
        "DC01-Security.evtx",
        "damaged-chunk.evtx",
        "wrapped.evtx",
        "oddities.evtx",
        "ForwardedEvents.evtx",
    ]
    .iter()
    .fold(Memory::default(), |storage, name| {
        storage.with(name, &sample(name), manner.clone())
    })
    .with("no log.evtx", b"no log", manner.clone())
    .with("empty.evtx", b"", manner.clone())
    .with("long.evtx", &long("DC01-Sysmon.evtx", 100), manner.clone())
}

#[test]
fn a_report_is_the_same_with_any_number_of_threads() {
    let storage = folder(&Manner::default());
    let paths = paths(&storage, "*");
    let files = |threads| report(&storage, FileReport::of_columns(&[23]), paths.clone(), threads).expect("a report");
    let chunks = |threads| report(&storage, ChunkReport::default(), paths.clone(), threads).expect("a report");
    let events =
        |threads| report(&storage, SchemaReport::new(|_| String::new()), paths.clone(), threads).expect("a report");
    let (all_files, all_chunks, all_events) = (files(1), chunks(1), events(1));
    assert_eq!(all_files.len(), paths.len());
    assert!(all_chunks.len() > 100 && all_events.len() > 100);
    for threads in [2, 3, 8] {
        assert_eq!(files(threads), all_files);
        assert_eq!(chunks(threads), all_chunks);
        assert_eq!(events(threads), all_events);
    }
}

#[test]
fn a_begun_chunk_is_live_if_the_chunk_before_it_says_so_wherever_the_blocks_end() {
    let remote = Manner {
        is_remote: true,
        ..Manner::default()
    };
    let chunks = 150;
    // In the midst of all pieces, at the start of a local one, of a remote one, and the first slot, which follows the
    // last: its record has the ID 0 in place of 600.
    for (begun, lost) in [(20, 0..0), (16, 0..0), (128, 0..0), (0, 0..4_u64)] {
        let mut log = numbered(chunks);
        let header = &mut log[4096 + begun * 65_536..][..512];
        header[24..40].fill(0xff);
        header[48..52].copy_from_slice(&512_u32.to_le_bytes());
        let ids = (0..4 * chunks as u64).filter(|id| !lost.contains(id));
        let expected: Vec<_> = ids.map(|id| (Some(id), None)).collect();
        let mut reports = Vec::new();
        for manner in [Manner::default(), remote.clone()] {
            let storage = Memory::default().with("log", &log, manner);
            let scan = file_scan(Options::default(), paths(&storage, "log"));
            let mut found = rows(&storage, &scan, 2).expect("rows");
            // The oldest chunk comes first.
            found.sort();
            assert_eq!(found, expected, "{begun}");
            reports.push(report(&storage, FileReport::default(), paths(&storage, "log"), 2).expect("a report"));
        }
        assert_eq!(reports[0], reports[1]);
        let (live, slack) = (expected.len(), lost.clone().count());
        let has = |count: usize| reports[0][0].contains(&format!("[\n  {count},\n]"));
        assert!(has(live) && has(slack), "{live} and {slack} in {:?}", reports[0]);
        // Parts of a file that several processes read.
        let storage = Memory::default().with("log", &log, Manner::default());
        let part = |slots| {
            let part = FileSplit {
                size: log.len() as u64,
                slots: Some(slots),
            };
            let paths = vec![ScanPath::of_split("log".to_owned(), true, part)];
            rows(&storage, &file_scan(Options::default(), paths), 1).expect("rows")
        };
        let cut = begun.max(1) as u64;
        assert_eq!([part(0..cut), part(cut..999)].concat(), expected, "{begun}");
    }
}

#[test]
fn a_log_that_was_cut_between_chunks_says_so() {
    let log = sample("wrapped.evtx");
    let cut = &log[..4096 + 3 * 65_536];
    let storage = Memory::default().with("log", cut, Manner::default());
    let found = rows(&storage, &file_scan(Options::default(), paths(&storage, "log")), 1).expect("rows");
    let why = "the file header lists 4 chunks, but the file ends after 3: it was cut short";
    assert_eq!(found[0], (None, Some(format!("log: {why}"))));
    assert_eq!(found.len(), 1 + 3 * 40);
    let fails = Options {
        on_error: OnError::Fail,
        ..Options::default()
    };
    let failed = rows(&storage, &file_scan(fails, paths(&storage, "log")), 1);
    assert!(failed.is_err_and(|error| error.to_string().contains(why)));
    let reported = report(&storage, FileReport::default(), paths(&storage, "log"), 1).expect("a report");
    assert!(reported[0].contains(why));
}

#[test]
fn threads_of_a_report_do_not_wait_for_one_that_fails() {
    // A file that was named and that fails in its midst.
    let fails = Manner {
        fails_behind: Some(3 << 20),
        slow: Duration::from_millis(5),
        ..Manner::default()
    };
    let storage = Memory::default().with("log", &long("DC01-Sysmon.evtx", 200), fails);
    let found = report(&storage, ChunkReport::default(), paths(&storage, "log"), 3);
    assert!(matches!(found, Err(ScanError::Storage(_))), "{found:?}");
    // If a glob found it, what stands before is reported.
    let found = report(&storage, ChunkReport::default(), paths(&storage, "lo*"), 3).expect("a report");
    assert!((32..=48).contains(&found.len()), "{}", found.len());
    let panics = Manner {
        panics: true,
        ..Manner::default()
    };
    let storage = folder(&Manner::default()).with("f", &sample("dirty.evtx"), panics);
    let found = report(&storage, FileReport::default(), paths(&storage, "*"), 2).expect("no error of the others");
    assert!(found.len() < 9);
}

#[test]
fn a_remote_log_takes_few_requests() {
    let manner = Manner {
        is_remote: true,
        ..Manner::default()
    };
    // 48 MiB, of which the first 8 are read when it is opened. The ends are looked at, and the other pieces read.
    let log = long("DC01-Security.evtx", 768);
    let storage = Memory::default().with("log", &log, manner.clone());
    let paths_of = paths(&storage, "log");
    let opens = storage.reads.load(Ordering::Relaxed);
    let found = rows(&storage, &file_scan(Options::default(), paths_of.clone()), 2).expect("rows");
    let reads = storage.reads.load(Ordering::Relaxed) - opens;
    assert_eq!(found.len(), 768 * 55);
    assert!(reads <= 7, "{reads}");
    // A small one is read at once, also by a report.
    let small = sample("DC01-Security.evtx");
    let storage = Memory::default().with("log", &small, manner);
    rows(&storage, &file_scan(Options::default(), paths(&storage, "log")), 1).expect("rows");
    assert_eq!(storage.reads.load(Ordering::Relaxed), 1);
    let found = report(&storage, FileReport::default(), paths(&storage, "log"), 1).expect("a report");
    assert_eq!(found.len(), 1);
    assert_eq!(storage.reads.load(Ordering::Relaxed), 2);
}

#[test]
fn an_interrupt_ends_a_scan_before_its_next_read() {
    // 20 MiB, which take as many reads.
    let storage = Memory::default().with("log", &long("dirty.evtx", 320), Manner::default());
    let scan = file_scan(Options::default(), paths(&storage, "log"));
    let interrupted_at = storage.reads.load(Ordering::Relaxed) + 10;
    std::thread::scope(|scope| {
        let (scan, storage) = (&scan, &storage);
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let mut worker = Worker::new(scan, MakeArrays::CHECKED);
                scope.spawn(move || {
                    let is_set = || storage.reads.load(Ordering::Relaxed) >= interrupted_at;
                    loop {
                        match worker.next(storage, Interrupt::new(&is_set)) {
                            Ok(Some(_)) => {}
                            other => return other.map(|_| ()),
                        }
                    }
                })
            })
            .collect();
        // A worker that starts late can find nothing left to do.
        let ended: Vec<_> = workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"))
            .collect();
        let is_interrupted = |ended: &Result<(), ScanError>| matches!(ended, Err(ScanError::Interrupted(_)));
        assert!(ended.iter().any(is_interrupted), "{ended:?}");
        assert!(
            ended.iter().all(|ended| ended.is_ok() || is_interrupted(ended)),
            "{ended:?}"
        );
    });
    // The other worker may have begun one meanwhile.
    let reads = storage.reads.load(Ordering::Relaxed);
    assert!(
        reads <= interrupted_at + 1,
        "{reads} reads, interrupted at {interrupted_at}"
    );
    // What only the storage knows, as a read of it ends.
    storage.is_interrupted.store(true, Ordering::Relaxed);
    for pattern in ["log", "l*"] {
        let ended = rows(&storage, &file_scan(Options::default(), paths(&storage, pattern)), 2);
        assert!(matches!(ended, Err(ScanError::Interrupted(_))), "{ended:?}");
    }
}

#[test]
fn damage_fails_a_scan_that_shall_fail() {
    let options = Options {
        on_error: OnError::Fail,
        ..Options::default()
    };
    let storage = Memory::default().with("logs/log", &sample("damaged-records.evtx"), Manner::default());
    let error = rows(&storage, &file_scan(options, paths(&storage, "logs/*")), 1).expect_err("damage");
    assert!(
        matches!(&error, ScanError::File(text) if text.starts_with("logs/log: chunk 0, offset")),
        "{error:?}"
    );
}

#[test]
fn a_thread_that_panics_holds_up_no_other() {
    let panics = Manner {
        slow: Duration::from_millis(20),
        panics: true,
        ..Manner::default()
    };
    let log = sample("dirty.evtx");
    let storage = Memory::default()
        .with("logs/a", &log, panics)
        .with("logs/b", &log, Manner::default());
    let scan = file_scan(Options::default(), paths(&storage, "logs/*"));
    let read = || {
        let mut worker = Worker::new(&scan, MakeArrays::CHECKED);
        let mut rows = 0;
        while let Some(batch) = worker.next(&storage, Interrupt::NEVER).expect("rows") {
            rows += batch.rows.num_rows();
        }
        rows
    };
    let rows = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(read)).collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect::<Vec<_>>()
    });
    assert_eq!(rows, [80]);
}

/// The columns of a call for an event.
fn columns_of_event(storage: &dyn Storage, pattern: &str, id: &str) -> Result<Vec<String>, ScanError> {
    let mut arguments = Arguments::new(Query::Records);
    let value = ArgumentValue::List(vec![id.to_owned()]);
    arguments.set(
        Query::Records.argument("event_id").expect("an argument"),
        value,
        "a test",
    )?;
    let call = arguments.call(
        paths(storage, pattern),
        2,
        u64::MAX,
        storage,
        "a test",
        Interrupt::NEVER,
    )?;
    let schema = call.table.schema();
    Ok(schema.fields().iter().map(|field| field.name().clone()).collect())
}

/// Two logs of several pieces: one has an event of no known provider, which stands in its last piece.
fn with_oddities(manner: &Manner) -> Memory {
    let odd = sample("oddities.evtx");
    let late = [&long("DC01-Security.evtx", 40), &odd[4096..]].concat();
    Memory::default()
        .with("a", &long("DC01-System.evtx", 40), manner.clone())
        .with("b", &late, manner.clone())
}

#[test]
fn the_fields_of_events_are_those_of_all_blocks() {
    let storage = with_oddities(&Manner::default());
    let all = columns_of_event(&storage, "*", "3").expect("columns");
    assert!(all.iter().any(|name| name == "Numbers"), "{all:?}");
    for _ in 0..10 {
        assert_eq!(columns_of_event(&storage, "*", "3").expect("columns"), all);
    }
    // What cannot be read has no columns, and is no error: the scan tells of it.
    let fails = Manner {
        fails_behind: Some(2 << 20),
        ..Manner::default()
    };
    let some = columns_of_event(&with_oddities(&fails), "*", "3").expect("columns");
    assert!(!some.iter().any(|name| name == "Numbers"), "{some:?}");
    let of_security = columns_of_event(&with_oddities(&fails), "*", "4625").expect("columns");
    assert!(of_security.iter().any(|name| name == "LogonType"), "{of_security:?}");
    // Of a remote file, the first piece alone is read.
    let remote = Manner {
        is_remote: true,
        ..Manner::default()
    };
    let storage = with_oddities(&remote);
    let all_of_remote = columns_of_event(&storage, "*", "3").expect("columns");
    assert_eq!(all_of_remote, all);
    assert_eq!(storage.reads.load(Ordering::Relaxed), 2);
}

#[test]
fn fields_are_kept_of_files_that_stay_as_they_are() {
    let reads = |storage: &Memory| {
        let before = storage.reads.load(Ordering::Relaxed);
        let columns = columns_of_event(storage, "*", "3").expect("columns");
        (columns, storage.reads.load(Ordering::Relaxed) - before)
    };
    let modified = |stamp, seconds| Manner {
        modified: Some(Modified {
            stamp,
            age: Duration::from_secs(seconds),
        }),
        ..Manner::default()
    };
    let unknown = with_oddities(&Manner::default());
    let (columns, all) = reads(&unknown);
    assert!(all > 4);
    assert_eq!(
        reads(&unknown),
        (columns.clone(), all),
        "nothing tells that it is the same"
    );
    let young = with_oddities(&modified(1, 1));
    assert_eq!(
        [reads(&young).1, reads(&young).1],
        [all; 2],
        "it may change at the same time"
    );
    let old = with_oddities(&modified(2, 60));
    assert_eq!(reads(&old), (columns.clone(), all));
    assert_eq!(reads(&old), (columns.clone(), 2), "the headers alone");
    assert_eq!(
        reads(&with_oddities(&modified(3, 60))),
        (columns, all),
        "it was modified"
    );
    // Another question is another answer, and a file that fails is asked again.
    let before = old.reads.load(Ordering::Relaxed);
    columns_of_event(&old, "*", "4").expect("columns");
    assert_eq!(old.reads.load(Ordering::Relaxed) - before, all);
    let fails = with_oddities(&Manner {
        fails_behind: Some(2 << 20),
        ..modified(4, 60)
    });
    assert_eq!(reads(&fails).1, reads(&fails).1);
}

#[test]
fn an_interrupt_ends_the_search_for_fields() {
    let storage = with_oddities(&Manner::default());
    for threads in [1, 2] {
        let paths = paths(&storage, "*");
        let interrupted_at = storage.reads.load(Ordering::Relaxed) + 3;
        let is_set = || storage.reads.load(Ordering::Relaxed) >= interrupted_at;
        let mut arguments = Arguments::new(Query::Records);
        let value = ArgumentValue::List(vec!["3".to_owned()]);
        arguments
            .set(
                Query::Records.argument("event_id").expect("an argument"),
                value,
                "a test",
            )
            .expect("an ID");
        let ended = arguments.call(paths, threads, u64::MAX, &storage, "a test", Interrupt::new(&is_set));
        assert!(matches!(ended, Err(ScanError::Interrupted(_))), "{ended:?}");
        // The other of two threads may read on until this one has looked.
        let reads = storage.reads.load(Ordering::Relaxed);
        assert!(
            threads == 2 || reads == interrupted_at,
            "{reads} reads, interrupted at {interrupted_at}"
        );
    }
    storage.is_interrupted.store(true, Ordering::Relaxed);
    let ended = columns_of_event(&storage, "*", "3");
    assert!(matches!(ended, Err(ScanError::Interrupted(_))), "{ended:?}");
}
