//! The check of a written log, with the ordinary reader.

use std::collections::HashSet;

use bumpalo::Bump;
use evtx_format::binxml::names::Names;
use evtx_format::binxml::tree::{Element, Node};
use evtx_format::binxml::{Fragment, Reader};
use evtx_format::container::records::{PromisedIds, RecordWalk};
use evtx_format::value::ValueType;

use super::allowed::{Allowed, TEXT};
use super::place::{Event, Open, Place};
use super::text::mark_of;
use crate::copy::entity_character;
use crate::typed::shown;
use crate::value::{from_utf16, utf16};

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

/// An event that is read.
struct Reading<'c> {
    check: &'c Check,
    event: Event,
    open: Vec<Open>,
}

type Found = std::result::Result<(), (String, String)>;

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

    fn read(&self, chunk: &[u8]) -> std::result::Result<(), Left> {
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
            reader.begin(record.binxml().len());
            let mut fragments = reader.fragments(record.binxml());
            // Padding can follow the end token.
            while fragments.peek() != Some(0)
                && let Some(fragment) = reader.next_fragment(&mut fragments)
            {
                let root = match fragment.map_err(unreadable(record.id))? {
                    Fragment::Instance(instance) => reader.instance(&instance).map_err(unreadable(record.id))?,
                    Fragment::Element(element) => element,
                };
                let left = |(field, text)| Left {
                    record: record.id,
                    field,
                    text,
                };
                self.element(root).map_err(left)?;
            }
        }
        Ok(())
    }

    fn element(&self, root: &Element<'_>) -> Found {
        let mut event = Event::default();
        let systems = root.elements().filter(|element| element.name == "System");
        for element in systems.flat_map(|system| system.elements()) {
            match element.name {
                "Provider" => event.note(
                    &Place::Provider,
                    &text_of(element.attribute("Name").unwrap_or_default()),
                ),
                "EventID" => event.note(&Place::EventId, &text_of(element.content)),
                _ => {}
            }
        }
        let open = Vec::new();
        let check = self;
        Reading { check, event, open }.element(root)
    }
}

/// The text of nodes without elements.
fn text_of(nodes: &[Node<'_>]) -> String {
    let text = nodes.iter().map(|node| match node {
        Node::Value(value) => shown(*value),
        _ => String::new(),
    });
    text.collect()
}

impl Reading<'_> {
    fn element(&mut self, element: &Element<'_>) -> Found {
        let label = text_of(element.attribute("Name").unwrap_or_default());
        let name = element.name.to_owned();
        self.open.push(Open { name, label });
        self.name(element.name)?;
        for attribute in element.attributes {
            self.name(attribute.name)?;
            self.nodes(attribute.content, Some(attribute.name))?;
        }
        self.nodes(element.content, None)?;
        _ = self.open.pop();
        Ok(())
    }

    fn nodes(&mut self, nodes: &[Node<'_>], attribute: Option<&str>) -> Found {
        for node in nodes {
            node.elements().try_for_each(|element| self.element(element))?;
            match *node {
                Node::Value(value) if value.value_type.array => {
                    let mut items = value.items();
                    items.try_for_each(|item| self.text(&shown(item), value.value_type, attribute))?;
                }
                Node::Value(value) => self.text(&shown(value), value.value_type, attribute)?,
                Node::CData(text) => self.text(&from_utf16(text), TEXT, attribute)?,
                Node::CharRef(unit) => self.text(&from_utf16(&unit.to_le_bytes()), TEXT, attribute)?,
                Node::EntityRef(name) => {
                    let entry: Vec<u8> = [0; 4].into_iter().chain(utf16(name)).collect();
                    if entity_character(&entry).is_none() {
                        return Err(("an entity".to_owned(), name.to_owned()));
                    }
                }
                Node::Element(_) | Node::Repeated(_) | Node::Substitution(_) => {}
            }
        }
        Ok(())
    }

    fn name(&self, name: &str) -> Found {
        match self.check.allowed.iter().any(|allowed| allowed.is_name(name))
            || self.check.has_only_parts(&Place::Unknown, &self.event, name)
        {
            true => Ok(()),
            false => Err(("a name".to_owned(), name.to_owned())),
        }
    }

    fn text(&self, text: &str, value_type: ValueType, attribute: Option<&str>) -> Found {
        let place = Place::of(&self.open, attribute);
        let may_stay = |allowed: &Allowed| allowed.may_stay(&place, &self.event, value_type, text);
        if self.check.allowed.iter().any(may_stay) || self.check.has_only_parts(&place, &self.event, text) {
            return Ok(());
        }
        let names = self
            .open
            .iter()
            .map(|open| if open.label.is_empty() { &open.name } else { &open.label });
        let path: Vec<&str> = names.map(String::as_str).chain(attribute).collect();
        Err((path.join("/"), text.to_owned()))
    }
}

impl Check {
    fn has_only_parts(&self, place: &Place, event: &Event, text: &str) -> bool {
        self.allowed.iter().any(|allowed| {
            let mut parts = allowed.parts(place, event, text);
            parts.all(|(part, text, may_stay)| may_stay || self.pseudonyms.contains(&mark_of((part, text))))
        })
    }
}
