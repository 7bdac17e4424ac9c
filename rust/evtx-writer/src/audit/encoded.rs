//! Texts in other texts: hexadecimal digits, base64, and the escapes of JSON, URLs and XML.

/// What a text was encoded as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Hexadecimal,
    Base64,
    Escapes,
}

/// A part of a text that was decoded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    /// Where it starts and ends in the decoded bytes.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Where it starts in the text.
    pub(super) source: usize,
    pub(super) encoding: Encoding,
    /// Whether the whole word was decoded, from its first character to its last.
    pub(super) is_whole: bool,
}

/// The decoded parts of a text, one after the other.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    pub(super) bytes: Vec<u8>,
    runs: Vec<Run>,
    /// Whether bytes beyond ASCII can be text.
    has_wide_text: bool,
}

/// The fewest hexadecimal digits and characters of base64 that are decoded: those of four bytes.
const MIN_DIGITS: usize = 8;
const MIN_BASE64: usize = 6;
/// The fewest bytes that count in base64, unless all of it is text, and those of the forms that are not text or have zeros.
pub(super) const MIN_BYTES: usize = 8;
const SIXTEEN: usize = 16;
/// What can be between pairs of hexadecimal digits.
const SEPARATORS: &[&[u8]] = &[b" ", b"-", b":", b"\\", b",", b"\\x", b" 0x", b",0x", b", 0x"];

/// The number of a hexadecimal digit, or [`NO_SEXTET`].
const DIGITS: [u8; 256] = {
    let mut digits = [NO_SEXTET; 256];
    let mut digit = 0;
    while digit < 16 {
        digits[b"0123456789abcdef"[digit] as usize] = digit as u8;
        digits[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    digits
};

fn is_digit(byte: u8) -> bool {
    DIGITS[usize::from(byte)] != NO_SEXTET
}

#[inline]
fn pair(text: &[u8], at: usize) -> Option<u8> {
    let pair = text.get(at..at + 2)?;
    (is_digit(pair[0]) && is_digit(pair[1])).then(|| DIGITS[usize::from(pair[0])] << 4 | DIGITS[usize::from(pair[1])])
}

/// The six bits of a character of base64, also of the alphabet for URLs.
const fn sextet(byte: u8) -> u8 {
    match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => NO_SEXTET,
    }
}

const NO_SEXTET: u8 = 0xff;
const SEXTETS: [u8; 256] = {
    let mut sextets = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        sextets[byte] = sextet(byte as u8);
        byte += 1;
    }
    sextets
};

fn is_printable(byte: u8) -> bool {
    byte >= 0x20 && byte != 0x7f
}

/// Where the first run of at least so many bytes of a kind starts, from an offset on.
fn first_run(text: &[u8], from: usize, least: usize, is: impl Fn(u8) -> bool) -> Option<usize> {
    let mut at = from;
    loop {
        // From the end, because most bytes that are not of the kind rule out several starts.
        match text.get(at..at + least)?.iter().rposition(|byte| !is(*byte)) {
            Some(other) => at += other + 1,
            None => return Some(at),
        }
    }
}

impl Decoded {
    /// The run that an offset of the decoded bytes is in.
    pub(super) fn run(&self, at: usize) -> Option<Run> {
        let after = self.runs.partition_point(|run| run.start <= at);
        self.runs.get(after.checked_sub(1)?).copied()
    }

    /// The parts that an address of four bytes can be in: numbers in hexadecimal, and words in base64.
    pub(super) fn short(&self) -> impl Iterator<Item = Run> {
        let is_short = |run: &&Run| match run.encoding {
            Encoding::Hexadecimal => run.end - run.start <= 8,
            Encoding::Base64 => run.is_whole && run.end - run.start == 4,
            Encoding::Escapes => false,
        };
        self.runs.iter().filter(is_short).copied()
    }

    /// Decodes all parts of a text, in any bytes.
    pub(super) fn read(&mut self, text: &[u8], has_wide_text: bool) {
        self.has_wide_text = has_wide_text;
        self.bytes.clear();
        self.runs.clear();
        let mut at = 0;
        while let Some(start) = first_run(text, at, MIN_BASE64, is_printable) {
            let len = text[start..].iter().take_while(|byte| is_printable(**byte)).count();
            let segment = &text[start..start + len];
            self.hexadecimal(segment, start);
            self.separated(segment, start);
            self.base64(segment, start);
            self.escapes(segment, start);
            at = start + len;
        }
    }

    fn end(&mut self, start: usize, source: usize, encoding: Encoding, is_whole: bool) {
        if self.bytes.len() == start {
            return;
        }
        let end = self.bytes.len();
        self.runs.push(Run {
            start,
            end,
            source,
            encoding,
            is_whole,
        });
        // Nothing that is looked for can go on from one run to the next.
        self.bytes.extend([2; 4]);
    }

    fn hexadecimal(&mut self, segment: &[u8], source: usize) {
        let mut at = 0;
        while let Some(first) = first_run(segment, at, MIN_DIGITS, is_digit) {
            let len = segment[first..].iter().take_while(|byte| is_digit(**byte)).count();
            for skipped in [0, 1] {
                let start = self.bytes.len();
                let digits = &segment[first + skipped..first + len];
                self.bytes
                    .extend((0..digits.len() / 2).filter_map(|index| pair(digits, 2 * index)));
                self.end(
                    start,
                    source + first,
                    Encoding::Hexadecimal,
                    skipped == 0 && len.is_multiple_of(2),
                );
            }
            at = first + len;
        }
    }

    /// Pairs of digits with something between them.
    fn separated(&mut self, segment: &[u8], source: usize) {
        let mut at = 0;
        while at + 2 < segment.len() {
            let is_start = at == 0 || !is_digit(segment[at - 1]);
            let first = if is_start { pair(segment, at) } else { None };
            let rest = &segment[at + 2..];
            let separator = SEPARATORS.iter().find(|separator| {
                first.is_some() && rest.starts_with(separator) && pair(rest, separator.len()).is_some()
            });
            let (Some(first), Some(separator)) = (first, separator) else {
                at += 1;
                continue;
            };
            let start = self.bytes.len();
            self.bytes.push(first);
            let mut next = at + 2;
            while segment[next..].starts_with(separator)
                && let Some(byte) = pair(segment, next + separator.len())
            {
                self.bytes.push(byte);
                next += separator.len() + 2;
            }
            if self.bytes.len() - start < MIN_DIGITS / 2 {
                self.bytes.truncate(start);
            }
            self.end(start, source + at, Encoding::Hexadecimal, true);
            at = next;
        }
    }

    fn base64(&mut self, segment: &[u8], source: usize) {
        let is_base64 = |byte: u8| SEXTETS[usize::from(byte)] != NO_SEXTET;
        let mut at = 0;
        while let Some(first) = first_run(segment, at, MIN_BASE64, is_base64) {
            at = first;
            let word = &segment[at..];
            let len = word.iter().take_while(|byte| is_base64(**byte)).count();
            // A short word is only base64 if it is padded.
            if len >= MIN_DIGITS || len >= MIN_BASE64 && word.get(len) == Some(&b'=') {
                // The word can begin with characters that belong to something else.
                for skipped in 0..4 {
                    let is_whole = skipped == 0;
                    if !is_whole && (len - skipped) * 3 / 4 < MIN_BYTES {
                        break;
                    }
                    let start = self.bytes.len();
                    let (mut bits, mut count) = (0_u32, 0);
                    for byte in &word[skipped..len] {
                        bits = bits << 6 | u32::from(SEXTETS[usize::from(*byte)]);
                        count += 6;
                        if count >= 8 {
                            count -= 8;
                            self.bytes.push((bits >> count) as u8);
                        }
                    }
                    if !self.can_count(start, is_whole) {
                        self.bytes.truncate(start);
                    }
                    self.end(start, source + at, Encoding::Base64, is_whole);
                }
            }
            at += len + 1;
        }
    }

    /// Whether the bytes that a word decodes to can have a form that counts. Most words are no base64, and decode to noise.
    fn can_count(&self, start: usize, is_whole: bool) -> bool {
        let bytes = &self.bytes[start..];
        let is_text = |byte: &u8| is_printable(*byte) && (*byte < 0x80 || self.has_wide_text);
        let lines = |byte: &u8| is_text(byte) || matches!(byte, 0 | b'\t' | b'\n' | b'\r');
        if is_whole && (bytes.len() == 4 || bytes.iter().all(lines)) || bytes.len() >= SIXTEEN {
            return true;
        }
        bytes.len() >= MIN_BYTES && (bytes.contains(&0) || bytes.windows(MIN_BYTES).any(|run| run.iter().all(is_text)))
    }

    fn escapes(&mut self, segment: &[u8], source: usize) {
        for (mark, one) in [(b'%', url as Escape), (b'\\', json), (b'&', xml)] {
            if !segment.contains(&mark) {
                continue;
            }
            let start = self.bytes.len();
            let (mut at, mut any) = (0, false);
            while at < segment.len() {
                let escape = if segment[at] == mark {
                    one(&segment[at..], &mut self.bytes)
                } else {
                    None
                };
                any |= escape.is_some();
                if escape.is_none() {
                    self.bytes.push(segment[at]);
                }
                at += escape.unwrap_or(1);
            }
            if mark == b'%' {
                // In forms, a plus stands for a space.
                self.bytes[start..]
                    .iter_mut()
                    .filter(|byte| **byte == b'+')
                    .for_each(|byte| *byte = b' ');
            }
            if !any {
                self.bytes.truncate(start);
            }
            self.lower(start);
            self.end(start, source, Encoding::Escapes, true);
        }
    }

    /// Puts characters that an escape has given into lower case. Those of ASCII compare in any case.
    fn lower(&mut self, start: usize) {
        if self.bytes[start..].is_ascii() {
            return;
        }
        let lower = String::from_utf8_lossy(&self.bytes[start..]).to_lowercase();
        self.bytes.truncate(start);
        self.bytes.extend(lower.as_bytes());
    }
}

/// Appends what an escape at the start of a text stands for. Returns its length; `None` if there is no escape.
type Escape = fn(&[u8], &mut Vec<u8>) -> Option<usize>;

fn url(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    out.push(pair(text, 1)?);
    Some(3)
}

fn push_char(out: &mut Vec<u8>, number: u32) -> Option<()> {
    let mut bytes = [0; 4];
    out.extend(char::from_u32(number)?.encode_utf8(&mut bytes).as_bytes());
    Some(())
}

fn json(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    match *text.get(1)? {
        byte @ (b'\\' | b'"' | b'/' | b'\'') => {
            out.push(byte);
            Some(2)
        }
        b'u' => {
            let unit = |at: usize| Some(u32::from(pair(text, at)?) << 8 | u32::from(pair(text, at + 2)?));
            let first = unit(2)?;
            if (0xd800..0xdc00).contains(&first) && text.get(6..8) == Some(b"\\u") {
                push_char(out, 0x10000 + ((first - 0xd800) << 10) + unit(8)?.checked_sub(0xdc00)?)?;
                return Some(12);
            }
            push_char(out, first)?;
            Some(6)
        }
        _ => None,
    }
}

fn xml(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let end = text.iter().take(12).position(|byte| *byte == b';')?;
    let number = match &text[1..end] {
        b"amp" => 0x26,
        b"lt" => 0x3c,
        b"gt" => 0x3e,
        b"quot" => 0x22,
        b"apos" => 0x27,
        [b'#', b'x' | b'X', digits @ ..] => u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?,
        [b'#', digits @ ..] => std::str::from_utf8(digits).ok()?.parse().ok()?,
        _ => return None,
    };
    push_char(out, number)?;
    Some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_text_are_decoded() {
        for (text, decoded) in [
            ("x 616c696365 y", "alice"),
            ("a616c696365", "alice"),
            ("61-6c-69-63-65", "alice"),
            ("0x61, 0x6c, 0x69, 0x63, 0x65", "alice"),
            ("\\61\\6C\\69\\63\\65", "alice"),
            ("Basic YWxpY2U6MTIzNA==", "alice:1234"),
            ("x/YWxpY2U6MTIzNA", "alice:1234"),
            ("u=CORP%5cal%C3%89", "CORP\\alé"),
            ("CORP\\\\\\u0061l\\u00C9", "CORP\\alé"),
            ("a&amp;b&#x41;&#66;", "a&bAB"),
        ] {
            let mut found = Decoded::default();
            found.read(text.as_bytes(), true);
            let lower = decoded.to_lowercase();
            let at = |text: &str| {
                found
                    .bytes
                    .windows(text.len())
                    .position(|bytes| bytes == text.as_bytes())
            };
            let at = at(decoded).or_else(|| at(&lower));
            assert!(at.is_some_and(|at| found.run(at).is_some()), "{text}");
        }
    }
}
