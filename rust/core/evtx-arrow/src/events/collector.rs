//! Collects the events of logs and their fields.
//!
//! The fields are those of `EventData` and the leaves of `UserData`, with the types that templates declare. A template
//! definition does not name its event, and several events can share one. So each record is read as far as its event and
//! the template of its `EventData`. No field is decoded.

use std::collections::HashSet;
use std::sync::Arc;

use evtx_catalog::{DeclaredEvent, classic_providers, events_of};
use evtx_format::Interrupt;
use evtx_format::binxml::fields::Param;
use evtx_format::value::ValueType;
use hashbrown::HashMap;

use super::collected::{CollectedEvent, CollectedEvents, CollectedField, FieldLayout, push_key, push_numbers};
use super::columns::{FieldColumns, MAX_FIELDS};
use super::records::ChunkReader;
use super::slots::{Slots, SlotsError, TooManyEvents};
use crate::extra::Requirements;
use crate::filter::{Row, Scratch, Stage};
use crate::plan::{Entry, EventData, PathId, Resolved};
use crate::read::RecordReader;
use crate::record::{ChunkTemplates, RecordGroup, RecordSection, SectionContent};
use crate::scan::Scan;
use crate::schema::{EventField, EventPath, Events, Options};
use crate::table::Table;

/// The columns that a collector reads. The constants below are indexes among them.
const PATHS: [EventPath; 4] = [
    EventPath::PROVIDER,
    EventPath::EVENT_ID,
    EventPath::VERSION,
    EventPath::CHANNEL,
];
const PROVIDER: PathId = PathId(0);
const EVENT_ID: PathId = PathId(1);
const VERSION: PathId = PathId(2);
const CHANNEL: PathId = PathId(3);

/// Collects the events of logs.
pub struct EventCollector {
    scan: Arc<Scan>,
    events: Option<Arc<Events>>,
    reader: ChunkReader,
    scratch: Scratch,
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
        EventCollector::of(self.events.as_deref().cloned(), false)
    }

    fn of(events: Option<Events>, uses_implicit_templates: bool) -> Self {
        let events = events.map(Arc::new);
        let mut table = Table::from(Options::default());
        table.events = events.clone();
        let requirements = Requirements {
            paths: PATHS.to_vec(),
            event_data: true,
            user_entries: true,
            ..Requirements::default()
        };
        let mut scan = Scan::reading(vec![requirements], table, &[], &[]);
        scan.projection.names_only = true;
        scan.uses_implicit_templates = uses_implicit_templates;
        EventCollector {
            scan: Arc::new(scan),
            events,
            reader: ChunkReader::default(),
            scratch: Scratch::default(),
            key: Vec::new(),
            chunk_layouts: HashMap::new(),
            collected: CollectedEvents::default(),
        }
    }

    /// An empty collector of the same events, for another thread. It has its own templates, because sharing them costs
    /// more than reading them again.
    pub fn beside(&self) -> Self {
        EventCollector::of(self.events.as_deref().cloned(), self.scan.uses_implicit_templates)
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

    #[cfg(test)]
    pub(crate) fn scan(&self) -> &Scan {
        &self.scan
    }

    /// Adds the records of some slots. Leaves out what is damaged.
    ///
    /// # Errors
    /// [`SlotsError::TooManyEvents`], [`SlotsError::Interrupted`], [`SlotsError::Poisoned`]. The events of the records
    /// before the error are kept.
    pub fn push(&mut self, slots: Slots<'_>, interrupt: Interrupt<'_>) -> Result<(), SlotsError> {
        let EventCollector {
            scan,
            reader,
            scratch,
            key,
            chunk_layouts,
            collected,
            ..
        } = self;
        let mut keeps = |reader: &RecordReader<'_, '_>, records: &RecordGroup<'_>, templates: &ChunkTemplates| {
            let row = Row {
                record: Some((records.current(), templates)),
                interrupt: reader.interrupt,
                ..Row::default()
            };
            scan.filter.keeps(Stage::Header, Stage::Record, &row, scratch)
        };
        for (_, chunk, promised) in slots.chunks() {
            chunk_layouts.clear();
            reader.read(scan, chunk, promised, interrupt, |reader, templates, records| {
                let has_system = records.current().has_system(templates);
                if has_system && !keeps(reader, records, templates) {
                    return Ok(());
                }
                reader.read_children(templates, records);
                if records.current().is_unread() || !has_system && !keeps(reader, records, templates) {
                    return Ok(());
                }
                let sections = records.current();
                let elements = [sections.event_data(templates), sections.user_entries(templates)];
                let is_of_templates = write_layout_key(key, templates, elements);
                let known = chunk_layouts.get(&**key).filter(|_| is_of_templates);
                let layout = known.copied().unwrap_or_else(|| {
                    let index = collected.layout_index(field_layout(scan, templates, elements).into());
                    if is_of_templates {
                        chunk_layouts.insert(key.as_slice().into(), index);
                    }
                    index
                });
                let fields = sections.path_values(templates);
                let number = |path| fields.get(path)?.number();
                let id = number(EVENT_ID).and_then(|id| u32::try_from(id).ok());
                let version = number(VERSION).and_then(|version| u8::try_from(version).ok());
                key.clear();
                push_numbers(key, layout, id, version);
                for path in [PROVIDER, CHANNEL] {
                    push_key(key, fields.get(path), |value, key| value.push_text(key));
                }
                let text = |path| fields.get(path)?.text().map(String::into_boxed_str);
                let event = |collected: &CollectedEvents| CollectedEvent {
                    provider: text(PROVIDER),
                    id,
                    version,
                    channel: text(CHANNEL),
                    layout: collected.layout(layout),
                    records: 1,
                };
                Ok::<_, SlotsError>(collected.add(key, 1, event)?)
            })?;
        }
        Ok(self.scan.check_shared()?)
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

/// An element of a record: its entries, and the section that has their values.
type Leaves<'x, 'r> = Option<(&'x EventData, &'x RecordSection<'r>)>;

/// Writes what distinguishes the fields of records. Returns false if a record spells them out: then they are its own.
fn write_layout_key(key: &mut Vec<u8>, templates: &ChunkTemplates, elements: [Leaves<'_, '_>; 2]) -> bool {
    key.clear();
    for leaves in elements {
        let Some((element, section)) = leaves else {
            key.push(0);
            continue;
        };
        let Some(Ok(compiled)) = section.template().map(|template| templates.get(template)) else {
            return false;
        };
        key.push(1);
        key.extend(compiled.number.to_le_bytes());
        if element.splits {
            let unnamed = element.entries.iter().filter(|entry| entry.name_len == 0);
            key.extend(unnamed.flat_map(|entry| (items(entry, section) as u64).to_le_bytes()));
        }
    }
    true
}

/// How many values an unnamed entry of a record has: the items of an array, but one at least.
fn items(entry: &Entry, section: &RecordSection<'_>) -> usize {
    let items = entry.source.find(section.values).and_then(Resolved::items);
    items.map_or(1, |items| items.take(MAX_FIELDS).count().max(1))
}

/// The fields of `EventData` and of `UserData`.
// Out of line, because most records have the layout of an earlier one.
#[cold]
fn field_layout(scan: &Scan, templates: &ChunkTemplates, elements: [Leaves<'_, '_>; 2]) -> FieldLayout {
    let template = |(_, section): (_, &RecordSection<'_>)| Some(templates.get(section.instance()?.0).ok()?.guid);
    let mut fields = Vec::new();
    for (leaves, in_user_data) in elements.into_iter().zip([false, true]) {
        let Some((element, section)) = leaves else { continue };
        let is_spelled_out = matches!(
            section.content,
            SectionContent::Tree(_, None) | SectionContent::ImplicitInstance(..)
        );
        let keys = &scan.plans.keys;
        let mut number = 0;
        let of_entries = element.entries.iter().flat_map(|entry| {
            let is_split = element.splits && entry.name_len == 0;
            let first = number + 1;
            let count = if is_split { items(entry, section) } else { 1 };
            number += if is_split { count } else { 0 };
            (first..first + count).map(move |number| {
                if is_split {
                    let key = keys.key(&Param(number).to_string());
                    (
                        keys.name(&key),
                        ValueType {
                            array: false,
                            ..entry.declared
                        },
                    )
                } else {
                    (keys.name(&entry.key), entry.declared)
                }
            })
        });
        fields.extend(of_entries.take(MAX_FIELDS).map(|(key, value_type)| CollectedField {
            key,
            value_type,
            in_user_data,
            is_spelled_out,
        }));
    }
    FieldLayout {
        template: elements.into_iter().flatten().find_map(template),
        fields: fields.into(),
    }
}
