//! The messages of events: that of the event itself, that of a catalog, and that of files beside the log.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use arrow_schema::ArrowError;
use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use evtx_arrow::{EventPath, FoundValue, PathId, ReadRecord, ScanLayout, TextColumn};
use evtx_codes::{Answer, Code, Lookup, Source};
use evtx_messages::{Catalog, EventKey, Insertion, Message};
use hashbrown::HashMap;

use crate::beside::MessageFile;
use crate::insertions::{Declaration, insertions};

/// A catalog of messages, and the path of its file.
#[derive(Debug, Clone)]
pub struct MessageCatalog {
    /// The path, for errors.
    pub path: Arc<str>,
    /// What the file has.
    pub messages: Arc<Catalog>,
}

/// Where the message of an event is from.
#[derive(Debug, Clone)]
pub(crate) enum MessageSource {
    /// The event itself, which was forwarded.
    Event,
    /// A file of messages beside its log, with this path.
    File(Arc<str>),
    /// Files beside its log, with these paths, of which none is used because they disagree.
    Contested(Vec<Arc<str>>),
    /// A catalog of messages, which may say from which file it has the text.
    Catalog(Arc<Message>),
}

impl MessageSource {
    /// Its text in the column `message_source`.
    pub(crate) fn text(&self) -> Cow<'static, str> {
        match self {
            MessageSource::Event => "event".into(),
            MessageSource::File(path) => format!("file: {path}").into(),
            MessageSource::Contested(paths) => format!("contested: {}", paths.join(", ")).into(),
            MessageSource::Catalog(message) if message.file.is_empty() => "catalog".into(),
            MessageSource::Catalog(message) => format!("catalog: {}", message.file).into(),
        }
    }
}

/// The paths that a message outside of its event depends on, if the scan reads them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessagePaths {
    message: Option<PathId>,
    provider: Option<PathId>,
    guid: Option<PathId>,
    event_id: Option<PathId>,
    version: Option<PathId>,
    qualifiers: Option<PathId>,
    event_record: Option<PathId>,
}

impl MessagePaths {
    /// The paths.
    pub(crate) const ALL: [EventPath; 7] = [
        EventPath::MESSAGE,
        EventPath::PROVIDER,
        EventPath::PROVIDER_GUID,
        EventPath::EVENT_ID,
        EventPath::VERSION,
        EventPath::QUALIFIERS,
        EventPath::EVENT_RECORD_ID,
    ];

    fn of(scan: &ScanLayout<'_>) -> Self {
        let [message, provider, guid, event_id, version, qualifiers, event_record] =
            MessagePaths::ALL.map(|path| scan.path(path));
        MessagePaths {
            message,
            provider,
            guid,
            event_id,
            version,
            qualifiers,
            event_record,
        }
    }
}

/// The most kinds of events whose messages a thread keeps.
const MAX_KINDS: usize = 1 << 14;

/// Finds the messages of events outside of the events, and keeps those of a catalog that it has found.
#[derive(Debug)]
pub(crate) struct MessageFinder {
    paths: MessagePaths,
    catalog: Option<MessageCatalog>,
    /// By kind of event: see [`find`](Self::find).
    kinds: HashMap<Vec<u8>, Option<Arc<Message>>>,
    /// The last kind that was looked for.
    key: Vec<u8>,
    /// Where in `key` the name of the provider starts.
    provider_at: usize,
}

/// A message of a catalog, and the insertions of the event.
type Found<'a> = (Arc<Message>, BumpVec<'a, Insertion<'a>>);

/// A record, and where what belongs to it is.
#[derive(Clone, Copy)]
pub(crate) struct Event<'a> {
    pub(crate) record: ReadRecord<'a>,
    /// Its ID.
    pub(crate) id: u64,
    pub(crate) arena: &'a Bump,
    /// The messages beside the log.
    pub(crate) messages: Option<&'a [MessageFile]>,
}

impl<'a> Event<'a> {
    fn at(self, path: Option<PathId>) -> Option<FoundValue<'a>> {
        self.record.value_at(path?)
    }
}

impl MessageFinder {
    pub(crate) fn new(scan: &ScanLayout<'_>, catalog: Option<MessageCatalog>) -> Self {
        MessageFinder {
            paths: MessagePaths::of(scan),
            catalog,
            kinds: HashMap::new(),
            key: Vec::new(),
            provider_at: 0,
        }
    }

    pub(crate) fn has_catalog(&self) -> bool {
        self.catalog.is_some()
    }

    /// Appends the message of an event, or NULL.
    ///
    /// # Errors
    /// If the catalog is damaged.
    pub(crate) fn push(&mut self, builder: &mut TextColumn, event: Event<'_>) -> Result<(), ArrowError> {
        if let Some(found) = event.at(self.paths.message) {
            builder.push_value(&found);
            return Ok(());
        }
        builder.push_written(|out| self.write(event, out))
    }

    /// Where the message of an event is from; `None` if it has none.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn source(&mut self, event: Event<'_>) -> Result<Option<MessageSource>, ArrowError> {
        if event.at(self.paths.message).is_some() {
            return Ok(Some(MessageSource::Event));
        }
        let found = self.find(event)?.map(|(message, _)| MessageSource::Catalog(message));
        Ok(found.or_else(|| self.write_of_files(event, &mut Vec::new())))
    }

    /// Appends the message that the catalog or a file has. Returns whether there is one. The caller named the catalog, but
    /// anyone can put a file beside a log.
    fn write(&mut self, event: Event<'_>, out: &mut Vec<u8>) -> Result<bool, ArrowError> {
        let Some((message, insertions)) = self.find(event)? else {
            return Ok(matches!(self.write_of_files(event, out), Some(MessageSource::File(_))));
        };
        // The parameters that `evtx-codes` knows are those of the Security log. Other providers count their own.
        let of_security = self.key[self.provider_at..].eq_ignore_ascii_case(b"Microsoft-Windows-Security-Auditing");
        let fallback = |id| if of_security { parameter(id) } else { None };
        message.render(&insertions[..], &fallback, out);
        Ok(true)
    }

    /// Appends the message that the files beside the log have, and returns them. Nothing is appended if they disagree in more
    /// than whitespace. A file without a message contests none.
    fn write_of_files(&self, event: Event<'_>, out: &mut Vec<u8>) -> Option<MessageSource> {
        let event_record = event.at(self.paths.event_record)?.number()?;
        let provider = event.at(self.paths.provider)?.text()?;
        let start = out.len();
        let (mut end, mut paths, mut is_contested) = (start, Vec::new(), false);
        for file in event.messages? {
            if !file.messages.push(&provider, event.id, event_record, out) {
                continue;
            }
            if paths.is_empty() {
                end = out.len();
            } else {
                is_contested |= !visible(&out[start..end]).eq(visible(&out[end..]));
                out.truncate(end);
            }
            paths.push(Arc::clone(&file.path));
        }
        if is_contested {
            out.truncate(start);
            return Some(MessageSource::Contested(paths));
        }
        paths.into_iter().next().map(MessageSource::File)
    }

    /// The message of the catalog for an event, and its insertions; `None` if it has none, or an empty one.
    fn find<'a>(&mut self, event: Event<'a>) -> Result<Option<Found<'a>>, ArrowError> {
        let Some(catalog) = &self.catalog else {
            return Ok(None);
        };
        let insertions = insertions(event.record, event.arena);
        let number = |path| event.at(path).and_then(|found| found.number());
        let Some(event_id) = number(self.paths.event_id).and_then(|id| u16::try_from(id).ok()) else {
            return Ok(None);
        };
        let guid = event.at(self.paths.guid).and_then(|found: FoundValue<'_>| found.uuid());
        let version = number(self.paths.version).and_then(|version| u8::try_from(version).ok());
        let qualifiers = number(self.paths.qualifiers).and_then(|found| u16::try_from(found).ok());
        // The kind of event as bytes. The name of the provider comes last, so no two kinds have the same.
        self.key.clear();
        self.key.extend(event_id.to_le_bytes());
        self.key.extend([
            version.unwrap_or_default(),
            u8::from(qualifiers.is_some()),
            u8::from(guid.is_some()),
        ]);
        self.key.extend(qualifiers.unwrap_or_default().to_le_bytes());
        self.key.extend(insertions.len().to_le_bytes());
        self.key.extend(guid.unwrap_or_default());
        // Messages are also found by the names of the values, which a template tells. Others are in the key themselves.
        let declaration = Declaration::of(event.record);
        let number = declaration.and_then(|declared| declared.entries.template());
        self.key.extend(number.unwrap_or_default().to_le_bytes());
        let names = || declaration.map_or(Vec::new(), Declaration::names);
        if number.is_none() {
            // No name has the byte 0xff, as they are UTF-8.
            names()
                .iter()
                .for_each(|name| self.key.extend(name.bytes().chain([0xff])));
            self.key.push(0xff);
        }
        self.provider_at = self.key.len();
        if let Some(provider) = event.at(self.paths.provider) {
            provider.push_text(&mut self.key);
        }
        if let Some(known) = self.kinds.get(&self.key) {
            return Ok(known.clone().map(|message| (message, insertions)));
        }
        let names = names();
        let names: Vec<_> = names.iter().map(|name| &**name).collect();
        let found = catalog.messages.find(&EventKey {
            provider: std::str::from_utf8(&self.key[self.provider_at..]).unwrap_or_default(),
            guid,
            event_id,
            version: version.unwrap_or_default(),
            qualifiers,
            insertions: insertions.len(),
            names: &names,
        });
        let found = found.map_err(|error| ArrowError::ExternalError(format!("{}: {error}", catalog.path).into()))?;
        let found = found.filter(|message| !message.text.is_empty()).map(Arc::new);
        if self.kinds.len() >= MAX_KINDS {
            self.kinds.clear();
        }
        self.kinds.insert(self.key.clone(), found.clone());
        Ok(found.map(|message| (message, insertions)))
    }
}

/// The bytes of a text without whitespace.
fn visible(text: &[u8]) -> impl Iterator<Item = &u8> {
    text.iter().filter(|byte| !byte.is_ascii_whitespace())
}

/// The text of a parameter of the Security log.
fn parameter(id: u32) -> Option<Cow<'static, str>> {
    static SOURCE: LazyLock<Option<Source>> = LazyLock::new(|| Lookup::Name.source("parameters").ok());
    let source = (*SOURCE)?;
    match Lookup::Name.answer(source, Code::Number(id.into())) {
        Answer::Text(text) => Some(text),
        _ => None,
    }
}
