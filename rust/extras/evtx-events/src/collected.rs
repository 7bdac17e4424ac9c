//! The events that logs have, each with its fields and the number of its records.

use std::sync::Arc;

use arrow_schema::Field;
use evtx_format::value::ValueType;
use hashbrown::HashMap;

use crate::slots::{MAX_EVENT_BYTES, TooManyEvents};
use crate::unify::column_field;

/// About how many bytes of memory an event takes, without the two copies of its key.
const EVENT: usize = 256;

/// An event as logs have it. Its records have the same provider, ID, version, channel and fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CollectedEvent {
    /// The name of the provider.
    pub provider: Option<Box<str>>,
    /// The event's ID.
    pub id: Option<u32>,
    /// The event's version.
    pub version: Option<u8>,
    /// The channel that the event is written to.
    pub channel: Option<Box<str>>,
    /// The fields.
    pub layout: Arc<FieldLayout>,
    /// How many records there are.
    pub records: u64,
}

/// The fields of a template's `EventData`, and then those of its `UserData`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldLayout {
    /// The GUID of the template, its 16 bytes in the order of its text; `None` if records spell the element out.
    pub template: Option<[u8; 16]>,
    /// The fields, in order.
    pub fields: Box<[CollectedField]>,
}

/// A field of an event in logs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CollectedField {
    /// Its key in `EventData`, or among the leaves of `UserData`.
    pub key: Arc<str>,
    /// The type that the template declares, or that records spell out.
    pub value_type: ValueType,
    /// Whether the field is in `UserData`.
    pub in_user_data: bool,
    /// Whether records spell the field out. Its type then says only how it is written.
    pub(crate) is_spelled_out: bool,
}

impl CollectedField {
    /// The Arrow field of a column for the field.
    pub fn column(&self) -> Field {
        column_field(&self.key, self.value_type)
    }
}

/// The events of some chunks.
#[derive(Debug, Default)]
pub struct CollectedEvents {
    layouts: Vec<Arc<FieldLayout>>,
    layout_indices: HashMap<Arc<FieldLayout>, usize>,
    pub(crate) events: Vec<CollectedEvent>,
    event_indices: HashMap<Box<[u8]>, usize>,
    /// About how many bytes of memory they take.
    bytes: usize,
}

impl CollectedEvents {
    /// About how many bytes of memory they take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The events by provider, ID, version, channel and fields. This order does not depend on which was found first.
    pub fn into_sorted(mut self) -> Vec<CollectedEvent> {
        self.events.sort_unstable();
        self.events
    }

    /// The index of a layout, which is added if it is new.
    pub(crate) fn layout_index(&mut self, layout: Arc<FieldLayout>) -> usize {
        *self.layout_indices.entry(layout).or_insert_with_key(|layout| {
            let fields = layout.fields.iter();
            let fields = fields.map(|field| size_of::<CollectedField>() + field.key.len());
            self.bytes += 2 * (size_of::<FieldLayout>() + fields.sum::<usize>());
            self.layouts.push(Arc::clone(layout));
            self.layouts.len() - 1
        })
    }

    pub(crate) fn layout(&self, index: usize) -> Arc<FieldLayout> {
        Arc::clone(&self.layouts[index])
    }

    /// Adds records of an event. `key` tells events apart.
    pub(crate) fn add(
        &mut self,
        key: &[u8],
        records: u64,
        event: impl FnOnce(&Self) -> CollectedEvent,
    ) -> Result<(), TooManyEvents> {
        if let Some(&known) = self.event_indices.get(key) {
            self.events[known].records += records;
            return Ok(());
        }
        self.bytes += EVENT + 2 * key.len();
        if self.bytes > MAX_EVENT_BYTES {
            return Err(TooManyEvents);
        }
        self.event_indices.insert(key.into(), self.events.len());
        let event = event(self);
        self.events.push(event);
        Ok(())
    }

    /// Adds the events of other chunks, which follow these.
    ///
    /// # Errors
    /// [`TooManyEvents`].
    pub fn absorb(&mut self, other: &CollectedEvents) -> Result<(), TooManyEvents> {
        let mut key = Vec::new();
        for event in &other.events {
            let layout = self.layout_index(Arc::clone(&event.layout));
            key.clear();
            push_numbers(&mut key, layout, event.id, event.version);
            for text in [&event.provider, &event.channel] {
                push_key(&mut key, text.as_deref(), |text, key| {
                    key.extend_from_slice(text.as_bytes())
                });
            }
            self.add(&key, event.records, |events| CollectedEvent {
                layout: events.layout(layout),
                ..event.clone()
            })?;
        }
        Ok(())
    }
}

/// Starts the key of an event.
pub(crate) fn push_numbers(key: &mut Vec<u8>, layout: usize, id: Option<u32>, version: Option<u8>) {
    key.extend_from_slice(&layout.to_le_bytes());
    key.extend_from_slice(&id.map_or(u64::MAX, u64::from).to_le_bytes());
    key.extend_from_slice(&version.map_or(u16::MAX, u16::from).to_le_bytes());
}

/// Appends a text or its absence to a key. UTF-8 has no byte 0xfe or 0xff, so the keys of different texts differ.
pub fn push_key<T>(key: &mut Vec<u8>, text: Option<T>, push: impl FnOnce(T, &mut Vec<u8>)) {
    match text {
        Some(text) => push(text, key),
        None => key.push(0xfe),
    }
    key.push(0xff);
}
