//! Zstandard (RFC 8878).

use std::error::Error;
use std::io::{self, BufRead, Read};

use evtx_format::Interrupt;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::feed::{allow_window, damaged};
use crate::memory::WindowLease;

/// Most bytes of the header of a Zstandard frame (RFC 8878, 3.1.1.1), and most of a window: as `zstd` allows.
const FRAME_HEADER: usize = 18;
const MAX_WINDOW: u64 = 128 << 20;

/// A last block without bytes, and room for a checksum (RFC 8878, 3.1.1).
const LAST_BLOCK: &[u8] = &[1, 0, 0, 0, 0, 0, 0];

/// The frames of a Zstandard file, one after the other.
pub(super) struct Zstd<'r> {
    decoder: FrameDecoder,
    input: Box<dyn BufRead + 'r>,
    is_inside: bool,
    /// Whether a frame was read before.
    has_frames: bool,
    /// The damage after the bytes that are still to be returned.
    failure: Option<io::Error>,
    windows: WindowLease,
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

impl<'r> Zstd<'r> {
    pub(super) fn new(input: Box<dyn BufRead + 'r>, windows: WindowLease, interrupt: Interrupt<'r>) -> Self {
        Zstd {
            decoder: FrameDecoder::new(),
            input,
            is_inside: false,
            has_frames: false,
            failure: None,
            windows,
            interrupt,
        }
    }

    /// Reads the header of a frame. Skips a skippable frame.
    fn start(&mut self) -> io::Result<()> {
        let mut header = [0; FRAME_HEADER];
        let (start, rest) = header.split_first_chunk_mut().ok_or(io::ErrorKind::InvalidInput)?;
        self.input.read_exact(start)?;
        if !matches!(start, [0x28, 0xB5, 0x2F, 0xFD, _] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, _]) {
            return Err(io::Error::other(if self.has_frames {
                "its last bytes are not compressed"
            } else {
                "it is not a Zstandard file"
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
                    return if len < length.into() {
                        Err(io::ErrorKind::UnexpectedEof.into())
                    } else {
                        Ok(())
                    };
                }
                Err(FrameDecoderError::WindowSizeTooBig { requested, max }) if requested > max => {
                    if requested > MAX_WINDOW {
                        let text = format!("its window has {requested} bytes, more than {} MiB", MAX_WINDOW >> 20);
                        return Err(io::Error::other(text));
                    }
                    allow_window(&mut self.windows, requested, self.interrupt)?;
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
    use crate::memory::Budget;

    /// What the frames of a file give.
    fn all(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let (windows, mut out) = (WindowLease::new(&Arc::new(Budget::new(0, 0, None))), Vec::new());
        Zstd::new(Box::new(bytes), windows, Interrupt::NEVER).read_to_end(&mut out)?;
        Ok(out)
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
            assert_eq!(all(&bytes).expect("a frame"), b"x", "{frame:?}");
        }
        let whole = [&[0x28, 0xB5, 0x2F, 0xFD][..], frames[0], &[9, 0, 0, b'x']].concat();
        let skipped = [&b"\x50\x2A\x4D\x18\x02\0\0\0no"[..], &whole].concat();
        assert_eq!(all(&skipped).expect("a frame"), b"x");
        for len in 1..skipped.len() - whole.len() {
            let why = all(&skipped[..len]).expect_err("it is cut short").kind();
            assert_eq!(why, io::ErrorKind::UnexpectedEof, "{len} bytes");
        }
        assert!(all(b"PK").is_err());
    }
}
