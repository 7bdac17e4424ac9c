//! Writes catalogs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Arc;

use evtx_format::Interrupt;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use hashbrown::{HashMap, HashSet};

use super::block::{
    HEADER, MAGIC, MAX_BLOCK, MAX_BLOCKS, MAX_DIRECTORY, MAX_MESSAGE, ParameterRecord, Record, VERSION, column,
};
use crate::error::{Error, Result};
use crate::row::{Field, Guid, MessageKind, MessageRow, ValueMap, guid_text};

/// Collects rows and writes them as a catalog.
///
/// Texts and lists of fields are stored once, however many rows have them.
#[derive(Debug, Default)]
pub struct CatalogWriter {
    texts: HashSet<Arc<str>>,
    keywords: HashSet<Arc<[Arc<str>]>>,
    fields: HashSet<Arc<[Field]>>,
    named: BTreeMap<String, Provider>,
    unnamed: BTreeMap<Guid, BTreeSet<MessageRow>>,
    /// What the rows and the texts take of memory, and may take, in bytes.
    size: usize,
    most: usize,
    /// The same for the rows of each file.
    sizes: HashMap<Arc<str>, usize>,
}

/// What a text or list takes besides its bytes: its counts, and its place in a table.
const LIST: usize = 64;

#[derive(Debug, Default)]
struct Provider {
    name: Arc<str>,
    guids: BTreeSet<Guid>,
    rows: BTreeSet<MessageRow>,
}

impl CatalogWriter {
    /// A catalog without rows, which may take so many bytes of memory, but at most 1 GiB.
    pub fn new(memory: u64) -> Self {
        CatalogWriter {
            most: memory.min(MAX_BLOCKS as u64) as usize,
            ..Self::default()
        }
    }

    /// Adds a row. Rows without a provider are not stored, because no event could find them.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the text is longer than [`MAX_MESSAGE`], and [`Error::CatalogTooLarge`] if the catalog would be.
    pub fn push(&mut self, row: &MessageRow) -> Result<()> {
        let (provider, guid) = (row.provider.as_deref().filter(|name| !name.is_empty()), row.guid);
        if (provider.is_none() && guid.is_none()) || row.kind == MessageKind::Text {
            return Ok(());
        }
        let length = row.text.as_ref().map_or(0, |text| text.len());
        within("the text of a message", length, MAX_MESSAGE)?;
        let name: Option<Arc<str>> = provider.map(Into::into);
        let before = self.size;
        let row = self.interned(row);
        // The nodes of a tree are at least half full.
        self.size += 2 * size_of::<MessageRow>();
        *self.sizes.entry(Arc::clone(&row.file)).or_default() += self.size - before;
        if self.size > self.most {
            return Err(too_large("the catalog of messages", self.size, self.most, &self.sizes));
        }
        match (name, guid) {
            (Some(name), guid) => {
                let provider = self.named.entry(name.to_lowercase()).or_default();
                if provider.name.is_empty() || name < provider.name {
                    provider.name = name;
                }
                provider.guids.extend(guid);
                provider.rows.insert(row);
            }
            (None, Some(guid)) => {
                self.unnamed.entry(guid).or_default().insert(row);
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// The row without what is stored once per provider, with texts that rows share.
    fn interned(&mut self, row: &MessageRow) -> MessageRow {
        let keywords = match self.keywords.get(&row.keywords) {
            Some(known) => Arc::clone(known),
            None => {
                let keywords: Arc<[_]> = row.keywords.iter().map(|text| self.text(text)).collect();
                self.size += 16 * keywords.len() + LIST;
                self.keywords.insert(Arc::clone(&keywords));
                keywords
            }
        };
        let fields = match self.fields.get(&row.fields) {
            Some(known) => Arc::clone(known),
            None => {
                let fields: Arc<[_]> = row.fields.iter().map(|field| self.field(field)).collect();
                self.size += LIST;
                self.fields.insert(Arc::clone(&fields));
                fields
            }
        };
        let used = |map: &&Arc<ValueMap>| row.fields.iter().any(|field| field.map.as_ref() == Some(&map.name));
        let mut maps: Vec<_> = row.maps.iter().filter(used).cloned().collect();
        maps.sort();
        maps.dedup_by(|a, b| a.name == b.name);
        let map = |map: &Arc<ValueMap>| map.entries.iter().map(|(_, text)| text.len() + 48).sum::<usize>() + LIST;
        self.size += maps.iter().map(map).sum::<usize>();
        let mut option = |text: &Option<Arc<str>>| text.as_ref().map(|text| self.text(text));
        MessageRow {
            provider: None,
            guid: None,
            language: option(&row.language),
            text: option(&row.text),
            channel: option(&row.channel),
            level: option(&row.level),
            task: option(&row.task),
            opcode: option(&row.opcode),
            keywords,
            fields,
            maps: maps.into(),
            file: self.text(&row.file),
            ..*row
        }
    }

    fn field(&mut self, field: &Field) -> Field {
        self.size += size_of::<Field>();
        Field {
            name: self.text(&field.name),
            map: field.map.as_ref().map(|name| self.text(name)),
            ..*field
        }
    }

    fn text(&mut self, text: &Arc<str>) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        self.size += text.len() + LIST;
        self.texts.insert(text.clone());
        text.clone()
    }

    /// Gives the rows that have a GUID only to a provider that another row names, or else to one named by its GUID.
    fn name_by_guid(&mut self) {
        let mut names = HashMap::new();
        for (name, provider) in &self.named {
            for guid in &provider.guids {
                names.entry(*guid).or_insert_with(|| name.clone());
            }
        }
        for (guid, rows) in std::mem::take(&mut self.unnamed) {
            let name = names.remove(&guid).unwrap_or_else(|| guid_text(&guid));
            let provider = self.named.entry(name.clone()).or_insert_with(|| Provider {
                name: name.into(),
                guids: [guid].into(),
                rows: BTreeSet::new(),
            });
            provider.rows.extend(rows);
        }
    }

    /// The bytes of the catalog.
    ///
    /// # Errors
    /// [`Error::CatalogTooLarge`] if a provider has more than 16 MiB of messages, and [`Error::Interrupted`].
    pub fn finish(&mut self, interrupt: Interrupt<'_>) -> Result<Vec<u8>> {
        self.name_by_guid();
        let mut directory = (self.named.len() as u32).to_le_bytes().to_vec();
        let mut blocks = Vec::new();
        for provider in self.named.values() {
            let block = Encoder::default().block(&provider.rows, interrupt)?;
            if block.len() > MAX_BLOCK {
                let mut rows = HashMap::new();
                let files = provider.rows.iter().map(|row| Arc::clone(&row.file));
                files.for_each(|file| *rows.entry(file).or_default() += 1);
                let what = format!("the messages of {}", provider.name);
                return Err(too_large(&what, block.len(), MAX_BLOCK, &rows));
            }
            let packed = pack(&block, interrupt)?;
            directory.extend_from_slice(&(blocks.len() as u64).to_le_bytes());
            push_numbers(
                &mut directory,
                &[
                    packed.len() as u32,
                    block.len() as u32,
                    crc32fast::hash(&block),
                    provider.name.len() as u32,
                    provider.guids.len() as u32,
                ],
            );
            directory.extend_from_slice(provider.name.as_bytes());
            provider.guids.iter().for_each(|guid| directory.extend_from_slice(guid));
            blocks.extend_from_slice(&packed);
        }
        within("the directory of a catalog", directory.len(), MAX_DIRECTORY)?;
        let packed = pack(&directory, interrupt)?;
        let mut file = Vec::with_capacity(HEADER + packed.len() + blocks.len());
        file.extend_from_slice(&MAGIC);
        let (size, checksum) = (directory.len() as u32, crc32fast::hash(&directory));
        push_numbers(&mut file, &[VERSION, packed.len() as u32, size, checksum]);
        file.extend_from_slice(&packed);
        file.extend_from_slice(&blocks);
        Ok(file)
    }
}

fn within(what: &'static str, size: usize, limit: usize) -> Result<()> {
    if size <= limit {
        return Ok(());
    }
    Err(Error::too_large(what, 0, size, limit))
}

/// What is too large, and the file that has the largest share of it.
fn too_large(what: &str, size: usize, limit: usize, shares: &HashMap<Arc<str>, usize>) -> Error {
    let largest = shares.iter().max_by_key(|(file, share)| (**share, *file));
    let file = largest.map_or(String::new(), |(file, _)| file.replace('\'', "''"));
    let (what, size, limit) = (what.to_owned(), size as u64, limit as u64);
    Error::CatalogTooLarge {
        what,
        size,
        limit,
        file,
    }
}

fn push_numbers(out: &mut Vec<u8>, numbers: &[u32]) {
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn pack(bytes: &[u8], interrupt: Interrupt<'_>) -> Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    for part in bytes.chunks(1 << 16) {
        interrupt.check()?;
        encoder.write_all(part).expect("writing to memory does not fail");
    }
    Ok(encoder.finish().expect("writing to memory does not fail"))
}

/// Encodes the block of a provider.
#[derive(Default)]
struct Encoder<'r> {
    strings: HashMap<&'r str, u32>,
    ends: Vec<u32>,
    text: String,
    lists: Vec<u32>,
    known_lists: HashMap<Vec<u32>, u32>,
}

impl<'r> Encoder<'r> {
    fn block(mut self, rows: &'r BTreeSet<MessageRow>, interrupt: Interrupt<'_>) -> Result<Vec<u8>> {
        let mut messages: Vec<Record> = Vec::new();
        let mut parameters: Vec<ParameterRecord> = Vec::new();
        for row in rows {
            interrupt.check()?;
            match (row.kind, row.event_id) {
                (MessageKind::Event, Some(event_id)) => messages.push(self.message(event_id, row)),
                (MessageKind::Parameter, _) => parameters.push([
                    row.message_id.unwrap_or(0),
                    self.string(row.language.as_deref()),
                    self.string(row.text.as_deref()),
                    self.file(row),
                ]),
                _ => {}
            }
        }
        parameters.sort_unstable();
        let mut block = Vec::new();
        let counts = [
            self.ends.len(),
            self.text.len(),
            self.lists.len(),
            messages.len(),
            parameters.len(),
        ];
        push_numbers(&mut block, &counts.map(|count| count as u32));
        push_numbers(&mut block, &self.ends);
        push_numbers(&mut block, &self.lists);
        push_numbers(&mut block, messages.as_flattened());
        push_numbers(&mut block, parameters.as_flattened());
        block.extend_from_slice(self.text.as_bytes());
        Ok(block)
    }

    fn message(&mut self, event_id: u16, row: &'r MessageRow) -> Record {
        let mut record = [0; column::COUNT];
        record[column::EVENT] = u32::from(event_id) | row.version.map_or(0, |version| (u32::from(version) + 1) << 16);
        let qualifiers = row
            .qualifiers
            .map_or(0, |number| u32::from(number) | column::HAS_QUALIFIERS);
        let has_id = if row.message_id.is_some() {
            column::HAS_MESSAGE_ID
        } else {
            0
        };
        record[column::QUALIFIERS] = qualifiers | has_id;
        record[column::MESSAGE_ID] = row.message_id.unwrap_or(0);
        for (place, text) in [
            (column::LANGUAGE, &row.language),
            (column::TEXT, &row.text),
            (column::CHANNEL, &row.channel),
            (column::LEVEL, &row.level),
            (column::TASK, &row.task),
            (column::OPCODE, &row.opcode),
        ] {
            record[place] = self.string(text.as_deref());
        }
        record[column::FILE] = self.file(row);
        let keywords = row.keywords.iter().map(|text| self.string(Some(text))).collect();
        record[column::KEYWORDS] = self.list(keywords);
        let mut fields = Vec::with_capacity(3 * row.fields.len());
        for field in &*row.fields {
            let types = u32::from(field.in_type) | u32::from(field.out_type) << 8;
            let map = field.map.as_deref().map_or(0, |name| self.map(name, &row.maps));
            fields.extend([self.string(Some(&field.name)), types, map]);
        }
        record[column::FIELDS] = self.list(fields);
        record
    }

    /// A reference to the map with a name, which is empty if there is none.
    fn map(&mut self, name: &'r str, maps: &'r [Arc<ValueMap>]) -> u32 {
        let map = maps.iter().find(|map| &*map.name == name);
        let mut list = vec![self.string(Some(name)), map.map_or(0, |map| map.is_bit_map.into())];
        for (value, text) in map.iter().flat_map(|map| &map.entries) {
            list.extend([*value, self.string(Some(text))]);
        }
        self.list(list)
    }

    fn file(&mut self, row: &'r MessageRow) -> u32 {
        self.string(Some(&*row.file).filter(|file| !file.is_empty()))
    }

    fn string(&mut self, text: Option<&'r str>) -> u32 {
        let Some(text) = text else {
            return 0;
        };
        let next = self.ends.len() as u32 + 1;
        let reference = *self.strings.entry(text).or_insert(next);
        if reference == next {
            self.text.push_str(text);
            self.ends.push(self.text.len() as u32);
        }
        reference
    }

    fn list(&mut self, items: Vec<u32>) -> u32 {
        if items.is_empty() {
            return 0;
        }
        let next = self.lists.len() as u32 + 1;
        let lists = &mut self.lists;
        *self.known_lists.entry(items).or_insert_with_key(|items| {
            lists.push(items.len() as u32);
            lists.extend(items);
            next
        })
    }
}
