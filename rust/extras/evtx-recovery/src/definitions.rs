//! The template definitions of a scan's chunks, for orphans that have lost theirs.
//!
//! An orphan keeps the ID of its template, the first four bytes of the GUID. If all chunks of the scan agree on what template
//! has this ID, a copy of its definition is appended to the chunk of orphans, and the orphan refers to the copy.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bumpalo::Bump;
use evtx_format::binxml::instance::{DEFINITION_HEADER, Definition, Instance};
use evtx_format::binxml::names::Names;
use evtx_format::binxml::template_content::{TemplateContent, reference};
use evtx_format::binxml::tree::{Element, Node};
use evtx_format::binxml::{Fragment, Reader};
use evtx_format::container::chunk::{CHUNK_HEADER, CHUNK_SIZE, SECTOR};
use evtx_format::container::record::Record;
use evtx_format::container::records::{PromisedIds, RecordWalk};
use evtx_format::{Interrupt, Interrupted};
use hashbrown::{HashMap, HashSet};

use crate::find_chunk::find_chunk;
use crate::orphans::{INSTANCE, find_orphan};

/// The most bytes of definitions that are kept. Those of all logs of a machine take one or two MiB.
const MAX_BYTES: usize = 16 << 20;

/// The most copies of a definition that are kept. They differ in which names they contain.
const MAX_COPIES: usize = 16;

/// The template definitions of the chunks of a scan.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    /// By template ID.
    known: HashMap<u32, Known>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Known {
    copies: Vec<KeptCopy>,
    /// Whether different templates have the ID.
    is_contested: bool,
}

/// A copy of a definition.
#[derive(Debug)]
struct KeptCopy {
    guid: [u8; 16],
    content: TemplateContent,
    /// How many values an instance has at least.
    values: u16,
    /// The log that it is from.
    filename: Arc<str>,
}

/// The definitions of the logs of a scan, for all of its threads.
#[derive(Debug, Default)]
pub(crate) struct SharedDefinitions {
    /// Set once they are collected.
    pub(crate) known: OnceLock<Definitions>,
    /// Set if the scan can collect them.
    can_be_collected: AtomicBool,
}

impl SharedDefinitions {
    /// Says that the scan can collect them.
    pub(crate) fn allow(&self) {
        self.can_be_collected.store(true, Ordering::Relaxed);
    }

    pub(crate) fn can_be_collected(&self) -> bool {
        self.can_be_collected.load(Ordering::Relaxed)
    }
}

/// A reference of an orphan to a definition that is not there, or whose names are not.
#[derive(Debug)]
pub(crate) struct LostDefinition {
    /// The chunk offset of the record.
    record: u32,
    reference: Reference,
    /// The chunk offset of the reference's u32, if it is where Windows writes it.
    at: Option<usize>,
    /// How many values the instance has.
    values: u16,
}

/// The chunk offset of a definition, and its template ID.
type Reference = (u32, u32);

/// Which definitions a record that has lost some is read by.
#[derive(Debug, Default)]
pub(crate) struct RestoredDefinitions {
    /// Whether a definition is in no chunk, or in several that differ.
    pub(crate) is_missing: bool,
    /// The log whose definition was used.
    pub(crate) from: Option<Arc<str>>,
}

/// The instance of an event, and those in its values, each with the chunk offset of its stream.
fn instances<'a>(reader: &Reader<'a, '_>, binxml: Range<usize>) -> impl Iterator<Item = (usize, Instance<'a>)> {
    let first = |stream: Range<usize>| match reader.next_fragment(&mut reader.fragments(stream.clone())) {
        Some(Ok(Fragment::Instance(instance))) => Some((stream.start, instance)),
        _ => None,
    };
    let event = first(binxml);
    let values = event.into_iter().flat_map(|(_, event)| event.values.compound());
    let inner = values.filter_map(move |(_, slot)| first(slot.stream()?));
    event.into_iter().chain(inner)
}

/// How many values an element needs.
///
/// Recurses once per level of the tree; [`MAX_OPEN_ELEMENTS`](evtx_format::MAX_OPEN_ELEMENTS) bounds the levels.
fn values_of(element: &Element<'_>) -> u16 {
    let of_node = |node: &Node<'_>| match node {
        Node::Substitution(substitution) => substitution.index.saturating_add(1),
        node => node.elements().map(values_of).max().unwrap_or(0),
    };
    let attributes = element.attributes.iter().flat_map(|attribute| attribute.content);
    attributes.chain(element.content).map(of_node).max().unwrap_or(0)
}

/// The definition to which a reference leads, if it is there.
fn definition_at(chunk: &[u8], (offset, template_id): Reference) -> Option<Definition> {
    let definition = Definition::read(chunk, offset).ok()?;
    (definition.template_id() == template_id).then_some(definition)
}

impl LostDefinition {
    /// The lost definitions of the records in a chunk of orphans.
    pub(crate) fn all(chunk: &[u8], interrupt: Interrupt<'_>) -> Result<Vec<Self>, Interrupted> {
        let (mut lost, mut at) = (Vec::new(), CHUNK_HEADER);
        let arena = Bump::new();
        let names = Names::new(chunk, &arena);
        let reader = Reader::new(chunk, &names, &arena);
        let is_valid = |reference| {
            let reader = Reader::new(chunk, &names, &arena);
            let definition = definition_at(chunk, reference);
            definition.is_some_and(|it| reader.template(&it).is_ok() && reader.invalid_name().is_none())
        };
        let mut known = HashMap::new();
        while let Some(start) = find_orphan(chunk, at..chunk.len())
            && let Ok(record) = Record::read(chunk, start)
        {
            interrupt.check()?;
            reader.begin(record.binxml().len());
            for (stream, instance) in instances(&reader, record.binxml()) {
                let reference = (instance.definition, instance.template_id);
                if !*known.entry(reference).or_insert_with(|| is_valid(reference)) {
                    let is_usual = chunk[stream..].starts_with(&INSTANCE);
                    lost.push(LostDefinition {
                        record: record.offset,
                        reference,
                        at: is_usual.then_some(stream + INSTANCE.len() + 4),
                        values: instance.values.count(),
                    });
                }
            }
            at = record.end();
        }
        Ok(lost)
    }
}

impl Definitions {
    /// Adds the definitions to which the live records of a log's chunks refer: those chunks that start in the first `starts`
    /// bytes, which begin at a multiple of [`SECTOR`] bytes of the log.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub(crate) fn collect(
        &mut self,
        filename: &Arc<str>,
        bytes: &[u8],
        starts: usize,
        interrupt: Interrupt<'_>,
    ) -> Result<(), Interrupted> {
        let (mut arena, mut at) = (Bump::new(), 0);
        while let Some(start) = find_chunk(bytes, at..starts.min(bytes.len()), 0) {
            let chunk = &bytes[start..bytes.len().min(start + CHUNK_SIZE)];
            self.collect_chunk(filename, chunk, &arena, interrupt)?;
            arena.reset();
            at = start + SECTOR;
        }
        Ok(())
    }

    fn collect_chunk(
        &mut self,
        filename: &Arc<str>,
        chunk: &[u8],
        arena: &Bump,
        interrupt: Interrupt<'_>,
    ) -> Result<(), Interrupted> {
        let names = Names::new(chunk, arena);
        let reader = Reader::new(chunk, &names, arena);
        let (mut walk, _) = RecordWalk::new(chunk, PromisedIds::default(), false);
        let mut seen = HashSet::new();
        while let Some(found) = walk.next(chunk) {
            interrupt.check()?;
            let Ok(found) = found else { continue };
            let binxml = found.record.binxml();
            reader.begin(binxml.len());
            for (_, instance) in instances(&reader, binxml) {
                if seen.insert(instance.definition)
                    && let Some(definition) = definition_at(chunk, (instance.definition, instance.template_id))
                {
                    self.add(filename, chunk, &definition, &Reader::new(chunk, &names, arena));
                }
            }
        }
        Ok(())
    }

    /// Adds a definition, if all of it is valid.
    fn add(&mut self, filename: &Arc<str>, chunk: &[u8], definition: &Definition, reader: &Reader<'_, '_>) {
        let known = self.known.get(&definition.template_id());
        let is_known = |known: &Known| known.is_contested || known.has(chunk, definition);
        if known.is_some_and(is_known) {
            return;
        }
        let Ok(template) = reader.template(definition) else {
            return;
        };
        let is_damaged = reader.invalid_name().is_some() || reader.misplaced().is_some();
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
            known.copies.push(KeptCopy {
                guid: definition.guid,
                content,
                values: values_of(template.root),
                filename: Arc::clone(filename),
            });
        }
    }

    /// Appends copies of lost definitions and names to a chunk of orphans, and lets the records refer to them. Returns what
    /// became of these records, by their chunk offset.
    pub(crate) fn restore(&self, lost: &[LostDefinition], chunk: &mut Vec<u8>) -> HashMap<u32, RestoredDefinitions> {
        let (mut appended, mut records) = (HashMap::new(), HashMap::<u32, RestoredDefinitions>::new());
        for lost in lost {
            let known = self.known.get(&lost.reference.1);
            let copies = known.map_or(&[][..], |known| &known.copies);
            let own = lost.reference.0 as usize;
            let mut append = || {
                // Perhaps only names are lost.
                let completed = definition_at(chunk, lost.reference)
                    .and_then(|definition| copies.iter().find(|copy| copy.complete(chunk, &definition)));
                match completed {
                    Some(copy) => Some((copy, own)),
                    None => copies.first().map(|copy| (copy, copy.append(chunk))),
                }
            };
            let found = *appended.entry(lost.reference).or_insert_with(&mut append);
            // A record that contains the definition cannot refer to another one.
            let is_usable = |(copy, offset): &(&KeptCopy, usize)| {
                lost.values >= copy.values && (*offset == own || lost.at != own.checked_sub(4))
            };
            let record = records.entry(lost.record).or_default();
            if let (Some((copy, offset)), Some(at)) = (found.filter(is_usable), lost.at) {
                chunk[at..at + 4].copy_from_slice(&(offset as u32).to_le_bytes());
                record.from = Some(Arc::clone(&copy.filename));
            } else {
                record.is_missing = true;
            }
        }
        records
    }
}

impl KeptCopy {
    /// Appends a copy of the definition to a chunk, with its names. Returns its chunk offset.
    fn append(&self, chunk: &mut Vec<u8>) -> usize {
        let at = chunk.len();
        chunk.extend_from_slice(&[0; 4]);
        chunk.extend_from_slice(&self.guid);
        chunk.extend_from_slice(&(self.content.body.len() as u32).to_le_bytes());
        chunk.extend_from_slice(&self.content.body);
        self.append_names(chunk, at + DEFINITION_HEADER);
        at
    }

    /// Appends the names that a definition of a chunk has lost. Returns false, and does nothing, if the definition is not
    /// another copy.
    fn complete(&self, chunk: &mut Vec<u8>, definition: &Definition) -> bool {
        let is_copy = self.content.agrees(chunk, definition, |_, _| true);
        if is_copy {
            self.append_names(chunk, definition.body as usize);
        }
        is_copy
    }

    fn append_names(&self, chunk: &mut Vec<u8>, body: usize) {
        let mut name_at = 0;
        for known in &self.content.refs {
            let (name, at) = (&self.content.names[name_at..known.end], body + known.at);
            name_at = known.end;
            let (offset, _) = reference(chunk, at);
            let start = offset as usize + 4;
            let offset = if known.inline {
                at + 4
            } else if chunk.get(start..start + name.len()) == Some(name) {
                continue;
            } else {
                let end = chunk.len();
                chunk.extend_from_slice(&[0; 4]);
                chunk.extend_from_slice(name);
                chunk.extend_from_slice(&[0; 2]);
                end
            };
            chunk[at..at + 4].copy_from_slice(&(offset as u32).to_le_bytes());
        }
    }
}

impl Known {
    fn has(&self, chunk: &[u8], definition: &Definition) -> bool {
        let mut copies = self.copies.iter();
        copies.any(|copy| copy.guid == definition.guid && copy.content.matches(chunk, definition))
    }

    /// Whether the copies are of the template with this GUID and tree.
    fn is_of(&self, guid: [u8; 16], root: &Element<'_>) -> bool {
        self.copies.first().is_none_or(|known| {
            let (mut chunk, arena) = (Vec::new(), Bump::new());
            known.append(&mut chunk);
            let names = Names::new(&chunk, &arena);
            let reader = Reader::new(&chunk, &names, &arena);
            let tree = Definition::read(&chunk, 0).and_then(|definition| reader.template(&definition));
            known.guid == guid && tree.is_ok_and(|template| template.root == root)
        })
    }
}
