//! The insertions of an event: the values that fill its message.

use std::sync::Arc;

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use evtx_arrow::{Entries, FoundValue, ReadRecord, RecordEntry};
use evtx_format::value::{Scalar, Value, ValueType};
use evtx_messages::Insertion;

/// The type of the first value of an event without a manifest.
const STRINGS: ValueType = ValueType {
    scalar: Scalar::String,
    array: true,
};

/// The insertions of an event, in order. `%1` in its message stands for the first.
///
/// If the content of `EventData` or `UserData` is a template instance, they are its values, in the order of its
/// substitutions: that is the order of the fields in the provider's manifest, wherever the XML has them. An event
/// without a manifest has an array of strings, and each string is an insertion; its bytes are not. In other events,
/// the leaves are the insertions, in the order of the XML and with the texts that they have there.
pub(crate) fn insertions<'a>(record: ReadRecord<'a>, arena: &'a Bump) -> BumpVec<'a, Insertion<'a>> {
    let mut found = BumpVec::new_in(arena);
    if record.is_unread() {
        return found;
    }
    if let Some(content) = record.content() {
        let values = content.values;
        if let Some(strings) = values.get(0).filter(|first| first.value_type == STRINGS) {
            found.extend(strings.items().map(Insertion::Value));
            return found;
        }
        found.extend((0..=u16::MAX).map_while(|substitution| values.get(substitution).map(Insertion::Value)));
        let entries = content.event_data.or(content.user_data);
        for (substitution, entry) in entries.into_iter().flat_map(of_substitutions) {
            if let Some(found) = found.get_mut(usize::from(substitution)) {
                *found = found.declared_as(entry.declared());
            }
        }
        return found;
    }
    let entries = record.event_data().or_else(|| record.user_data());
    for entry in entries.into_iter().flat_map(Entries::iter) {
        let value = entry.value();
        match value.filter(|_| entry.is_unnamed()).and_then(FoundValue::items) {
            Some(items) => found.extend(items.map(|item| insertion(Some(item), arena))),
            None => found.push(insertion(value, arena)),
        }
    }
    found
}

/// What an event says about its insertions in `EventData`.
#[derive(Clone, Copy)]
pub(crate) struct Declaration<'a> {
    pub(crate) entries: Entries<'a>,
    /// Whether the insertions are the substitutions of a template. Otherwise they are the entries.
    of_substitutions: bool,
}

impl<'a> Declaration<'a> {
    /// What an event says; `None` if it says nothing.
    pub(crate) fn of(record: ReadRecord<'a>) -> Option<Self> {
        if record.is_unread() {
            return None;
        }
        let content = record.content();
        Some(Declaration {
            entries: content.map_or_else(|| record.event_data(), |content| content.event_data)?,
            of_substitutions: content.is_some(),
        })
    }

    /// The names of the first insertions, empty where they are not known.
    pub(crate) fn names(self) -> Vec<Arc<str>> {
        if !self.of_substitutions {
            // An array without a name has several insertions.
            let named = self.entries.iter().take_while(|entry| !entry.is_unnamed());
            return named.map(RecordEntry::name).collect();
        }
        let mut names = Vec::new();
        for (substitution, entry) in of_substitutions(self.entries) {
            let at = usize::from(substitution);
            names.resize(names.len().max(at + 1), Arc::default());
            names[at] = entry.name();
        }
        names
    }
}

/// The entries whose value is a substitution, with its index.
fn of_substitutions(entries: Entries<'_>) -> impl Iterator<Item = (u16, RecordEntry<'_>)> {
    entries.iter().filter_map(|entry| Some((entry.substitution()?, entry)))
}

fn insertion<'a>(found: Option<FoundValue<'a>>, arena: &'a Bump) -> Insertion<'a> {
    let Some(found) = found else {
        return Insertion::Value(Value::null());
    };
    match found.value() {
        Some(value) => Insertion::Value(value),
        None => Insertion::Text(arena.alloc_str(&found.text().unwrap_or_default())),
    }
}
