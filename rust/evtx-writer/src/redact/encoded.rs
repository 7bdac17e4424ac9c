//! Parts of a text that encode bytes: hexadecimal digits and base64; and texts with escapes, as in JSON, URLs and XML.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// The shortest runs of characters that are decoded: four bytes of hexadecimal, six characters of padded base64.
const DIGITS: usize = 8;
const PADDED: usize = 6;
/// The fewest bytes of a text that can encode something.
pub(super) const SHORTEST: usize = DIGITS;
/// The most bytes that only count in base64 if they look like text, or like UTF-16, and the fewest that count at all, unless
/// the whole word is a text.
const SHORT: usize = 16;
const FEW: usize = 8;
/// The most bytes of a number in hexadecimal.
const MAX_NUMBER: usize = 8;
/// What can be between two hexadecimal bytes.
const BETWEEN: [&str; 9] = [", 0x", ",0x", " 0x", "\\x", " ", "-", ":", "\\", ","];

/// A part of a text, in characters, that encodes bytes.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) range: Range<usize>,
    pub(super) bytes: Vec<u8>,
    /// Whether it can encode an address of four bytes: a number of at most eight bytes, or all of a word in base64.
    pub(super) is_short: bool,
    style: Style,
}

#[derive(Debug, Clone)]
enum Style {
    Hex { between: &'static str, is_upper: bool },
    Base64 { is_url: bool, is_padded: bool },
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

fn byte_at(text: &[u8], at: usize) -> Option<u8> {
    match text.get(at..at + 2)? {
        &[high, low] => Some(digit(high)? * 16 + digit(low)?),
        _ => None,
    }
}

/// The words of characters of one kind: at least `least` of them.
fn words(text: &[u8], least: usize, is: impl Fn(u8) -> bool) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let start = at;
            while at < text.len() && is(text[at]) {
                at += 1;
            }
            if at - start >= least {
                return Some(start..at);
            }
            at += usize::from(at == start);
        }
        None
    })
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// The parts of a text that may encode bytes. Characters beyond ASCII are any bytes that are not ASCII.
pub(super) fn parts(text: &[u8]) -> Vec<Part> {
    let mut found = Vec::new();
    for word in words(text, DIGITS, |byte| byte.is_ascii_hexdigit()) {
        for start in [word.start, word.start + 1] {
            let end = word.end - (word.end - start) % 2;
            let digits = &text[start..end];
            found.push(Part {
                range: start..end,
                bytes: (0..digits.len())
                    .step_by(2)
                    .filter_map(|at| byte_at(digits, at))
                    .collect(),
                is_short: digits.len() <= 2 * MAX_NUMBER,
                style: Style::Hex {
                    between: "",
                    is_upper: digits.iter().any(u8::is_ascii_uppercase),
                },
            });
        }
    }
    separated(text, &mut found);
    for word in words(text, PADDED, is_base64) {
        let padding = text[word.end..].iter().take_while(|byte| **byte == b'=').count();
        // Not a GUID or a SID.
        let letters = text[word.clone()]
            .iter()
            .filter(|byte| matches!(byte, b'g'..=b'z' | b'G'..=b'Z'))
            .count();
        if word.len() < DIGITS && padding == 0 || letters < 2 && word.len() >= SHORT {
            continue;
        }
        for skipped in 0..4.min(word.len()) {
            let start = word.start + skipped;
            let encoded = &text[start..word.end];
            if skipped > 0 && encoded.len() * 3 / 4 < FEW {
                break;
            }
            let is_url = encoded.iter().any(|byte| matches!(byte, b'-' | b'_'));
            let plain: Vec<u8> = encoded[..encoded.len() - usize::from(encoded.len() % 4 == 1)]
                .iter()
                .map(|byte| match byte {
                    b'-' => b'+',
                    b'_' => b'/',
                    other => *other,
                })
                .collect();
            let Some(bytes) = decode(&plain).filter(|bytes| is_plausible(bytes, skipped == 0)) else {
                continue;
            };
            found.push(Part {
                range: start..word.end + padding,
                is_short: skipped == 0 && bytes.len() == 4,
                bytes,
                style: Style::Base64 {
                    is_url,
                    is_padded: padding > 0,
                },
            });
        }
    }
    found
}

/// Whether bytes may be what somebody has encoded. Any word is base64, and decodes to noise.
fn is_plausible(bytes: &[u8], is_whole: bool) -> bool {
    let is_text = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    let has_run = || bytes.windows(FEW).any(|run| run.iter().all(is_text));
    let is_word = || is_whole && (bytes.len() == 4 || std::str::from_utf8(bytes).is_ok());
    bytes.len() >= SHORT || bytes.len() >= FEW && (bytes.contains(&0) || has_run()) || is_word()
}

/// Decodes base64, whatever the bits after the last byte are.
fn decode(plain: &[u8]) -> Option<Vec<u8>> {
    use base64::alphabet::STANDARD;
    use base64::engine::GeneralPurposeConfig;
    const ANY: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new()
            .with_encode_padding(false)
            .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    ANY.decode(plain).ok()
}

/// Adds the parts of hexadecimal bytes with something between them.
fn separated(text: &[u8], found: &mut Vec<Part>) {
    let mut at = 0;
    while at + DIGITS < text.len() {
        let starts = at == 0 || !text[at - 1].is_ascii_hexdigit();
        let between = BETWEEN.into_iter().find(|between| {
            let next = &text[at + 2..];
            starts && next.starts_with(between.as_bytes()) && byte_at(next, between.len()).is_some()
        });
        let (Some(first), Some(between)) = (byte_at(text, at), between) else {
            at += 1;
            continue;
        };
        let (mut bytes, mut end) = (vec![first], at + 2);
        while text[end..].starts_with(between.as_bytes())
            && let Some(byte) = byte_at(text, end + between.len())
        {
            bytes.push(byte);
            end += between.len() + 2;
        }
        if bytes.len() >= DIGITS / 2 {
            let is_upper = text[at..end].iter().any(u8::is_ascii_uppercase);
            found.push(Part {
                range: at..end,
                bytes,
                is_short: (end - at) / (between.len() + 2) < MAX_NUMBER,
                style: Style::Hex { between, is_upper },
            });
        }
        at = end;
    }
}

impl Part {
    /// Whether it is base64, which any word is.
    pub(super) fn is_base64(&self) -> bool {
        matches!(self.style, Style::Base64 { .. })
    }

    /// Other bytes in the same style.
    pub(super) fn encode(&self, bytes: &[u8]) -> String {
        match self.style {
            Style::Hex { between, is_upper } => {
                let byte = |byte: &u8| {
                    if is_upper {
                        format!("{byte:02X}")
                    } else {
                        format!("{byte:02x}")
                    }
                };
                bytes.iter().map(byte).collect::<Vec<_>>().join(between)
            }
            Style::Base64 { is_url, is_padded } => {
                let mut text = if is_url { URL_SAFE_NO_PAD } else { STANDARD_NO_PAD }.encode(bytes);
                while is_padded && text.len() % 4 != 0 {
                    text.push('=');
                }
                text
            }
        }
    }
}

/// A kind of escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escapes {
    Url,
    Json,
    Xml,
}

impl Escapes {
    pub(super) const ALL: [Escapes; 3] = [Escapes::Url, Escapes::Json, Escapes::Xml];

    /// What an escape begins with.
    fn mark(self) -> u8 {
        match self {
            Escapes::Url => b'%',
            Escapes::Json => b'\\',
            Escapes::Xml => b'&',
        }
    }

    /// Whether a text may have such escapes.
    pub(super) fn may_be_in(self, text: &[u8]) -> bool {
        let starts = |rest: &[u8]| match (self, rest) {
            (Escapes::Url, [b'%', high, low, ..]) => high.is_ascii_hexdigit() && low.is_ascii_hexdigit(),
            (Escapes::Json, [b'\\', b'u', rest @ ..]) => rest.iter().take(4).all(u8::is_ascii_hexdigit),
            (Escapes::Json, [b'\\', b'\\' | b'"' | b'/' | b'\'', ..]) => true,
            (Escapes::Xml, [b'&', rest @ ..]) => rest.iter().take(12).any(|byte| *byte == b';'),
            _ => false,
        };
        let mut at = 0;
        while let Some(next) = text[at..].iter().position(|byte| *byte == self.mark()) {
            at += next;
            if starts(&text[at..]) {
                return true;
            }
            at += 1;
        }
        false
    }

    /// Resolves the escapes of a text: the characters, and where each comes from. `None` if there are none.
    pub(super) fn resolve(self, text: &[(char, usize)]) -> Option<Vec<(char, usize)>> {
        let (mut out, mut at, mut any) = (Vec::new(), 0, false);
        while let Some(&(c, place)) = text.get(at) {
            let escape = if c == char::from(self.mark()) {
                self.one(&text[at..])
            } else {
                None
            };
            match escape {
                Some((chars, length)) => {
                    any = true;
                    out.extend(chars.chars().map(|c| (c, place)));
                    at += length;
                }
                None => {
                    let is_space = self == Escapes::Url && c == '+';
                    out.push((if is_space { ' ' } else { c }, place));
                    at += 1;
                }
            }
        }
        any.then_some(out)
    }

    /// The characters that the escapes at the start of a text stand for, and how many characters they take.
    fn one(self, text: &[(char, usize)]) -> Option<(String, usize)> {
        let hex = |from: usize, count: usize| {
            let digits = text.get(from..from + count)?;
            digits
                .iter()
                .try_fold(0, |number, (c, _)| Some(number * 16 + c.to_digit(16)?))
        };
        match self {
            Escapes::Url => {
                let mut bytes = Vec::new();
                while text.get(3 * bytes.len()).is_some_and(|(c, _)| *c == '%')
                    && let Some(byte) = hex(3 * bytes.len() + 1, 2)
                {
                    bytes.push(byte as u8);
                    let is_text = std::str::from_utf8(&bytes);
                    if let Ok(text) = is_text {
                        return Some((text.to_owned(), 3 * bytes.len()));
                    }
                    if bytes.len() == 4 {
                        break;
                    }
                }
                // A code page, perhaps. The first byte stands for itself.
                let first = bytes.first()?;
                Some((char::from(*first).to_string(), 3))
            }
            Escapes::Json => match text.get(1)?.0 {
                c @ ('\\' | '"' | '/' | '\'') => Some((c.to_string(), 2)),
                'u' => {
                    let first = hex(2, 4)?;
                    let pair = || {
                        (text.get(6)?.0 == '\\' && text.get(7)?.0 == 'u')
                            .then(|| hex(8, 4))
                            .flatten()
                    };
                    let units: Vec<u16> = if (0xd800..0xdc00).contains(&first) {
                        [first, pair()?].map(|unit| unit as u16).into()
                    } else {
                        vec![first as u16]
                    };
                    Some((String::from_utf16(&units).ok()?, 6 * units.len()))
                }
                _ => None,
            },
            Escapes::Xml => {
                let end = text.iter().take(12).position(|(c, _)| *c == ';')?;
                let name: String = text[1..end].iter().map(|(c, _)| *c).collect();
                let number = match (name.as_str(), name.strip_prefix('#')) {
                    ("amp", _) => u32::from('&'),
                    ("lt", _) => u32::from('<'),
                    ("gt", _) => u32::from('>'),
                    ("quot", _) => u32::from('"'),
                    ("apos", _) => u32::from('\''),
                    (_, Some(number)) => match number.strip_prefix(['x', 'X']) {
                        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                        None => number.parse().ok()?,
                    },
                    _ => return None,
                };
                Some((char::from_u32(number)?.to_string(), end + 1))
            }
        }
    }

    /// A text with escapes.
    pub(super) fn escape(self, text: &str) -> String {
        let mut out = String::new();
        for c in text.chars() {
            match (self, c) {
                (Escapes::Url, c) if c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~') => out.push(c),
                (Escapes::Url, c) => {
                    let mut bytes = [0; 4];
                    c.encode_utf8(&mut bytes)
                        .bytes()
                        .for_each(|byte| out += &format!("%{byte:02X}"));
                }
                (Escapes::Json, '\\' | '"') => out.extend(['\\', c]),
                (Escapes::Xml, '&' | '<' | '>') => out += &format!("&#{};", u32::from(c)),
                (_, c) => out.push(c),
            }
        }
        out
    }
}
