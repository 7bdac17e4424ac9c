//! Numbers and bits of a header.

use evtx_scan::StorageError;

use crate::memory::unusable;

/// Why a header cannot be read.
pub(super) fn damaged<T>() -> Result<T, StorageError> {
    unusable("its list of entries is damaged")
}

/// The bytes of a header that are still to be read. Every error is [`StorageError::Unusable`].
#[derive(Clone, Copy, Default)]
pub(super) struct Bytes<'b>(pub(super) &'b [u8]);

impl<'b> Bytes<'b> {
    pub(super) fn take(&mut self, len: u64) -> Result<&'b [u8], StorageError> {
        let split = usize::try_from(len).ok().and_then(|len| self.0.split_at_checked(len));
        let Some((taken, rest)) = split else { return damaged() };
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], StorageError> {
        let taken = self.take(N as u64)?;
        taken.try_into().or_else(|_| damaged())
    }

    pub(super) fn byte(&mut self) -> Result<u8, StorageError> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn four(&mut self) -> Result<u32, StorageError> {
        self.array().map(u32::from_le_bytes)
    }

    /// A number of one to nine bytes. The highest bits of the first byte that are set count the bytes that follow, little
    /// endian. The bits after the first zero are the highest ones of the number.
    pub(super) fn number(&mut self) -> Result<u64, StorageError> {
        let first = self.byte()?;
        let more = first.leading_ones();
        let mut number = [0; 8];
        number[..more as usize].copy_from_slice(self.take(more.into())?);
        let highest = u64::from(first) & (0x7F_u64 >> more);
        Ok(u64::from_le_bytes(number) | highest.checked_shl(8 * more).unwrap_or(0))
    }

    /// A number of bytes: at most as many as a file can have.
    pub(super) fn size(&mut self) -> Result<u64, StorageError> {
        let size = self.number()?;
        if i64::try_from(size).is_err() {
            return damaged();
        }
        Ok(size)
    }

    /// A number of things, of which there may be `most`.
    pub(super) fn count(&mut self, most: usize, things: &str) -> Result<usize, StorageError> {
        let count = self.number()?;
        match usize::try_from(count) {
            Ok(count) if count <= most => Ok(count),
            _ => unusable(format!("it has {count} {things}, more than {most}")),
        }
    }

    /// The index of one of so many things.
    pub(super) fn index(&mut self, count: usize) -> Result<usize, StorageError> {
        match usize::try_from(self.number()?) {
            Ok(index) if index < count => Ok(index),
            _ => damaged(),
        }
    }

    /// So many bits, the highest of a byte first.
    pub(super) fn bits(&mut self, count: usize) -> Result<Vec<bool>, StorageError> {
        let bytes = self.take(count.div_ceil(8) as u64)?;
        Ok((0..count).map(|at| bytes[at / 8] & (0x80 >> (at % 8)) != 0).collect())
    }

    /// So many bits, or a byte that says that all are set.
    pub(super) fn bits_or_all(&mut self, count: usize) -> Result<Vec<bool>, StorageError> {
        match self.byte()? {
            // The caller has checked the count.
            1 => Ok(vec![true; count]),
            _ => self.bits(count),
        }
    }

    /// So many CRC-32, some of which may be missing.
    pub(super) fn checksums(&mut self, count: usize) -> Result<Vec<Option<u32>>, StorageError> {
        let is_there = self.bits_or_all(count)?;
        let mut checksums = Vec::with_capacity(count);
        for is_there in is_there {
            checksums.push(is_there.then(|| self.four()).transpose()?);
        }
        Ok(checksums)
    }

    /// Passes over a property that is not read: its size, and its bytes.
    pub(super) fn pass(&mut self) -> Result<(), StorageError> {
        let size = self.number()?;
        self.take(size).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_to_nine_bytes() {
        for (bytes, number) in [
            (&[0x00][..], 0),
            (&[0x7F], 0x7F),
            (&[0x80, 0x80], 0x80),
            (&[0xBF, 0xFF], 0x3FFF),
            (&[0xC1, 0x03, 0x02], 0x01_02_03),
            (&[0xF0, 1, 2, 3, 4], 0x0403_0201),
            (&[0xFE, 1, 2, 3, 4, 5, 6, 7], 0x0007_0605_0403_0201),
            (&[0xFF, 1, 2, 3, 4, 5, 6, 7, 8], 0x0807_0605_0403_0201),
            (&[0xFF, 255, 255, 255, 255, 255, 255, 255, 255], u64::MAX),
        ] {
            let mut read = Bytes(bytes);
            assert_eq!(read.number(), Ok(number), "{bytes:?}");
            assert!(read.0.is_empty());
            assert!(
                Bytes(&bytes[..bytes.len() - 1]).number().is_err(),
                "{bytes:?} cut short"
            );
        }
        assert!(Bytes(&[0xFF; 9]).size().is_err());
    }

    #[test]
    fn counts_reserve_nothing_that_bytes_do_not_back() {
        assert!(Bytes(&[0xF0, 0, 0, 0, 1]).count(1000, "files").is_err());
        assert!(Bytes(&[0xFF]).bits(9).is_err());
        assert_eq!(
            Bytes(&[0b1010_0000, 0b1000_0000]).bits(9).expect("bits"),
            [true, false, true, false, false, false, false, false, true]
        );
        let checksums = Bytes(&[0, 0b0100_0000, 1, 0, 0, 0]).checksums(2);
        assert_eq!(checksums, Ok(vec![None, Some(1)]));
        assert!(Bytes(&[1, 1, 0, 0, 0]).checksums(2).is_err());
    }
}
