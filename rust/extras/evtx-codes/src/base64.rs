//! Text within base64, as PowerShell and others encode commands.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use regex_automata::meta::Regex;

/// Accepts any bits after the last byte. Padding is removed before.
static BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

const BYTE_ORDER_MARK: char = '\u{FEFF}';

/// Letters that texts do not contain: code points without a character, and unused control characters.
static NO_TEXT: LazyLock<Regex> =
    LazyLock::new(|| class(r"[^\x07-\x0d\x1b\x{85}\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}\p{Cf}\p{Co}]"));

/// Letters of a Chinese or Japanese text.
static CHINESE_OR_JAPANESE: LazyLock<Regex> = LazyLock::new(|| {
    class(r"[\p{sc=Common}\p{sc=Inherited}\p{sc=Latin}\p{sc=Hiragana}\p{sc=Katakana}\x{4E00}-\x{9FFF}]")
});

/// Letters of a Korean text.
static KOREAN: LazyLock<Regex> = LazyLock::new(|| class(r"[\p{sc=Common}\p{sc=Inherited}\p{sc=Latin}\p{sc=Hangul}]"));

fn class(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| unreachable!("{pattern}: {error}"))
}

/// Decodes base64, also of the URL-safe alphabet, to a text in UTF-8 or UTF-16LE. `None` if it does not look like one.
pub(crate) fn decode(base64: &str) -> Option<String> {
    text(&bytes(base64)?).map(|(text, _)| text)
}

/// The bytes within base64, also of the URL-safe alphabet.
pub(crate) fn bytes(base64: &str) -> Option<Vec<u8>> {
    let mut plain: Vec<u8> = base64.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    while plain.last() == Some(&b'=') {
        plain.pop();
    }
    for byte in &mut plain {
        *byte = match byte {
            b'-' => b'+',
            b'_' => b'/',
            _ => *byte,
        };
    }
    BASE64.decode(plain).ok()
}

/// The bytes as a text in UTF-8 or UTF-16LE, and whether it is UTF-16LE. `None` if they do not look like one.
pub(crate) fn text(bytes: &[u8]) -> Option<(String, bool)> {
    let utf8 = utf8(bytes).map(|text| (text.to_owned(), false));
    utf8.or_else(|| utf16(bytes).map(|text| (text, true)))
}

/// The bytes as UTF-8, without trailing zeros. Unused control characters mean that they are UTF-16. So does white space
/// in every second byte: the letters of Indian alphabets.
fn utf8(bytes: &[u8]) -> Option<&str> {
    let (units, odd) = bytes.as_chunks::<2>();
    let last = units
        .iter()
        .rposition(|unit| *unit != [0, 0])
        .map_or(0, |last| last + 1);
    if odd.is_empty() && last >= 3 && units[..last].iter().all(|unit| matches!(unit[1], 0x09..=0x0d)) {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.trim_end_matches('\0').trim_start_matches(BYTE_ORDER_MARK);
    let is_control = |letter| matches!(letter, '\0'..='\x06' | '\x0e'..='\x1a' | '\x1c'..='\x1f');
    (!text.is_empty() && !text.contains(is_control)).then_some(text)
}

/// The bytes as UTF-16LE, without trailing zeros. Most pairs of random bytes are letters too. So the text must start with
/// a byte order mark, or two in three of its letters must be below U+2100 (the alphabets of Europe and India), or nine in
/// ten of them Chinese and Japanese, or Korean.
fn utf16(bytes: &[u8]) -> Option<String> {
    let (units, []) = bytes.as_chunks::<2>() else {
        return None;
    };
    let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
    let text: String = char::decode_utf16(units).collect::<Result<_, _>>().ok()?;
    let whole = text.trim_start_matches(BYTE_ORDER_MARK).trim_end_matches('\0');
    if whole.is_empty() || whole.contains('\u{FFFD}') || NO_TEXT.is_match(whole) {
        return None;
    }
    let letters = whole.chars().count();
    let is_one_in = |count: usize, part: usize| (letters - count) * part <= letters;
    let is_known = text.starts_with(BYTE_ORDER_MARK)
        || is_one_in(whole.chars().filter(|letter| *letter < '\u{2100}').count(), 3)
        || is_one_in(CHINESE_OR_JAPANESE.find_iter(whole).count(), 10)
        || is_one_in(KOREAN.find_iter(whole).count(), 10);
    is_known.then(|| whole.to_owned())
}
