//! The columns of messages.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::ArrayRef;
use arrow_schema::{ArrowError, DataType, Field};
use evtx_arrow::{ExtraBuilder, ExtraColumn, GroupRows, MakeArrays, Requirements, ScanLayout, TextColumn};

use crate::beside::SavedBeside;
use crate::finder::{Event, MessageCatalog, MessageFinder, MessagePaths};
use crate::insertions::insertions;
use crate::text_lists::TextLists;

/// The columns of messages.
#[derive(Debug)]
pub(crate) enum Messages {
    /// `message`: the text.
    Text(Option<MessageCatalog>),
    /// `message_source`: where the text is from.
    Source(Option<MessageCatalog>),
}

impl Messages {
    fn catalog(&self) -> Option<&MessageCatalog> {
        let (Messages::Text(catalog) | Messages::Source(catalog)) = self;
        catalog.as_ref()
    }
}

impl ExtraColumn for Messages {
    fn field(&self, name: &str) -> Field {
        Field::new(name, DataType::Utf8View, true)
    }

    fn requirements(&self) -> Requirements {
        let has_catalog = self.catalog().is_some();
        Requirements {
            paths: MessagePaths::ALL.to_vec(),
            event_data: has_catalog,
            user_entries: has_catalog,
            beside: true,
            ..Requirements::default()
        }
    }

    fn builder(&self, scan: &ScanLayout<'_>) -> Box<dyn ExtraBuilder> {
        Box::new(MessageBuilder {
            // Both columns look for the same messages.
            finder: scan.shared(|| Mutex::new(MessageFinder::new(scan, self.catalog().cloned()))),
            texts: TextColumn::default(),
            has_source: matches!(self, Messages::Source(_)),
        })
    }
}

/// The column `insertions`.
#[derive(Debug)]
pub(crate) struct Insertions;

impl ExtraColumn for Insertions {
    fn field(&self, name: &str) -> Field {
        TextLists::field(name)
    }

    fn requirements(&self) -> Requirements {
        Requirements {
            event_data: true,
            user_entries: true,
            ..Requirements::default()
        }
    }

    fn builder(&self, _: &ScanLayout<'_>) -> Box<dyn ExtraBuilder> {
        Box::<OfInsertions>::default()
    }
}

#[derive(Debug)]
struct MessageBuilder {
    finder: Arc<Mutex<MessageFinder>>,
    texts: TextColumn,
    /// Whether the texts say where the messages are from.
    has_source: bool,
}

impl ExtraBuilder for MessageBuilder {
    fn push(&mut self, rows: &GroupRows<'_>) -> Result<(), ArrowError> {
        let mut finder = self.finder.lock().unwrap_or_else(PoisonError::into_inner);
        let messages = rows.beside::<SavedBeside>().map(|saved| &*saved.files);
        if !finder.has_catalog() && messages.is_none() && !rows.is_beyond_system() {
            self.texts.push_nulls(rows.len());
            return Ok(());
        }
        for row in 0..rows.len() {
            let event = rows.record(row).map(|record| Event {
                record,
                id: rows.record_id(row),
                arena: rows.arena(),
                messages,
            });
            match event {
                None => self.texts.push_nulls(1),
                Some(event) if self.has_source => {
                    let source = finder.source(event)?;
                    self.texts.push(source.map(|source| source.text()).as_deref());
                }
                Some(event) => finder.push(&mut self.texts, event)?,
            }
        }
        Ok(())
    }

    fn push_bare(&mut self) -> Result<(), ArrowError> {
        self.texts.push_nulls(1);
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.texts.bytes()
    }

    fn finish(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        self.texts.finish(make)
    }
}

#[derive(Debug, Default)]
struct OfInsertions(TextLists);

impl ExtraBuilder for OfInsertions {
    fn push(&mut self, rows: &GroupRows<'_>) -> Result<(), ArrowError> {
        for row in 0..rows.len() {
            let Some(record) = rows.record(row) else {
                self.0.push_null();
                continue;
            };
            let found = insertions(record, rows.arena());
            let writes = found
                .iter()
                .map(|&it| move |out: &mut Vec<u8>| it.push_text(out, None, None));
            self.0.push(writes);
        }
        Ok(())
    }

    fn push_bare(&mut self) -> Result<(), ArrowError> {
        self.0.push_null();
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn finish(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        self.0.finish(make)
    }
}
