//! 7z archives that are damaged, crafted, or bombs.

use super::*;
use crate::packed::*;

fn rows_of(bytes: &[u8]) -> Result<Rows, ScanError> {
    let storage = Memory::default().with("l/a.7z", bytes);
    read(&storage, "l", &Archives::default(), 1)
}

/// Why an archive with this header and no packed bytes cannot be listed.
fn refusal(header: &[u8]) -> String {
    let rows = rows_of(&sealed(&[], header)).unwrap_or_default();
    if rows.len() != 1 || rows[0].2.is_empty() {
        return format!("{rows:?}");
    }
    rows[0].2[0].replacen(": cannot be read: ", "", 1)
}

/// The streams of one folder with a description of its coders, a size of each, and one packed stream of no bytes.
fn with_chain(chain: &[u8], sizes: usize) -> Vec<u8> {
    let streams = [
        &[6, 0, 1, 9, 0, 0, 7, 0x0B, 1, 0][..],
        chain,
        &[0x0C],
        &vec![0; sizes],
        &[0, 0],
    ]
    .concat();
    header(&streams, &files(&[named("a.evtx", Kind::Stream)]))
}

#[test]
fn counts_and_sizes_of_a_header_are_checked() {
    let huge = number(u64::MAX);
    let many = number(1_000_001);
    let damaged = "its list of entries is damaged";
    let cases: &[(&str, Vec<u8>, &str)] = &[
        ("another property", vec![9], damaged),
        ("no end", vec![1], damaged),
        (
            "files",
            [&[1, 5][..], &many].concat(),
            "it has 1000001 entries, more than 1000000",
        ),
        (
            "all files",
            [&[1, 5][..], &huge].concat(),
            "it has 18446744073709551615 entries, more than 1000000",
        ),
        ("files without names", vec![1, 5, 100, 0, 0], damaged),
        (
            "bits",
            [&[1, 5][..], &number(1_000_000), &[0x0E, 1, 0]].concat(),
            damaged,
        ),
        ("a property", [&[1, 5, 1, 0x19][..], &huge].concat(), damaged),
        (
            "packed streams",
            [&[1, 4, 6, 0][..], &huge].concat(),
            "packed streams, more than 2000000",
        ),
        (
            "their sizes",
            [&[1, 4, 6, 0][..], &number(2_000_000), &[9, 1]].concat(),
            damaged,
        ),
        ("a size", [&[1, 4, 6, 0, 1, 9][..], &huge].concat(), damaged),
        (
            "folders",
            [&[1, 4, 7, 0x0B][..], &many].concat(),
            "it has 1000001 folders, more than 1000000",
        ),
        (
            "no folders",
            [&[1, 4, 7, 0x0B][..], &number(1_000_000), &[0]].concat(),
            "its list of entries takes more than 48 MiB of memory",
        ),
        ("elsewhere", vec![1, 4, 7, 0x0B, 1, 1], "in streams of their own"),
        (
            "coders",
            with_chain(&[33], 33),
            "it has 33 coders in a folder, more than 32",
        ),
        ("no coders", with_chain(&[0], 0), damaged),
        ("no such coder", with_chain(&[1, 0x81, 0], 1), damaged),
        ("a long ID", with_chain(&[1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1), damaged),
        (
            "properties",
            with_chain(&[&[1, 0x21, 0x21][..], &huge].concat(), 1),
            damaged,
        ),
        ("properties of LZMA2", with_chain(&[1, 0x21, 0x21, 1, 41], 1), damaged),
        ("properties of LZMA", with_chain(&[1, 0x23, 3, 1, 1, 1, 93], 1), damaged),
        ("no properties", with_chain(&[1, 1, 3], 1), damaged),
        (
            "inputs",
            with_chain(&[&[1, 0x11, 0][..], &huge].concat(), 1),
            "streams of a coder, more than 32",
        ),
        ("two outputs", with_chain(&[1, 0x11, 0, 1, 2, 0, 5], 2), damaged),
        ("a circle", with_chain(&[2, 1, 0, 1, 0, 0, 0], 2), damaged),
        (
            "two circles",
            with_chain(&[3, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0], 3),
            damaged,
        ),
        (
            "the same input",
            with_chain(&[3, 1, 0, 1, 0, 1, 0, 0, 1, 0, 2], 3),
            damaged,
        ),
        (
            "no packed stream",
            [&[1, 4, 7, 0x0B, 1, 0, 1, 1, 0, 0x0C, 0][..], &[0, 0, 0]].concat(),
            damaged,
        ),
        (
            "more entries than bytes",
            {
                let mut folder = copied(&[b"abc", b"de"]);
                folder.parts[0].0 = 6;
                header(&streams(&[folder]), &[0, 0])
            },
            damaged,
        ),
        (
            "entries",
            [&[1, 4, 7, 0x0B, 0, 0, 0x0C, 0, 8, 0x0D, 0, 0, 5][..], &many].concat(),
            "1000001 entries",
        ),
        (
            "more files than streams",
            header(&streams(&[]), &files(&[named("a.evtx", Kind::Stream)])),
            damaged,
        ),
    ];
    for (what, header, told) in cases {
        let why = refusal(header);
        assert!(why.contains(told), "{what}: {why}");
    }
}

#[test]
#[ignore = "slow"]
fn a_list_of_entries_is_bounded() {
    let started = ThreadTime::now();
    // Sections that come again and again, each of which would be work for every folder before it.
    let folders = streams(&vec![copied(&[]); 60_000]);
    let again = |property: &[u8]| {
        header(
            &[&folders[..folders.len() - 1], &property.repeat(1 << 20), &[0]].concat(),
            &[0, 0],
        )
    };
    assert_eq!(refusal(&again(&[8, 0])), "its list of entries is damaged");
    assert_eq!(refusal(&again(&[8, 0x0A, 1, 0])), "its list of entries is damaged");
    let list = [
        &number(300_000)[..],
        &[0x0E],
        &number(37_500),
        &vec![0; 37_500],
        &[0x0F, 0].repeat(1 << 20),
        &[0],
    ]
    .concat();
    assert_eq!(refusal(&header(&streams(&[]), &list)), "its list of entries is damaged");
    let zeros = vec![0; 130 << 20];
    let encoded = |folder: &Folder| {
        let streams = streams(std::slice::from_ref(folder));
        rows_of(&sealed(&folder.packed, &[&[0x17][..], &streams].concat())).expect("a row")[0].2[0].clone()
    };
    assert!(encoded(&solid(&[&zeros])).contains("has 136314880 bytes, more than 128 MiB"));
    assert!(encoded(&solid(&[&zeros[..100]])).contains("its list of entries is damaged"));
    let mut short = solid(&[b"\x01\0"]);
    short.coders[0].size = 10 << 20;
    short.parts[0].0 = 10 << 20;
    assert!(encoded(&short).contains("its list of entries is damaged"));
    // A list that is a packed list again, without end: itself.
    let inner = streams(&[copied(&[b""])]);
    let nested = [&[0x17][..], &inner].concat();
    let mut folder = copied(&[&nested]);
    for _ in 0..5 {
        let streams = streams(std::slice::from_ref(&folder));
        folder = copied(&[&[&[0x17][..], &streams].concat()]);
    }
    assert!(encoded(&folder).contains("its list of entries is damaged"));
    promised("lists of a 7z archive that are not bounded", started.elapsed(), 20);
    assert!(started.elapsed() < MAX_TIME, "{:?}", started.elapsed());
}

#[test]
fn dictionaries_are_a_part_of_the_memory() {
    let log = sample("dirty.evtx");
    let with = |properties: &[u8], size: Option<u64>| {
        let mut folder = solid(&[&log]);
        folder.coders[0].properties = properties.to_vec();
        if let Some(size) = size {
            folder.coders[0].size = size;
            folder.parts.push((size - log.len() as u64, None));
        }
        let list = ["a.evtx", "b.txt"].map(|name| named(name, Kind::Stream));
        let list = &list[..folder.parts.len()];
        rows_of(&seven(&[folder], list)).expect("rows")
    };
    // The largest dictionary costs no more than what is decompressed with it.
    assert_eq!(with(&[40], None), [file("l/a.7z/a.evtx", 80, &[])]);
    let rows = with(&[40], Some(1 << 40));
    assert!(rows[0].2[0].contains("more than 1024 MiB"), "{rows:?}");
    let rows = with(&[36], Some(1 << 40));
    assert!(rows[0].2[0].contains("more memory than archives may use"), "{rows:?}");
}

#[test]
#[ignore = "slow"]
fn a_bomb_in_a_7z_is_told() {
    let (log, zeros) = (sample("dirty.evtx"), vec![0; 300 << 20]);
    let bomb = seven_of(&[("a.evtx", &log), ("b.evtx", &zeros), ("c.evtx", &log)]);
    let folder = tempfile::tempdir().expect("a folder").path().to_owned();
    let storage = Memory::default().with("l/a.7z", &bomb);
    let rows = read(&storage, "l", &Archives::new(1 << 20, 64 << 30, Some(folder)), 1).expect("rows");
    assert_eq!(rows[0], file("l/a.7z/a.evtx", 80, &[]));
    let told = |row: &(_, _, Vec<String>)| row.2.iter().any(|error| error.contains("as a bomb does"));
    assert!(told(&rows[1]) && told(&rows[2]), "{rows:?}");
    // Bombs in each other: the first coder gives more than all of a log.
    let inner = lzma2(&zeros);
    let folder = Folder {
        coders: vec![
            coder(&[0x21], &[16], inner.len() as u64),
            coder(&[0x21], &[16], zeros.len() as u64),
        ],
        packed: lzma2(&inner),
        parts: vec![(zeros.len() as u64, None)],
    };
    let rows = rows_of(&seven(&[folder], &[named("a.evtx", Kind::Stream)])).expect("rows");
    assert!(told(&rows[0]), "{rows:?}");
}

/// Zeros after a stream of bzip2 are passed over. Here, there is no end of them.
#[test]
fn an_interrupt_ends_coders_that_give_nothing() {
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(b"x").expect("bytes");
    let bzip2 = bzip2.finish().expect("a stream");
    let zeros = [&bzip2[..], &vec![0; 64 << 20]].concat();
    let folder = Folder {
        coders: vec![coder(&[0x21], &[16], 1 << 40), coder(&[4, 2, 2], &[], 100)],
        packed: lzma2(&zeros),
        parts: vec![(100, None)],
    };
    let storage = Memory::default().with("a.7z", &seven(&[folder], &[named("a.evtx", Kind::Stream)]));
    let archives = Archives::default();
    let found = paths(&storage, "a.7z", &archives).expect("paths");
    let looks = AtomicUsize::new(0);
    let is_set = || looks.fetch_add(1, Ordering::Relaxed) > 100;
    let scan = FileScan::new(Arc::new(Scan::new(Table::from(Options::default()), &[0])), found, None);
    let mut worker = Worker::new(&Arc::new(scan), MakeArrays::CHECKED);
    let read = worker.next(&storage, Interrupt::new(&is_set));
    assert!(
        matches!(read, Err(ScanError::Interrupted(Interrupted))),
        "{}",
        looks.into_inner()
    );
}

#[test]
#[ignore = "slow"]
fn a_million_entries_and_folders_are_listed() {
    let started = ThreadTime::now();
    let list: Vec<_> = (0..1_000_000)
        .map(|nth| named(&format!("{nth}.x"), Kind::Empty))
        .collect();
    let storage = Memory::default().with("a.7z", &seven(&[], &list));
    let error = read(&storage, "a.7z", &Archives::default(), 1)
        .expect_err("no logs")
        .to_string();
    assert_eq!(error, "No logs found in \"a.7z\"");
    // Folders without entries, and one with a log.
    let log = sample("dirty.evtx");
    let with_folders = |count: usize| {
        let mut folders = vec![copied(&[]); count];
        folders.push(copied(&[&log]));
        rows_of(&seven(&folders, &[named("a.evtx", Kind::Stream)])).expect("rows")
    };
    assert_eq!(with_folders(50_000), [file("l/a.7z/a.evtx", 80, &[])]);
    let [(_, 0, errors)] = &with_folders(999_999)[..] else {
        panic!("no rows")
    };
    assert!(errors[0].contains("its list of entries takes more than"), "{errors:?}");
    promised("a million entries of a 7z archive", started.elapsed(), 20);
    assert!(started.elapsed() < MAX_TIME, "{:?}", started.elapsed());
}

#[test]
fn every_byte_of_a_7z_can_be_damaged() {
    let log = sample("WS07-Security.evtx");
    let folders = [solid(&[&log, &log]), copied(&[&log[..9000]])];
    let list = ["a.evtx", "b.evtx", "c.evtx"].map(|name| named(name, Kind::Stream));
    let archive = seven(&folders, &list);
    let sound = rows_of(&archive).expect("rows");
    let header = archive.len() - header(&streams(&folders), &files(&list)).len();
    let count = |rows: &Rows| rows.iter().map(|row| row.1).sum::<usize>();
    let whole = count(&sound);
    for at in (0..header).step_by(37).chain(header..archive.len()) {
        for change in [1, 0x80, 0xFF] {
            let mut bytes = archive.clone();
            bytes[at] ^= change;
            if let Ok(found) = rows_of(&bytes) {
                let is_told = |row: &(_, _, Vec<String>)| row.2.iter().any(|error| error.contains("cannot be read"));
                let is_whole = count(&found) == whole;
                assert!(is_whole || found.iter().any(is_told), "byte {at}: {found:?}");
            }
            // The same with a checksum that matches: any row or error, but no panic.
            if at >= header {
                let _ = rows_of(&sealed(&bytes[32..header], &bytes[header..])).map(drop);
            }
        }
        let _ = rows_of(&archive[..at]).map(drop);
    }
}
