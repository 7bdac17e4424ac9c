//! The coders of a folder.

use std::cell::RefCell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use evtx_format::Interrupt;
use evtx_scan::{Password, StorageError};
use lzma_rust2::filter::bcj::BcjReader;
use lzma_rust2::filter::delta::DeltaReader;

use super::bytes::damaged;
use super::keys::{Decrypted, Keys, Properties};
use crate::codec::Method;
use crate::limits::Archives;
use crate::memory::{WindowLease, unusable};

/// A step from compressed bytes to plain ones.
#[derive(Debug, Clone)]
pub(super) enum Coder {
    Method(Method),
    /// LZMA with its properties. It also needs the size of what it gives.
    Lzma([u8; 5]),
    /// The difference to the byte so many bytes before.
    Delta(usize),
    /// Addresses in x86 code (BCJ). 7-Zip applies it to programs, `py7zr` to all files.
    Branches,
    Aes(Box<Properties>),
}

impl Coder {
    /// The coder with an ID; `None` if it is not supported.
    ///
    /// # Errors
    /// [`StorageError::Unusable`] if its properties are wrong.
    pub(super) fn of(id: u64, properties: &[u8]) -> Result<Option<Self>, StorageError> {
        let coder = match (id, properties) {
            (0x00, _) => Coder::Method(Method::Stored),
            (0x21, &[size]) => match size {
                0..40 => {
                    let dictionary = (2 | u32::from(size & 1)) << (size / 2 + 11);
                    Coder::Method(Method::Lzma2 { dictionary })
                }
                40 => Coder::Method(Method::Lzma2 { dictionary: u32::MAX }),
                _ => return damaged(),
            },
            (0x03_01_01, properties) => match properties.try_into() {
                Ok(properties) => Coder::Lzma(properties),
                Err(_) => return damaged(),
            },
            (0x04_01_08, _) => Coder::Method(Method::Deflate),
            (0x04_01_09, _) => Coder::Method(Method::Deflate64),
            (0x04_02_02, _) => Coder::Method(Method::Bzip2),
            (0x03, &[distance]) => Coder::Delta(usize::from(distance) + 1),
            (0x06_F1_07_01, properties) => Coder::Aes(Box::new(Properties::of(properties)?)),
            (0x03 | 0x21, _) => return damaged(),
            // The ID of 7-Zip and an older one. Other addresses than from 0 are rare.
            (0x04 | 0x03_03_01_03, [] | [0, 0, 0, 0]) => Coder::Branches,
            _ => return Ok(None),
        };
        Ok(Some(coder))
    }

    /// The window of its decoder, for a stream of `size` bytes.
    pub(super) fn window(&self, size: u64) -> u32 {
        match *self {
            Coder::Method(Method::Lzma2 { dictionary }) => needed(dictionary, size),
            Coder::Lzma([_, dictionary @ ..]) => needed(u32::from_le_bytes(dictionary), size),
            _ => 0,
        }
    }

    /// What it takes besides itself, in bytes.
    pub(super) fn memory(&self) -> usize {
        match self {
            Coder::Aes(_) => size_of::<Properties>() + 16,
            _ => 0,
        }
    }

    /// Decodes a stream to one of `size` bytes.
    ///
    /// # Errors
    /// [`StorageError::Unusable`] without a key, and [`StorageError::Interrupted`].
    pub(super) fn decoder<'r>(
        &self,
        input: Box<dyn BufRead + 'r>,
        size: u64,
        (archives, keys): (&Archives, &Keys),
        windows: WindowLease,
        interrupt: Interrupt<'r>,
    ) -> Result<Box<dyn Read + 'r>, StorageError> {
        let method = match *self {
            Coder::Method(Method::Lzma2 { dictionary }) => Method::Lzma2 {
                dictionary: needed(dictionary, size),
            },
            Coder::Method(method) => method,
            Coder::Lzma([first, dictionary @ ..]) => Method::Lzma {
                properties: first,
                dictionary: needed(u32::from_le_bytes(dictionary), size),
                size,
            },
            Coder::Delta(distance) => return Ok(Box::new(DeltaReader::new(input, distance))),
            Coder::Branches => return Ok(branches(input)),
            Coder::Aes(ref properties) => {
                let Some(password) = archives.password.as_ref().map(Password::text) else {
                    return unusable("it is encrypted, and no password is given");
                };
                return Ok(Box::new(Decrypted::new(input, properties, password, keys, interrupt)?));
            }
        };
        Ok(method.decoder(input, windows, interrupt))
    }
}

/// How much of a dictionary a stream of this size can use.
fn needed(dictionary: u32, size: u64) -> u32 {
    u32::try_from(size).map_or(dictionary, |size| dictionary.min(size.max(1 << 12)))
}

/// A stream with the addresses of code as they were before. The reader of the crate loses bytes before an error of its
/// input. So for it, the input ends there, and the error follows.
fn branches<'r>(input: Box<dyn BufRead + 'r>) -> Box<dyn Read + 'r> {
    let failure = Rc::default();
    let input = Ending {
        input,
        failure: Rc::clone(&failure),
    };
    Box::new(Branches {
        decoder: BcjReader::new_x86(input, 0),
        failure,
    })
}

/// A stream that ends where its input fails.
struct Ending<R> {
    input: R,
    failure: Rc<RefCell<Option<io::Error>>>,
}

impl<R: Read> Read for Ending<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.read(buffer).or_else(|error| {
            self.failure.replace(Some(error));
            Ok(0)
        })
    }
}

/// A stream that fails after its end, if its input failed there.
struct Branches<R> {
    decoder: BcjReader<Ending<R>>,
    failure: Rc<RefCell<Option<io::Error>>>,
}

impl<R: Read> Read for Branches<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.decoder.read(buffer)? {
            0 => self.failure.take().map_or(Ok(0), Err),
            len => Ok(len),
        }
    }
}
