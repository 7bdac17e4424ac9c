//! The numbers of a ZIP archive, which are little-endian, and its local headers.

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
