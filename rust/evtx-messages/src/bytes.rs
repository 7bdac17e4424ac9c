//! Bounds-checked little-endian reads.

/// The `N` bytes of `data` at `at`; `None` if `data` ends before.
pub(crate) fn array_at<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..)?.first_chunk::<N>().copied()
}

/// The u32 at `at`.
pub(crate) fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    array_at(data, at).map(u32::from_le_bytes)
}

/// The u16 at `at`.
pub(crate) fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    array_at(data, at).map(u16::from_le_bytes)
}

/// The u64 at `at`.
pub(crate) fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    array_at(data, at).map(u64::from_le_bytes)
}
