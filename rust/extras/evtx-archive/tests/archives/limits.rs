//! What archives may cost: bombs, memory, many entries, reads.

use super::*;

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
    let told = ": cannot be read: it takes more than 262144 bytes of memory, and there is no folder for temporary files: set temp_directory, or extract the file";
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
    // A frame with a window of 32 MiB.
    let mut window = vec![0x28, 0xB5, 0x2F, 0xFD, 0, 15 << 3];
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
    for (memory, disk, folder, sound_logs) in [
        (800 << 10, 0, None, 11),
        (64 << 20, 0, None, 24),
        (64 << 20, 1 << 30, Some(folder.path().to_owned()), 24),
        (0, 1 << 30, Some(folder.path().to_owned()), 12),
    ] {
        let rows = |threads| {
            let archives = Archives::new(memory, disk, folder.clone());
            let mut rows = read(&storage, "l", &archives, threads).expect("rows");
            rows.iter_mut().for_each(|(_, _, errors)| errors.sort());
            rows
        };
        let one = rows(1);
        let sound = |rows: &Rows| rows.iter().filter(|(_, _, errors)| errors.is_empty()).count();
        assert_eq!(sound(&one), sound_logs, "{one:?}");
        for threads in [2, 4, 8] {
            assert_eq!(rows(threads), one);
        }
    }
}

#[test]
#[ignore = "slow"]
fn a_hundred_thousand_entries_are_listed_and_read() {
    let entries: Vec<_> = (0..100_000).map(|i| format!("folder/{i}.evtx")).collect();
    let entries: Vec<_> = entries.iter().map(|name| stored(name.as_bytes(), b"")).collect();
    let mut archive = craft(&entries);
    // More than the record at the end can count.
    let at = archive.len() - 22;
    archive[at + 8..at + 12].fill(0xFF);
    let storage = Memory::default().with("a.zip", &archive);
    let started = ThreadTime::now();
    let found = paths(&storage, "a.zip", &Archives::default()).expect("paths");
    assert_eq!(found.len(), 100_000);
    assert!(storage.reads.load(Ordering::Relaxed) < 30);
    let rows = read(&storage, "a.zip", &Archives::default(), 1).expect("rows");
    assert!(rows.iter().all(|(_, _, errors)| errors.len() == 1));
    promised("100,000 entries of a ZIP archive", started.elapsed(), 20);
    assert!(started.elapsed() < MAX_TIME, "{:?}", started.elapsed());
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
