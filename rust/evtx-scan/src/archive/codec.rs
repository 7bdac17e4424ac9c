//! The ways in which entries are compressed.

use std::error::Error;
use std::io::{self, BufRead, Read};

use deflate64::Deflate64Decoder;
use flate2::bufread::{DeflateDecoder, GzDecoder};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::archive::held::Share;

/// Most bytes of the header of a Zstandard frame (RFC 8878, 3.1.1.1), and most of a window: as `zstd` allows.
const FRAME_HEADER: usize = 18;
const MAX_WINDOW: u64 = 128 << 20;

/// How an entry is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Stored,
    Deflate,
    Deflate64,
    Zstd,
    /// With headers and checksums of its own: a file `.gz`.
    Gzip,
    /// A method of ZIP that is not supported.
    Other(u16),
}

impl Method {
    /// The method with a number in ZIP (APPNOTE 4.4.5).
    pub(crate) fn of_zip(number: u16) -> Self {
        match number {
            0 => Method::Stored,
            8 => Method::Deflate,
            9 => Method::Deflate64,
            // 20 is what it was before.
            20 | 93 => Method::Zstd,
            other => Method::Other(other),
        }
    }

    /// The name of a method that is not supported.
    pub(crate) fn describe(self) -> String {
        let Method::Other(number) = self else {
            return format!("{self:?}");
        };
        let name = match number {
            1 => "Shrink",
            2..=5 => "Reduce",
            6 => "Implode",
            12 => "BZIP2",
            14 => "LZMA",
            95 => "XZ",
            98 => "PPMd",
            _ => return format!("the method {number}"),
        };
        name.to_owned()
    }

    /// Decompresses a stream. A stream that ends too early can look as if it were whole. A large window is taken of
    /// `share`.
    pub(crate) fn decoder<'r>(self, input: &'r mut dyn BufRead, share: Share) -> Box<dyn Read + 'r> {
        match self {
            Method::Stored | Method::Other(_) => Box::new(input),
            Method::Deflate => Box::new(DeflateDecoder::new(input)),
            Method::Deflate64 => Box::new(Deflate64Decoder::with_buffer(input)),
            Method::Gzip => Box::new(Gzip(Some(GzDecoder::new(input)))),
            Method::Zstd => Box::new(Zstd {
                decoder: FrameDecoder::new(),
                input,
                is_inside: false,
                failure: None,
                share,
            }),
        }
    }
}

/// The members of a gzip file, one after the other. Zeros may follow them.
struct Gzip<'r>(Option<GzDecoder<&'r mut dyn BufRead>>);

impl Read for Gzip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = &mut self.0 {
            let len = decoder.read(buffer)?;
            if len > 0 || buffer.is_empty() {
                return Ok(len);
            }
            let Some(input) = self.0.take().map(GzDecoder::into_inner) else {
                break;
            };
            loop {
                match input.fill_buf()? {
                    [] => return Ok(0),
                    [0x1F, ..] => break,
                    [0, ..] => input.consume(1),
                    _ => return Err(io::Error::other("its last bytes are not compressed")),
                }
            }
            self.0 = Some(GzDecoder::new(input));
        }
        Ok(0)
    }
}

/// A last block without bytes, and room for a checksum (RFC 8878, 3.1.1).
const LAST_BLOCK: &[u8] = &[1, 0, 0, 0, 0, 0, 0];

/// The frames of a Zstandard file, one after the other.
struct Zstd<'r> {
    decoder: FrameDecoder,
    input: &'r mut dyn BufRead,
    is_inside: bool,
    /// What is wrong behind the bytes that are still to be handed out.
    failure: Option<io::Error>,
    share: Share,
}

/// An error of the decoder; one of the kind `UnexpectedEof` if the input has ended.
fn of_decoder(error: FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(inner) = cause {
        let kind = inner.downcast_ref::<io::Error>().map(io::Error::kind);
        if kind == Some(io::ErrorKind::UnexpectedEof) {
            return io::ErrorKind::UnexpectedEof.into();
        }
        cause = inner.source();
    }
    io::Error::other(error)
}

/// How many bytes the header of a Zstandard frame has, by its first five (RFC 8878, 3.1.1.1 and 3.1.2).
fn frame_header(start: &[u8; 5]) -> usize {
    let [magic @ .., descriptor] = start;
    let is_single = usize::from(descriptor >> 5 & 1);
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size = [is_single, 2, 4, 8][usize::from(descriptor >> 6)];
    match magic {
        [0x28, 0xB5, 0x2F, 0xFD] => 5 + (1 - is_single) + dictionary + size,
        [0x50..=0x5F, 0x2A, 0x4D, 0x18] => 8,
        _ => 5,
    }
}

impl Zstd<'_> {
    /// Reads the header of a frame. Passes over a frame that is not for decoders.
    fn start(&mut self) -> io::Result<()> {
        let mut header = [0; FRAME_HEADER];
        let (start, rest) = header.split_first_chunk_mut().ok_or(io::ErrorKind::InvalidInput)?;
        self.input.read_exact(start)?;
        let len = frame_header(start);
        self.input.read_exact(&mut rest[..len - start.len()])?;
        self.decoder.set_max_window_size(0);
        loop {
            match self.decoder.reset(&header[..len]) {
                Ok(()) => {
                    self.is_inside = true;
                    return Ok(());
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut (&mut self.input).take(length.into()), &mut io::sink())?;
                    return Ok(());
                }
                Err(FrameDecoderError::WindowSizeTooBig { requested, max }) if requested > max => {
                    if requested > MAX_WINDOW {
                        let text = format!("its window has {requested} bytes, more than {} MiB", MAX_WINDOW >> 20);
                        return Err(io::Error::other(text));
                    }
                    if !self.share.covers(requested) {
                        let text = format!("its window takes {requested} bytes, more memory than is left");
                        return Err(io::Error::other(text));
                    }
                    self.decoder.set_max_window_size(requested);
                }
                Err(error) => return Err(of_decoder(error)),
            }
        }
    }
}

impl Read for Zstd<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_inside {
                if self.input.fill_buf()?.is_empty() {
                    return Ok(0);
                }
                self.start()?;
            } else if self.decoder.can_collect() > 0 {
                return self.decoder.read(buffer);
            } else if let Some(failure) = self.failure.take() {
                return Err(failure);
            } else if !self.decoder.is_finished() {
                let one = || BlockDecodingStrategy::UptoBlocks(1);
                if let Err(error) = self.decoder.decode_blocks(&mut self.input, one()) {
                    self.failure = Some(of_decoder(error));
                    // The decoder hands out its window at the end of a frame.
                    let _ = self.decoder.decode_blocks(LAST_BLOCK, one());
                }
            } else {
                self.is_inside = false;
                let (stored, computed) = (
                    self.decoder.get_checksum_from_data(),
                    self.decoder.get_calculated_checksum(),
                );
                if stored.is_some() && stored != computed {
                    return Err(io::Error::other("its checksum does not match"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::archive::held::Budget;

    fn zstd(bytes: &[u8], memory: u64) -> Result<Vec<u8>, String> {
        let budget = Arc::new(Budget::new(memory, 0, None));
        let (mut input, mut out) = (bytes, Vec::new());
        let mut decoder = Method::Zstd.decoder(&mut input, Share::new(&budget));
        let read = decoder.read_to_end(&mut out).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => "cut short".to_owned(),
            _ => error.to_string(),
        });
        read.map(|_| out)
    }

    /// What is handed out before an error.
    fn before_failure(mut bytes: &[u8]) -> Vec<u8> {
        let (budget, mut out) = (Arc::new(Budget::new(0, 0, None)), Vec::new());
        let mut decoder = Method::Zstd.decoder(&mut bytes, Share::new(&budget));
        decoder.read_to_end(&mut out).expect_err("it is cut short");
        out
    }

    /// A frame of one byte, with a window of 2^(10 + exponent) bytes.
    fn with_window(exponent: u8) -> Vec<u8> {
        [&[0x28, 0xB5, 0x2F, 0xFD, 0, exponent << 3][..], &[9, 0, 0, b'x']].concat()
    }

    #[test]
    fn windows_are_a_part_of_the_memory() {
        assert_eq!(zstd(&with_window(13), 0), Ok(b"x".to_vec()), "8 MiB");
        let why = zstd(&with_window(14), 1 << 20).unwrap_err();
        assert_eq!(why, "its window takes 16777216 bytes, more memory than is left");
        assert_eq!(zstd(&with_window(14), 16 << 20), Ok(b"x".to_vec()));
        assert_eq!(zstd(&with_window(17), 1 << 30), Ok(b"x".to_vec()), "128 MiB");
        let why = zstd(&with_window(18), 1 << 30).unwrap_err();
        assert_eq!(why, "its window has 268435456 bytes, more than 128 MiB");
        let frames = [with_window(17), with_window(2), with_window(16)].concat();
        assert_eq!(zstd(&frames, 128 << 20), Ok(b"xxx".to_vec()));
    }

    #[test]
    fn a_frame_that_is_cut_short_is_told_from_a_damaged_one() {
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        let plain: Vec<u8> = (0..5000_u32).flat_map(|i| (i * i).to_le_bytes()).collect();
        let whole = ruzstd::encoding::compress_to_vec(&plain[..], level);
        assert_eq!(zstd(&whole, 0).expect("a frame"), plain);
        for len in 1..whole.len() {
            assert_eq!(zstd(&whole[..len], 0).unwrap_err(), "cut short", "{len} bytes");
            assert!(plain.starts_with(&before_failure(&whole[..len])));
        }
        assert_eq!(
            before_failure(&whole[..whole.len() - 1]),
            plain,
            "only the checksum is missing"
        );
        let mut damaged = whole.clone();
        *damaged.last_mut().expect("a checksum") ^= 1;
        assert_eq!(zstd(&damaged, 0).unwrap_err(), "its checksum does not match");
    }

    #[test]
    fn headers_have_all_their_forms() {
        // The size in 1, 2, 4 and 8 bytes, with a window or without, and a dictionary of number 0.
        let frames: [&[u8]; 6] = [
            &[0x20, 1],
            &[0x40, 0, 0, 0],
            &[0xA0, 1, 0, 0, 0],
            &[0xE0, 1, 0, 0, 0, 0, 0, 0, 0],
            &[0xC3, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
            &[0x01, 0, 0],
        ];
        for frame in frames {
            let bytes = [&[0x28, 0xB5, 0x2F, 0xFD][..], frame, &[9, 0, 0, b'x']].concat();
            let start = bytes.first_chunk().expect("five bytes");
            assert_eq!(frame_header(start), 4 + frame.len(), "{frame:?}");
            assert_eq!(zstd(&bytes, 0), Ok(b"x".to_vec()), "{frame:?}");
        }
        let skipped = [&b"\x50\x2A\x4D\x18\x02\0\0\0no"[..], &with_window(0)].concat();
        assert_eq!(zstd(&skipped, 0), Ok(b"x".to_vec()));
        assert!(zstd(b"other", 0).is_err() && zstd(b"PK", 0).is_err());
    }
}
