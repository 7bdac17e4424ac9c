//! 7z archives by hand, in which every field can be wrong.

use std::io::Write;

use lzma_rust2::{Lzma2Options, Lzma2Writer};

/// A coder: its ID, its properties, and how many bytes it gives.
#[derive(Clone)]
pub(crate) struct Coder {
    pub(crate) id: Vec<u8>,
    pub(crate) properties: Vec<u8>,
    pub(crate) size: u64,
}

/// A folder: its coders in the order in which they decode, its packed bytes, and the sizes and checksums of its entries.
#[derive(Clone)]
pub(crate) struct Folder {
    pub(crate) coders: Vec<Coder>,
    pub(crate) packed: Vec<u8>,
    pub(crate) parts: Vec<(u64, Option<u32>)>,
}

/// A file: its name in UTF-16, and its attributes. `None` of bytes: it has no stream, and may be a folder or delete one.
pub(crate) struct File {
    pub(crate) name: Vec<u16>,
    pub(crate) attributes: u32,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Stream,
    Folder,
    Empty,
    Anti,
}

pub(crate) fn coder(id: &[u8], properties: &[u8], size: u64) -> Coder {
    Coder {
        id: id.to_vec(),
        properties: properties.to_vec(),
        size,
    }
}

pub(crate) fn named(name: &str, kind: Kind) -> File {
    let name = name.encode_utf16().collect();
    File {
        name,
        attributes: 0,
        kind,
    }
}

pub(crate) fn lzma2(bytes: &[u8]) -> Vec<u8> {
    let mut options = Lzma2Options::with_preset(1);
    options.lzma_options.dict_size = 1 << 20;
    let mut writer = Lzma2Writer::new(Vec::new(), options);
    writer.write_all(bytes).expect("bytes");
    writer.finish().expect("a stream")
}

/// A folder of entries, not compressed.
pub(crate) fn copied(entries: &[&[u8]]) -> Folder {
    let bytes = entries.concat();
    Folder {
        coders: vec![coder(&[0], &[], bytes.len() as u64)],
        packed: bytes,
        parts: parts(entries),
    }
}

/// A folder of entries, compressed with LZMA2 and a dictionary of 1 MiB.
pub(crate) fn solid(entries: &[&[u8]]) -> Folder {
    let bytes = entries.concat();
    Folder {
        coders: vec![coder(&[0x21], &[16], bytes.len() as u64)],
        packed: lzma2(&bytes),
        parts: parts(entries),
    }
}

pub(crate) fn parts(entries: &[&[u8]]) -> Vec<(u64, Option<u32>)> {
    let part = |bytes: &&[u8]| (bytes.len() as u64, Some(crc32fast::hash(bytes)));
    entries.iter().map(part).collect()
}

/// A number in its longest form.
pub(crate) fn number(value: u64) -> Vec<u8> {
    match value {
        0..0x80 => vec![value as u8],
        _ => [&[0xFF][..], &value.to_le_bytes()].concat(),
    }
}

fn bits(bits: &[bool]) -> Vec<u8> {
    let byte = |bits: &[bool]| {
        (0..)
            .zip(bits)
            .fold(0, |byte, (at, &bit)| byte | u8::from(bit) << (7 - at))
    };
    bits.chunks(8).map(byte).collect()
}

/// A property of files: its ID, its size, and its bytes.
pub(crate) fn property(id: u8, bytes: &[u8]) -> Vec<u8> {
    [&[id][..], &number(bytes.len() as u64), bytes].concat()
}

/// The description of a folder whose coders follow each other.
pub(crate) fn chain(coders: &[Coder]) -> Vec<u8> {
    let mut out = number(coders.len() as u64);
    for coder in coders {
        let has_properties = !coder.properties.is_empty();
        out.push(coder.id.len() as u8 | u8::from(has_properties) << 5);
        out.extend(&coder.id);
        if has_properties {
            out.extend(number(coder.properties.len() as u64));
            out.extend(&coder.properties);
        }
    }
    for nth in 1..coders.len() as u64 {
        out.extend([number(nth), number(nth - 1)].concat());
    }
    out
}

/// The list of streams.
pub(crate) fn streams(folders: &[Folder]) -> Vec<u8> {
    let count = number(folders.len() as u64);
    let mut out = [&[6, 0][..], &count, &[9]].concat();
    out.extend(folders.iter().flat_map(|folder| number(folder.packed.len() as u64)));
    out.extend([&[0, 7, 0x0B][..], &count, &[0]].concat());
    out.extend(folders.iter().flat_map(|folder| chain(&folder.coders)));
    out.push(0x0C);
    let coders = folders.iter().flat_map(|folder| &folder.coders);
    out.extend(coders.flat_map(|coder| number(coder.size)));
    out.extend([0, 8, 0x0D]);
    out.extend(folders.iter().flat_map(|folder| number(folder.parts.len() as u64)));
    out.push(9);
    for folder in folders {
        let (_, rest) = folder.parts.split_last().unwrap_or((&(0, None), &[]));
        out.extend(rest.iter().flat_map(|part| number(part.0)));
    }
    let checksums: Vec<_> = folders
        .iter()
        .flat_map(|folder| folder.parts.iter().map(|part| part.1))
        .collect();
    let is_there: Vec<_> = checksums.iter().map(Option::is_some).collect();
    out.extend([&[0x0A, 0][..], &bits(&is_there)].concat());
    out.extend(checksums.iter().flatten().flat_map(|checksum| checksum.to_le_bytes()));
    out.extend([0, 0]);
    out
}

/// The list of files.
pub(crate) fn files(files: &[File]) -> Vec<u8> {
    let mut out = number(files.len() as u64);
    let without: Vec<_> = files.iter().filter(|file| file.kind != Kind::Stream).collect();
    if !without.is_empty() {
        let is = |file: &File| file.kind != Kind::Stream;
        out.extend(property(0x0E, &bits(&files.iter().map(is).collect::<Vec<_>>())));
        let of = |kinds: &[Kind]| {
            bits(
                &without
                    .iter()
                    .map(|file| kinds.contains(&file.kind))
                    .collect::<Vec<_>>(),
            )
        };
        out.extend(property(0x0F, &of(&[Kind::Empty, Kind::Anti])));
        out.extend(property(0x10, &of(&[Kind::Anti])));
    }
    let names = files.iter().flat_map(|file| file.name.iter().chain(&[0]));
    let names: Vec<u8> = [0]
        .into_iter()
        .chain(names.flat_map(|unit| unit.to_le_bytes()))
        .collect();
    out.extend(property(0x19, &[0; 3]));
    out.extend(property(0x11, &names));
    let attributes = files.iter().flat_map(|file| file.attributes.to_le_bytes());
    out.extend(property(
        0x15,
        &[1, 0].into_iter().chain(attributes).collect::<Vec<_>>(),
    ));
    out.push(0);
    out
}

/// An archive of packed bytes and a header.
pub(crate) fn sealed(packed: &[u8], header: &[u8]) -> Vec<u8> {
    let mut fields = (packed.len() as u64).to_le_bytes().to_vec();
    fields.extend((header.len() as u64).to_le_bytes());
    fields.extend(crc32fast::hash(header).to_le_bytes());
    let mut out = b"7z\xBC\xAF\x27\x1C\0\x04".to_vec();
    out.extend(crc32fast::hash(&fields).to_le_bytes());
    [&out[..], &fields, packed, header].concat()
}

/// A header of streams and files.
pub(crate) fn header(streams: &[u8], files: &[u8]) -> Vec<u8> {
    [&[1, 4][..], streams, &[5], files, &[0]].concat()
}

pub(crate) fn seven(folders: &[Folder], list: &[File]) -> Vec<u8> {
    let packed: Vec<u8> = folders.iter().flat_map(|folder| &folder.packed).copied().collect();
    sealed(&packed, &header(&streams(folders), &files(list)))
}

/// An archive of one folder of entries with these names.
pub(crate) fn seven_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let bytes: Vec<_> = entries.iter().map(|entry| entry.1).collect();
    let list: Vec<_> = entries.iter().map(|entry| named(entry.0, Kind::Stream)).collect();
    seven(&[solid(&bytes)], &list)
}
