//! The messages of events: that of the event itself, that of a file beside the log, and that of a catalog.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use arrow_schema::ArrowError;
use bumpalo::Bump;
use evtx_codes::{Answer, Code, Lookup, Source};
use evtx_format::mta::Messages;
use evtx_messages::{EventKey, Insertion, Limits, Message};
use hashbrown::HashMap;

use crate::columns::TextBuilder;
use crate::plan::PlaceId;
use crate::record::{ChunkTemplates, KeptRecord, Places, insertions};
use crate::scan::MessagePlaces;
use crate::schema::{MessageCatalog, MessageSource};

/// The most kinds of events whose messages a thread keeps.
const MAX_KINDS: usize = 1 << 14;

/// Finds the messages of events outside of the events, and keeps those of a catalog that it has found.
#[derive(Debug)]
pub(crate) struct MessageFinder {
    places: MessagePlaces,
    catalog: Option<MessageCatalog>,
    /// By what finds them: see [`MessageFinder::key`].
    kinds: HashMap<Vec<u8>, Option<Arc<Message>>>,
    key: Vec<u8>,
    /// Where in `key` the name of the provider starts.
    provider_at: usize,
    /// A message that is only looked for.
    unread: Vec<u8>,
}

/// A record, and where what belongs to it is.
#[derive(Clone, Copy)]
pub(crate) struct Event<'a> {
    pub(crate) record: &'a KeptRecord,
    pub(crate) places: &'a Places<'a, 'a>,
    pub(crate) templates: &'a ChunkTemplates,
    pub(crate) arena: &'a Bump,
    /// The messages beside the log.
    pub(crate) messages: Option<&'a Messages>,
}

impl MessageFinder {
    pub(crate) fn new(places: MessagePlaces, catalog: Option<MessageCatalog>) -> Self {
        MessageFinder {
            places,
            catalog,
            kinds: HashMap::new(),
            key: Vec::new(),
            provider_at: 0,
            unread: Vec::new(),
        }
    }

    /// Whether the messages that events carry are at this place.
    pub(crate) fn is_of(&self, place: PlaceId) -> bool {
        self.places.message == place
    }

    /// Appends the message of an event, or NULL. Returns where it is from.
    ///
    /// # Errors
    /// If the catalog is damaged.
    pub(crate) fn push(
        &mut self,
        builder: &mut TextBuilder,
        event: Event<'_>,
    ) -> Result<Option<MessageSource>, ArrowError> {
        if let Some(found) = event.places.get(self.places.message) {
            builder.push_text(Some(&found));
            return Ok(Some(MessageSource::Event));
        }
        let mut outcome = Ok(None);
        let pushed = builder.try_push(|out| {
            outcome = self.write(event, out);
            Ok(matches!(outcome, Ok(Some(_))))
        });
        debug_assert_eq!(pushed, Ok(()));
        outcome
    }

    /// Where the message of an event is from.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn source(&mut self, event: Event<'_>) -> Result<Option<MessageSource>, ArrowError> {
        if event.places.get(self.places.message).is_some() {
            return Ok(Some(MessageSource::Event));
        }
        let mut unread = std::mem::take(&mut self.unread);
        unread.clear();
        let source = self.write(event, &mut unread);
        self.unread = unread;
        source
    }

    /// Appends the message that a file or the catalog has.
    fn write(&mut self, event: Event<'_>, out: &mut Vec<u8>) -> Result<Option<MessageSource>, ArrowError> {
        if event
            .messages
            .is_some_and(|messages| self.write_of_file(messages, event, out) == Some(true))
        {
            return Ok(Some(MessageSource::File));
        }
        let Some(catalog) = self.catalog.clone() else {
            return Ok(None);
        };
        let insertions = insertions(event.places.record, event.templates, event.arena);
        let Some(message) = self.find(&catalog, event, &insertions)? else {
            return Ok(None);
        };
        // The parameters that `evtx-codes` knows are those of the Security log. Other providers count their own.
        let of_security = self.key[self.provider_at..].eq_ignore_ascii_case(b"Microsoft-Windows-Security-Auditing");
        let fallback = |id| if of_security { parameter(id) } else { None };
        message.render(&insertions[..], &fallback, out, Limits::default());
        Ok(Some(MessageSource::Catalog))
    }

    fn write_of_file(&self, messages: &Messages, event: Event<'_>, out: &mut Vec<u8>) -> Option<bool> {
        let event_record = event.places.get(self.places.event_record)?.number()?;
        let provider = event.places.get(self.places.provider)?.text()?;
        Some(messages.push(&provider, event.record.id, event_record, out))
    }

    /// The message of the catalog for an event with some insertions; `None` if it has none, or an empty one.
    fn find(
        &mut self,
        catalog: &MessageCatalog,
        event: Event<'_>,
        insertions: &[Insertion<'_>],
    ) -> Result<Option<Arc<Message>>, ArrowError> {
        let number = |place| event.places.get(place).and_then(|found| found.number());
        let Some(event_id) = number(self.places.event_id).and_then(|id| u16::try_from(id).ok()) else {
            return Ok(None);
        };
        let guid = event.places.get(self.places.guid).and_then(|found| found.uuid());
        let version = number(self.places.version).and_then(|version| u8::try_from(version).ok());
        let qualifiers = number(self.places.qualifiers).and_then(|found| u16::try_from(found).ok());
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
        self.provider_at = self.key.len();
        if let Some(provider) = event.places.get(self.places.provider) {
            provider.push_text(&mut self.key);
        }
        if let Some(known) = self.kinds.get(&self.key) {
            return Ok(known.clone());
        }
        let found = catalog.messages.find(&EventKey {
            provider: std::str::from_utf8(&self.key[self.provider_at..]).unwrap_or_default(),
            guid,
            event_id,
            version: version.unwrap_or_default(),
            qualifiers,
            insertions: insertions.len(),
        });
        let found = found.map_err(|error| ArrowError::ExternalError(format!("{}: {error}", catalog.path).into()))?;
        let found = found.filter(|message| !message.text.is_empty()).map(Arc::new);
        if self.kinds.len() >= MAX_KINDS {
            self.kinds.clear();
        }
        self.kinds.insert(self.key.clone(), found.clone());
        Ok(found)
    }
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
