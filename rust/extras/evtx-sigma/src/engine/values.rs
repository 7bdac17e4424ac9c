//! The texts of one event, decoded when they are first needed.

use std::cell::{OnceCell, RefCell};
use std::ops::ControlFlow;

use evtx_format::case::fold_in;

use crate::event::{Event, hash, hashes_in, in_system};

/// What an event has in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// A value that is not NULL. Its text was appended.
    Text,
    /// NULL.
    Null,
    /// Nothing: this event lacks a field that others of its class have.
    Absent,
}

/// The texts of one event of an [`EventClass`](crate::EventClass).
pub trait Values {
    /// Appends the text of a slot, as [`Event`] defines it. The engine asks for each slot at most once per event, and once
    /// more for each hash in it, but never for a slot whose text is known.
    fn push_text(&self, slot: usize, out: &mut String) -> Presence;
}

/// The fields of a class of events, by slot. After the slots of values come those of hashes, which are parts of values.
#[derive(Debug, Default)]
pub(super) struct ClassFields {
    pub(super) names: Box<[Box<str>]>,
    /// For each value, the text if it is the same in all events of the class.
    pub(super) known: Box<[Option<Box<str>>]>,
    /// For each hash, the slot of the value with it.
    lists: Box<[u32]>,
    /// How many of the values are those of `System`. They come first.
    system: usize,
}

impl ClassFields {
    /// The values with these names, the known texts of those of `System`, and the hashes in them.
    pub(super) fn new(values: &[&str], known: &[Option<&str>]) -> Self {
        let hashes = (0..).zip(values);
        let hashes = hashes.flat_map(|(slot, list)| hashes_in(list).iter().map(move |hash| (*hash, slot)));
        let (hashes, lists): (Vec<_>, Vec<_>) = hashes.unzip();
        ClassFields {
            names: values.iter().chain(&hashes).map(|&name| name.into()).collect(),
            known: (0..values.len())
                .map(|slot| known.get(slot).copied().flatten().map(Into::into))
                .collect(),
            lists: lists.into(),
            system: known.len(),
        }
    }

    /// The slots of the values.
    pub(super) fn values(&self) -> std::ops::Range<u32> {
        0..self.known.len() as u32
    }

    /// The slots of a field.
    pub(super) fn named(&self, field: &str) -> impl Iterator<Item = u32> {
        let (of_system, most) = in_system(field);
        let end = if most == 1 { self.system } else { self.names.len() };
        let slots = (0..).zip(&self.names[..end]);
        let named = slots.filter(move |(_, name)| &***name == field || &***name == of_system);
        named.map(|(slot, _)| slot).take(most)
    }

    /// Appends the text of a slot.
    fn push_text(&self, values: &dyn Values, slot: usize, out: &mut String) -> Presence {
        match self.known.get(slot) {
            Some(Some(known)) => out.push_str(known),
            Some(None) => return values.push_text(slot, out),
            None => {
                let mut list = String::new();
                let presence = self.push_text(values, self.lists[slot - self.known.len()] as usize, &mut list);
                match hash(&list, &self.names[slot]) {
                    Some(hash) if presence == Presence::Text => out.push_str(hash),
                    _ => return Presence::Absent,
                }
            }
        }
        Presence::Text
    }

    /// Appends the first text of a field. Returns whether there is one.
    pub(super) fn push_named(&self, values: &dyn Values, field: &str, out: &mut String) -> bool {
        let mut slots = self.named(field);
        slots.any(|slot| self.push_text(values, slot as usize, out) == Presence::Text)
    }
}

/// What was decoded of a slot.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) presence: Presence,
    pub(super) text: String,
    /// The folded text, or `None` if it is the same.
    folded: OnceCell<Option<String>>,
}

impl Decoded {
    pub(super) fn folded(&self) -> &str {
        let folded = self.folded.get_or_init(|| fold_in(&self.text));
        folded.as_deref().unwrap_or(&self.text)
    }

    /// The text, or `None` for NULL. Absent values give nothing.
    fn value(&self) -> Option<Option<&str>> {
        match self.presence {
            Presence::Text => Some(Some(&self.text)),
            Presence::Null => Some(None),
            Presence::Absent => None,
        }
    }
}

/// What is decoded of an event.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<OnceCell<Decoded>>,
    /// Buffers of earlier events.
    spare: RefCell<Vec<String>>,
}

impl Slots {
    /// How many buffers are kept for later events, and the most bytes of each.
    const SPARE: usize = 64;
    const SPARE_BYTES: usize = 1 << 16;

    /// Begins an event.
    pub(super) fn clear(&mut self, fields: &ClassFields) {
        let spare = self.spare.get_mut();
        for Decoded { mut text, .. } in self.slots.iter_mut().filter_map(OnceCell::take) {
            if text.capacity() <= Self::SPARE_BYTES && spare.len() < Self::SPARE {
                text.clear();
                spare.push(text);
            }
        }
        self.slots.resize_with(fields.names.len(), OnceCell::new);
    }
}

/// An event with the field names of its log.
#[derive(Clone, Copy)]
pub(super) struct EventTexts<'a> {
    pub(super) fields: &'a ClassFields,
    pub(super) values: &'a dyn Values,
    pub(super) slots: &'a Slots,
}

impl<'a> EventTexts<'a> {
    /// A slot, which is decoded if it is not yet.
    pub(super) fn slot(&self, slot: u32) -> &'a Decoded {
        let index = slot as usize;
        self.slots.slots[index].get_or_init(|| {
            let mut text = self.slots.spare.borrow_mut().pop().unwrap_or_default();
            let presence = self.fields.push_text(self.values, index, &mut text);
            Decoded {
                presence,
                text,
                folded: OnceCell::new(),
            }
        })
    }

    /// Gives the values of some slots.
    pub(super) fn values_of(
        &self,
        slots: impl IntoIterator<Item = u32>,
        each: &mut dyn FnMut(Option<&str>) -> ControlFlow<()>,
    ) {
        let mut values = slots.into_iter().filter_map(|slot| self.slot(slot).value());
        let _ = values.try_for_each(each);
    }
}

impl Event for EventTexts<'_> {
    fn values(&self, field: &str, each: &mut dyn FnMut(Option<&str>) -> ControlFlow<()>) {
        self.values_of(self.fields.named(field), each);
    }

    fn every_value(&self, each: &mut dyn FnMut(&str, &str) -> ControlFlow<()>) {
        let mut slots = self.fields.values().zip(&self.fields.names);
        let _ = slots.try_for_each(|(slot, name)| match self.slot(slot).value() {
            Some(Some(text)) => each(name, text),
            _ => ControlFlow::Continue(()),
        });
    }
}
