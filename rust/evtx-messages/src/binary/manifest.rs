//! Compiled manifests (`WEVT_TEMPLATE`): the events that providers declare.
//!
//! Source: the documentation of libfwevt, and real binaries. All offsets are from the start of the resource. A name is
//! its size as u32 with these 4 bytes, then UTF-16. IDs of messages are 0xFFFFFFFF if there is none.
//!
//! ```text
//! CRIM  size, u16 3, u16 1, number of providers; for each: GUID, offset
//! WEVT  size, ID of the name shown, number of elements, number of others; for each element: offset, u32
//! CHAN  size, count; for each: ID, offset of the name, u32, ID of the message
//! KEYW  size, count; for each: u64 bits, ID of the message, offset of the name
//! EVNT  size, count, u32; for each the 48 bytes of an event
//! LEVL, OPCO: u32 ID, ID of the message, offset of the name
//! TASK: u32 ID, ID of the message, GUID, offset of the name
//! TEMP  size, number of items, number of names, offset of the items; an item has 20 bytes
//! VMAP, BMAP: size, offset of the name, u32 0 or 1, count; for each: value, ID of the message
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use evtx_format::Interrupt;
use evtx_format::bytes::{array_at, u16_at, u32_at, u64_at};
use evtx_format::value::Scalar;
use hashbrown::HashMap;

use super::table::text_of;
use crate::error::Result;
use crate::row::{Field, Guid, guid_of_le_bytes};

/// A compiled manifest.
#[derive(Debug, Default)]
pub struct Manifest {
    /// The providers.
    pub providers: Vec<DeclaredProvider>,
    /// Whether a part could not be read.
    pub is_damaged: bool,
}

/// A provider in a manifest. The name is not in the manifest, only the name that is shown.
#[derive(Debug)]
pub struct DeclaredProvider {
    /// The GUID.
    pub guid: Guid,
    /// The ID of the message with the name that is shown.
    pub shown_name: Option<u32>,
    /// The events.
    pub events: Vec<DeclaredEvent>,
    /// The keywords: bits, and what they are called. The highest bit is first.
    pub keywords: Vec<(u64, Named)>,
}

/// What a channel, level, task, opcode or keyword is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The name, as `Informational`, without the prefix `win:` that predefined names have.
    pub name: Arc<str>,
    /// The ID of the message that is shown in its place.
    pub message_id: Option<u32>,
}

/// An event in a manifest.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // the names say it
pub struct DeclaredEvent {
    pub event_id: u16,
    pub version: u8,
    pub message_id: Option<u32>,
    pub channel: Option<Named>,
    pub level: Option<Named>,
    pub task: Option<Named>,
    pub opcode: Option<Named>,
    /// The bits of the keywords.
    pub keywords: u64,
    pub fields: Arc<[Field]>,
    /// The maps that the fields name.
    pub maps: Arc<[Arc<DeclaredMap>]>,
}

/// A map in a manifest. Its texts are messages.
#[derive(Debug, PartialEq, Eq)]
pub struct DeclaredMap {
    /// The name.
    pub name: Arc<str>,
    /// Whether the values are bits.
    pub is_bit_map: bool,
    /// The values and the IDs of their messages.
    pub entries: Vec<(u32, u32)>,
}

impl Manifest {
    /// Reads a manifest. Work and memory are bounded by its size, even if its parts overlap.
    ///
    /// # Errors
    /// If the work is interrupted.
    pub(crate) fn new(bytes: &[u8], interrupt: Interrupt<'_>) -> Result<Self> {
        let mut manifest = Manifest::default();
        let mut reader = Reader {
            bytes,
            room: bytes.len(),
            names: HashMap::new(),
            templates: HashMap::new(),
            maps: HashMap::new(),
            interrupt,
        };
        let complete = reader.providers(&mut manifest.providers).is_some();
        manifest.is_damaged = !complete;
        interrupt.check()?;
        Ok(manifest)
    }
}

/// The keywords of a provider: there is a bit for each.
const MAX_KEYWORDS: usize = 64;

/// The fields of a template and the maps that they name.
type Template = (Arc<[Field]>, Arc<[Arc<DeclaredMap>]>);

struct Reader<'m> {
    bytes: &'m [u8],
    /// The bytes that may still be read, so that parts that overlap are not read again and again.
    room: usize,
    names: HashMap<u32, Arc<str>>,
    templates: HashMap<u32, Template>,
    maps: HashMap<u32, Arc<DeclaredMap>>,
    interrupt: Interrupt<'m>,
}

/// The elements of a provider that events refer to.
#[derive(Default)]
struct Elements {
    channels: BTreeMap<u8, Named>,
    keywords: Vec<(u64, Named)>,
    /// Where the events are: offset, count.
    events: Vec<(usize, usize)>,
}

impl Reader<'_> {
    fn u32(&self, at: usize) -> Option<u32> {
        u32_at(self.bytes, at)
    }

    fn offset(&self, at: usize) -> Option<usize> {
        self.u32(at).map(|offset| offset as usize)
    }

    fn id(&self, at: usize) -> Option<Option<u32>> {
        self.u32(at).map(|id| (id != u32::MAX).then_some(id))
    }

    /// The count at `at`, if as many items of `size` bytes are left after `start`. Takes their bytes.
    fn count(&mut self, at: usize, start: usize, size: usize) -> Option<usize> {
        let count = self.offset(at)?;
        let bytes = count.checked_mul(size)?;
        self.bytes.get(start..)?.get(..bytes)?;
        self.room = self.room.checked_sub(bytes)?;
        Some(count)
    }

    fn providers(&mut self, providers: &mut Vec<DeclaredProvider>) -> Option<()> {
        if !self.bytes.starts_with(b"CRIM") {
            return None;
        }
        for index in 0..self.count(12, 16, 20)? {
            let at = 16 + 20 * index;
            let guid = guid_of_le_bytes(array_at(self.bytes, at)?);
            let offset = self.offset(at + 16)?;
            providers.push(DeclaredProvider {
                guid,
                shown_name: self.id(offset.checked_add(8)?)?,
                events: Vec::new(),
                keywords: Vec::new(),
            });
            self.provider(offset, providers.last_mut()?)?;
        }
        Some(())
    }

    fn provider(&mut self, at: usize, provider: &mut DeclaredProvider) -> Option<()> {
        if self.bytes.get(at..)?.get(..4)? != b"WEVT" {
            return None;
        }
        let mut elements = Elements::default();
        for index in 0..self.count(at + 12, at + 20, 8)? {
            let element = self.offset(at + 20 + 8 * index)?;
            match self.bytes.get(element..)?.get(..4)? {
                b"CHAN" => self.channels(element, &mut elements)?,
                b"KEYW" => self.keywords(element, &mut elements)?,
                b"EVNT" => elements
                    .events
                    .push((element + 16, self.count(element + 8, element + 16, 48)?)),
                // Events refer to levels, opcodes, tasks and templates, and templates to maps.
                _ => {}
            }
        }
        elements.keywords.sort_by_key(|(bits, _)| std::cmp::Reverse(*bits));
        elements.keywords.dedup_by_key(|(bits, _)| *bits);
        elements.keywords.truncate(MAX_KEYWORDS);
        for (start, count) in std::mem::take(&mut elements.events) {
            for index in 0..count {
                provider.events.push(self.event(start + 48 * index, &elements)?);
            }
        }
        provider.keywords = elements.keywords;
        Some(())
    }

    fn channels(&mut self, at: usize, elements: &mut Elements) -> Option<()> {
        for index in 0..self.count(at + 8, at + 12, 16)? {
            let at = at + 12 + 16 * index;
            let (id, name) = (self.u32(at)?, self.u32(at + 4)?);
            let named = Named {
                name: self.name(name)?,
                message_id: self.id(at + 12)?,
            };
            elements.channels.insert(u8::try_from(id).ok()?, named);
        }
        Some(())
    }

    fn keywords(&mut self, at: usize, elements: &mut Elements) -> Option<()> {
        for index in 0..self.count(at + 8, at + 12, 16)? {
            let at = at + 12 + 16 * index;
            let name = self.u32(at + 12)?;
            let named = Named {
                name: self.name(name)?,
                message_id: self.id(at + 8)?,
            };
            elements.keywords.push((u64_at(self.bytes, at)?, named));
        }
        Some(())
    }

    /// The 48 bytes of an event: ID u16, version, channel, level, opcode, task u16, keywords u64, ID of the message,
    /// offsets of its template, opcode, level and task, and three u32.
    fn event(&mut self, at: usize, elements: &Elements) -> Option<DeclaredEvent> {
        self.interrupt.check().ok()?;
        let [version, channel] = array_at(self.bytes, at + 2)?;
        let (fields, maps) = match self.u32(at + 20)? {
            0 => Template::default(),
            offset => self.template(offset)?,
        };
        Some(DeclaredEvent {
            event_id: u16_at(self.bytes, at)?,
            version,
            message_id: self.id(at + 16)?,
            channel: elements.channels.get(&channel).cloned(),
            opcode: self.named(at + 24, 8)?,
            level: self.named(at + 28, 8)?,
            task: self.named(at + 32, 24)?,
            keywords: u64_at(self.bytes, at + 8)?,
            fields,
            maps,
        })
    }

    /// The level, opcode or task whose offset is at `at`. The offset of its name is `name_at` bytes after its start.
    fn named(&mut self, at: usize, name_at: usize) -> Option<Option<Named>> {
        let offset = self.offset(at)?;
        if offset == 0 {
            return Some(None);
        }
        let (message_id, name) = (self.id(offset + 4)?, self.u32(offset + name_at)?);
        let name = self.name(name)?;
        Some(Some(Named { name, message_id }))
    }

    /// The name at an offset; empty at offset 0.
    fn name(&mut self, offset: u32) -> Option<Arc<str>> {
        if offset == 0 {
            return Some(Arc::default());
        }
        if let Some(name) = self.names.get(&offset) {
            return Some(name.clone());
        }
        let at = offset as usize;
        let bytes = self.bytes.get(at..)?.get(4..self.offset(at)?.max(4))?;
        self.room = self.room.checked_sub(bytes.len())?;
        let name = text_of(Scalar::String, bytes);
        let name: Arc<str> = name.strip_prefix("win:").unwrap_or(&name).into();
        self.names.insert(offset, name.clone());
        Some(name)
    }

    /// The template at an offset. Its items: u32 flags, input type, output type, u16, offset of its map, u16 count,
    /// u16 length, offset of its name.
    fn template(&mut self, offset: u32) -> Option<Template> {
        if let Some(known) = self.templates.get(&offset) {
            return Some(known.clone());
        }
        let at = offset as usize;
        if self.bytes.get(at..)?.get(..4)? != b"TEMP" {
            return None;
        }
        let start = self.offset(at + 16)?;
        let mut fields = Vec::new();
        let mut maps: Vec<Arc<DeclaredMap>> = Vec::new();
        for index in 0..self.count(at + 8, start, 20)? {
            let at = start + 20 * index;
            let [in_type, out_type] = array_at(self.bytes, at + 4)?;
            let (map, name) = (self.u32(at + 8)?, self.u32(at + 16)?);
            let map = if map == 0 { None } else { self.map(map) };
            fields.push(Field {
                name: self.name(name)?,
                in_type,
                out_type,
                map: map.as_ref().map(|map| map.name.clone()),
            });
            if let Some(map) = map
                && maps.len() < 64
                && !maps.contains(&map)
            {
                maps.push(map);
            }
        }
        let template = (Arc::from(fields), Arc::from(maps));
        self.templates.insert(offset, template.clone());
        Some(template)
    }

    fn map(&mut self, offset: u32) -> Option<Arc<DeclaredMap>> {
        if let Some(map) = self.maps.get(&offset) {
            return Some(map.clone());
        }
        let at = offset as usize;
        let is_bit_map = match self.bytes.get(at..)?.get(..4)? {
            b"VMAP" => false,
            b"BMAP" => true,
            _ => return None,
        };
        let name = self.u32(at + 8)?;
        let count = self.count(at + 16, at + 20, 8)?;
        let entry = |index| Some((self.u32(at + 20 + 8 * index)?, self.u32(at + 24 + 8 * index)?));
        let entries = (0..count).map(entry).collect::<Option<_>>()?;
        let map = Arc::new(DeclaredMap {
            name: self.name(name)?,
            is_bit_map,
            entries,
        });
        self.maps.insert(offset, map.clone());
        Some(map)
    }
}
