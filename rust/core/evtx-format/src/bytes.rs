//! Bounds-checked little-endian reads, and comparison of short slices.

use crate::error::{Error, ErrorKind, Result};

/// The `N` bytes of `data` at `at`; `None` if `data` ends before.
#[inline]
pub fn array_at<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..)?.first_chunk::<N>().copied()
}

/// The u16 at `at`.
#[inline]
pub fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    array_at(data, at).map(u16::from_le_bytes)
}

/// The u32 at `at`.
#[inline]
pub fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    array_at(data, at).map(u32::from_le_bytes)
}

/// The u64 at `at`.
#[inline]
pub fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    array_at(data, at).map(u64::from_le_bytes)
}

/// Whether two slices of the same length are equal. Inlined, because most are short: a call of `memcmp` takes longer.
#[inline(always)]
pub(crate) fn bytes_equal(a: &[u8], b: &[u8]) -> bool {
    #[inline(always)]
    fn ends<const N: usize>(a: &[u8], b: &[u8]) -> bool {
        a.first_chunk::<N>() == b.first_chunk::<N>() && a.last_chunk::<N>() == b.last_chunk::<N>()
    }
    match a.len() {
        33.. => a == b,
        16.. => ends::<16>(a, b),
        8.. => ends::<8>(a, b),
        4.. => ends::<4>(a, b),
        _ => a.iter().zip(b).all(|(a, b)| a == b),
    }
}

/// A position in a chunk, and the end of the structure that is read.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    /// From the chunk's start to the end of the structure, so that positions are chunk offsets.
    data: &'a [u8],
    pos: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at `pos` that reads no further than `end`. Both are chunk offsets and are clamped to the chunk.
    pub(crate) fn new(chunk: &'a [u8], pos: usize, end: usize) -> Self {
        Cursor {
            data: &chunk[..end.min(chunk.len())],
            pos,
        }
    }

    /// The chunk offset of the position.
    #[inline]
    pub fn pos(&self) -> usize {
        self.pos
    }

    /// Chunk offset of the end of the structure.
    #[inline]
    pub fn end(&self) -> usize {
        self.data.len()
    }

    /// Moves back by one byte.
    #[inline]
    pub(crate) fn step_back(&mut self) {
        self.pos = self.pos.saturating_sub(1);
    }

    #[inline]
    pub(crate) fn at_end(&self) -> bool {
        self.pos >= self.data.len()
    }

    /// The next byte. Does not move.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.data.get(self.pos).copied()
    }

    /// The next `len` bytes.
    #[inline]
    pub(crate) fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8]> {
        match self.data.get(self.pos..).and_then(|rest| rest.get(..len)) {
            Some(bytes) => {
                self.pos += len;
                Ok(bytes)
            }
            None => Err(self.truncated(len, what)),
        }
    }

    #[inline]
    pub(crate) fn skip(&mut self, len: usize, what: &'static str) -> Result<()> {
        self.take(len, what).map(drop)
    }

    #[inline]
    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        match array_at(self.data, self.pos) {
            Some(bytes) => {
                self.pos += N;
                Ok(bytes)
            }
            None => Err(self.truncated(N, what)),
        }
    }

    #[inline]
    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    #[inline]
    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16> {
        self.array(what).map(u16::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// An error at the current position.
    #[cold]
    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error::new(self.pos, kind)
    }

    #[cold]
    fn truncated(&self, need: usize, what: &'static str) -> Error {
        let have = self.data.len().saturating_sub(self.pos);
        self.error(ErrorKind::Truncated { what, need, have })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_equal_if_every_byte_is() {
        for len in 0..=70 {
            let slice: Vec<u8> = (0..len).collect();
            assert!(bytes_equal(&slice, &slice.clone()), "{len}");
            for at in 0..slice.len() {
                let mut other = slice.clone();
                other[at] ^= 0x80;
                assert!(!bytes_equal(&slice, &other), "byte {at} of {len}");
            }
        }
    }
}
