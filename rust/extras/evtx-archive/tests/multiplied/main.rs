//! Files that are well formed and multiplied: parts of them are referred to again and again, so that a little file has
//! gigabytes of messages or millions of entries. Whatever it says, reading it takes at most 64 MB of memory and twice its
//! size, an interrupt is answered within 100 ms, and what comes is rows, or one error that names the file.

#[path = "../archives/packed.rs"]
#[allow(dead_code)]
mod packed;
#[path = "../../../evtx-messages/tests/all/common/mod.rs"]
#[allow(dead_code)]
mod provider;

mod binaries;
mod catalogs;
mod hives;
mod rules;
mod sevens;
mod zips;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cpu_time::ThreadTime;
use evtx_archive::{ArchiveStorage, Archives};
use evtx_format::Interrupt;
use evtx_reports::{MessageScan, PROVIDER_FILES, ReportThreads};
use evtx_scan::{ScanError, Storage, StorageError, StorageFile, expand};
use peak_alloc::PeakAlloc;
use proptest::prelude::*;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The memory of reading a file, besides twice its size.
const MAX_MEMORY: usize = 64_000_000;
/// The longest time of the CPU without a look for an interrupt. It is a tenth of this on a quiet machine.
const MAX_GAP: Duration = Duration::from_secs(1);
/// After so many looks, work is interrupted: the rows of a multiplied file never end.
const MAX_LOOKS: usize = 600_000;
/// After so much time of the CPU, too.
const MAX_TIME: Duration = Duration::from_secs(5);

static TURN: Mutex<()> = Mutex::new(());

/// One test at a time makes files and measures: they share the allocator.
fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Files in memory.
struct Files(BTreeMap<String, Arc<[u8]>>);

struct MemoryFile(Arc<[u8]>);

impl Storage for Files {
    fn glob(&self, pattern: &str, _interrupt: Interrupt<'_>) -> Result<Vec<Vec<u8>>, StorageError> {
        let found = self.0.keys().filter(|path| *path == pattern);
        Ok(found.map(|path| path.as_bytes().to_vec()).collect())
    }

    fn exists(&self, path: &str) -> Result<bool, StorageError> {
        Ok(self.0.contains_key(path))
    }

    fn is_remote(&self, _path: &str) -> bool {
        false
    }

    fn open(&self, path: &str) -> Result<Arc<dyn StorageFile>, StorageError> {
        let bytes = self
            .0
            .get(path)
            .ok_or_else(|| StorageError::Failed(format!("no {path}")))?;
        Ok(Arc::new(MemoryFile(Arc::clone(bytes))))
    }
}

impl StorageFile for MemoryFile {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        buffer.copy_from_slice(&self.0[offset as usize..][..buffer.len()]);
        Ok(())
    }
}

/// What became of reading some files.
#[derive(Debug)]
enum Outcome {
    /// So many rows, and whether there are more.
    Rows(usize, bool),
    Error(String),
}

/// What reading cost.
#[derive(Debug)]
struct Cost {
    outcome: Outcome,
    peak: usize,
    gap: Duration,
}

/// Does some work, and measures it.
fn measured(work: impl FnOnce(Interrupt<'_>) -> Outcome) -> Cost {
    let start = ThreadTime::now();
    let (last, gap, looks) = (Cell::new(ThreadTime::now()), Cell::new(Duration::ZERO), Cell::new(0));
    let is_enough = || {
        gap.set(gap.get().max(last.replace(ThreadTime::now()).elapsed()));
        looks.set(looks.get() + 1);
        looks.get() > MAX_LOOKS || start.elapsed() > MAX_TIME
    };
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let outcome = work(Interrupt::new(&is_enough));
    let peak = MEMORY.peak_usage().saturating_sub(before);
    is_enough();
    let gap = gap.get();
    Cost { outcome, peak, gap }
}

/// Lists the messages of files, as `evtx_message_catalog` does.
fn list_messages(files: &Files, interrupt: Interrupt<'_>) -> Outcome {
    let mut paths = Vec::new();
    for path in files.0.keys() {
        match expand(files, path, PROVIDER_FILES, "evtx_message_catalog", interrupt) {
            Ok(found) => paths.extend(found),
            Err(error) => return outcome_of(&error, 0),
        }
    }
    let every: Vec<usize> = (0..evtx_reports::message_schema().fields().len()).collect();
    let mut thread = MessageScan::new(paths, &every).thread();
    let mut rows = 0;
    loop {
        match thread.next(files, interrupt) {
            Ok(Some(batch)) => rows += batch.rows.num_rows(),
            Ok(None) => return Outcome::Rows(rows, false),
            Err(error) => return outcome_of(&error, rows),
        }
    }
}

/// Lists the logs in archives, and keeps the lists as a scan does.
fn list_entries(files: &Files, interrupt: Interrupt<'_>) -> Outcome {
    let archives = Archives::new(200 << 20, 0, None);
    let storage = ArchiveStorage::new(files, &archives);
    let (mut listings, mut rows) = (Vec::new(), 0);
    for path in files.0.keys() {
        match storage.list(path, None, &|name| name.ends_with(".evtx"), interrupt) {
            Ok(listing) => {
                rows += listing.files.len();
                listings.push(listing);
            }
            // The caller names the archive.
            Err(StorageError::Unusable(why)) => return Outcome::Error(format!("{path}: {why}")),
            Err(StorageError::Interrupted(_)) => return Outcome::Rows(rows, true),
            Err(error) => panic!("{error}"),
        }
    }
    Outcome::Rows(rows, false)
}

fn outcome_of(error: &ScanError, rows: usize) -> Outcome {
    match error {
        ScanError::Interrupted(_) => Outcome::Rows(rows, true),
        error => Outcome::Error(error.to_string()),
    }
}

/// Reads files, and checks what that costs. Returns what came of it.
fn within(what: &str, files: &[(&str, Vec<u8>)], read: fn(&Files, Interrupt<'_>) -> Outcome) -> Outcome {
    let size: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    let all = files
        .iter()
        .map(|(path, bytes)| ((*path).to_owned(), bytes.as_slice().into()));
    let all = Files(all.collect());
    let cost = measured(|interrupt| read(&all, interrupt));
    if std::env::var_os("EVTX_BOUNDS").is_some() {
        println!(
            "{what}, {} KB: {} KB, {:?}, {:?}",
            size / 1000,
            cost.peak / 1000,
            cost.gap,
            cost.outcome
        );
    }
    // For `bench/promises.py`.
    println!(
        "promise: interrupts while a multiplied file is read: {:.3} s of 0.1 s",
        cost.gap.as_secs_f64()
    );
    let most = MAX_MEMORY + 2 * size;
    assert!(cost.peak <= most, "{what}: {} bytes for a file of {size}", cost.peak);
    assert!(
        cost.gap <= MAX_GAP,
        "{what}: {:?} without a look for an interrupt",
        cost.gap
    );
    if let Outcome::Error(error) = &cost.outcome {
        assert!(files.iter().any(|(path, _)| error.contains(path)), "{what}: {error}");
    }
    cost.outcome
}

/// How much a file is multiplied, in each way that its kind has.
type Shape = [usize; 4];

/// Files that were made: their paths, and their bytes.
type Made = Vec<(&'static str, Vec<u8>)>;

/// A kind of source: its name, its files of a shape, its fixed shapes, how large each number of a shape may be, and what
/// reads them.
struct Kind {
    name: &'static str,
    files: fn(Shape) -> Made,
    fixed: &'static [Shape],
    most: Shape,
    read: fn(&Files, Interrupt<'_>) -> Outcome,
}

const KINDS: [Kind; 7] = [
    hives::KIND,
    hives::PUBLISHERS,
    binaries::KIND,
    catalogs::KIND,
    sevens::KIND,
    zips::KIND,
    rules::KIND,
];

#[test]
#[ignore = "slow"]
fn fixed_multiplied_files_stay_within_bounds() {
    let _turn = turn();
    for kind in KINDS {
        let mut rows = 0;
        for shape in kind.fixed {
            let what = format!("{} {shape:?}", kind.name);
            if let Outcome::Rows(more, _) = within(&what, &(kind.files)(*shape), kind.read) {
                rows += more;
            }
        }
        assert!(rows > 0, "{}: none of the files has rows", kind.name);
    }
}

/// The hostile files that `EVTX_HOSTILE` names.
#[test]
fn hostile_files_stay_within_bounds() {
    let _turn = turn();
    let Some(folder) = std::env::var_os("EVTX_HOSTILE") else {
        eprintln!("skipped: EVTX_HOSTILE is not set");
        return;
    };
    let file = |name: &str| std::fs::read(std::path::Path::new(&folder).join(name)).expect("a hostile file");
    for name in ["ri.hive", "chain2k.hive"] {
        within(name, &[("SYSTEM", file(name))], list_messages);
    }
    let mut langs = Vec::new();
    let packed = file("langs.dll.xz");
    std::io::Read::read_to_end(&mut lzma_rust2::XzReader::new(&packed[..], false), &mut langs).expect("a binary");
    let outcome = within("langs.dll", &[("langs.dll", langs)], list_messages);
    assert!(matches!(outcome, Outcome::Rows(1000.., true)), "{outcome:?}");
    let million = file("million.7z");
    let outcome = within("million.7z", &[("a.7z", million.clone())], list_entries);
    // A million logs without bytes.
    assert!(matches!(outcome, Outcome::Error(_)), "{outcome:?}");
    let six = ["a.7z", "b.7z", "c.7z", "d.7z", "e.7z", "f.7z"].map(|name| (name, million.clone()));
    within("six of million.7z", &six, list_entries);
}

/// Writes small files of each kind into the folder that `EVTX_SEEDS` names, for the fuzz targets.
#[test]
fn multiplied_files_are_seeds() {
    let _turn = turn();
    let Some(folder) = std::env::var_os("EVTX_SEEDS") else {
        eprintln!("skipped: EVTX_SEEDS is not set");
        return;
    };
    for (kind, shapes, target) in [
        (hives::KIND, &[[3, 5, 2, 4], [20, 20, 3, 0]][..], "messages_hive"),
        (hives::PUBLISHERS, &[[20, 5, 3, 3]], "messages_hive"),
        (binaries::KIND, &[[3, 5, 2, 3], [20, 50, 1, 2]], "messages_binary"),
        (catalogs::KIND, &[[3, 5, 100, 3]], "messages_catalog"),
        (sevens::KIND, &[[10, 8, 3, 1]], "archive"),
    ] {
        let folder = std::path::Path::new(&folder).join(target);
        std::fs::create_dir_all(&folder).expect("a folder");
        for shape in shapes {
            for (path, bytes) in (kind.files)(*shape) {
                let is_other = target == "messages_hive" && path.contains('.');
                // The first byte says what kind of archive it is.
                let head = if target == "archive" { &[1][..] } else { &[] };
                if !is_other {
                    let name = format!("multiplied-{}-{path}", shape.map(|number| number.to_string()).join("-"));
                    std::fs::write(folder.join(name), [head, &bytes].concat()).expect("a seed");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 6,
        failure_persistence: None,
        max_shrink_iters: 20,
        ..ProptestConfig::default()
    })]

    #[test]
    #[ignore = "slow"]
    fn drawn_multiplied_files_stay_within_bounds(kind in 0..KINDS.len(), drawn in prop::array::uniform4(0.0..1.0_f64)) {
        let _turn = turn();
        let kind = &KINDS[kind];
        // Small and large numbers are as likely.
        let number = |at: usize| (kind.most[at] as f64).powf(drawn[at]) as usize;
        let shape: Shape = std::array::from_fn(number);
        within(&format!("{} {shape:?}", kind.name), &(kind.files)(shape), kind.read);
    }
}
