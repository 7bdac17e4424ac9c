//! The XML of one event.

use std::borrow::Cow;

use evtx_arrow::{is_misfit, system_element};
use evtx_format::value::time::unix_nanos_to_filetime;
use evtx_format::{MAX_OPEN_ELEMENTS, cut};
use evtx_writer::{Content, Element};
use jiff::Timestamp;
use memchr::{memchr, memchr3};
use quick_xml::escape::{resolve_predefined_entity, unescape};
use quick_xml::events::{BytesRef, BytesStart};

use super::markup::Token;
use super::scopes::{Scopes, split};

/// The most attributes of an element. Each is compared with all before it.
const MAX_ATTRIBUTES: usize = 256;

/// The most events inside each other. Each may be one that does not end, and is read again from its start on.
const MAX_INNER: usize = 4;

/// The most characters of a text that an error quotes.
const MAX_QUOTED: usize = 60;

/// The most parts of `System` that an error names.
const MAX_MISFITS: usize = 20;

/// The prefix that an element gets whose name is that of an element of events, in another namespace.
const OTHER: &str = "other";

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

/// Bytes as text. Each byte that is not UTF-8 is U+FFFD.
pub(super) fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => bytes
            .utf8_chunks()
            .flat_map(|piece| {
                [
                    Cow::Borrowed(piece.valid()),
                    "\u{FFFD}".repeat(piece.invalid().len()).into(),
                ]
            })
            .collect::<String>()
            .into(),
    }
}

/// The tag whose content this is.
pub(super) fn tag_of(content: &str) -> BytesStart<'_> {
    let name = content.split([' ', '\t', '\r', '\n']).next().unwrap_or_default();
    BytesStart::from_content(content, name.len())
}

/// Reads events, one after the other.
#[derive(Default)]
pub(super) struct Parser {
    /// The event that was read.
    pub(super) event: Option<Element>,
    pub(super) head: Head,
    /// Whether another event starts in it, and how many are open.
    pub(super) has_inner: bool,
    inner: usize,
    /// Whether some bytes of it are not text.
    pub(super) is_lossy: bool,
    /// Whether nothing declares its prefix.
    pub(super) is_undeclared: bool,
    /// The text since the last tag, and whether it is more than white space between tags.
    run: String,
    is_content: bool,
    /// The open elements, and their names.
    open: Vec<Open>,
    elements: Vec<Element>,
    names: Vec<u8>,
    /// What element of `System` is open.
    place: Place,
    has_system: bool,
    /// The elements of `System` with columns that the event has.
    seen: Vec<&'static str>,
    /// The text of the last of them, up to `run`.
    part: String,
    /// The parts of the event that no column has: `EventID '4624.5'`.
    pub(super) misfits: Vec<String>,
    /// The element of the event that is open.
    section: String,
    /// If `RenderingInfo` is open: how long the names were before it, and how many prefixes and misfits there were.
    rendering: Option<[usize; 3]>,
}

struct Open {
    /// Where its name starts.
    name: usize,
    /// How many prefixes are declared around it.
    scope: usize,
    /// Whether it is an event in another one.
    is_inner: bool,
    /// Whether it has elements.
    has_elements: bool,
    /// Whether it is an element of `System` with a column.
    is_part: bool,
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

/// A text whose line breaks are `\n` (2.11).
fn lines(text: Cow<'_, str>) -> Cow<'_, str> {
    match memchr(b'\r', text.as_bytes()) {
        Some(_) => text.replace("\r\n", "\n").replace('\r', "\n").into(),
        None => text,
    }
}

/// The value of an attribute, in which references are not replaced. White space is spaces (3.3.3).
fn spaced(value: &str) -> Cow<'_, str> {
    match memchr3(b'\r', b'\n', b'\t', value.as_bytes()) {
        Some(_) => value.replace("\r\n", " ").replace(['\r', '\n', '\t'], " ").into(),
        None => value.into(),
    }
}

/// The length of a text, if it is a line break and the indent of a tag.
fn indent(text: &str) -> Option<usize> {
    let after = text.strip_prefix('\n')?;
    after
        .bytes()
        .all(|byte| byte == b' ' || byte == b'\t')
        .then_some(text.len())
}

impl Parser {
    /// Begins an event.
    pub(super) fn begin(&mut self) {
        self.event = None;
        self.run.clear();
        self.open.clear();
        self.elements.clear();
        self.names.clear();
        (self.is_content, self.has_system, self.inner) = (false, false, 0);
        (self.has_inner, self.is_lossy, self.is_undeclared) = (false, false, false);
        (self.place, self.head) = (Place::Elsewhere, Head::default());
        self.seen.clear();
        self.part.clear();
        self.misfits.clear();
        self.rendering = None;
    }

    /// Whether `RenderingInfo` of the event is open.
    pub(super) fn is_rendering(&self) -> bool {
        self.rendering.is_some()
    }

    /// Leaves out `RenderingInfo`, which cannot be read. `is_end` says that the event ends with it.
    pub(super) fn leave_rendering(&mut self, why: &str, is_end: bool, scopes: &mut Scopes) {
        let Some([names, scope, misfits]) = self.rendering.take() else {
            return;
        };
        self.misfits.truncate(misfits);
        self.tell(format!("RenderingInfo ({why})"));
        self.names.truncate(names);
        self.open.truncate(1);
        self.elements.truncate(1);
        self.run.clear();
        (self.is_content, self.has_inner, self.inner) = (false, false, 0);
        scopes.truncate(scope);
        if is_end {
            self.open.clear();
            self.event = self.elements.pop().map(Element::with_end_tag);
        }
    }

    /// Takes what the event has next, from its start tag on. Returns whether it has ended.
    ///
    /// # Errors
    /// Why it is not an event.
    pub(super) fn take(&mut self, token: &Token<'_>, scopes: &mut Scopes) -> Result<bool, String> {
        match *token {
            Token::Start(tag, is_empty) => self.start(tag, is_empty, scopes)?,
            Token::End(name) => self.end(name, scopes)?,
            Token::Text(text) => {
                let text = lines(self.decoded(text));
                self.text(&text)?;
            }
            Token::Section(text) => {
                self.is_content = true;
                let text = lines(self.decoded(text));
                self.run += &text;
            }
            Token::Comment(true) => {}
            Token::Comment(false) => return Err("a comment in it has `--` in it".to_owned()),
            Token::Instruction(content) => {
                let target = content.split(u8::is_ascii_whitespace).next().unwrap_or_default();
                if target.eq_ignore_ascii_case(b"xml") {
                    return Err("a declaration stands in it".to_owned());
                }
            }
        }
        match self.open.is_empty() {
            true if !self.has_system => Err("it has no element System".to_owned()),
            is_end => Ok(is_end),
        }
    }

    fn decoded<'t>(&mut self, bytes: &'t [u8]) -> Cow<'t, str> {
        let text = decoded(bytes);
        self.is_lossy |= matches!(text, Cow::Owned(_));
        text
    }

    fn end(&mut self, name: &[u8], scopes: &mut Scopes) -> Result<(), String> {
        let Some(open) = self.open.pop() else {
            return Err("it ends before it starts".to_owned());
        };
        let expected = &self.names[open.name..];
        if expected != name {
            let (expected, name) = (decoded(expected), decoded(name));
            return Err(format!("expected `</{expected}>`, but `</{name}>` was found"));
        }
        if open.is_part {
            let text = std::mem::take(&mut self.part) + &self.run;
            self.check(split(&decoded(name)).1, None, &text);
            if self.place == Place::RecordId {
                self.head.id = text.trim().parse().ok().filter(|_| !open.has_elements);
                self.place = Place::System;
            }
        }
        self.names.truncate(open.name);
        self.inner -= usize::from(open.is_inner);
        scopes.truncate(open.scope);
        if self.open.len() == 1 {
            self.place = Place::Elsewhere;
            self.rendering = None;
        }
        // evtx_dump writes the end tag of an empty element below the start tag.
        let is_leaf = !open.has_elements && (open.indent.is_none() || open.indent != indent(&self.run));
        // System, EventData and the like have no values of their own.
        self.end_run(self.open.len() > 1 && is_leaf);
        if let Some(element) = self.elements.pop() {
            self.close(element.with_end_tag());
        }
        Ok(())
    }

    /// Adds an element that has ended to the one around it.
    fn close(&mut self, element: Element) {
        if self.elements.is_empty() {
            self.event = Some(element);
        } else {
            self.add(Content::Element(element));
        }
    }

    /// Adds content to the innermost element.
    fn add(&mut self, content: Content) {
        let element = self.elements.pop().map(|element| element.content(content));
        self.elements.extend(element);
    }

    /// Keeps the text before a tag or a reference, if it is that of a part of `System`.
    fn keep_part(&mut self) {
        if self.open.last().is_some_and(|open| open.is_part) {
            self.part += &self.run;
        }
    }

    /// Checks the text of a part of `System`. White space stands for no value.
    fn check(&mut self, element: &str, attribute: Option<&str>, text: &str) {
        let text = text.trim_ascii();
        if !text.is_empty() && is_misfit(element, attribute, text) {
            let attribute = attribute.map(|name| format!(" {name}")).unwrap_or_default();
            let (text, dots) = cut(text, MAX_QUOTED);
            self.tell(format!("{element}{attribute} '{text}{dots}'"));
        }
    }

    /// Keeps what no column has, once.
    fn tell(&mut self, misfit: String) {
        if self.misfits.len() < MAX_MISFITS && !self.misfits.contains(&misfit) {
            self.misfits.push(misfit);
        }
    }

    /// Tells of an element in a part of `System`, which has only text. Its own text must not become that of the part, as in
    /// `<EventID>4624<x>9</x></EventID>`.
    fn check_parent(&mut self, local: &str) {
        if let Some(open) = self.open.last().filter(|open| open.is_part) {
            let part = decoded(&self.names[open.name..]).into_owned();
            let (local, dots) = cut(local, MAX_QUOTED);
            self.tell(format!("the element {local}{dots} in {}", split(&part).1));
            self.add(Content::Text("\u{FFFD}".to_owned()));
        }
    }

    /// Takes text with references.
    fn text(&mut self, text: &str) -> Result<(), String> {
        let mut rest = text;
        loop {
            let at = memchr(b'&', rest.as_bytes());
            let before = &rest[..at.unwrap_or(rest.len())];
            self.is_content |= !before.bytes().all(|byte| byte.is_ascii_whitespace());
            self.run += before;
            let Some(at) = at else {
                return Ok(());
            };
            let name;
            (name, rest) = rest[at + 1..]
                .split_once(';')
                .ok_or("a `&` in it starts no reference")?;
            self.reference(name)?;
        }
    }

    fn reference(&mut self, name: &str) -> Result<(), String> {
        self.is_content = true;
        let reference = BytesRef::new(name);
        if let Some(letter) = reference.resolve_char_ref().map_err(|error| error.to_string())? {
            self.run.push(letter);
        } else if let Some(text) = resolve_predefined_entity(name) {
            self.run += text;
        } else if name.is_empty() || name.contains(|letter: char| letter.is_whitespace() || letter == '&') {
            return Err("a `&` in it starts no reference".to_owned());
        } else {
            // It stays a reference. What a document type declares is not read.
            self.keep_part();
            self.end_run(true);
            self.run = format!("&{name};");
            self.keep_part();
            self.run.clear();
            self.add(Content::EntityRef(name.to_owned()));
            self.is_content = true;
        }
        Ok(())
    }

    /// Writes the text before a tag. White space counts if it is all that an element holds.
    fn end_run(&mut self, is_all: bool) {
        if !self.run.is_empty() && (self.is_content || is_all) {
            self.add(Content::Text(self.run.clone()));
        }
        self.run.clear();
        self.is_content = false;
    }

    fn start(&mut self, content: &[u8], is_empty: bool, scopes: &mut Scopes) -> Result<(), String> {
        let indent = indent(&self.run).filter(|_| !self.is_content);
        self.keep_part();
        self.end_run(false);
        let depth = self.open.len();
        if let Some(open) = self.open.last_mut() {
            open.has_elements = true;
        }
        let content = self.decoded(content);
        let (tag, scope) = (tag_of(&content), scopes.len());
        scopes.declare(&tag)?;
        let name = tag.name().into_inner();
        let (prefix, local) = split(name);
        if depth == 0 && scopes.namespace(prefix).is_none() {
            self.is_undeclared = true;
            scopes.add_own(prefix)?;
        }
        let is_own = scopes.is_own(prefix) == Some(true);
        self.check_parent(local);
        // Where the names are those of events, another namespace needs a prefix.
        let is_taken = !is_own && prefix.is_empty() && (depth == 1 || depth == 2 && self.place == Place::System);
        let mut element = match (is_own, is_taken) {
            (true, _) => Element::new(local),
            (_, true) => {
                let namespace = scopes.namespace(prefix).unwrap_or_default();
                Element::new(format!("{OTHER}:{local}")).attribute(&format!("xmlns:{OTHER}"), namespace)
            }
            _ => Element::new(name),
        };
        let is_inner = is_own && depth > 0 && local == "Event";
        self.has_inner |= is_inner;
        if depth == 1 {
            self.section.clear();
            self.section += if is_own { "" } else { "other:" };
            self.section += local;
        }
        if is_inner && !["EventData", "UserData"].contains(&self.section.as_str()) {
            let (section, dots) = cut(if depth == 1 { "Event" } else { &self.section }, MAX_QUOTED);
            self.tell(format!("the event in {section}{dots}"));
        }
        match (depth, self.place, local) {
            (1, _, "System") if is_own => (self.place, self.has_system) = (Place::System, true),
            (2, Place::System, "EventRecordID") if is_own && !is_empty => self.place = Place::RecordId,
            _ => {}
        }
        let is_in_system = is_own && depth == 2 && self.place != Place::Elsewhere;
        let part = system_element(local).filter(|_| is_in_system);
        let is_part = part.is_some();
        match part {
            Some(part) if !self.seen.contains(&part) => self.seen.push(part),
            Some(part) => self.tell(format!("the second {part}")),
            None => {}
        }
        let is_time = is_part && local == "TimeCreated";
        for (nth, attribute) in tag.attributes().enumerate() {
            let attribute = attribute.map_err(|error| error.to_string())?;
            let key = attribute.key.into_inner();
            let value = spaced(&attribute.value);
            let value = unescape(&value).map_err(|error| error.to_string())?;
            if nth == MAX_ATTRIBUTES {
                return Err(format!("an element has more than {MAX_ATTRIBUTES} attributes"));
            }
            if is_time && key == "SystemTime" {
                self.head.written = filetime(&value).unwrap_or(0);
            }
            if is_part {
                self.check(local, Some(key), &value);
            }
            element = element.attribute(key, value);
        }
        if is_empty {
            self.close(element);
            scopes.truncate(scope);
            if depth == 1 {
                self.place = Place::Elsewhere;
            }
            return Ok(());
        }
        self.elements.push(element);
        let start = self.names.len();
        if depth == 1 && is_own && local == "RenderingInfo" {
            self.rendering = Some([start, scope, self.misfits.len()]);
        }
        self.names.extend(name.as_bytes());
        self.open.push(Open {
            name: start,
            scope,
            is_inner,
            has_elements: false,
            is_part,
            indent,
        });
        self.inner += usize::from(is_inner);
        if self.inner > MAX_INNER {
            return Err(format!("more than {MAX_INNER} events start in it"));
        }
        if self.open.len() > MAX_OPEN_ELEMENTS {
            return Err(format!(
                "its elements are nested more than {MAX_OPEN_ELEMENTS} levels deep"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::markup::{Lexed, Unended, lex};
    use super::*;

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
        let mut head = |text: &str| {
            let (mut scopes, mut at) = (Scopes::default(), 0);
            parser.begin();
            while let Lexed::Token(token, len) = lex(&text.as_bytes()[at..], Unended::default()) {
                at += len;
                if parser.take(&token, &mut scopes)? {
                    assert_eq!((at, scopes.len()), (text.trim_end().len(), 0), "{text}");
                    return Ok((parser.head.id, parser.head.written));
                }
            }
            Err("cut".to_owned())
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
        assert!(head("<Event><System/>").is_err_and(|why| why == "cut"));
        assert!(head("<Event><EventData/></Event>").is_err_and(|why| why.contains("no element System")));
    }
}
