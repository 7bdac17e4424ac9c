//! Compressed files: `.gz`, `.zst`, `.bz2` and `.xz`.

use super::*;

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
