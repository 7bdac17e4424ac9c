//! The template definitions of a scan's chunks, for orphans that have lost theirs.
//!
//! An orphan keeps the ID of its template, the first four bytes of the GUID, and the chunk offset at which the definition
//! was. If all chunks of the scan agree on what template has this ID, a copy of its definition is placed there.

use std::ops::Range;

use bumpalo::Bump;
use evtx_format::binxml::instance::{Definition, Instance};
use evtx_format::binxml::names::Names;
use evtx_format::binxml::tree::Element;
use evtx_format::binxml::{Fragment, Reader};
use evtx_format::container::chunk::{CHUNK_HEADER, CHUNK_SIZE, SECTOR};
use evtx_format::container::image::find_chunk;
use evtx_format::container::orphans::find_orphan;
use evtx_format::container::record::Record;
use evtx_format::container::records::{PromisedIds, RecordWalk};
use evtx_format::{Interrupt, Interrupted};
use hashbrown::{HashMap, HashSet};

use crate::plan::TemplateContent;

/// The most bytes of definitions that are kept. Those of all logs of a machine take one or two MiB.
const MAX_BYTES: usize = 16 << 20;

/// The most copies of a definition that are kept. They differ in which names they contain.
const MAX_COPIES: usize = 16;

/// The template definitions of the chunks of a scan.
#[derive(Debug, Default)]
pub struct Definitions {
    /// By template ID.
    known: HashMap<u32, Known>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Known {
    /// The copies of the definition, each with the GUID of the template.
    copies: Vec<([u8; 16], TemplateContent)>,
    /// Whether different templates have the ID.
    is_contested: bool,
}

/// A reference of an orphan to a definition that is not there, or whose names are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LostDefinition {
    /// The chunk offset of the record.
    record: u32,
    reference: Reference,
}

/// The chunk offset of a definition, and its template ID.
type Reference = (u32, u32);

/// The instance of an event, and those in its values.
fn instances<'a>(reader: &Reader<'a, '_>, binxml: Range<usize>) -> impl Iterator<Item = Instance<'a>> {
    let first = |stream| match reader.next_fragment(&mut reader.fragments(stream)) {
        Some(Ok(Fragment::Instance(instance))) => Some(instance),
        _ => None,
    };
    let event = first(binxml);
    let values = event.into_iter().flat_map(|event| event.values.compound_slots());
    let inner = values.filter_map(move |(_, slot)| first(slot.stream()?));
    event.into_iter().chain(inner)
}

/// The definition to which a reference leads, if it is there.
fn definition_at(chunk: &[u8], (offset, template_id): Reference) -> Option<Definition> {
    let definition = Definition::read(chunk, offset).ok()?;
    (definition.template_id() == template_id).then_some(definition)
}

impl LostDefinition {
    /// The lost definitions of the records in a chunk of orphans.
    pub(super) fn all(chunk: &[u8], interrupt: Interrupt<'_>) -> Result<Vec<Self>, Interrupted> {
        let (mut lost, mut at) = (Vec::new(), CHUNK_HEADER);
        let arena = Bump::new();
        let names = Names::new(chunk, &arena);
        let reader = Reader::new(chunk, &names, &arena);
        let is_sound = |reference| {
            let reader = Reader::new(chunk, &names, &arena);
            let definition = definition_at(chunk, reference);
            definition.is_some_and(|it| reader.template(&it).is_ok() && reader.unsound_name().is_none())
        };
        let mut known = HashMap::new();
        while let Some(start) = find_orphan(chunk, at..chunk.len())
            && let Ok(record) = Record::read(chunk, start)
        {
            interrupt.check()?;
            reader.begin(record.binxml().len());
            for instance in instances(&reader, record.binxml()) {
                let (record, reference) = (record.offset, (instance.definition, instance.template_id));
                if !*known.entry(reference).or_insert_with(|| is_sound(reference)) {
                    lost.push(LostDefinition { record, reference });
                }
            }
            at = record.end();
        }
        Ok(lost)
    }
}

impl Definitions {
    /// Adds the definitions to which the live records of chunks refer: those chunks that start in the first `starts` bytes,
    /// which begin at a multiple of [`SECTOR`] bytes of their file.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub fn collect(&mut self, bytes: &[u8], starts: usize, interrupt: Interrupt<'_>) -> Result<(), Interrupted> {
        let (mut arena, mut at) = (Bump::new(), 0);
        while let Some(start) = find_chunk(bytes, at..starts.min(bytes.len()), 0) {
            self.collect_chunk(&bytes[start..bytes.len().min(start + CHUNK_SIZE)], &arena, interrupt)?;
            arena.reset();
            at = start + SECTOR;
        }
        Ok(())
    }

    fn collect_chunk(&mut self, chunk: &[u8], arena: &Bump, interrupt: Interrupt<'_>) -> Result<(), Interrupted> {
        let names = Names::new(chunk, arena);
        let reader = Reader::new(chunk, &names, arena);
        let (mut walk, _) = RecordWalk::new(chunk, PromisedIds::default(), false);
        let mut seen = HashSet::new();
        while let Some(found) = walk.next(chunk) {
            interrupt.check()?;
            let Ok(found) = found else { continue };
            let binxml = found.record.binxml();
            reader.begin(binxml.len());
            for instance in instances(&reader, binxml) {
                if seen.insert(instance.definition)
                    && let Some(definition) = definition_at(chunk, (instance.definition, instance.template_id))
                {
                    self.add(chunk, &definition, &Reader::new(chunk, &names, arena));
                }
            }
        }
        Ok(())
    }

    /// Adds a definition, if all of it is sound.
    fn add(&mut self, chunk: &[u8], definition: &Definition, reader: &Reader<'_, '_>) {
        let known = self.known.get(&definition.template_id());
        let is_known = |known: &Known| known.is_contested || known.has(chunk, definition);
        if known.is_some_and(is_known) {
            return;
        }
        let Ok(template) = reader.template(definition) else {
            return;
        };
        let is_damaged = reader.unsound_name().is_some() || reader.misplaced().is_some();
        if is_damaged || !template.self_contained {
            return;
        }
        if known.is_some_and(|known| !known.is_of(definition.guid, template.root)) {
            self.known.insert(
                definition.template_id(),
                Known {
                    copies: Vec::new(),
                    is_contested: true,
                },
            );
            return;
        }
        let Ok(content) = TemplateContent::new(chunk, definition, &template) else {
            return;
        };
        let bytes = content.bytes() + size_of::<(u32, Known)>();
        if self.bytes + bytes <= MAX_BYTES && known.is_none_or(|known| known.copies.len() < MAX_COPIES) {
            self.bytes += bytes;
            let known = self.known.entry(definition.template_id()).or_default();
            known.copies.push((definition.guid, content));
        }
    }

    /// Places copies of lost definitions and names where they were in a chunk of orphans, if that is in its `free` bytes.
    /// The names of such a copy follow the chunk. Returns the chunk offsets of the records that refer to one.
    pub(super) fn lend(&self, lost: &[LostDefinition], chunk: &mut Vec<u8>, free: Range<usize>) -> Vec<u32> {
        // Definitions first: the names of others can be in them.
        let mut in_order: Vec<_> = lost.iter().collect();
        in_order.sort_by_key(|lost| definition_at(chunk, lost.reference).is_some());
        let mut taken: Vec<Range<usize>> = Vec::new();
        let mut take = |place: Range<usize>| {
            let overlaps = |other: &Range<usize>| other.start < place.end && place.start < other.end;
            let is_free = free.start <= place.start && place.end <= free.end && !taken.iter().any(overlaps);
            taken.extend(is_free.then_some(place));
            is_free
        };
        let mut place = |lost: &LostDefinition| {
            let known = self.known.get(&lost.reference.1);
            let copies = known.map_or(&[][..], |known| &known.copies);
            if let Some(definition) = definition_at(chunk, lost.reference) {
                // Only names are lost.
                let names = copies
                    .iter()
                    .find_map(|(_, content)| content.lost_names(chunk, &definition));
                return names.is_some_and(|names| {
                    let are_free = names.iter().all(|(place, _)| take(place.clone()));
                    names
                        .into_iter()
                        .filter(|_| are_free)
                        .for_each(|(place, name)| chunk[place].copy_from_slice(name));
                    are_free
                });
            }
            // The copy with the fewest names in it takes the least room.
            let copy = copies.iter().min_by_key(|(_, content)| content.size());
            copy.is_some_and(|(guid, content)| {
                let start = lost.reference.0 as usize;
                let is_free = take(start..start + content.size());
                if is_free {
                    content.place(*guid, chunk, start);
                }
                is_free
            })
        };
        let mut placed = HashMap::new();
        for lost in in_order {
            placed.entry(lost.reference).or_insert_with(|| place(lost));
        }
        lost.iter()
            .filter(|lost| placed[&lost.reference])
            .map(|lost| lost.record)
            .collect()
    }
}

impl Known {
    fn has(&self, chunk: &[u8], definition: &Definition) -> bool {
        let mut copies = self.copies.iter();
        copies.any(|(guid, content)| *guid == definition.guid && content.matches(chunk, definition))
    }

    /// Whether the copies are of the template with this GUID and tree.
    fn is_of(&self, guid: [u8; 16], root: &Element<'_>) -> bool {
        self.copies.first().is_none_or(|(known, content)| {
            let (mut chunk, arena) = (vec![0; content.size()], Bump::new());
            content.place(*known, &mut chunk, 0);
            let names = Names::new(&chunk, &arena);
            let reader = Reader::new(&chunk, &names, &arena);
            let tree = Definition::read(&chunk, 0).and_then(|definition| reader.template(&definition));
            *known == guid && tree.is_ok_and(|template| template.root == root)
        })
    }
}
