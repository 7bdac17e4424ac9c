//! The markup of XML 1.0: what a text has next.
//!
//! Comments, sections of characters and instructions have no markup in them (2.5, 2.6, 2.7).

use memchr::{memchr, memchr2, memmem};

/// What a text has next.
#[derive(Debug, PartialEq)]
pub(super) enum Token<'t> {
    /// Characters up to the next `<`.
    Text(&'t [u8]),
    /// A start tag, without its brackets, and whether the element is empty.
    Start(&'t [u8], bool),
    /// The name of an end tag.
    End(&'t [u8]),
    /// The characters of a section.
    Section(&'t [u8]),
    /// A comment, and whether it has no `--` in it.
    Comment(bool),
    /// An instruction, without its brackets.
    Instruction(&'t [u8]),
}

/// What is known of what a text has next.
#[derive(Debug, PartialEq)]
pub(super) enum Lexed<'t> {
    /// It has so many bytes.
    Token(Token<'t>, usize),
    /// It goes on after the bytes.
    Cut,
    /// It starts as an opaque part, whose end is not there.
    Open(Opaque),
    /// It starts as an opaque part that does not end as it should.
    Endless(Opaque),
    /// A declaration of a document type starts.
    DocumentType,
    /// It is not XML.
    Broken(&'static str),
}

/// A part of XML whose content is not markup.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Opaque {
    Comment,
    Section,
    Instruction,
}

/// Where an opaque part ends.
#[derive(Debug, PartialEq)]
pub(super) enum End {
    /// After so many bytes of content.
    At(usize),
    /// A comment starts in a comment: the end of the first one is lost.
    Lost,
    /// Not in these bytes.
    Unknown,
}

const TYPE: &[u8] = b"<!DOCTYPE";

impl Opaque {
    pub(super) const ALL: [Opaque; 3] = [Opaque::Comment, Opaque::Section, Opaque::Instruction];

    /// How it starts and ends, and what it is called.
    fn parts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Opaque::Comment => ("<!--", "-->", "comment"),
            Opaque::Section => ("<![CDATA[", "]]>", "CDATA section"),
            Opaque::Instruction => ("<?", "?>", "processing instruction"),
        }
    }

    pub(super) fn start(self) -> &'static [u8] {
        self.parts().0.as_bytes()
    }

    pub(super) fn end(self) -> &'static [u8] {
        self.parts().1.as_bytes()
    }

    /// What it is called.
    pub(super) fn name(self) -> &'static str {
        self.parts().2
    }

    /// Where it ends in bytes of its content.
    pub(super) fn find_end(self, content: &[u8]) -> End {
        if self != Opaque::Comment {
            return memmem::find(content, self.end()).map_or(End::Unknown, End::At);
        }
        // Not its end first: many comments in each other would be searched to the end, each from its start on.
        let mut from = 0;
        while let Some(len) = memmem::find(&content[from..], b"--") {
            let at = from + len;
            match content.get(at + 2) {
                Some(b'>') => return End::At(at),
                _ if content[..at].ends_with(b"<!") => return End::Lost,
                _ => from = at + 1,
            }
        }
        End::Unknown
    }
}

/// Which opaque parts have no end in the rest of a file.
pub(super) type Unended = [bool; Opaque::ALL.len()];

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b':' || byte >= 0x80
}

/// What a text has next.
pub(super) fn lex(text: &[u8], unended: Unended) -> Lexed<'_> {
    match text {
        [b'<', b'/', rest @ ..] => match memchr2(b'>', b'<', rest) {
            Some(at) if rest[at] == b'>' => Lexed::Token(Token::End(rest[..at].trim_ascii_end()), at + 3),
            Some(_) => Lexed::Broken("an end tag does not end"),
            None => Lexed::Cut,
        },
        [b'<', b'!' | b'?', ..] => special(text, unended),
        [b'<', first, ..] if is_name_start(*first) => start_tag(text),
        [b'<'] | [] => Lexed::Cut,
        [b'<', ..] => Lexed::Broken("it has a `<` that starts no tag"),
        _ => match memchr(b'<', text) {
            Some(at) => Lexed::Token(Token::Text(&text[..at]), at),
            None => Lexed::Cut,
        },
    }
}

/// A start tag. `>` may be in its values, but `<` may not.
fn start_tag(text: &[u8]) -> Lexed<'_> {
    let mut at = 1;
    loop {
        let is_mark = |byte: &u8| matches!(byte, b'>' | b'<' | b'"' | b'\'');
        let Some(len) = text[at..].iter().position(is_mark) else {
            return Lexed::Cut;
        };
        at += len;
        match text[at] {
            b'>' => {
                let tag = &text[1..at];
                let empty = tag.strip_suffix(b"/");
                return Lexed::Token(Token::Start(empty.unwrap_or(tag), empty.is_some()), at + 1);
            }
            b'<' => return Lexed::Broken("a tag does not end"),
            quote => match memchr2(quote, b'<', &text[at + 1..]) {
                Some(len) if text[at + 1 + len] == quote => at += len + 2,
                Some(_) => return Lexed::Broken("the value of an attribute does not end"),
                None => return Lexed::Cut,
            },
        }
    }
}

/// What starts with `<!` or `<?`.
fn special(text: &[u8], unended: Unended) -> Lexed<'_> {
    for opaque in Opaque::ALL {
        let start = opaque.start();
        let Some(content) = text.strip_prefix(start) else {
            continue;
        };
        if unended[opaque as usize] {
            return Lexed::Endless(opaque);
        }
        return match opaque.find_end(content) {
            End::At(len) => {
                let content = &content[..len];
                let token = match opaque {
                    Opaque::Comment => {
                        Token::Comment(!content.ends_with(b"-") && memmem::find(content, b"--").is_none())
                    }
                    Opaque::Section => Token::Section(content),
                    Opaque::Instruction => Token::Instruction(content),
                };
                Lexed::Token(token, start.len() + len + opaque.end().len())
            }
            End::Lost => Lexed::Endless(opaque),
            End::Unknown => Lexed::Open(opaque),
        };
    }
    match () {
        () if text.starts_with(TYPE) => Lexed::DocumentType,
        () if Opaque::ALL.iter().any(|opaque| opaque.start().starts_with(text)) || TYPE.starts_with(text) => Lexed::Cut,
        () => Lexed::Broken("it has a `<!` that starts nothing"),
    }
}

/// The bytes of a declaration of a document type that a text starts with (2.8), and whether it gives attributes to
/// elements without them, or can by an entity (3.3.2, 2.8). `None` if the text ends first, or is something else.
pub(super) fn document_type(text: &[u8]) -> Option<(usize, bool)> {
    let mut at = TYPE.len();
    let (mut is_subset, mut is_declaration) = (false, false);
    let (mut is_list, mut has_defaults) = (false, false);
    loop {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        at += match rest[0] {
            quote @ (b'"' | b'\'') if is_declaration || !is_subset => {
                has_defaults |= is_list;
                memchr(quote, &rest[1..])? + 2
            }
            b'<' if is_subset && !is_declaration => match special(rest, Unended::default()) {
                Lexed::Token(_, len) => len,
                Lexed::Broken(_) if rest.starts_with(b"<!") && !rest.starts_with(b"<!--") => {
                    is_declaration = true;
                    is_list = rest.starts_with(b"<!ATTLIST");
                    2
                }
                _ => return None,
            },
            b'<' => return None,
            b'>' if is_declaration => {
                (is_declaration, is_list) = (false, false);
                1
            }
            b'>' if !is_subset => return Some((at + 1, has_defaults)),
            b'%' if is_subset && !is_declaration => {
                has_defaults = true;
                1
            }
            b'[' if !is_subset => {
                is_subset = true;
                1
            }
            b']' if !is_declaration => {
                is_subset = false;
                1
            }
            _ => 1,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_thing_next() {
        use Token::{Comment, End, Instruction, Section, Start, Text};
        for (text, expected, len) in [
            ("a>b<", Text(b"a>b"), 3),
            ("<a b='>' c=\">'\"/>x", Start(b"a b='>' c=\">'\"", true), 17),
            ("<a>", Start(b"a", false), 3),
            ("<\u{e9}>", Start("\u{e9}".as_bytes(), false), 4),
            ("</a \n>", End(b"a"), 6),
            ("<!-- <a> -->", Comment(true), 12),
            ("<!---->", Comment(true), 7),
            ("<!-- a -- b -->", Comment(false), 15),
            ("<!-- a --->", Comment(false), 11),
            ("<![CDATA[<![CDATA[]]]]>", Section(b"<![CDATA[]]"), 23),
            ("<?a >?>", Instruction(b"a >"), 7),
        ] {
            assert_eq!(
                lex(text.as_bytes(), Unended::default()),
                Lexed::Token(expected, len),
                "{text}"
            );
        }
        for text in [
            "", "text", "<", "<a", "<a b='>", "</a", "<!", "<!-", "<![CDATA", "<!DOC",
        ] {
            assert_eq!(lex(text.as_bytes(), Unended::default()), Lexed::Cut, "{text}");
        }
        for (text, opaque) in [
            ("<!-->", Opaque::Comment),
            ("<![CDATA[]>", Opaque::Section),
            ("<?a>", Opaque::Instruction),
        ] {
            assert_eq!(lex(text.as_bytes(), Unended::default()), Lexed::Open(opaque), "{text}");
        }
        let text = b"<!-- <!-- -->";
        assert_eq!(lex(text, Unended::default()), Lexed::Endless(Opaque::Comment));
        assert_eq!(lex(b"<?a ?>", [true; 3]), Lexed::Endless(Opaque::Instruction));
        for text in ["< a>", "<a <b>", "<a b='<'>", "</a<", "<!x", "<1>"] {
            assert!(
                matches!(lex(text.as_bytes(), Unended::default()), Lexed::Broken(_)),
                "{text}"
            );
        }
    }

    #[test]
    fn a_document_type_ends_outside_of_its_subset() {
        for (text, has_defaults) in [
            ("<!DOCTYPE a>", false),
            ("<!DOCTYPE a SYSTEM \"]>\">", false),
            (
                "<!DOCTYPE a [<!ENTITY b \"<Event>]>\"> <!-- ' --> <? ' ?> <!ELEMENT d EMPTY>] >",
                false,
            ),
            (
                "<!DOCTYPE a [<!-- <!ATTLIST b c CDATA 'd'> --><!ENTITY e \"<!ATTLIST b c CDATA 'd'>%f;\">]>",
                false,
            ),
            (
                "<!DOCTYPE a [<!ATTLIST b c CDATA #IMPLIED d (e|f) #REQUIRED><!ENTITY % g 'h'>]>",
                false,
            ),
            ("<!DOCTYPE a [<!ATTLIST b xmlns CDATA #FIXED 'c'>]>", true),
            ("<!DOCTYPE a [<!ENTITY % b '<!ATTLIST c d CDATA \"e\">'> %b; ]>", true),
        ] {
            assert_eq!(
                document_type(text.as_bytes()),
                Some((text.len(), has_defaults)),
                "{text}"
            );
            for end in TYPE.len()..text.len() {
                assert_eq!(document_type(&text.as_bytes()[..end]), None, "{}", &text[..end]);
            }
        }
        for text in ["<!DOCTYPE a <b>", "<!DOCTYPE a [<b>]>", "<!DOCTYPE a [<!ENTITY <b>]>"] {
            assert_eq!(document_type(text.as_bytes()), None, "{text}");
        }
    }
}
