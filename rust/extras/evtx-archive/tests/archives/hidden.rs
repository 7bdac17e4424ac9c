//! Logs that only some programs find in an archive: they are read, or a row tells of them.

use super::*;
use crate::campaign::Numbers;
use crate::packed::*;
use crate::tars::{member, tar};

/// An entry of a ZIP archive as its local header and its directory have it.
#[derive(Clone)]
struct Part<'p> {
    name: &'p [u8],
    method: u16,
    /// Its bytes, not compressed.
    log: &'p [u8],
    /// Whether its sizes follow its data.
    is_streamed: bool,
    /// What its data has after its stream.
    behind: Vec<u8>,
    /// Whether a descriptor with these sizes follows that.
    is_forged: bool,
    /// The extra fields of the local header, and of the directory.
    extra: [Vec<u8>; 2],
}

fn new<'p>(name: &'p [u8], method: u16, log: &'p [u8]) -> Part<'p> {
    Part {
        name,
        method,
        log,
        is_streamed: true,
        behind: Vec::new(),
        is_forged: false,
        extra: Default::default(),
    }
}

/// The methods that are read.
const METHODS: [u16; 6] = [0, 8, 9, 12, 93, 95];

fn compressed(method: u16, log: &[u8]) -> Vec<u8> {
    let deflate = |level| {
        let mut writer = flate2::write::DeflateEncoder::new(Vec::new(), level);
        writer.write_all(log).expect("bytes");
        writer.finish().expect("a stream")
    };
    match method {
        8 => deflate(flate2::Compression::fast()),
        // Without compression, it is the same as deflate.
        9 => deflate(flate2::Compression::none()),
        12 => {
            let mut writer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            writer.write_all(log).expect("bytes");
            writer.finish().expect("a stream")
        }
        93 => ruzstd::encoding::compress_to_vec(log, ruzstd::encoding::CompressionLevel::Fastest),
        95 => xz(log),
        _ => log.to_vec(),
    }
}

impl Part<'_> {
    /// Its local header and its data; and its record in the directory if it is at an offset.
    fn write(&self, offset: usize) -> (Vec<u8>, Vec<u8>) {
        let (data, checksum) = (compressed(self.method, self.log), crc32fast::hash(self.log));
        let stated = (data.len() + self.behind.len()) as u32;
        let flags = if self.is_streamed { 8_u16 } else { 0 };
        let fields = |[checksum, compressed, size]: [u32; 3], extra: &[u8]| {
            let mut out: Vec<u8> = [20, flags, self.method, 0, 0]
                .into_iter()
                .flat_map(u16::to_le_bytes)
                .collect();
            out.extend([checksum, compressed, size].into_iter().flat_map(u32::to_le_bytes));
            out.extend(
                [self.name.len() as u16, extra.len() as u16]
                    .into_iter()
                    .flat_map(u16::to_le_bytes),
            );
            out
        };
        let [own, beside] = &self.extra;
        let sizes = [checksum, stated, self.log.len() as u32];
        let local = if self.is_streamed { [0; 3] } else { sizes };
        let mut out = [b"PK\x03\x04", &fields(local, own)[..], self.name, own, &data].concat();
        let descriptor = |sizes: [u32; 3]| {
            [
                b"PK\x07\x08".to_vec(),
                sizes.into_iter().flat_map(u32::to_le_bytes).collect(),
            ]
            .concat()
        };
        // Of an honest entry, nothing is between its data and its descriptor.
        let is_true = self.behind.is_empty();
        out.extend(&self.behind);
        if self.is_streamed && (is_true || self.is_forged) {
            out.extend(descriptor(sizes));
        }
        let mut record = [b"PK\x01\x02\x14\x00", &fields(sizes, beside)[..], &[0; 10]].concat();
        record.extend((offset as u32).to_le_bytes());
        record.extend([self.name, beside].concat());
        (out, record)
    }
}

/// An archive of parts.
fn archive(parts: &[Part<'_>]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for part in parts {
        let (own, record) = part.write(out.len());
        out.extend(own);
        directory.extend(record);
    }
    end(out, &directory, parts.len())
}

/// What the data of an entry has after its stream: the descriptor of that, and another entry.
fn covered(cover: &Part<'_>, hidden: &Part<'_>) -> Vec<u8> {
    let data = compressed(cover.method, cover.log);
    let sizes = [crc32fast::hash(cover.log), data.len() as u32, cover.log.len() as u32];
    let descriptor: Vec<u8> = sizes.into_iter().flat_map(u32::to_le_bytes).collect();
    [b"PK\x07\x08", &descriptor[..], &hidden.write(0).0].concat()
}

/// The errors of rows, and how many rows have none.
fn errors_of(bytes: &[u8]) -> (usize, Vec<String>) {
    let storage = Memory::default()
        .with("l/a.zip", bytes)
        .with("l/x.evtx", &sample("dirty.evtx"));
    let rows = read(&storage, "l", &Archives::default(), 1).expect("rows");
    let sound = rows.iter().map(|row| row.1).sum::<usize>() - 80;
    (sound, rows.into_iter().flat_map(|row| row.2).collect())
}

#[test]
fn a_log_after_the_stream_of_another_entry_is_told() {
    let log = sample("dirty.evtx");
    let text = b"nothing to see".repeat(50);
    for method in METHODS {
        for (name, bytes, sound) in [(&b"a.evtx"[..], &log[..], 80), (b"a.txt", &text, 0)] {
            for is_streamed in [true, false] {
                let cover = Part {
                    is_streamed,
                    ..new(name, method, bytes)
                };
                let hidden = Part {
                    is_streamed,
                    ..new(b"b.evtx", 8, &log)
                };
                let honest = archive(&[cover.clone(), hidden.clone()]);
                assert_eq!(errors_of(&honest), (sound + 80, Vec::new()), "{name:?} {method}");
                for is_forged in [true, false] {
                    // A program that reads headers one after the other cannot find what these sizes cover.
                    if !is_streamed && sound == 0 {
                        continue;
                    }
                    let behind = covered(&cover, &hidden);
                    let len = behind.len();
                    let (found, errors) = errors_of(&archive(&[Part {
                        behind,
                        is_forged,
                        ..cover.clone()
                    }]));
                    let told = |why: &str| errors.iter().any(|error| error.contains(why));
                    let is_told = match (method, sound) {
                        (_, 0) if is_forged => told("of its entry \"a.txt\", the data contains the entry \"b.evtx\""),
                        (_, 0) => told("the data contains the entry \"b.evtx\""),
                        (0, _) => !errors.is_empty(),
                        (8, _) => told(&format!("{len} bytes of it follow the end of its compressed data")),
                        (9, _) => told("bytes of it follow the end of its compressed data"),
                        _ => told("its last bytes are not compressed"),
                    };
                    assert!(is_told, "{name:?} {method} {is_streamed} {is_forged}: {errors:?}");
                    assert!(
                        found >= sound,
                        "{name:?} {method} {is_streamed} {is_forged}: {found} {errors:?}"
                    );
                }
            }
        }
    }
    // The size that the local header has in a field of ZIP64.
    let hidden = new(b"b.evtx", 8, &log);
    for (name, bytes, method) in [(&b"a.txt"[..], &text[..], 8), (b"a.evtx", &log, 0)] {
        let data = compressed(method, bytes);
        let sizes = [bytes.len() as u64, data.len() as u64]
            .into_iter()
            .flat_map(u64::to_le_bytes);
        let wide: Vec<u8> = [1, 0, 16, 0].into_iter().chain(sizes).collect();
        let cover = Part {
            is_streamed: false,
            extra: [wide, Vec::new()],
            ..new(name, method, bytes)
        };
        let wide = |part: &Part<'_>| {
            let mut bytes = archive(std::slice::from_ref(part));
            bytes[18..26].fill(0xFF);
            errors_of(&bytes).1
        };
        assert_eq!(wide(&cover), [""; 0]);
        let behind = hidden.write(0).0;
        let errors = wide(&Part { behind, ..cover });
        let told = "the header of its data has another size";
        assert!(errors.iter().any(|error| error.contains(told)), "{errors:?}");
    }
    // Messages that nobody asks for.
    let cover = new(b"a.mta", 8, &text);
    let behind = covered(&cover, &hidden);
    let is_forged = true;
    let (_, errors) = errors_of(&archive(&[Part {
        behind,
        is_forged,
        ..cover
    }]));
    let told = "of its entry \"a.mta\", the data contains the entry \"b.evtx\"";
    assert!(errors.iter().any(|error| error.contains(told)), "{errors:?}");
    // A stored log, and data that is too long by less than a header.
    let cover = Part {
        behind: vec![0; 20],
        ..new(b"a.evtx", 0, &log)
    };
    let (_, errors) = errors_of(&archive(&[cover]));
    assert!(
        errors[0].contains("of its entry \"a.evtx\", no descriptor follows the data"),
        "{errors:?}"
    );
    let cover = Part {
        behind: vec![0; 20],
        ..new(b"a.txt", 8, &text)
    };
    let (_, errors) = errors_of(&archive(&[cover]));
    assert!(
        errors[0].contains("of its entry \"a.txt\", no descriptor follows the data"),
        "{errors:?}"
    );
}

/// A Unicode path (APPNOTE 4.6.9) for a name.
/// Text that looks like headers takes nothing of what may be read of them.
#[test]
fn text_that_looks_like_headers_is_no_damage() {
    let log = sample("dirty.evtx");
    for text in [b"abc PK\x03\x04 def".repeat(3), b"PK\x03\x04".repeat(20_000)] {
        let parts = [(&b"r.txt"[..], 0, &text), (b"a.evtx", 8, &log)].map(|(name, method, bytes)| Part {
            is_streamed: true,
            ..new(name, method, bytes)
        });
        assert_eq!(errors_of(&archive(&parts)), (80, Vec::new()));
    }
}

fn unicode(version: u8, of: &[u8], path: &[u8]) -> Vec<u8> {
    let field = [&[version][..], &crc32fast::hash(of).to_le_bytes(), path].concat();
    [&[0x75, 0x70][..], &(field.len() as u16).to_le_bytes(), &field].concat()
}

#[test]
fn a_second_name_hides_no_log() {
    let log = sample("dirty.evtx");
    let is = |version, of: &[u8], path: &[u8]| unicode(version, of, path);
    let wrong = b"another name";
    for (name, own, beside, found) in [
        (
            &b"b.evtx"[..],
            is(1, b"b.evtx", b"c.text"),
            is(1, b"b.evtx", b"c.text"),
            "b.evtx",
        ),
        (b"b.evtx", Vec::new(), is(1, b"b.evtx", b"c.text"), "b.evtx"),
        (b"b.evtx", is(1, b"b.evtx", b"c.text"), Vec::new(), "b.evtx"),
        (b"b.evtx", Vec::new(), is(1, b"b.evtx", b"c/"), "b.evtx"),
        (b"b.evtx", Vec::new(), is(1, wrong, b"c.text"), "b.evtx"),
        (
            b"c.text",
            is(1, b"c.text", b"b.evtx"),
            is(1, b"c.text", b"b.evtx"),
            "b.evtx",
        ),
        (b"c.text", Vec::new(), is(1, b"c.text", b"b.evtx"), "b.evtx"),
        (b"c.text", Vec::new(), is(1, wrong, b"b.evtx"), "b.evtx"),
        (b"c.text", Vec::new(), is(2, b"c.text", b"b.evtx"), "b.evtx"),
        (b"c/", Vec::new(), is(1, b"c/", b"b.evtx"), "b.evtx"),
        (
            b"c.text",
            Vec::new(),
            [is(1, b"c.text", b"d.text"), is(1, b"c.text", b"b.evtx")].concat(),
            "b.evtx",
        ),
        (b"b.evtx", Vec::new(), is(1, b"b.evtx", b"c.mta"), "b.evtx"),
        // The name that is preferred, if both are those of a log.
        (
            b"M\x9Aller.evtx",
            Vec::new(),
            is(1, b"M\x9Aller.evtx", "Möller.evtx".as_bytes()),
            "Möller.evtx",
        ),
        (
            b"M\x9Aller.evtx",
            Vec::new(),
            is(1, wrong, "Möller.evtx".as_bytes()),
            "MÜller.evtx",
        ),
    ] {
        let bytes = archive(&[Part {
            extra: [own, beside],
            ..new(name, 8, &log)
        }]);
        assert_eq!(rows_of(&bytes), [file(&format!("a.zip/{found}"), 80, &[])]);
        let storage = Memory::default().with("a.zip", &bytes);
        let path = format!("a.zip/{found}");
        assert_eq!(read(&storage, &path, &Archives::default(), 1).expect("rows")[0].1, 80);
    }
    // Only the local header has the name of a log.
    for own in [
        is(1, b"c.text", b"b.evtx"),
        is(1, wrong, b"b.evtx"),
        is(3, wrong, b"b.evtx"),
    ] {
        let bytes = archive(&[Part {
            extra: [own, Vec::new()],
            ..new(b"c.text", 8, &log)
        }]);
        let (found, errors) = errors_of(&bytes);
        let told = "of its entry \"c.text\", the header of its data has another name: \"b.evtx\"";
        assert!(
            found == 0 && errors.len() == 1 && errors[0].contains(told),
            "{errors:?}"
        );
    }
    // Names that are no logs are no matter.
    let extra = [is(1, b"c.text", b"d.text"), Vec::new()];
    assert_eq!(
        errors_of(&archive(&[Part {
            extra,
            ..new(b"c.text", 8, &log)
        }])),
        (0, Vec::new())
    );
}

#[test]
fn names_are_those_of_files_in_windows() {
    let log = &sample("dirty.evtx")[..];
    let names = [
        "x/a.evtx.",
        "x/a.evtx ",
        "x/b.evtx . ..",
        "x\\c.evtx:stream",
        "d.EVTX::$DATA",
        "C:e.evtx",
        "f.txt:f.evtx",
    ];
    let others = ["a.evtx.txt", "a.evtx_", "b.evtx:/c", "a.evtxx:b"];
    let all: Vec<_> = names.iter().chain(&others).copied().collect();
    let entries: Vec<_> = all.iter().map(|name| stored(name.as_bytes(), log)).collect();
    let members: Vec<_> = all.iter().map(|name| member(name.as_bytes(), b'0', log)).collect();
    let list: Vec<_> = all.iter().map(|name| (*name, log)).collect();
    for (path, bytes) in [
        ("a.zip", craft(&entries)),
        ("a.tar", tar(&members)),
        ("a.7z", seven_of(&list)),
    ] {
        let storage = Memory::default().with(path, &bytes);
        let rows = read(&storage, path, &Archives::default(), 1).expect("rows");
        let mut whole = names.map(|name| file(&format!("{path}/{name}"), 80, &[]));
        whole.sort();
        assert_eq!(rows, whole);
        for (row, name) in whole.iter().map(|row| (row, &row.0)) {
            assert_eq!(
                read(&storage, name, &Archives::default(), 1).expect("rows"),
                std::slice::from_ref(row)
            );
        }
        let rows = |inner: &str| {
            let rows = read(&storage, &format!("{path}/{inner}"), &Archives::default(), 1).expect("rows");
            rows.into_iter().map(|row| row.1).collect::<Vec<_>>()
        };
        assert_eq!(rows("x/*.evtx"), [80; 4]);
        assert_eq!(rows("x"), [80; 4]);
        assert_eq!(rows("X/b.evtx"), [80]);
    }
    // The rest of a name after a zero, which tar and 7z cannot have; and an archive.
    let inner = craft(&[stored(b"a.evtx", log)]);
    let rows = rows_of(&craft(&[stored(b"a.evtx\0.txt", log), stored(b"b.zip.", &inner)]));
    let told = ": cannot be read: it is an archive inside of an archive, which is not opened";
    assert_eq!(rows[0].1, 80);
    assert_eq!(rows[1..], [file("a.zip/b.zip.", 0, &[told])]);
}

#[test]
fn bytes_after_the_end_of_a_zip_do_not_hide_it() {
    let log = sample("dirty.evtx");
    let archive = craft(&[stored(b"a.evtx", &log)]);
    let whole = file("l/a.zip/a.evtx", 80, &[]);
    let rows =
        |bytes: &[u8]| read(&Memory::default().with("l/a.zip", bytes), "l", &Archives::default(), 1).expect("rows");
    let told = |what: &str| {
        file(
            "l/a.zip",
            0,
            &[&format!(": all was read that its directory names, but {what}")],
        )
    };
    for len in [1, 22, 65_000, 65_536, 100_000, (8 << 20) - 30, 20 << 20] {
        let bytes = [&archive[..], &vec![0; len]].concat();
        let what = format!("{len} bytes at offset {} belong to no entry", archive.len());
        assert_eq!(rows(&bytes), [told(&what), whole.clone()], "{len}");
    }
    // Where a piece that is searched can end.
    for len in 65_500..65_600 {
        let bytes = [&archive[..], &vec![0; len]].concat();
        assert_eq!(rows(&bytes)[1], whole, "{len}");
    }
    // Bytes that look like an end.
    for len in [0, 100_000] {
        let bytes = [&archive[..], b"PK\x05\x06", &[0xEE; 30], &vec![7; len]].concat();
        let rows = rows(&bytes);
        let what = format!("{} bytes at offset {} belong to no entry", len + 34, archive.len());
        assert!(
            rows.contains(&whole) && rows.contains(&told(&what)) || len == 0,
            "{rows:?}"
        );
        assert!(
            rows.contains(&whole) && rows[0].2[0].contains("belong to no entry"),
            "{rows:?}"
        );
    }
    // A comment that is cut short.
    let mut bytes = archive.clone();
    let at = bytes.len() - 2;
    bytes[at] = 9;
    bytes.extend(b"short");
    assert_eq!(rows(&bytes), [told("its comment is cut short"), whole]);
    // An archive that is cut short, and is large.
    let large = craft(&[stored(b"a.evtx", &vec![b'P'; 1 << 20])]);
    let why = ": cannot be read: the archive is cut short: it has no directory at its end";
    assert_eq!(rows(&large[..1 << 20]), [file("l/a.zip", 0, &[why])]);
}

#[test]
fn bytes_that_no_folder_of_a_7z_claims_are_told() {
    let log = &sample("dirty.evtx")[..];
    let (folder, list) = (solid(&[log]), [named("a.evtx", Kind::Stream)]);
    let packed = folder.packed.clone();
    let own = streams(std::slice::from_ref(&folder));
    let sound = header(&own, &files(&list));
    let honest = sealed(&packed, &sound);
    let hidden = copied(&[log]).packed;
    let other = seven_of(&[("b.evtx", log)]);
    let told = |len: usize, at: usize, more: &str| {
        let what = format!("{len} bytes at offset {at} belong to no entry{more}");
        file(
            "l/a.7z",
            0,
            &[&format!(": all was read that its directory names, but {what}")],
        )
    };
    let at_end = 32 + packed.len();
    let mut shifted = own.clone();
    shifted.splice(1..2, number(hidden.len() as u64));
    // A second packed stream, which no folder takes.
    let more = [
        &[6, 0, 2, 9][..],
        &number(packed.len() as u64),
        &number(hidden.len() as u64),
    ]
    .concat();
    let mut second = own.clone();
    second.splice(..4 + number(packed.len() as u64).len(), more);
    // A folder without entries, and one of a list that is compressed itself.
    let empty = Folder {
        parts: Vec::new(),
        ..copied(&[log])
    };
    let both = streams(&[folder.clone(), empty]);
    let mut packed_list = solid(&[&sound]);
    let start = packed.len() as u64;
    let mut outer = streams(std::slice::from_ref(&packed_list));
    outer.splice(1..2, number(start));
    let compressed_list = sealed(
        &[&packed[..], &std::mem::take(&mut packed_list.packed)].concat(),
        &[&[0x17][..], &outer].concat(),
    );
    for (bytes, rows) in [
        (honest.clone(), None),
        (compressed_list.clone(), None),
        (
            [&honest[..], &other].concat(),
            Some(told(other.len(), honest.len(), ", and start with another 7z archive")),
        ),
        (
            [&compressed_list[..], &[0; 3]].concat(),
            Some(told(3, compressed_list.len(), "")),
        ),
        (
            sealed(&[&packed[..], &hidden].concat(), &sound),
            Some(told(hidden.len(), at_end, "")),
        ),
        (
            sealed(&[&hidden[..], &packed].concat(), &header(&shifted, &files(&list))),
            Some(told(hidden.len(), 32, "")),
        ),
        (
            sealed(&[&packed[..], &hidden].concat(), &header(&second, &files(&list))),
            Some(told(hidden.len(), at_end, "")),
        ),
        (
            sealed(&[&packed[..], &hidden].concat(), &header(&both, &files(&list))),
            Some(told(hidden.len(), at_end, "")),
        ),
    ] {
        let storage = Memory::default().with("l/a.7z", &bytes);
        let found = read(&storage, "l", &Archives::default(), 1).expect("rows");
        let whole = [rows.as_slice(), &[file("l/a.7z/a.evtx", 80, &[])]].concat();
        assert_eq!(found, whole);
    }
    // An entry that some programs take for a folder, and a property of entries that no program knows.
    let first = |bytes: &[u8]| {
        let storage = Memory::default().with("l/a.7z", bytes);
        let rows = read(&storage, "l", &Archives::default(), 1).expect("rows");
        assert!(rows.len() == 2 && rows[1] == file("l/a.7z/a.evtx", 80, &[]), "{rows:?}");
        rows[0].2[0].clone()
    };
    let full = seven_of(&[("b.evtx/", log), ("a.evtx", log)]);
    let size = log.len();
    assert!(first(&full).ends_with(&format!("its folder \"b.evtx/\" has {size} bytes of data")));
    let mut padded = files(&list);
    let at = padded.len() - 1;
    padded.splice(at..at, property(0x19, log));
    let padded = sealed(&packed, &header(&own, &padded));
    assert!(first(&padded).ends_with("its list of entries contains a log"));
    // An archive whose list is empty, and is not where it starts.
    let nothing = sealed(&hidden, &[]);
    let storage = Memory::default().with("l/a.7z", &nothing);
    let rows = read(&storage, "l", &Archives::default(), 1).expect("rows");
    assert_eq!(rows, [told(hidden.len(), 32, "")]);
}

/// Where a directory and its entries have room for bytes that belong to no entry.
#[test]
fn a_log_in_a_field_of_a_zip_is_told() {
    let (log, text) = (sample("dirty.evtx"), b"nothing to see".repeat(50));
    let inner = archive(&[new(b"b.evtx", 8, &log)]);
    let seven = seven_of(&[("b.evtx", &log)]);
    let field = |bytes: &[u8]| [&[0xFE, 0xCA][..], &(bytes.len() as u16).to_le_bytes(), bytes].concat();
    let told = |bytes: &[u8], why: &str| {
        let (sound, errors) = errors_of(bytes);
        assert_eq!((sound, errors.len()), (80, 1), "{why}: {errors:?}");
        let start = ": all was read that its directory names, but ";
        assert_eq!(errors[0].strip_prefix(start), Some(why));
    };
    for (name, bytes) in [(&b"a.evtx"[..], &log[..]), (b"a.txt", &text)] {
        for is_streamed in [true, false] {
            let part = Part {
                is_streamed,
                ..new(name, 8, bytes)
            };
            let other = new(b"z.evtx", 8, &log);
            let of = |part: Part<'_>| match name {
                b"a.evtx" => archive(&[part]),
                _ => archive(&[part, other.clone()]),
            };
            let quoted = if name == b"a.evtx" { "a.evtx" } else { "a.txt" };
            for (hidden, what) in [
                (&log[..60_000], "a log"),
                (&inner, "a ZIP archive"),
                (&seven, "a 7z archive"),
            ] {
                let with = |extra| of(Part { extra, ..part.clone() });
                let local = with([field(hidden), Vec::new()]);
                told(
                    &local,
                    &format!("of its entry \"{quoted}\", the extra fields in the header of its data contain {what}"),
                );
                let central = with([Vec::new(), field(hidden)]);
                told(
                    &central,
                    &format!("of its entry \"{quoted}\", the record in the directory contains {what}"),
                );
            }
            // Fields of a file system, or for alignment.
            let honest = of(Part {
                extra: [field(&[0; 60_000]), field(&text)],
                ..part
            });
            assert_eq!(errors_of(&honest), (80, Vec::new()));
        }
    }
    // The comment of the archive, without an end of its own, and what its end counts besides the directory.
    let one = archive(&[new(b"a.evtx", 8, &log)]);
    let commented = |comment: &[u8]| {
        let mut bytes = one.clone();
        let at = bytes.len() - 2;
        bytes.splice(at.., (comment.len() as u16).to_le_bytes());
        bytes.extend(comment);
        bytes
    };
    told(
        &commented(&inner[..inner.len() - 30]),
        "its comment contains a ZIP archive",
    );
    told(&commented(&log[..60_000]), "its comment contains a log");
    assert_eq!(errors_of(&commented(&text)), (80, Vec::new()));
    let (local, record) = new(b"a.evtx", 8, &log).write(0);
    let signed = |signature: &[u8], rest: &[u8]| {
        let len = (signature.len() as u16).to_le_bytes();
        let directory = [&record[..], b"PK\x05\x05", &len, signature, rest].concat();
        end(local.clone(), &directory, 1)
    };
    let at = local.len() + record.len() + 6;
    assert_eq!(errors_of(&signed(&[7; 400], b"")), (80, Vec::new()));
    assert_eq!(errors_of(&signed(b"", b"")), (80, Vec::new()));
    told(
        &signed(&inner, b""),
        "the signature of its directory contains a ZIP archive",
    );
    told(
        &signed(&[7; 5], &log),
        &format!("{} bytes at offset {} belong to no entry", log.len(), at + 5),
    );
    // The end record of ZIP64 can count bytes of its own after its fields.
    let wide = |more: &[u8]| {
        let (at, len) = (local.len() as u64, record.len() as u64);
        let numbers = |numbers: &[u64]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
        let own = [
            b"PK\x06\x06",
            &numbers(&[44 + more.len() as u64])[..],
            &[45, 0, 45, 0],
            &[0; 8],
        ]
        .concat();
        let own = [&own[..], &numbers(&[1, 1, len, at]), more].concat();
        let locator = [b"PK\x06\x07\0\0\0\0", &numbers(&[at + len])[..], &[1, 0, 0, 0]].concat();
        let last = [b"PK\x05\x06", &[0xFF; 16][..], &[0, 0]].concat();
        let last = [&last[..4], &[0; 4], &last[8..]].concat();
        [&local[..], &record, &own, &locator, &last].concat()
    };
    assert_eq!(errors_of(&wide(b"")), (80, Vec::new()));
    let at = local.len() + record.len() + 56;
    told(
        &wide(&log),
        &format!("{} bytes at offset {at} belong to no entry", log.len()),
    );
}

/// The size of an entry says how many bytes of data it can need at most, without decompressing it.
#[test]
fn data_that_is_too_long_for_its_size_is_told() {
    let (log, text) = (sample("dirty.evtx"), b"nothing to see".repeat(50));
    for method in METHODS {
        for bytes in [&b""[..], b"x", &text] {
            let part = Part {
                is_streamed: false,
                ..new(b"a.txt", method, bytes)
            };
            assert_eq!(errors_of(&archive(&[part.clone(), new(b"z.evtx", 8, &log)])).1, [""; 0]);
            let behind = compressed(8, &log);
            let (sound, errors) = errors_of(&archive(&[Part { behind, ..part }, new(b"z.evtx", 8, &log)]));
            let told = format!("too many for a size of {}", bytes.len());
            assert!(
                sound == 80 && errors.len() == 1 && errors[0].contains(&told),
                "{method}: {errors:?}"
            );
        }
    }
}

/// Archives made of honest entries and of tricks that hide one. The logs that were put in are known.
#[test]
fn every_log_of_a_random_zip_is_read_or_told() {
    let log = sample("dirty.evtx");
    let text = b"nothing to see".repeat(50);
    let inner_archive = archive(&[new(b"b.evtx", 8, &log)]);
    let (mut hidden_logs, mut honest) = (0, 0);
    for case in 1..=400 {
        let mut numbers = Numbers(case * 0x9E37_79B9);
        let (mut out, mut directory, mut count) = (Vec::new(), Vec::new(), 0);
        let (mut logs, mut hidden) = (0, 0);
        for nth in 0..=numbers.below(4) {
            let is_log = numbers.below(2) == 0;
            let end = [".evtx", ".EVTX", ".evtx.", ".evtx:x", ".evtx "][numbers.below(5)];
            let name = format!("{nth}{}", if is_log { end } else { ".txt" }).into_bytes();
            let method = METHODS[numbers.below(METHODS.len())];
            let bytes = if is_log { &log[..] } else { &text };
            let is_streamed = numbers.below(2) == 0;
            let mut part = Part {
                is_streamed,
                ..new(&name, method, bytes)
            };
            logs += usize::from(is_log);
            let (inner, other) = (format!("{nth}b.evtx").into_bytes(), format!("{nth}.text").into_bytes());
            match numbers.below(10) {
                // Another entry after its stream.
                0 if is_streamed => {
                    let inner = Part {
                        is_streamed: numbers.below(2) == 0,
                        ..new(&inner, 8, &log)
                    };
                    part.behind = covered(&part, &inner);
                    part.is_forged = numbers.below(2) == 0;
                    hidden += 1;
                }
                // A second name, in one header or in both.
                1 if is_log => {
                    let field = unicode(1, &name, &other);
                    let is_in = numbers.below(3);
                    part.extra = [0, 1].map(|at| if is_in == at { Vec::new() } else { field.clone() });
                }
                2 if !is_log => {
                    let field = unicode(1, if numbers.below(2) == 0 { &name } else { b"x" }, &inner);
                    let is_in = numbers.below(3);
                    part.extra = [0, 1].map(|at| if is_in == at { Vec::new() } else { field.clone() });
                    hidden += 1;
                }
                // A log or an archive among the extra fields.
                4 => {
                    let bytes = [&log[..60_000], &inner_archive][numbers.below(2)];
                    let field = [&[0xFE, 0xCA][..], &(bytes.len() as u16).to_le_bytes(), bytes].concat();
                    part.extra[numbers.below(2)] = field;
                    hidden += 1;
                }
                // More data than an entry that is not read can need.
                5 if !is_log && !is_streamed => {
                    part.behind = compressed(8, &log);
                    hidden += 1;
                }
                // An entry that the directory does not name.
                3 => {
                    out.extend(new(&inner, method, &log).write(0).0);
                    hidden += 1;
                }
                _ => {}
            }
            let (own, record) = part.write(out.len());
            out.extend(own);
            directory.extend(record);
            count += 1;
        }
        let mut bytes = end(out, &directory, count);
        let is_behind = numbers.below(5) == 0;
        if is_behind {
            bytes.extend(vec![b'x'; [1, 70_000, 300_000][numbers.below(3)]]);
        }
        let (sound, errors) = errors_of(&bytes);
        assert!(sound >= 80 * logs, "{case}: {sound} rows of {logs} logs: {errors:?}");
        assert!(
            sound >= 80 * (logs + hidden) || !errors.is_empty(),
            "{case}: {hidden} hidden: {errors:?}"
        );
        assert_eq!(
            errors.is_empty(),
            sound == 80 * (logs + hidden) && !is_behind,
            "{case}: {errors:?}"
        );
        hidden_logs += hidden;
        honest += usize::from(hidden == 0);
    }
    println!("{hidden_logs} logs were hidden; {honest} archives were honest");
    assert!(hidden_logs > 100 && honest > 100);
}
