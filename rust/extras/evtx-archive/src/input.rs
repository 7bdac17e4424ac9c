//! A section of a file as a stream of bytes.

use std::cell::RefCell;
use std::io::{self, BufRead, Read};

use evtx_format::Interrupt;
use evtx_scan::{StorageError, StorageFile};

/// Bytes that are read at once of a local and of a remote file.
const LOCAL_PIECE: u64 = 1 << 20;
const REMOTE_PIECE: u64 = 8 << 20;

/// Bytes that a decoder takes between two checks for an interrupt: thousands of empty gzip members.
const UNCHECKED: usize = 1 << 16;

/// Bytes that are read from their start to their end.
pub(crate) trait Source {
    /// How many were read.
    fn offset(&self) -> u64;

    /// Fills a buffer. Returns false if fewer bytes are left.
    ///
    /// # Errors
    /// Those of the storage, and [`StorageError::Unusable`] at damage.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<bool, StorageError>;

    /// Passes over bytes. Returns false if fewer are left.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    fn skip(&mut self, len: u64) -> Result<bool, StorageError>;
}

/// A section of a file, read from its start on. It checks for interrupts.
pub(crate) struct Input<'c> {
    file: &'c dyn StorageFile,
    interrupt: Interrupt<'c>,
    /// Where the bytes after the buffer start in the file, and where the section ends.
    next: u64,
    end: u64,
    piece: u64,
    buffer: Vec<u8>,
    used: usize,
    /// Bytes that were taken since the last check for an interrupt.
    unchecked: usize,
    /// Receives why the storage failed. An `io::Error` cannot hold it for a decoder.
    failure: &'c RefCell<Option<StorageError>>,
}

impl<'c> Input<'c> {
    pub(crate) fn new(
        file: &'c dyn StorageFile,
        start: u64,
        end: u64,
        is_remote: bool,
        interrupt: Interrupt<'c>,
        failure: &'c RefCell<Option<StorageError>>,
    ) -> Self {
        Input {
            file,
            interrupt,
            next: start,
            end: end.min(file.size()),
            piece: if is_remote { REMOTE_PIECE } else { LOCAL_PIECE },
            buffer: Vec::new(),
            used: 0,
            unchecked: 0,
            failure,
        }
    }

    /// Reads so many bytes at once.
    pub(crate) fn with_piece(self, piece: u64) -> Self {
        Input { piece, ..self }
    }

    /// Continues at another offset in the file.
    pub(crate) fn seek(&mut self, offset: u64) {
        self.buffer.clear();
        (self.used, self.next) = (0, offset);
    }

    /// Moves the end of the section, at most to the end of the file.
    pub(crate) fn set_end(&mut self, end: u64) {
        let (offset, end) = (self.offset(), end.min(self.file.size()));
        if end < self.next {
            self.buffer.truncate(self.used + end.saturating_sub(offset) as usize);
            self.next = end.max(offset);
        }
        self.end = end;
    }

    /// Keeps why the storage failed, and forgets the buffer.
    fn fail<T>(&mut self, why: StorageError) -> io::Result<T> {
        self.buffer.clear();
        self.used = 0;
        self.failure.replace(Some(why));
        Err(io::Error::other("the storage failed"))
    }
}

/// A whole file.
impl Source for Input<'_> {
    fn offset(&self) -> u64 {
        self.next - (self.buffer.len() - self.used) as u64
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<bool, StorageError> {
        match self.read_exact(buffer) {
            Ok(()) => Ok(true),
            Err(_) => self.failure.take().map_or(Ok(false), Err),
        }
    }

    fn skip(&mut self, len: u64) -> Result<bool, StorageError> {
        let buffered = (self.buffer.len() - self.used) as u64;
        self.used += len.min(buffered) as usize;
        let (more, left) = (len.saturating_sub(buffered), self.end.saturating_sub(self.next));
        self.next += more.min(left);
        Ok(more <= left)
    }
}

impl BufRead for Input<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used == self.buffer.len() {
            self.buffer
                .resize(self.end.saturating_sub(self.next).min(self.piece) as usize, 0);
            self.used = self.buffer.len();
            if !self.buffer.is_empty() {
                let interrupted = self.interrupt.check().map_err(StorageError::from);
                let read = interrupted.and_then(|()| self.file.read_at(&mut self.buffer, self.next));
                if let Err(error) = read {
                    return self.fail(error);
                }
                self.next += self.buffer.len() as u64;
                self.used = 0;
                self.unchecked = 0;
            }
        } else if self.unchecked >= UNCHECKED {
            if let Err(interrupted) = self.interrupt.check() {
                return self.fail(interrupted.into());
            }
            self.unchecked = 0;
        }
        Ok(&self.buffer[self.used..])
    }

    fn consume(&mut self, len: usize) {
        self.used += len;
        self.unchecked += len;
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let from = self.fill_buf()?;
        let len = from.len().min(buffer.len());
        buffer[..len].copy_from_slice(&from[..len]);
        self.consume(len);
        Ok(len)
    }
}
