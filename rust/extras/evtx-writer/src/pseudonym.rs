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

use evtx_format::value::{Scalar, Value, ValueType};

use crate::copy::{BINXML, STRING, entity_character};
use crate::editor::{Definitions, Edits, edit};
use crate::record::{CutRecord, mark};
use crate::source::Result;
use crate::target::{Content, Edit, NO_DEPENDENCY, Named, Own, hash};
use crate::typed::{self, replaced, shown};
use crate::value::{from_utf16, utf16};
use allowed::{Allowed, TEXT, is_bytes};
pub use check::{Check, Left};
use form::NO_TIME;
use key::Key;
use place::{Event, Open, Place, UNKNOWN};
use text::{Part, mark_of, parts};

/// The most bytes of a record whose texts may become longer, with room for the header of a chunk.
const LONG: usize = 60_000;

/// Replaces the values of records that are not allowed.
#[derive(Debug)]
pub struct Pseudonymizer {
    rules: Rules,
    definitions: Definitions<Plan>,
    record: Own,
}

#[derive(Debug)]
struct Rules {
    allowed: Allowed,
    key: Key,
}

/// What is known of a definition.
#[derive(Debug, Default)]
struct Plan {
    /// The place of each value by its index; `None` if the definition does not show it.
    places: Vec<Option<Place>>,
    /// The values without which elements are left out.
    depends: Vec<u16>,
    event: Event,
    issued: Vec<u64>,
}

/// The edits of a record or a definition.
struct Pseudonyms<'p> {
    rules: &'p Rules,
    /// By how many bytes texts may still become longer. A text that needs more becomes one pseudonym.
    room: usize,
    has_instances: bool,
    open: Vec<Open>,
    attribute: Option<String>,
    plan: Plan,
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
            definitions: Definitions::default(),
            record: Own::default(),
        })
    }

    /// A record that stands alone with pseudonyms, marked for the check of the log.
    ///
    /// # Errors
    /// [`WriteError`](crate::WriteError) if the bytes are not a record, or the new one is too long.
    pub fn pseudonymize(&mut self, record: &[u8]) -> Result<Vec<u8>> {
        let cut = CutRecord::new(record)?;
        let edits = Pseudonyms::new(&self.rules, LONG.saturating_sub(record.len()));
        let edits = edit(&mut self.record, cut, edits, &mut self.definitions)?;
        let mut issued = edits.plan.issued;
        issued.sort_unstable();
        issued.dedup();
        let mut record = self.record.out.clone();
        mark(&mut record, &issued, &self.rules.allowed.entries)?;
        Ok(record)
    }
}

impl<'p> Pseudonyms<'p> {
    fn new(rules: &'p Rules, room: usize) -> Self {
        Pseudonyms {
            rules,
            room,
            has_instances: false,
            open: Vec::new(),
            attribute: None,
            plan: Plan::default(),
        }
    }

    fn place(&self) -> Place {
        Place::of(&self.open, self.attribute.as_deref())
    }

    /// Whether what follows is not the event itself.
    fn is_nested(&self) -> bool {
        self.has_instances || !self.open.is_empty()
    }

    /// Notes a text that says which event it is, or what its fields are called.
    fn note(&mut self, place: &Place, text: &str) {
        self.plan.event.note(place, text);
        if self.attribute.as_deref() == Some("Name")
            && let Some(open) = self.open.last_mut()
        {
            open.label.push_str(text);
        }
    }

    /// A pseudonym, known from now on.
    fn issued(&mut self, new: String) -> String {
        self.plan.issued.extend(parts(&new).map(mark_of));
        new
    }

    /// A text with pseudonyms.
    fn text(&mut self, place: &Place, text: &str) -> String {
        let rules = self.rules;
        let part = |(part, text, may_stay): (Part<'_>, &str, bool)| match may_stay {
            true => text.to_owned(),
            false => rules.key.part(part),
        };
        let new: String = rules.allowed.parts(place, &self.plan.event, text).map(part).collect();
        let Some(room) = self.room.checked_sub(2 * new.len().saturating_sub(text.len())) else {
            return self.issued(rules.key.word(text));
        };
        self.room = room;
        // Pseudonyms of numbers can form other parts than the numbers.
        let issued = rules
            .allowed
            .parts(place, &self.plan.event, &new)
            .filter(|(_, _, may_stay)| !may_stay);
        self.plan
            .issued
            .extend(issued.map(|(part, text, _)| mark_of((part, text))));
        new
    }

    /// The text of a value in a place, with pseudonyms if it may not stay.
    fn text_in(&mut self, place: &Place, value_type: ValueType, text: String) -> String {
        if self.rules.allowed.may_stay(place, &self.plan.event, value_type, &text) {
            return text;
        }
        match value_type.scalar {
            Scalar::Real32 | Scalar::Real64 => "0".to_owned(),
            Scalar::FileTime | Scalar::SystemTime => NO_TIME.to_owned(),
            _ => self.text(place, &text),
        }
    }

    /// What replaces a value in a place; `None` if it stays. A value that no reader can show becomes an empty text.
    fn value(&mut self, place: &Place, value_type: u8, bytes: &[u8]) -> Option<Edit> {
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
            _ if is_bytes(known) && self.rules.allowed.any(place, &self.plan.event) => return None,
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
        let items = items.into_iter().map(|item| self.text_in(place, known, shown(item)));
        let items: Vec<String> = items.collect();
        let new = replaced(value_type, bytes, |item| items.get(item).map(String::as_str));
        match new.or_else(|_| replaced(value_type, bytes, |_| Some("0"))) {
            Ok(new) => new.filter(|new| new.bytes != bytes),
            Err(_) => nothing(),
        }
    }
}

impl Edits for Pseudonyms<'_> {
    type Plan = Plan;

    fn of_definition(&self) -> Self {
        let mut edits = Pseudonyms::new(self.rules, LONG);
        edits.open.extend(self.is_nested().then(Open::default));
        edits
    }

    fn context(&self) -> u8 {
        u8::from(self.is_nested())
    }

    fn into_plan(mut self) -> Plan {
        for index in std::mem::take(&mut self.plan.depends) {
            _ = self.plan.place_of(index).get_or_insert(Place::Unknown);
        }
        self.plan
    }

    fn instance(&mut self, plan: &Plan) -> Result<()> {
        if !self.is_nested() {
            self.plan.event = plan.event.clone();
        }
        self.has_instances = true;
        self.plan.issued.extend(&plan.issued);
        Ok(())
    }

    fn name(&mut self, named: Named, entry: &[u8]) -> Result<Option<Vec<u8>>> {
        let name = from_utf16(entry.get(4..).unwrap_or_default());
        let new = if self.rules.allowed.is_name(&name) {
            None
        } else {
            let new = self.issued(self.rules.key.word(&name));
            let head = [hash(new.encode_utf16()), new.len() as u16]
                .map(u16::to_le_bytes)
                .concat();
            Some(head.into_iter().chain(utf16(&new)).collect())
        };
        match named {
            Named::Element => {
                self.attribute = None;
                let label = String::new();
                self.open.push(Open { name, label });
            }
            Named::Attribute => self.attribute = Some(name),
            Named::Other => {}
        }
        Ok(new)
    }

    fn depend(&mut self, index: u16) {
        if index != NO_DEPENDENCY {
            self.plan.depends.push(index);
        }
    }

    fn end_start(&mut self) {
        self.attribute = None;
    }

    fn end(&mut self) -> Result<()> {
        self.attribute = None;
        _ = self.open.pop();
        Ok(())
    }

    fn run(&mut self, text: &[u8]) -> Result<Option<Vec<u8>>> {
        let (place, text) = (self.place(), from_utf16(text));
        self.note(&place, &text);
        let new = match place {
            Place::Rendering => String::new(),
            _ => self.text_in(&place, TEXT, text),
        };
        Ok(Some(utf16(&new).collect()))
    }

    fn content(&mut self, content: Content<'_>) -> Result<Option<Edit>> {
        let place = self.place();
        Ok(match content {
            Content::Value(value_type, bytes) => {
                let text = typed::value(value_type, bytes).map(shown);
                self.note(&place, &text.unwrap_or_default());
                self.value(&place, value_type, bytes)
            }
            Content::Substitution(index, _) => {
                let place = match self.plan.place_of(index).take() {
                    Some(known) if known != place => Place::Unknown,
                    _ => place.clone(),
                };
                *self.plan.place_of(index) = Some(place);
                if self.attribute.is_some() {
                    self.note(&Place::Unknown, UNKNOWN);
                }
                None
            }
            Content::Character(unit) => self.value(&Place::Unknown, STRING, &unit.to_le_bytes()),
            Content::Entity(entry) if entity_character(entry).is_some() => None,
            Content::Entity(entry) => {
                let new = self.issued(self.rules.key.word(&from_utf16(&entry[4..])));
                let (value_type, bytes) = (STRING, utf16(&new).collect());
                Some(Edit { value_type, bytes })
            }
        })
    }

    fn values(&mut self, plan: &Plan, values: &[(u8, &[u8])]) -> Result<Vec<(usize, Edit)>> {
        for (place, &(value_type, bytes)) in plan.places.iter().zip(values) {
            if let Some(place @ (Place::Provider | Place::EventId)) = place {
                let text = typed::value(value_type, bytes).map(shown);
                self.plan.event.note(place, &text.unwrap_or_default());
            }
        }
        let edits = values.iter().enumerate().filter_map(|(index, &(value_type, bytes))| {
            let edit = match plan.places.get(index).and_then(Option::as_ref) {
                _ if value_type == BINXML => None,
                Some(place) => self.value(place, value_type, bytes),
                None if bytes.is_empty() => None,
                None => Some(Edit {
                    value_type: 0,
                    bytes: Vec::new(),
                }),
            };
            edit.map(|edit| (index, edit))
        });
        Ok(edits.collect())
    }

    /// Nobody reads the bytes after an end token.
    fn rest(&mut self, _: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(Some(Vec::new()))
    }
}

impl Plan {
    fn place_of(&mut self, index: u16) -> &mut Option<Place> {
        let index = usize::from(index);
        if self.places.len() <= index {
            self.places.resize(index + 1, None);
        }
        &mut self.places[index]
    }
}
