//! ZIP archives whose directories have records without files. In memory, an entry is larger than its record.

use super::{Kind, Made, Shape, list_entries};

/// Several archives, each with `names` records whose names have `length` characters.
fn archives([names, length, count, _]: Shape) -> Made {
    let name = format!("{}.evtx", "n".repeat(length));
    let mut record = vec![0; 46];
    record[..4].copy_from_slice(b"PK\x01\x02");
    record[28..30].copy_from_slice(&(name.len() as u16).to_le_bytes());
    record.extend(name.bytes());
    let mut archive = record.repeat(names);
    let size = (archive.len() as u32).to_le_bytes();
    let count_of_names = (names as u16).to_le_bytes();
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend([&count_of_names[..], &count_of_names, &size, &[0; 6]].concat());
    let paths = ["a.zip", "b.zip", "c.zip", "d.zip", "e.zip", "f.zip"];
    paths[..count.clamp(1, 6)]
        .iter()
        .map(|path| (*path, archive.clone()))
        .collect()
}

pub(crate) const KIND: Kind = Kind {
    name: "ZIP archives",
    files: archives,
    fixed: &[
        [10, 10, 1, 0],
        [300_000, 1, 1, 0],
        [40_000, 1, 6, 0],
        [1000, 60_000, 1, 0],
    ],
    most: [400_000, 100, 6, 1],
    read: list_entries,
};
