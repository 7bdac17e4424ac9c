//! The encodings of exports.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use memchr::memmem;

/// Where a declaration of the encoding has to end, in bytes from the start.
const DECLARATION: usize = 256;

/// How many bytes a text in UTF-8 has in a file with this encoding; `None` for UTF-8, whose bytes are those of the file.
pub(crate) fn len_in_file(text: &[u8], encoding: Option<&'static Encoding>) -> u64 {
    let Some(encoding) = encoding else {
        return text.len() as u64;
    };
    let chars = text.iter().filter(|&byte| byte & 0xC0 != 0x80).count();
    let pairs = text.iter().filter(|&&byte| byte >= 0xF0).count();
    let is_wide = encoding == UTF_16LE || encoding == UTF_16BE;
    (if is_wide { 2 * (chars + pairs) } else { chars }) as u64
}

/// The encoding of a text by its first bytes, and the length of its byte order mark.
pub(crate) fn encoding(bytes: &[u8]) -> (&'static Encoding, usize) {
    if let Some(marked) = Encoding::for_bom(bytes) {
        return marked;
    }
    match bytes {
        [b'<' | b'{' | b' ' | b'\r' | b'\n', 0, ..] => return (UTF_16LE, 0),
        [0, b'<' | b'{' | b' ' | b'\r' | b'\n', ..] => return (UTF_16BE, 0),
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
            (b"{\0\"\0", (UTF_16LE, 0)),
            (b"{\"", (UTF_8, 0)),
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
