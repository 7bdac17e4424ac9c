//! The texts of one event, which are decoded when they are asked for.

use std::ops::ControlFlow;

use crate::case::fold_into;
use crate::event::Event;

/// What an event has in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A value that is not NULL, whose text was appended.
    Text,
    /// NULL.
    Null,
    /// Nothing: this event leaves out the field that others of its kind have.
    Absent,
}

/// The texts of one event of a [`Kind`](crate::Kind).
pub trait Values {
    /// Appends the text of a slot, as [`Event`] defines it. Each slot is asked for at most once per event, those with a
    /// known text never.
    fn push_text(&self, slot: usize, out: &mut String) -> Found;
}

/// The fields of a kind of events.
#[derive(Debug, Default)]
pub(super) struct KindFields {
    /// The names, by slot.
    pub(super) names: Box<[Box<str>]>,
    /// The texts that all events of the kind have, by slot.
    pub(super) known: Box<[Option<Box<str>>]>,
}

/// What is decoded of an event. The buffers stay from event to event.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// Those that are decoded.
    decoded: Vec<u32>,
}

#[derive(Debug, Default)]
struct Slot {
    /// `None` if it was not asked for yet.
    found: Option<Found>,
    text: String,
    /// The folded text, if `is_folded`.
    folded: String,
    is_folded: bool,
}

/// Bytes of a text whose memory is kept for the events after it.
const KEPT: usize = 1 << 16;

impl Slots {
    /// Begins an event.
    pub(super) fn clear(&mut self, fields: &KindFields) {
        for slot in self.decoded.drain(..) {
            self.slots[slot as usize].found = None;
        }
        if self.slots.len() < fields.names.len() {
            self.slots.resize_with(fields.names.len(), Slot::default);
        }
    }

    /// Decodes a slot if it is not yet, and says what it has.
    pub(super) fn decode(&mut self, number: u32, fields: &KindFields, values: &dyn Values) -> Found {
        let slot = &mut self.slots[number as usize];
        if let Some(found) = slot.found {
            return found;
        }
        slot.text.clear();
        slot.text.shrink_to(KEPT);
        slot.is_folded = false;
        let found = match &fields.known[number as usize] {
            Some(known) => {
                slot.text.push_str(known);
                Found::Text
            }
            None => values.push_text(number as usize, &mut slot.text),
        };
        slot.found = Some(found);
        self.decoded.push(number);
        found
    }

    /// The text of a decoded slot.
    pub(super) fn text(&self, number: u32) -> &str {
        &self.slots[number as usize].text
    }

    /// The text of a decoded slot, as it is and folded.
    pub(super) fn texts(&mut self, number: u32) -> (&str, &str) {
        let slot = &mut self.slots[number as usize];
        if !slot.is_folded {
            slot.folded.clear();
            slot.folded.shrink_to(KEPT);
            fold_into(&slot.text, &mut slot.folded);
            slot.is_folded = true;
        }
        (&slot.text, &slot.folded)
    }

    /// What a slot has. One that is not decoded counts as absent.
    pub(super) fn get(&self, number: usize) -> (Found, &str) {
        let slot = &self.slots[number];
        (slot.found.unwrap_or(Found::Absent), &slot.text)
    }
}

/// An event with the names of its log. It has the slots that are decoded.
pub(super) struct Decoded<'a> {
    pub(super) fields: &'a KindFields,
    pub(super) slots: &'a Slots,
}

impl Event for Decoded<'_> {
    fn values(&self, field: &str, each: &mut dyn FnMut(Option<&str>) -> ControlFlow<()>) {
        let slots = self.fields.names.iter().enumerate();
        let _ = slots
            .filter(|(_, name)| &***name == field)
            .try_for_each(|(slot, _)| match self.slots.get(slot) {
                (Found::Text, text) => each(Some(text)),
                (Found::Null, _) => each(None),
                (Found::Absent, _) => ControlFlow::Continue(()),
            });
    }

    fn every_value(&self, each: &mut dyn FnMut(&str, &str) -> ControlFlow<()>) {
        let mut slots = self.fields.names.iter().enumerate();
        let _ = slots.try_for_each(|(slot, name)| match self.slots.get(slot) {
            (Found::Text, text) => each(name, text),
            _ => ControlFlow::Continue(()),
        });
    }
}
