//! ZIP archives that are damaged, or contradict themselves.

use super::*;

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
    // Bytes in front of an archive and behind it cost no entry.
    let moved = [b"#!/bin/sh", &archive[..], b"more"].concat();
    let others = |len: usize, at: usize| {
        let what =
            format!(": all was read that its directory names, but {len} bytes at offset {at} belong to no entry");
        file("a.zip", 0, &[&what])
    };
    assert_eq!(
        rows_of(&moved),
        [
            others(9, 0),
            others(4, 9 + archive.len()),
            file("a.zip/a.evtx", 80, &[]),
            file("a.zip/b.evtx", 80, &[])
        ]
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
    let others = |len: usize| {
        let what = format!("{len} bytes at offset 0 belong to no entry, and start with the entry \"a.evtx\"");
        [file(
            "l/a.zip",
            0,
            &[&format!(": all was read that its directory names, but {what}")],
        )]
    };
    assert_eq!(rows(&with(8, &[0; 8])).0, others(at));
    assert_eq!(rows(&with(8, &[0; 12])).0, others(at));
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
    let what = format!(
        ": all was read that its directory names, but {} bytes at offset 0 belong to no entry, and start with the entry \"i.evtx\"",
        inner.len()
    );
    let told = [&[file("l/a.zip", 0, &[&what])], &whole[..]].concat();
    assert_eq!(rows(&[&inner[..], &archive].concat()).0, told);
}

#[test]
#[ignore = "slow"]
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
    // The directory and the end byte by byte, the entries here and there.
    let step = archive.len() / 60;
    let places = (0..archive.len() - 400)
        .step_by(step)
        .chain((archive.len() - 400..archive.len()).step_by(2));
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
