//! `.MTA` files: the messages of a log that was saved *with display information*.
//!
//! Event Viewer then writes `LocaleMetaData/<log>_<LCID>.MTA` beside the log, as MS-EVEN6, section 3.1.1.7,
//! calls a localized log. The layout of the file is known from files that Windows wrote (the `evtx` crate's
//! `docs/mta.md` describes it): a header with sections by name, each a chain of pages of up to 100 records.
//!
//! | section | a record is |
//! | --- | --- |
//! | `EVT` | the event's `EventRecordID` u64 and the index of its message u64; records are in the order of the log |
//! | `MSG` | a size u32 in bytes and UTF-16LE text with its NUL |
//! | `PUB` | four tables {count u32, {key u32, message u32} x count}, then a size u32 and the publisher's name |

use std::ops::Range;

use hashbrown::{HashMap, HashSet};

use crate::bytes::{array_at, u32_at, u64_at};
use crate::text::{self, Form};

const MAGIC: [u8; 8] = *b"MTAFile\0";
const PAGE_HEADER: usize = 888;
const PAGE_SLOTS: usize = 100;
/// A descriptor before its name: offset u64, size u64, name length u32.
const DESCRIPTOR: usize = 20;

/// Why a file has no messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotMta {
    /// It does not start with `MTAFile`.
    #[error("not an MTA file: it does not start with \"MTAFile\\0\"")]
    Magic,
    /// A section is missing or out of bounds.
    #[error("the MTA file has no sound section {0}")]
    Section(&'static str),
    /// A record is out of bounds, or not what its section holds.
    #[error("section {0} of the MTA file is damaged")]
    Damaged(&'static str),
}

/// The messages of a log.
#[derive(Debug)]
pub struct Messages {
    file: Vec<u8>,
    /// By position in the log: `EventRecordID`, and the index of the message.
    events: HashMap<u32, (u64, u32)>,
    /// The first message for an `EventRecordID`, by position.
    by_record: HashMap<u64, u32>,
    /// By index: where the text is in the file.
    texts: HashMap<u32, Range<usize>>,
    /// In small letters: the names compare without regard to ASCII case.
    publishers: HashSet<String>,
}

impl Messages {
    /// The name, as a glob, of the files that may hold the messages of a log, given its path. `place` is such a
    /// glob from the log's folder on, with `{log}` where the log's name stands without its extension. `None` where the
    /// path names no file or `place` is empty.
    pub fn pattern(log: &str, place: &str) -> Option<String> {
        let (folder, name) = log
            .rsplit_once(['/', '\\'])
            .map_or(("", log), |(folder, name)| (&log[..=folder.len()], name));
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let is_absolute = place.starts_with(['/', '\\']) || place.contains(":/") || place.contains(":\\");
        let folder = if is_absolute { "" } else { folder };
        let named = !stem.is_empty() && !place.is_empty();
        named.then(|| literal(folder) + &place.replace("{log}", &literal(stem)))
    }

    /// Reads an MTA file.
    ///
    /// # Errors
    /// [`NotMta`] where it is none, or damaged.
    pub fn read(file: Vec<u8>) -> Result<Self, NotMta> {
        if array_at(&file, 0) != Some(MAGIC) {
            return Err(NotMta::Magic);
        }
        let mut messages = Messages {
            events: HashMap::new(),
            by_record: HashMap::new(),
            texts: HashMap::new(),
            publishers: HashSet::new(),
            file,
        };
        let file = &messages.file;
        records(file, "MSG", |index, payload| {
            let size = u32_at(file, payload.start)? as usize;
            let text = payload.start + 4..(payload.start + 4).checked_add(size)?;
            (text.end <= payload.end)
                .then(|| messages.texts.insert(index, text))
                .map(drop)
        })?;
        records(file, "EVT", |index, payload| {
            let record = u64_at(file, payload.start)?;
            let text = u32::try_from(u64_at(file, payload.start + 8)?).ok()?;
            messages.events.insert(index, (record, text));
            let first = messages.by_record.entry(record).or_insert(index);
            *first = index.min(*first);
            Some(())
        })?;
        records(file, "PUB", |_, payload| {
            let mut at = payload.start;
            for _ in 0..4 {
                at = at.checked_add(4)?.checked_add(8 * u32_at(file, at)? as usize)?;
            }
            let name = at + 4..(at + 4).checked_add(u32_at(file, at)? as usize)?;
            (name.end <= payload.end)
                .then(|| messages.publishers.insert(plain(&file[name]).to_ascii_lowercase()))
                .map(drop)
        })?;
        Ok(messages)
    }

    /// Appends the message of an event; false where there is none. `record` is the ID in the log's own
    /// record, `event_record` that of `System/EventRecordID`.
    ///
    /// A saved log numbers its records from 1, so the entry at the record's position is its own, if it says
    /// so; a log that was merged from several has IDs that come back. Without the event's publisher Windows
    /// has no message either.
    pub fn push(&self, provider: &str, record: u64, event_record: u64, out: &mut Vec<u8>) -> bool {
        if !self.publishers.contains(&provider.to_ascii_lowercase()) {
            return false;
        }
        let position = record.checked_sub(1).and_then(|position| u32::try_from(position).ok());
        let own = position
            .and_then(|position| self.events.get(&position))
            .filter(|(id, _)| *id == event_record);
        let entry = own.or_else(|| self.events.get(self.by_record.get(&event_record)?));
        let text = entry
            .and_then(|(_, text)| self.texts.get(text))
            .map(|text| &self.file[text.clone()]);
        match text.filter(|text| !text::utf16_is_empty(text)) {
            Some(text) => text::push_utf16(out, text, Form::Plain),
            None => return false,
        }
        true
    }
}

/// A glob that matches a text and nothing else.
fn literal(text: &str) -> String {
    text.chars()
        .map(|c| {
            if matches!(c, '*' | '?' | '[') {
                format!("[{c}]")
            } else {
                c.to_string()
            }
        })
        .collect()
}

fn plain(text: &[u8]) -> String {
    let mut out = Vec::new();
    text::push_utf16(&mut out, text, Form::Plain);
    String::from_utf8(out).unwrap_or_default()
}

/// Hands the index and payload of each record of a section to `take`, which returns `None` for one that is damaged.
fn records(
    file: &[u8],
    name: &'static str,
    mut take: impl FnMut(u32, Range<usize>) -> Option<()>,
) -> Result<(), NotMta> {
    let section = section(file, name).ok_or(NotMta::Section(name))?;
    walk(file, section, &mut take).ok_or(NotMta::Damaged(name))
}

/// Where a section is in the file.
fn section(file: &[u8], name: &str) -> Option<Range<usize>> {
    let mut at = 24_usize;
    // Each descriptor takes room, so a count that the file could not hold ends at its end.
    for _ in 0..u32_at(file, 20)? {
        let start = usize::try_from(u64_at(file, at)?).ok()?;
        let size = usize::try_from(u64_at(file, at + 8)?).ok()?;
        let length = u32_at(file, at + 16)? as usize;
        let title = file.get(at + DESCRIPTOR..)?.get(..length)?;
        if plain(title) == name {
            let end = start.checked_add(size).filter(|&end| end <= file.len())?;
            return Some(start..end);
        }
        at += DESCRIPTOR + length;
    }
    None
}

/// Walks the pages of a section. Offsets in it are relative to its start.
fn walk(file: &[u8], section: Range<usize>, take: &mut impl FnMut(u32, Range<usize>) -> Option<()>) -> Option<()> {
    let offset = |at: usize| -> Option<usize> {
        let offset = usize::try_from(u64_at(file, at)?).ok()?;
        section.start.checked_add(offset).filter(|&at| at < section.end)
    };
    let mut page = section.start;
    // A chain that comes back to itself ends with the pages that the section has room for.
    for _ in 0..=section.len() / PAGE_HEADER {
        if page.checked_add(PAGE_HEADER)? > section.end {
            return None;
        }
        for slot in 0..PAGE_SLOTS {
            let slot = page + 88 + 8 * slot;
            if u64_at(file, slot)? == 0 {
                continue;
            }
            let record = offset(slot)?;
            let size = u32_at(file, record.checked_add(4)?)? as usize;
            let payload = record + 8..(record + 8).checked_add(size).filter(|&end| end <= section.end)?;
            take(u32_at(file, record)?, payload)?;
        }
        let next = offset(page + 72)?;
        if next == page {
            return Some(());
        }
        page = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_is_for_the_log_alone() {
        assert_eq!(
            Messages::pattern("a/b/Security.evtx", "LocaleMetaData/{log}_*.MTA").as_deref(),
            Some("a/b/LocaleMetaData/Security_*.MTA")
        );
        assert_eq!(
            Messages::pattern("x[1].evtx", "LocaleMetaData/{log}_*.MTA").as_deref(),
            Some("LocaleMetaData/x[[]1]_*.MTA")
        );
        assert_eq!(
            Messages::pattern("a/b/System.evtx", "/case/{log}_1033.MTA").as_deref(),
            Some("/case/System_1033.MTA")
        );
        assert_eq!(Messages::pattern("dir/", "{log}"), None);
        assert_eq!(Messages::pattern("System.evtx", ""), None);
    }

    #[test]
    fn what_is_no_mta_file_is_named() {
        assert_eq!(Messages::read(vec![]).unwrap_err(), NotMta::Magic);
        let mut file = b"MTAFile\0".to_vec();
        file.resize(64, 0);
        assert_eq!(Messages::read(file).unwrap_err(), NotMta::Section("MSG"));
    }
}
