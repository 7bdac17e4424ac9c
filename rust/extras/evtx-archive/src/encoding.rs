//! The encodings of exports.

use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use memchr::memmem;

/// Where a declaration of the encoding has to end, in bytes from the start.
const DECLARATION: usize = 256;

/// How many bytes a text in UTF-8 has in a file with this encoding; `None` for UTF-8, whose bytes are those of the file.
pub fn len_in_file(text: &[u8], encoding: Option<&'static Encoding>) -> u64 {
    let Some(encoding) = encoding else {
        return text.len() as u64;
    };
    let chars = text.iter().filter(|&byte| byte & 0xC0 != 0x80).count();
    let pairs = text.iter().filter(|&&byte| byte >= 0xF0).count();
    let is_wide = encoding == UTF_16LE || encoding == UTF_16BE;
    (if is_wide { 2 * (chars + pairs) } else { chars }) as u64
}

/// Adds bytes of a file to a text as UTF-8, which they are without a decoder.
pub fn decode(decoder: Option<&mut Decoder>, bytes: &[u8], is_last: bool, text: &mut Vec<u8>) {
    let Some(decoder) = decoder else {
        return text.extend_from_slice(bytes);
    };
    let (start, room) = (text.len(), decoder.max_utf8_buffer_length(bytes.len()));
    text.resize(start + room.unwrap_or(4 * bytes.len() + 16), 0);
    let (_, _, written, _) = decoder.decode_to_utf8(bytes, &mut text[start..], is_last);
    text.truncate(start + written);
}

/// The encoding of a text by its first bytes, and the length of its byte order mark.
pub fn encoding(bytes: &[u8]) -> (&'static Encoding, usize) {
    if let Some(marked) = Encoding::for_bom(bytes) {
        return marked;
    }
    match bytes {
        [b'<' | b'{' | b' ' | b'\r' | b'\n', 0, ..] => return (UTF_16LE, 0),
        [0, b'<' | b'{' | b' ' | b'\r' | b'\n', ..] => return (UTF_16BE, 0),
        _ => {}
    }
    let start = bytes[..bytes.len().min(DECLARATION)].split(|&byte| byte == b'>').next();
    let declared = start.and_then(|start| labelled(label(start.strip_prefix(b"<?")?)?));
    (declared.unwrap_or(UTF_8), 0)
}

/// The label of the encoding in an XML declaration without its brackets.
fn label(declaration: &[u8]) -> Option<&[u8]> {
    let rest = declaration
        .strip_prefix(b"xml")
        .filter(|rest| rest.first().is_some_and(u8::is_ascii_whitespace))?;
    let value = &rest[memmem::find(rest, b"encoding")? + 8..];
    value.split(|byte| b"\"'".contains(byte)).nth(1)
}

/// The encoding that a text with this label is read in, if it is supported. The bytes of the text are not UTF-16, whatever it
/// says; ASCII is UTF-8.
fn labelled(label: &[u8]) -> Option<&'static Encoding> {
    let is_ascii = [&b"ascii"[..], b"us-ascii"]
        .iter()
        .any(|ascii| label.eq_ignore_ascii_case(ascii));
    let known = Encoding::for_label(label)?;
    if is_ascii || known == UTF_16LE || known == UTF_16BE {
        return Some(UTF_8);
    }
    (known == UTF_8 || known.is_single_byte()).then_some(known)
}

/// The label in an XML declaration without its brackets, if it is not the encoding that the text is read in.
pub(crate) fn other_label(declaration: &[u8], read: &'static Encoding) -> Option<String> {
    let label = label(declaration)?;
    let fits = read == UTF_16LE || read == UTF_16BE || labelled(label) == Some(read);
    (!fits).then(|| String::from_utf8_lossy(label).into_owned())
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
            (b"{\0\"\0", (UTF_16LE, 0)),
            (b"{\"", (UTF_8, 0)),
            (b"<?xml version='1.0' encoding='windows-1252'?>", (windows, 0)),
            (b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>", (windows, 0)),
            (b"<?xml version=\"1.0\" encoding=\"utf-16\"?>", (UTF_8, 0)),
            (b"<?xml version=\"1.0\" encoding=", (UTF_8, 0)),
            (b"<?xml version='1.0' encoding='us-ascii'?>", (UTF_8, 0)),
            (b"<?xml version='1.0' encoding='shift_jis'?>", (UTF_8, 0)),
            (b"<?xml-a encoding='windows-1252'?>", (UTF_8, 0)),
            (b"<a encoding='windows-1252'/>", (UTF_8, 0)),
            (b"", (UTF_8, 0)),
        ] {
            assert_eq!(encoding(bytes), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_declaration_fits_the_encoding_or_not() {
        let windows = encoding_rs::WINDOWS_1252;
        for (label, read, fits) in [
            ("UTF-8", UTF_8, true),
            ("utf-16", UTF_8, true),
            ("us-ascii", UTF_8, true),
            ("windows-1252", windows, true),
            ("iso-8859-1", windows, true),
            ("x-other", UTF_16LE, true),
            ("utf-7", UTF_8, false),
            ("shift_jis", UTF_8, false),
            ("x-other", UTF_8, false),
            ("", UTF_8, false),
            ("windows-1252", UTF_8, false),
            ("utf-8", windows, false),
        ] {
            let declaration = format!("xml version='1.0' encoding = '{label}' ");
            let expected = (!fits).then(|| label.to_owned());
            assert_eq!(other_label(declaration.as_bytes(), read), expected, "{label}");
        }
        assert_eq!(other_label(b"xml version='1.0'", windows), None);
    }
}
