//! Opens catalogs, and finds messages in them.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use super::block::{
    Block, HEADER, MAGIC, MAX_BLOCK, MAX_BLOCKS, MAX_DIRECTORY, MAX_ROW, Packed, Record, VERSION, WITHOUT_FILES,
    column, take,
};
use super::choose::{EventKey, Order, best, contested, parameter, qualifiers_of, version_of};
use crate::error::{Error, Result};
use crate::insertion::Insertion;
use crate::render::{Declared, Insertions, MAX_RENDERED, Parameters, render};
use crate::row::{Field, Guid, MessageKind, MessageRow, ValueMap, guid_of_text};
use crate::template::Template;
use evtx_format::Interrupt;
use evtx_format::bytes::u32_at;

/// A catalog of messages. Threads share it, for example in an [`Arc`].
#[derive(Debug)]
pub struct Catalog {
    file: Arc<[u8]>,
    /// Sorted by name in lower case.
    providers: Vec<Provider>,
    /// The indexes of the providers with a GUID, sorted.
    guids: Vec<(Guid, u32)>,
}

#[derive(Debug)]
struct Provider {
    name: Arc<str>,
    key: Box<str>,
    guid: Option<Guid>,
    packed: Packed,
    block: OnceLock<Result<Arc<Block>>>,
}

/// A message that was found. It does not borrow from the catalog, so a caller can keep it for the next event of its kind.
#[derive(Debug)]
pub struct Message {
    /// The text as Windows stores it; empty if the event has no message.
    pub text: Box<str>,
    /// The path of the file that the text came from; empty if the catalog does not say it.
    pub file: Box<str>,
    template: Template,
    order: Order,
    /// The fields, in the order of the insertions.
    fields: Vec<Field>,
    /// The maps that the fields name.
    maps: Vec<ValueMap>,
    block: Arc<Block>,
}

impl Catalog {
    /// Opens the bytes of a catalog file. Reads the directory only.
    ///
    /// # Errors
    /// If the bytes are not a catalog, of another version, or if the directory is damaged.
    pub fn open(file: impl Into<Arc<[u8]>>) -> Result<Self> {
        let file = file.into();
        let (directory, end) = directory(&file)?;
        let damaged = || Error::Damaged {
            what: "the directory of the catalog",
            offset: HEADER as u64,
            why: "an entry is cut short or out of order",
        };
        let mut at = 0;
        let count = u32::from_le_bytes(take(&directory, &mut at).ok_or_else(damaged)?);
        let (mut providers, mut guids) = (Vec::<Provider>::new(), Vec::new());
        for index in 0..count {
            let provider = provider(&directory, &mut at, end, |guid| guids.push((guid, index))).ok_or_else(damaged)?;
            if providers.last().is_some_and(|last| last.key >= provider.key) {
                return Err(damaged());
            }
            providers.push(provider);
        }
        guids.sort_unstable();
        let catalog = Catalog { file, providers, guids };
        let size = catalog.size();
        if size > MAX_BLOCKS {
            return Err(Error::too_large("the catalog of messages", 0, size, MAX_BLOCKS));
        }
        Ok(catalog)
    }

    /// What the messages of all providers take of memory, in bytes.
    pub fn size(&self) -> usize {
        let sizes = self.providers.iter().map(|provider| provider.packed.size as usize);
        sizes.sum()
    }

    /// Whether the bytes of a file begin as those of a catalog.
    pub fn is_catalog(file: &[u8]) -> bool {
        file.starts_with(&MAGIC)
    }

    /// The names of the providers, sorted by lower case.
    pub fn providers(&self) -> impl ExactSizeIterator<Item = &str> {
        self.providers.iter().map(|provider| &*provider.name)
    }

    /// The message of an event; `None` if the catalog has none.
    ///
    /// The provider is found by its GUID, and if that has no such event, by its name. Of several messages the best one
    /// wins, in this order *(choice)*:
    ///
    /// 1. one with the qualifiers of the event, then one without qualifiers; never one with others;
    /// 2. one whose fields have the names that the event has, if both are known, then one with these names at other
    ///    positions; never one whose text asks for a field that the event lacks;
    /// 3. one for the version of the event or without a version, then one for another version whose text asks for no more
    ///    insertions than the event has;
    /// 4. one that declares as many fields as the event has insertions, then one that declares fewer, the most first.
    ///    Where the fields are not known, the highest insertion in the text counts. Builds of Windows differ in the
    ///    fields of one version, so this says more than the version;
    /// 5. one for the version of the event, then one without a version;
    /// 6. one in `en-US`, then in another English, then one without a language, then the first by the name of its language;
    /// 7. the nearest version;
    /// 8. the longest text of a file, because some tables have lost the whitespace of their texts.
    ///
    /// If the best one has no version and is one of more than six different texts without a version, the catalog has mixed
    /// providers, and none is returned. Neither is it if files disagree. Each file must have this text, in whatever language,
    /// if it has one that is equally good but for the language, one for the same version whose qualifiers the event can have, or,
    /// if this one is for another version, one for that of the event. Anyone can declare an event of any provider, so what a file
    /// says about its text does not make it better.
    ///
    /// # Errors
    /// If the messages of the provider are damaged. Every call for this provider then returns the same error.
    pub fn find(&self, key: &EventKey<'_>) -> Result<Option<Message>> {
        let by_guid = self.indexes_of(key.guid);
        let by_name = self
            .index_of(key.provider)
            .filter(|index| !by_guid.clone().any(|known| known == *index));
        for index in by_guid.clone().chain(by_name) {
            let block = self.block(index)?;
            let Some(best) = best(block, key) else { continue };
            let Some((record, order)) = best else { return Ok(None) };
            if let Some(message) = Message::new(block, &record, order) {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// The text of a parameter message of a provider, by its name; `None` if there is none, if files disagree about it, or if
    /// there are more than 4,096.
    ///
    /// # Errors
    /// If the messages of the provider are damaged.
    pub fn parameter(&self, provider: &str, id: u32) -> Result<Option<&str>> {
        match self.index_of(provider) {
            Some(index) => Ok(parameter(self.block(index)?, id)),
            None => Ok(None),
        }
    }

    fn indexes_of(&self, guid: Option<Guid>) -> impl Iterator<Item = usize> + Clone {
        let start = self.guids.partition_point(|(known, _)| Some(*known) < guid);
        let same = move |(known, _): &&(Guid, u32)| Some(*known) == guid;
        self.guids[start..]
            .iter()
            .take_while(same)
            .map(|(_, index)| *index as usize)
    }

    fn index_of(&self, name: &str) -> Option<usize> {
        let key = name.to_lowercase();
        self.providers
            .binary_search_by(|provider| (*provider.key).cmp(&key))
            .ok()
    }

    fn block(&self, index: usize) -> Result<&Arc<Block>> {
        let Provider { packed, block, .. } = &self.providers[index];
        let unpacked = block.get_or_init(|| block_of(packed, &self.file, Interrupt::NEVER).map(Arc::new));
        unpacked.as_ref().map_err(Error::clone)
    }
}

fn block_of(packed: &Packed, file: &[u8], interrupt: Interrupt<'_>) -> Result<Block> {
    let damaged = Error::Damaged {
        what: packed.what,
        offset: packed.offset,
        why: "its parts do not have the sizes that it says",
    };
    let version = u32_at(file, MAGIC.len()).unwrap_or(VERSION);
    Block::new(packed.unpack(file, MAX_BLOCK, interrupt)?, version).ok_or(damaged)
}

/// All rows of a catalog, as they were written, by provider. They are made when they are asked for, and one provider is
/// decompressed at a time.
#[derive(Debug)]
pub struct Rows {
    catalog: Catalog,
    /// The provider whose rows come next, and its block once it is decompressed.
    provider: usize,
    block: Option<Block>,
    /// The next message or parameter in the block.
    next: usize,
    /// Whether the next ones are contested, up to the last of an event, or with one ID.
    contested: VecDeque<bool>,
}

impl Rows {
    /// The rows of a catalog.
    pub fn new(catalog: Catalog) -> Self {
        Rows {
            catalog,
            provider: 0,
            block: None,
            next: 0,
            contested: VecDeque::new(),
        }
    }

    /// The next row, and whether it is contested: its text is not used, because another file has another one for the same
    /// event or parameter, or because there are more than 4,096 of them. `None` at the end.
    ///
    /// # Errors
    /// If the messages of a provider are damaged, [`Error::TooLarge`] if the texts of a row are, and
    /// [`Error::Interrupted`].
    pub fn next(&mut self, interrupt: Interrupt<'_>) -> Result<Option<(MessageRow, bool)>> {
        while let Some(provider) = self.catalog.providers.get(self.provider) {
            interrupt.check()?;
            let block = match &mut self.block {
                Some(block) => block,
                None => self
                    .block
                    .insert(block_of(&provider.packed, &self.catalog.file, interrupt)?),
            };
            let (index, messages) = (self.next, block.message_count());
            if index == messages + block.parameter_count() {
                (self.provider, self.block, self.next) = (self.provider + 1, None, 0);
                continue;
            }
            if self.contested.is_empty() {
                self.contested = contested(block, index, interrupt)?.into();
            }
            let is_contested = self.contested.pop_front().unwrap_or_default();
            self.next += 1;
            let row = |kind| MessageRow {
                // A name that is a GUID stands for none.
                provider: guid_of_text(&provider.name).is_none().then(|| provider.name.clone()),
                guid: provider.guid,
                ..MessageRow::new(kind)
            };
            let found = if index < messages {
                row_of(block, &block.message(index), row(MessageKind::Event))
            } else {
                row_of_parameter(block, index - messages, row(MessageKind::Parameter))
            };
            let (what, offset) = ("a message of a provider", provider.packed.offset);
            let row = found.ok_or_else(|| Error::too_large(what, offset, MAX_ROW + 1, MAX_ROW))?;
            return Ok(Some((row, is_contested)));
        }
        Ok(None)
    }
}

/// The bytes of the directory, and where it ends in the file.
fn directory(file: &[u8]) -> Result<(Vec<u8>, u64)> {
    if !file.starts_with(&MAGIC) {
        return Err(Error::NotACatalog(file[..file.len().min(MAGIC.len())].to_vec()));
    }
    let number = |index: usize| {
        u32_at(file, MAGIC.len() + 4 * index).ok_or(Error::Truncated {
            what: "the header of the catalog",
            offset: 0,
            need: HEADER as u64,
            have: file.len() as u64,
        })
    };
    let found = number(0)?;
    if ![VERSION, WITHOUT_FILES].contains(&found) {
        let supported = VERSION;
        return Err(Error::CatalogVersion { found, supported });
    }
    let packed = Packed {
        what: "the directory of the catalog",
        offset: HEADER as u64,
        compressed: number(1)?,
        size: number(2)?,
        checksum: number(3)?,
    };
    let directory = packed.unpack(file, MAX_DIRECTORY, Interrupt::NEVER)?;
    Ok((directory, packed.offset + u64::from(packed.compressed)))
}

/// The next provider of a directory; `None` if it is cut short. Blocks start at `blocks` in the file.
fn provider(directory: &[u8], at: &mut usize, blocks: u64, mut add_guid: impl FnMut(Guid)) -> Option<Provider> {
    let offset = u64::from_le_bytes(take(directory, at)?);
    let mut number = || Some(u32::from_le_bytes(take(directory, at)?));
    let packed = Packed {
        what: "the messages of a provider",
        offset: blocks.checked_add(offset)?,
        compressed: number()?,
        size: number()?,
        checksum: number()?,
    };
    let (length, guid_count) = (number()? as usize, number()?);
    let name = std::str::from_utf8(directory.get(*at..)?.get(..length)?).ok()?;
    *at += length;
    let mut guid = None;
    for _ in 0..guid_count {
        let next = take(directory, at)?;
        guid = guid.or(Some(next));
        add_guid(next);
    }
    Some(Provider {
        name: name.into(),
        key: name.to_lowercase().into(),
        guid,
        packed,
        block: OnceLock::new(),
    })
}

/// The row of a message; `None` if its texts take too much.
fn row_of(block: &Block, record: &Record, row: MessageRow) -> Option<MessageRow> {
    let mut room = MAX_ROW;
    let mut text = |reference| {
        let text = block.string(reference);
        room = room.checked_sub(text.map_or(0, str::len) + 16)?;
        Some(text.map(Arc::from))
    };
    let row = MessageRow {
        event_id: Some(record[column::EVENT] as u16),
        version: version_of(record),
        qualifiers: qualifiers_of(record),
        message_id: Some(record[column::MESSAGE_ID]).filter(|_| has_message_id(record)),
        language: text(record[column::LANGUAGE])?,
        text: text(record[column::TEXT])?,
        channel: text(record[column::CHANNEL])?,
        level: text(record[column::LEVEL])?,
        task: text(record[column::TASK])?,
        opcode: text(record[column::OPCODE])?,
        file: text(record[column::FILE])?.unwrap_or_default(),
        ..row
    };
    let items = block.list(record[column::KEYWORDS]).iter();
    let keywords = items
        .map(|item| text(u32::from_le_bytes(*item)))
        .collect::<Option<Vec<_>>>()?;
    let (fields, maps) = block.fields(record[column::FIELDS], room)?;
    Some(MessageRow {
        keywords: keywords.into_iter().flatten().collect(),
        fields: fields.into(),
        maps: maps.into_iter().map(Arc::new).collect(),
        ..row
    })
}

fn row_of_parameter(block: &Block, index: usize, row: MessageRow) -> Option<MessageRow> {
    let [id, language, text, file] = block.parameter(index);
    let [language, text, file] = [language, text, file].map(|reference| block.string(reference));
    let texts = [language, text, file].into_iter().flatten();
    let is_small = texts.map(str::len).sum::<usize>() <= MAX_ROW;
    is_small.then(|| MessageRow {
        message_id: Some(id),
        language: language.map(Arc::from),
        text: text.map(Arc::from),
        file: file.map(Arc::from).unwrap_or_default(),
        ..row
    })
}

fn has_message_id(record: &Record) -> bool {
    record[column::QUALIFIERS] & column::HAS_MESSAGE_ID != 0
}

impl Message {
    /// The message of a record; `None` if its fields take too much.
    fn new(block: &Arc<Block>, record: &Record, order: Order) -> Option<Self> {
        let text = block.string(record[column::TEXT]).unwrap_or_default();
        let (fields, maps) = block.fields(record[column::FIELDS], MAX_ROW)?;
        Some(Message {
            text: text.into(),
            file: block.string(record[column::FILE]).unwrap_or_default().into(),
            template: Template::parse(text),
            order,
            fields,
            maps,
            block: block.clone(),
        })
    }

    /// Appends the message with the insertions of an event, in UTF-8. Parameters come from the provider, and those that
    /// it does not have from `fallback`.
    ///
    /// Returns whether the message is complete. Otherwise it was cut at the limit.
    pub fn render(
        &self,
        insertions: &(impl Insertions + ?Sized),
        fallback: &Parameters<'_>,
        out: &mut Vec<u8>,
    ) -> bool {
        let parameters = |id| match parameter(&self.block, id) {
            Some(text) => Some(Cow::Borrowed(text)),
            None => fallback(id),
        };
        let declared = Declared {
            fields: &self.fields,
            maps: &self.maps,
        };
        let arranged = Arranged {
            insertions,
            order: &self.order,
        };
        render(
            (&self.text, &self.template),
            &arranged,
            declared,
            &parameters,
            out,
            MAX_RENDERED,
        )
    }
}

/// The insertions of an event in the order of a text.
struct Arranged<'a, I: ?Sized> {
    insertions: &'a I,
    order: &'a Order,
}

impl<I: Insertions + ?Sized> Insertions for Arranged<'_, I> {
    fn get(&self, index: usize) -> Option<Insertion<'_>> {
        let index = match self.order {
            Order::Same => index,
            Order::ByName(indexes) => (*indexes.get(index)?)?,
        };
        self.insertions.get(index)
    }
}
