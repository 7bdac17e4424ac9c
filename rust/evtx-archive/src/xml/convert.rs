//! An export as a log: its events, one after the other, as records.

use std::cell::RefCell;
use std::sync::Arc;

use evtx_format::Interrupt;
use evtx_scan::{OpenFile, StorageError, StorageFile};
use evtx_writer::LogWriter;
use memchr::{memchr, memmem};

use super::event::{Head, Parsed, Parser, UNDECODED, find_start};
use super::text::Text;
use crate::input::Input;
use crate::limits::Archives;
use crate::memory::{EntryBytes, unusable};

/// The most bytes of the text of an event. In a chunk, it has room for 64 KiB.
const MAX_EVENT: usize = 1 << 20;

/// The most tags of other events that an event may seem to have in it, as after a tag that is lost.
const MAX_INNER: usize = 4;

/// The most bytes between two events that can be declarations and the tags of roots.
const MAX_FILLER: usize = 1 << 16;

/// A tag that is cut is at most so long, up to the end of its name.
const CUT_TAG: usize = 64;

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
}

impl StorageFile for ConvertedLog {
    fn size(&self) -> u64 {
        self.header.len() as u64 + self.chunks.size()
    }

    fn damage(&self) -> &[String] {
        &self.damage
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
            roots: Some(0),
            records: 0,
            last_id: 0,
            damage: Vec::new(),
            unlisted: 0,
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
                    return why.map_or_else(|| unusable("it has no events as XML"), Err);
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

struct Conversion<'c> {
    text: Text<'c>,
    interrupt: Interrupt<'c>,
    parser: Parser,
    log: LogWriter,
    held: EntryBytes,
    /// Whether records have the IDs of events.
    is_numbered: bool,
    /// How many roots are open, if nothing between events is damaged.
    roots: Option<i32>,
    records: u64,
    last_id: u64,
    damage: Vec<String>,
    /// How many places are damaged that `damage` does not list.
    unlisted: u64,
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
            let offset = self.text.offset();
            match self.event()? {
                Ok(head) => {
                    is_after_damage = false;
                    if !self.write(head, offset)? {
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
        if self.roots.is_some_and(|open| open > 0) && !is_after_damage {
            self.lose("the file ends before its root does: events can be missing");
        }
        self.log.end();
        self.hold()?;
        self.held.end()?;
        if self.unlisted > 0 {
            let text = format!("{} more places of the file are damaged", self.unlisted);
            self.damage.push(text);
        }
        Ok(if is_empty { Outcome::NotEvents } else { Outcome::Done })
    }

    fn finish(self, failure: Option<StorageError>) -> OpenFile {
        let log = ConvertedLog {
            header: self.log.header(),
            chunks: self.held.into_file(),
            damage: self.damage,
        };
        OpenFile {
            file: Arc::new(log),
            is_remote: false,
            failure,
        }
    }

    fn lose(&mut self, what: &str) {
        if self.damage.len() < MAX_DAMAGE {
            self.damage.push(match what.char_indices().nth(MAX_REASON) {
                Some((end, _)) => format!("{}…", &what[..end]),
                None => what.to_owned(),
            });
        } else {
            self.unlisted += 1;
        }
    }

    /// Moves the window to the next event, or to the end. Returns whether the tag of a root was passed. Reports what else
    /// is there, unless it belongs to a damaged event.
    fn find(&mut self, mut is_reported: bool) -> Result<bool, StorageError> {
        let (offset, mut is_root) = (self.text.offset(), false);
        let mut is_filler = true;
        loop {
            let bytes = self.text.bytes();
            let found = find_start(bytes);
            let is_last = found.is_some() || self.text.is_end();
            let end = found.unwrap_or(bytes.len());
            if is_last || bytes.len() > MAX_FILLER {
                let filler = if is_last { filler(&bytes[..end]) } else { None };
                is_filler &= filler.is_some();
                is_root |= filler.is_some_and(|[starts, _]| starts > 0);
                self.roots = self
                    .roots
                    .zip(filler)
                    .map(|(open, [starts, ends])| open + starts - ends);
                let end = if is_last { end } else { end.saturating_sub(CUT_TAG) };
                self.text.pass(end);
            }
            if is_last {
                let len = self.text.offset() - offset;
                if !is_filler && !std::mem::replace(&mut is_reported, true) && (found.is_some() || self.has_any()) {
                    self.lose(&format!("{len} bytes at byte {offset} are not events"));
                }
                return Ok(is_root);
            }
            self.text.more()?;
        }
    }

    fn has_any(&self) -> bool {
        self.records > 0 || !self.damage.is_empty()
    }

    /// Reads the event at the start of the window and passes it. Returns why that is not possible; the window then stays.
    fn event(&mut self) -> Result<Result<Head, String>, StorageError> {
        // The next tag of an event that may be in this one.
        let (mut from, mut inner) = (1, 0);
        loop {
            let bytes = self.text.bytes();
            let next = find_start(&bytes[from..])
                .map(|at| from + at)
                .filter(|&at| at <= MAX_EVENT);
            let text = &bytes[..next.unwrap_or(bytes.len()).min(MAX_EVENT)];
            let (parsed, is_lossy) = parse(&mut self.parser, text);
            match parsed {
                Parsed::Whole(len, head) => {
                    if memchr(0, &bytes[..len]).is_some() {
                        return Ok(Err("it has bytes of zero".to_owned()));
                    }
                    if is_lossy {
                        let offset = self.text.offset();
                        self.lose(&format!(
                            "the event at byte {offset} has bytes that are not text; each is U+FFFD"
                        ));
                    }
                    self.text.pass(len);
                    return Ok(Ok(head));
                }
                Parsed::Damaged(why) => return Ok(Err(why)),
                Parsed::Cut => match next {
                    Some(_) if inner == MAX_INNER => return Ok(Err("it does not end".to_owned())),
                    Some(next) => (from, inner) = (next + 1, inner + 1),
                    None if bytes.len() >= MAX_EVENT => {
                        return Ok(Err(format!("it has more than {MAX_EVENT} bytes")));
                    }
                    None if !self.text.more()? => return Ok(Err("the file ends in it".to_owned())),
                    None => {}
                },
            }
        }
    }

    /// Writes the event that was read. Returns false if it is the second, and has no larger ID than the first.
    fn write(&mut self, head: Head, offset: u64) -> Result<bool, StorageError> {
        let id = head
            .id
            .filter(|&id| self.is_numbered && id > self.last_id && id < u64::MAX / 2);
        if id.is_none() && self.is_numbered && self.records == 1 {
            return Ok(false);
        }
        let id = id.unwrap_or(self.last_id + 1);
        match self.log.write_spelled(id, head.written, &self.parser.event) {
            Ok(()) => {
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

/// Reads an event. Returns whether some bytes of the text are not UTF-8.
fn parse(parser: &mut Parser, bytes: &[u8]) -> (Parsed, bool) {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return (parser.parse(text), false),
        Err(error) => error,
    };
    let valid = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
    match parser.parse(valid) {
        Parsed::Cut if error.error_len().is_some() => {}
        parsed => return (parsed, false),
    }
    // As many bytes as there were, so that offsets stay.
    let mut text = String::with_capacity(bytes.len());
    for piece in bytes.utf8_chunks() {
        text += piece.valid();
        text.extend(piece.invalid().iter().map(|_| char::from(UNDECODED)));
    }
    (parser.parse(&text), true)
}

/// How many roots start and end in bytes between events; `None` if these are not only that, declarations, comments and the
/// lines of evtx_dump.
fn filler(bytes: &[u8]) -> Option<[i32; 2]> {
    let (mut rest, mut starts, mut ends) = (bytes, 0, 0);
    loop {
        rest = rest.trim_ascii_start();
        rest = rest.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(rest).trim_ascii_start();
        let end = match rest {
            [] => return Some([starts, ends]),
            [b'<', b'?', ..] => "?>",
            [b'<', b'!', b'-', b'-', ..] => "-->",
            [b'<', b'/', ..] => {
                ends += 1;
                ">"
            }
            [b'<', first, ..] if first.is_ascii_alphabetic() => {
                starts += 1;
                ">"
            }
            [b'R', ..] => {
                let number = rest.strip_prefix(b"Record ")?;
                let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
                rest = number.get(digits..).filter(|_| digits > 0)?;
                continue;
            }
            _ => return None,
        };
        if starts > 1 || ends > 1 {
            return None;
        }
        let tag;
        (tag, rest) = rest.split_at(memmem::find(rest, end.as_bytes())? + end.len());
        ends += i32::from(tag.ends_with(b"/>"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filler_is_a_root_and_declarations() {
        for (text, expected) in [
            ("", Some([0, 0])),
            (" \r\n", Some([0, 0])),
            ("\u{feff}<?xml version='1.0'?>\n<Events>", Some([1, 0])),
            ("<Events/>", Some([1, 1])),
            (
                "</Events>\n\u{feff}<?xml version='1.0'?><!-- > --><Events a='b'>",
                Some([1, 1]),
            ),
            ("Record 12\n<?xml version=\"1.0\"?>\n", Some([0, 0])),
            ("Record x", None),
            ("Record", None),
            ("text", None),
            ("<a><b>", None),
            ("</a></b>", None),
            ("<a", None),
            ("<!DOCTYPE a>", None),
            ("<?xml", None),
            ("\0", None),
        ] {
            assert_eq!(filler(text.as_bytes()), expected, "{text:?}");
        }
    }
}
