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
//!
//! Any file can declare the events of any provider. If the registry says which files a provider uses, manifests and texts in other
//! files do not count: what these say of it are texts whose provider is not known.

use std::sync::Arc;

use evtx_format::Interrupt;
use hashbrown::{HashMap, HashSet};

use crate::binary::Binary;
use crate::binary::manifest::{DeclaredEvent, DeclaredMap, DeclaredProvider, Manifest, Named};
use crate::binary::table::MessageTable;
use crate::language::language_name;
use crate::registry::{FilePlace, Files, Registration, Registry};
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
    /// Where a registry names it. Files of one folder with the same name belong together.
    pub place: FilePlace,
    /// What is in it.
    pub binary: Binary,
}

impl ProviderFile {
    /// A binary that was read from a path.
    pub fn new(path: &str, binary: Binary) -> Self {
        ProviderFile {
            path: path.into(),
            place: FilePlace::of(path),
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

impl Known<'_> {
    /// Whether the manifest of a provider counts that is in a file.
    fn declares(self, file: &ProviderFile, provider: &DeclaredProvider) -> bool {
        self.is_own(file, &provider.guid, |of| [&of.resource_files, &of.message_files])
    }

    /// Whether the texts of a provider's events count that are in a file.
    fn has_texts(self, file: &ProviderFile, guid: &Guid) -> bool {
        self.is_own(file, guid, |of| [&of.message_files, &of.resource_files])
    }

    /// Whether a file is in the first list of a provider that is not empty, or the registry has none.
    fn is_own(self, file: &ProviderFile, guid: &Guid, lists: fn(&Registration) -> [&Files; 2]) -> bool {
        let lists = self.registry.by_guid(guid).map(lists).into_iter().flatten();
        let mut lists = lists.filter(|files| !files.is_empty());
        lists
            .next()
            .is_none_or(|files| self.registry.is_file_of(files, &file.place))
    }
}

/// The rows of binaries that belong together: `x.dll` and its `x.dll.mui`, or any files of one provider.
pub fn rows<'f>(files: &'f [ProviderFile], known: Known<'f>) -> impl Iterator<Item = MessageRow> + 'f {
    let Used {
        names,
        messages: used,
        maps,
    } = Used::by(files, known);
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
    let of_events = tables.clone();
    let events = providers(files, known).flat_map(move |(file, provider)| {
        let tables = of_events.iter();
        let own = tables.filter(|table| known.has_texts(table.file, &provider.guid));
        events(file, provider, own.cloned().collect(), name(&provider.guid, known))
    });
    let others = (0..tables.len()).flat_map(move |index| {
        let table = &tables[index];
        let owners = owners(files, table.file, known);
        others(table.clone(), owners, used.clone())
    });
    events
        .chain(others)
        .take_while(move |_| known.interrupt.check().is_ok())
}

/// The providers whose manifests in these files count.
fn providers<'f>(
    files: &'f [ProviderFile],
    known: Known<'f>,
) -> impl Iterator<Item = (&'f ProviderFile, &'f DeclaredProvider)> {
    let of_file = |file: &'f ProviderFile| file.binary.manifests.iter().map(move |manifest| (file, manifest));
    let of_manifest = |(file, manifest): (_, &'f Manifest)| manifest.providers.iter().map(move |of| (file, of));
    let all = files.iter().flat_map(of_file).flat_map(of_manifest);
    all.filter(move |(file, provider)| known.declares(file, provider))
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
    fn by(files: &[ProviderFile], known: Known<'_>) -> Self {
        let mut used = Used::default();
        for (_, provider) in providers(files, known) {
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
    let registry = known.registry;
    let owner = |kind, registration: &Registration| Owner {
        kind,
        provider: Some(registration.name.clone()),
        guid: registration.guid,
    };
    let of_events = registry.by_message_file(file.place.name());
    let of_events = of_events.filter(|of| registry.is_file_of(&of.message_files, &file.place));
    let of_parameters = registry.by_parameter_file(file.place.name());
    let of_parameters = of_parameters.filter(|of| registry.is_file_of(&of.parameter_files, &file.place));
    let mut owners: Vec<_> = of_events
        .map(|of| owner(MessageKind::Event, of))
        .chain(of_parameters.map(|of| owner(MessageKind::Parameter, of)))
        .collect();
    for (_, provider) in providers(files, known).take(MAX_OWNERS) {
        let registration = registry.by_guid(&provider.guid);
        if registration.is_none_or(|registration| registration.parameter_files.is_empty())
            && known.has_texts(file, &provider.guid)
        {
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
