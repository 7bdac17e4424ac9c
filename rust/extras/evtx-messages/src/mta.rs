//! `.MTA` files: the messages of a log that was saved *with display information*.
//!
//! For such a log, which MS-EVEN6, section 3.1.1.7, calls a localized log, Event Viewer writes
//! `LocaleMetaData/<log>_<LCID>.MTA` beside it. The file is a header with named sections. Each section is a chain of
//! pages of up to 100 records. (Known from files that Windows wrote, and from `docs/mta.md` of the `evtx` crate.)
//!
//! | section | a record is |
//! | --- | --- |
//! | `EVT` | the event's `EventRecordID` u64 and the index of its message u64; records are in the order of the log |
//! | `MSG` | a size u32 in bytes and UTF-16LE text with its NUL |
//! | `PUB` | four tables {count u32, {key u32, message u32} x count}, then a size u32 and the publisher's name |

use std::collections::BTreeMap;
use std::ops::Range;

use evtx_format::bytes::{array_at, u32_at, u64_at};
use evtx_format::value::text::{self, Escaping};
use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashSet;

const MAGIC: [u8; 8] = *b"MTAFile\0";
const PAGE_HEADER: usize = 888;
/// The most bytes of a publisher's name: a log has it in a chunk of 64 KiB.
const MAX_PUBLISHER: usize = 64 << 10;
const PAGE_SLOTS: usize = 100;
/// A descriptor before its name: offset u64, size u64, name length u32.
const DESCRIPTOR: usize = 20;
/// A record before its payload: index u32, size u32.
const RECORD_HEADER: usize = 8;

/// The most bytes of an MTA file that is read.
pub const MAX_FILE: usize = 1 << 30;
/// The most bytes of a message. Windows formats messages of at most 64 KiB.
const MAX_MESSAGE: usize = 1 << 20;

/// The most bytes of memory that the [`SavedMessages`] of a file of `size` bytes take, with the file itself.
pub fn memory(size: usize) -> u64 {
    (1 << 20) + 6 * size as u64
}

/// Why the messages of a file cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MtaError {
    /// The file does not start with `MTAFile\0`.
    #[error("not an MTA file: it does not start with \"MTAFile\\0\"")]
    Magic,
    /// The file has more than [`MAX_FILE`] bytes.
    #[error("the MTA file is larger than 1 GiB")]
    TooLarge,
    /// A section is missing or out of bounds. Holds its name.
    #[error("the MTA file has no sound section {0}")]
    Section(&'static str),
    /// A page or a record of a section is out of bounds or has another form, or records share bytes. Holds the name.
    #[error("section {0} of the MTA file is damaged")]
    Damaged(&'static str),
    /// The caller has interrupted the work.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// The messages of a log, read from its MTA file.
// The maps are trees, because growing a large hash table would delay the answer to an interrupt.
#[derive(Debug, Default)]
pub struct SavedMessages {
    file: Vec<u8>,
    /// By position in the log: `EventRecordID`, and the index of the message.
    events: BTreeMap<u32, (u64, u32)>,
    /// The first message for an `EventRecordID`, by position.
    by_record: BTreeMap<u64, u32>,
    /// By index of the message: the range of its text in the file.
    texts: BTreeMap<u32, Range<u32>>,
    /// In lower case: the names compare without regard to ASCII case.
    publishers: HashSet<String>,
}

impl SavedMessages {
    /// Reads an MTA file. Its size bounds the time and the memory, because a file whose records share bytes is damaged.
    ///
    /// # Errors
    /// [`MtaError`] if the file is not an MTA file, too large or damaged, or if the caller interrupts.
    pub fn read(file: Vec<u8>, interrupt: Interrupt<'_>) -> Result<Self, MtaError> {
        if array_at(&file, 0) != Some(MAGIC) {
            return Err(MtaError::Magic);
        }
        if file.len() > MAX_FILE {
            return Err(MtaError::TooLarge);
        }
        let mut messages = SavedMessages {
            file,
            ..SavedMessages::default()
        };
        let file = &messages.file;
        records(file, "MSG", interrupt, |index, payload| {
            let size = u32_at(file, payload.start)? as usize;
            let text = payload.start + 4..(payload.start + 4).checked_add(size)?;
            let at = u32::try_from(text.start).ok()?..u32::try_from(text.end).ok()?;
            (text.end <= payload.end)
                .then(|| messages.texts.insert(index, at))
                .map(drop)
        })?;
        records(file, "EVT", interrupt, |index, payload| {
            if payload.len() < 16 {
                return None;
            }
            let record = u64_at(file, payload.start)?;
            let text = u32::try_from(u64_at(file, payload.start + 8)?).ok()?;
            messages.events.insert(index, (record, text));
            let first = messages.by_record.entry(record).or_insert(index);
            *first = index.min(*first);
            Some(())
        })?;
        records(file, "PUB", interrupt, |_, payload| {
            let mut at = payload.start;
            for _ in 0..4 {
                at = at.checked_add(4)?.checked_add(8 * u32_at(file, at)? as usize)?;
            }
            let name = at + 4..(at + 4).checked_add(u32_at(file, at)? as usize)?;
            // A chunk has no room for a longer name, so no event could have it.
            (name.end <= payload.end && name.len() <= MAX_PUBLISHER)
                .then(|| messages.publishers.insert(plain(&file[name]).to_ascii_lowercase()))
                .map(drop)
        })?;
        Ok(messages)
    }

    /// Appends the message of an event as UTF-8. Returns false if it has none. `record` is the ID in the record's
    /// header, `event_record` the one in `System/EventRecordID`.
    ///
    /// A saved log numbers its records from 1, so the entry at that position belongs to the record if it has the same
    /// `event_record`. (A log that was merged from several logs has equal ones.) Otherwise the first entry with that
    /// `event_record` is used. An event whose publisher the file does not list has no message, as in Windows.
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
            .map(|text| &self.file[text.start as usize..text.end as usize]);
        match text.filter(|text| text.len() <= MAX_MESSAGE && !text::utf16_is_empty(text)) {
            Some(text) => text::push_utf16(out, text, Escaping::Plain),
            None => return false,
        }
        true
    }
}

fn plain(text: &[u8]) -> String {
    let mut out = Vec::new();
    text::push_utf16(&mut out, text, Escaping::Plain);
    String::from_utf8(out).unwrap_or_default()
}

/// Passes the index of each record and the range of its payload to `take`, which returns `None` for a damaged record.
fn records(
    file: &[u8],
    name: &'static str,
    interrupt: Interrupt<'_>,
    mut take: impl FnMut(u32, Range<usize>) -> Option<()>,
) -> Result<(), MtaError> {
    let section = section(file, name).ok_or(MtaError::Section(name))?;
    // The file offset that is stored at a place, relative to the start of the section.
    let offset = |at: usize| {
        let offset = usize::try_from(u64_at(file, at)?).ok()?;
        section.start.checked_add(offset).filter(|at| section.contains(at))
    };
    // A circular chain ends at the number of pages that the section has room for. No two records share bytes.
    let (mut pages_left, mut bytes_left) = (section.len() / PAGE_HEADER, section.len());
    // Passes the records of a page to `take`, and returns the next page.
    let mut pass = |page: usize| -> Option<Option<usize>> {
        pages_left = pages_left.checked_sub(1)?;
        page.checked_add(PAGE_HEADER).filter(|&end| end <= section.end)?;
        for slot in 0..PAGE_SLOTS {
            let slot = page + 88 + 8 * slot;
            if u64_at(file, slot)? == 0 {
                continue;
            }
            let record = offset(slot)?;
            let start = record + RECORD_HEADER;
            let size = u32_at(file, record + 4)? as usize;
            let payload = start..start.checked_add(size).filter(|&end| end <= section.end)?;
            bytes_left = bytes_left.checked_sub(RECORD_HEADER + size)?;
            take(u32_at(file, record)?, payload)?;
        }
        let next = offset(page + 72)?;
        Some(Some(next).filter(|&next| next != page))
    };
    let mut page = Some(section.start);
    while let Some(at) = page {
        interrupt.check()?;
        page = pass(at).ok_or(MtaError::Damaged(name))?;
    }
    Ok(())
}

/// The range of a section in the file.
fn section(file: &[u8], name: &str) -> Option<Range<usize>> {
    let mut at = 24_usize;
    // The count is not trusted: each descriptor takes room, so the loop ends at the end of the file.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_says_why_a_file_is_not_an_mta_file() {
        let read = |file: Vec<u8>| SavedMessages::read(file, Interrupt::NEVER).unwrap_err();
        assert_eq!(read(vec![]), MtaError::Magic);
        let mut file = b"MTAFile\0".to_vec();
        file.resize(64, 0);
        assert_eq!(read(file), MtaError::Section("MSG"));
    }
}
