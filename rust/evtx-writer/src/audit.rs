//! Searches the bytes of a written log for what redactions should have removed.
//!
//! A copy fails if this finds something, so that nobody has to trust the code that replaces. It shares nothing with that
//! code but the keys: it searches bytes without knowing what they are, and reads values as readers of logs do.
//!
//! A key has many forms. Those that do not occur by chance are looked for at any offset: its texts ([`forms`]), in UTF-16
//! and in bytes; sixteen bytes of a GUID or an address; SIDs; and all of these in hexadecimal, base64 and escapes
//! ([`encoded`]). Shorter forms only count in a value of the right type ([`typed`]).

mod encoded;
mod forms;
mod typed;

use std::collections::HashSet;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use bumpalo::Bump;
use evtx_format::container::record::Record;

use encoded::{Decoded, Encoding, MIN_BYTES};
use forms::{Around, MIN_NARROW, MIN_WIDE, Packed, packed, spellings};
use typed::{Typed, records};

/// Searches chunks for the forms of keys.
#[derive(Debug)]
pub struct Audit {
    keys: Vec<String>,
    texts: AhoCorasick,
    of_texts: Vec<Pattern>,
    packed: AhoCorasick,
    of_packed: Vec<(usize, Packed)>,
    typed: Typed,
    letters: Letters,
}

/// The characters beyond ASCII that spellings have, in both cases. All others are the same to a search.
#[derive(Debug, Default)]
struct Letters(HashSet<char>);

/// A spelling that a chunk is searched for.
#[derive(Debug)]
struct Pattern {
    key: usize,
    name: &'static str,
    around: Around,
    bytes: usize,
    chars: usize,
}

/// What a log contains, though it should not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The key.
    pub key: String,
    /// In which form.
    pub form: String,
    /// The ID of the record with it; `None` if it is not in a record.
    pub record: Option<u64>,
    /// Where it starts in the chunk, in bytes; `None` if it is a value.
    pub offset: Option<usize>,
}

/// Buffers that searches share.
#[derive(Debug, Default)]
pub struct Scratch {
    wide: Vec<u8>,
    decoded_wide: Vec<u8>,
    decoded: Decoded,
    arena: Bump,
}

/// A place in some bytes: the index of the key, the form, and the offset.
#[derive(Debug, Clone)]
struct Place {
    key: usize,
    form: &'static str,
    within: &'static str,
    at: usize,
}

/// Which bytes are searched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    /// As they are.
    Narrow,
    /// Made of UTF-16.
    Wide,
    /// Without their escapes.
    Text,
}

impl Audit {
    /// A search for keys.
    ///
    /// # Errors
    /// If the keys need too much memory.
    pub fn new<'k>(keys: impl IntoIterator<Item = &'k str>) -> Result<Self, String> {
        let keys: Vec<String> = keys.into_iter().map(str::to_owned).collect();
        let (mut texts, mut of_texts) = (Vec::new(), Vec::new());
        let (mut bytes, mut of_packed) = (Vec::new(), Vec::new());
        let (mut typed, mut letters) = (Typed::default(), Letters::default());
        for (key, text) in keys.iter().enumerate() {
            let spellings = spellings(text);
            for spelling in &spellings {
                let mut add = |bytes: Vec<u8>| {
                    of_texts.push(Pattern {
                        key,
                        name: spelling.name,
                        around: spelling.around,
                        bytes: bytes.len(),
                        chars: spelling.text.chars().count(),
                    });
                    texts.push(bytes);
                };
                add(spelling.text.clone().into_bytes());
                if !spelling.text.is_ascii() {
                    letters.add(&spelling.text);
                    add(spelling.text.to_uppercase().into_bytes());
                    for text in [spelling.text.clone(), spelling.text.to_uppercase()] {
                        ansi(&text).map(&mut add);
                    }
                }
            }
            for packed in packed(text) {
                bytes.push(match &packed {
                    Packed::Sid(bytes) => bytes.clone(),
                    Packed::Sixteen(bytes, _) => bytes.to_vec(),
                    Packed::Address(bytes) => bytes.to_vec(),
                });
                of_packed.push((key, packed));
            }
            typed.add(key, text);
        }
        let builder = |is_text| {
            let mut builder = AhoCorasickBuilder::new();
            builder
                .match_kind(MatchKind::Standard)
                .ascii_case_insensitive(is_text)
                .prefilter(false);
            builder
        };
        Ok(Audit {
            texts: builder(true).build(&texts).map_err(|error| error.to_string())?,
            of_texts,
            packed: builder(false).build(&bytes).map_err(|error| error.to_string())?,
            of_packed,
            typed,
            letters,
            keys,
        })
    }

    /// The first form of a key that some bytes contain, among those that count at any offset.
    pub(crate) fn search_bytes(&self, bytes: &[u8], scratch: &mut Scratch) -> Option<Finding> {
        let place = self.anywhere(bytes, scratch)?;
        Some(self.finding(&place, None, Some(place.at)))
    }

    /// The first form of a key that a chunk of a log contains.
    pub fn search(&self, chunk: &[u8], scratch: &mut Scratch) -> Option<Finding> {
        if let Some(found) = self.search_bytes(chunk, scratch) {
            let record = found.offset.and_then(|offset| record_at(chunk, offset));
            return Some(Finding { record, ..found });
        }
        scratch.arena.reset();
        let has_words = self.of_texts.iter().any(|pattern| pattern.around.is_word());
        let find_word = |text: &str| {
            if !has_words {
                return None;
            }
            let place = self.plain(text.as_bytes(), View::Text, |pattern, _| pattern.around.is_word())?;
            Some((place.key, place.form))
        };
        let ((key, form), record) = self.typed.search(chunk, &scratch.arena, &find_word)?;
        let place = Place {
            key,
            form,
            within: "",
            at: 0,
        };
        Some(self.finding(&place, Some(record), None))
    }

    fn finding(&self, place: &Place, record: Option<u64>, offset: Option<usize>) -> Finding {
        Finding {
            key: self.keys[place.key].clone(),
            form: format!("{}{}", place.form, place.within),
            record,
            offset,
        }
    }

    /// The first form that counts at any offset.
    fn anywhere(&self, chunk: &[u8], scratch: &mut Scratch) -> Option<Place> {
        self.plain(chunk, View::Narrow, |_, _| true)
            .or_else(|| self.in_decoded(chunk, scratch))
            .or_else(|| self.in_packed(chunk, true))
            .or_else(|| {
                (0..2).find_map(|parity| {
                    let mut wide = std::mem::take(&mut scratch.wide);
                    self.letters.read(&chunk[parity.min(chunk.len())..], &mut wide);
                    let found = self.plain(&wide, View::Wide, |_, _| true);
                    let found = found.or_else(|| self.in_decoded(&wide, scratch));
                    scratch.wide = wide;
                    let mut place = found?;
                    place.at = parity + self.letters.offset(&chunk[parity..], place.at);
                    Some(place)
                })
            })
    }

    /// The first spelling in some text. `counts` says whether a pattern counts at an offset.
    fn plain(&self, text: &[u8], view: View, counts: impl Fn(&Pattern, usize) -> bool) -> Option<Place> {
        let found = self.texts.find_overlapping_iter(text).find(|found| {
            let pattern = &self.of_texts[found.pattern()];
            let is_long = match view {
                View::Narrow => pattern.bytes >= MIN_NARROW,
                View::Wide | View::Text => pattern.chars >= MIN_WIDE,
            };
            is_long
                && pattern.around.fits(&text[..found.start()], &text[found.end()..])
                && counts(pattern, found.start())
        })?;
        let pattern = &self.of_texts[found.pattern()];
        Some(Place {
            key: pattern.key,
            form: pattern.name,
            within: if view == View::Wide { " in UTF-16" } else { "" },
            at: found.start(),
        })
    }

    /// The first form of bytes. `is_chunk` says whether four bytes have to have all of a socket address around them.
    fn in_packed(&self, bytes: &[u8], is_chunk: bool) -> Option<Place> {
        let found = self.packed.find_overlapping_iter(bytes).find(|found| {
            let (before, after) = (&bytes[..found.start()], &bytes[found.end()..]);
            match &self.of_packed[found.pattern()].1 {
                Packed::Sid(sid) => match before {
                    [.., 1, count] => usize::from(*count) <= 15 && 4 * usize::from(*count) + 6 >= sid.len(),
                    _ => false,
                },
                Packed::Sixteen(..) => true,
                Packed::Address(_) => matches!(before, [.., 2, 0, _, _]) && (!is_chunk || after.starts_with(&[0; 8])),
            }
        })?;
        let (key, packed) = &self.of_packed[found.pattern()];
        let form = match packed {
            Packed::Sid(_) => "a SID",
            Packed::Sixteen(_, name) => name,
            Packed::Address(_) => "a socket address",
        };
        Some(Place {
            key: *key,
            form,
            within: " in bytes",
            at: found.start(),
        })
    }

    /// The first form in what a text encodes. The place is that of the encoded text.
    fn in_decoded(&self, text: &[u8], scratch: &mut Scratch) -> Option<Place> {
        let mut decoded = std::mem::take(&mut scratch.decoded);
        decoded.read(text, !self.letters.0.is_empty());
        let found = self.decoded(&decoded, &mut scratch.decoded_wide);
        scratch.decoded = decoded;
        found
    }

    fn decoded(&self, decoded: &Decoded, wide: &mut Vec<u8>) -> Option<Place> {
        let bytes = &decoded.bytes;
        let encoding = |at: usize| decoded.run(at).map(|run| run.encoding);
        let counts = |pattern: &Pattern, at: usize| {
            decoded.run(at).is_some_and(|run| match run.encoding {
                Encoding::Base64 => pattern.bytes >= MIN_BYTES || run.is_whole && is_text(&bytes[run.start..run.end]),
                Encoding::Hexadecimal => pattern.bytes >= MIN_NARROW || is_text(&bytes[run.start..run.end]),
                Encoding::Escapes => true,
            })
        };
        let mut found = self.plain(bytes, View::Text, counts);
        found = found.or_else(|| self.in_packed(bytes, false));
        for parity in 0..2.min(bytes.len()) {
            found = found.or_else(|| {
                self.letters.read(&bytes[parity..], wide);
                let at = |at: usize| parity + self.letters.offset(&bytes[parity..], at);
                let counts = |pattern: &Pattern, found: usize| match encoding(at(found)) {
                    Some(Encoding::Base64) => 2 * pattern.chars >= MIN_BYTES,
                    encoding => encoding == Some(Encoding::Hexadecimal),
                };
                let mut place = self.plain(wide, View::Wide, counts)?;
                place.at = at(place.at);
                Some(place)
            });
        }
        let addresses = || {
            decoded.short().find_map(|run| {
                let mut windows = bytes[run.start..run.end].windows(4);
                let key = windows.find_map(|window| self.typed.address(window))?;
                Some(Place {
                    key,
                    form: "an address",
                    within: "",
                    at: run.start,
                })
            })
        };
        let mut place = found.or_else(addresses)?;
        let run = decoded.run(place.at)?;
        place.at = run.source;
        place.within = match run.encoding {
            Encoding::Hexadecimal => " in hexadecimal",
            Encoding::Base64 => " in base64",
            Encoding::Escapes => " with escapes",
        };
        Some(place)
    }
}

impl Around {
    fn is_word(self) -> bool {
        matches!(self, Around::Word | Around::Name)
    }

    /// Whether a text counts after and before some bytes.
    fn fits(self, before: &[u8], after: &[u8]) -> bool {
        let free = |is: fn(&u8) -> bool| !before.last().is_some_and(is) && !after.first().is_some_and(is);
        match self {
            Around::Anything => true,
            Around::NoDigitAfter => !after.first().is_some_and(u8::is_ascii_digit),
            Around::NoDigit => free(u8::is_ascii_digit),
            Around::NoGroup => free(|byte| byte.is_ascii_hexdigit() || *byte == b':'),
            Around::Word => free(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80),
            Around::Name => free(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | 0x80..)),
        }
    }
}

/// Whether bytes are text: all of them printable, in UTF-8 or UTF-16.
fn is_text(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    std::str::from_utf8(bytes).is_ok_and(|text| !text.contains(|c: char| c.is_control() && !c.is_whitespace()))
}

/// Stands for characters that no spelling has.
const OTHER: u8 = 1;

impl Letters {
    fn add(&mut self, text: &str) {
        let cases = |c: char| std::iter::once(c).chain(c.to_lowercase()).chain(c.to_uppercase());
        self.0.extend(text.chars().flat_map(cases).filter(|c| !c.is_ascii()));
    }

    /// Reads UTF-16LE as UTF-8. Letters beyond ASCII become lower case.
    fn read(&self, bytes: &[u8], text: &mut Vec<u8>) {
        text.clear();
        let units = bytes.as_chunks::<2>().0;
        if self.0.is_empty() {
            let ascii = |unit: &[u8; 2]| if unit[1] == 0 && unit[0] < 0x80 { unit[0] } else { OTHER };
            text.extend(units.iter().map(ascii));
            return;
        }
        for c in char::decode_utf16(units.iter().map(|unit| u16::from_le_bytes(*unit))) {
            self.push(c.unwrap_or(char::REPLACEMENT_CHARACTER), text);
        }
    }

    fn push(&self, c: char, text: &mut Vec<u8>) {
        if c.is_ascii() {
            return text.push(c as u8);
        }
        if !self.0.contains(&c) {
            return text.push(OTHER);
        }
        let mut bytes = [0; 4];
        for lower in c.to_lowercase() {
            text.extend(lower.encode_utf8(&mut bytes).as_bytes());
        }
    }

    /// Where the character at an offset of the text is in the UTF-16 that it was read from.
    fn offset(&self, bytes: &[u8], at: usize) -> usize {
        if self.0.is_empty() {
            return 2 * at;
        }
        let units = bytes.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
        let (mut text, mut offset) = (Vec::new(), 0);
        for c in char::decode_utf16(units) {
            let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.push(c, &mut text);
            if text.len() > at {
                break;
            }
            offset += 2 * c.len_utf16();
        }
        offset
    }
}

/// A text in Windows-1252; `None` if it has other characters. Those from U+00A0 to U+00FF have the same numbers there.
fn ansi(text: &str) -> Option<Vec<u8>> {
    let byte = |c: char| match u32::from(c) {
        number @ (0..0x80 | 0xa0..=0xff) => Some(number as u8),
        _ => None,
    };
    text.chars().map(byte).collect()
}

/// The ID of the record that an offset of a chunk is in.
fn record_at(chunk: &[u8], offset: usize) -> Option<u64> {
    let is_in = |record: &Record| (record.offset..record.offset + record.size).contains(&(offset as u32));
    records(chunk).find(is_in).map(|record| record.id)
}
