//! The text of a message, parsed into its parts.
//!
//! The language is that of `FormatMessage` (its documentation in the Windows SDK, and what Windows shows):
//!
//! | in the text | in the message |
//! | --- | --- |
//! | `%1` to `%99` | the insertion of this number, from 1 |
//! | `%1!08x!` | the insertion, formatted as by `printf` |
//! | `%%1234` | the parameter message with this ID |
//! | `%n`, `%r`, `%t`, `%b` | a line break (CR and LF), a CR, a tab, a space |
//! | a line break | a space; nothing at the end of the text |
//! | `%0` | the end of the message |
//! | `%%`, `%!`, `%.`, and `%` before any other character | the second character |
//!
//! Windows formats with `FORMAT_MESSAGE_MAX_WIDTH_MASK`: only `%n` breaks a line. ESENT 105 has `seconds)`, CR, LF, `%n`, CR,
//! LF, `%nAdditional`, and Windows shows a space, CR, LF, a space, CR, LF.
//!
//! Each part of a template takes at least one byte of the text, so a text cannot ask for more memory than it has bytes.

use memchr::{memchr, memchr3};

/// The longest format between the exclamation marks of `%1!08x!`, in bytes. Longer ones are text.
const MAX_FORMAT: usize = 32;

/// A parsed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// What is the same in each message, without escapes. Most messages have more of it than of values.
    literals: Box<str>,
    parts: Box<[Part]>,
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The literals between two offsets.
    Literal { start: u32, end: u32 },
    /// `%%` that no number follows. If an insertion follows, it may have one.
    Percent,
    /// An insertion, from 1, and the length of its format. The format is before `end`.
    Insertion { number: u8, format: u8, end: u32 },
    /// `%%` and a number.
    Parameter { id: u32, start: u32, end: u32 },
}

impl Template {
    /// Parses a text of at most 4 GiB. More bytes are ignored.
    pub fn parse(text: &str) -> Self {
        let text = &text.as_bytes()[..text.len().min(u32::MAX as usize)];
        let mut parser = Parser {
            text,
            ..Parser::default()
        };
        while parser.part().is_some() {}
        parser.end_literal();
        Template {
            // The escapes are ASCII, so what is between them is UTF-8.
            literals: String::from_utf8(parser.literals).unwrap_or_default().into(),
            parts: parser.parts.into(),
        }
    }

    /// The highest number of an insertion in the text; 0 if it has none.
    pub fn insertions(&self) -> usize {
        self.numbers().max().unwrap_or(0)
    }

    /// The numbers of its insertions, from 1, in the order of the text.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().filter_map(|part| match part {
            Part::Insertion { number, .. } => Some(usize::from(*number)),
            _ => None,
        })
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The literals between two offsets of a part.
    pub(crate) fn literal(&self, start: u32, end: u32) -> &str {
        &self.literals[start as usize..end as usize]
    }
}

#[derive(Default)]
struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    literals: Vec<u8>,
    /// Where the literal that is being read starts.
    start: usize,
    parts: Vec<Part>,
}

impl Parser<'_> {
    /// Reads the next part; `None` at the end of the message.
    fn part(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        match rest {
            [b'\r', b'\n'] | [b'\r' | b'\n'] => self.fixed(rest.len(), ""),
            [b'\r', b'\n', ..] => self.fixed(2, " "),
            [b'\r' | b'\n', ..] => self.fixed(1, " "),
            [b'%', b'0', ..] => return None,
            [b'%', digit @ b'1'..=b'9', ..] => self.insertion(*digit),
            [b'%', b'%', b'0'..=b'9', ..] => self.parameter(),
            [b'%', b'%', ..] => self.push(2, Part::Percent),
            [b'%', b'n', ..] => self.fixed(2, "\r\n"),
            [b'%', b'r', ..] => self.fixed(2, "\r"),
            [b'%', b't', ..] => self.fixed(2, "\t"),
            [b'%', b'b', ..] => self.fixed(2, " "),
            // The character after it is text, even if it is a line break.
            [b'%', _, ..] => self.literal(1),
            _ => self.literal(0),
        }
        Some(())
    }

    fn push(&mut self, len: usize, part: Part) {
        self.end_literal();
        self.at += len;
        self.parts.push(part);
    }

    fn end_literal(&mut self) {
        let (start, end) = (self.start as u32, self.literals.len() as u32);
        if start < end {
            self.parts.push(Part::Literal { start, end });
        }
        self.start = self.literals.len();
    }

    fn fixed(&mut self, len: usize, text: &'static str) {
        self.literals.extend_from_slice(text.as_bytes());
        self.at += len;
    }

    /// Text up to the next escape or line break, without its first `skip` bytes. It has at least one byte.
    fn literal(&mut self, skip: usize) {
        let start = self.at + skip;
        let from = start + 1;
        let rest = self.text.get(from..).unwrap_or(&[]);
        let end = memchr3(b'%', b'\r', b'\n', rest).map_or(self.text.len(), |found| from + found);
        self.literals.extend_from_slice(&self.text[start..end]);
        self.at = end;
    }

    fn insertion(&mut self, first: u8) {
        let mut number = first - b'0';
        let mut len = 2;
        if let Some(&digit @ b'0'..=b'9') = self.text.get(self.at + 2) {
            number = number * 10 + (digit - b'0');
            len = 3;
        }
        let format = self.format(self.at + len);
        if format > 0 {
            len += format + 2;
        }
        let end = if format > 0 { self.at + len - 1 } else { self.at + len };
        let part = Part::Insertion {
            number,
            format: format as u8,
            end: end as u32,
        };
        self.push(len, part);
    }

    /// The length of a format in exclamation marks at `at`; 0 if there is none.
    fn format(&self, at: usize) -> usize {
        let Some([b'!', rest @ ..]) = self.text.get(at..) else {
            return 0;
        };
        let rest = &rest[..rest.len().min(MAX_FORMAT + 1)];
        match memchr(b'!', rest) {
            Some(len) if is_format(&rest[..len]) => len,
            _ => 0,
        }
    }

    fn parameter(&mut self) {
        let start = self.at;
        let digits = &self.text[start + 2..];
        let (id, len) = number(digits);
        let end = start + 2 + len;
        match id {
            Some(id) => {
                let (start, end) = (start as u32, end as u32);
                self.push(2 + len, Part::Parameter { id, start, end });
            }
            None => {
                self.literals.extend_from_slice(&self.text[start..end]);
                self.at = end;
            }
        }
    }
}

/// The number that the digits at the start of a text are, and how many they are; `None` if it does not fit.
pub(crate) fn number(text: &[u8]) -> (Option<u32>, usize) {
    let len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = std::str::from_utf8(&text[..len]).ok();
    (digits.and_then(|digits| digits.parse().ok()), len)
}

/// Whether a text is a format of `printf`: flags, width, precision, the size of the value, and the conversion.
fn is_format(format: &[u8]) -> bool {
    let Some((conversion, rest)) = format.split_last() else {
        return false;
    };
    conversion.is_ascii_alphabetic()
        && rest.iter().all(|byte| {
            matches!(
                byte,
                b'0'..=b'9' | b'-' | b'+' | b' ' | b'#' | b'.' | b'*' | b'l' | b'h' | b'w' | b'I'
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts as text: what is literal, in brackets what is not.
    fn shown(text: &str) -> String {
        let at = |start: u32, end: u32| &text[start as usize..end as usize];
        let template = Template::parse(text);
        let part = |part: &Part| match *part {
            Part::Literal { start, end } => template.literal(start, end).to_owned(),
            Part::Percent => "[%]".to_owned(),
            Part::Insertion { number, format: 0, .. } => format!("[{number}]"),
            Part::Insertion { number, format, end } => format!("[{number} {}]", at(end - u32::from(format), end)),
            Part::Parameter { id, start, end } => format!("[{id} {}]", at(start, end)),
        };
        template.parts().iter().map(part).collect()
    }

    #[test]
    fn texts_have_their_parts() {
        for (text, parts) in [
            ("", ""),
            ("no escape", "no escape"),
            ("a%1b%20c%100", "a[1]b[20]c[10]0"),
            ("%1!s!%2!08x!!%3!%4!!%5!%n!", "[1 s][2 08x]![3]![4]!![5]!\r\n!"),
            ("%n%t%r%b%.%!%q%é", "\r\n\t\r .!qé"),
            ("a\nb\r\nc\rd", "a b c d"),
            ("a\r\n%n\r\n%nb%n\r\n", "a \r\n \r\nb\r\n"),
            ("a\r\n\r\n", "a "),
            ("a\n", "a"),
            ("a%\n", "a\n"),
            ("100%% of %%1", "100[%] of [1 %%1]"),
            ("%%%1", "[%][1]"),
            ("%%1833%%99999999999", "[1833 %%1833]%%99999999999"),
            ("end%0here", "end"),
            ("end%", "end%"),
            ("a%\nb", "a\nb"),
        ] {
            assert_eq!(shown(text), parts, "{text}");
        }
    }

    #[test]
    fn the_highest_insertion_counts() {
        assert_eq!(Template::parse("none %% %n").insertions(), 0);
        assert_eq!(Template::parse("%3 %12!s! %7 %0 %50").insertions(), 12);
    }

    #[test]
    fn parts_are_bounded_by_the_text() {
        let text = "%1".repeat(1 << 16);
        assert_eq!(Template::parse(&text).parts().len(), 1 << 16);
        assert_eq!(Template::parse(&"!%9!".repeat(1000)).parts().len(), 2001);
        assert!(size_of::<Part>() <= 24);
    }

    proptest::proptest! {
        #[test]
        fn any_text_parses(text in "[%!0-9nt a\r\né]{0,40}") {
            let template = Template::parse(&text);
            proptest::prop_assert!(template.parts().len() <= text.len());
            for part in template.parts() {
                if let Part::Literal { start, end } = *part {
                    proptest::prop_assert!(!template.literal(start, end).is_empty());
                }
            }
        }
    }
}
