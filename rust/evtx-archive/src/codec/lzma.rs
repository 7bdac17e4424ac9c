//! LZMA, LZMA2 and XZ.

use std::io::{self, BufRead, ErrorKind, Read};

use evtx_format::Interrupt;
use lzma_rust2::{Action, Lzma2Stream, LzmaStream, Status, StreamResult, XzStream};

use super::feed::{Fed, Feed, Next, Stream, allow_window, damaged};
use crate::memory::WindowLease;

/// Most bytes of a dictionary. 7-Zip writes dictionaries of 256 MiB at its highest level.
const MAX_DICTIONARY: u64 = 1 << 30;

/// The most bytes that a decoder gets at once. A failing call loses what it decoded from them.
const PIECE: usize = 1 << 10;

/// A decoder of the crate `lzma_rust2`.
pub(super) trait Decoder {
    /// Bytes of a header by which a file of its kind is known, and what the file is called.
    const KIND: Option<(u64, &'static str)> = None;

    /// Bytes that it took and gave so far.
    fn totals(&self) -> (u64, u64);

    /// Decodes a piece.
    ///
    /// # Errors
    /// An error of the kind `OutOfMemory`, if the stream needs a higher limit.
    fn process(&mut self, input: &[u8], output: &mut [u8], action: Action) -> io::Result<StreamResult>;

    /// The limit that it needs, in KiB.
    fn needed(&self) -> Option<u32>;

    /// Raises the limit, in KiB.
    fn raise(&mut self, limit: u32);
}

macro_rules! decoders {
    ($($decoder:ty, $kind:expr;)*) => {
        $(impl Decoder for $decoder {
            const KIND: Option<(u64, &'static str)> = $kind;

            fn totals(&self) -> (u64, u64) {
                (self.total_in(), self.total_out())
            }

            fn process(&mut self, input: &[u8], output: &mut [u8], action: Action) -> io::Result<StreamResult> {
                self.process(input, output, action)
            }

            fn needed(&self) -> Option<u32> {
                self.memory_usage()
            }

            fn raise(&mut self, limit: u32) {
                self.set_mem_limit(limit);
            }
        })*
    };
}

decoders! {
    XzStream, Some((12, "it is not an XZ file"));
    LzmaStream, None;
    Lzma2Stream, None;
}

/// A decoder, and the memory of its dictionary.
pub(super) struct Lzma<'r, D> {
    decoder: D,
    windows: WindowLease,
    interrupt: Interrupt<'r>,
}

impl<'r, D: Decoder> Lzma<'r, D> {
    /// `decoder` has a limit of no memory.
    pub(super) fn new(decoder: D, windows: WindowLease, interrupt: Interrupt<'r>) -> Self {
        Lzma {
            decoder,
            windows,
            interrupt,
        }
    }

    /// Takes the memory that the decoder needs, if it is there.
    fn cover(&mut self) -> io::Result<()> {
        let limit = self.decoder.needed().unwrap_or(u32::MAX);
        let needed = u64::from(limit) << 10;
        if needed > MAX_DICTIONARY + (1 << 20) {
            let text = format!("its window has {needed} bytes, more than {} MiB", MAX_DICTIONARY >> 20);
            return Err(io::Error::other(text));
        }
        allow_window(&mut self.windows, needed, self.interrupt)?;
        self.decoder.raise(limit);
        Ok(())
    }
}

impl<D: Decoder> Lzma<'_, D> {
    /// An error of the decoder in words.
    fn damage(&self, error: &io::Error) -> io::Error {
        let taken = self.decoder.totals().0;
        let text = error.to_string();
        match D::KIND {
            Some((header, other)) if taken <= header => io::Error::other(other),
            _ if text.contains("checksum mismatch") => io::Error::other("its checksum does not match"),
            _ if text.contains("inter-stream padding") => io::Error::other("its last bytes are not compressed"),
            _ => damaged(),
        }
    }
}

impl<D: Decoder> Feed for Lzma<'_, D> {
    fn feed(&mut self, input: &[u8], output: &mut [u8]) -> Fed {
        let (taken, given) = self.decoder.totals();
        let action = if input.is_empty() { Action::Finish } else { Action::Run };
        let next = match self.decoder.process(&input[..input.len().min(PIECE)], output, action) {
            Ok(result) if result.status == Status::StreamEnd => Next::End,
            Ok(_) => Next::More,
            Err(error) if error.kind() == ErrorKind::OutOfMemory => match self.cover() {
                Ok(()) => Next::More,
                Err(error) => Next::Failure(error),
            },
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Next::Failure(error),
            Err(error) => Next::Failure(self.damage(&error)),
        };
        let (end_of_taken, end_of_given) = self.decoder.totals();
        Fed {
            taken: (end_of_taken - taken) as usize,
            given: (end_of_given - given) as usize,
            next,
        }
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
    Stream::new(
        Box::new(input),
        Lzma::new(LzmaStream::new_mem_limit(0, None), windows, interrupt),
    )
}

/// A stream of LZMA2 without a header.
pub(super) fn lzma2<'r>(dictionary: u32, windows: WindowLease, interrupt: Interrupt<'r>) -> Lzma<'r, Lzma2Stream> {
    Lzma::new(Lzma2Stream::new_mem_limit(dictionary, 0), windows, interrupt)
}

/// The streams of an XZ file.
pub(super) fn xz<'r>(windows: WindowLease, interrupt: Interrupt<'r>) -> Lzma<'r, XzStream> {
    Lzma::new(XzStream::new_mem_limit(true, 0), windows, interrupt)
}
