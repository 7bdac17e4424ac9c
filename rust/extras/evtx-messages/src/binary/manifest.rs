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
use hashbrown::{HashMap, HashSet};

use super::resource::Resource;
use super::table::text_of;
use crate::error::Result;
use crate::row::{Field, Guid, guid_of_le_bytes};

/// A compiled manifest. Its events are decoded when they are asked for.
#[derive(Debug)]
pub struct Manifest {
    bytes: Resource,
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
    /// The IDs of all messages that it uses, sorted.
    pub used: Vec<u32>,
    /// Where it is in the manifest.
    offset: usize,
    /// How many events it has that can be read.
    events: usize,
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
    /// Where it is in the manifest.
    pub offset: u32,
    /// The name.
    pub name: Arc<str>,
    /// Whether the values are bits.
    pub is_bit_map: bool,
    /// The values and the IDs of their messages.
    pub entries: Vec<(u32, u32)>,
}

impl Manifest {
    /// Reads a manifest once, to find out which messages its providers use and whether it is sound. Work and memory are bounded by
    /// its size, even if its parts overlap.
    ///
    /// # Errors
    /// If the work is interrupted.
    pub(crate) fn new(bytes: Resource, interrupt: Interrupt<'_>) -> Result<Self> {
        let (mut providers, mut decoded) = (Vec::new(), Decoded::default());
        let mut reader = Reader {
            bytes: &bytes,
            check: Some(Check {
                room: bytes.len(),
                seen: HashSet::new(),
            }),
            decoded: &mut decoded,
            interrupt,
        };
        let is_damaged = reader.providers(&mut providers).is_none();
        interrupt.check()?;
        providers.shrink_to_fit();
        Ok(Manifest {
            bytes,
            providers,
            is_damaged,
        })
    }

    /// About how many bytes of memory it takes besides its resource.
    pub(crate) fn bytes(&self) -> usize {
        let used = self.providers.iter().map(|provider| size_of_val(&*provider.used));
        size_of::<Self>() + size_of_val(&*self.providers) + used.sum::<usize>()
    }

    /// The elements of a provider that its events refer to, and where these are.
    pub(crate) fn elements(&self, provider: &DeclaredProvider, decoded: &mut Decoded) -> Elements {
        let mut elements = Elements::default();
        // Without the rest, the events up to the damage are there.
        let _ = self.reader(decoded).elements(provider.offset, &mut elements);
        elements
    }

    /// The event at an index among all of a provider; `None` after the last one.
    pub(crate) fn event(
        &self,
        provider: &DeclaredProvider,
        elements: &Elements,
        index: usize,
        decoded: &mut Decoded,
    ) -> Option<DeclaredEvent> {
        let at = elements.event(index).filter(|_| index < provider.events)?;
        self.reader(decoded).event(at, elements)
    }

    fn reader<'r>(&'r self, decoded: &'r mut Decoded) -> Reader<'r> {
        Reader {
            bytes: &self.bytes,
            check: None,
            decoded,
            interrupt: Interrupt::NEVER,
        }
    }
}

/// The providers of a manifest. *(choice)*
const MAX_PROVIDERS: usize = 4096;
/// The keywords of a provider: there is a bit for each.
const MAX_KEYWORDS: usize = 64;
/// The longest name in bytes. *(choice)*
const MAX_NAME: usize = 4096;
/// The fields of a template, the bytes of their names, and the entries of a map, at most. *(choice)*
const MAX_FIELDS: usize = 1024;
const MAX_FIELD_NAMES: usize = 128 << 10;
const MAX_MAP: usize = 4096;
/// The IDs of messages that the providers of a manifest use, at most. *(choice)*
const MAX_USED: usize = 1 << 20;
/// How much of what was decoded is kept for the next events, in bytes. *(choice)*
const MAX_DECODED: usize = 4 << 20;

/// The fields of a template and the maps that they name.
type Template = (Arc<[Field]>, Arc<[Arc<DeclaredMap>]>);

struct Reader<'m> {
    bytes: &'m [u8],
    /// That of the first reading.
    check: Option<Check>,
    decoded: &'m mut Decoded,
    interrupt: Interrupt<'m>,
}

/// Whether the parts of a manifest overlap.
struct Check {
    /// The bytes that may still be read, so that parts that overlap are not read again and again.
    room: usize,
    /// The offsets of names, templates and maps that were read.
    seen: HashSet<u32>,
}

/// What was decoded of a manifest, by offset. Events share it.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    names: HashMap<u32, Arc<str>>,
    templates: HashMap<u32, Template>,
    maps: HashMap<u32, Arc<DeclaredMap>>,
    /// What it takes.
    bytes: usize,
}

impl Decoded {
    /// Makes room for something. What is forgotten is decoded again.
    fn take(&mut self, bytes: usize) {
        self.bytes += 64 + bytes;
        if self.bytes > MAX_DECODED {
            *self = Decoded::default();
        }
    }
}

/// The IDs of messages that were met, and how many there may be.
struct Used {
    ids: HashSet<u32>,
    most: usize,
}

impl Used {
    fn push(&mut self, id: Option<u32>) -> Option<()> {
        self.ids.extend(id);
        (self.ids.len() <= self.most).then_some(())
    }
}

/// The elements of a provider that events refer to.
#[derive(Debug, Default)]
pub(crate) struct Elements {
    channels: BTreeMap<u8, Named>,
    keywords: BTreeMap<u64, Named>,
    /// Where the events are: the offset of the first of some, and the index after the last.
    events: Vec<(u32, u32)>,
}

impl Elements {
    /// The keywords: bits, and what they are called. The highest bit is first.
    pub(crate) fn keywords(&self) -> impl Iterator<Item = (u64, &Named)> {
        self.keywords.iter().rev().map(|(bits, named)| (*bits, named))
    }

    /// Where the event at an index is.
    fn event(&self, index: usize) -> Option<usize> {
        let some = self.events.partition_point(|(_, end)| *end as usize <= index);
        let first = some.checked_sub(1).map_or(0, |before| self.events[before].1 as usize);
        Some(self.events.get(some)?.0 as usize + 48 * (index - first))
    }
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
        let count = self.uncounted(at, start, size)?;
        self.take(count * size)?;
        Some(count)
    }

    /// The count at `at`, if as many items of `size` bytes are left after `start`.
    fn uncounted(&self, at: usize, start: usize, size: usize) -> Option<usize> {
        let count = self.offset(at)?;
        self.bytes.get(start..)?.get(..count.checked_mul(size)?)?;
        Some(count)
    }

    fn take(&mut self, bytes: usize) -> Option<()> {
        if let Some(check) = &mut self.check {
            check.room = check.room.checked_sub(bytes)?;
        }
        Some(())
    }

    /// Takes the bytes of a part that others share, unless they were taken before.
    fn take_once(&mut self, offset: u32, bytes: usize) -> Option<()> {
        if self.check.as_mut().is_none_or(|check| check.seen.insert(offset)) {
            self.take(bytes)
        } else {
            Some(())
        }
    }

    fn providers(&mut self, providers: &mut Vec<DeclaredProvider>) -> Option<()> {
        if !self.bytes.starts_with(b"CRIM") {
            return None;
        }
        let (count, mut most) = (self.count(12, 16, 20)?, MAX_USED);
        for index in 0..count.min(MAX_PROVIDERS) {
            let at = 16 + 20 * index;
            let mut provider = DeclaredProvider {
                guid: guid_of_le_bytes(array_at(self.bytes, at)?),
                used: Vec::new(),
                offset: self.offset(at + 16)?,
                events: 0,
            };
            let ids = HashSet::new();
            let mut used = Used { ids, most };
            // What comes before damage is kept.
            let read = self.provider(&mut provider, &mut used);
            provider.used = used.ids.into_iter().collect();
            provider.used.sort_unstable();
            most = most.saturating_sub(provider.used.len());
            providers.push(provider);
            read?;
        }
        (count <= MAX_PROVIDERS).then_some(())
    }

    fn provider(&mut self, provider: &mut DeclaredProvider, used: &mut Used) -> Option<()> {
        used.push(self.id(provider.offset.checked_add(8)?)?)?;
        let mut elements = Elements::default();
        self.elements(provider.offset, &mut elements)?;
        for (_, named) in elements.keywords() {
            used.push(named.message_id)?;
        }
        while let Some(at) = elements.event(provider.events) {
            let event = self.event(at, &elements)?;
            provider.events += 1;
            used.push(event.message_id)?;
            for named in [&event.channel, &event.level, &event.task, &event.opcode] {
                used.push(named.as_ref().and_then(|named| named.message_id))?;
            }
            for map in &*event.maps {
                map.entries.iter().try_for_each(|(_, id)| used.push(Some(*id)))?;
            }
        }
        Some(())
    }

    fn elements(&mut self, at: usize, elements: &mut Elements) -> Option<()> {
        if self.bytes.get(at..)?.get(..4)? != b"WEVT" {
            return None;
        }
        for index in 0..self.count(at + 12, at + 20, 8)? {
            self.interrupt.check().ok()?;
            let element = self.offset(at + 20 + 8 * index)?;
            match self.bytes.get(element..)?.get(..4)? {
                b"CHAN" => self.channels(element, elements)?,
                b"KEYW" => self.keywords(element, elements)?,
                b"EVNT" => {
                    let count = self.count(element + 8, element + 16, 48)? as u32;
                    let end = elements.events.last().map_or(0, |(_, end)| *end).checked_add(count)?;
                    elements
                        .events
                        .extend((count > 0).then_some((element as u32 + 16, end)));
                }
                // Events refer to levels, opcodes, tasks and templates, and templates to maps.
                _ => {}
            }
        }
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
            elements.keywords.entry(u64_at(self.bytes, at)?).or_insert(named);
            if elements.keywords.len() > MAX_KEYWORDS {
                elements.keywords.pop_first();
            }
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
        if let Some(name) = self.decoded.names.get(&offset) {
            return Some(name.clone());
        }
        let at = offset as usize;
        let bytes = self.bytes.get(at..)?.get(4..self.offset(at)?.max(4))?;
        if bytes.len() > MAX_NAME {
            return None;
        }
        self.take_once(offset, bytes.len())?;
        let name = text_of(Scalar::String, bytes);
        let name: Arc<str> = name.strip_prefix("win:").unwrap_or(&name).into();
        self.decoded.take(name.len());
        self.decoded.names.insert(offset, name.clone());
        Some(name)
    }

    /// The template at an offset. Its items: u32 flags, input type, output type, u16, offset of its map, u16 count,
    /// u16 length, offset of its name.
    fn template(&mut self, offset: u32) -> Option<Template> {
        if let Some(known) = self.decoded.templates.get(&offset) {
            return Some(known.clone());
        }
        let at = offset as usize;
        if self.bytes.get(at..)?.get(..4)? != b"TEMP" {
            return None;
        }
        let start = self.offset(at + 16)?;
        let count = self.uncounted(at + 8, start, 20)?;
        if count > MAX_FIELDS {
            return None;
        }
        self.take_once(offset, 20 * count)?;
        let (mut fields, mut names) = (Vec::new(), 0);
        let mut maps: Vec<Arc<DeclaredMap>> = Vec::new();
        for index in 0..count {
            self.interrupt.check().ok()?;
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
            names += fields.last().map_or(0, |field| field.name.len());
            names += map.as_ref().map_or(0, |map| map.name.len());
            if names > MAX_FIELD_NAMES {
                return None;
            }
            if let Some(map) = map
                && maps.len() < 64
                && !maps.contains(&map)
            {
                maps.push(map);
            }
        }
        let template: Template = (fields.into(), maps.into());
        self.decoded
            .take(size_of::<Field>() * template.0.len() + 8 * template.1.len());
        self.decoded.templates.insert(offset, template.clone());
        Some(template)
    }

    fn map(&mut self, offset: u32) -> Option<Arc<DeclaredMap>> {
        if let Some(map) = self.decoded.maps.get(&offset) {
            return Some(map.clone());
        }
        let at = offset as usize;
        let is_bit_map = match self.bytes.get(at..)?.get(..4)? {
            b"VMAP" => false,
            b"BMAP" => true,
            _ => return None,
        };
        let name = self.u32(at + 8)?;
        let count = self.uncounted(at + 16, at + 20, 8).filter(|count| *count <= MAX_MAP)?;
        self.take_once(offset, 8 * count)?;
        let entry = |index| Some((self.u32(at + 20 + 8 * index)?, self.u32(at + 24 + 8 * index)?));
        let entries = (0..count).map(entry).collect::<Option<_>>()?;
        let map = Arc::new(DeclaredMap {
            offset,
            name: self.name(name)?,
            is_bit_map,
            entries,
        });
        self.decoded.take(8 * count);
        self.decoded.maps.insert(offset, map.clone());
        Some(map)
    }
}
