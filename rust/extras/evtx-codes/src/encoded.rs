//! Texts within Base64 and hexadecimal digits, also compressed, anywhere in a value.

use std::io::Read;
use std::sync::LazyLock;

use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};
use regex_automata::meta::Regex;

use crate::base64;

/// Runs of at least 16 letters of Base64, which hexadecimal digits are too, also broken into lines of at least 60.
static RUNS: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?:[A-Za-z0-9+/]{60,}\r?\n)+[A-Za-z0-9+/]+={0,2}|[A-Za-z0-9+/]{16,}={0,2}";
    Regex::new(pattern).unwrap_or_else(|error| unreachable!("{pattern}: {error}"))
});

/// How often a text within a text is decoded: `powershell -enc` of a script that expands another one takes three.
const DEPTH: usize = 4;

/// The bytes that all compressed texts of a value can have together: so many, and so many for each byte of the value.
const EXPANDED: (usize, usize) = (1 << 16, 8);

/// How much more likely bytes must be in a text than by chance, in bits: so about one of 16 million random runs is taken for one.
const EVIDENCE: usize = 24;

/// A text that a value encodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedText {
    /// Its encodings from the outside in, such as `base64/gzip`.
    pub encoding: String,
    /// The text.
    pub text: String,
}

/// The texts that a value encodes in Base64 or hexadecimal digits, in UTF-8 or UTF-16LE, also compressed (gzip, zlib,
/// deflate), and those that these encode. Of a compressed text, only the start is decoded if it is much longer.
pub fn decoded_texts(value: &str) -> Vec<DecodedText> {
    let mut found = Vec::new();
    let mut left = EXPANDED.0 + value.len() * EXPANDED.1;
    add(value, "", DEPTH, &mut left, &mut found);
    found
}

/// Adds the texts that a text with some encodings encodes. `left` bytes may be expanded.
fn add(outer: &str, encodings: &str, depth: usize, left: &mut usize, found: &mut Vec<DecodedText>) {
    for run in RUNS.find_iter(outer) {
        let run = &outer[run.range()];
        let digits = run.strip_prefix("0x").unwrap_or(run);
        let bytes = [("hex", bytes_of_hex(digits)), ("base64", base64::bytes(run))];
        let text = bytes.into_iter().find_map(|(name, bytes)| {
            let bytes = bytes?;
            let plain = text(&bytes).map(|text| (name.to_owned(), text));
            plain.or_else(|| expanded(&bytes, left).map(|(by, text)| (format!("{name}/{by}"), text)))
        });
        if let Some((encoding, text)) = text {
            let encoding = format!("{encodings}{encoding}");
            let (inner, number) = (format!("{encoding}/"), found.len());
            found.push(DecodedText { encoding, text });
            if depth > 1 {
                let text = std::mem::take(&mut found[number].text);
                add(&text, &inner, depth - 1, left, found);
                found[number].text = text;
            }
        }
    }
}

/// The bytes of hexadecimal digits.
pub(crate) fn bytes_of_hex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    pairs
        .iter()
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect()
}

/// The text that bytes have compressed, and by which method. Of gzip and zlib, the start is enough.
fn expanded(bytes: &[u8], left: &mut usize) -> Option<(&'static str, String)> {
    let (mut input, mut plain) = (bytes, Vec::new());
    // RFC 1952, 2.3.1; RFC 1950, 2.2.
    let (name, mut decoder): (_, Box<dyn Read + '_>) = match bytes {
        [0x1f, 0x8b, 8, ..] => ("gzip", Box::new(GzDecoder::new(&mut input))),
        [0x78, flags, ..] if (0x7800 + u16::from(*flags)) % 31 == 0 => ("zlib", Box::new(ZlibDecoder::new(&mut input))),
        // Longer than hashes. Nothing marks its start, and random bytes often expand to one letter, over and over.
        _ if bytes.len() > 64 => ("deflate", Box::new(DeflateDecoder::new(&mut input))),
        _ => return None,
    };
    let outcome = decoder.by_ref().take(*left as u64).read_to_end(&mut plain);
    let is_whole = outcome.is_ok() && decoder.read(&mut [0]).is_ok_and(|len| len == 0);
    drop(decoder);
    *left -= plain.len();
    if name == "deflate" && !(is_whole && input.is_empty()) {
        return None;
    }
    // The end can be within a letter.
    let ends = (0..=plain.len()).rev().take(if is_whole { 1 } else { 4 });
    ends.filter_map(|end| text(&plain[..end]))
        .next()
        .map(|text| (name, text))
}

/// The bytes as a text, if they hardly look like one by chance.
fn text(bytes: &[u8]) -> Option<String> {
    let (text, is_wide) = base64::text(bytes)?;
    let bits = |letter: char| {
        8 * if is_wide {
            2 * letter.len_utf16()
        } else {
            letter.len_utf8()
        }
    };
    // How many bits a letter takes in texts, by how frequent it is there, at least among its own kind.
    let cost = |letter: char, last: Option<char>| match letter {
        // Among ideographs, a single one is chance.
        '\0'..='\x7f' if last.is_some_and(|last| last >= '\u{3040}') => 16,
        ' ' => 3,
        'a'..='z' => 5,
        '\t' | '\n' | '\r' => 7,
        '\0'..='\x7f' => 8,
        // Other alphabets; Chinese, Japanese and Korean.
        '\u{80}'..'\u{2100}' if letter.is_alphabetic() => 12,
        '\u{3040}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => 15,
        _ => 20,
    };
    // A letter that is repeated tells nothing new.
    let (mut all, mut costs, mut last) = (0, 0, None);
    for letter in text.chars() {
        let before = last.replace(letter);
        if before != Some(letter) {
            all += bits(letter);
            costs += cost(letter, before);
        }
    }
    (all >= costs + EVIDENCE).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use ::base64::Engine as _;
    use ::base64::engine::general_purpose::STANDARD;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn a_bomb_is_decoded_up_to_the_limit() {
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        for _ in 0..1 << 12 {
            bomb.write_all("whoämi ".repeat(1 << 10).as_bytes()).expect("memory");
        }
        let bomb = STANDARD.encode(bomb.finish().expect("memory"));
        let found = decoded_texts(&format!("{bomb} {bomb}"));
        let expanded: usize = found.iter().map(|found| found.text.len()).sum();
        let limit = EXPANDED.0 + (2 * bomb.len() + 1) * EXPANDED.1;
        assert!(found[0].encoding == "base64/gzip" && found[0].text.starts_with("whoämi whoämi"));
        assert!((limit - 3..=limit).contains(&expanded), "{expanded} of {limit}");
    }

    #[test]
    fn texts_in_texts_are_decoded_to_a_depth() {
        let (mut text, mut outer) = ("Get-Process | Out-File".to_owned(), Vec::new());
        for _ in 0..=DEPTH {
            outer.insert(0, text.clone());
            text = STANDARD.encode(text);
        }
        let found: Vec<_> = decoded_texts(&text).into_iter().map(|found| found.text).collect();
        assert_eq!(found, outer[..DEPTH]);
    }
}
