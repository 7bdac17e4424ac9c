//! Catalogs: blocks that decompress to much, and messages that share texts, fields and maps.

use std::io::Write;

use super::{Kind, Made, Shape, list_messages};

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("bytes");
    encoder.finish().expect("a stream")
}

fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A catalog of `providers` with one block each: `messages` that share a text of `length` bytes and a list of `fields`.
/// Another file contests them.
fn catalog([providers, messages, length, fields]: Shape) -> Made {
    let text = "t".repeat(length);
    let list: Vec<u32> = [3 * fields as u32]
        .into_iter()
        .chain([1, 1, 0].repeat(fields))
        .collect();
    let message = |nth: usize| {
        // Each event has one of each file, and the last one has the rest.
        let id = (nth / 2).min(65_535) as u32;
        let other = 1 + nth as u32 % 2;
        numbers(&[id, 0, 0, 0, other, 1, 1, 1, 1, 0, 1, other])
    };
    let block = [
        numbers(&[2, text.len() as u32 + 1, list.len() as u32, messages as u32, 0]),
        numbers(&[text.len() as u32, text.len() as u32 + 1]),
        numbers(&list),
        (0..messages).flat_map(message).collect(),
        text.into_bytes(),
        b"o".to_vec(),
    ]
    .concat();
    let (block_packed, checksum) = (packed(&block), crc32fast::hash(&block));
    let mut directory = numbers(&[providers as u32]);
    for nth in 0..providers {
        let name = format!("provider {nth:09}");
        directory.extend(0_u64.to_le_bytes());
        directory.extend(numbers(&[
            block_packed.len() as u32,
            block.len() as u32,
            checksum,
            name.len() as u32,
            0,
        ]));
        directory.extend(name.as_bytes());
    }
    let directory_packed = packed(&directory);
    let file = [
        b"EVTXMSGS".to_vec(),
        numbers(&[
            2,
            directory_packed.len() as u32,
            directory.len() as u32,
            crc32fast::hash(&directory),
        ]),
        directory_packed,
        block_packed,
    ]
    .concat();
    vec![("x.messages", file)]
}

pub(crate) const KIND: Kind = Kind {
    name: "a catalog",
    files: catalog,
    fixed: &[
        [2, 3, 100, 2],
        [1, 200_000, 10, 1],
        [1, 1000, 200_000, 1],
        [1, 1000, 900_000, 1],
        [1, 1000, 30_000, 10_000],
        [80_000, 1, 1, 0],
        [500_000, 1, 1, 0],
    ],
    most: [500_000, 700_000, 30_000_000, 1_000_000],
    read: list_messages,
};
