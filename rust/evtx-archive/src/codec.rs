//! The ways in which entries are compressed.

use std::error::Error;
use std::io::{self, BufRead, Read};

use deflate64::InflaterManaged;
use evtx_format::Interrupt;
use evtx_scan::StorageError;
use flate2::{Decompress, FlushDecompress, Status};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::held::Share;

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

    /// Decompresses a stream, perhaps with memory from `share`. `ResourceBusy` means [`StorageError::Busy`].
    pub(crate) fn decoder<'r>(
        self,
        input: &'r mut dyn BufRead,
        share: Share,
        interrupt: Interrupt<'r>,
    ) -> Box<dyn Read + 'r> {
        match self {
            Method::Stored | Method::Other(_) => Box::new(input),
            Method::Deflate => Box::new(Inflate::new(input, Decompress::new(false))),
            Method::Deflate64 => Box::new(Inflate64(input, Box::new(InflaterManaged::new()))),
            Method::Gzip => Box::new(Gzip(Inflate::new(input, Decompress::new_gzip(GZIP_WINDOW)))),
            Method::Zstd => Box::new(Zstd {
                decoder: FrameDecoder::new(),
                input,
                is_inside: false,
                has_frames: false,
                failure: None,
                share,
                interrupt,
            }),
        }
    }
}

/// Damage to a compressed stream.
pub(crate) fn damaged() -> io::Error {
    io::Error::other("its compressed bytes are damaged")
}

/// A deflate stream. Unlike the readers of `flate2` and `deflate64`, it returns the bytes before damage.
struct Inflate<'r> {
    input: &'r mut dyn BufRead,
    decoder: Decompress,
    is_done: bool,
    /// The damage after the bytes that were returned.
    failure: Option<io::Error>,
}

impl<'r> Inflate<'r> {
    fn new(input: &'r mut dyn BufRead, decoder: Decompress) -> Self {
        Inflate {
            input,
            decoder,
            is_done: false,
            failure: None,
        }
    }
}

impl Read for Inflate<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.is_done && !buffer.is_empty() {
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            let bytes = self.input.fill_buf()?;
            let is_end = bytes.is_empty();
            let (taken, given) = (self.decoder.total_in(), self.decoder.total_out());
            let status = self.decoder.decompress(bytes, buffer, FlushDecompress::None);
            self.input.consume((self.decoder.total_in() - taken) as usize);
            let len = (self.decoder.total_out() - given) as usize;
            match status {
                Ok(Status::StreamEnd) => self.is_done = true,
                Ok(_) if is_end && len == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) => {
                    self.failure = Some(match error.message() {
                        Some("incorrect header check") => io::Error::other("it is not a gzip file"),
                        Some("incorrect data check" | "incorrect length check") => {
                            io::Error::other("its checksum does not match")
                        }
                        _ => damaged(),
                    });
                }
            }
            if len > 0 {
                return Ok(len);
            }
        }
        Ok(0)
    }
}

/// Like [`Inflate`], for deflate64.
struct Inflate64<'r>(&'r mut dyn BufRead, Box<InflaterManaged>);

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

/// The members of a gzip file, one after the other. Zeros may follow them.
struct Gzip<'r>(Inflate<'r>);

impl Read for Gzip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Gzip(member) = self;
        loop {
            let len = member.read(buffer)?;
            if len > 0 || buffer.is_empty() {
                return Ok(len);
            }
            loop {
                match member.input.fill_buf()? {
                    [] => return Ok(0),
                    [0x1F, ..] => break,
                    [0, ..] => member.input.consume(1),
                    _ => return Err(io::Error::other("its last bytes are not compressed")),
                }
            }
            member.decoder = Decompress::new_gzip(GZIP_WINDOW);
            member.is_done = false;
        }
    }
}

/// A last block without bytes, and room for a checksum (RFC 8878, 3.1.1).
const LAST_BLOCK: &[u8] = &[1, 0, 0, 0, 0, 0, 0];

/// The frames of a Zstandard file, one after the other.
struct Zstd<'r> {
    decoder: FrameDecoder,
    input: &'r mut dyn BufRead,
    is_inside: bool,
    /// Whether a frame was read before.
    has_frames: bool,
    /// The damage after the bytes that are still to be returned.
    failure: Option<io::Error>,
    share: Share,
    interrupt: Interrupt<'r>,
}

/// An error of the decoder in words; one of the kind `UnexpectedEof` if the input has ended.
fn of_decoder(error: &FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        let kind = inner.downcast_ref::<io::Error>().map(io::Error::kind);
        if kind == Some(io::ErrorKind::UnexpectedEof) {
            return io::ErrorKind::UnexpectedEof.into();
        }
        cause = inner.source();
    }
    match error {
        FrameDecoderError::DictNotProvided { .. } => io::Error::other("it was compressed with a dictionary"),
        _ => damaged(),
    }
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
    /// Reads the header of a frame. Skips a skippable frame.
    fn start(&mut self) -> io::Result<()> {
        let mut header = [0; FRAME_HEADER];
        let (start, rest) = header.split_first_chunk_mut().ok_or(io::ErrorKind::InvalidInput)?;
        self.input.read_exact(start)?;
        if !matches!(start, [0x28, 0xB5, 0x2F, 0xFD, _] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, _]) {
            return Err(io::Error::other(match self.has_frames {
                false => "it is not a Zstandard file",
                true => "its last bytes are not compressed",
            }));
        }
        self.has_frames = true;
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
                    let len = io::copy(&mut (&mut self.input).take(length.into()), &mut io::sink())?;
                    return match len < length.into() {
                        true => Err(io::ErrorKind::UnexpectedEof.into()),
                        false => Ok(()),
                    };
                }
                Err(FrameDecoderError::WindowSizeTooBig { requested, max }) if requested > max => {
                    if requested > MAX_WINDOW {
                        let text = format!("its window has {requested} bytes, more than {} MiB", MAX_WINDOW >> 20);
                        return Err(io::Error::other(text));
                    }
                    let is_covered = self
                        .share
                        .covers(requested, self.interrupt)
                        .map_err(|error| match error {
                            StorageError::Busy => io::ErrorKind::ResourceBusy.into(),
                            error => io::Error::other(error),
                        });
                    if !is_covered? {
                        let text = format!("its window takes {requested} bytes, more memory than is left");
                        return Err(io::Error::other(text));
                    }
                    self.decoder.set_max_window_size(requested);
                }
                Err(error) => return Err(of_decoder(&error)),
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
                // A block of nine bytes can expand to 128 KiB, and nothing is returned before the window is full.
                self.interrupt.check().map_err(io::Error::other)?;
                let one = || BlockDecodingStrategy::UptoBlocks(1);
                if let Err(error) = self.decoder.decode_blocks(&mut self.input, one()) {
                    self.failure = Some(of_decoder(&error));
                    // The decoder returns its window at the end of a frame.
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
    use crate::held::Budget;

    /// What a method hands out, and why it ends.
    fn all(method: Method, mut input: &[u8], memory: u64) -> (Vec<u8>, Option<String>) {
        let (budget, mut out) = (Arc::new(Budget::new(memory, 0, None)), Vec::new());
        let mut decoder = method.decoder(&mut input, Share::new(&budget), Interrupt::NEVER);
        let error = decoder.read_to_end(&mut out).err().map(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => "cut short".to_owned(),
            _ => error.to_string(),
        });
        (out, error)
    }

    fn zstd(bytes: &[u8], memory: u64) -> Result<Vec<u8>, String> {
        let (out, error) = all(Method::Zstd, bytes, memory);
        error.map_or(Ok(out), Err)
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

    /// Blocks of nine bytes give 128 KiB each, and nothing is handed out before the window of 128 MiB is full.
    #[test]
    fn an_interrupt_ends_a_window_that_fills() {
        let raw = [0x20, 3, 0].into_iter().chain([0; 100]);
        let compressed = [0x4C, 0, 0, 0, 0xFF, 0xAA, 0x2B, 0x54, 0, 0, 0, 1];
        let blocks = raw.chain(compressed.repeat(2000));
        let frame: Vec<u8> = [0x28, 0xB5, 0x2F, 0xFD, 0, 17 << 3].into_iter().chain(blocks).collect();
        let looks = std::cell::Cell::new(0);
        let is_set = || looks.replace(looks.get() + 1) > 3;
        let budget = Arc::new(Budget::new(1 << 30, 0, None));
        let mut input = &frame[..];
        let mut decoder = Method::Zstd.decoder(&mut input, Share::new(&budget), Interrupt::new(&is_set));
        decoder.read(&mut [0; 16]).expect_err("it is interrupted");
        assert!(looks.get() < 10);
    }

    /// Some bytes, and a frame of them.
    fn frame() -> (Vec<u8>, Vec<u8>) {
        let plain: Vec<u8> = (0..5000_u32).flat_map(|i| (i * i).to_le_bytes()).collect();
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        let whole = ruzstd::encoding::compress_to_vec(&plain[..], level);
        (plain, whole)
    }

    #[test]
    fn a_frame_that_is_cut_short_is_told_from_a_damaged_one() {
        let (plain, whole) = frame();
        assert_eq!(zstd(&whole, 0).expect("a frame"), plain);
        for len in 1..whole.len() {
            assert_eq!(zstd(&whole[..len], 0).unwrap_err(), "cut short", "{len} bytes");
            assert!(plain.starts_with(&all(Method::Zstd, &whole[..len], 0).0));
        }
        let (out, _) = all(Method::Zstd, &whole[..whole.len() - 1], 0);
        assert_eq!(out, plain, "only the checksum is missing");
        let mut damaged = whole.clone();
        *damaged.last_mut().expect("a checksum") ^= 1;
        assert_eq!(zstd(&damaged, 0).unwrap_err(), "its checksum does not match");
    }

    fn deflate(plain: &[u8], window: Option<u8>) -> Vec<u8> {
        let level = flate2::Compression::default();
        let mut encoder = match window {
            Some(bits) => flate2::Compress::new_gzip(level, bits),
            None => flate2::Compress::new(level, false),
        };
        let mut out = Vec::with_capacity(plain.len() + 1000);
        let status = encoder.compress_vec(plain, &mut out, flate2::FlushCompress::Finish);
        assert_eq!(status.expect("room"), Status::StreamEnd);
        out
    }

    /// What a decoder that takes one byte at a time gives before damage.
    fn before_damage(mut decoder: Decompress, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(1 << 20);
        for byte in bytes {
            let status = decoder.decompress_vec(std::slice::from_ref(byte), &mut out, FlushDecompress::None);
            if !matches!(status, Ok(Status::Ok | Status::BufError)) {
                break;
            }
        }
        out
    }

    #[test]
    fn what_stands_before_damage_is_handed_out() {
        let plain: Vec<u8> = (0..60_000_u32)
            .flat_map(|i| format!("{} ", (i * i) >> 7).into_bytes())
            .collect();
        let (zip, gzip) = (deflate(&plain, None), deflate(&plain, Some(15)));
        let mut breaks = [0; 2];
        for at in (zip.len() / 4..zip.len() - 300).step_by(zip.len() / 97) {
            for (which, method, bytes) in [(0, Method::Deflate, &zip), (1, Method::Gzip, &gzip)] {
                let mut bytes = bytes.clone();
                bytes[at..at + 300].fill(0xFF);
                let (out, why) = all(method, &bytes, 0);
                let decoder = match method {
                    Method::Gzip => Decompress::new_gzip(15),
                    _ => Decompress::new(false),
                };
                assert_eq!(out, before_damage(decoder, &bytes), "{method:?}, {at}");
                breaks[which] += usize::from(why.is_some_and(|why| why == "its compressed bytes are damaged"));
            }
        }
        assert!(breaks.iter().all(|&count| count > 10), "{breaks:?}");
    }

    #[test]
    fn the_checksum_of_gzip_is_compared() {
        let mut bytes = deflate(b"some bytes", Some(15));
        let at = bytes.len() - 8;
        bytes[at] ^= 1;
        let why = Some("its checksum does not match".to_owned());
        assert_eq!(all(Method::Gzip, &bytes, 0), (b"some bytes".to_vec(), why));
    }

    #[test]
    fn what_stands_before_damage_in_deflate64_is_handed_out() {
        // Stored blocks, and after them a block of a type that does not exist.
        let plain: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut bytes = Vec::new();
        for piece in plain.chunks(60_000) {
            let len = piece.len() as u16;
            bytes.push(0);
            bytes.extend(len.to_le_bytes());
            bytes.extend((!len).to_le_bytes());
            bytes.extend(piece);
        }
        let whole = bytes.len();
        bytes.push(0b111);
        for (bytes, why) in [
            (&bytes[..], "its compressed bytes are damaged"),
            (&bytes[..whole], "cut short"),
        ] {
            let (out, error) = all(Method::Deflate64, bytes, 0);
            assert!(out == plain && error.as_deref() == Some(why), "{error:?}");
        }
        // Literals of the fixed code, and then its code 286, which stands for no length (RFC 1951, 3.2.6).
        let mut bits: Vec<bool> = [1, 1, 0].map(|bit| bit == 1).into();
        for _ in 0..100_000 {
            bits.extend((0..8).rev().map(|bit| (0x30 + b'x') >> bit & 1 == 1));
        }
        bits.extend((0..8).rev().map(|bit| 0b1100_0110 >> bit & 1 == 1));
        bits.resize(bits.len() + 64, false);
        let bytes: Vec<u8> = bits
            .chunks(8)
            .map(|bits| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit)))
            .collect();
        let (out, error) = all(Method::Deflate64, &bytes, 0);
        assert!(out == vec![b'x'; 100_000] && error.is_some(), "{} {error:?}", out.len());
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
        for len in 1..skipped.len() - with_window(0).len() {
            assert_eq!(zstd(&skipped[..len], 0).unwrap_err(), "cut short", "{len} bytes");
        }
        assert!(zstd(b"PK", 0).is_err());
    }

    #[test]
    fn damage_to_a_frame_is_told_in_words() {
        assert_eq!(zstd(b"other", 0).unwrap_err(), "it is not a Zstandard file");
        let behind = [&with_window(0)[..], b"more than that"].concat();
        assert_eq!(zstd(&behind, 0).unwrap_err(), "its last bytes are not compressed");
        let dictionary = [0x28, 0xB5, 0x2F, 0xFD, 0x21, 7, 1, 9, 0, 0, b'x'];
        assert_eq!(zstd(&dictionary, 0).unwrap_err(), "it was compressed with a dictionary");
        let (_, whole) = frame();
        let mut damaged = 0;
        for at in (14..whole.len() - 40).step_by(31) {
            let mut bytes = whole.clone();
            bytes[at..at + 40].fill(0);
            match zstd(&bytes, 0).unwrap_err().as_str() {
                "its compressed bytes are damaged" => damaged += 1,
                "its checksum does not match" | "cut short" => {}
                why => panic!("{why}"),
            }
        }
        assert!(damaged > 0);
    }
}
