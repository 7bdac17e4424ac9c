//! The numbers of a ZIP archive, which are little-endian, its local headers, and the names of entries.

use crate::names::text;

pub(crate) const LOCAL: usize = 30;

pub(super) fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut le = [0; 8];
    le[..N].copy_from_slice(&bytes[at..at + N]);
    u64::from_le_bytes(le)
}

pub(super) fn two(bytes: &[u8], at: usize) -> u16 {
    number::<2>(bytes, at) as u16
}

pub(super) fn four(bytes: &[u8], at: usize) -> u32 {
    number::<4>(bytes, at) as u32
}

/// The lengths of the name and of the extra fields after the fixed fields of a local header; `None` for other bytes.
pub(crate) fn local_header(bytes: &[u8; LOCAL]) -> Option<(usize, u64)> {
    let lengths = (usize::from(two(bytes, 26)), u64::from(two(bytes, 28)));
    bytes.starts_with(b"PK\x03\x04").then_some(lengths)
}

/// The ID of the sizes and the offset that do not fit their fields (APPNOTE 4.5.3).
pub(super) const ZIP64: u16 = 0x0001;
/// The ID of a Unicode path, and its version (APPNOTE 4.6.9).
const UNICODE_PATH: u16 = 0x7075;
const UNICODE_VERSION: u8 = 1;
/// How many Unicode paths of an entry are read. It should have one.
const MAX_PATHS: usize = 16;

/// The extra fields of a header: their IDs, and their bytes.
pub(super) fn extra_fields(mut extra: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (head, behind) = extra.split_at_checked(4)?;
        let (field, next) = behind.split_at_checked(usize::from(two(head, 2)))?;
        extra = next;
        Some((two(head, 0), field))
    })
}

/// Whether there are Unicode paths among extra fields.
pub(super) fn has_paths(extra: &[u8]) -> bool {
    extra_fields(extra).any(|(id, _)| id == UNICODE_PATH)
}

/// The names of an entry, whose header has a name with this CRC-32. The first one is the name that APPNOTE 4.6.9 prefers: a
/// Unicode path of a known version, if it repeats the checksum. Other programs use another one: they know no such
/// paths, or do not compare the checksum.
pub(super) fn names(name: &[u8], checksum: u32, extra: &[u8]) -> Vec<String> {
    let mut names = vec![text(name)];
    let mut is_preferred = false;
    let paths = extra_fields(extra).filter(|(id, field)| *id == UNICODE_PATH && field.len() > 5);
    for (_, field) in paths.take(MAX_PATHS) {
        names.push(text(&field[5..]));
        let is_valid = field[0] == UNICODE_VERSION && four(field, 1) == checksum;
        if is_valid && !is_preferred && std::str::from_utf8(&field[5..]).is_ok() {
            let last = names.len() - 1;
            names.swap(0, last);
            is_preferred = true;
        }
    }
    names
}

/// Why an entry contradicts the directory whose local header names another file.
pub(super) const OTHER_NAME: &str = "the header of its data has another name";
/// The same of one that states another size.
pub(super) const OTHER_SIZE: &str = "the header of its data has another size";
