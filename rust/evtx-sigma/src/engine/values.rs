//! The texts of one event, which are decoded when they are asked for.

use std::cell::OnceCell;
use std::ops::ControlFlow;

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

/// An event with the names of its log, each of whose slots is decoded when it is first looked at.
pub(crate) struct Decoded<'a> {
    names: &'a [Box<str>],
    known: &'a [Option<Box<str>>],
    values: &'a dyn Values,
    slots: Vec<OnceCell<(Found, String)>>,
}

impl<'a> Decoded<'a> {
    pub(crate) fn new(names: &'a [Box<str>], known: &'a [Option<Box<str>>], values: &'a dyn Values) -> Self {
        let slots = names.iter().map(|_| OnceCell::new()).collect();
        Decoded {
            names,
            known,
            values,
            slots,
        }
    }

    /// What a slot has, and its text if it has one.
    fn slot(&self, slot: usize) -> (Found, &str) {
        if let Some(text) = &self.known[slot] {
            return (Found::Text, text);
        }
        let (found, text) = self.slots[slot].get_or_init(|| {
            let mut text = String::new();
            (self.values.push_text(slot, &mut text), text)
        });
        (*found, text)
    }
}

impl Event for Decoded<'_> {
    fn values(&self, field: &str, each: &mut dyn FnMut(Option<&str>) -> ControlFlow<()>) {
        for (slot, _) in self.names.iter().enumerate().filter(|(_, name)| &***name == field) {
            let flow = match self.slot(slot) {
                (Found::Text, text) => each(Some(text)),
                (Found::Null, _) => each(None),
                (Found::Absent, _) => ControlFlow::Continue(()),
            };
            if flow.is_break() {
                return;
            }
        }
    }

    fn every_value(&self, each: &mut dyn FnMut(&str, &str) -> ControlFlow<()>) {
        for (slot, name) in self.names.iter().enumerate() {
            if let (Found::Text, text) = self.slot(slot)
                && each(name, text).is_break()
            {
                return;
            }
        }
    }
}
