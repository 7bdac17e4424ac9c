//! Collects the events of logs and their fields.
//!
//! The fields are those of `EventData` and the leaves of `UserData`, with the types that templates declare. A template
//! definition does not name its event, and several events can share one. So each record is read as far as its event and
//! the template of its `EventData`. No field is decoded.

use std::collections::HashSet;
use std::sync::Arc;

use evtx_arrow::{Entries, EventField, EventPath, Events, FoundValue, RecordEntry, RecordScan, Requirements};
use evtx_catalog::{DeclaredEvent, classic_providers, events_of};
use evtx_format::Interrupt;
use evtx_format::binxml::fields::Param;
use hashbrown::HashMap;

use crate::collected::{CollectedEvent, CollectedEvents, CollectedField, FieldLayout, push_key, push_numbers};
use crate::columns::{FieldColumns, MAX_FIELDS};
use crate::slots::{Slots, SlotsError, TooManyEvents};

/// The paths that a collector reads.
const PATHS: [EventPath; 4] = [
    EventPath::PROVIDER,
    EventPath::EVENT_ID,
    EventPath::VERSION,
    EventPath::CHANNEL,
];

/// Collects the events of logs.
pub struct EventCollector {
    events: Option<Events>,
    uses_implicit_templates: bool,
    scan: RecordScan,
    key: Vec<u8>,
    /// The index of each field layout in the current chunk, by the templates of `EventData` and `UserData`, and by how many
    /// items their unnamed arrays have.
    chunk_layouts: HashMap<Box<[u8]>, usize>,
    collected: CollectedEvents,
}

impl EventCollector {
    /// A collector of some events, or of all if `events` is `None`.
    pub fn new(events: Option<Events>) -> Self {
        EventCollector::of(events, true)
    }

    /// An empty collector of the same events that reads spelled-out elements as trees, for tests.
    pub fn without_implicit_templates(&self) -> Self {
        EventCollector::of(self.events.clone(), false)
    }

    fn of(events: Option<Events>, uses_implicit_templates: bool) -> Self {
        let requirements = Requirements {
            event_data: true,
            user_entries: true,
            ..Requirements::of_paths(&PATHS)
        };
        let mut scan = RecordScan::new(requirements, events.clone()).of_names();
        if !uses_implicit_templates {
            scan = scan.without_implicit_templates();
        }
        EventCollector {
            events,
            uses_implicit_templates,
            scan,
            key: Vec::new(),
            chunk_layouts: HashMap::new(),
            collected: CollectedEvents::default(),
        }
    }

    /// An empty collector of the same events, for another thread. It has its own templates, because sharing them costs
    /// more than reading them again.
    pub fn beside(&self) -> Self {
        EventCollector::of(self.events.clone(), self.uses_implicit_templates)
    }

    /// Takes the events that were collected so far.
    pub fn take(&mut self) -> CollectedEvents {
        // The field layouts of the current chunk go with them.
        self.chunk_layouts.clear();
        std::mem::take(&mut self.collected)
    }

    /// Adds the events of chunks that follow.
    ///
    /// # Errors
    /// [`TooManyEvents`].
    pub fn absorb(&mut self, other: &CollectedEvents) -> Result<(), TooManyEvents> {
        self.collected.absorb(other)
    }

    /// Adds the records of some slots. Leaves out what is damaged.
    ///
    /// # Errors
    /// [`SlotsError::TooManyEvents`], [`SlotsError::Interrupted`]. The events of the records before the error are kept.
    pub fn push(&mut self, slots: Slots<'_>, interrupt: Interrupt<'_>) -> Result<(), SlotsError> {
        let EventCollector {
            scan,
            key,
            chunk_layouts,
            collected,
            ..
        } = self;
        let paths = PATHS.map(|path| scan.path(path));
        for (_, chunk, promised) in slots.chunks() {
            chunk_layouts.clear();
            scan.read(chunk, promised, interrupt, |record| {
                let elements = [record.event_data(), record.user_data()];
                let is_of_templates = write_layout_key(key, elements);
                let known = chunk_layouts.get(&**key).filter(|_| is_of_templates);
                let layout = known.copied().unwrap_or_else(|| {
                    let index = collected.layout_index(field_layout(elements).into());
                    if is_of_templates {
                        chunk_layouts.insert(key.as_slice().into(), index);
                    }
                    index
                });
                let [provider, id, version, channel] = record.values_at(paths);
                let id = id.and_then(|id| u32::try_from(id.number()?).ok());
                let version = version.and_then(|version| u8::try_from(version.number()?).ok());
                key.clear();
                push_numbers(key, layout, id, version);
                for value in [provider, channel] {
                    push_key(key, value, |value, key| value.push_text(key));
                }
                let text = |value: Option<FoundValue<'_>>| value?.text().map(String::into_boxed_str);
                let event = |collected: &CollectedEvents| CollectedEvent {
                    provider: text(provider),
                    id,
                    version,
                    channel: text(channel),
                    layout: collected.layout(layout),
                    records: 1,
                };
                Ok::<_, SlotsError>(collected.add(key, 1, event)?)
            })?;
        }
        Ok(())
    }

    /// The columns for the fields of the events, at most 4,096. They have the order of the first event. A field that
    /// only a later event has follows the field that it follows there.
    ///
    /// If the events have certain IDs, fields that Windows' providers declare for them are added: the providers that
    /// the call names, or else those of the logs, or the classic ones for an ID that no log has.
    pub fn fields(&self) -> Vec<EventField> {
        let ids = self
            .events
            .as_ref()
            .and_then(|events| events.ids.as_deref())
            .unwrap_or_default();
        let ranks: HashMap<u32, usize> = ids.iter().enumerate().rev().map(|(rank, id)| (*id, rank)).collect();
        // The order does not depend on which event was found first.
        let order = |event: &&CollectedEvent| (event.id.and_then(|id| ranks.get(&id)), event.version);
        let mut events: Vec<&CollectedEvent> = self.collected.events.iter().collect();
        events.sort_by(|a, b| order(a).cmp(&order(b)).then_with(|| a.cmp(b)));
        let mut columns = FieldColumns::default();
        let mut done = HashSet::new();
        for event in events {
            if done.insert(Arc::as_ptr(&event.layout)) {
                columns.add(&event.layout);
            }
        }
        let mut declared = self.declared(ids);
        declared.sort_by_key(|event| ranks.get(&event.id).copied());
        for event in declared {
            columns.declare(&event);
        }
        columns.in_order()
    }

    fn declared(&self, ids: &[u32]) -> Vec<DeclaredEvent> {
        if ids.is_empty() {
            return Vec::new();
        }
        if let Some(providers) = self.events.as_ref().and_then(|events| events.providers.as_deref()) {
            let names = providers.iter().map(|name| name.to_ascii_lowercase()).collect();
            return events_of(&names, ids).collect();
        }
        let mut of_logs: HashMap<u32, HashSet<String>> = HashMap::new();
        for event in &self.collected.events {
            let Some(id) = event.id else { continue };
            let providers = of_logs.entry(id).or_default();
            providers.extend(event.provider.iter().map(|name| name.to_ascii_lowercase()));
        }
        // The first call of this takes some milliseconds.
        let classic = if ids.iter().all(|id| of_logs.contains_key(id)) {
            HashSet::new()
        } else {
            classic_providers()
        };
        let all = of_logs.values().flatten().chain(&classic).cloned().collect();
        let counts = |event: &DeclaredEvent| {
            let providers = of_logs.get(&event.id).unwrap_or(&classic);
            providers.contains(&event.provider.to_ascii_lowercase())
        };
        events_of(&all, ids).filter(counts).collect()
    }
}

/// Writes what distinguishes the fields of records. Returns false if a record spells them out: then they are its own.
fn write_layout_key(key: &mut Vec<u8>, elements: [Option<Entries<'_>>; 2]) -> bool {
    key.clear();
    for element in elements {
        let Some(element) = element else {
            key.push(0);
            continue;
        };
        let Some(template) = element.template() else {
            return false;
        };
        key.push(1);
        key.extend(template.to_le_bytes());
        if element.splits() {
            let unnamed = element.iter().filter(|entry| entry.is_unnamed());
            key.extend(unnamed.flat_map(|entry| (items(entry) as u64).to_le_bytes()));
        }
    }
    true
}

/// How many values an unnamed entry of a record has: the items of an array, but one at least.
fn items(entry: RecordEntry<'_>) -> usize {
    let items = entry.value().and_then(FoundValue::items);
    items.map_or(1, |items| items.take(MAX_FIELDS).count().max(1))
}

/// The fields of `EventData` and of `UserData`.
// Out of line, because most records have the layout of an earlier one.
#[cold]
fn field_layout(elements: [Option<Entries<'_>>; 2]) -> FieldLayout {
    let mut fields = Vec::new();
    for (element, in_user_data) in elements.into_iter().zip([false, true]) {
        let Some(element) = element else { continue };
        let mut number = 0;
        let of_entries = element.iter().flat_map(|entry| {
            let is_split = element.splits() && entry.is_unnamed();
            let first = number + 1;
            let count = if is_split { items(entry) } else { 1 };
            number += if is_split { count } else { 0 };
            (first..first + count).map(move |number| {
                let mut value_type = entry.declared();
                value_type.array &= !is_split;
                let key = if is_split {
                    Param(number).to_string().into()
                } else {
                    entry.key()
                };
                (key, value_type)
            })
        });
        fields.extend(of_entries.take(MAX_FIELDS).map(|(key, value_type)| CollectedField {
            key,
            value_type,
            in_user_data,
            is_spelled_out: element.is_spelled_out(),
        }));
    }
    FieldLayout {
        template: elements.into_iter().flatten().find_map(Entries::guid),
        fields: fields.into(),
    }
}
