//! 7z archives: lists of entries and folders that decompress to much.

use super::packed::{coder, lzma2, number, sealed, streams};
use super::{Kind, Made, Shape, list_entries};
use crate::packed::Folder;

/// Several archives, each with `names` empty files whose names have `length` characters, and `folders` without bytes.
fn archives([names, length, folders, count]: Shape) -> Made {
    // What is compressed has at most some 20 MB.
    let (names, folders) = (names.min(10_000_000 / (length + 1)), folders.min(1_000_000));
    let name: Vec<u8> = match length {
        0..6 => vec![0, 0],
        _ => format!("{}.evtx\0", "n".repeat(length - 5))
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect(),
    };
    let mut list = vec![1];
    if folders > 0 {
        // Each folder has one coder without properties, one packed stream and no entries.
        let each = |byte: &[u8]| byte.repeat(folders);
        list.extend([&[4, 6, 0][..], &number(folders as u64), &[9], &each(&[0]), &[0]].concat());
        list.extend(
            [
                &[7, 0x0B][..],
                &number(folders as u64),
                &[0],
                &each(&[1, 1, 0]),
                &[0x0C],
            ]
            .concat(),
        );
        list.extend([&each(&[0])[..], &[0, 8, 0x0D], &each(&[0]), &[0, 0]].concat());
    }
    let bits = vec![0xff; names.div_ceil(8)];
    let property = |id: u8, bytes: &[u8]| [&[id][..], &number(bytes.len() as u64), bytes].concat();
    list.push(5);
    list.extend(number(names as u64));
    list.extend(property(0x0E, &bits));
    list.extend(property(0x0F, &bits));
    list.extend(property(0x11, &[&[0][..], &name.repeat(names)].concat()));
    list.extend([0, 0]);
    let folder = Folder {
        coders: vec![coder(&[0x21], &[16], list.len() as u64)],
        packed: lzma2(&list),
        parts: vec![(list.len() as u64, None)],
    };
    let mut header = vec![0x17];
    header.extend(streams(std::slice::from_ref(&folder)));
    let archive = sealed(&folder.packed, &header);
    let paths = ["a.7z", "b.7z", "c.7z", "d.7z", "e.7z", "f.7z"];
    paths[..count.clamp(1, 6)]
        .iter()
        .map(|path| (*path, archive.clone()))
        .collect()
}

pub(crate) const KIND: Kind = Kind {
    name: "7z archives",
    files: archives,
    fixed: &[
        [10, 10, 0, 1],
        [500_000, 0, 0, 1],
        [500_000, 0, 0, 6],
        [500_000, 8, 0, 1],
        [20_000, 8, 0, 1],
        [20_000, 8, 0, 6],
        [10, 8, 500_000, 1],
        [10, 8, 50_000, 1],
    ],
    most: [1_000_000, 60, 1_000_000, 6],
    read: list_entries,
};
