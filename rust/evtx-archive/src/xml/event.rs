//! The XML of one event, and where events start.

use std::sync::LazyLock;

use evtx_format::MAX_OPEN_ELEMENTS;
use evtx_format::value::time::unix_nanos_to_filetime;
use evtx_writer::SpelledEvent;
use jiff::Timestamp;
use memchr::memmem::Finder;
use quick_xml::errors::IllFormedError;
use quick_xml::escape::{resolve_predefined_entity, unescape};
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Error, Reader};

/// Most characters of the prefix of an event's name.
const MAX_PREFIX: usize = 32;

/// The most attributes of an element. Each is compared with all before it.
const MAX_ATTRIBUTES: usize = 256;

/// The character that stands for a byte that is not UTF-8. XML does not allow this character.
pub(super) const UNDECODED: u8 = 0x1A;

static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("Event"));

/// Where the next event starts, by its tag. A tag that is cut is none.
pub(super) fn find_start(bytes: &[u8]) -> Option<usize> {
    NAME.find_iter(bytes).find_map(|at| {
        let is_name = matches!(bytes.get(at + 5), Some(b' ' | b'\t' | b'\r' | b'\n' | b'>' | b'/'));
        match bytes[..at] {
            _ if !is_name => None,
            [.., b'<'] => Some(at - 1),
            [ref before @ .., b':'] => {
                let is_prefix = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
                let len = before.iter().rev().take(MAX_PREFIX).take_while(is_prefix).count();
                before[..before.len() - len]
                    .ends_with(b"<")
                    .then(|| before.len() - len - 1)
            }
            _ => None,
        }
    })
}

/// What a text is that starts as an event does.
#[derive(Debug, PartialEq)]
pub(super) enum Parsed {
    /// An event of so many bytes.
    Whole(usize, Head),
    /// The text ends before the event does.
    Cut,
    Damaged(String),
}

/// What the header of a record repeats of its event.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Head {
    pub(super) id: Option<u64>,
    /// In ticks of 100 ns since 1601; 0 if unknown.
    pub(super) written: u64,
}

fn filetime(text: &str) -> Option<u64> {
    unix_nanos_to_filetime(text.parse::<Timestamp>().ok()?.as_nanosecond())
}

/// Reads events, one after the other.
#[derive(Default)]
pub(super) struct Parser {
    /// The event that was read.
    pub(super) event: SpelledEvent,
    /// The text since the last tag, and whether it is more than white space between tags.
    run: String,
    is_content: bool,
    /// The open elements.
    open: Vec<Open>,
    /// The prefix of the names of its elements, with a colon.
    prefix: String,
    /// What element of `System` is open.
    place: Place,
    head: Head,
    has_system: bool,
}

struct Open {
    /// Whether it has elements.
    has_elements: bool,
    /// How many bytes of white space are before its start tag, if that is on a line of its own.
    indent: Option<usize>,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Place {
    #[default]
    Elsewhere,
    System,
    RecordId,
}

/// The length of a text, if it is a line break and the indent of a tag.
fn indent(text: &str) -> Option<usize> {
    let after = text.strip_prefix('\r').unwrap_or(text).strip_prefix('\n')?;
    after
        .bytes()
        .all(|byte| byte == b' ' || byte == b'\t')
        .then_some(text.len())
}

impl Parser {
    /// Reads the event that a text starts with.
    pub(super) fn parse(&mut self, text: &str) -> Parsed {
        self.event.clear();
        self.run.clear();
        self.open.clear();
        (self.is_content, self.has_system) = (false, false);
        (self.place, self.head) = (Place::Elsewhere, Head::default());
        let mut reader = Reader::from_str(text);
        loop {
            match reader.read_event() {
                Ok(Event::Eof) | Err(Error::Syntax(_)) => return Parsed::Cut,
                Err(Error::IllFormed(IllFormedError::UnclosedReference))
                    if reader.buffer_position() >= text.len() as u64 =>
                {
                    return Parsed::Cut;
                }
                Err(Error::IllFormed(error)) => return Parsed::Damaged(error.to_string()),
                Err(error) => return Parsed::Damaged(error.to_string()),
                Ok(found) => {
                    if let Err(why) = self.take(found) {
                        return Parsed::Damaged(why);
                    }
                    if self.open.is_empty() {
                        break;
                    }
                }
            }
        }
        if self.has_system {
            Parsed::Whole(reader.buffer_position() as usize, self.head)
        } else {
            Parsed::Damaged("it has no element System".to_owned())
        }
    }

    fn take(&mut self, found: Event<'_>) -> Result<(), String> {
        match found {
            Event::Start(tag) => {
                let indent = indent(&self.run).filter(|_| !self.is_content);
                self.start(&tag)?;
                self.event.end_start();
                self.open.push(Open {
                    has_elements: false,
                    indent,
                });
                if self.open.len() > MAX_OPEN_ELEMENTS {
                    return Err(format!(
                        "its elements are nested more than {MAX_OPEN_ELEMENTS} levels deep"
                    ));
                }
            }
            Event::Empty(tag) => {
                self.start(&tag)?;
                self.event.close();
                if self.place == Place::RecordId {
                    self.place = Place::System;
                }
            }
            Event::End(_) => {
                if self.place == Place::RecordId {
                    self.head.id = self.run.trim().parse().ok();
                    self.place = Place::System;
                } else if self.open.len() == 2 {
                    self.place = Place::Elsewhere;
                }
                let open = self.open.pop();
                // evtx_dump writes the end tag of an empty element below the start tag.
                let is_leaf =
                    |open: Open| !open.has_elements && (open.indent.is_none() || open.indent != indent(&self.run));
                // System, EventData and the like have no values of their own.
                self.end_run(self.open.len() > 1 && open.is_some_and(is_leaf));
                self.event.end();
            }
            Event::Text(text) => {
                self.is_content |= !text.bytes().all(|byte| byte.is_ascii_whitespace());
                self.push(&text);
            }
            Event::CData(text) => {
                self.is_content = true;
                self.push(&text);
            }
            Event::GeneralRef(reference) => {
                self.is_content = true;
                match reference.resolve_char_ref().map_err(|error| error.to_string())? {
                    Some(letter) => self.run.push(letter),
                    None => match resolve_predefined_entity(&reference) {
                        Some(text) => self.run += text,
                        // It stays a reference. Nothing is read of a document type that may declare it.
                        None => {
                            self.end_run(true);
                            self.event.reference(&reference);
                            self.is_content = true;
                        }
                    },
                }
            }
            Event::Comment(_) | Event::PI(_) => {}
            Event::Decl(_) | Event::DocType(_) | Event::Eof => {
                return Err("a declaration stands in it".to_owned());
            }
        }
        Ok(())
    }

    fn push(&mut self, text: &str) {
        if text.as_bytes().contains(&UNDECODED) {
            self.run += &text.replace(char::from(UNDECODED), "\u{FFFD}");
        } else {
            self.run += text;
        }
    }

    /// Writes the text before a tag. White space counts if it is all that an element holds.
    fn end_run(&mut self, is_all: bool) {
        if !self.run.is_empty() && (self.is_content || is_all) {
            self.event.text(&self.run);
        }
        self.run.clear();
        self.is_content = false;
    }

    fn start(&mut self, tag: &BytesStart<'_>) -> Result<(), String> {
        self.end_run(false);
        let depth = self.open.len();
        if let Some(open) = self.open.last_mut() {
            open.has_elements = true;
        }
        let name = tag.name().into_inner();
        if depth == 0 {
            self.prefix.clear();
            self.prefix += name.strip_suffix("Event").unwrap_or_default();
        }
        // Nearly no export has a prefix.
        let name = match self.prefix.as_str() {
            "" => name,
            prefix => name.strip_prefix(prefix).unwrap_or(name),
        };
        self.event.start(name);
        let is_time = depth == 2 && self.place == Place::System && name == "TimeCreated";
        match (depth, self.place, name) {
            (1, _, "System") => (self.place, self.has_system) = (Place::System, true),
            (2, Place::System, "EventRecordID") => self.place = Place::RecordId,
            _ => {}
        }
        for (nth, attribute) in tag.attributes().enumerate() {
            let attribute = attribute.map_err(|error| error.to_string())?;
            let key = attribute.key.into_inner();
            let value = unescape(&attribute.value).map_err(|error| error.to_string())?;
            if nth == MAX_ATTRIBUTES {
                return Err(format!("an element has more than {MAX_ATTRIBUTES} attributes"));
            }
            if depth > 0 && name == "Event" && key.starts_with("xmlns") && value.ends_with("/events/event") {
                return Err("another event starts in it".to_owned());
            }
            if is_time && key == "SystemTime" {
                self.head.written = filetime(&value).unwrap_or(0);
            }
            if value.as_bytes().contains(&UNDECODED) {
                self.event
                    .attribute(key, &value.replace(char::from(UNDECODED), "\u{FFFD}"));
            } else {
                self.event.attribute(key, &value);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_starts_at_its_tag() {
        for (text, expected) in [
            ("<Event>", Some(0)),
            ("<Events><Event xmlns=''", Some(8)),
            ("<EventID/><EventData><Event/>", Some(21)),
            ("<a:Event\n", Some(0)),
            ("a:Event>", None),
            ("</Event></a:Event>", None),
            ("<Event", None),
            ("Event>", None),
        ] {
            assert_eq!(find_start(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn times_are_ticks_since_1601() {
        assert_eq!(filetime("2020-01-01T00:00:00Z"), Some(132_223_104_000_000_000));
        assert_eq!(filetime("1601-01-01T00:00:00.000000199Z"), Some(1));
        for text in ["", "1600-01-01T00:00:00Z", "2020-01-01", "yesterday"] {
            assert_eq!(filetime(text), None, "{text}");
        }
    }

    #[test]
    fn the_head_is_that_of_system() {
        let mut parser = Parser::default();
        let mut head = |text: &str| match parser.parse(text) {
            Parsed::Whole(len, head) if len == text.trim_end().len() => Ok((head.id, head.written)),
            other => Err(format!("{other:?}")),
        };
        let system = "<TimeCreated SystemTime='1601-01-01T00:00:01Z'/><EventRecordID> 7 </EventRecordID>";
        let other = system.replace('7', "8").replace("01Z", "02Z");
        let events = [
            format!("<Event><System>{system}</System><UserData><System>{other}</System></UserData></Event>\n"),
            format!("<Event><UserData>{other}<a/></UserData>\n<System><b/>{system}</System></Event>"),
            format!(
                "<e:Event><e:System>{}</e:System></e:Event>",
                system.replace('<', "<e:").replace("<e:/", "</e:")
            ),
        ];
        for event in events {
            assert_eq!(head(&event), Ok((Some(7), 10_000_000)), "{event}");
        }
        assert_eq!(
            head("<Event><System><EventRecordID>x</EventRecordID></System></Event>"),
            Ok((None, 0))
        );
        assert!(head("<Event><System/>").is_err_and(|why| why == "Cut"));
        assert!(head("<Event><EventData/></Event>").is_err_and(|why| why.contains("no element System")));
    }
}
