//! What a file decompresses to, as a stream of bytes with a limit.

use std::cell::RefCell;
use std::io::Read;

use evtx_format::Interrupt;
use evtx_scan::StorageError;

use crate::codec::fill;
use crate::input::Source;
use crate::limits::Archives;

/// Bytes that are decompressed at once to be passed over.
pub(crate) const PASSED: usize = 1 << 16;

/// What a file decompresses to, read once from its start to its end.
pub(crate) struct Unpacked<'u> {
    decoder: Box<dyn Read + 'u>,
    /// Why the storage failed.
    failure: &'u RefCell<Option<StorageError>>,
    archives: &'u Archives,
    interrupt: Interrupt<'u>,
    /// Bytes of the file.
    compressed: u64,
    offset: u64,
    /// Whether it has ended because of a failure.
    has_failed: bool,
}

impl<'u> Unpacked<'u> {
    /// `failure` is the one of the input of `decoder`, which has `compressed` bytes.
    pub(crate) fn new(
        decoder: Box<dyn Read + 'u>,
        failure: &'u RefCell<Option<StorageError>>,
        compressed: u64,
        archives: &'u Archives,
        interrupt: Interrupt<'u>,
    ) -> Self {
        Unpacked {
            decoder,
            failure,
            archives,
            interrupt,
            compressed,
            offset: 0,
            has_failed: false,
        }
    }

    /// Fills a buffer. Returns how many bytes there are, and why there are not more, unless they have ended.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> (usize, Option<StorageError>) {
        if let Err(interrupted) = self.interrupt.check() {
            return (0, Some(interrupted.into()));
        }
        let left = self.archives.most(self.compressed) - self.offset;
        let (len, why) = fill(&mut *self.decoder, buffer);
        if len as u64 > left {
            let why = self.archives.too_large(self.compressed);
            self.offset += left;
            self.has_failed = true;
            return (left as usize, Some(StorageError::Unusable(why)));
        }
        self.offset += len as u64;
        self.has_failed |= why.is_some();
        let why = why.map(|why| match (self.failure.take(), self.interrupt.check()) {
            (Some(failure), _) => failure,
            (None, Err(interrupted)) => interrupted.into(),
            (None, Ok(())) => why,
        });
        (len, why)
    }

    /// Passes over the rest, to find damage that no one has met.
    ///
    /// # Errors
    /// Such damage, and those of the storage.
    pub(crate) fn pass_rest(&mut self) -> Result<(), StorageError> {
        while !self.has_failed && self.skip(PASSED as u64)? {}
        Ok(())
    }
}

impl Source for Unpacked<'_> {
    fn offset(&self) -> u64 {
        self.offset
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<bool, StorageError> {
        let (len, why) = self.read(buffer);
        match why {
            Some(why) if len < buffer.len() => Err(why),
            _ => Ok(len == buffer.len()),
        }
    }

    fn skip(&mut self, mut len: u64) -> Result<bool, StorageError> {
        let mut buffer = vec![0; len.min(PASSED as u64) as usize];
        while len > 0 {
            let piece = len.min(PASSED as u64);
            if !self.fill(&mut buffer[..piece as usize])? {
                return Ok(false);
            }
            len -= piece;
        }
        Ok(true)
    }
}
