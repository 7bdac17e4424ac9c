//! Deflate, deflate64 and gzip.

use std::io::{self, BufRead, Read};

use deflate64::InflaterManaged;
use flate2::{Decompress, FlushDecompress, Status};

use super::feed::{Feed, Members, Next, damaged};

impl Feed for Decompress {
    fn totals(&self) -> (u64, u64) {
        (self.total_in(), self.total_out())
    }

    fn feed(&mut self, input: &[u8], output: &mut [u8]) -> Next {
        match self.decompress(input, output, FlushDecompress::None) {
            Ok(Status::StreamEnd) => Next::End,
            Ok(_) => Next::More,
            Err(error) => Next::Failure(match error.message() {
                Some("incorrect header check") => io::Error::other("it is not a gzip file"),
                Some("incorrect data check" | "incorrect length check") => {
                    io::Error::other("its checksum does not match")
                }
                _ => damaged(),
            }),
        }
    }
}

/// A decoder of deflate without a header.
pub(super) fn deflate() -> Decompress {
    Decompress::new(false)
}

/// A deflate64 stream. Unlike the reader of `deflate64`, it returns the bytes before damage.
pub(super) struct Inflate64<'r>(Box<dyn BufRead + 'r>, Box<InflaterManaged>);

impl<'r> Inflate64<'r> {
    pub(super) fn new(input: Box<dyn BufRead + 'r>) -> Self {
        Inflate64(input, Box::new(InflaterManaged::new()))
    }
}

impl Read for Inflate64<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Inflate64(input, decoder) = self;
        while !buffer.is_empty() {
            let bytes = input.fill_buf()?;
            let is_end = bytes.is_empty();
            let result = decoder.inflate(bytes, buffer);
            input.consume(result.bytes_consumed);
            match result.bytes_written {
                // The next call returns what the window holds.
                0 if decoder.available_output() > 0 => {}
                0 if result.data_error => return Err(damaged()),
                0 if decoder.finished() => break,
                0 if is_end => return Err(io::ErrorKind::UnexpectedEof.into()),
                0 => {}
                len => return Ok(len),
            }
        }
        Ok(0)
    }
}

/// The base-2 logarithm of the largest window of gzip.
const GZIP_WINDOW: u8 = 15;

/// The members of a gzip file.
pub(super) fn gzip(input: Box<dyn BufRead + '_>) -> Members<'_, Decompress> {
    Members::new(input, 0x1F, || Decompress::new_gzip(GZIP_WINDOW))
}
