//! Tar archives, plain and compressed.

use super::*;

/// A header, and data with its padding. The name is cut to what fits a header.
pub(crate) fn member(name: &[u8], kind: u8, data: &[u8]) -> Vec<u8> {
    let mut header = [0; 512];
    let len = name.len().min(100);
    header[..len].copy_from_slice(&name[..len]);
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(format!("{:011o}\0", data.len()).as_bytes());
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    sign(&mut header);
    let padding = vec![0; data.len().wrapping_neg() % 512];
    [&header, data, &padding].concat()
}

/// Writes the checksum of a header.
pub(crate) fn sign(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u64 = header[..512].iter().map(|&byte| u64::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

pub(crate) fn record(key: &str, value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let len = (rest..)
        .find(|len| rest + len.to_string().len() == *len)
        .expect("a length");
    [format!("{len} {key}=").as_bytes(), value, b"\n"].concat()
}

pub(crate) fn attribute(key: &str, value: &str) -> Vec<u8> {
    member(b"x", b'x', &record(key, value.as_bytes()))
}

/// A header that states another size.
pub(crate) fn sized(mut member: Vec<u8>, size: usize) -> Vec<u8> {
    member[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    sign(&mut member);
    member
}

pub(crate) fn tar(members: &[Vec<u8>]) -> Vec<u8> {
    [&members.concat()[..], &[0; 1024]].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).expect("bytes");
    writer.finish().expect("a member")
}

/// The archive in each way of compression, by the end of its name.
pub(crate) fn compressed(tar: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(tar).expect("bytes");
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    vec![
        (".tar", tar.to_vec()),
        (".tar.gz", gzip(tar)),
        (".TGZ", gzip(tar)),
        (".tar.bz2", bzip2.finish().expect("a stream")),
        (".tar.zst", ruzstd::encoding::compress_to_vec(tar, level)),
        (".tar.xz", xz(tar)),
        (".txz", xz(tar)),
    ]
}

/// The rows of an archive in a folder, in which a path is only the name of an entry.
fn rows_in(end: &str, bytes: &[u8], threads: usize) -> Rows {
    let storage = Memory::default().with(&format!("l/a{end}"), bytes);
    let rows = read(&storage, "l", &Archives::default(), threads).expect("rows");
    let name = |path: String| path.replacen(&format!("l/a{end}"), "", 1);
    rows.into_iter()
        .map(|(path, rows, errors)| (name(path), rows, errors))
        .collect()
}

#[test]
fn logs_in_a_tar_are_files() {
    let (dirty, wrapped) = (sample("dirty.evtx"), sample("wrapped.evtx"));
    let archive = tar(&[
        member(b"./", b'5', b""),
        member(b"./C/", b'5', b""),
        member(b"./C/wrapped.EVTX", b'0', &wrapped),
        member(b"./C/notes.txt", b'0', b"nothing"),
        member(b"./B/dirty.evtx", 0, &dirty),
        member(b"./B/empty.evtx", b'0', b""),
    ]);
    let empty = ": not an EVTX log: the file is empty, there is nothing in place of \"ElfFile\\0\"";
    for (end, bytes) in compressed(&archive) {
        let whole = [
            file("/B/dirty.evtx", 80, &[]),
            file("/B/empty.evtx", 0, &[empty]),
            file("/C/wrapped.EVTX", 160, &[]),
        ];
        assert_eq!(rows_in(end, &bytes, 1), whole, "{end}");
        assert_eq!(rows_in(end, &bytes, 3), whole, "{end}");
        let storage = Memory::default().with(&format!("a{end}"), &bytes);
        for (inner, rows) in [
            ("c\\wrapped.evtx", 160),
            ("B/dirty.evtx", 80),
            ("**/w*.evtx", 160),
            ("C", 160),
        ] {
            let found = read(&storage, &format!("a{end}/{inner}"), &Archives::default(), 1).expect("rows");
            assert!(found.len() == 1 && found[0].1 == rows, "{end}, {inner}: {found:?}");
        }
    }
}

#[test]
fn names_and_kinds_of_entries() {
    let log = sample("dirty.evtx");
    let long = format!("{}/long.evtx", "folder/".repeat(40));
    let long = long.as_str();
    let one = |name: &[u8]| member(name, b'0', &log);
    let mut prefixed = one(b"name.evtx");
    prefixed[345..351].copy_from_slice(b"prefix");
    sign(&mut prefixed);
    let mut sparse = member(b"sparse.evtx", b'S', b"the only bytes");
    sparse[482] = 1;
    sign(&mut sparse);
    sparse.splice(512..512, [0; 512]);
    let link = "it is a symbolic link, which is not followed";
    let cases: Vec<(Vec<u8>, &str, &str)> = vec![
        (one(b"../../etc/x.evtx"), "../../etc/x.evtx", ""),
        (one(b"/etc/y.evtx"), "/etc/y.evtx", ""),
        (one(b"twice.evtx"), "twice.evtx", ""),
        (one(b"twice.evtx"), "twice.evtx", ""),
        (one(b"\xFF\xFE.evtx"), "\u{A0}■.evtx", ""),
        (one(b"zero.evtx\0.txt"), "zero.evtx", ""),
        (member(b"other.evtx", b'Q', &log), "other.evtx", ""),
        (prefixed, "prefix/name.evtx", ""),
        ([attribute("path", long), one(b"x")].concat(), long, ""),
        (
            [member(b"x", b'L', &[long.as_bytes(), b"\0"].concat()), one(b"x")].concat(),
            long,
            "",
        ),
        (
            [attribute("path", "nul.evtx\0.txt"), one(b"x")].concat(),
            "nul.evtx",
            "",
        ),
        ([attribute("path", "\0x"), one(b"own.evtx")].concat(), "own.evtx", ""),
        ([member(b"x", b'L', b"\0"), one(b"own2.evtx")].concat(), "own2.evtx", ""),
        (
            [attribute("GNU.sparse.name", "\0x"), one(b"own3.evtx")].concat(),
            "own3.evtx",
            "it is a sparse file, which is not supported",
        ),
        (
            [member(b"x", b'g', b"13 comment=x\n"), one(b"global.evtx")].concat(),
            "global.evtx",
            "",
        ),
        (member(b"folder.evtx/", b'0', b""), "", ""),
        (member(b"link.evtx", b'2', b""), "link.evtx", link),
        (
            member(b"hard.evtx", b'1', b""),
            "hard.evtx",
            "it is a hard link, which is not followed",
        ),
        (
            member(b"device.evtx", b'3', b""),
            "device.evtx",
            "it is a device, not a file",
        ),
        (sparse, "sparse.evtx", "it is a sparse file, which is not supported"),
        (
            [attribute("GNU.sparse.name", "s.evtx"), one(b"x")].concat(),
            "s.evtx",
            "it is a sparse file, which is not supported",
        ),
        (
            member(b"part.evtx", b'M', b"more"),
            "part.evtx",
            "it is a part of an archive of several files",
        ),
        (one(b"last.evtx"), "last.evtx", ""),
    ];
    let archive = tar(&cases.iter().map(|(member, ..)| member.clone()).collect::<Vec<_>>());
    let named = cases.iter().filter(|(_, name, _)| !name.is_empty());
    let mut wanted: Vec<_> = named
        .map(|(_, name, why)| {
            if why.is_empty() {
                file(&format!("/{name}"), 80, &[])
            } else {
                file(&format!("/{name}"), 0, &[&format!(": cannot be read: {why}")])
            }
        })
        .collect();
    wanted.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(rows_in(".tar", &archive, 2), wanted);
    assert_eq!(rows_in(".tgz", &gzip(&archive), 2), wanted);
}

/// Other programs ignore such a name, so a row tells of it.
#[test]
fn a_name_of_all_entries_is_used_and_told() {
    let log = sample("dirty.evtx");
    let archive = tar(&[
        member(b"a.evtx", b'0', &log),
        member(b"x", b'g', b"17 path=all.evtx\n"),
        member(b"b.txt", b'0', &log),
        attribute("path", "c.evtx"),
        member(b"d.evtx", b'0', &log),
    ]);
    let at = 512 + log.len().next_multiple_of(512);
    let told = format!(": all was read, but its header at offset {at} gives all later entries one name");
    let rows = ["/a.evtx", "/all.evtx", "/c.evtx"].map(|name| file(name, 80, &[]));
    let wanted: Vec<_> = [file("", 0, &[&told])].into_iter().chain(rows).collect();
    assert_eq!(rows_in(".tar", &archive, 1), wanted);
    let damaged = tar(&[member(b"a.evtx", b'0', &log), member(b"x", b'g', b"99 path=y\n")]);
    let told = format!(": cannot be read: its header at offset {at} is damaged");
    assert_eq!(rows_in(".tar", &damaged, 1)[0], file("", 0, &[&told]));
}

#[test]
fn a_size_can_stand_in_the_attributes() {
    let log = sample("dirty.evtx");
    let (one, other) = (member(b"a.evtx", b'0', &log), member(b"b.evtx", b'0', &log));
    let size = attribute("size", &log.len().to_string());
    let whole = [file("/a.evtx", 80, &[]), file("/b.evtx", 80, &[])];
    let archive = tar(&[size.clone(), one.clone(), other.clone()]);
    assert_eq!(rows_in(".tar", &archive, 1), whole);
    // Programs that do not know the attribute find other entries.
    let archive = tar(&[size, sized(one, 0), other]);
    let told = ": all was read, but its header at offset 1024 has another size in the attributes before it";
    let told = file("", 0, &[told]);
    assert_eq!(rows_in(".tar", &archive, 1), [&[told], &whole[..]].concat());
}

/// Where programs differ in what an entry is, or how long, and where a log can be that is no entry.
#[test]
fn a_log_that_only_some_programs_find_is_read_or_told() {
    let log = sample("dirty.evtx");
    let text = b"nothing".as_slice();
    let one = |name: &[u8]| member(name, b'0', &log);
    let b = file("/b.evtx", 80, &[]);
    // A header of an entry before a log, as data of another one.
    let inner = one(b"b.evtx");
    let mut prefixed = one(b"");
    prefixed[345..351].copy_from_slice(b"b.evtx");
    prefixed[257..265].fill(0);
    sign(&mut prefixed);
    let mut sparse = member(b"a.txt", b'S', b"");
    sparse[482] = 1;
    sign(&mut sparse);
    let mut map = inner[..512].to_vec();
    map[504] = 1;
    sign(&mut map);
    let long = |kind| member(b"x", kind, &[b"c.txt\0", &log[..]].concat());
    let deflated = zip(&[("b.evtx", &log, deflated())]);
    for (what, members, wanted) in [
        // Second names.
        ("path", vec![attribute("path", "c.txt"), one(b"b.evtx")], Ok(b.clone())),
        (
            "path, twice",
            vec![
                member(
                    b"x",
                    b'x',
                    &[record("path", b"b.evtx"), record("path", b"c.txt")].concat(),
                ),
                one(b"c.txt"),
            ],
            Ok(b.clone()),
        ),
        (
            "path in two headers",
            vec![attribute("path", "b.evtx"), attribute("path", "c.txt"), one(b"c.txt")],
            Ok(b.clone()),
        ),
        (
            "long name",
            vec![member(b"x", b'L', b"c.txt\0"), one(b"b.evtx")],
            Ok(b.clone()),
        ),
        (
            "long name and path",
            vec![
                member(b"x", b'L', b"b.evtx\0"),
                attribute("path", "c.txt"),
                one(b"c.txt"),
            ],
            Ok(b.clone()),
        ),
        (
            "path of a folder",
            vec![attribute("path", "c/"), one(b"b.evtx/")],
            Ok(b.clone()),
        ),
        (
            "names without end",
            vec![
                attribute("path", "c.txt").repeat(20),
                attribute("path", "b.evtx"),
                attribute("path", "c.txt"),
                one(b"c.txt"),
            ],
            Err("header at offset 22528 has too many names before it"),
        ),
        (
            "long name before a label",
            vec![
                member(b"x", b'L', b"c.txt\0"),
                member(b"label", b'V', b""),
                one(b"b.evtx"),
            ],
            Ok(b.clone()),
        ),
        // Folders.
        (
            "folder",
            vec![one(b"b.evtx/")],
            Err("folder \"b.evtx/\" has 135168 bytes of data"),
        ),
        (
            "old folder",
            vec![member(b"b.evtx/", 0, &log)],
            Err("folder \"b.evtx/\" has"),
        ),
        ("dot", vec![one(b"b.evtx/.")], Err("folder \"b.evtx/.\" has")),
        ("backslash", vec![one(b"b.evtx\\")], Err("folder \"b.evtx\\\\\" has")),
        ("prefix", vec![prefixed], Err("folder \"b.evtx/\" has")),
        // Types.
        (
            "label",
            vec![member(b"b.evtx", b'V', &log)],
            Err("header at offset 0 is the label of a volume with 135168"),
        ),
        (
            "list",
            vec![member(b"b.evtx", b'D', &log)],
            Err("header at offset 0 is a list of the names in a folder, and"),
        ),
        (
            "list that goes on",
            vec![member(b"b/", b'D', &[b"Ya\0\0", &log[..]].concat())],
            Err("header at offset 0 is a list"),
        ),
        ("another type", vec![member(b"b.evtx", b'Z', &log)], Ok(b.clone())),
        ("old long name", vec![member(b"b.evtx", b'N', &log)], Ok(b.clone())),
        // Sizes.
        (
            "another size",
            vec![
                attribute("size", &inner.len().to_string()),
                sized([member(b"a.txt", b'0', b""), inner.clone()].concat(), 0),
            ],
            Err("header at offset 1024 has another size"),
        ),
        (
            "two sizes",
            vec![
                member(
                    b"x",
                    b'x',
                    &[record("size", b"7"), record("size", inner.len().to_string().as_bytes())].concat(),
                ),
                sized([member(b"a.txt", b'0', b""), inner.clone()].concat(), inner.len()),
            ],
            Err("header at offset 1024 has another size"),
        ),
        (
            "size of all",
            vec![
                member(b"x", b'g', &record("size", b"0")),
                member(b"a.txt", b'0', &inner),
            ],
            Err("header at offset 0 gives all later entries one size"),
        ),
        (
            "folder with a size",
            vec![sized(member(b"a/", b'5', b""), 1024), member(b"a.txt", b'0', &inner)],
            Err("header at offset 0 is no file, and says that it has 1024 bytes"),
        ),
        (
            "link with a size",
            vec![
                attribute("size", "1024"),
                member(b"a.txt", b'1', b""),
                member(b"a.txt", b'0', &inner),
            ],
            Err("header at offset 1024 is no file"),
        ),
        (
            "map",
            vec![sparse, map, vec![0; 512]],
            Err("header at offset 0 has a map of a sparse file that is a header, too"),
        ),
        // Headers that describe others.
        (
            "after a long name",
            vec![long(b'L'), member(b"c", b'0', text)],
            Err("header at offset 0 has other bytes after a name"),
        ),
        (
            "after a target",
            vec![long(b'K'), member(b"c", b'0', text)],
            Err("header at offset 0 has other bytes"),
        ),
        (
            "comment",
            vec![member(b"x", b'x', &record("comment", &log)), member(b"c", b'0', text)],
            Err("header at offset 0 has attributes that contain a log"),
        ),
        (
            "comment of all",
            vec![
                member(b"x", b'g', &record("comment", &deflated)),
                member(b"c", b'0', text),
            ],
            Err("header at offset 0 has attributes that contain a ZIP archive"),
        ),
    ] {
        let archive = tar(&[members, vec![one(b"z.evtx")]].concat());
        for (end, bytes) in [(".tar", archive.clone()), (".tgz", gzip(&archive))] {
            let first = match &wanted {
                Ok(row) => row.clone(),
                Err(why) => file("", 0, &[&format!(": all was read, but its {why}")]),
            };
            let mut rows = rows_in(end, &bytes, 1);
            // What follows the text is not compared.
            if wanted.is_err() && rows[0].2.len() == 1 {
                rows[0].2[0].truncate(first.2[0].len());
            }
            assert_eq!(rows, [first, file("/z.evtx", 80, &[])], "{what}, {end}");
        }
    }
    // Lists, labels and sizes as they should be.
    let large = ((1_u64 << 33) + 5).to_string();
    for members in [
        vec![member(b"d/", b'D', b"Ya.evtx\0Db\0Nc\0\0")],
        vec![member(b"d/", b'D', b"\0")],
        vec![member(b"d/", b'D', b"")],
        vec![member(b"a label", b'V', b"")],
        vec![member(b"x", b'K', b"target\0"), member(b"l", b'2', b"")],
        vec![attribute("size", "7"), member(b"c", b'0', text)],
    ] {
        let archive = tar(&[members, vec![one(b"z.evtx")]].concat());
        assert_eq!(rows_in(".tar", &archive, 1), [file("/z.evtx", 80, &[])]);
    }
    for (digits, is_told) in [(0, false), (5, false), (0o77_777_777_777, false), (6, true)] {
        let archive = [attribute("size", &large), sized(member(b"c", b'0', b""), digits)].concat();
        let rows = rows_in(".tar", &[one(b"z.evtx"), archive].concat(), 1);
        let told = rows
            .iter()
            .flat_map(|row| &row.2)
            .filter(|error| error.contains("another size"));
        assert_eq!(told.count(), usize::from(is_told), "{digits}: {rows:?}");
    }
}

/// Wherever an archive ends early, there is a row that says so, and the records before it.
#[test]
fn a_tar_that_is_cut_short_says_so() {
    let log = sample("dirty.evtx");
    let archive = tar(&[member(b"a.evtx", b'0', &log), member(b"b.evtx", b'0', &log)]);
    let mut most = 0;
    for len in (600..archive.len() - 1024).step_by(4099) {
        for (end, bytes) in [(".tar", archive[..len].to_vec()), (".tar.gz", gzip(&archive[..len]))] {
            let rows = rows_in(end, &bytes, 1);
            let whole: usize = rows.iter().map(|(_, sound, _)| sound).sum();
            let told = |(_, _, errors): &(_, _, Vec<String>)| errors.iter().any(|error| error.contains("cut short"));
            assert!(rows.iter().any(told), "{end}, {len}: {rows:?}");
            assert!(whole >= 80 || len < 1000 + log.len(), "{end}, {len}: {whole}");
            most = most.max(whole);
        }
    }
    assert!((81..=160).contains(&most), "{most}");
    // A stream that is cut.
    let whole = gzip(&archive);
    let rows = rows_in(".tgz", &whole[..whole.len() / 2], 1);
    let errors = rows.iter().flat_map(|(_, _, errors)| errors);
    let told = errors.filter(|error| *error == ": cannot be read: its compressed bytes are cut short");
    assert!(rows[0].1 + rows[1].1 > 20 && told.count() >= 1, "{rows:?}");
    // Only its end is missing.
    let rows = rows_in(".tar", &archive[..archive.len() - 1024], 1);
    assert_eq!(
        rows[0],
        file("", 0, &[": cannot be read: the archive is cut short: it has no end"])
    );
    assert_eq!((rows[1].1, rows[2].1), (80, 80));
}

#[test]
fn damage_to_the_stream_is_told_before_damage_to_a_header() {
    let log = sample("dirty.evtx");
    let mut archive = tar(&[member(b"a.evtx", b'0', &log), member(b"b.evtx", b'0', &log)]);
    archive[512 + log.len().next_multiple_of(512)] ^= 1;
    let told = |bytes: &[u8]| rows_in(".tgz", bytes, 1)[0].2[0].clone();
    assert!(told(&gzip(&archive)).ends_with(" is damaged"));
    let mut damaged = gzip(&archive);
    let at = damaged.len() - 8;
    damaged[at] ^= 1;
    assert_eq!(told(&damaged), ": cannot be read: its checksum does not match");
}

#[test]
fn every_byte_of_a_header_can_be_damaged() {
    let log = sample("dirty.evtx");
    let archive = tar(&[member(b"a.evtx", b'0', &log), member(b"b.evtx", b'0', &log)]);
    let second = archive.len() / 2 - 512 + 512 * usize::from(archive.len() / 512 % 2 == 1);
    let second = (second.saturating_sub(2048)..)
        .find(|&at| archive[at..].starts_with(b"b.evtx"))
        .expect("a header");
    for at in second..second + 512 {
        for bit in [1, 0x80] {
            let mut archive = archive.clone();
            archive[at] ^= bit;
            let rows = rows_in(".tar", &archive, 1);
            let damaged = format!(": cannot be read: its header at offset {second} is damaged");
            let is_same = rows == [file("/a.evtx", 80, &[]), file("/b.evtx", 80, &[])];
            assert!(
                rows == [file("", 0, &[&damaged]), file("/a.evtx", 80, &[])]
                    || is_same && (148..156).contains(&(at - second)),
                "{at}: {rows:?}"
            );
        }
    }
}

#[test]
fn what_follows_the_end_is_read_or_told() {
    let log = sample("dirty.evtx");
    let (one, other) = (
        tar(&[member(b"a.evtx", b'0', &log)]),
        tar(&[member(b"b.evtx", b'0', &log)]),
    );
    let both = [file("/a.evtx", 80, &[]), file("/b.evtx", 80, &[])];
    assert_eq!(
        rows_in(".tar", &[&one[..], &[0; 9000 / 512 * 512], &other].concat(), 1),
        both
    );
    for (more, why) in [
        (vec![b'x'; 600], ": all was read up to its end, but other bytes follow"),
        (
            vec![0; 2 << 20],
            ": cannot be read: more than 1 MiB of zeros follows its end",
        ),
    ] {
        let told = file("", 0, &[why]);
        assert_eq!(rows_in(".tar", &[&one[..], &more].concat(), 1), [told, both[0].clone()]);
    }
    for (bytes, why) in [
        (&b""[..], "the file is empty"),
        (&[b'x'; 2000], "it is not a tar archive"),
        (&one[..300], "it is not a tar archive"),
    ] {
        let storage = Memory::default().with("a.tar", bytes);
        let error = read(&storage, "a.tar", &Archives::default(), 1)
            .expect_err("an error")
            .to_string();
        assert_eq!(error, format!("a.tar: {why}"));
    }
    let huge = attribute("path", &"x".repeat(2 << 20));
    let told = ": cannot be read: the header at offset 69632 has 2097166 bytes of attributes, more than 1048576";
    let rows = rows_in(".tar", &[&one[..one.len() - 1024], &huge].concat(), 1);
    let offset = one.len() - 1024;
    assert_eq!(rows[0], file("", 0, &[&told.replace("69632", &offset.to_string())]));
    assert_eq!(rows[1], both[0]);
}

#[test]
#[ignore = "slow"]
fn a_bomb_in_a_tar_is_told() {
    let (log, zeros) = (sample("dirty.evtx"), vec![0; 300 << 20]);
    let bomb = [
        member(b"a.evtx", b'0', &log),
        member(b"b.evtx", b'0', &zeros),
        member(b"c.evtx", b'0', &log),
    ];
    let rows = rows_in(".txz", &xz(&tar(&bomb)), 1);
    let told = |row: &(_, _, Vec<String>)| row.2.iter().any(|error| error.contains("as a bomb does"));
    assert!(
        rows.len() == 3 && told(&rows[0]) && rows[1] == file("/a.evtx", 80, &[]),
        "{rows:?}"
    );
    assert_eq!(rows[2].0, "/b.evtx");
}

/// The archive is read twice: once for its names, and once for its entries.
#[test]
fn a_compressed_tar_is_decompressed_once() {
    let log = sample("dirty.evtx");
    let members: Vec<_> = (0..200)
        .map(|nth| member(format!("{nth}.evtx").as_bytes(), b'0', &log))
        .collect();
    let archive = gzip(&tar(&members));
    for threads in [1, 4] {
        let storage = Memory::default().with("a.tgz", &archive);
        let rows = read(&storage, "a.tgz", &Archives::default(), threads).expect("rows");
        assert!(rows.iter().all(|row| row.1 == 80 && row.2.is_empty()) && rows.len() == 200);
        let pieces = archive.len() >> 20;
        assert!(
            storage.reads.load(Ordering::Relaxed) <= 2 * (pieces + 1),
            "{threads} threads"
        );
    }
}

#[test]
fn rows_do_not_depend_on_threads_when_memory_is_short() {
    let log = sample("dirty.evtx");
    let members = |count| -> Vec<_> {
        (0..count)
            .map(|nth| member(format!("{nth}.evtx").as_bytes(), b'0', &log))
            .collect()
    };
    let (small, large) = (gzip(&tar(&members(20))), gzip(&tar(&members(60))));
    let storage = Memory::default()
        .with("l/a.tgz", &small)
        .with("l/b.tgz", &large)
        .with("l/c.tgz", &small)
        .with("l/d.evtx.gz", &gzip(&log))
        .with("l/e.tar.xz", &xz(&tar(&members(10))));
    check_short_memory(&storage, log.len());
}
