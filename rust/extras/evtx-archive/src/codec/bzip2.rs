//! bzip2.

use std::io::{self, BufRead};

use bzip2::{Decompress, Error, Status};

use super::feed::{Feed, Members, Next, damaged};

impl Feed for Decompress {
    fn totals(&self) -> (u64, u64) {
        (self.total_in(), self.total_out())
    }

    fn feed(&mut self, input: &[u8], output: &mut [u8]) -> Next {
        match self.decompress(input, output) {
            Ok(Status::StreamEnd) => Next::End,
            Ok(Status::MemNeeded) => Next::Failure(io::Error::other("its blocks take more memory than is left")),
            Ok(_) => Next::More,
            Err(Error::DataMagic) => Next::Failure(io::Error::other("it is not a bzip2 file")),
            Err(_) => Next::Failure(damaged()),
        }
    }
}

/// The streams of a bzip2 file. A decoder takes at most 4 MB.
pub(super) fn bzip2(input: Box<dyn BufRead + '_>) -> Members<'_, Decompress> {
    Members::new(input, b'B', || Decompress::new(false))
}
