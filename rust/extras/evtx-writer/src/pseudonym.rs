//! Pseudonyms: a copy of a record that stands alone, in which everything is replaced that is not allowed.
//!
//! [`allowed`] decides which values may stay, by their [`place`] and [`form`], and [`words`] which words. [`text`] divides texts into parts,
//! and [`key`] makes the pseudonyms. [`Check`] reads the
//! log that is written of such records.

mod text;
mod key;
mod names;
mod words;
mod place;
mod form;
mod allowed;
mod check;

use std::collections::BTreeMap;
use std::rc::Rc;

use evtx_format::binxml::tree::Element;
use evtx_format::value::{Scalar, Value, ValueType};

use crate::copy::{STRING, entity_character};
use crate::editor::{address, edit, unseen};
use crate::record::{CutRecord, mark};
use crate::source::Result;
use crate::target::{self, Content, Edit, Edits, Own};
use crate::typed::{self, replaced, shown};
use crate::value::{from_utf16, utf16};
use allowed::{Allowed, TEXT, is_bytes};
pub use check::{Check, Left};
use form::NO_TIME;
use key::Key;
use place::{Event, Place, Seen, walk};
use text::{Part, mark_of, parts};

/// The most bytes of a record whose texts may become longer, with room for the header of a chunk.
const LONG: usize = 60_000;

/// Replaces the values of records that are not allowed.
#[derive(Debug)]
pub struct Pseudonymizer {
    rules: Rules,
    record: Own,
}

#[derive(Debug)]
struct Rules {
    allowed: Allowed,
    key: Key,
}

/// The edits of a record.
struct Pseudonyms<'p> {
    rules: &'p Rules,
    /// By how many bytes texts may still become longer. A text that needs more becomes one pseudonym.
    room: usize,
    /// The places and events of the values that a reader sees, by their addresses.
    seen: BTreeMap<usize, (Place, Rc<Event>)>,
    issued: Vec<u64>,
}

impl Pseudonymizer {
    /// `allow` are the user's entries: `provider/event/field`, in which `*` means any, or a word. Without a key, pseudonyms
    /// are those of this process.
    ///
    /// # Errors
    /// A text that names an entry that is wrong.
    pub fn new(allow: &[&str], key: Option<&str>) -> std::result::Result<Self, String> {
        let (allowed, key) = (Allowed::new(allow.iter().copied())?, Key::new(key)?);
        Ok(Pseudonymizer {
            rules: Rules { allowed, key },
            record: Own::default(),
        })
    }

    /// A record that stands alone with pseudonyms, marked for the check of the log.
    ///
    /// # Errors
    /// [`WriteError`](crate::WriteError) if the bytes are not a record, or the new one is too long.
    pub fn pseudonymize(&mut self, record: &[u8]) -> Result<Vec<u8>> {
        let cut = CutRecord::new(record)?;
        let mut edits = Pseudonyms {
            rules: &self.rules,
            room: LONG.saturating_sub(record.len()),
            seen: BTreeMap::new(),
            issued: Vec::new(),
        };
        edit(&mut self.record, cut, &mut edits)?;
        let mut issued = edits.issued;
        issued.sort_unstable();
        issued.dedup();
        let mut record = self.record.out.clone();
        mark(&mut record, &issued, &self.rules.allowed.entries)?;
        Ok(record)
    }
}

impl Pseudonyms<'_> {
    /// The place and the event of the first value that a reader sees in some bytes.
    fn seen(&self, bytes: &[u8]) -> Option<(Place, Rc<Event>)> {
        let start = address(bytes);
        let (_, found) = self.seen.range(start..start + bytes.len()).next()?;
        Some(found.clone())
    }

    /// A pseudonym, known from now on.
    fn issued(&mut self, new: String) -> String {
        self.issued.extend(parts(&new).map(mark_of));
        new
    }

    /// A text with pseudonyms.
    fn text(&mut self, place: &Place, event: &Event, text: &str) -> String {
        let rules = self.rules;
        let part = |(part, text, may_stay): (Part<'_>, &str, bool)| match may_stay {
            true => text.to_owned(),
            false => rules.key.part(part),
        };
        let new: String = rules.allowed.parts(place, event, text).map(part).collect();
        let Some(room) = self.room.checked_sub(2 * new.len().saturating_sub(text.len())) else {
            return self.issued(rules.key.word(text));
        };
        self.room = room;
        // Pseudonyms of numbers can form other parts than the numbers.
        let issued = rules.allowed.parts(place, event, &new);
        let issued = issued.filter(|(_, _, may_stay)| !may_stay);
        self.issued.extend(issued.map(|(part, text, _)| mark_of((part, text))));
        new
    }

    /// The text of a value in a place, with pseudonyms if it may not stay.
    fn text_in(&mut self, place: &Place, event: &Event, value_type: ValueType, text: String) -> String {
        if self.rules.allowed.may_stay(place, event, value_type, &text) {
            return text;
        }
        match value_type.scalar {
            Scalar::Real32 | Scalar::Real64 => "0".to_owned(),
            Scalar::FileTime | Scalar::SystemTime => NO_TIME.to_owned(),
            _ if *place == Place::Rendering => String::new(),
            _ => self.text(place, event, &text),
        }
    }

    /// What replaces a value in a place; `None` if it stays. A value that no reader can show becomes an empty text.
    fn value_in(&mut self, (place, event): (&Place, &Event), value_type: u8, bytes: &[u8]) -> Option<Edit> {
        let edit = |value_type, bytes| Some(Edit { value_type, bytes });
        let nothing = || edit(STRING, Vec::new());
        let Some(value) = typed::value(value_type, bytes).filter(|value| value.check(0).is_ok()) else {
            return nothing();
        };
        let Value { value_type: known, .. } = value;
        match known.scalar {
            _ if bytes.is_empty() => return None,
            Scalar::Null if !known.array => return edit(0, Vec::new()),
            Scalar::Null | Scalar::BinXml | Scalar::EvtHandle | Scalar::EvtXml => return nothing(),
            _ if *place == Place::Rendering => return nothing(),
            _ if is_bytes(known) && self.rules.allowed.any(place, event) => return None,
            _ if is_bytes(known) => {
                let new = self.rules.key.binary(bytes);
                // Readers show the items of an array apart.
                let new_value = Value { bytes: &new, ..value };
                match known.array {
                    true => new_value.items().for_each(|item| _ = self.issued(shown(item))),
                    false => _ = self.issued(shown(new_value)),
                }
                return edit(value_type, new);
            }
            _ => {}
        }
        let items = if known.array {
            value.items().collect()
        } else {
            vec![value]
        };
        let items = items
            .into_iter()
            .map(|item| self.text_in(place, event, known, shown(item)));
        let items: Vec<String> = items.collect();
        let new = replaced(value_type, bytes, |item| items.get(item).map(String::as_str));
        match new.or_else(|_| replaced(value_type, bytes, |_| Some("0"))) {
            Ok(new) => new.filter(|new| new.bytes != bytes),
            Err(_) => nothing(),
        }
    }
}

impl Edits for Pseudonyms<'_> {
    fn read(&mut self, event: &Element<'_>) -> Result<()> {
        walk(event, |position, seen| {
            if let Seen::Value(Value { bytes, .. }) = seen
                && !bytes.is_empty()
            {
                let found = (position.place(), Rc::clone(&position.event));
                let known = self.seen.entry(address(bytes)).or_insert_with(|| found.clone());
                if *known != found {
                    known.0 = Place::Unknown;
                }
            }
            Ok(())
        })
    }

    fn name(&mut self, entry: &[u8]) -> Option<Vec<u8>> {
        let name = from_utf16(entry.get(4..).unwrap_or_default());
        if self.rules.allowed.is_name(&name) {
            return None;
        }
        Some(target::entry(&self.issued(self.rules.key.word(&name))))
    }

    fn content(&mut self, content: Content<'_>) -> Result<Option<Edit>> {
        let text = |text: &str| Edit {
            value_type: STRING,
            bytes: utf16(text).collect(),
        };
        Ok(match content {
            Content::Value(value_type, bytes) => {
                // An element that this record leaves out can have literals, too.
                let (place, event) = self.seen(bytes).unwrap_or((Place::Name, Rc::default()));
                self.value_in((&place, &event), value_type, bytes)
            }
            Content::Run(run, parts) => {
                let run = from_utf16(run);
                Some(text(&match self.seen(parts) {
                    Some((place, event)) => self.text_in(&place, &event, TEXT, run),
                    None => self.issued(self.rules.key.word(&run)),
                }))
            }
            Content::Character(unit) => {
                self.value_in((&Place::Unknown, &Event::default()), STRING, &unit.to_le_bytes())
            }
            Content::Entity(entry) => {
                let name = from_utf16(&entry[4..]);
                let is_known = entity_character(&name).is_some();
                (!is_known).then(|| text(&self.issued(self.rules.key.word(&name))))
            }
        })
    }

    fn value(&mut self, value_type: u8, bytes: &[u8]) -> Result<Option<Edit>> {
        Ok(match self.seen(bytes) {
            Some((place, event)) => self.value_in((&place, &event), value_type, bytes),
            None => unseen(value_type, bytes),
        })
    }
}
