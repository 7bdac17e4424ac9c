//! What a file decompresses to, as a stream of bytes with a limit.

use std::cell::RefCell;
use std::io::Read;

use evtx_format::Interrupt;
use evtx_scan::StorageError;

use crate::codec::fill;
use crate::input::Source;
use crate::limits::Archives;
use crate::memory::{EntryBytes, PIECE};

/// What a file decompresses to, read once from its start to its end.
pub(crate) struct Unpacked<'u> {
    decoder: Box<dyn Read + 'u>,
    /// Why the storage failed.
    failure: &'u RefCell<Option<StorageError>>,
    archives: &'u Archives,
    interrupt: Interrupt<'u>,
    /// Bytes of the file.
    compressed: u64,
    /// How many bytes are read at most for another reason, and the reason.
    limit: (u64, &'static str),
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
            limit: (u64::MAX, ""),
            offset: 0,
            has_failed: false,
        }
    }

    /// Also ends after so many bytes, for a reason.
    pub(crate) fn with_limit(self, limit: u64, why: &'static str) -> Self {
        let limit = (limit, why);
        Unpacked { limit, ..self }
    }

    /// Holds the next `most` bytes, or all that are left. Returns why there are not more, unless they have ended.
    ///
    /// # Errors
    /// Those of the storage, if they end the scan; [`StorageError::Unusable`] if the bytes cannot be held.
    pub(crate) fn hold(
        &mut self,
        mut most: u64,
        held: &mut EntryBytes,
        mut digest: Option<&mut crc32fast::Hasher>,
    ) -> Result<Option<StorageError>, StorageError> {
        while most > 0 {
            let mut failure = None;
            let added = held.add(most, |buffer| {
                let (len, why) = self.read(buffer);
                failure = why;
                len
            })?;
            if let Some(digest) = &mut digest {
                digest.update(added);
            }
            most -= added.len() as u64;
            match failure {
                None if added.is_empty() => break,
                None => {}
                Some(why @ (StorageError::Unusable(_) | StorageError::Failed(_))) => return Ok(Some(why)),
                Some(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Fills a buffer. Returns how many bytes there are, and why there are not more, unless they have ended.
    fn read(&mut self, buffer: &mut [u8]) -> (usize, Option<StorageError>) {
        if let Err(interrupted) = self.interrupt.check() {
            return (0, Some(interrupted.into()));
        }
        let most = self.archives.most(self.compressed);
        let left = most.min(self.limit.0) - self.offset;
        let (len, why) = fill(&mut *self.decoder, buffer);
        if len as u64 > left {
            let why = if self.limit.0 < most {
                self.limit.1.to_owned()
            } else {
                self.archives.too_large(self.compressed)
            };
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
        while !self.has_failed && self.skip(PIECE as u64)? {}
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
        let mut buffer = vec![0; len.min(PIECE as u64) as usize];
        while len > 0 {
            let piece = len.min(PIECE as u64);
            if !self.fill(&mut buffer[..piece as usize])? {
                return Ok(false);
            }
            len -= piece;
        }
        Ok(true)
    }
}
