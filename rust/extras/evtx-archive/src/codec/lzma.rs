//! LZMA, LZMA2 and XZ.

use std::io::{self, BufRead, ErrorKind, Read};

use evtx_format::Interrupt;
use lzma_rust2::{Action, Lzma2Stream, LzmaStream, Status, XzStream};

use super::feed::{Feed, Next, Stream, allow_window, damaged};
use crate::memory::WindowLease;

/// Most bytes of a dictionary. 7-Zip writes dictionaries of 256 MiB at its highest level.
const MAX_DICTIONARY: u64 = 1 << 30;

/// The most bytes that a decoder gets at once. A failing call loses what it decoded from them.
const PIECE: usize = 1 << 10;

/// A decoder of the crate `lzma_rust2`, which has a limit of no memory at first, and the memory of its dictionary.
pub(super) struct Lzma<'r, D> {
    decoder: D,
    windows: WindowLease,
    interrupt: Interrupt<'r>,
}

impl<D> Lzma<'_, D> {
    /// Takes the memory that the decoder needs, if it is there: so many KiB, which are returned.
    fn cover(&mut self, needed: Option<u32>) -> io::Result<u32> {
        let limit = needed.unwrap_or(u32::MAX);
        let needed = u64::from(limit) << 10;
        if needed > MAX_DICTIONARY + (1 << 20) {
            let text = format!("its window has {needed} bytes, more than {} MiB", MAX_DICTIONARY >> 20);
            return Err(io::Error::other(text));
        }
        allow_window(&mut self.windows, needed, self.interrupt)?;
        Ok(limit)
    }
}

// The decoders have no trait. Some files are known by their first bytes: how many, and what they are called.
macro_rules! decoders {
    ($($decoder:ty, $kind:expr;)*) => {
        $(impl Feed for Lzma<'_, $decoder> {
            fn totals(&self) -> (u64, u64) {
                (self.decoder.total_in(), self.decoder.total_out())
            }

            fn feed(&mut self, input: &[u8], output: &mut [u8]) -> Next {
                let action = if input.is_empty() { Action::Finish } else { Action::Run };
                match self.decoder.process(&input[..input.len().min(PIECE)], output, action) {
                    Ok(result) if result.status == Status::StreamEnd => Next::End,
                    Ok(_) => Next::More,
                    Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                        match self.cover(self.decoder.memory_usage()) {
                            Ok(limit) => {
                                self.decoder.set_mem_limit(limit);
                                Next::More
                            }
                            Err(error) => Next::Failure(error),
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => Next::Failure(error),
                    Err(error) => Next::Failure(damage(&error, self.decoder.total_in(), $kind)),
                }
            }
        })*
    };
}

decoders! {
    XzStream, Some((12, "it is not an XZ file"));
    LzmaStream, None;
    Lzma2Stream, None;
}

/// An error of a decoder, which took so many bytes, in words.
fn damage(error: &io::Error, taken: u64, kind: Option<(u64, &'static str)>) -> io::Error {
    let text = error.to_string();
    match kind {
        Some((header, other)) if taken <= header => io::Error::other(other),
        _ if text.contains("checksum mismatch") => io::Error::other("its checksum does not match"),
        _ if text.contains("inter-stream padding") => io::Error::other("its last bytes are not compressed"),
        _ => damaged(),
    }
}

/// A stream of LZMA without a header, of `size` bytes. The decoder gets the header of a `.lzma` file, which it can read
/// before it allocates its dictionary: the properties, and the sizes of the dictionary and of the stream.
pub(super) fn lzma<'r>(
    input: Box<dyn BufRead + 'r>,
    (properties, dictionary, size): (u8, u32, u64),
    windows: WindowLease,
    interrupt: Interrupt<'r>,
) -> Stream<'r, Lzma<'r, LzmaStream>> {
    let header = [&[properties][..], &dictionary.to_le_bytes(), &size.to_le_bytes()].concat();
    let input = io::Cursor::new(header).chain(input);
    let decoder = LzmaStream::new_mem_limit(0, None);
    Stream::new(
        Box::new(input),
        Lzma {
            decoder,
            windows,
            interrupt,
        },
    )
}

/// A stream of LZMA2 without a header.
pub(super) fn lzma2<'r>(dictionary: u32, windows: WindowLease, interrupt: Interrupt<'r>) -> Lzma<'r, Lzma2Stream> {
    let decoder = Lzma2Stream::new_mem_limit(dictionary, 0);
    Lzma {
        decoder,
        windows,
        interrupt,
    }
}

/// The streams of an XZ file.
pub(super) fn xz<'r>(windows: WindowLease, interrupt: Interrupt<'r>) -> Lzma<'r, XzStream> {
    let decoder = XzStream::new_mem_limit(true, 0);
    Lzma {
        decoder,
        windows,
        interrupt,
    }
}
