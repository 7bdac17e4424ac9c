//! Decoders that are fed piece by piece, as readers.

use std::io::{self, BufRead, ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use evtx_format::Interrupt;
use evtx_scan::StorageError;

use crate::memory::WindowLease;

/// What follows the bytes that a decoder gave.
pub(crate) enum Next {
    /// More of the stream.
    More,
    /// The end of the stream.
    End,
    /// Damage.
    Failure(io::Error),
}

/// A decoder that is fed piece by piece.
pub(crate) trait Feed {
    /// How many bytes it took and gave so far.
    fn totals(&self) -> (u64, u64);

    /// Decodes a piece of the input, which is empty at its end.
    fn feed(&mut self, input: &[u8], output: &mut [u8]) -> Next;
}

/// A stream of a decoder that is fed. Unlike the readers of most crates, it returns the bytes before damage.
pub(crate) struct Stream<'r, F> {
    input: Box<dyn BufRead + 'r>,
    decoder: F,
    is_done: bool,
    /// The damage after the bytes that were returned.
    failure: Option<io::Error>,
}

impl<'r, F> Stream<'r, F> {
    pub(crate) fn new(input: Box<dyn BufRead + 'r>, decoder: F) -> Self {
        Stream {
            input,
            decoder,
            is_done: false,
            failure: None,
        }
    }
}

impl<F: Feed> Read for Stream<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.is_done && !buffer.is_empty() {
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            let bytes = self.input.fill_buf()?;
            let is_end = bytes.is_empty();
            let (taken, given) = self.decoder.totals();
            let next = self.decoder.feed(bytes, buffer);
            let (all_taken, all_given) = self.decoder.totals();
            let given = (all_given - given) as usize;
            self.input.consume((all_taken - taken) as usize);
            match next {
                Next::End => self.is_done = true,
                Next::More if is_end && given == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                Next::More => {}
                Next::Failure(failure) => self.failure = Some(failure),
            }
            if given > 0 {
                return Ok(given);
            }
        }
        Ok(0)
    }
}

/// Streams that follow each other in a file. Zeros may follow them.
pub(crate) struct Members<'r, F> {
    member: Stream<'r, F>,
    /// Makes the decoder of the next one.
    next: fn() -> F,
    /// The first byte of each.
    start: u8,
}

impl<'r, F> Members<'r, F> {
    pub(crate) fn new(input: Box<dyn BufRead + 'r>, start: u8, next: fn() -> F) -> Self {
        let member = Stream::new(input, next());
        Members { member, next, start }
    }
}

impl<F: Feed> Read for Members<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let len = self.member.read(buffer)?;
            if len > 0 || buffer.is_empty() {
                return Ok(len);
            }
            loop {
                match self.member.input.fill_buf()? {
                    [] => return Ok(0),
                    [first, ..] if *first == self.start => break,
                    [0, ..] => self.member.input.consume(1),
                    _ => return Err(io::Error::other("its last bytes are not compressed")),
                }
            }
            self.member.decoder = (self.next)();
            self.member.is_done = false;
        }
    }
}

/// Damage to a compressed stream.
pub(super) fn damaged() -> io::Error {
    io::Error::other("its compressed bytes are damaged")
}

/// Fills a buffer with what a decoder gives. Returns how many bytes there are, and why there are not more, unless they
/// have ended.
pub(crate) fn fill(decoder: &mut dyn Read, buffer: &mut [u8]) -> (usize, Option<StorageError>) {
    let mut len = 0;
    while len < buffer.len() {
        // A panic of a decoder means damage.
        let read = catch_unwind(AssertUnwindSafe(|| decoder.read(&mut buffer[len..])));
        let why = match read.unwrap_or_else(|_| Err(damaged())) {
            Ok(0) => break,
            Ok(more) => {
                len += more;
                continue;
            }
            Err(error) => match error.kind() {
                ErrorKind::Interrupted => continue,
                ErrorKind::UnexpectedEof => StorageError::Unusable("its compressed bytes are cut short".to_owned()),
                _ => StorageError::Unusable(error.to_string()),
            },
        };
        return (len, Some(why));
    }
    (len, None)
}

/// Takes the memory of a window before it is allocated.
pub(crate) fn allow_window(windows: &mut WindowLease, window: u64, interrupt: Interrupt<'_>) -> io::Result<()> {
    if windows.grow_to(window, interrupt).map_err(io::Error::other)? {
        return Ok(());
    }
    let text = format!("its window takes {window} bytes, more memory than archives may use");
    Err(io::Error::other(text))
}
