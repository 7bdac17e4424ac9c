//! How an entry is compressed, and its decoder.

use std::io::{BufRead, Read};

use evtx_format::Interrupt;

use super::bzip2::bzip2;
use super::deflate::{Inflate64, deflate, gzip};
use super::feed::Stream;
use super::lzma::{lzma, lzma2, xz};
use super::zstd::Zstd;
use crate::memory::WindowLease;

/// How an entry is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Stored,
    Deflate,
    Deflate64,
    /// With headers and checksums of their own, as the other ones below: a file `.gz`.
    Gzip,
    Zstd,
    Bzip2,
    Xz,
    /// A stream of so many bytes without a header, and its properties.
    Lzma {
        properties: u8,
        dictionary: u32,
        size: u64,
    },
    /// Without a header, too.
    Lzma2 {
        dictionary: u32,
    },
    /// A method of ZIP that is not supported.
    Other(u16),
    /// A coder of 7z that is not supported, by its ID.
    Coder(u64),
}

impl Method {
    /// The method with a number in ZIP (APPNOTE 4.4.5).
    pub(crate) fn of_zip(number: u16) -> Self {
        match number {
            0 => Method::Stored,
            8 => Method::Deflate,
            9 => Method::Deflate64,
            12 => Method::Bzip2,
            // 20 is what it was before.
            20 | 93 => Method::Zstd,
            95 => Method::Xz,
            other => Method::Other(other),
        }
    }

    /// The name of a method that is not supported.
    pub(crate) fn describe(self) -> String {
        let name = match self {
            Method::Other(1) => "Shrink",
            Method::Other(2..=5) => "Reduce",
            Method::Other(6) => "Implode",
            Method::Other(14) => "LZMA",
            Method::Other(98) | Method::Coder(0x03_04_01) => "PPMd",
            Method::Coder(0x03_03_01_1B) => "BCJ2",
            Method::Coder(0x04_F7_11_01) => "Zstandard",
            Method::Coder(0x04_F7_11_02) => "Brotli",
            Method::Coder(0x04_F7_11_04) => "LZ4",
            Method::Coder(0x04_F7_11_05) => "LZ5",
            Method::Coder(0x04_F7_11_06) => "Lizard",
            Method::Other(number) => return format!("the method {number}"),
            Method::Coder(id) => return format!("the method {id:X}"),
            _ => return format!("{self:?}"),
        };
        name.to_owned()
    }

    /// Decompresses a stream. A decoder with a window takes its memory from `windows`.
    pub(crate) fn decoder<'r>(
        self,
        input: Box<dyn BufRead + 'r>,
        windows: WindowLease,
        interrupt: Interrupt<'r>,
    ) -> Box<dyn Read + 'r> {
        match self {
            Method::Stored | Method::Other(_) | Method::Coder(_) => Box::new(input),
            Method::Deflate => Box::new(Stream::new(input, deflate())),
            Method::Deflate64 => Box::new(Inflate64::new(input)),
            Method::Gzip => Box::new(gzip(input)),
            Method::Zstd => Box::new(Zstd::new(input, windows, interrupt)),
            Method::Bzip2 => Box::new(bzip2(input)),
            Method::Xz => Box::new(Stream::new(input, xz(windows, interrupt))),
            Method::Lzma {
                properties,
                dictionary,
                size,
            } => Box::new(lzma(input, (properties, dictionary, size), windows, interrupt)),
            Method::Lzma2 { dictionary } => Box::new(Stream::new(input, lzma2(dictionary, windows, interrupt))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read, Write};
    use std::sync::Arc;

    use flate2::{Decompress, FlushDecompress, Status};

    use super::*;
    use crate::memory::Budget;

    /// What a method hands out, and why it ends.
    fn all(method: Method, input: &[u8], memory: u64) -> (Vec<u8>, Option<String>) {
        let (budget, mut out) = (Arc::new(Budget::new(memory, 0, None)), Vec::new());
        let mut decoder = method.decoder(Box::new(input), WindowLease::new(&budget), Interrupt::NEVER);
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
        assert_eq!(zstd(&with_window(14), 0), Ok(b"x".to_vec()), "16 MiB");
        let why = zstd(&with_window(15), 63 << 20).unwrap_err();
        assert_eq!(
            why,
            "its window takes 33554432 bytes, more memory than archives may use"
        );
        assert_eq!(zstd(&with_window(15), 64 << 20), Ok(b"x".to_vec()));
        assert_eq!(zstd(&with_window(17), 1 << 30), Ok(b"x".to_vec()), "128 MiB");
        let why = zstd(&with_window(18), 1 << 30).unwrap_err();
        assert_eq!(why, "its window has 268435456 bytes, more than 128 MiB");
        let frames = [with_window(17), with_window(2), with_window(16)].concat();
        assert_eq!(zstd(&frames, 256 << 20), Ok(b"xxx".to_vec()));
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
        let mut decoder =
            Method::Zstd.decoder(Box::new(&frame[..]), WindowLease::new(&budget), Interrupt::new(&is_set));
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

    /// Some bytes that compress to about a third.
    fn numbers() -> Vec<u8> {
        (0..60_000_u32)
            .flat_map(|i| format!("{} ", i.wrapping_mul(i) >> 7).into_bytes())
            .collect()
    }

    fn bzip2(plain: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut encoder = ::bzip2::read::BzEncoder::new(plain, ::bzip2::Compression::new(1));
        encoder.read_to_end(&mut out).expect("memory");
        out
    }

    fn xz(plain: &[u8], dictionary: u32) -> Vec<u8> {
        let mut options = lzma_rust2::XzOptions::with_preset(1);
        options.lzma_options.dict_size = dictionary;
        let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).expect("options");
        writer.write_all(plain).expect("memory");
        writer.finish().expect("memory")
    }

    #[test]
    fn streams_with_checksums_may_follow_each_other() {
        let plain = numbers();
        for (method, what, bytes) in [
            (Method::Bzip2, "a bzip2", bzip2(&plain)),
            (Method::Xz, "an XZ", xz(&plain, 1 << 20)),
        ] {
            let two = [&bytes[..], &bytes].concat();
            assert_eq!(all(method, &two, 0), (plain.repeat(2), None), "{method:?}");
            let padded = [&two[..], &[0; 512]].concat();
            assert_eq!(all(method, &padded, 0), (plain.repeat(2), None), "{method:?}");
            let (out, why) = all(method, &[&bytes[..], b"more than that"].concat(), 0);
            assert_eq!(
                (out, why.as_deref()),
                (plain.clone(), Some("its last bytes are not compressed"))
            );
            let why = all(method, b"this is neither of them", 0);
            assert_eq!(why, (Vec::new(), Some(format!("it is not {what} file"))));
            let (out, why) = all(method, &bytes[..bytes.len() - 1], 0);
            assert_eq!((out, why.as_deref()), (plain.clone(), Some("cut short")), "{method:?}");
            for len in (1..bytes.len()).step_by(bytes.len() / 50) {
                let (out, why) = all(method, &bytes[..len], 0);
                assert_eq!(why.as_deref(), Some("cut short"), "{method:?}, {len} bytes");
                assert!(plain.starts_with(&out));
                assert!(
                    len < bytes.len() / 2 || out.len() > plain.len() / 5,
                    "{method:?}, {len} bytes give {}",
                    out.len()
                );
            }
        }
    }

    /// What the bytes before damage give is there, except perhaps for the last bytes of a dictionary's coder.
    #[test]
    fn damage_to_a_stream_ends_it_in_words() {
        let plain = numbers();
        for (method, bytes) in [(Method::Bzip2, bzip2(&plain)), (Method::Xz, xz(&plain, 1 << 20))] {
            let (mut damaged, mut least) = (0, usize::MAX);
            for at in (bytes.len() / 4..bytes.len() - 300).step_by(bytes.len() / 97) {
                let mut bytes = bytes.clone();
                bytes[at..at + 300].fill(0xFF);
                let (out, why) = all(method, &bytes, 0);
                let same = out.iter().zip(&plain).take_while(|(a, b)| a == b).count();
                least = least.min(same * 100 / (plain.len() * at / bytes.len()));
                match why.as_deref() {
                    Some("its compressed bytes are damaged") => damaged += 1,
                    Some("its checksum does not match") => {}
                    why => panic!("{method:?}, {at}: {why:?}"),
                }
            }
            assert!(damaged > 30, "{method:?}: {damaged}");
            // The bytes of a block of bzip2 come when it is whole.
            assert!(
                least > if method == Method::Xz { 90 } else { 40 },
                "{method:?}: {least} %"
            );
        }
    }

    #[test]
    fn dictionaries_are_a_part_of_the_memory() {
        let small = xz(b"x", 4 << 20);
        assert_eq!(all(Method::Xz, &small, 0), (b"x".to_vec(), None));
        let large = xz(b"x", 64 << 20);
        let (_, why) = all(Method::Xz, &large, 1 << 20);
        assert!(why.is_some_and(|why| why.contains("more memory than archives may use")));
        assert_eq!(all(Method::Xz, &large, 160 << 20), (b"x".to_vec(), None));
        // The largest dictionary, of almost 4 GiB: the property after the ID and the size of the filter (2.1.1).
        let mut huge = small;
        let at = huge.windows(2).position(|pair| pair == [0x21, 1]).expect("a filter") + 2;
        huge[at] = 40;
        let end = 12 + 4 * (usize::from(huge[12]) + 1) - 4;
        let checksum = crc32fast::hash(&huge[12..end]).to_le_bytes();
        huge[end..end + 4].copy_from_slice(&checksum);
        let (out, why) = all(Method::Xz, &huge, u64::MAX);
        assert!(out.is_empty() && why.is_some_and(|why| why.ends_with("more than 1024 MiB")));
    }
}
