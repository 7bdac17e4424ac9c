//! Texts without regard to case: folded, and with where each character is in the original.

use std::ops::Range;

use encoding_rs::WINDOWS_1252;
use evtx_format::case::fold_char;

/// How bytes are read as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf16,
    Utf8,
    /// Windows-1252.
    Ansi,
}

/// A text in UTF-8, each character folded, which was read from other bytes.
///
/// A match of a folded text in it is one of whole characters, because UTF-8 synchronizes itself.
#[derive(Debug, Default)]
pub(super) struct Folded {
    pub(super) text: Vec<u8>,
    /// For each byte of the text and its end, where in the source its character is. Empty if all characters have
    /// `width` bytes in the source and one here.
    places: Vec<u32>,
    width: usize,
}

/// The characters of some bytes, and where each starts. What is not text in the encoding becomes U+FFFD.
pub(super) fn chars(source: &[u8], encoding: Encoding) -> Vec<(char, usize)> {
    let mut at = 0;
    match encoding {
        Encoding::Utf16 => {
            let units = source.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
            char::decode_utf16(units)
                .map(|c| {
                    let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
                    let start = at;
                    at += 2 * c.len_utf16();
                    (c, start)
                })
                .collect()
        }
        Encoding::Utf8 => {
            let mut found = Vec::new();
            for chunk in source.utf8_chunks() {
                found.extend(chunk.valid().char_indices().map(|(offset, c)| (c, at + offset)));
                at += chunk.valid().len();
                if !chunk.invalid().is_empty() {
                    found.push((char::REPLACEMENT_CHARACTER, at));
                    at += chunk.invalid().len();
                }
            }
            found
        }
        Encoding::Ansi => {
            let (text, _) = WINDOWS_1252.decode_without_bom_handling(source);
            text.chars().enumerate().map(|(at, c)| (c, at)).collect()
        }
    }
}

impl Folded {
    /// Reads bytes. What is not text in the encoding becomes U+FFFD.
    pub(super) fn read(&mut self, source: &[u8], encoding: Encoding) {
        self.text.clear();
        self.places.clear();
        match encoding {
            Encoding::Utf16 => self.read_utf16(source.as_chunks::<2>().0),
            _ if source.is_ascii() => {
                self.width = 1;
                self.text.extend(source.iter().map(u8::to_ascii_lowercase));
            }
            _ => self.read_chars(&chars(source, encoding), source.len()),
        }
    }

    fn read_utf16(&mut self, units: &[[u8; 2]]) {
        let mut all = 0;
        self.text.extend(units.iter().map(|unit| {
            let unit = u16::from_le_bytes(*unit);
            all |= unit;
            (unit as u8).to_ascii_lowercase()
        }));
        self.width = 2;
        if all < 0x80 {
            return;
        }
        let source = units.as_flattened();
        self.read_chars(&chars(source, Encoding::Utf16), source.len());
    }

    /// Reads characters from places of a source of `len` bytes.
    pub(super) fn read_chars(&mut self, chars: &[(char, usize)], len: usize) {
        self.text.clear();
        self.places.clear();
        chars.iter().for_each(|(c, at)| self.push(*c, *at));
        self.places.push(len as u32);
    }

    fn push(&mut self, c: char, at: usize) {
        let mut bytes = [0; 4];
        let bytes = fold_char(c).encode_utf8(&mut bytes).as_bytes();
        self.text.extend(bytes);
        self.places.resize(self.text.len(), at as u32);
    }

    /// Where a range of the text is in the source, in bytes.
    pub(super) fn place(&self, range: Range<usize>) -> Range<usize> {
        let place = |at: usize| {
            if self.places.is_empty() {
                at * self.width
            } else {
                self.places[at] as usize
            }
        };
        place(range.start)..place(range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_found_where_they_are_in_the_source() {
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let mut folded = Folded::default();
        for (source, encoding, place) in [
            (utf16("C:\\ALICE"), Encoding::Utf16, 6..16),
            (utf16("\u{1f600}\u{416}ALICE\u{e9}"), Encoding::Utf16, 6..16),
            (b"\xff\xd8xAlice\xe9".to_vec(), Encoding::Utf8, 3..8),
            ("\u{416}ALICE".into(), Encoding::Utf8, 2..7),
            (b"\x80\xe9Alice".to_vec(), Encoding::Ansi, 2..7),
            (b"an Alice".to_vec(), Encoding::Ansi, 3..8),
        ] {
            folded.read(&source, encoding);
            let at = folded
                .text
                .windows(5)
                .position(|text| text == b"alice")
                .expect("a match");
            assert_eq!(folded.place(at..at + 5), place);
        }
        folded.read(&[0x3d, 0xd8, b'A', 0], Encoding::Utf16);
        assert_eq!(folded.text, "\u{fffd}a".as_bytes());
    }
}
