//! An export as a log: its events, one after the other, as records.

use std::cell::RefCell;
use std::sync::Arc;

use evtx_format::{Interrupt, MAX_OPEN_ELEMENTS, cut};
use evtx_scan::{Doubt, OpenFile, StorageError, StorageFile};
use evtx_writer::LogWriter;
use memchr::{memchr, memmem};

use super::event::{Head, Parser, decoded, tag_of};
use super::markup::{End, Lexed, Opaque, Token, Unended, document_type, lex};
use super::scopes::{Scopes, split};
use super::text::{Text, Window};
use crate::encoding::other_label;
use crate::findings::Findings;
use crate::input::Input;
use crate::limits::Archives;
use crate::memory::{EntryBytes, unusable};

/// The most bytes of the text of an event. In a chunk, it has room for 64 KiB.
const MAX_EVENT: usize = 1 << 20;

/// The most bytes of text between two events that are looked at together.
const MAX_FILLER: usize = 1 << 16;

/// The most damaged places of a file with a row each.
const MAX_DAMAGE: usize = 1000;

/// The most characters of such a row. It can quote a name, which may have any length.
const MAX_REASON: usize = 300;

/// How many chunks are held at once.
const CHUNKS: usize = 16;

/// The log that an export becomes.
struct ConvertedLog {
    header: Vec<u8>,
    chunks: Arc<dyn StorageFile>,
    damage: Vec<String>,
    doubts: Arc<[Doubt]>,
}

impl StorageFile for ConvertedLog {
    fn size(&self) -> u64 {
        self.header.len() as u64 + self.chunks.size()
    }

    fn damage(&self) -> &[String] {
        &self.damage
    }

    fn doubts(&self) -> Arc<[Doubt]> {
        Arc::clone(&self.doubts)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        let header = usize::try_from(offset).ok().and_then(|start| self.header.get(start..));
        let header = header.unwrap_or_default();
        let (first, rest) = buffer.split_at_mut(header.len().min(buffer.len()));
        first.copy_from_slice(&header[..first.len()]);
        let offset = (offset + first.len() as u64).saturating_sub(self.header.len() as u64);
        if rest.is_empty() {
            return Ok(());
        }
        self.chunks.read_at(rest, offset)
    }
}

/// Turns an export into a log.
///
/// # Errors
/// [`StorageError::Unusable`] if the file has no event, and the errors of the storage that end a scan.
pub(super) fn convert(
    export: OpenFile,
    archives: &Archives,
    interrupt: Interrupt<'_>,
) -> Result<OpenFile, StorageError> {
    let mut is_numbered = true;
    loop {
        let failure = RefCell::new(None);
        let (file, size) = (&*export.file, export.file.size());
        let input = Input::new(file, 0, size, export.is_remote, interrupt, &failure);
        let mut conversion = Conversion {
            text: Text::new(input, &failure)?,
            interrupt,
            parser: Parser::default(),
            log: LogWriter::new(1),
            held: EntryBytes::new(&archives.budget),
            is_numbered,
            scopes: Scopes::default(),
            open: Vec::new(),
            is_unread: false,
            unended: Unended::default(),
            has_lost_type: false,
            doubted: Doubted::No,
            doubt: Arc::default(),
            doubts: Vec::new(),
            misfits: 0,
            misfit: format!("cannot read a part of the event, as in {MAX_DAMAGE} events before it").into(),
            records: 0,
            last_id: 0,
            damage: Findings::new(MAX_DAMAGE),
        };
        let converted = conversion.run();
        if matches!(converted, Ok(Outcome::NotNumbered)) {
            is_numbered = false;
            continue;
        }
        let full = match converted {
            Err(why @ StorageError::Unusable(_)) => Some(why),
            Err(why) => return Err(why),
            Ok(outcome) => {
                let why = conversion.text.ended.take().or(export.failure.clone());
                if let Outcome::NotEvents = outcome {
                    let damage = conversion.damage.first().map(|damage| format!(": {damage}"));
                    let text = format!("it has no events as XML{}", damage.unwrap_or_default());
                    return why.map_or_else(|| unusable(text), Err);
                }
                why
            }
        };
        return Ok(conversion.finish(full));
    }
}

/// How a conversion ends.
enum Outcome {
    Done,
    /// The IDs of the events do not rise.
    NotNumbered,
    /// The file has neither an event nor an empty root.
    NotEvents,
}

/// Whether the text may belong to a part of XML without markup, whose end is lost.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Doubted {
    No,
    /// Up to the next end of a comment.
    ToComment,
    ToEnd,
}

struct Conversion<'c> {
    text: Text<'c>,
    interrupt: Interrupt<'c>,
    parser: Parser,
    log: LogWriter,
    held: EntryBytes,
    /// Whether records have the IDs of events.
    is_numbered: bool,
    /// The prefixes that are declared around the event.
    scopes: Scopes,
    /// The open elements around the event: their names, and how many prefixes are declared around each.
    open: Vec<(Vec<u8>, usize)>,
    /// Whether some bytes between events are neither declarations nor the tags of roots.
    is_unread: bool,
    /// Which opaque parts have no end in the rest of the file.
    unended: Unended,
    /// Whether a document type did not end.
    has_lost_type: bool,
    doubted: Doubted,
    /// Why its events are doubted.
    doubt: Arc<str>,
    /// The events that stand in such text, for each part, and those with misfits.
    doubts: Vec<Doubt>,
    /// How many events have parts that no column has.
    misfits: usize,
    /// What the error of a further one says.
    misfit: Arc<str>,
    records: u64,
    last_id: u64,
    damage: Findings,
}

impl Conversion<'_> {
    fn run(&mut self) -> Result<Outcome, StorageError> {
        let mut is_after_damage = false;
        let mut is_empty = true;
        loop {
            self.interrupt.check()?;
            let is_root = self.find(is_after_damage)?;
            is_empty &= !is_root;
            if self.text.bytes().is_empty() {
                break;
            }
            is_empty = false;
            let (offset, doubted) = (self.text.offset(), self.doubted);
            match self.event()? {
                Ok(head) => {
                    is_after_damage = false;
                    if !self.write(head, offset, doubted)? {
                        return Ok(Outcome::NotNumbered);
                    }
                }
                Err(why) => {
                    is_after_damage = true;
                    self.lose(&format!("the event at byte {offset} cannot be read: {why}"));
                    self.text.pass(1);
                }
            }
        }
        if !self.open.is_empty() && !self.is_unread && !is_after_damage {
            self.lose("the file ends before its root does: events can be missing");
        }
        self.log.end();
        self.hold()?;
        self.held.end()?;
        Ok(if is_empty { Outcome::NotEvents } else { Outcome::Done })
    }

    fn finish(self, failure: Option<StorageError>) -> OpenFile {
        let log = ConvertedLog {
            header: self.log.header(),
            chunks: self.held.into_file(),
            damage: self
                .damage
                .end(|more| format!("{more} more places of the file are damaged")),
            doubts: self.doubts.into(),
        };
        OpenFile {
            file: Arc::new(log),
            is_remote: false,
            failure,
        }
    }

    fn lose(&mut self, what: &str) {
        let (what, dots) = cut(what, MAX_REASON);
        self.damage.tell(&format!("{what}{dots}"));
    }

    /// Moves the window to the next event, or to the end. Returns whether the tag of a root was passed. Reports what else
    /// is there, unless it belongs to a damaged event.
    fn find(&mut self, is_after_damage: bool) -> Result<bool, StorageError> {
        let offset = self.text.offset();
        let (mut is_filler, mut starts, mut ends) = (true, 0, 0);
        // The elements around a damaged event, whose own ones may not end.
        let mut around = is_after_damage.then_some((self.open.len(), self.scopes.len()));
        let is_found = loop {
            self.interrupt.check()?;
            let (bytes, is_end) = (self.text.bytes(), self.text.is_end());
            let text = memchr(b'<', bytes).unwrap_or(bytes.len());
            if text == bytes.len() && !is_end && text <= MAX_FILLER {
                self.text.more()?;
                continue;
            }
            if text > 0 || bytes.is_empty() {
                is_filler &= is_blank(&bytes[..text]);
                if bytes.is_empty() && is_end {
                    break false;
                }
                self.pass(text);
                continue;
            }
            let len = match lex(bytes, self.unended) {
                Lexed::Token(token, len) => {
                    match token {
                        Token::Start(tag, is_empty) => {
                            let (tag, scope) = (decoded(tag), self.scopes.len());
                            let tag = tag_of(&tag);
                            let (prefix, name) = split(tag.name().into_inner());
                            let is_declared = self.scopes.declare(&tag).is_ok();
                            if name == "Event" && (!is_declared || self.scopes.is_own(prefix) != Some(false)) {
                                self.scopes.truncate(scope);
                                break true;
                            }
                            starts += 1;
                            is_filler &= is_declared && name != "Event";
                            ends += i32::from(is_empty);
                            if is_empty || self.open.len() == MAX_OPEN_ELEMENTS {
                                self.scopes.truncate(scope);
                            } else {
                                self.open.push((tag.name().into_inner().into(), scope));
                            }
                        }
                        Token::End(name) => {
                            ends += 1;
                            let open = self.open.iter().rposition(|(open, _)| open == name);
                            let is_event = split(&decoded(name)).1 == "Event";
                            let len = open.or(around.filter(|_| is_event).map(|(len, _)| len));
                            if let Some(len) = len {
                                self.close(len);
                            }
                        }
                        Token::Comment(is_sound) => is_filler &= is_sound,
                        Token::Instruction(text) => {
                            let (at, read) = (self.text.offset(), self.text.encoding());
                            if let Some(label) = other_label(text, read) {
                                let read = read.name();
                                self.lose(&format!(
                                    "the declaration at byte {at} has the encoding \"{label}\", but the text is read as {read}"
                                ));
                            }
                        }
                        Token::Section(_) | Token::Text(_) => is_filler = false,
                    }
                    len
                }
                Lexed::Open(opaque) => {
                    is_filler &= self.skip(opaque)?;
                    continue;
                }
                Lexed::Endless(opaque) => {
                    self.doubt(opaque, self.text.offset());
                    is_filler = false;
                    1
                }
                Lexed::Cut if !is_end && bytes.len() < MAX_EVENT => {
                    self.text.more()?;
                    continue;
                }
                Lexed::DocumentType if !self.has_lost_type => match document_type(bytes) {
                    Some((len, has_defaults)) => {
                        is_filler &= self.open.is_empty();
                        if has_defaults {
                            let at = self.text.offset();
                            self.lose(&format!(
                                "the DOCTYPE at byte {at} declares attributes for elements without them, or may: they are not read"
                            ));
                        }
                        len
                    }
                    None if !is_end && bytes.len() < MAX_EVENT => {
                        self.text.more()?;
                        continue;
                    }
                    None => {
                        self.has_lost_type = true;
                        self.doubt_from("DOCTYPE", self.text.offset(), Doubted::ToEnd);
                        continue;
                    }
                },
                Lexed::Cut | Lexed::Broken(_) | Lexed::DocumentType => {
                    if starts_event(bytes) {
                        break true;
                    }
                    is_filler = false;
                    1
                }
            };
            self.pass(len);
            around = around.map(|(open, scope)| (open.min(self.open.len()), scope.min(self.scopes.len())));
        };
        if let Some((open, scope)) = around {
            self.open.truncate(open);
            self.scopes.truncate(scope);
        }
        is_filler &= starts <= 1 && ends <= 1;
        self.is_unread |= !is_filler;
        let len = self.text.offset() - offset;
        if !is_filler && !is_after_damage && (is_found || self.has_any()) {
            self.lose(&format!("{len} bytes at byte {offset} are not events"));
        }
        Ok(is_filler && starts > 0)
    }

    /// Passes text.
    fn pass(&mut self, len: usize) {
        if self.doubted == Doubted::ToComment
            && memmem::find(&self.text.bytes()[..len], Opaque::Comment.end()).is_some()
        {
            self.doubted = Doubted::No;
        }
        self.text.pass(len);
    }

    /// Says that an opaque part does not end as it should. The events from there on may be in it.
    fn doubt(&mut self, opaque: Opaque, offset: u64) {
        let is_unended = self.unended[opaque as usize];
        let doubted = if is_unended { Doubted::ToEnd } else { Doubted::ToComment };
        self.doubt_from(opaque.name(), offset, doubted);
    }

    fn doubt_from(&mut self, what: &str, offset: u64, doubted: Doubted) {
        if doubted <= self.doubted {
            return;
        }
        self.doubted = doubted;
        self.lose(&format!("the {what} at byte {offset} does not end"));
        self.doubt = format!("the event may be text: the {what} before it, at byte {offset}, does not end").into();
    }

    /// Closes all but so many open elements.
    fn close(&mut self, len: usize) {
        if let Some(&(_, scope)) = self.open.get(len) {
            self.scopes.truncate(scope);
            self.open.truncate(len);
        }
    }

    /// Passes an opaque part that goes on after the window. Returns whether it is one that may stand between events. If its end
    /// is lost, only its start is passed.
    fn skip(&mut self, opaque: Opaque) -> Result<bool, StorageError> {
        let start = self.text.offset();
        self.text.pass(opaque.start().len());
        let (mark, mut is_sound) = (self.text.offset(), opaque != Opaque::Section);
        loop {
            self.interrupt.check()?;
            let bytes = self.text.bytes();
            let (len, end) = match opaque.find_end(bytes) {
                End::At(len) => (len, opaque.end().len()),
                End::Lost => break,
                // Its end can be cut, as can the start of another one.
                End::Unknown => (bytes.len().saturating_sub(opaque.start().len()), 0),
            };
            // Two hyphens, or one before the end.
            let seen = &bytes[..bytes.len().min(len + 1)];
            is_sound &= opaque != Opaque::Comment || memmem::find(seen, b"--").is_none();
            self.pass(len + end);
            if end > 0 {
                return Ok(is_sound);
            }
            if !self.text.more()? {
                self.unended[opaque as usize] = true;
                break;
            }
        }
        self.text.seek(mark);
        self.doubt(opaque, start);
        Ok(false)
    }

    fn has_any(&self) -> bool {
        self.records > 0 || self.damage.first().is_some()
    }

    /// Reads the event at the start of the window and passes it. Returns why that is not possible; the window then stays.
    fn event(&mut self) -> Result<Result<Head, String>, StorageError> {
        let (scope, offset) = (self.scopes.len(), self.text.offset());
        let read = read_event(
            &mut self.text,
            &mut self.parser,
            &mut self.scopes,
            self.unended,
            self.interrupt,
        );
        self.scopes.truncate(scope);
        let len = match read? {
            Ok(len) => len,
            Err(_) if self.parser.has_inner => return Ok(Err("another event starts in it".to_owned())),
            Err(why) => return Ok(Err(why)),
        };
        for (is_told, what) in [
            (self.parser.is_lossy, "bytes that are not text; each is U+FFFD"),
            (self.parser.is_undeclared, "a prefix that nothing declares"),
        ] {
            if is_told {
                self.lose(&format!("the event at byte {offset} has {what}"));
            }
        }
        self.pass(len);
        Ok(Ok(self.parser.head))
    }

    /// Why the row of the event that was read is not sound. Only so many events have a text of their own.
    fn why(&mut self, offset: u64, doubted: Doubted) -> Option<Arc<str>> {
        let doubt = (doubted != Doubted::No).then(|| Arc::clone(&self.doubt));
        if self.parser.misfits.is_empty() {
            return doubt;
        }
        self.misfits += 1;
        if self.misfits > MAX_DAMAGE {
            return doubt.or_else(|| Some(Arc::clone(&self.misfit)));
        }
        let parts = self.parser.misfits.join(", ");
        let also = doubt.map(|doubt| format!("; {doubt}")).unwrap_or_default();
        Some(format!("cannot read {parts} of the event at byte {offset}{also}").into())
    }

    /// Writes the event that was read. Returns false if it is the second, and has no larger ID than the first.
    fn write(&mut self, head: Head, offset: u64, doubted: Doubted) -> Result<bool, StorageError> {
        let id = head
            .id
            .filter(|&id| self.is_numbered && id > self.last_id && id < u64::MAX / 2);
        if id.is_none() && self.is_numbered && self.records == 1 {
            return Ok(false);
        }
        let id = id.unwrap_or(self.last_id + 1);
        let Some(event) = self.parser.event.take() else {
            return Ok(true);
        };
        match self.log.write_spelled(id, head.written, event) {
            Ok(()) => {
                if let Some(why) = self.why(offset, doubted) {
                    match self.doubts.last_mut() {
                        Some(doubt) if doubt.records.end == self.last_id + 1 && Arc::ptr_eq(&doubt.why, &why) => {
                            doubt.records.end = id + 1;
                        }
                        _ => self.doubts.push(Doubt {
                            records: id..id + 1,
                            why,
                        }),
                    }
                }
                self.last_id = id;
                self.records += 1;
            }
            Err(why) => self.lose(&format!("the event at byte {offset} cannot be read: {why}")),
        }
        if self.log.chunks() >= CHUNKS {
            self.hold()?;
        }
        Ok(true)
    }

    /// Holds the chunks that are finished.
    fn hold(&mut self) -> Result<(), StorageError> {
        let (_, chunks) = self.log.take_chunks();
        let mut rest = &chunks[..];
        while !rest.is_empty() {
            self.held.add(rest.len() as u64, |buffer| {
                let (bytes, after) = rest.split_at(buffer.len());
                buffer.copy_from_slice(bytes);
                rest = after;
                bytes.len()
            })?;
        }
        Ok(())
    }
}

/// Reads the event at the start of a text. Returns its length, or why it cannot be read.
pub(super) fn read_event(
    text: &mut impl Window,
    parser: &mut Parser,
    scopes: &mut Scopes,
    unended: Unended,
    interrupt: Interrupt<'_>,
) -> Result<Result<usize, String>, StorageError> {
    // Where RenderingInfo starts.
    let (mut at, mut rendering) = (0, 0);
    parser.begin();
    loop {
        let bytes = text.bytes();
        let bytes = &bytes[..bytes.len().min(MAX_EVENT)];
        let was_rendering = parser.is_rendering();
        let failure = match lex(&bytes[at..], unended) {
            Lexed::Token(token, len) => match parser.take(&token, scopes) {
                Ok(is_end) => {
                    at += len;
                    if is_end {
                        let has_zero = memchr(0, &bytes[..at]).is_some();
                        return Ok(if has_zero {
                            Err("it has bytes of zero".to_owned())
                        } else {
                            Ok(at)
                        });
                    }
                    if !was_rendering {
                        rendering = at;
                    }
                    continue;
                }
                Err(why) => why,
            },
            Lexed::Broken(why) => why.to_owned(),
            Lexed::Endless(opaque) => format!("a {} in it does not end", opaque.name()),
            Lexed::DocumentType => "a declaration stands in it".to_owned(),
            Lexed::Open(_) | Lexed::Cut if bytes.len() >= MAX_EVENT => {
                format!("it has more than {MAX_EVENT} bytes")
            }
            Lexed::Open(_) | Lexed::Cut => {
                if text.more()? {
                    continue;
                }
                "it ends before its event does".to_owned()
            }
        };
        let end = match was_rendering {
            true => end_of_rendering(text, rendering, unended, interrupt)?,
            false => None,
        };
        let Some((end, is_end)) = end else {
            return Ok(Err(failure));
        };
        at = end;
        parser.leave_rendering(&failure, is_end, scopes);
        if is_end {
            return Ok(Ok(at));
        }
    }
}

/// The end of a `RenderingInfo` that cannot be read, whose content starts at `at`, and whether the event ends with it. That is the place
/// after its end tag, or before the end tag of the event, or before the next event. `None` if that is not certain.
fn end_of_rendering(
    text: &mut impl Window,
    mut at: usize,
    unended: Unended,
    interrupt: Interrupt<'_>,
) -> Result<Option<(usize, bool)>, StorageError> {
    loop {
        interrupt.check()?;
        let bytes = text.bytes();
        let rest = &bytes[at..bytes.len().min(MAX_EVENT)];
        at += match lex(rest, unended) {
            Lexed::Token(Token::Start(..), _) | Lexed::Broken(_) if starts_event(rest) => return Ok(Some((at, true))),
            Lexed::Token(Token::End(name), len) => match split(&decoded(name)).1 {
                "RenderingInfo" => return Ok(Some((at + len, false))),
                "Event" => return Ok(Some((at, false))),
                _ => len,
            },
            Lexed::Token(_, len) => len,
            Lexed::Broken(_) => 1,
            Lexed::Cut => {
                if bytes.len() < MAX_EVENT && text.more()? {
                    continue;
                }
                let len = text.bytes().len();
                return Ok((len < MAX_EVENT).then_some((len, true)));
            }
            Lexed::Open(_) | Lexed::Endless(_) | Lexed::DocumentType => return Ok(None),
        };
    }
}

/// Whether bytes start as the tag of an event, whatever its namespace is.
fn starts_event(bytes: &[u8]) -> bool {
    let name = bytes.strip_prefix(b"<").unwrap_or_default();
    let end = name
        .iter()
        // A `<` ends no name, but the search: of many in a row, each would be searched to the end.
        .position(|&byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'>' | b'/' | b'<'));
    let name = end.filter(|&end| name[end] != b'<').map(|end| &name[..end]);
    name.is_some_and(|name| name == b"Event" || name.ends_with(b":Event"))
}

/// Whether text between events is only white space, byte order marks, and the lines of evtx_dump.
fn is_blank(text: &[u8]) -> bool {
    let mut rest = text;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return true;
        }
        if let Some(after) = rest.strip_prefix(b"\xEF\xBB\xBF") {
            rest = after;
            continue;
        }
        let Some(number) = rest.strip_prefix(b"Record ") else {
            return false;
        };
        let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return false;
        }
        rest = &number[digits..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_between_events_is_blank_or_not() {
        for (text, expected) in [
            ("", true),
            (" \r\n", true),
            ("\u{feff}\n\u{feff}", true),
            ("Record 12\nRecord 3\n", true),
            ("Record x", false),
            ("Record", false),
            ("text", false),
            ("\0", false),
        ] {
            assert_eq!(is_blank(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn an_event_starts_at_its_tag() {
        for (text, expected) in [
            ("<Event>", true),
            ("<Event xmlns='", true),
            ("<a:Event\n", true),
            ("<Event", false),
            ("<EventID>", false),
            ("<a>:Event>", false),
            ("</Event>", false),
            ("<Event<", false),
            ("<<Event>", false),
            ("Event>", false),
        ] {
            assert_eq!(starts_event(text.as_bytes()), expected, "{text}");
        }
    }
}
