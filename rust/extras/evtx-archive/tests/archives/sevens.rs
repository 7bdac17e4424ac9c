//! 7z archives.

use super::*;
use crate::packed::*;

/// An archive that another program made: `tools/make_archives.py`.
fn made(name: &str) -> Vec<u8> {
    std::fs::read(format!(
        "{}/../../../test/data/archives/{name}",
        env!("CARGO_MANIFEST_DIR")
    ))
    .expect("an archive")
}

/// The rows of an archive in a folder, in which a path is only the name of an entry.
fn rows_with(bytes: &[u8], archives: &Archives, threads: usize) -> Rows {
    let storage = Memory::default().with("l/a.7z", bytes);
    let rows = read(&storage, "l", archives, threads).expect("rows");
    let name = |path: String| path.replacen("l/a.7z", "", 1);
    rows.into_iter()
        .map(|(path, rows, errors)| (name(path), rows, errors))
        .collect()
}

fn rows_of(bytes: &[u8]) -> Rows {
    rows_with(bytes, &Archives::default(), 1)
}

/// The only error of an archive that cannot be listed.
fn refusal(bytes: &[u8]) -> String {
    let rows = rows_of(bytes);
    assert!(rows.len() == 1 && rows[0].0.is_empty() && rows[0].1 == 0, "{rows:?}");
    rows[0].2[0].replacen(": cannot be read: ", "", 1)
}

#[test]
fn logs_in_a_7z_are_files() {
    let (dirty, wrapped) = (sample("dirty.evtx"), sample("wrapped.evtx"));
    let list = [
        ("C", Kind::Folder),
        ("C/wrapped.EVTX", Kind::Stream),
        ("C/notes.txt", Kind::Stream),
        ("B/empty.evtx", Kind::Empty),
        ("B/dirty.evtx", Kind::Stream),
    ];
    let list = list.map(|(name, kind)| named(name, kind));
    let empty = ": not an EVTX log: the file is empty, there is nothing in place of \"ElfFile\\0\"";
    let whole = [
        file("/B/dirty.evtx", 80, &[]),
        file("/B/empty.evtx", 0, &[empty]),
        file("/C/wrapped.EVTX", 160, &[]),
    ];
    for folders in [
        vec![solid(&[&wrapped, b"nothing", &dirty])],
        vec![solid(&[&wrapped]), copied(&[b"nothing", &dirty])],
        vec![copied(&[&wrapped]), copied(&[]), solid(&[b"nothing"]), solid(&[&dirty])],
    ] {
        let archive = seven(&folders, &list);
        for threads in [1, 3] {
            assert_eq!(rows_with(&archive, &Archives::default(), threads), whole);
        }
        let storage = Memory::default().with("a.7z", &archive);
        for (inner, rows) in [
            ("c\\wrapped.evtx", 160),
            ("B/dirty.evtx", 80),
            ("**/w*.evtx", 160),
            ("C", 160),
        ] {
            let found = read(&storage, &format!("a.7z/{inner}"), &Archives::default(), 1).expect("rows");
            assert!(found.len() == 1 && found[0].1 == rows, "{inner}: {found:?}");
        }
        let none = read(&storage, "a.7z/x/*", &Archives::default(), 1).expect_err("nothing");
        assert_eq!(none.to_string(), "No files found that match the pattern \"a.7z/x/*\"");
    }
}

#[test]
fn archives_of_other_programs_are_read() {
    let rows = rows_of(&made("solid.7z"));
    let link = ": cannot be read: it is a symbolic link, which is not followed";
    assert_eq!(
        rows.iter().map(|row| row.1).collect::<Vec<_>>(),
        [4, 10, 0, 0],
        "{rows:?}"
    );
    assert_eq!(rows[3], file("/C/link.evtx", 0, &[link]));
    let other = |name: &str| format!(": cannot be read: it is compressed with {name}, which is not supported");
    for (name, rows, errors) in rows_of(&made("methods.7z")) {
        match name.as_str() {
            "/BCJ2.evtx" => assert_eq!(errors, [other("BCJ2")]),
            "/PPMd.evtx" => assert_eq!(errors, [other("PPMd")]),
            "/ARM.evtx" => assert_eq!(errors, [other("the method 3030501")]),
            "/ARM64.evtx" => assert_eq!(errors, [other("the method A")]),
            _ => assert_eq!((rows, errors.len()), (4, 0), "{name}: {errors:?}"),
        }
    }
    assert_eq!(rows_of(&made("methods.7z")).len(), 10);
    assert_eq!(
        rows_of(&made("zstd.7z")),
        [file("/zstd.evtx", 0, &[&other("Zstandard")])]
    );
    assert_eq!(
        refusal(&made("short.7z")),
        "the archive is cut short: its list of entries is missing"
    );
    let program = "it is a program that extracts itself, not a 7z archive: extract it first";
    assert_eq!(refusal(&made("program.7z")), program);
    assert_eq!(refusal(b"7z"), "it is not a 7z archive");
    assert_eq!(refusal(b"7z\xBC\xAF\x27\x1C\0\x04"), "the archive is cut short");
    assert_eq!(refusal(b""), "the file is empty");
}

#[test]
fn an_archive_without_entries_is_told_from_one_that_was_not_finished() {
    let empty = sealed(&[], &[]);
    let storage = Memory::default().with("a.7z", &empty);
    let none = read(&storage, "a.7z", &Archives::default(), 1).expect_err("no logs");
    assert!(matches!(none, ScanError::NoFiles(_)), "{none}");
    let mut unsealed = empty.clone();
    unsealed[8..12].fill(0);
    let why = "the archive was not finished: it has no list of entries";
    for bytes in [unsealed, [&empty[..], &sample("dirty.evtx")].concat()] {
        assert_eq!(refusal(&bytes), why);
    }
}

#[test]
fn encrypted_archives_need_their_password() {
    let rows = |name: &str, archives: &Archives| rows_with(&made(name), archives, 2);
    let both = |error: &str| ["/aes.evtx", "/other.evtx"].map(|name| file(name, 0, &[error]));
    let right = with_password("infected");
    let sound = [file("/aes.evtx", 4, &[]), file("/other.evtx", 10, &[])];
    assert_eq!(rows("secret.7z", &right), sound);
    assert_eq!(rows("names.7z", &right), sound[..1]);
    let none = ": cannot be read: it is encrypted, and no password is given";
    assert_eq!(rows("secret.7z", &Archives::default()), both(none));
    let wrong = ": cannot be read: its compressed bytes are damaged; or the password is wrong";
    assert_eq!(rows("secret.7z", &with_password("wrong")), both(wrong));
    let long = ": cannot be read: it is encrypted, and the password has more than 1024 characters";
    assert_eq!(rows("secret.7z", &with_password(&"ü".repeat(1025))), both(long));
    assert_eq!(rows("secret.7z", &with_password(&"ü".repeat(1024))), both(wrong));
    let long = ": cannot be read: its list of entries is encrypted, and the password has more than 1024 characters";
    assert_eq!(
        rows("names.7z", &with_password(&"x".repeat(1025))),
        [file("", 0, &[long])]
    );
    let none = "its list of entries is encrypted, and no password is given";
    assert_eq!(refusal(&made("names.7z")), none);
    let wrong = rows("names.7z", &with_password("wrong"));
    assert!(
        wrong.len() == 1 && wrong[0].2[0].ends_with("; or the password is wrong"),
        "{wrong:?}"
    );
}

#[test]
fn names_in_a_7z_are_names() {
    let log = sample("dirty.evtx");
    let mut list = [
        "../../etc/up.evtx",
        "/etc/absolute.evtx",
        "C:\\Logs\\back.evtx",
        "twice.evtx",
        "twice.evtx",
        "Ünï✓😀.evtx",
        "",
        "inner.zip",
        "link.evtx",
        "junction.evtx",
        "special.evtx",
    ]
    .map(|name| named(name, Kind::Stream));
    list[6].name = [&[0xD800, 0x61][..], &".evtx".encode_utf16().collect::<Vec<_>>()].concat();
    list[8].attributes = 0x8000 | 0o120_777 << 16;
    list[9].attributes = 0x400;
    list[10].attributes = 0x420;
    let anti = named("deleted.evtx", Kind::Anti);
    let list: Vec<_> = list.into_iter().chain([anti]).collect();
    let mut entries = [&log[..]; 11];
    entries[9] = &log[..4095];
    let rows = rows_of(&seven(&[solid(&entries)], &list));
    let sound: Vec<_> = rows
        .iter()
        .filter(|row| row.1 == 80 && row.2.is_empty())
        .map(|row| &*row.0)
        .collect();
    assert_eq!(
        sound,
        [
            "/../../etc/up.evtx",
            "//etc/absolute.evtx",
            "/C:\\Logs\\back.evtx",
            "/special.evtx",
            "/twice.evtx",
            "/twice.evtx",
            "/Ünï✓😀.evtx",
            "/\u{FFFD}a.evtx",
        ]
    );
    let others: Vec<_> = rows
        .iter()
        .filter(|row| row.1 == 0)
        .map(|row| (&*row.0, &*row.2[0]))
        .collect();
    let link = ": cannot be read: it is a symbolic link, which is not followed";
    let inner = ": cannot be read: it is an archive inside of an archive, which is not opened";
    assert_eq!(
        others,
        [("/inner.zip", inner), ("/junction.evtx", link), ("/link.evtx", link)]
    );
}

/// What a report on an archive tells besides the logs.
#[test]
fn other_evidence_in_an_archive_is_reported() {
    let log = sample("dirty.evtx");
    let names = ["a.evtx", "b.evtx.old", "disk.vhdx", "inner.7z", "notes.txt"];
    let archive = seven_of(&names.map(|name| (name, &log[..])));
    let storage = Memory::default().with("a.7z", &archive);
    assert_eq!(read(&storage, "a.7z", &Archives::default(), 1).expect("rows").len(), 2);
    let archives = Archives::default();
    let nested = ArchiveStorage::new(&storage, &archives);
    let found = |path: &str| -> Vec<_> {
        let found = expand(&nested, path, FileKind::Evidence, "a test", Interrupt::NEVER).expect("paths");
        let name = |found: &ScanPath| {
            (
                found.path.clone(),
                found.why_unreadable().unwrap_or_default().to_owned(),
            )
        };
        found.iter().map(name).collect()
    };
    let all = found("a.7z");
    assert!(
        all[0] == ("a.7z/a.evtx".to_owned(), String::new()) && all.len() == 4,
        "{all:?}"
    );
    assert!(
        all[1].1.contains("pass its own path") && all[2].1.contains("an image of a disk"),
        "{all:?}"
    );
    assert!(all[3].1.contains("an archive inside of an archive"), "{all:?}");
    for path in ["a.7z/b.evtx.old", "a.7z/*.old"] {
        assert_eq!(found(path), [("a.7z/b.evtx.old".to_owned(), String::new())]);
        assert_eq!(read(&storage, path, &Archives::default(), 1).expect("rows")[0].1, 80);
    }
    let image = seven_of(&[
        ("disk.vhdx", &b"vhdxfile"[..]),
        ("c.evt", b"an old log"),
        ("notes.txt", b"notes"),
    ]);
    let images = Memory::default().with("a.7z", &image);
    let nested = ArchiveStorage::new(&images, &archives);
    let paths = expand(&nested, "a.7z/**", FileKind::Evidence, "a test", Interrupt::NEVER).expect("paths");
    let mut report = ReportScan::new(FileReport::default(), paths, &[24]).thread();
    let mut errors = Vec::new();
    while let Some(batch) = report.next(&images, Interrupt::NEVER).expect("a report") {
        let column = batch.rows.column(0).as_any().downcast_ref::<arrow_array::StringArray>();
        errors.extend(
            column
                .expect("texts")
                .iter()
                .flatten()
                .map(|text| text[..13].to_owned()),
        );
    }
    assert_eq!(errors, ["not read: it ", "not read: it ", "not an EVTX l"]);
    let none = read(&images, "a.7z", &archives, 1).expect_err("no logs").to_string();
    assert!(none.ends_with("; evtx_file_metadata lists what was not read"), "{none}");
    let error = read(&storage, "a.7z/disk.vhdx", &Archives::default(), 1);
    assert_eq!(error.expect("it is a log")[0].1, 80, "its bytes decide");
}

#[test]
fn a_checksum_tells_damage() {
    let log = sample("dirty.evtx");
    let mut folder = copied(&[&log, &log, &log]);
    folder.packed[log.len() + 30_000] ^= 1;
    folder.parts[2].1 = None;
    let list = ["a.evtx", "b.evtx", "c.evtx"].map(|name| named(name, Kind::Stream));
    let rows = rows_of(&seven(&[folder], &list));
    assert_eq!(
        (&rows[0], &rows[2]),
        (&file("/a.evtx", 80, &[]), &file("/c.evtx", 80, &[]))
    );
    let told = rows[1]
        .2
        .iter()
        .any(|error| error == ": cannot be read: its checksum does not match");
    assert!(told && rows[1].1 > 0, "{:?}", rows[1]);
    // What precedes damage to the stream is there, and what follows it is told.
    let mut folder = solid(&[&log, &log, &log]);
    let len = folder.packed.len();
    folder.packed.truncate(len - 20);
    let rows = rows_of(&seven(&[folder], &list));
    assert_eq!(rows[0], file("/a.evtx", 80, &[]));
    assert!(
        rows[2]
            .2
            .iter()
            .any(|error| error == ": cannot be read: its compressed bytes are cut short"),
        "{:?}",
        rows[2]
    );
}

#[test]
fn a_solid_7z_is_decompressed_once() {
    let log = sample("dirty.evtx");
    let names: Vec<_> = (0..200).map(|nth| format!("{nth}.evtx")).collect();
    let entries: Vec<_> = names.iter().map(|name| (name.as_str(), &log[..])).collect();
    let archive = seven_of(&entries);
    for threads in [1, 4] {
        let storage = Memory::default().with("a.7z", &archive);
        let rows = read(&storage, "a.7z", &Archives::default(), threads).expect("rows");
        assert!(rows.iter().all(|row| row.1 == 80 && row.2.is_empty()) && rows.len() == 200);
        // The start, the list, and the only folder.
        assert!(
            storage.reads.load(Ordering::Relaxed) <= 3 + archive.len() / (1 << 20),
            "{threads} threads"
        );
    }
}

#[test]
fn rows_do_not_depend_on_threads_when_memory_is_short() {
    let log = sample("dirty.evtx");
    let archive = |count: usize, in_folder: usize| {
        let names: Vec<_> = (0..count)
            .map(|nth| named(&format!("{nth}.evtx"), Kind::Stream))
            .collect();
        seven(&vec![solid(&vec![&log[..]; in_folder]); count / in_folder], &names)
    };
    let storage = Memory::default()
        .with("l/a.7z", &archive(20, 20))
        .with("l/b.7z", &archive(60, 60))
        .with("l/c.7z", &archive(20, 5))
        .with("l/d.7z", &archive(10, 1));
    check_short_memory(&storage, log.len());
}
