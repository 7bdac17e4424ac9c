//! ZIP archives and their entries.

use super::*;

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
    let rows = read(&Memory::default().with("a.zipx", &archive), "a.zipx", &archives, 1).expect("rows");
    assert_eq!(rows[0], file("a.zipx/B/dirty.evtx", 80, &[]));
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
    let rows = rows_of(&moved);
    assert!(
        rows[0].2[0].contains("bytes at offset 0 belong to no entry"),
        "{rows:?}"
    );
    assert_eq!(
        rows[1],
        file("a.zip/a.evtx", 160, &[&format!(": cannot be read: {name}")])
    );
    check(2, 46, b"x", 3, 80, name);
    // A method and a checksum.
    check(0, 16, &[0], 0, 80, "the header of its data has another checksum");
    check(3, 10, &[20], 3, 80, "the header of its data has another method");
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
