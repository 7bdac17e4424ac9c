//! The text in a base64 text, as PowerShell and others write it.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use regex_automata::meta::Regex;

/// Takes no padding, and any bits behind the last byte.
static BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

const BYTE_ORDER_MARK: char = '\u{FEFF}';

/// Letters that are in no text: those that Unicode does not have, and controls without a use.
static NO_TEXT: LazyLock<Regex> =
    LazyLock::new(|| class(r"[^\x07-\x0d\x1b\x{85}\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}\p{Cf}\p{Co}]"));

/// Letters of a Chinese or Japanese text.
static CHINESE_OR_JAPANESE: LazyLock<Regex> = LazyLock::new(|| {
    class(r"[\p{sc=Common}\p{sc=Inherited}\p{sc=Latin}\p{sc=Hiragana}\p{sc=Katakana}\x{4E00}-\x{9FFF}]")
});

/// Letters of a Korean text.
static KOREAN: LazyLock<Regex> = LazyLock::new(|| class(r"[\p{sc=Common}\p{sc=Inherited}\p{sc=Latin}\p{sc=Hangul}]"));

/// A class of letters.
fn class(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| unreachable!("{pattern}: {error}"))
}

/// The text that a base64 text holds, in UTF-8 or UTF-16LE; `None` for what is no base64, or holds no text. White space,
/// padding and the alphabet of URLs do not matter.
pub fn text_of(base64: &str) -> Option<String> {
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
    let bytes = BASE64.decode(plain).ok()?;
    utf8(&bytes).map(str::to_owned).or_else(|| utf16(&bytes))
}

/// UTF-8, but for the zeros behind it, unless it has controls that no text has: UTF-16 is full of them. If each second
/// byte is a tab or the like, this is UTF-16 of an alphabet of India.
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

/// UTF-16LE, but for the zeros behind it. Bytes of any kind, read in pairs, give any letters. So it starts with a byte
/// order mark, or has two in three letters below U+2100, where the alphabets of Europe and India are, or nine in ten of
/// Chinese and Japanese, or of Korean.
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
