//! Text: converts UTF-16LE and Windows-1252 to UTF-8 and escapes it, in one pass.

/// Where text is written to, which decides what is escaped. U+FFFD replaces lone surrogates everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escaping {
    /// A column, a name, or a CDATA section of XML: nothing is escaped.
    Plain,
    /// A JSON string: quotes, backslashes and C0 controls are escaped.
    Json,
    /// The text of an XML element: `&`, `<` and `>` are escaped. Other characters that XML 1.0 does not allow stay, as in
    /// the XML that Windows writes: issues 11006 and 11357 of elastic/beats have some with U+0001 and U+0003.
    XmlText,
    /// The value of an XML attribute: as [`Escaping::XmlText`], with quotes and apostrophes escaped.
    XmlAttribute,
}

/// Whether an escaping writes a UTF-16 unit as one byte, unchanged: it is ASCII, not escaped, and no NUL.
#[inline(always)]
fn is_bare(unit: u16, escaping: Escaping) -> bool {
    let is = |byte: u8| unit == u16::from(byte);
    let escaped = match escaping {
        Escaping::Plain => false,
        Escaping::Json => (unit < 0x20) | is(b'"') | is(b'\\'),
        Escaping::XmlText => is(b'&') | is(b'<') | is(b'>'),
        Escaping::XmlAttribute => is(b'&') | is(b'<') | is(b'>') | is(b'"') | is(b'\''),
    };
    (unit.wrapping_sub(1) < 0x7f) & !escaped
}

/// The units as bytes, if the escaping writes all of them unchanged. Without branches, so that the compiler vectorizes
/// it.
#[inline(always)]
fn narrow<const UNITS: usize>(units: &[[u8; 2]; UNITS], escaping: Escaping) -> Option<[u8; UNITS]> {
    let mut bytes = [0; UNITS];
    let mut bare = true;
    for (byte, unit) in bytes.iter_mut().zip(units) {
        let unit = u16::from_le_bytes(*unit);
        *byte = unit as u8;
        bare &= is_bare(unit, escaping);
    }
    bare.then_some(bytes)
}

/// The units of UTF-16LE text, without a NUL at its end, which the strings of some providers have.
#[inline(always)]
fn units_of(text: &[u8]) -> &[[u8; 2]] {
    match text.as_chunks::<2>().0 {
        [units @ .., [0, 0]] => units,
        units => units,
    }
}

/// At most twelve characters of ASCII as the bytes of a number, the first one in the lowest byte, and how
/// many there are; `None` for other UTF-16LE text. Most values are this short, and their text stays in registers.
#[inline(always)]
pub(crate) fn short_ascii(text: &[u8]) -> Option<(u128, usize)> {
    let units = units_of(text);
    let four = |units: &[[u8; 2]; 4]| narrow(units, Escaping::Plain).map(|bytes| u128::from(u32::from_le_bytes(bytes)));
    let len = units.len();
    let bytes = match len {
        0..4 => {
            let mut bytes = 0;
            for (i, unit) in units.iter().enumerate() {
                let unit = u16::from_le_bytes(*unit);
                if !is_bare(unit, Escaping::Plain) {
                    return None;
                }
                bytes |= u128::from(unit) << (8 * i);
            }
            bytes
        }
        // The last four overlap those before them.
        4..=12 => {
            let middle = match units.get(4..8).and_then(|units| units.first_chunk::<4>()) {
                Some(units) => four(units)? << 32,
                None => 0,
            };
            four(units.first_chunk()?)? | middle | four(units.last_chunk()?)? << (8 * (len - 4))
        }
        _ => return None,
    };
    Some((bytes, len))
}

/// The decimal digits of a number below 100,000,000, in the form of [`short_ascii`].
#[inline]
pub(crate) fn short_decimal(number: u32) -> (u128, usize) {
    let digits = eight_digits(number);
    let zeros = (digits.trailing_zeros() / 8).min(7);
    let text = (digits | 0x3030_3030_3030_3030) >> (8 * zeros);
    (text.into(), 8 - zeros as usize)
}

/// The eight decimal digits, 0 to 9, of a number below 100,000,000, the first one in the lowest byte. Makes all of them
/// at once: splits the number into two halves, four quarters, eight digits.
#[inline]
pub(super) fn eight_digits(number: u32) -> u64 {
    let halves = u64::from(number / 10_000) | u64::from(number % 10_000) << 32;
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let quarters = hundreds | (halves - hundreds * 100) << 16;
    let tens = ((quarters * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (quarters - tens * 10) << 8
}

/// `0x` and the hexadecimal digits of a number, in the form of [`short_ascii`].
#[inline]
pub(crate) fn short_hex(number: u32) -> (u128, usize) {
    let number = u64::from(number);
    let digits = (64 - number.leading_zeros()).div_ceil(4).max(1);
    let halves = (number << 16 | number) & 0x0000_ffff_0000_ffff;
    let bytes = (halves << 8 | halves) & 0x00ff_00ff_00ff_00ff;
    let nibbles = (bytes << 4 | bytes) & 0x0f0f_0f0f_0f0f_0f0f;
    let letters = ((nibbles + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
    let text = (nibbles + 0x3030_3030_3030_3030 + letters * 0x27).swap_bytes();
    let text = u128::from(text >> (8 * (8 - digits)));
    (0x7830 | text << 16, 2 + digits as usize)
}

/// Appends UTF-16LE text as UTF-8, without NULs: text after one must not be hidden. Ignores an odd byte at the end.
#[inline]
pub fn push_utf16(out: &mut Vec<u8>, text: &[u8], escaping: Escaping) {
    match escaping {
        Escaping::Plain => push_units(out, text, Escaping::Plain),
        Escaping::Json => push_units(out, text, Escaping::Json),
        Escaping::XmlText => push_units(out, text, Escaping::XmlText),
        Escaping::XmlAttribute => push_units(out, text, Escaping::XmlAttribute),
    }
}

/// As [`push_utf16`]. Inlined, so that the escaping is a constant.
#[inline(always)]
fn push_units(out: &mut Vec<u8>, text: &[u8], escaping: Escaping) {
    let text = units_of(text);
    out.reserve(text.len() + 16);
    let mut rest = text;
    while let Some((units, tail)) = rest.split_first_chunk::<16>() {
        match narrow(units, escaping) {
            Some(bytes) => {
                out.extend_from_slice(&bytes);
                rest = tail;
            }
            None if escaping == Escaping::Json && push_escaped(out, units) => rest = tail,
            None if *units == [[0; 2]; 16] => rest = tail,
            None => rest = push_slowly(out, rest, 16, escaping),
        }
    }
    if let Some((units, tail)) = rest.split_first_chunk::<8>()
        && let Some(bytes) = narrow(units, escaping)
    {
        out.extend_from_slice(&bytes);
        rest = tail;
    }
    if let Some((units, tail)) = rest.split_first_chunk::<4>()
        && let Some(bytes) = narrow(units, escaping)
    {
        out.extend_from_slice(&bytes);
        rest = tail;
    }
    if rest.is_empty() {
        return;
    }
    // The last one to three units, together with units before them that were written already: those are replaced.
    if rest.len() < 4
        && let Some(units) = text.last_chunk::<4>()
        && let Some(bytes) = narrow(units, escaping)
    {
        out.truncate(out.len() - (4 - rest.len()));
        out.extend_from_slice(&bytes);
        return;
    }
    if escaping != Escaping::Json || !push_escaped(out, rest) {
        push_slowly(out, rest, usize::MAX, escaping);
    }
}

/// The JSON form of each ASCII character, and its length in bytes; 0 for characters that take more than two.
const JSON: [([u8; 2], u8); 128] = {
    let mut json = [([0; 2], 0); 128];
    let mut byte = 0x20;
    while byte < 128 {
        json[byte] = ([byte as u8, 0], 1);
        byte += 1;
    }
    let escapes = [*b"\"\"", *b"\\\\", *b"\nn", *b"\rr", *b"\tt", *b"\x08b", *b"\x0cf"];
    let mut i = 0;
    while i < escapes.len() {
        let [character, letter] = escapes[i];
        json[character as usize] = ([b'\\', letter], 2);
        i += 1;
    }
    json
};

/// Appends up to 16 units, escaped for JSON. Returns false, without a change, if one needs more than two bytes.
fn push_escaped(out: &mut Vec<u8>, units: &[[u8; 2]]) -> bool {
    let mut text = [0; 33];
    let mut len = 0;
    for unit in units.iter().take(16) {
        let Some(&(bytes, taken @ 1..)) = JSON.get(usize::from(u16::from_le_bytes(*unit))) else {
            return false;
        };
        if let Some(available) = text
            .get_mut(len..)
            .and_then(|available| available.first_chunk_mut::<2>())
        {
            *available = bytes;
        }
        len += usize::from(taken);
    }
    out.extend_from_slice(&text[..len]);
    true
}

/// Appends the first `len` characters of a block of up to 16 bytes, the first one in the lowest byte.
#[inline(always)]
pub(crate) fn push_short(out: &mut Vec<u8>, (block, len): (u128, usize)) {
    // A copy of constant size takes few instructions.
    let end = out.len() + len;
    out.extend_from_slice(&block.to_le_bytes());
    out.truncate(end);
}

/// The highest bit of each byte of ASCII that the escaping does not write unchanged, and of some bytes after it.
#[inline(always)]
fn specials(word: u64, escaping: Escaping) -> u64 {
    // A byte below a limit borrows from its highest bit, which ASCII does not have.
    let below = |bytes: u64, limit: u8| bytes.wrapping_sub(all(limit)) & !bytes & all(0x80);
    let is = |byte: u8| below(word ^ all(byte), 1);
    match escaping {
        Escaping::Plain => 0,
        Escaping::Json => below(word, b' ') | is(b'"') | is(b'\\'),
        Escaping::XmlText => is(b'&') | is(b'<') | is(b'>'),
        Escaping::XmlAttribute => is(b'&') | is(b'<') | is(b'>') | is(b'"') | is(b'\''),
    }
}

/// A word with this byte eight times.
const fn all(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Appends at least `units` units, one at a time. Returns the units after them.
fn push_slowly<'t>(out: &mut Vec<u8>, mut rest: &'t [[u8; 2]], units: usize, escaping: Escaping) -> &'t [[u8; 2]] {
    let mut taken = 0;
    while taken < units {
        let Some((unit, tail)) = rest.split_first() else {
            return rest;
        };
        let unit = u16::from_le_bytes(*unit);
        rest = tail;
        taken += 1;
        let scalar = match unit {
            0 => continue,
            _ if is_bare(unit, escaping) => {
                out.push(unit as u8);
                continue;
            }
            0x22 | 0x5c if escaping == Escaping::Json => {
                out.extend_from_slice(&[b'\\', unit as u8]);
                continue;
            }
            0xd800..=0xdbff => match tail.split_first() {
                Some((low, after)) if matches!(low[1], 0xdc..=0xdf) => {
                    rest = after;
                    taken += 1;
                    let low = u32::from(u16::from_le_bytes(*low));
                    0x10000 + ((u32::from(unit) - 0xd800) << 10) + (low - 0xdc00)
                }
                _ => u32::from(unit),
            },
            _ => u32::from(unit),
        };
        match char::from_u32(scalar) {
            Some(c @ '\0'..='\x1f') if escaping == Escaping::Json => {
                push_json_control(out, c as u8, b"0123456789ABCDEF")
            }
            Some(c) => push_char(out, c, escaping),
            None => push_utf8(out, char::REPLACEMENT_CHARACTER),
        }
    }
    rest
}

/// Appends one character.
#[inline]
pub fn push_char(out: &mut Vec<u8>, c: char, escaping: Escaping) {
    match escaping {
        Escaping::Plain => push_utf8(out, c),
        Escaping::XmlText | Escaping::XmlAttribute => match c {
            '&' => out.extend_from_slice(b"&amp;"),
            '<' => out.extend_from_slice(b"&lt;"),
            '>' => out.extend_from_slice(b"&gt;"),
            '"' if escaping == Escaping::XmlAttribute => out.extend_from_slice(b"&quot;"),
            '\'' if escaping == Escaping::XmlAttribute => out.extend_from_slice(b"&apos;"),
            _ => push_utf8(out, c),
        },
        Escaping::Json => match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\0'..='\x1f' => push_json_control(out, c as u8, b"0123456789abcdef"),
            _ => push_utf8(out, c),
        },
    }
}

/// Appends the JSON escape of a control character. The output of the `evtx` crate, which is the reference, has
/// upper-case digits for control characters of UTF-16 text and lower-case digits for others.
#[cold]
fn push_json_control(out: &mut Vec<u8>, control: u8, digits: &[u8; 16]) {
    match control {
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x0c => out.extend_from_slice(b"\\f"),
        _ => {
            out.extend_from_slice(b"\\u00");
            push_hex_byte(out, control, digits);
        }
    }
}

#[inline]
fn push_utf8(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Appends UTF-8 text.
pub fn push_str(out: &mut Vec<u8>, text: &str, escaping: Escaping) {
    match escaping {
        Escaping::Plain => out.extend_from_slice(text.as_bytes()),
        Escaping::Json => push_characters(out, text, Escaping::Json),
        Escaping::XmlText => push_characters(out, text, Escaping::XmlText),
        Escaping::XmlAttribute => push_characters(out, text, Escaping::XmlAttribute),
    }
}

/// As [`push_str`]. Inlined, so that the escaping is a constant.
#[inline(always)]
fn push_characters(out: &mut Vec<u8>, text: &str, escaping: Escaping) {
    let mut rest = text;
    while !rest.is_empty() {
        let (bare, tail) = rest.split_at(bare_len(rest.as_bytes(), escaping));
        out.extend_from_slice(bare.as_bytes());
        let mut chars = tail.chars();
        if let Some(c) = chars.next() {
            push_char(out, c, escaping);
        }
        rest = chars.as_str();
    }
}

/// How many bytes from the first on the escaping writes unchanged.
#[inline(always)]
fn bare_len(text: &[u8], escaping: Escaping) -> usize {
    // The bytes that are not ASCII are special too.
    let first_special = |word: u64| (specials(word, escaping) | word & all(0x80)).trailing_zeros() as usize / 8;
    let (words, rest) = text.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let bare = first_special(u64::from_le_bytes(*word));
        if bare < 8 {
            return 8 * i + bare;
        }
    }
    let word = match (rest.len(), text.last_chunk()) {
        (0, _) => return text.len(),
        (left, Some(last)) => u64::from_le_bytes(*last) >> (8 * (8 - left)),
        (_, None) => short_word(rest),
    };
    text.len() - rest.len() + first_special(word).min(rest.len())
}

/// Fewer than eight bytes as the bytes of a number, the first one in the lowest byte.
#[inline(always)]
fn short_word(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    // The second half overlaps the first.
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << (8 * (len - 4));
    }
    let Some(&last) = bytes.last() else { return 0 };
    u64::from(bytes[0]) | u64::from(bytes[len / 2]) << (8 * (len / 2)) | u64::from(last) << (8 * (len - 1))
}

/// Appends an ANSI string as UTF-8, without NULs. EVTX does not name its code page: Windows-1252 is assumed.
pub fn push_ansi(out: &mut Vec<u8>, text: &[u8], escaping: Escaping) {
    let (text, _) = encoding_rs::WINDOWS_1252.decode_without_bom_handling(text);
    text.split('\0').for_each(|part| push_str(out, part, escaping));
}

/// Appends the two hexadecimal digits of a byte. `digits` are the characters of 0 to 15.
#[inline]
pub fn push_hex_byte(out: &mut Vec<u8>, byte: u8, digits: &[u8; 16]) {
    out.push(digits[usize::from(byte >> 4)]);
    out.push(digits[usize::from(byte & 15)]);
}

/// Whether UTF-16LE text is empty: it has no unit but NULs.
#[inline]
pub fn utf16_is_empty(text: &[u8]) -> bool {
    text.as_chunks::<2>().0.iter().all(|unit| *unit == [0, 0])
}

/// Appends `"name":`, or `"name_1":` with a `number` that is not 0. Returns the offset in `out` of the end of the name.
pub(crate) fn push_json_key(out: &mut Vec<u8>, name: &str, number: usize) -> usize {
    out.push(b'"');
    push_str(out, name, Escaping::Json);
    let end = out.len();
    end_key(out, number);
    end
}

/// As [`push_json_key`], with a name that is already escaped.
pub(crate) fn push_escaped_json_key(out: &mut Vec<u8>, name: &[u8], number: usize) {
    out.push(b'"');
    out.extend_from_slice(name);
    end_key(out, number);
}

fn end_key(out: &mut Vec<u8>, number: usize) {
    if number > 0 {
        out.push(b'_');
        out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }
    out.extend_from_slice(b"\":");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn utf16(text: &[u16], escaping: Escaping) -> String {
        let bytes: Vec<u8> = text.iter().flat_map(|u| u.to_le_bytes()).collect();
        let mut out = Vec::new();
        push_utf16(&mut out, &bytes, escaping);
        String::from_utf8(out).expect("UTF-8")
    }

    fn units(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    #[test]
    fn text_is_escaped_for_its_place() {
        let text = units("a\"b\\c\u{1}\u{b}\t\r\nü日😀 <&>");
        assert_eq!(utf16(&text, Escaping::Plain), "a\"b\\c\u{1}\u{b}\t\r\nü日😀 <&>");
        assert_eq!(
            utf16(&text, Escaping::XmlText),
            "a\"b\\c\u{1}\u{b}\t\r\nü日😀 &lt;&amp;&gt;"
        );
        assert_eq!(
            utf16(&text, Escaping::XmlAttribute),
            "a&quot;b\\c\u{1}\u{b}\t\r\nü日😀 &lt;&amp;&gt;"
        );
        assert_eq!(
            utf16(&text, Escaping::Json),
            "a\\\"b\\\\c\\u0001\\u000B\\t\\r\\nü日😀 <&>"
        );
    }

    #[test]
    fn ansi_text_is_windows_1252_without_nuls() {
        let mut out = Vec::new();
        push_ansi(&mut out, b"\x80 \0caf\xe9\x01\0", Escaping::Plain);
        assert_eq!(String::from_utf8(out).unwrap(), "€ café\u{1}");
    }

    proptest! {
        #[test]
        fn utf8_is_what_its_characters_are(text in "[a-z<&\"'\\\\\n\u{1}\u{7f}é日😀]{0,80}|[a-z]{0,80}[<\\\\]?[a-z]{0,40}") {
            for escaping in [Escaping::Plain, Escaping::Json, Escaping::XmlText, Escaping::XmlAttribute] {
                let (mut whole, mut single) = (Vec::new(), Vec::new());
                push_str(&mut whole, &text, escaping);
                text.chars().for_each(|c| push_char(&mut single, c, escaping));
                prop_assert_eq!(&whole, &single);
            }
        }

        #[test]
        fn text_is_the_same_as_decoding_unit_by_unit(
            text in proptest::collection::vec(prop_oneof![any::<u16>(), 0..0x80_u16, 0xd700..0xe100_u16], 0..40),
            (nul, nuls) in (any::<prop::sample::Index>(), 0..50_usize),
        ) {
            let mut text = text;
            let at = nul.index(text.len() + 1);
            text.splice(at..at, vec![0; nuls]);
            let characters = char::decode_utf16(text.iter().copied()).map(|c| c.unwrap_or('\u{fffd}'));
            let plain: String = characters.filter(|c| *c != '\0').collect();
            let (json, mut of_plain) = (utf16(&text, Escaping::Json), Vec::new());
            push_str(&mut of_plain, &plain, Escaping::Json);
            prop_assert_eq!(String::from_utf8(of_plain).unwrap().to_lowercase(), json.to_lowercase());
            prop_assert!(!json.bytes().any(|b| b < 0x20));
            prop_assert_eq!(utf16(&text, Escaping::Plain), plain);
        }

        #[test]
        fn short_text_is_the_same_in_registers(text in "[\u{1}-~]{0,14}|[\u{1}-\u{ff}]{0,6}") {
            let bytes: Vec<u8> = units(&text).iter().flat_map(|u| u.to_le_bytes()).collect();
            let is_short = text.len() <= 12 && text.is_ascii();
            let short = short_ascii(&bytes);
            prop_assert_eq!(short.is_some(), is_short || text.is_empty());
            if let Some((number, len)) = short {
                prop_assert_eq!(&number.to_le_bytes()[..len], text.as_bytes());
                prop_assert_eq!(number >> (8 * len), 0);
            }
        }
    }
}
