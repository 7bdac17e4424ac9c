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
//! Any file can declare the events of any provider. If there is a registry of providers, only the manifests and texts in the files
//! that it names for a provider count. What other files say of it are texts whose provider is not known.

use std::sync::Arc;

use evtx_format::Interrupt;
use hashbrown::HashMap;

use crate::binary::Binary;
use crate::binary::manifest::{DeclaredEvent, DeclaredMap, DeclaredProvider, Decoded, Elements, Manifest, Named};
use crate::binary::table::MessageTable;
use crate::error::Result;
use crate::language::language_name;
use crate::registry::{FileLocation, Files, Registration, Registry};
use crate::row::{Guid, MessageKind, MessageRow, Owner, ValueMap};

/// At most this many providers of manifests get the other messages of a file as parameters. *(choice)*
const MAX_OWNERS: usize = 16;

/// At most this many tables of one group are searched for the texts of events. *(choice)*
const MAX_TABLES: usize = 256;

/// The bytes of the texts of tables that are kept for the next rows. *(choice)*
const MAX_TEXTS: usize = 4 << 20;

/// At most this many bytes of names and maps are in a row. *(choice)*
const MAX_NAMES: usize = 1 << 20;

/// A binary and where it is.
#[derive(Debug)]
pub struct ProviderFile {
    /// The path, as it is shown.
    pub path: Arc<str>,
    /// Where a registry names it. Files of one folder with the same name belong together.
    pub location: FileLocation,
    /// What is in it.
    pub binary: Binary,
}

impl ProviderFile {
    /// A binary that was read from a path.
    pub fn new(path: &str, binary: Binary) -> Self {
        ProviderFile {
            path: path.into(),
            location: FileLocation::of(path),
            binary,
        }
    }

    /// About how many bytes of memory it takes, with what its rows need of it.
    pub fn bytes(&self) -> usize {
        let providers = self.binary.manifests.iter().map(|manifest| manifest.providers.len());
        let declared = providers.sum::<usize>() * size_of::<Declared>();
        size_of::<Self>() + self.path.len() + self.location.bytes() + declared + self.binary.bytes()
    }
}

/// What is known of providers beyond their binaries.
#[derive(Clone, Copy)]
pub struct Known<'k> {
    /// The registry of the system that the files are from.
    pub registry: &'k Registry,
    /// Ends the rows early.
    pub interrupt: Interrupt<'k>,
}

impl Known<'_> {
    /// Whether a provider's manifest in this file counts.
    fn declares(self, file: &ProviderFile, provider: &DeclaredProvider) -> bool {
        self.is_own(file, &provider.guid, |of| [&of.resource_files, &of.message_files])
    }

    /// Whether the texts of a provider's events in this file count.
    fn has_texts(self, file: &ProviderFile, guid: &Guid) -> bool {
        self.is_own(file, guid, |of| [&of.message_files, &of.resource_files])
    }

    /// Whether a file is in the first list of a provider that is not empty, or there is no registry of providers.
    fn is_own(self, file: &ProviderFile, guid: &Guid, lists: fn(&Registration) -> [&Files; 2]) -> bool {
        let Some(registration) = self.registry.by_guid(guid) else {
            return !self.registry.has_publishers();
        };
        let first = lists(registration).into_iter().find(|files| !files.is_empty());
        first.is_some_and(|files| self.registry.is_file_of(files, &file.location))
    }
}

/// The rows of binaries that belong together: `x.dll` and its `x.dll.mui`, or any files of one provider. They are made when
/// they are asked for: first those of events, one for each language that has the text, then those of other messages, one
/// for each provider that uses them.
#[derive(Debug, Default)]
pub struct Rows {
    files: Vec<ProviderFile>,
    /// The providers whose manifests count.
    providers: Vec<Declared>,
    /// The IDs of all messages that they use, sorted.
    used: Vec<u32>,
    /// Where the tables are: the indexes of the file, and in it.
    tables: Vec<(usize, usize)>,
    texts: Texts,
    decoded: Decoded,
    next_provider: usize,
    provider: Option<OpenProvider>,
    event: Option<OpenEvent>,
    /// The table whose other messages come next.
    next_table: usize,
    others: Option<Others>,
}

/// Where a provider is: the indexes of the file, of the manifest in it, and in that.
#[derive(Debug, Clone, Copy)]
struct Declared {
    file: usize,
    manifest: usize,
    provider: usize,
}

impl Declared {
    fn of(self, files: &[ProviderFile]) -> (&ProviderFile, &Manifest, &DeclaredProvider) {
        let file = &files[self.file];
        let manifest = &file.binary.manifests[self.manifest];
        (file, manifest, &manifest.providers[self.provider])
    }
}

/// A provider whose events come next.
#[derive(Debug)]
struct OpenProvider {
    declared: Declared,
    name: Option<Arc<str>>,
    elements: Elements,
    /// The indexes of the tables whose texts count.
    tables: Vec<usize>,
    next_event: usize,
}

/// An event whose rows come next.
#[derive(Debug)]
struct OpenEvent {
    event: DeclaredEvent,
    row: MessageRow,
    next_table: usize,
    has_text: bool,
}

/// A table whose messages come next that no manifest uses.
#[derive(Debug)]
struct Others {
    table: usize,
    owners: Vec<Owner>,
    next_message: usize,
    next_owner: usize,
}

impl Rows {
    /// The rows of some binaries.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn new(files: Vec<ProviderFile>, known: Known<'_>) -> Result<Self> {
        let mut providers = Vec::new();
        for (index, file) in files.iter().enumerate() {
            for (manifest, of) in file.binary.manifests.iter().enumerate() {
                for (provider, declared) in of.providers.iter().enumerate() {
                    known.interrupt.check()?;
                    if known.declares(file, declared) {
                        providers.push(Declared {
                            file: index,
                            manifest,
                            provider,
                        });
                    }
                }
            }
        }
        let ids = providers.iter().map(|declared| &declared.of(&files).2.used);
        let mut used = Vec::with_capacity(ids.clone().map(Vec::len).sum());
        ids.for_each(|ids| used.extend_from_slice(ids));
        used.sort_unstable();
        used.dedup();
        let tables = files.iter().enumerate();
        let tables = tables.flat_map(|(file, of)| (0..of.binary.tables.len()).map(move |index| (file, index)));
        Ok(Rows {
            used,
            providers,
            tables: tables.take(MAX_TABLES).collect(),
            files,
            ..Rows::default()
        })
    }

    /// The next row; `None` at the end. `known` is the same for all rows.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn next(&mut self, known: Known<'_>) -> Result<Option<MessageRow>> {
        loop {
            known.interrupt.check()?;
            let row = if self.event.is_some() {
                self.row_of_event()
            } else if self.provider.is_some() {
                self.open_event();
                None
            } else if self.next_provider < self.providers.len() {
                self.open_provider(known);
                None
            } else if self.others.is_some() {
                self.row_of_other()
            } else if self.next_table < self.tables.len() {
                self.open_table(known)?;
                None
            } else {
                return Ok(None);
            };
            if row.is_some() {
                return Ok(row);
            }
        }
    }

    fn open_provider(&mut self, known: Known<'_>) {
        let declared = self.providers[self.next_provider];
        let (_, manifest, provider) = declared.of(&self.files);
        let last = self.next_provider.checked_sub(1).map(|last| self.providers[last]);
        if last.is_none_or(|last| (last.file, last.manifest) != (declared.file, declared.manifest)) {
            // Their keys are offsets in one manifest.
            self.decoded = Decoded::default();
            self.texts = Texts::default();
        }
        let is_own = |table: &usize| known.has_texts(&self.files[self.tables[*table].0], &provider.guid);
        self.provider = Some(OpenProvider {
            declared,
            name: name(&provider.guid, known),
            elements: manifest.elements(provider, &mut self.decoded),
            tables: (0..self.tables.len()).filter(is_own).collect(),
            next_event: 0,
        });
        self.next_provider += 1;
    }

    fn open_event(&mut self) {
        let Some(open) = &mut self.provider else { return };
        let (file, manifest, provider) = open.declared.of(&self.files);
        let Some(event) = manifest.event(provider, &open.elements, open.next_event, &mut self.decoded) else {
            self.provider = None;
            return;
        };
        open.next_event += 1;
        let row = MessageRow {
            provider: open.name.clone(),
            guid: Some(provider.guid),
            event_id: Some(event.event_id),
            version: Some(event.version),
            message_id: event.message_id,
            channel: event.channel.as_ref().map(|named| named.name.clone()),
            fields: event.fields.clone(),
            file: file.path.clone(),
            ..MessageRow::new(MessageKind::Event)
        };
        self.event = Some(OpenEvent {
            event,
            row,
            next_table: 0,
            has_text: false,
        });
    }

    /// The row of an event in the next language that has the text. If none has it, there is one row without a text.
    fn row_of_event(&mut self) -> Option<MessageRow> {
        let open = self.event.as_mut()?;
        let provider = self.provider.as_ref()?;
        let table = |index: &usize| Table::of(&self.files, self.tables[*index], *index);
        while let Some(table) = provider.tables.get(open.next_table).map(table) {
            open.next_table += 1;
            let id = open.event.message_id;
            let Some(text) = id.and_then(|id| self.texts.text(table, id)) else {
                continue;
            };
            open.has_text = true;
            let row = MessageRow {
                language: language_name(table.table.language),
                text: Some(text),
                file: table.file.path.clone(),
                ..open.row.clone()
            };
            return Some(self.texts.with_names(row, &provider.elements, &open.event, table));
        }
        let open = self.event.take()?;
        if open.has_text {
            return None;
        }
        match provider.tables.first().map(table) {
            Some(table) => Some(self.texts.with_names(open.row, &provider.elements, &open.event, table)),
            None => Some(open.row),
        }
    }

    fn open_table(&mut self, known: Known<'_>) -> Result<()> {
        let table = self.next_table;
        let owners = self.owners(&self.files[self.tables[table].0], known)?;
        self.next_table += 1;
        self.others = Some(Others {
            table,
            owners,
            next_message: 0,
            next_owner: 0,
        });
        Ok(())
    }

    /// Whose messages the tables of a file have.
    fn owners(&self, file: &ProviderFile, known: Known<'_>) -> Result<Vec<Owner>> {
        let (registry, name_of_file) = (known.registry, file.location.name());
        let events = registry.by_message_file(name_of_file);
        let events = events.map(|of| (MessageKind::Event, of, &of.message_files));
        let parameters = registry.by_parameter_file(name_of_file);
        let parameters = parameters.map(|of| (MessageKind::Parameter, of, &of.parameter_files));
        let mut owners = Vec::new();
        for (kind, registration, files) in events.chain(parameters) {
            known.interrupt.check()?;
            if registry.is_file_of(files, &file.location) {
                owners.push(Owner {
                    kind,
                    provider: Some(registration.name.clone()),
                    guid: registration.guid,
                });
            }
        }
        for declared in self.providers.iter().take(MAX_OWNERS) {
            let (.., provider) = declared.of(&self.files);
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
            owners.push(Owner::UNKNOWN);
        }
        Ok(owners)
    }

    /// The row of a message that no manifest uses, for its next owner.
    fn row_of_other(&mut self) -> Option<MessageRow> {
        let others = self.others.as_mut()?;
        let table = Table::of(&self.files, self.tables[others.table], others.table);
        let Some(id) = table.table.id(others.next_message) else {
            self.others = None;
            return None;
        };
        let owner = others.owners.get(others.next_owner);
        let Some(owner) = owner.filter(|_| self.used.binary_search(&id).is_err()) else {
            others.next_message += 1;
            others.next_owner = 0;
            return None;
        };
        others.next_owner += 1;
        let row = MessageRow {
            language: language_name(table.table.language),
            text: self.texts.text(table, id),
            file: table.file.path.clone(),
            ..MessageRow::default()
        };
        Some(owner.row(id, row))
    }
}

fn name(guid: &Guid, known: Known<'_>) -> Option<Arc<str>> {
    Some(known.registry.by_guid(guid)?.name.clone())
}

/// A table of messages with its file, and its index among all tables.
#[derive(Clone, Copy)]
struct Table<'f> {
    file: &'f ProviderFile,
    table: &'f MessageTable,
    index: usize,
}

impl<'f> Table<'f> {
    fn of(files: &'f [ProviderFile], (file, table): (usize, usize), index: usize) -> Self {
        let file = &files[file];
        let table = &file.binary.tables[table];
        Table { file, table, index }
    }
}

/// The texts of tables that rows share, however often a manifest refers to them. The first number of a key is the index of
/// the table.
#[derive(Debug, Default)]
struct Texts {
    texts: HashMap<(usize, u32), Option<Arc<str>>>,
    /// By the offset of the map in the manifest.
    maps: HashMap<(usize, u32), Arc<ValueMap>>,
    /// What they take, in bytes.
    bytes: usize,
}

impl Texts {
    /// Makes room for a text. What is forgotten is decoded again.
    fn take(&mut self, bytes: usize) {
        self.bytes += 64 + bytes;
        if self.bytes > MAX_TEXTS {
            *self = Texts::default();
        }
    }

    fn text(&mut self, table: Table<'_>, id: u32) -> Option<Arc<str>> {
        let key = (table.index, id);
        if let Some(known) = self.texts.get(&key) {
            return known.clone();
        }
        let text: Option<Arc<str>> = table.table.text(id).map(Arc::from);
        self.take(text.as_ref().map_or(0, |text| text.len()));
        self.texts.insert(key, text.clone());
        text
    }

    /// The name that a row shows for an element: its message, or else its name in the manifest.
    fn display_name(&mut self, named: &Named, table: Table<'_>, room: &mut usize) -> Option<Arc<str>> {
        let message = named.message_id.and_then(|id| self.text(table, id));
        let message = message.map(|text| match text.trim_end_matches(['\r', '\n']) {
            trimmed if trimmed.len() < text.len() => trimmed.into(),
            _ => text,
        });
        let text = message.unwrap_or_else(|| named.name.clone());
        *room = room.checked_sub(text.len())?;
        (!text.is_empty()).then_some(text)
    }

    fn map(&mut self, map: &DeclaredMap, table: Table<'_>, room: &mut usize) -> Option<Arc<ValueMap>> {
        let key = (table.index, map.offset);
        let known = self.maps.get(&key).cloned();
        let translated = match known {
            Some(known) => known,
            None => {
                let (mut entries, mut bytes) = (Vec::new(), 0);
                for (value, id) in &map.entries {
                    let Some(text) = self.text(table, *id) else { continue };
                    bytes += text.len() + 32;
                    if bytes > MAX_NAMES {
                        return None;
                    }
                    entries.push((*value, text));
                }
                let translated = Arc::new(ValueMap {
                    name: map.name.clone(),
                    is_bit_map: map.is_bit_map,
                    entries,
                });
                self.take(bytes);
                self.maps.insert(key, Arc::clone(&translated));
                translated
            }
        };
        let bytes = translated.entries.iter().map(|(_, text)| text.len() + 32).sum();
        *room = room.checked_sub(bytes)?;
        Some(translated)
    }

    /// The row of an event with the names in the language of a table. Names that take too much are left out.
    fn with_names(
        &mut self,
        row: MessageRow,
        elements: &Elements,
        event: &DeclaredEvent,
        table: Table<'_>,
    ) -> MessageRow {
        let mut room = MAX_NAMES;
        let mut display_name = |named: &Option<Named>| self.display_name(named.as_ref()?, table, &mut room);
        let [level, task, opcode] = [&event.level, &event.task, &event.opcode].map(&mut display_name);
        let keywords = elements
            .keywords()
            .filter(|(bits, _)| *bits != 0 && event.keywords & bits == *bits);
        let keywords = keywords
            .filter_map(|(_, named)| self.display_name(named, table, &mut room))
            .collect();
        let maps = event
            .maps
            .iter()
            .filter_map(|map| self.map(map, table, &mut room))
            .collect();
        MessageRow {
            level,
            task,
            opcode,
            keywords,
            maps,
            ..row
        }
    }
}
