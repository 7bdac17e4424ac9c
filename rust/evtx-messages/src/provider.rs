//! The rows of providers, from their binaries and the registry.
//!
//! A manifest says which message an event has, and which messages its level, task, opcode, keywords and maps have. What a
//! table has besides these is
//!
//! - an event of each classic source whose messages are in the file: the event ID is the lower half of the message's ID;
//! - a parameter of each provider whose parameters are in the file, or of the providers whose manifests are in it;
//! - otherwise a text whose provider is not known.
//!
//! A name of a level, task, opcode or keyword without a message is the name in the manifest.

use std::sync::Arc;

use evtx_format::Interrupt;
use hashbrown::{HashMap, HashSet};

use crate::binary::Binary;
use crate::binary::manifest::{DeclaredEvent, DeclaredMap, DeclaredProvider, Named};
use crate::binary::table::MessageTable;
use crate::language::language_name;
use crate::registry::{Registration, Registry, file_name};
use crate::row::{Guid, MessageKind, MessageRow, ValueMap};

/// The manifests' providers that get the other messages of a file as parameters, at most. *(choice)*
const MAX_OWNERS: usize = 16;

/// The tables of one group that are searched for the texts of events, at most. *(choice)*
const MAX_TABLES: usize = 256;

/// A binary and where it is.
#[derive(Debug)]
pub struct ProviderFile {
    /// The path, as it is shown.
    pub path: Arc<str>,
    /// The name without folders and `.mui`, in lower case. Files with the same name belong together.
    pub name: Box<str>,
    /// What is in it.
    pub binary: Binary,
}

impl ProviderFile {
    /// A binary that was read from a path.
    pub fn new(path: &str, binary: Binary) -> Self {
        ProviderFile {
            path: path.into(),
            name: file_name(path).into(),
            binary,
        }
    }
}

/// What is known of providers beyond their binaries.
#[derive(Clone, Copy)]
pub struct Known<'k> {
    /// The registry of the system that the files are from.
    pub registry: &'k Registry,
    /// The name of a provider with a GUID that is not in the registry.
    pub name_of: &'k dyn Fn(&Guid) -> Option<Arc<str>>,
    /// Ends the rows early. The caller then has to check it, because the rows look complete.
    pub interrupt: Interrupt<'k>,
}

/// The rows of binaries that belong together: `x.dll` and its `x.dll.mui`, or any files of one provider.
pub fn rows<'f>(files: &'f [ProviderFile], known: Known<'f>) -> impl Iterator<Item = MessageRow> + 'f {
    let Used {
        names,
        messages: used,
        maps,
    } = Used::by(files);
    let used = Arc::new(used);
    let manifests = Used {
        names,
        maps,
        ..Used::default()
    };
    let tables = files
        .iter()
        .flat_map(|file| file.binary.tables.iter().map(move |table| (file, table)));
    let tables = tables
        .take(MAX_TABLES)
        .map(|(file, table)| Arc::new(Table::new(file, table, &manifests, known.interrupt)));
    let tables: Arc<[_]> = tables.collect();
    let providers = move || {
        files
            .iter()
            .flat_map(|file| file.binary.manifests.iter().map(move |m| (file, m)))
    };
    let of_events = tables.clone();
    let events = providers()
        .flat_map(|(file, manifest)| manifest.providers.iter().map(move |provider| (file, provider)))
        .flat_map(move |(file, provider)| events(file, provider, of_events.clone(), name(&provider.guid, known)));
    let others = (0..tables.len()).flat_map(move |index| {
        let table = &tables[index];
        let owners = owners(files, table.file, known);
        others(table.clone(), owners, used.clone())
    });
    events
        .chain(others)
        .take_while(move |_| known.interrupt.check().is_ok())
}

fn name(guid: &Guid, known: Known<'_>) -> Option<Arc<str>> {
    let registered = known
        .registry
        .by_guid(guid)
        .map(|registration| registration.name.clone());
    registered.or_else(|| (known.name_of)(guid))
}

/// A table of messages with its file. Rows share its texts, however often a manifest refers to them.
struct Table<'f> {
    file: &'f ProviderFile,
    table: &'f MessageTable,
    language: Option<Arc<str>>,
    texts: HashMap<u32, Arc<str>>,
    /// The texts that name something, without line breaks at their ends.
    names: HashMap<u32, Arc<str>>,
    /// By the address of the map in the manifest.
    maps: HashMap<usize, Arc<ValueMap>>,
}

impl<'f> Table<'f> {
    fn new(file: &'f ProviderFile, table: &'f MessageTable, manifests: &Used, interrupt: Interrupt<'_>) -> Self {
        let texts: HashMap<_, Arc<str>> = table
            .ids()
            .take_while(|_| interrupt.check().is_ok())
            .filter_map(|id| Some((id, table.text(id)?.into())))
            .collect();
        let name = |id: &u32| Some((*id, texts.get(id)?.trim_end_matches(['\r', '\n']).into()));
        let map = |map: &Arc<DeclaredMap>| {
            let entries = map
                .entries
                .iter()
                .filter_map(|(value, id)| Some((*value, texts.get(id)?.clone())));
            let translated = ValueMap {
                name: map.name.clone(),
                is_bit_map: map.is_bit_map,
                entries: entries.collect(),
            };
            (Arc::as_ptr(map).addr(), Arc::new(translated))
        };
        Table {
            file,
            table,
            language: language_name(table.language).map(Arc::from),
            names: manifests.names.iter().filter_map(name).collect(),
            maps: manifests.maps.values().map(map).collect(),
            texts,
        }
    }

    /// What something is called: its message, or else its name.
    fn named(&self, named: &Named) -> Option<Arc<str>> {
        let text = named
            .message_id
            .and_then(|id| self.names.get(&id))
            .unwrap_or(&named.name);
        (!text.is_empty()).then(|| text.clone())
    }
}

/// What manifests use of tables.
#[derive(Default)]
struct Used {
    /// The messages that name something.
    names: HashSet<u32>,
    /// All messages.
    messages: HashSet<u32>,
    /// By their addresses.
    maps: HashMap<usize, Arc<DeclaredMap>>,
}

impl Used {
    fn by(files: &[ProviderFile]) -> Self {
        let mut used = Used::default();
        let manifests = files.iter().flat_map(|file| &file.binary.manifests);
        for provider in manifests.flat_map(|manifest| &manifest.providers) {
            used.names.extend(provider.shown_name);
            used.names
                .extend(provider.keywords.iter().filter_map(|(_, named)| named.message_id));
            for event in &provider.events {
                used.messages.extend(event.message_id);
                let named = [&event.channel, &event.level, &event.task, &event.opcode];
                used.names
                    .extend(named.into_iter().flatten().filter_map(|named| named.message_id));
                used.maps
                    .extend(event.maps.iter().map(|map| (Arc::as_ptr(map).addr(), map.clone())));
            }
        }
        for map in used.maps.values() {
            used.messages.extend(map.entries.iter().map(|(_, id)| *id));
        }
        used.messages.extend(&used.names);
        used
    }
}

/// The rows of a provider's events: one for each language that has the text, or one without a text.
fn events<'f>(
    file: &'f ProviderFile,
    provider: &'f DeclaredProvider,
    tables: Arc<[Arc<Table<'f>>]>,
    name: Option<Arc<str>>,
) -> impl Iterator<Item = MessageRow> + 'f {
    provider.events.iter().flat_map(move |event| {
        let row = MessageRow {
            provider: name.clone(),
            guid: Some(provider.guid),
            event_id: Some(event.event_id),
            version: Some(event.version),
            message_id: event.message_id,
            channel: event.channel.as_ref().map(|named| named.name.clone()),
            fields: event.fields.clone(),
            file: file.path.clone(),
            ..MessageRow::new(MessageKind::Event)
        };
        let mut rows: Vec<_> = tables
            .iter()
            .filter_map(|table| translated(&row, provider, event, table))
            .collect();
        if rows.is_empty() {
            rows.extend(
                tables
                    .first()
                    .map(|table| with_names(row.clone(), provider, event, table)),
            );
        }
        if rows.is_empty() {
            rows.push(row);
        }
        rows
    })
}

/// The row of an event in the language of a table; `None` if the table does not have the text.
fn translated(
    row: &MessageRow,
    provider: &DeclaredProvider,
    event: &DeclaredEvent,
    table: &Table<'_>,
) -> Option<MessageRow> {
    let text = table.texts.get(&event.message_id?)?.clone();
    let row = MessageRow {
        language: table.language.clone(),
        text: Some(text),
        file: table.file.path.clone(),
        ..row.clone()
    };
    Some(with_names(row, provider, event, table))
}

fn with_names(row: MessageRow, provider: &DeclaredProvider, event: &DeclaredEvent, table: &Table<'_>) -> MessageRow {
    let called = |named: &Option<Named>| table.named(named.as_ref()?);
    let keywords = provider
        .keywords
        .iter()
        .filter(|(bits, _)| *bits != 0 && event.keywords & bits == *bits);
    MessageRow {
        level: called(&event.level),
        task: called(&event.task),
        opcode: called(&event.opcode),
        keywords: keywords.filter_map(|(_, named)| table.named(named)).collect(),
        maps: event
            .maps
            .iter()
            .filter_map(|map| table.maps.get(&Arc::as_ptr(map).addr()).cloned())
            .collect(),
        ..row
    }
}

/// Whose messages a table has.
struct Owner {
    kind: MessageKind,
    provider: Option<Arc<str>>,
    guid: Option<Guid>,
}

fn owners(files: &[ProviderFile], file: &ProviderFile, known: Known<'_>) -> Vec<Owner> {
    let registered = |kind, registrations: &[Arc<Registration>]| {
        let owner = move |registration: &Arc<Registration>| Owner {
            kind,
            provider: Some(registration.name.clone()),
            guid: registration.guid,
        };
        registrations.iter().map(owner).collect::<Vec<_>>()
    };
    let mut owners = registered(MessageKind::Event, known.registry.by_message_file(&file.name));
    owners.extend(registered(
        MessageKind::Parameter,
        known.registry.by_parameter_file(&file.name),
    ));
    let declared = files
        .iter()
        .flat_map(|file| &file.binary.manifests)
        .flat_map(|manifest| &manifest.providers);
    for provider in declared.take(MAX_OWNERS) {
        let registration = known.registry.by_guid(&provider.guid);
        if registration.is_none_or(|registration| registration.parameter_files.is_empty()) {
            owners.push(Owner {
                kind: MessageKind::Parameter,
                provider: name(&provider.guid, known),
                guid: Some(provider.guid),
            });
        }
    }
    if owners.is_empty() {
        owners.push(Owner {
            kind: MessageKind::Text,
            provider: None,
            guid: None,
        });
    }
    owners
}

/// The rows of the messages that no manifest uses, once for each owner.
fn others<'f>(
    table: Arc<Table<'f>>,
    owners: Vec<Owner>,
    used: Arc<HashSet<u32>>,
) -> impl Iterator<Item = MessageRow> + 'f {
    let ids = table.table.ids().filter(move |id| !used.contains(id));
    ids.flat_map(move |id| {
        let text = table.texts.get(&id).cloned();
        let row = |owner: &Owner| {
            let is_parameter = owner.kind == MessageKind::Parameter;
            MessageRow {
                provider: owner.provider.clone(),
                guid: owner.guid,
                event_id: (!is_parameter).then_some(id as u16),
                qualifiers: (!is_parameter).then_some((id >> 16) as u16),
                message_id: Some(id),
                language: table.language.clone(),
                text: text.clone(),
                file: table.file.path.clone(),
                ..MessageRow::new(owner.kind)
            }
        };
        owners.iter().map(row).collect::<Vec<_>>()
    })
}
