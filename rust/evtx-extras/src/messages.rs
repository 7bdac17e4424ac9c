//! The columns of messages.

use arrow_array::ArrayRef;
use arrow_schema::{ArrowError, DataType, Field};
use evtx_arrow::{
    ExtraBuilder, ExtraColumn, GroupRows, MakeArrays, Needs, Place, ScanLayout, TextColumn, TextListColumn,
};

use crate::finder::{Event, MessageCatalog, MessageFinder, converted};

fn needs_of_messages(catalog: Option<&MessageCatalog>) -> Needs {
    Needs {
        places: vec![
            Place::MESSAGE,
            Place::PROVIDER,
            Place::PROVIDER_GUID,
            Place::EVENT_ID,
            Place::VERSION,
            Place::QUALIFIERS,
            Place::EVENT_RECORD_ID,
        ],
        event_data: catalog.is_some(),
        user_entries: catalog.is_some(),
        messages: true,
        ..Needs::default()
    }
}

/// The column `message`.
#[derive(Debug)]
pub(crate) struct Message(pub(crate) Option<MessageCatalog>);

impl ExtraColumn for Message {
    fn field(&self, name: &str) -> Field {
        Field::new(name, DataType::Utf8View, true)
    }

    fn needs(&self) -> Needs {
        needs_of_messages(self.0.as_ref())
    }

    fn builder(&self, scan: &ScanLayout<'_>) -> Box<dyn ExtraBuilder> {
        let texts = TextColumn::default();
        match MessageFinder::new(scan, self.0.clone()) {
            Some(finder) => Box::new(OfMessage { finder, texts }),
            None => Box::new(NoText(texts)),
        }
    }
}

/// The column `message_source`.
#[derive(Debug)]
pub(crate) struct MessageSource(pub(crate) Option<MessageCatalog>);

impl ExtraColumn for MessageSource {
    fn field(&self, name: &str) -> Field {
        Field::new(name, DataType::Utf8View, true)
    }

    fn needs(&self) -> Needs {
        needs_of_messages(self.0.as_ref())
    }

    fn builder(&self, scan: &ScanLayout<'_>) -> Box<dyn ExtraBuilder> {
        let texts = TextColumn::default();
        match MessageFinder::new(scan, self.0.clone()) {
            Some(finder) => Box::new(OfSource { finder, texts }),
            None => Box::new(NoText(texts)),
        }
    }
}

/// The column `insertions`.
#[derive(Debug)]
pub(crate) struct Insertions;

impl ExtraColumn for Insertions {
    fn field(&self, name: &str) -> Field {
        TextListColumn::field(name)
    }

    fn needs(&self) -> Needs {
        Needs {
            event_data: true,
            user_entries: true,
            ..Needs::default()
        }
    }

    fn builder(&self, _: &ScanLayout<'_>) -> Box<dyn ExtraBuilder> {
        Box::<OfInsertions>::default()
    }
}

#[derive(Debug)]
struct OfMessage {
    finder: MessageFinder,
    texts: TextColumn,
}

fn event<'g>(rows: &GroupRows<'g>, row: usize) -> Event<'g> {
    Event {
        record: rows.record(row),
        id: rows.record_id(row),
        arena: rows.arena(),
        messages: rows.messages(),
    }
}

impl ExtraBuilder for OfMessage {
    fn push(&mut self, rows: &GroupRows<'_>) -> Result<(), ArrowError> {
        if !self.finder.has_catalog() && rows.messages().is_none() && !rows.is_beyond_system() {
            self.texts.push_nulls(rows.len());
            return Ok(());
        }
        (0..rows.len()).try_for_each(|row| self.finder.push(&mut self.texts, event(rows, row)))
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

#[derive(Debug)]
struct OfSource {
    finder: MessageFinder,
    texts: TextColumn,
}

impl ExtraBuilder for OfSource {
    fn push(&mut self, rows: &GroupRows<'_>) -> Result<(), ArrowError> {
        for row in 0..rows.len() {
            let source = self.finder.source(event(rows, row))?;
            self.texts.push(source.map(|source| source.text()).as_deref());
        }
        Ok(())
    }

    fn push_bare(&mut self) -> Result<(), ArrowError> {
        self.texts.push_nulls(1);
        Ok(())
    }

    fn finish(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        self.texts.finish(make)
    }
}

#[derive(Debug, Default)]
struct OfInsertions(TextListColumn);

impl ExtraBuilder for OfInsertions {
    fn push(&mut self, rows: &GroupRows<'_>) -> Result<(), ArrowError> {
        for row in 0..rows.len() {
            let found = rows.record(row).insertions(rows.arena());
            let writes = found
                .iter()
                .map(|&it| move |out: &mut Vec<u8>| converted(it).push_text(out, None, None));
            self.0.push(writes);
        }
        Ok(())
    }

    fn push_bare(&mut self) -> Result<(), ArrowError> {
        self.0.push_null()
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn finish(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        self.0.finish(make)
    }
}

#[derive(Debug)]
struct NoText(TextColumn);

impl ExtraBuilder for NoText {
    fn push(&mut self, rows: &GroupRows<'_>) -> Result<(), ArrowError> {
        self.0.push_nulls(rows.len());
        Ok(())
    }

    fn push_bare(&mut self) -> Result<(), ArrowError> {
        self.0.push_nulls(1);
        Ok(())
    }

    fn finish(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        self.0.finish(make)
    }
}
