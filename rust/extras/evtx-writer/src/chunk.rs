//! A chunk: records, with names and template definitions at their first use.

use std::ops::Range;

use hashbrown::HashMap;
use uuid::Uuid;

use crate::binxml::{Content, Element, Event, Fragment, Stream, Substitution, Value};
use crate::copy::{copy_definition, copy_stream};
use crate::error::WriteError;
use crate::record::{CutRecord, HEADER};
use crate::source::Source;
use crate::target::{NO_DEPENDENCY, Target, entry};
use crate::value::utf16;

pub(crate) const CHUNK_SIZE: usize = 65_536;
/// Windows fills no chunk further, and libevtx loses the last record of one that is full.
const MOST: usize = 65_528;
const HEADER_SIZE: usize = 512;
/// Chunk offset of the offset of the free space, u32. The checksum of the records follows it.
const FREE_SPACE: usize = 48;
/// Chunk offset of the string table: the heads of the linked lists of names, by hash.
const STRING_TABLE: usize = 128;
const STRING_BUCKETS: u16 = 64;
/// Chunk offset of the template table: the heads of the linked lists of definitions, by template ID.
const TEMPLATE_TABLE: usize = 384;
const TEMPLATE_BUCKETS: u32 = 32;
const FRAGMENT_HEADER: [u8; 4] = [0x0f, 1, 1, 0];

#[derive(Debug, Clone, Default)]
pub(crate) struct Chunk {
    /// The bytes from the start of the chunk to the end of the last record.
    bytes: Vec<u8>,
    /// By hash, length and UTF-16 units, as in the chunk, where each name is.
    names: HashMap<Box<[u8]>, u32>,
    /// By GUID, or by all of its bytes if it was cut out of another chunk, where each template definition is.
    templates: HashMap<Box<[u8]>, u32>,
    records: u64,
    first_id: Option<u64>,
    last_id: u64,
    last_record: usize,
}

impl Chunk {
    pub(crate) fn new() -> Self {
        Chunk {
            bytes: vec![0; HEADER_SIZE],
            ..Chunk::default()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first_id.is_none()
    }

    /// How many records it has.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// The bytes up to the end of the last record, and where its BinXML is in them.
    pub(crate) fn last(&self) -> (&[u8], Range<usize>) {
        (&self.bytes, self.last_record + HEADER..self.bytes.len() - 4)
    }

    /// Writes a record. If it does not fit, returns false and leaves the chunk as it was.
    pub(crate) fn write(&mut self, id: u64, written: u64, stream: &Stream) -> Result<bool, WriteError> {
        self.write_with(id, written, |chunk| chunk.stream(stream))
    }

    /// The same for a record that was cut out of another chunk.
    pub(crate) fn write_cut(&mut self, id: u64, record: CutRecord<'_>) -> Result<bool, WriteError> {
        let source = Source::record(record.bytes);
        self.write_with(id, record.written, |chunk| {
            copy_stream(chunk, source, record.binxml()).map(drop)
        })
    }

    fn write_with(
        &mut self,
        id: u64,
        written: u64,
        binxml: impl FnOnce(&mut Self) -> Result<(), WriteError>,
    ) -> Result<bool, WriteError> {
        let start = self.bytes.len();
        let mut tables = [0; HEADER_SIZE - STRING_TABLE];
        tables.copy_from_slice(&self.bytes[STRING_TABLE..HEADER_SIZE]);
        self.bytes.extend(b"**\0\0\0\0\0\0");
        self.bytes.extend(id.to_le_bytes());
        self.bytes.extend(written.to_le_bytes());
        let outcome = binxml(self);
        // Windows aligns records to eight bytes.
        let padding = (self.bytes.len() + 4 - start).next_multiple_of(8) - 4;
        self.bytes.resize(start + padding, 0);
        let size = (padding + 4) as u32;
        self.bytes.extend(size.to_le_bytes());
        self.put_u32(start + 4, size);
        if outcome.is_err() || self.bytes.len() > MOST {
            self.bytes.truncate(start);
            self.bytes[STRING_TABLE..HEADER_SIZE].copy_from_slice(&tables);
            self.names.retain(|_, offset| (*offset as usize) < start);
            self.templates.retain(|_, offset| (*offset as usize) < start);
            return outcome.map(|()| false);
        }
        self.records += 1;
        self.first_id.get_or_insert(id);
        self.last_id = id;
        self.last_record = start;
        Ok(true)
    }

    /// The 64 KiB of the chunk, with its header. `first_number` is the number of its first record among those of the log,
    /// from 1 on.
    pub(crate) fn finish(mut self, first_number: u64) -> Vec<u8> {
        let first_id = self.first_id.unwrap_or(u64::MAX);
        let free_space = self.bytes.len();
        let last_number = (first_number + self.records).wrapping_sub(1);
        let mut header = b"ElfChnk\0".to_vec();
        for number in [first_number, last_number, first_id, self.last_id] {
            header.extend(number.to_le_bytes());
        }
        let checksum = crc32fast::hash(&self.bytes[HEADER_SIZE..]);
        for number in [128, self.last_record as u32, free_space as u32, checksum] {
            header.extend(number.to_le_bytes());
        }
        self.bytes[..header.len()].copy_from_slice(&header);
        self.put_u32(124, header_checksum(&self.bytes));
        self.bytes.resize(CHUNK_SIZE, 0);
        self.bytes
    }

    /// Turns the header of a finished chunk into that of one which Windows has only begun: without IDs, and with the free
    /// space after the header. The records stay where they are.
    pub(crate) fn begin_anew(chunk: &mut [u8]) {
        let mut header = Chunk::new();
        header.last_id = u64::MAX;
        let mut header = header.finish(1);
        // The number of the last record, counted from 1.
        header[16..24].fill(0xff);
        let checksum = header_checksum(&header);
        header[124..128].copy_from_slice(&checksum.to_le_bytes());
        chunk[..HEADER_SIZE].copy_from_slice(&header[..HEADER_SIZE]);
    }

    /// Adds to the numbers of a finished chunk's records, and to their IDs. Returns the ID of the last one.
    pub(crate) fn renumber(chunk: &mut [u8], numbers: u64, ids: u64) -> u64 {
        let u32_at =
            |chunk: &[u8], at: usize| u32::from_le_bytes([chunk[at], chunk[at + 1], chunk[at + 2], chunk[at + 3]]);
        let add = |chunk: &mut [u8], at: usize, more: u64| {
            let mut number = [0; 8];
            number.copy_from_slice(&chunk[at..at + 8]);
            let number = u64::from_le_bytes(number).wrapping_add(more);
            chunk[at..at + 8].copy_from_slice(&number.to_le_bytes());
            number
        };
        let free_space = u32_at(chunk, FREE_SPACE) as usize;
        if ids > 0 {
            let mut record = HEADER_SIZE;
            while record < free_space {
                add(chunk, record + 8, ids);
                record += u32_at(chunk, record + 4) as usize;
            }
            let checksum = crc32fast::hash(&chunk[HEADER_SIZE..free_space]);
            chunk[FREE_SPACE + 4..FREE_SPACE + 8].copy_from_slice(&checksum.to_le_bytes());
        }
        add(chunk, 8, numbers);
        add(chunk, 16, numbers);
        add(chunk, 24, ids);
        let last_id = add(chunk, 32, ids);
        let checksum = header_checksum(chunk);
        chunk[124..128].copy_from_slice(&checksum.to_le_bytes());
        last_id
    }

    fn put_u32(&mut self, at: usize, number: u32) {
        self.bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }

    /// Appends the head of a linked list, which is at a chunk offset, and makes `entry` the new head.
    fn link(&mut self, head: usize, entry: u32) {
        self.bytes.extend_from_within(head..head + 4);
        self.put_u32(head, entry);
    }

    fn push_u32(&mut self, number: u32) {
        self.bytes.extend(number.to_le_bytes());
    }

    fn push_u16(&mut self, number: u16) {
        self.bytes.extend(number.to_le_bytes());
    }

    fn stream(&mut self, stream: &Stream) -> Result<(), WriteError> {
        for fragment in &stream.fragments {
            self.bytes.extend(FRAGMENT_HEADER);
            match fragment {
                Fragment::Instance(event) => self.instance(event)?,
                Fragment::Element(element) => self.element(element, false),
            }
        }
        self.bytes.push(0);
        Ok(())
    }

    fn instance(&mut self, event: &Event) -> Result<(), WriteError> {
        let guid = Uuid::from_bytes(event.template.guid).to_bytes_le();
        let id = u32::from_le_bytes([guid[0], guid[1], guid[2], guid[3]]);
        self.bytes.extend([0x0c, 1]);
        self.push_u32(id);
        match self.templates.get(guid.as_slice()) {
            Some(&definition) => self.push_u32(definition),
            None => {
                let definition = self.bytes.len() as u32 + 4;
                self.push_u32(definition);
                self.templates.insert(guid.into(), definition);
                let head = TEMPLATE_TABLE + 4 * (id % TEMPLATE_BUCKETS) as usize;
                self.link(head, definition);
                self.bytes.extend(guid);
                self.push_u32(0);
                let body = self.bytes.len();
                self.bytes.extend(FRAGMENT_HEADER);
                self.element(&event.template.root, true);
                self.bytes.push(0);
                self.put_u32(body - 4, (self.bytes.len() - body) as u32);
            }
        }
        self.push_u32(event.values.len() as u32);
        let descriptors = self.bytes.len();
        self.bytes.resize(descriptors + 4 * event.values.len(), 0);
        for (i, value) in event.values.iter().enumerate() {
            let start = self.bytes.len();
            let (value_type, bytes) = value.stored();
            self.bytes.extend(bytes);
            if let Value::BinXml(stream) = value {
                self.stream(stream)?;
            }
            let size = self.bytes.len() - start;
            let size = u16::try_from(size).map_err(|_| WriteError::ValueSize(size))?;
            self.put_u32(descriptors + 4 * i, u32::from(size) | u32::from(value_type) << 16);
        }
        Ok(())
    }

    /// Writes an element. Only those of a definition have a dependency.
    fn element(&mut self, element: &Element, in_definition: bool) {
        let more = element.attributes.len();
        self.bytes.push(if more > 0 { 0x41 } else { 0x01 });
        if in_definition {
            self.push_u16(element.dependency.unwrap_or(NO_DEPENDENCY));
        }
        let size = self.bytes.len();
        self.push_u32(0);
        self.text_name(&element.name);
        if more > 0 {
            let list = self.bytes.len();
            self.push_u32(0);
            for (i, (name, content)) in element.attributes.iter().enumerate() {
                self.bytes.push(if i + 1 < more { 0x46 } else { 0x06 });
                self.text_name(name);
                content.iter().for_each(|content| self.content(content, in_definition));
            }
            self.put_u32(list, (self.bytes.len() - list - 4) as u32);
        }
        if element.content.is_empty() {
            self.bytes.push(0x03);
        } else {
            self.bytes.push(0x02);
            let contents = element.content.iter();
            contents.for_each(|content| self.content(content, in_definition));
            self.bytes.push(0x04);
        }
        self.put_u32(size, (self.bytes.len() - size - 4) as u32);
    }

    fn content(&mut self, content: &Content, in_definition: bool) {
        match content {
            Content::Element(element) => self.element(element, in_definition),
            Content::Text(text) => {
                self.bytes.extend([0x05, 0x01]);
                self.counted_text(text);
            }
            Content::Value(value_type, bytes) => {
                self.bytes.extend([0x05, *value_type]);
                self.bytes.extend(bytes);
            }
            Content::CData(text) => {
                self.bytes.push(0x07);
                self.counted_text(text);
            }
            Content::CharRef(number) => {
                self.bytes.push(0x08);
                self.push_u16(*number);
            }
            Content::EntityRef(name) => {
                self.bytes.push(0x09);
                self.text_name(name);
            }
            Content::Substitution(Substitution {
                index,
                value_type,
                optional,
            }) => {
                self.bytes.push(if *optional { 0x0e } else { 0x0d });
                self.push_u16(*index);
                self.bytes.push(*value_type);
            }
        }
    }

    fn counted_text(&mut self, text: &str) {
        self.push_u16(text.encode_utf16().count() as u16);
        self.bytes.extend(utf16(text));
    }

    /// Writes a reference to a name, and the name itself at its first use.
    fn text_name(&mut self, name: &str) {
        Target::name(self, &entry(name));
    }
}

impl Target for Chunk {
    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    fn name(&mut self, entry: &[u8]) {
        if let Some(&offset) = self.names.get(entry) {
            return self.push_u32(offset);
        }
        let offset = self.bytes.len() as u32 + 4;
        self.push_u32(offset);
        self.names.insert(entry.into(), offset);
        let hash = u16::from_le_bytes([entry[0], entry[1]]);
        let head = STRING_TABLE + 4 * usize::from(hash % STRING_BUCKETS);
        self.link(head, offset);
        self.bytes.extend(entry);
        self.push_u16(0);
    }

    fn definition(&mut self, source: Source<'_>, at: usize) -> Result<(), WriteError> {
        let (bytes, _) = source.definition(at)?;
        if let Some(&definition) = self.templates.get(bytes) {
            self.push_u32(definition);
            return Ok(());
        }
        let definition = self.bytes.len() as u32 + 4;
        self.push_u32(definition);
        self.templates.insert(bytes.into(), definition);
        let id = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let head = TEMPLATE_TABLE + 4 * (id % TEMPLATE_BUCKETS) as usize;
        self.link(head, definition);
        copy_definition(self, source, at)
    }
}

/// The checksum of a chunk header: of all bytes but the flags and itself.
fn header_checksum(chunk: &[u8]) -> u32 {
    crc32fast::hash(&[&chunk[..120], &chunk[STRING_TABLE..HEADER_SIZE]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hash_as_windows_does() {
        // As logs of Windows hold them.
        assert_eq!(entry("Event")[..2], 0x0cba_u16.to_le_bytes());
        assert_eq!(entry("System")[..2], 0x546f_u16.to_le_bytes());
        assert_eq!(entry("Provider")[..2], 0x7bf1_u16.to_le_bytes());
    }

    #[test]
    fn a_record_that_does_not_fit_leaves_the_chunk_as_it_was() {
        let text = |length| Stream::new(vec![Fragment::Element(Element::new("Event").text("x".repeat(length)))]);
        let mut chunk = Chunk::new();
        assert_eq!(chunk.write(1, 0, &text(30_000)), Ok(true));
        let before = chunk.clone();
        assert_eq!(chunk.write(2, 0, &text(30_000)), Ok(false));
        assert_eq!(chunk.bytes, before.bytes);
        assert_eq!(chunk.write(2, 0, &text(1_000)), Ok(true));
        assert_eq!(chunk.finish(1).len(), CHUNK_SIZE);
    }
}
