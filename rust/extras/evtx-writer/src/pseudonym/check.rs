//! The check of a written log, with the ordinary reader.

use std::collections::HashSet;

use bumpalo::Bump;
use evtx_format::binxml::Reader;
use evtx_format::binxml::names::Names;
use evtx_format::binxml::tree::Element;
use evtx_format::container::records::{PromisedIds, RecordWalk};
use evtx_format::value::ValueType;

use super::allowed::{Allowed, TEXT};
use super::place::{Event, Place, Position, Seen, walk};
use super::text::mark_of;
use crate::copy::entity_character;
use crate::editor::events;
use crate::typed::shown;
use crate::value::from_utf16;

/// Finds values of a log that are neither allowed nor pseudonyms of its records.
#[derive(Debug)]
pub struct Check {
    allowed: Vec<Allowed>,
    pseudonyms: HashSet<u64>,
}

/// A value that must not be in a log.
#[derive(Debug, PartialEq, Eq)]
pub struct Left {
    /// The ID of the record.
    pub record: u64,
    /// Where it is.
    pub field: String,
    /// Its text.
    pub text: String,
}

/// What is wrong: where it is, and its text.
type Found = Result<(), (String, String)>;

impl Check {
    /// A check for the marks of the records of a log: the user's entries, each with the lines of one record, and pseudonyms.
    ///
    /// # Errors
    /// An entry that is wrong.
    pub fn new<'e>(entries: impl IntoIterator<Item = &'e str>, pseudonyms: HashSet<u64>) -> Result<Self, String> {
        let allowed = entries.into_iter().map(|entries| Allowed::new(entries.lines()));
        Ok(Check {
            allowed: allowed.collect::<Result<_, _>>()?,
            pseudonyms,
        })
    }

    /// The first value of a chunk that must not be there. A record that cannot be read is one.
    pub fn find(&self, chunk: &[u8]) -> Option<Left> {
        self.read(chunk).err()
    }

    fn read(&self, chunk: &[u8]) -> Result<(), Left> {
        let unreadable = |record| {
            move |why: evtx_format::Error| Left {
                record,
                field: "the record, which cannot be read".to_owned(),
                text: why.to_string(),
            }
        };
        let (mut walk, damage) = RecordWalk::new(chunk, PromisedIds::default(), false);
        damage.map_or(Ok(()), Err).map_err(unreadable(0))?;
        let (of_names, mut arena) = (Bump::new(), Bump::new());
        let names = Names::new(chunk, &of_names);
        while let Some(found) = walk.next(chunk) {
            arena.reset();
            let record = found.map_err(unreadable(0))?.record;
            let reader = Reader::new(chunk, &names, &arena);
            events(&reader, record.binxml(), unreadable(record.id), |event| {
                self.event(event).map_err(|(field, text)| Left {
                    record: record.id,
                    field,
                    text,
                })
            })?;
        }
        Ok(())
    }

    fn event(&self, root: &Element<'_>) -> Found {
        walk(root, |position, seen| match seen {
            Seen::Name(name) if self.allowed.iter().any(|allowed| allowed.is_name(name)) => Ok(()),
            Seen::Name(name) if self.has_only_parts(&Place::Unknown, &position.event, name) => Ok(()),
            Seen::Name(name) => Err(("a name".to_owned(), name.to_owned())),
            Seen::Value(value) if value.value_type.array => {
                let mut items = value.items();
                items.try_for_each(|item| self.text(position, &shown(item), value.value_type))
            }
            Seen::Value(value) => self.text(position, &shown(value), value.value_type),
            Seen::Character(unit) => self.text(position, &from_utf16(&unit.to_le_bytes()), TEXT),
            Seen::Entity(name) if entity_character(name).is_some() => Ok(()),
            Seen::Entity(name) => Err(("an entity".to_owned(), name.to_owned())),
        })
    }

    fn text(&self, position: &Position<'_>, text: &str, value_type: ValueType) -> Found {
        let (place, event) = (position.place(), &position.event);
        let may_stay = |allowed: &Allowed| allowed.may_stay(&place, event, value_type, text);
        match self.allowed.iter().any(may_stay) || self.has_only_parts(&place, event, text) {
            true => Ok(()),
            false => Err((position.path(), text.to_owned())),
        }
    }

    fn has_only_parts(&self, place: &Place, event: &Event, text: &str) -> bool {
        self.allowed.iter().any(|allowed| {
            let mut parts = allowed.parts(place, event, text);
            parts.all(|(part, text, may_stay)| may_stay || self.pseudonyms.contains(&mark_of((part, text))))
        })
    }
}
