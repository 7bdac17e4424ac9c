//! The text of an export: a window of UTF-8 that moves over the file.

use std::cell::RefCell;
use std::io::BufRead;

use encoding_rs::{Decoder, Encoding, UTF_8};
use evtx_scan::StorageError;

use crate::encoding::{decode, encoding, len_in_file};
use crate::input::Input;

/// The least bytes of the file that are added to the window at once.
const PIECE: usize = 1 << 18;

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

    /// The encoding that the file is read in.
    pub(super) fn encoding(&self) -> &'static Encoding {
        self.decoder.as_ref().map_or(UTF_8, Decoder::encoding)
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
        self.offset += len_in_file(bytes, self.decoder.as_ref().map(Decoder::encoding));
        self.passed += len;
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

/// A text that is read from its start on.
pub(super) trait Window {
    /// The part of it that is there.
    fn bytes(&self) -> &[u8];

    /// Moves the end of the part, at least as far as it is long. Returns false at the end of the text.
    fn more(&mut self) -> Result<bool, StorageError>;
}

impl Window for &str {
    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    fn more(&mut self) -> Result<bool, StorageError> {
        Ok(false)
    }
}

impl Window for Text<'_> {
    fn bytes(&self) -> &[u8] {
        &self.window[self.passed..]
    }

    fn more(&mut self) -> Result<bool, StorageError> {
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
        let len = self.window.len();
        decode(self.decoder.as_mut(), &piece, self.is_end, &mut self.window);
        Ok(self.window.len() > len || !self.is_end)
    }
}
