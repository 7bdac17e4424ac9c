//! Opens catalogs, and finds messages in them.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use super::block::{Block, HEADER, MAGIC, MAX_BLOCKS, Packed, Record, VERSION, column, take};
use super::choose::{EventKey, Order, best, contested, parameter, qualifiers_of, version_of};
use crate::error::{Error, Result};
use crate::insertion::Insertion;
use crate::render::{Declared, Insertions, Limits, Parameters, render};
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
        let (mut providers, mut guids, mut size) = (Vec::<Provider>::new(), Vec::new(), 0);
        for index in 0..count {
            let provider = provider(&directory, &mut at, end, |guid| guids.push((guid, index))).ok_or_else(damaged)?;
            if providers.last().is_some_and(|last| last.key >= provider.key) {
                return Err(damaged());
            }
            size += u64::from(provider.packed.size);
            providers.push(provider);
        }
        if size > MAX_BLOCKS {
            let (what, offset, limit) = ("the catalog of messages", 0, MAX_BLOCKS);
            return Err(Error::TooLarge {
                what,
                offset,
                size,
                limit,
            });
        }
        guids.sort_unstable();
        Ok(Catalog { file, providers, guids })
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
    /// 6. one in `en-US`, then in another English, then one without a language, then any;
    /// 7. the nearest version;
    /// 8. the longest text of a file, because some tables have lost the whitespace of their texts.
    ///
    /// If the best one has no version and is one of more than six different texts without a version, the catalog has mixed
    /// providers, and none is returned. Neither is it if files disagree: several are equally good up to the nearest version,
    /// or are for the same version and language and have fields of the same names, with different texts of different files.
    /// Anyone can declare an event of any provider, so what a file says about its text does not make it better.
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
            if let Some((record, order)) = best(block, key) {
                return Ok(Some(Message::new(block, &record, order)));
            }
        }
        Ok(None)
    }

    /// The text of a parameter message of a provider, by its name; `None` if there is none, or if files disagree about it.
    ///
    /// # Errors
    /// If the messages of the provider are damaged.
    pub fn parameter(&self, provider: &str, id: u32) -> Result<Option<&str>> {
        match self.index_of(provider) {
            Some(index) => Ok(parameter(self.block(index)?, id)),
            None => Ok(None),
        }
    }

    /// The rows of the provider at an index, as they were written, each with whether it is contested: another file has
    /// another text for the same event, so it has no message, or for the same parameter.
    ///
    /// # Errors
    /// If the messages of the provider are damaged, or if the work is interrupted.
    pub fn rows(&self, index: usize, interrupt: Interrupt<'_>) -> Result<impl Iterator<Item = (MessageRow, bool)>> {
        let block = self.block(index)?;
        let (contested_messages, contested_parameters) = contested(block, interrupt)?;
        let Provider { name, guid, .. } = &self.providers[index];
        // A name that is a GUID stands for none.
        let name = guid_of_text(name).is_none().then(|| name.clone());
        let row = move |kind| MessageRow {
            provider: name.clone(),
            guid: *guid,
            ..MessageRow::new(kind)
        };
        let text = |reference| block.string(reference).map(Arc::from);
        let parameters = row.clone();
        let messages =
            (0..block.message_count()).map(move |index| row_of(block, &block.message(index), row(MessageKind::Event)));
        let parameters = (0..block.parameter_count()).map(move |index| {
            let [id, language, message, file] = block.parameter(index);
            MessageRow {
                message_id: Some(id),
                language: text(language),
                text: text(message),
                file: text(file).unwrap_or_default(),
                ..parameters(MessageKind::Parameter)
            }
        });
        Ok(messages
            .zip(contested_messages)
            .chain(parameters.zip(contested_parameters)))
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
        let unpacked = block.get_or_init(|| {
            let damaged = Error::Damaged {
                what: packed.what,
                offset: packed.offset,
                why: "its parts do not have the sizes that it says",
            };
            Block::new(packed.unpack(&self.file)?).map(Arc::new).ok_or(damaged)
        });
        unpacked.as_ref().map_err(Error::clone)
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
    if found != VERSION {
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
    Ok((packed.unpack(file)?, packed.offset + u64::from(packed.compressed)))
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

fn row_of(block: &Block, record: &Record, row: MessageRow) -> MessageRow {
    let text = |place: usize| block.string(record[place]).map(Arc::from);
    let (fields, maps) = block.fields(record[column::FIELDS]);
    let has_id = record[column::QUALIFIERS] & column::HAS_MESSAGE_ID != 0;
    MessageRow {
        event_id: Some(record[column::EVENT] as u16),
        version: version_of(record),
        qualifiers: qualifiers_of(record),
        message_id: has_id.then_some(record[column::MESSAGE_ID]),
        language: text(column::LANGUAGE),
        text: text(column::TEXT),
        channel: text(column::CHANNEL),
        level: text(column::LEVEL),
        task: text(column::TASK),
        opcode: text(column::OPCODE),
        keywords: block.keywords(record[column::KEYWORDS]).map(Arc::from).collect(),
        fields: fields.into(),
        maps: maps.into_iter().map(Arc::new).collect(),
        file: text(column::FILE).unwrap_or_default(),
        ..row
    }
}

impl Message {
    fn new(block: &Arc<Block>, record: &Record, order: Order) -> Self {
        let text = block.string(record[column::TEXT]).unwrap_or_default();
        let (fields, maps) = block.fields(record[column::FIELDS]);
        Message {
            text: text.into(),
            file: block.string(record[column::FILE]).unwrap_or_default().into(),
            template: Template::parse(text),
            order,
            fields,
            maps,
            block: block.clone(),
        }
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
        limits: Limits,
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
            limits,
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
