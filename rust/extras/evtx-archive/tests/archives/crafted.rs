//! ZIP archives by hand.

/// An archive by hand: entries with their names as bytes, a method, what they say that they are, and their bytes.
pub(crate) struct Crafted<'e> {
    pub(crate) name: &'e [u8],
    pub(crate) method: u16,
    pub(crate) flags: u16,
    pub(crate) size: u32,
    pub(crate) checksum: u32,
    pub(crate) bytes: &'e [u8],
}

pub(crate) fn stored<'e>(name: &'e [u8], bytes: &'e [u8]) -> Crafted<'e> {
    Crafted {
        name,
        method: 0,
        flags: 0,
        size: bytes.len() as u32,
        checksum: crc32fast::hash(bytes),
        bytes,
    }
}

pub(crate) fn craft(entries: &[Crafted<'_>]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let mut common = Vec::new();
        for two in [20, entry.flags, entry.method, 0, 0] {
            common.extend(two.to_le_bytes());
        }
        for four in [entry.checksum, entry.bytes.len() as u32, entry.size] {
            common.extend(four.to_le_bytes());
        }
        common.extend((entry.name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend((out.len() as u32).to_le_bytes());
        directory.extend(entry.name);
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(entry.name);
        out.extend(entry.bytes);
    }
    end(out, &directory, entries.len())
}

/// Puts a directory behind the entries.
pub(crate) fn end(mut out: Vec<u8>, directory: &[u8], count: usize) -> Vec<u8> {
    let start = out.len() as u32;
    out.extend(directory);
    out.extend(b"PK\x05\x06\x00\x00\x00\x00");
    out.extend((count as u16).to_le_bytes());
    out.extend((count as u16).to_le_bytes());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}
