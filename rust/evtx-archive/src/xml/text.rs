//! The text of an export: a window of UTF-8 that moves over the file.

use std::cell::RefCell;
use std::io::BufRead;

use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use evtx_scan::StorageError;
use memchr::memmem;

use crate::input::Input;

/// The least bytes of the file that are added to the window at once.
const PIECE: usize = 1 << 18;

/// Where a declaration of the encoding has to end, in bytes from the start.
const DECLARATION: usize = 256;

/// The text of a file.
pub(super) struct Text<'c> {
    input: Input<'c>,
    /// Why the storage failed.
    failure: &'c RefCell<Option<StorageError>>,
    /// Of other encodings than UTF-8, whose bytes stay as they are.
    decoder: Option<Decoder>,
    window: Vec<u8>,
    /// What of the window was passed.
    passed: usize,
    /// Where the rest is in the file.
    offset: u64,
    is_end: bool,
    /// Why the file ends here.
    pub(super) ended: Option<StorageError>,
}

impl<'c> Text<'c> {
    /// The text of a file from its start on. `failure` is the one of `input`.
    pub(super) fn new(input: Input<'c>, failure: &'c RefCell<Option<StorageError>>) -> Result<Self, StorageError> {
        let mut text = Text {
            input,
            failure,
            decoder: None,
            window: Vec::new(),
            passed: 0,
            offset: 0,
            is_end: false,
            ended: None,
        };
        let (encoding, mark) = encoding(text.piece()?);
        text.input.consume(mark);
        text.offset = mark as u64;
        text.decoder = (encoding != UTF_8).then(|| encoding.new_decoder_without_bom_handling());
        Ok(text)
    }

    /// The window.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.window[self.passed..]
    }

    /// Whether nothing comes after the window.
    pub(super) fn is_end(&self) -> bool {
        self.is_end
    }

    /// Where the window starts in the file, in bytes.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Moves the window back to an offset in the file where a character starts.
    pub(super) fn seek(&mut self, offset: u64) {
        self.input.seek(offset);
        let encoding = self.decoder.as_ref().map(Decoder::encoding);
        self.decoder = encoding.map(Encoding::new_decoder_without_bom_handling);
        self.window.clear();
        (self.passed, self.offset, self.is_end) = (0, offset, false);
    }

    /// Moves the start of the window.
    pub(super) fn pass(&mut self, len: usize) {
        let bytes = &self.window[self.passed..self.passed + len];
        self.offset += match &self.decoder {
            None => len as u64,
            Some(decoder) => {
                let chars = bytes.iter().filter(|&byte| byte & 0xC0 != 0x80).count();
                let is_wide = decoder.encoding() == UTF_16LE || decoder.encoding() == UTF_16BE;
                let pairs = bytes.iter().filter(|&&byte| byte >= 0xF0).count();
                (if is_wide { 2 * (chars + pairs) } else { chars }) as u64
            }
        };
        self.passed += len;
    }

    /// Moves the end of the window, at least as far as the window is long. Returns false at the end of the file.
    pub(super) fn more(&mut self) -> Result<bool, StorageError> {
        if self.is_end {
            return Ok(false);
        }
        self.window.drain(..self.passed);
        self.passed = 0;
        let wanted = PIECE.max(self.window.len());
        let piece = self.piece()?;
        let piece = piece[..piece.len().min(wanted)].to_vec();
        self.input.consume(piece.len());
        self.is_end = piece.is_empty();
        let Some(decoder) = &mut self.decoder else {
            self.window.extend(piece);
            return Ok(!self.is_end);
        };
        let (start, room) = (self.window.len(), decoder.max_utf8_buffer_length(piece.len()));
        self.window.resize(start + room.unwrap_or(4 * piece.len() + 16), 0);
        let (_, _, written, _) = decoder.decode_to_utf8(&piece, &mut self.window[start..], self.is_end);
        self.window.truncate(start + written);
        Ok(written > 0 || !self.is_end)
    }

    /// The next bytes of the file; none at its end, or where it cannot be read on.
    fn piece(&mut self) -> Result<&[u8], StorageError> {
        if self.input.fill_buf().is_err() {
            match self.failure.take() {
                Some(why @ (StorageError::Unusable(_) | StorageError::Failed(_))) => self.ended = Some(why),
                Some(why) => return Err(why),
                None => {}
            }
            self.is_end = true;
            return Ok(&[]);
        }
        // The buffer is filled.
        Ok(self.input.fill_buf().unwrap_or_default())
    }
}

/// The encoding of a text by its first bytes, and the length of its byte order mark.
fn encoding(bytes: &[u8]) -> (&'static Encoding, usize) {
    if let Some(marked) = Encoding::for_bom(bytes) {
        return marked;
    }
    match bytes {
        [b'<' | b' ' | b'\r' | b'\n', 0, ..] => return (UTF_16LE, 0),
        [0, b'<' | b' ' | b'\r' | b'\n', ..] => return (UTF_16BE, 0),
        _ => {}
    }
    let declared = bytes[..bytes.len().min(DECLARATION)].split(|&byte| byte == b'>').next();
    let declared = declared
        .filter(|declared| declared.starts_with(b"<?xml"))
        .and_then(|declared| {
            let label = &declared[memmem::find(declared, b"encoding")? + 8..];
            let label = label.split(|byte| b"\"'".contains(byte)).nth(1)?;
            Encoding::for_label(label)
        });
    // Its bytes tell that it is none of several bytes each, whatever the declaration says.
    (
        declared.filter(|declared| declared.is_single_byte()).unwrap_or(UTF_8),
        0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_the_encoding() {
        let windows = encoding_rs::WINDOWS_1252;
        for (bytes, expected) in [
            (&b"<Events>"[..], (UTF_8, 0)),
            (b"\xEF\xBB\xBF<Events>", (UTF_8, 3)),
            (b"\xFF\xFE<\0", (UTF_16LE, 2)),
            (b"\xFE\xFF\0<", (UTF_16BE, 2)),
            (b"<\0E\0", (UTF_16LE, 0)),
            (b"\0<\0E", (UTF_16BE, 0)),
            (b"<?xml version='1.0' encoding='windows-1252'?>", (windows, 0)),
            (b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>", (windows, 0)),
            (b"<?xml version=\"1.0\" encoding=\"utf-16\"?>", (UTF_8, 0)),
            (b"<?xml version=\"1.0\" encoding=", (UTF_8, 0)),
            (b"<a encoding='windows-1252'/>", (UTF_8, 0)),
            (b"", (UTF_8, 0)),
        ] {
            assert_eq!(encoding(bytes), expected, "{}", bytes.escape_ascii());
        }
    }
}
