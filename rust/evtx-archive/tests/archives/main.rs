//! Archives as they are found and as they should not be: which rows or which error they give.

#[path = "../../../evtx-scan/tests/common/mod.rs"]
mod common;
mod tars;

use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::{Array, StringViewArray};
use common::{on_threads, sample};
use evtx_archive::{ArchiveStorage, Archives};
use evtx_arrow::{MakeArrays, Options, Scan, Table};
use evtx_format::{Interrupt, Interrupted};
use evtx_reports::FileReport;
use evtx_scan::{
    ARGUMENTS, ArgumentValue, Arguments, Call, FileKind, FileScan, LastOpened, MessageFinder, Query, ReportScan,
    ReportThreads, ScanError, ScanPath, Storage, StorageError, StorageFile, Worker, expand,
};
use lzma_rust2::{XzOptions, XzWriter};
use zip::unstable::write::FileOptionsExt;
use zip::write::SimpleFileOptions;
use zip::{AesMode, CompressionMethod, ZipWriter};

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
    fn glob(&self, pattern: &str) -> Result<Vec<Vec<u8>>, StorageError> {
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

/// An archive by hand: entries with their names as bytes, a method, what they say that they are, and their bytes.
struct Crafted<'e> {
    name: &'e [u8],
    method: u16,
    flags: u16,
    size: u32,
    checksum: u32,
    bytes: &'e [u8],
}

fn stored<'e>(name: &'e [u8], bytes: &'e [u8]) -> Crafted<'e> {
    Crafted {
        name,
        method: 0,
        flags: 0,
        size: bytes.len() as u32,
        checksum: crc32fast::hash(bytes),
        bytes,
    }
}

fn craft(entries: &[Crafted<'_>]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let mut common = Vec::new();
        for two in [20, entry.flags, entry.method, 0, 0] {
            common.extend(two.to_le_bytes());
        }
        for four in [entry.checksum, entry.bytes.len() as u32, entry.size] {
            common.extend(four.to_le_bytes());
        }
        common.extend((entry.name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend((out.len() as u32).to_le_bytes());
        directory.extend(entry.name);
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(entry.name);
        out.extend(entry.bytes);
    }
    end(out, &directory, entries.len())
}

/// Puts a directory behind the entries.
fn end(mut out: Vec<u8>, directory: &[u8], count: usize) -> Vec<u8> {
    let start = out.len() as u32;
    out.extend(directory);
    out.extend(b"PK\x05\x06\x00\x00\x00\x00");
    out.extend((count as u16).to_le_bytes());
    out.extend((count as u16).to_le_bytes());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}

fn with_password(password: &str) -> Archives {
    let mut arguments = Arguments::new(Query::Records);
    let argument = ARGUMENTS
        .iter()
        .find(|argument| argument.name == "password")
        .expect("an argument");
    let value = ArgumentValue::Text(password.to_owned());
    arguments.set(argument, value, "a test").expect("a password");
    Archives::new(256 << 20, 0, None).with_password(arguments.password())
}

fn paths(storage: &Memory, pattern: &str, archives: &Archives) -> Result<Vec<ScanPath>, ScanError> {
    let storage = ArchiveStorage::new(storage, archives);
    expand(&storage, pattern, FileKind::Logs, "a test", Interrupt::NEVER)
}

/// By file, in order: its rows without an error, and its errors.
type Rows = Vec<(String, usize, Vec<String>)>;

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

#[test]
fn logs_in_an_archive_are_files() {
    let (dirty, wrapped) = (sample("dirty.evtx"), sample("wrapped.evtx"));
    let archive = zip(&[
        ("C/Windows/wrapped.EVTX", &wrapped, deflated()),
        ("C/Windows/notes.txt", b"nothing", deflated()),
        ("C/", b"", plain()),
        ("C/empty.evtx", b"", plain()),
        ("B/dirty.evtx", &dirty, plain()),
    ]);
    let storage = Memory::default()
        .with("case/1.ZIP", &archive)
        .with("case/dirty.evtx", &dirty);
    let empty = ": not an EVTX log: the file is empty, there is nothing in place of \"ElfFile\\0\"";
    let whole = [
        file("case/1.ZIP/B/dirty.evtx", 80, &[]),
        file("case/1.ZIP/C/Windows/wrapped.EVTX", 160, &[]),
        file("case/1.ZIP/C/empty.evtx", 0, &[empty]),
    ];
    let archives = Archives::default();
    for threads in [1, 3] {
        for pattern in ["case/1.ZIP", "case/*.zip"] {
            assert_eq!(read(&storage, pattern, &archives, threads).expect("rows"), whole);
        }
        let folder = read(&storage, "case", &archives, threads).expect("rows");
        assert_eq!(folder[..3], whole);
        assert_eq!(folder[3..], [file("case/dirty.evtx", 80, &[])]);
    }
    for (pattern, wanted) in [
        ("case/1.ZIP/**/*.evtx", &whole[..]),
        ("case/*.zip/c/windows/*.evtx", &whole[1..2]),
        ("case/1.ZIP/C", &whole[1..]),
        ("case/1.ZIP/c\\windows/", &whole[1..2]),
        ("case/1.ZIP/b/DIRTY.evtx", &whole[..1]),
    ] {
        assert_eq!(
            read(&storage, pattern, &archives, 1).expect("rows"),
            wanted,
            "{pattern}"
        );
    }
    let error = |pattern: &str| read(&storage, pattern, &archives, 1).expect_err("an error").to_string();
    assert_eq!(
        error("case/1.ZIP/x/*"),
        "No files found that match the pattern \"case/1.ZIP/x/*\""
    );
    assert!(error("case/1.ZIP/C/empty.evtx").contains("empty.evtx: not an EVTX log: the file is empty"));
    assert!(error("case/1.ZIP/C/Windows/notes.txt").contains("notes.txt: not an EVTX log"));
    let none = Memory::default().with("none.zip", &zip(&[("a.txt", b"", plain())]));
    let error = read(&none, "none.zip", &archives, 1).expect_err("no logs").to_string();
    assert_eq!(error, "No logs found in \"none.zip\"");
}

#[test]
fn compressed_files_are_read() {
    let log = sample("wrapped.evtx");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&log[..70_000]).expect("bytes");
    let mut gzip = gzip.finish().expect("a member");
    let mut second = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    second.write_all(&log[70_000..]).expect("bytes");
    gzip.extend(second.finish().expect("a member"));
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zstd = [
        &b"\x50\x2A\x4D\x18\x03\0\0\0abc"[..],
        &ruzstd::encoding::compress_to_vec(&log[..5000], level),
        &ruzstd::encoding::compress_to_vec(&log[5000..], level),
    ]
    .concat();
    let cut = &gzip[..gzip.len() / 2];
    let storage = Memory::default()
        .with("l/a.evtx.GZ", &gzip)
        .with("l/b.evtx.zst", &zstd)
        .with("l/c.evtx.gz", cut)
        .with("l/d.evtx.gz", b"")
        .with("l/e.evtx.gz", b"this is no gzip file")
        .with("l/f.evtx.zst", &zstd[..zstd.len() - 1])
        .with("l/g.evtx.gz", &[&gzip[..], &[0; 100]].concat())
        .with("l/h.evtx.gz", &[&gzip[..], b"more"].concat())
        .with("l/other.gz", &gzip);
    let archives = Archives::default();
    let rows = read(&storage, "l", &archives, 2).expect("rows");
    let names: Vec<_> = rows.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names.len(), 8, "{names:?}");
    let whole = |name: &str| file(name, 160, &[]);
    assert_eq!(rows[..2], [whole("l/a.evtx.GZ"), whole("l/b.evtx.zst")]);
    assert!(
        rows[2].1 > 20 && rows[2].1 < 160 && rows[2].2[0].starts_with(": cannot be read:"),
        "{:?}",
        rows[2]
    );
    assert_eq!(
        rows[3],
        file("l/d.evtx.gz", 0, &[": cannot be read: the file is empty"])
    );
    assert_eq!(
        rows[4],
        file("l/e.evtx.gz", 0, &[": cannot be read: it is not a gzip file"])
    );
    assert_eq!(
        rows[5],
        file(
            "l/f.evtx.zst",
            160,
            &[": cannot be read: its compressed bytes are cut short"]
        )
    );
    assert_eq!(rows[6], whole("l/g.evtx.gz"));
    assert_eq!(
        rows[7],
        file(
            "l/h.evtx.gz",
            160,
            &[": cannot be read: its last bytes are not compressed"]
        )
    );
    assert_eq!(
        read(&storage, "l/other.gz", &archives, 1).expect("rows"),
        [whole("l/other.gz")]
    );
    assert_eq!(
        read(&storage, "l/c.evtx.gz", &archives, 1).expect("what is there"),
        rows[2..3],
        "also if it is named"
    );
    let error = read(&storage, "l/e.evtx.gz", &archives, 1)
        .expect_err("it is named")
        .to_string();
    assert_eq!(error, "l/e.evtx.gz: it is not a gzip file");
}

#[test]
fn files_of_bzip2_and_xz_are_read() {
    let log = sample("wrapped.evtx");
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(&log).expect("bytes");
    let bzip2 = bzip2.finish().expect("a stream");
    let xz = xz(&log);
    let storage = Memory::default()
        .with("l/a.evtx.bz2", &bzip2)
        .with("l/b.EVTX.XZ", &xz)
        .with("l/c.evtx.xz", &xz[..xz.len() / 2])
        .with("l/d.evtx.bz2", &bzip2[..bzip2.len() - 1])
        .with("l/e.evtx.xz", b"this is no such file")
        .with("l/f.evtx.bz2", b"");
    let rows = read(&storage, "l", &Archives::default(), 2).expect("rows");
    assert_eq!(
        rows[..2],
        [file("l/a.evtx.bz2", 160, &[]), file("l/b.EVTX.XZ", 160, &[])]
    );
    let cut = ": cannot be read: its compressed bytes are cut short";
    let (found, errors) = (rows[2].1, &rows[2].2);
    assert!((20..160).contains(&found) && errors[0] == cut, "{:?}", rows[2]);
    assert_eq!(rows[3], file("l/d.evtx.bz2", 160, &[cut]));
    assert_eq!(
        rows[4],
        file("l/e.evtx.xz", 0, &[": cannot be read: it is not an XZ file"])
    );
    assert_eq!(
        rows[5],
        file("l/f.evtx.bz2", 0, &[": cannot be read: the file is empty"])
    );
}

#[test]
fn entries_compressed_with_bzip2_and_xz_are_read() {
    let log = sample("wrapped.evtx");
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(&log).expect("bytes");
    let (bzip2, xz) = (bzip2.finish().expect("a stream"), xz(&log));
    let entries = [(b"a.evtx", 12, &bzip2), (b"b.evtx", 95, &xz)].map(|(name, method, bytes)| Crafted {
        method,
        bytes,
        ..stored(name, &log)
    });
    let whole = [file("a.zip/a.evtx", 160, &[]), file("a.zip/b.evtx", 160, &[])];
    assert_eq!(rows_of(&craft(&entries)), whole);
}

/// A stream of a few KiB gives 64 MiB, and the interrupt comes while it does.
#[test]
fn an_interrupt_ends_a_stream_of_xz() {
    let storage = Memory::default().with("a.xz", &xz(&vec![7; 64 << 20]));
    let archives = Archives::default();
    let listed = ArchiveStorage::new(&storage, &archives).list("a.xz", None, &|_| true, Interrupt::NEVER);
    let file = listed.expect("a file").files.remove(0).file.expect("a stream");
    let opened = |after: usize| {
        let looks = AtomicUsize::new(0);
        let is_set = || looks.fetch_add(1, Ordering::Relaxed) >= after;
        let call = Call {
            storage: &storage,
            interrupt: Interrupt::new(&is_set),
            last: &LastOpened::default(),
        };
        let opened = file.open(call).map(|opened| opened.file.size());
        (opened, looks.into_inner())
    };
    let (whole, looks) = opened(usize::MAX);
    assert!(whole == Ok(64 << 20) && looks > 64, "{looks}");
    for after in [0, 1, 2, 10, 50] {
        let interrupted = Err(StorageError::Interrupted(Interrupted));
        let (opened, looks) = opened(after);
        assert!(opened == interrupted && looks <= after + 2, "{after}: {looks}");
    }
}

#[test]
fn encrypted_entries_need_their_password() {
    let log = sample("dirty.evtx");
    let aes = |mode| deflated().with_aes_encryption(mode, "secret");
    let archive = zip(&[
        ("1.evtx", &log, aes(AesMode::Aes128)),
        ("2.evtx", &log, aes(AesMode::Aes192)),
        ("3.evtx", &log, aes(AesMode::Aes256)),
        ("4.evtx", &log, plain().with_aes_encryption(AesMode::Aes256, "secret")),
        (
            "5.evtx",
            &log,
            deflated().with_deprecated_encryption(b"secret").expect("a password"),
        ),
        (
            "6.evtx",
            &log,
            plain().with_deprecated_encryption(b"secret").expect("a password"),
        ),
        ("7.evtx", &log, deflated()),
    ]);
    let storage = Memory::default().with("a.zip", &archive);
    let names: Vec<_> = (1..=7).map(|i| format!("a.zip/{i}.evtx")).collect();
    let all = |error: &str| -> Rows {
        let errors = [error]
            .iter()
            .filter(|error| !error.is_empty())
            .copied()
            .collect::<Vec<_>>();
        let mut rows: Rows = names
            .iter()
            .map(|name| file(name, 80 * usize::from(error.is_empty()), &errors))
            .collect();
        rows[6] = file(&names[6], 80, &[]);
        rows
    };
    let read = |archives: &Archives| read(&storage, "a.zip", archives, 2).expect("rows");
    assert_eq!(read(&with_password("secret")), all(""));
    let none = ": cannot be read: it is encrypted, and no password is given";
    assert_eq!(read(&Archives::default()), all(none));
    assert_eq!(
        read(&with_password("wrong")),
        all(": cannot be read: the password is wrong")
    );
    let named = self::read(&storage, "a.zip/3.evtx", &Archives::default(), 1).expect_err("it is named");
    assert_eq!(
        named.to_string(),
        "a.zip/3.evtx: it is encrypted, and no password is given"
    );
    // A byte that was changed is told by the tag.
    let one = zip(&[("1.evtx", &log, plain().with_aes_encryption(AesMode::Aes256, "secret"))]);
    let mut changed = one.clone();
    changed[40_000] ^= 1;
    let storage = Memory::default().with("a.zip", &changed);
    let rows = self::read(&storage, "a.zip", &with_password("secret"), 1).expect("rows");
    assert_eq!(rows[0].2[0], ": cannot be read: its encrypted bytes were changed");
}

#[test]
fn names_are_names() {
    let log = sample("dirty.evtx");
    let archive = craft(&[
        stored(b"../../etc/x.evtx", &log),
        stored(b"/etc/y.evtx", &log),
        stored(b"C:\\Windows\\z.evtx", &log),
        stored(b"M\x81ller.evtx", &log),
        stored("Müller.evtx".as_bytes(), &log),
        stored(b"twice.evtx", &log),
        stored(b"twice.evtx", &log[..70_000]),
        stored(b"\xFF\xFE.evtx", &log),
        stored(b"folder.evtx/", b""),
        stored(b"", b"nothing"),
    ]);
    let storage = Memory::default().with("a.zip", &archive);
    let rows = read(&storage, "a.zip", &Archives::default(), 2).expect("rows");
    let names: Vec<_> = rows.iter().map(|(name, ..)| name.as_str()).collect();
    let twice = "a.zip/twice.evtx";
    let mullers = ["a.zip/Müller.evtx"; 2];
    let mut wanted = vec![
        "a.zip/../../etc/x.evtx",
        "a.zip//etc/y.evtx",
        "a.zip/C:\\Windows\\z.evtx",
    ];
    wanted.extend(mullers);
    wanted.extend([twice, twice, "a.zip/\u{A0}■.evtx"]);
    wanted.sort_unstable();
    assert_eq!(names, wanted);
    assert!(
        rows.iter().all(|(_, sound, errors)| *sound == 80 || !errors.is_empty()),
        "{rows:?}"
    );
    for named in [
        "a.zip/../../etc/x.evtx",
        "a.zip//etc/y.evtx",
        "a.zip/c:/windows/*.evtx",
        "a.zip/M*ller.evtx",
    ] {
        assert!(
            read(&storage, named, &Archives::default(), 1).expect("rows")[0].1 == 80,
            "{named}"
        );
    }
    let link = SimpleFileOptions::default();
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.add_symlink("link.evtx", "/etc/passwd", link).expect("a link");
    let archive = writer.finish().expect("an archive").into_inner();
    let told = ": cannot be read: it is a symbolic link, which is not followed";
    assert_eq!(rows_of(&archive), [file("a.zip/link.evtx", 0, &[told])]);
}

#[test]
fn filename_names_the_file_again() {
    let (dirty, wrapped) = (sample("dirty.evtx"), sample("wrapped.evtx"));
    let names = [
        "a[1]", "a1", "b*", "bb", "q?", "qq", "Sys", "sys", "[x]/y", "x/y", "d\\e", "D/E",
    ];
    let names: Vec<_> = names.iter().map(|name| format!("{name}.evtx")).collect();
    let log = |nth: usize| if nth.is_multiple_of(2) { &dirty } else { &wrapped };
    let entries: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(nth, name)| stored(name.as_bytes(), log(nth)))
        .collect();
    let mut storage = Memory::default()
        .with("e[1].zip", &craft(&entries))
        .with("e1.zip", &craft(&entries[1..2]));
    for (nth, name) in names.iter().enumerate() {
        storage = storage.with(&format!("l/{name}"), log(nth));
    }
    let archives = Archives::default();
    let mut all = read(&storage, "e[1].zip", &archives, 1).expect("rows");
    assert_eq!(all.len(), names.len());
    all.extend(read(&storage, "l", &archives, 1).expect("rows"));
    assert_eq!(all.len(), 2 * names.len());
    for row in all {
        assert_eq!(read(&storage, &row.0, &archives, 1).expect("rows"), [row]);
    }
    let found = |pattern: &str| -> Vec<_> {
        let rows = read(&storage, pattern, &archives, 1).expect("rows");
        rows.into_iter().map(|(name, ..)| name).collect()
    };
    // Other names are patterns still, and other cases the same name.
    assert_eq!(found("l/a[1-3].evtx"), ["l/a1.evtx"]);
    assert_eq!(found("e[1].zip/A[1].EVTX"), ["e[1].zip/a[1].evtx"]);
    assert_eq!(found("e[1].zip/SYS.evtx"), ["e[1].zip/Sys.evtx", "e[1].zip/sys.evtx"]);
    assert_eq!(found("e[1].zip/b?.evtx"), ["e[1].zip/b*.evtx", "e[1].zip/bb.evtx"]);
    assert_eq!(found("e[1].zip/**b.evtx"), ["e[1].zip/bb.evtx"]);
    // A folder can have such a name.
    assert_eq!(found("l/[x]"), ["l/[x]/y.evtx"]);
    assert_eq!(found("e[1].zip/[x]"), ["e[1].zip/[x]/y.evtx"]);
}

#[test]
fn an_archive_in_an_archive_is_named() {
    let log = sample("dirty.evtx");
    let inner = zip(&[("inner.evtx", &log, plain())]);
    let archive = zip(&[
        ("a.evtx", &log, plain()),
        ("b.zip", &inner, plain()),
        ("c.evtx.gz", &log, plain()),
    ]);
    let told = ": cannot be read: it is an archive inside of an archive, which is not opened";
    assert_eq!(
        rows_of(&archive),
        [
            file("a.zip/a.evtx", 80, &[]),
            file("a.zip/b.zip", 0, &[told]),
            file("a.zip/c.evtx.gz", 0, &[told])
        ]
    );
    let storage = Memory::default().with("a.zip", &archive);
    let rows = read(&storage, "a.zip/*.evtx", &Archives::default(), 1).expect("rows");
    assert_eq!(rows, [file("a.zip/a.evtx", 80, &[])]);
}

#[test]
fn what_is_no_archive_says_so() {
    let log = sample("dirty.evtx");
    let archive = zip(&[("a.evtx", &log, deflated()), ("b.evtx", &log, plain())]);
    for (bytes, why) in [
        (&b""[..], "the file is empty"),
        (b"no", "it is not a ZIP archive"),
        (&log, "it is not a ZIP archive"),
        (
            &archive[..archive.len() / 2],
            "the archive is cut short: it has no directory at its end",
        ),
        (&archive[1..], "bytes are missing in front of its directory"),
        (b"PK\x07\x08PK\x03\x04", "it is a part of an archive of several files"),
    ] {
        assert_eq!(error_of(bytes), format!("a.zip: {why}"));
        let storage = Memory::default().with("l/a.zip", bytes).with("l/b.evtx", &log);
        let rows = read(&storage, "l", &Archives::default(), 1).expect("rows");
        let told = format!(": cannot be read: {why}");
        assert_eq!(rows, [file("l/a.zip", 0, &[&told]), file("l/b.evtx", 80, &[])]);
    }
    let mut parts = archive.clone();
    let at = parts.len() - 22;
    parts[at + 4] = 2;
    assert_eq!(error_of(&parts), "a.zip: it is a part of an archive of several files");
    let mut large = archive.clone();
    large[at + 12..at + 20].fill(0xF0);
    assert_eq!(
        error_of(&large),
        "a.zip: its directory is larger than what is there of the file"
    );
    // A directory that is damaged in its middle has lost the entries behind that.
    let mut damaged = archive.clone();
    let second = damaged
        .windows(4)
        .rposition(|four| four == b"PK\x01\x02")
        .expect("a record");
    damaged[second] = 0;
    let storage = Memory::default().with("l/a.zip", &damaged);
    let told = ": cannot be read: its directory is damaged behind 1 entries";
    for pattern in ["l", "l/a.zip", "l/a.zip/"] {
        assert_eq!(
            read(&storage, pattern, &Archives::default(), 1).expect("rows"),
            [file("l/a.zip", 0, &[told]), file("l/a.zip/a.evtx", 80, &[])],
            "{pattern}"
        );
    }
    let error = read(&storage, "l/a.zip/b.evtx", &Archives::default(), 1).expect_err("it may be behind that");
    assert_eq!(error.to_string(), "l/a.zip: its directory is damaged behind 1 entries");
    // Bytes in front of an archive and behind it do not matter.
    let moved = [b"#!/bin/sh", &archive[..], b"more"].concat();
    assert_eq!(
        rows_of(&moved),
        [file("a.zip/a.evtx", 80, &[]), file("a.zip/b.evtx", 80, &[])]
    );
}

#[test]
fn an_end_that_disagrees_with_the_directory_is_told() {
    let log = sample("dirty.evtx");
    let archive = craft(&[stored(b"a.evtx", &log), stored(b"b.evtx", &log)]);
    let at = archive.len() - 22;
    let len = u32::from_le_bytes(archive[at + 12..at + 16].try_into().expect("four bytes"));
    let whole = [file("l/a.zip/a.evtx", 80, &[]), file("l/a.zip/b.evtx", 80, &[])];
    let told = |why: &str, entries: &[(String, usize, Vec<String>)]| {
        let why = format!(": cannot be read: {why}");
        [&[file("l/a.zip", 0, &[&why])], entries].concat()
    };
    let rows = |bytes: &[u8]| {
        let storage = Memory::default().with("l/a.zip", bytes);
        let rows = read(&storage, "l", &Archives::default(), 1).expect("rows");
        let named = read(&storage, "l/a.zip/b.evtx", &Archives::default(), 1).map(|mut rows| rows.pop());
        (rows, named.ok().flatten())
    };
    let with = |from: usize, bytes: &[u8]| {
        let mut changed = archive.clone();
        changed[at + from..at + from + bytes.len()].copy_from_slice(bytes);
        changed
    };
    // The length: none, that of one entry, one byte of another, and more than the file has.
    for wrong in [0, len / 2, len - 1, 0xF000_0000] {
        let why = format!("its end says that its directory has {wrong} bytes, and there are {len} with 2 entries");
        let (rows, named) = rows(&with(12, &wrong.to_le_bytes()));
        assert_eq!(rows, told(&why, &whole));
        assert_eq!(named.as_ref(), Some(&whole[1]));
    }
    // The count.
    for wrong in [0, 1, 5_u16] {
        let why = format!("its end says that it has {wrong} entries, and its directory has 2");
        assert_eq!(rows(&with(10, &wrong.to_le_bytes())).0, told(&why, &whole));
    }
    // Both, and the offset.
    let why = "its end says that it has no entries, and it starts with one";
    assert_eq!(rows(&with(8, &[0; 8])).0, told(why, &[]));
    assert_eq!(rows(&with(8, &[0; 12])).0, told(why, &[]));
    let nothing = end(Vec::new(), b"", 0);
    let error = read(
        &Memory::default().with("a.zip", &nothing),
        "a.zip",
        &Archives::default(),
        1,
    );
    assert_eq!(
        error.expect_err("it is empty").to_string(),
        "No logs found in \"a.zip\""
    );
    // A comment that holds an end of another directory, or all of another archive.
    let why = "there is an end of another archive in its comment; the entries of both are read";
    let commented = |comment: &[u8]| [&with(20, &(comment.len() as u16).to_le_bytes())[..], comment].concat();
    assert_eq!(rows(&commented(&nothing)).0, told(why, &whole));
    assert_eq!(rows(&commented(b"PK\x05\x06 is no end")).0, whole);
    let other = craft(&[stored(b"c.evtx", &log[..20_000])]);
    let (found, named) = rows(&commented(&other));
    assert_eq!((&found[..3], named.as_ref()), (&told(why, &whole)[..], Some(&whole[1])));
    assert_eq!(found[3].0, "l/a.zip/c.evtx");
    // An archive in front of another one, or stored in it, is not meant.
    let inner = craft(&[stored(b"i.evtx", &log)]);
    let outer = craft(&[
        stored(b"a.evtx", &log),
        stored(b"b.evtx", &log),
        stored(b"i.bin", &inner),
    ]);
    assert_eq!(rows(&outer).0, whole);
    assert_eq!(rows(&[&inner[..], &archive].concat()).0, whole);
}

#[test]
fn entries_that_are_not_what_they_say() {
    let log = sample("dirty.evtx");
    let mut compressed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    compressed.write_all(&log).expect("bytes");
    let compressed = compressed.finish().expect("bytes");
    let deflate = |name, size| Crafted {
        method: 8,
        size,
        checksum: crc32fast::hash(&log),
        ..stored(name, &compressed)
    };
    let size = log.len() as u32;
    let archive = craft(&[
        deflate(b"1.evtx", size),
        deflate(b"2.evtx", 10),
        deflate(b"3.evtx", u32::MAX - 1),
        Crafted {
            checksum: 1,
            ..deflate(b"4.evtx", size)
        },
        Crafted {
            bytes: &compressed[..compressed.len() / 2],
            ..deflate(b"5.evtx", size)
        },
        Crafted {
            size: 10,
            ..stored(b"6.evtx", &log)
        },
        Crafted {
            method: 14,
            ..deflate(b"7.evtx", size)
        },
        Crafted {
            method: 77,
            ..deflate(b"8.evtx", size)
        },
        Crafted {
            flags: 1 << 6 | 1,
            ..deflate(b"9.evtx", size)
        },
        Crafted {
            method: 9,
            ..stored(b"x.evtx", &[0xFF; 100])
        },
        Crafted {
            method: 93,
            ..stored(b"y.evtx", &[0xFF; 100])
        },
    ]);
    let rows = rows_of(&archive);
    let told = |index: usize| {
        rows[index]
            .2
            .first()
            .map_or("", |text| text.strip_prefix(": cannot be read: ").unwrap_or(text))
    };
    assert_eq!(rows[0], file("a.zip/1.evtx", 80, &[]));
    assert_eq!(rows[1].1, 80);
    assert_eq!(told(1), format!("it has {size} bytes, and the archive says 10"));
    assert_eq!(
        (rows[2].1, told(2)),
        (80, &*format!("it has {size} bytes, and the archive says 4294967294"))
    );
    assert_eq!((rows[3].1, told(3)), (80, "its checksum does not match"));
    assert!(
        rows[4].1 < 80 && told(4) == "its compressed bytes are cut short",
        "{:?}",
        rows[4]
    );
    assert_eq!(
        (rows[5].1, told(5)),
        (80, &*format!("it has {size} bytes, and the archive says 10"))
    );
    assert_eq!(told(6), "it is compressed with LZMA, which is not supported");
    assert_eq!(told(7), "it is compressed with the method 77, which is not supported");
    assert_eq!(told(8), "it is encrypted in a way that is not supported");
    assert!(
        rows[9..]
            .iter()
            .all(|(_, sound, errors)| *sound == 0 && errors.len() == 1),
        "{rows:?}"
    );
    // What the methods make of bytes that they can have made.
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zstd = ruzstd::encoding::compress_to_vec(&log[..], level);
    let mut blocks = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::none());
    blocks.write_all(&log).expect("bytes");
    let blocks = blocks.finish().expect("bytes");
    let archive = craft(&[
        Crafted {
            method: 9,
            bytes: &blocks,
            ..deflate(b"1.evtx", size)
        },
        Crafted {
            method: 93,
            bytes: &zstd,
            ..deflate(b"2.evtx", size)
        },
    ]);
    assert_eq!(
        rows_of(&archive),
        [file("a.zip/1.evtx", 80, &[]), file("a.zip/2.evtx", 80, &[])]
    );
}

#[test]
fn the_header_of_an_entry_is_compared_with_the_directory() {
    let (dirty, wrapped) = (sample("dirty.evtx"), sample("wrapped.evtx"));
    let level = flate2::Compression::fast();
    let mut compressed = flate2::write::DeflateEncoder::new(Vec::new(), level);
    compressed.write_all(&dirty).expect("bytes");
    let compressed = compressed.finish().expect("bytes");
    let deflated = Crafted {
        method: 8,
        size: dirty.len() as u32,
        checksum: crc32fast::hash(&dirty),
        ..stored(b"c.evtx", &compressed)
    };
    let zstd = ruzstd::encoding::compress_to_vec(&dirty[..], ruzstd::encoding::CompressionLevel::Fastest);
    let zstd = Crafted {
        name: b"d.evtx",
        method: 93,
        bytes: &zstd,
        ..deflated
    };
    let archive = craft(&[stored(b"a.evtx", &dirty), stored(b"b.evtx", &wrapped), deflated, zstd]);
    let records: Vec<_> = (0..archive.len() - 4)
        .filter(|&at| archive[at..].starts_with(b"PK\x01\x02"))
        .collect();
    let check = |nth: usize, from: usize, bytes: &[u8], index: usize, rows: usize, why: &str| {
        let mut changed = archive.clone();
        changed[records[nth] + from..][..bytes.len()].copy_from_slice(bytes);
        let found = rows_of(&changed).swap_remove(index);
        assert_eq!(
            (found.1, found.2),
            (rows, vec![format!(": cannot be read: {why}")]),
            "{why}"
        );
    };
    // A name, the offset of another entry, and its size with it: a checksum is not computed of what is stored.
    let (name, second) = (
        "the header of its data has another name",
        archive[records[1] + 42..][..4].to_vec(),
    );
    check(0, 46, b"x", 3, 80, name);
    let len = (wrapped.len() as u32).to_le_bytes();
    let mut moved = archive.clone();
    moved[records[0] + 42..][..4].copy_from_slice(&second);
    moved[records[0] + 20..][..8].copy_from_slice(&[len, len].concat());
    assert_eq!(
        rows_of(&moved)[0],
        file("a.zip/a.evtx", 160, &[&format!(": cannot be read: {name}")])
    );
    check(2, 46, b"x", 3, 80, name);
    // A method and a checksum.
    check(0, 16, &[0], 0, 80, "the header of its data has another checksum");
    check(3, 10, &[20], 3, 80, "the header of its data has another method");
}

#[test]
fn every_byte_can_be_damaged() {
    let log = sample("WS07-Security.evtx");
    let archive = zip(&[
        ("a.evtx", &log, deflated()),
        ("b.evtx", &log[..9000], plain()),
        (
            "c.evtx",
            &log,
            plain().with_aes_encryption(AesMode::Aes128, "x").large_file(true),
        ),
    ]);
    let archives = with_password("x");
    let sound = read(&Memory::default().with("l/a.zip", &archive), "l", &archives, 1).expect("rows");
    let whole: usize = sound.iter().map(|(_, rows, _)| rows).sum();
    let known: usize = sound.iter().map(|(_, _, errors)| errors.len()).sum();
    let names: Vec<_> = (0..archive.len() - 6)
        .filter(|&at| archive[at + 1..at + 6] == *b".evtx")
        .map(|at| at..at + 6)
        .collect();
    let step = archive.len() / 400;
    let places = (0..archive.len())
        .step_by(step)
        .chain(archive.len() - 400..archive.len());
    for at in places {
        for change in [1, 0x80, 0xFF] {
            let mut bytes = archive.clone();
            bytes[at] ^= change;
            let storage = Memory::default().with("l/a.zip", &bytes);
            let found = read(&storage, "l", &archives, 1);
            // A name that is damaged in the directory can be that of no log.
            let is_name = names.iter().any(|name| name.contains(&at));
            if let Ok(found) = found
                && !is_name
            {
                let errors: Vec<_> = found.iter().flat_map(|(_, _, errors)| errors).collect();
                let is_told = errors.len() > known || errors.iter().any(|error| error.contains("cannot be read"));
                let is_whole = found.iter().map(|(_, sound, _)| sound).sum::<usize>() == whole;
                assert!(is_told || is_whole, "byte {at}: {found:?}");
            }
        }
        let storage = Memory::default().with("l/a.zip", &archive[..at]);
        let _ = read(&storage, "l", &archives, 1).map(drop);
    }
}

#[test]
fn entries_that_share_their_bytes_are_limited() {
    let log = sample("dirty.evtx");
    let one = craft(&[stored(b"a.evtx", &log)]);
    let directory = one[one.len() - 22 - 52..one.len() - 22].to_vec();
    // The same entry, a thousand times.
    let archive = end(one[..one.len() - 22 - 52].to_vec(), &directory.repeat(1000), 1000);
    let rows = rows_of(&archive);
    assert_eq!(rows.len(), 1000);
    assert!(
        rows.iter().all(|row| *row == file("a.zip/a.evtx", 80, &[])),
        "they are small"
    );
    let mut huge = directory.clone();
    huge[24..28].copy_from_slice(&(600_u32 << 20).to_le_bytes());
    let archive = end(one[..one.len() - 22 - 52].to_vec(), &huge.repeat(20), 20);
    let told = ": cannot be read: it shares bytes with other entries, as in a bomb";
    let rows = rows_of(&archive);
    assert_eq!(rows.iter().filter(|(_, _, errors)| errors == &[told]).count(), 11);
}

#[test]
fn a_wrong_size_in_the_directory_costs_nothing_behind_it() {
    let log = sample("dirty.evtx");
    let mut archive = craft(&[
        stored(b"a.evtx", &log),
        stored(b"b.evtx", &log),
        stored(b"c.evtx", &log),
    ]);
    let records: Vec<_> = (0..archive.len() - 4)
        .filter(|&at| archive[at..].starts_with(b"PK\x01\x02"))
        .collect();
    // The compressed size of the first, and the sizes of the third.
    archive[records[0] + 20..records[0] + 24].fill(0xEF);
    archive[records[2] + 24..records[2] + 28].fill(0xEF);
    let rows = rows_of(&archive);
    assert_eq!(
        rows.iter().map(|row| row.1).collect::<Vec<_>>(),
        [80, 80, 80],
        "{rows:?}"
    );
    let told = format!(
        ": cannot be read: it has {} bytes, and the archive says 4025479151",
        log.len()
    );
    assert_eq!((rows[1].2.len(), &rows[2].2[..]), (0, &[told][..]));
}

#[test]
fn zip64_archives_are_read() {
    let log = sample("dirty.evtx");
    let large = |options: SimpleFileOptions| options.large_file(true);
    let archive = zip(&[("a.evtx", &log, large(deflated())), ("b.evtx", &log, large(plain()))]);
    let whole = [file("a.zip/a.evtx", 80, &[]), file("a.zip/b.evtx", 80, &[])];
    assert_eq!(rows_of(&archive), whole);
    // The record at the end says that all is in that of ZIP64.
    let (archive, end) = archive.split_at(archive.len() - 22);
    let four = |at: usize| u32::from_le_bytes(end[at..at + 4].try_into().expect("four bytes")).to_le_bytes();
    let mut wide = archive.to_vec();
    wide.extend(b"PK\x06\x06\x2C\0\0\0\0\0\0\0\x2D\0\x2D\0\0\0\0\0\0\0\0\0");
    wide.extend([2, 0, 0, 0, 0, 0, 0, 0].repeat(2));
    for at in [12, 16] {
        wide.extend(four(at));
        wide.extend([0; 4]);
    }
    wide.extend(b"PK\x06\x07\0\0\0\0");
    wide.extend((archive.len() as u64).to_le_bytes());
    wide.extend([1, 0, 0, 0]);
    wide.extend(b"PK\x05\x06\0\0\0\0");
    wide.extend([0xFF; 12]);
    wide.extend([0, 0]);
    assert_eq!(rows_of(&wide), whole);
    let at = archive.len();
    for (field, why) in [
        (32, "its end says that it has 3 entries, and its directory has 2"),
        (40, "its end says that its directory has 3 bytes, and there are "),
    ] {
        let mut damaged = wide.clone();
        damaged[at + field..at + field + 8].copy_from_slice(&3_u64.to_le_bytes());
        let rows = rows_of(&damaged);
        assert!(rows[0].2[0].contains(why) && rows[1..] == whole, "{rows:?}");
    }
    wide[at] = 0;
    assert_eq!(error_of(&wide), "a.zip: the ZIP64 record of its directory is damaged");
}

#[test]
fn a_bomb_is_an_error() {
    let zeros = vec![0; 1 << 20];
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    for _ in 0..300 {
        gzip.write_all(&zeros).expect("zeros");
    }
    let bomb = gzip.finish().expect("a member");
    let folder = tempfile::tempdir().expect("a folder");
    let archives = Archives::new(1 << 20, 64 << 30, Some(folder.path().to_owned()));
    let storage = Memory::default()
        .with("l/a.evtx.gz", &bomb)
        .with("l/b.evtx", &sample("dirty.evtx"));
    let rows = read(&storage, "l", &archives, 1).expect("rows");
    let len = bomb.len() as u64;
    let most = (256 << 20).max(len * 200);
    let told = format!(": cannot be read: it expands to more than {most} bytes from {len}, as a bomb does");
    assert_eq!(rows, [file("l/a.evtx.gz", 0, &[&told]), file("l/b.evtx", 80, &[])]);
    let archives = Archives::new(1 << 20, 0, None);
    let rows = read(&storage, "l", &archives, 1).expect("rows");
    let told = ": cannot be read: it takes more memory than is left, and temp_directory names no folder for it";
    assert_eq!(rows[0], file("l/a.evtx.gz", 0, &[told]));
}

#[test]
fn rows_do_not_depend_on_threads_when_memory_is_short() {
    let log = sample("wrapped.evtx");
    let long = [&log[..4096], &log[4096..].repeat(12)].concat();
    let names: Vec<_> = (0..12).map(|nth| format!("{nth:02}.evtx")).collect();
    let mut entries: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), &long[..], deflated()))
        .collect();
    let larger = [&log[..4096], &log[4096..].repeat(20)].concat();
    entries[5].1 = &larger;
    let archive = zip(&entries);
    // A frame with a window of 16 MiB.
    let mut window = vec![0x28, 0xB5, 0x2F, 0xFD, 0, 14 << 3];
    for piece in log.chunks(100_000) {
        let header = (piece.len() as u32) << 3 | u32::from(piece.as_ptr_range().end == log.as_ptr_range().end);
        window.extend(&header.to_le_bytes()[..3]);
        window.extend(piece);
    }
    let mut storage = Memory::default().with("l/a.zip", &archive);
    for nth in 0..12 {
        storage = storage.with(&format!("l/w{nth:02}.evtx.zst"), &window);
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (memory, disk, folder) in [
        (4 << 20, 0, None),
        (17 << 20, 0, None),
        (0, 4 << 20, Some(folder.path().to_owned())),
    ] {
        let rows = |threads| {
            let archives = Archives::new(memory, disk, folder.clone());
            let mut rows = read(&storage, "l", &archives, threads).expect("rows");
            rows.iter_mut().for_each(|(_, _, errors)| errors.sort());
            rows
        };
        let one = rows(1);
        let sound = |rows: &Rows| rows.iter().filter(|(_, _, errors)| errors.is_empty()).count();
        assert_eq!(sound(&one), if memory > 16 << 20 { 24 } else { 11 }, "{one:?}");
        for threads in [2, 4, 8] {
            assert_eq!(rows(threads), one);
        }
    }
}

#[test]
fn a_hundred_thousand_entries_are_listed_and_read() {
    let entries: Vec<_> = (0..100_000).map(|i| format!("folder/{i}.evtx")).collect();
    let entries: Vec<_> = entries.iter().map(|name| stored(name.as_bytes(), b"")).collect();
    let mut archive = craft(&entries);
    // More than the record at the end can count.
    let at = archive.len() - 22;
    archive[at + 8..at + 12].fill(0xFF);
    let storage = Memory::default().with("a.zip", &archive);
    let started = Instant::now();
    let found = paths(&storage, "a.zip", &Archives::default()).expect("paths");
    let listed = started.elapsed();
    assert_eq!(found.len(), 100_000);
    assert!(storage.reads.load(Ordering::Relaxed) < 20);
    let rows = read(&storage, "a.zip", &Archives::default(), 2).expect("rows");
    assert!(rows.iter().all(|(_, _, errors)| errors.len() == 1));
    println!("listed in {listed:?}, read in {:?}", started.elapsed() - listed);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert!(storage.opens.load(Ordering::Relaxed) < 10);
}

#[test]
fn reads_are_few_and_failures_are_told() {
    let log = sample("wrapped.evtx");
    let archive = zip(&[
        ("a.evtx", &log, deflated()),
        ("b.evtx", &log, deflated()),
        ("c.evtx", &log, plain()),
    ]);
    let storage = Memory {
        is_remote: true,
        ..Memory::default()
    };
    let storage = storage.with("a.zip", &archive);
    read(&storage, "a.zip", &Archives::default(), 1).expect("rows");
    // The end and the directory, one read of each compressed entry, two of the stored one.
    assert_eq!(storage.reads.load(Ordering::Relaxed), 6);
    assert_eq!(storage.opens.load(Ordering::Relaxed), 2);
    let storage = Memory {
        fails_behind: Some(100),
        ..Memory::default()
    };
    let storage = storage.with("l/a.zip", &archive);
    let rows = read(&storage, "l", &Archives::default(), 2).expect("rows");
    assert!(
        rows.iter()
            .all(|(_, _, errors)| errors == &[": cannot be read: the disk is broken"]),
        "{rows:?}"
    );
    let error = read(&storage, "l/a.zip/a.evtx", &Archives::default(), 1).expect_err("it is named");
    assert!(
        matches!(&error, ScanError::Storage(text) if text == "the disk is broken"),
        "{error:?}"
    );
}

/// How many messages each log of an archive has.
fn messages_of(archive: &[u8]) -> Vec<usize> {
    let storage = Memory::default().with("a.zip", archive);
    let paths = paths(&storage, "a.zip", &Archives::default()).expect("paths");
    let table = Table::from(Options::default());
    let column = table.schema().index_of("message").expect("a column");
    let finder = MessageFinder::new("LocaleMetaData/{log}_*.[Mm][Tt][Aa]", 64 << 20);
    let mut found = vec![0; paths.len()];
    let scan = Arc::new(FileScan::new(
        Arc::new(Scan::new(table, &[column])),
        paths,
        Some(finder),
    ));
    let mut worker = Worker::new(&scan, MakeArrays::CHECKED);
    while let Some(batch) = worker.next(&storage, Interrupt::NEVER).expect("rows") {
        found[batch.file] += batch.rows.num_rows() - batch.rows.column(0).null_count();
    }
    found
}

#[test]
fn messages_are_found_whatever_case_and_slashes_names_have() {
    let log = sample("DC01-System.evtx");
    let messages = sample("LocaleMetaData/DC01-System_1033.MTA");
    for (own, beside) in [
        ("DC01-System.evtx", "LocaleMetaData/DC01-System_1033.MTA"),
        ("x\\DC01-System.evtx", "x\\LocaleMetaData\\DC01-System_1033.MTA"),
        (
            "C:\\Logs\\DC01-System.evtx",
            "C:\\Logs\\LocaleMetaData\\DC01-System_1033.MTA",
        ),
        ("X/DC01-SYSTEM.EVTX", "X/LOCALEMETADATA/DC01-SYSTEM_1033.MTA"),
        ("X/DC01-SYSTEM.EVTX", "x\\localemetadata\\dc01-system_1033.mta"),
    ] {
        let archive = craft(&[
            stored(b"LocaleMetaDatb/", b"no folder"),
            stored(own.as_bytes(), &log),
            stored(beside.as_bytes(), &messages),
        ]);
        assert_eq!(messages_of(&archive), [9], "{own}");
    }
}

#[test]
fn messages_and_reports_come_out_of_archives() {
    let log = sample("DC01-System.evtx");
    let messages = sample("LocaleMetaData/DC01-System_1033.MTA");
    let archive = zip(&[
        ("x/DC01-System.evtx", &log, deflated()),
        ("x/LocaleMetaData/DC01-System_1033.MTA", &messages, deflated()),
        ("y/DC01-System.evtx", &log, deflated()),
    ]);
    let storage = Memory::default().with("a.zip", &archive);
    let paths = paths(&storage, "a.zip", &Archives::default()).expect("paths");
    assert_eq!(messages_of(&archive), [9, 0]);
    let mut report = ReportScan::new(FileReport::default(), paths, &[0]).thread();
    let mut rows = 0;
    while let Some(batch) = report.next(&storage, Interrupt::NEVER).expect("a report") {
        rows += batch.rows.num_rows();
    }
    assert_eq!(rows, 2);
}
