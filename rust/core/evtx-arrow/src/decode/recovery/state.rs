//! What of a chunk is a record, and not noise or a copy.

use std::ops::Range;
use std::sync::Arc;

use evtx_format::container::layout::StrayChunk;
use evtx_format::container::orphans::INSTANCE;
use evtx_format::container::record::Record;
use evtx_format::container::records::{FoundRecord, Origin, RecordWalk};
use evtx_format::{Error, ErrorKind};
use hashbrown::{HashMap, HashSet};

use super::definitions::RestoredDefinitions;
use crate::decode::location::ChunkLocation;
use crate::read::RecordReader;
use crate::record::{ChunkTemplates, RecordGroup, RecordSection, SectionContent};
use crate::scan::Scan;
use crate::schema::{EVENT_RECORD_ID, TIME_CREATED};

/// The state of a chunk from which records are recovered.
#[derive(Default)]
pub(crate) struct Recovery {
    /// The stray chunks of the file, by offset.
    stray_chunks: Arc<[StrayChunk]>,
    /// Whether it is one of them. None of its records counts as live.
    is_stray_chunk: bool,
    /// If it is a chunk of orphans: where in it they start.
    orphans: Option<Range<usize>>,
    /// The orphans that have lost definitions, by chunk offset.
    restored: HashMap<u32, RestoredDefinitions>,
    /// The IDs and times of the records that were read. The free space can have copies of them.
    seen: HashSet<(u64, u64)>,
}

impl Recovery {
    /// That of a chunk in a slot of a file with these stray chunks.
    pub(crate) fn of_slot(stray_chunks: &Arc<[StrayChunk]>) -> Self {
        Recovery {
            stray_chunks: Arc::clone(stray_chunks),
            ..Recovery::default()
        }
    }

    /// That of a stray chunk.
    pub(crate) fn of_stray_chunk() -> Self {
        Recovery {
            is_stray_chunk: true,
            ..Recovery::default()
        }
    }

    /// That of a chunk of orphans, which start in a range of chunk offsets. `restored` are those that have lost
    /// definitions, by chunk offset.
    pub(crate) fn of_orphans(starts: Range<usize>, restored: HashMap<u32, RestoredDefinitions>) -> Self {
        Recovery {
            orphans: Some(starts),
            restored,
            ..Recovery::default()
        }
    }

    /// The walk over the records of the chunk, if they are orphans.
    pub(crate) fn walk(&self, chunk: &[u8]) -> Option<RecordWalk> {
        let starts = self.orphans.clone()?;
        Some(RecordWalk::of_orphans(chunk, starts))
    }

    /// The origin of a record in the chunk.
    pub(crate) fn origin(&self, found: Origin) -> Origin {
        match found {
            Origin::Live if self.is_stray_chunk => Origin::Recovered,
            found => found,
        }
    }

    /// Whether the bytes of the current record are a record, and not a copy of one that was read before.
    pub(crate) fn recovers<'r>(
        &mut self,
        reader: &RecordReader<'r, '_>,
        group: &mut RecordGroup<'r>,
        templates: &ChunkTemplates,
        (found, is_again): (&FoundRecord, bool),
        (records, location): (&mut RecordWalk, &ChunkLocation),
    ) -> bool {
        let (record, is_carved) = (&found.record, found.origin == Origin::Carved);
        let has_instance = || {
            let binxml = reader.chunk.get(record.binxml());
            binxml.is_some_and(|binxml| binxml.starts_with(&INSTANCE))
        };
        // A definition or a name of a record that may not be live was overwritten. This content is lost, but it is a record: it
        // was not carved, or it is a frame whose two sizes agree, around an instance.
        if self.orphans.is_some() && group.error.is_none() && has_other_event(reader.scan, group, templates, record) {
            group.error = Some(Error::new(record.binxml().start, ErrorKind::OtherEvent));
        }
        let is_unreadable = group.error.is_some_and(|error| error.kind != ErrorKind::OtherEvent);
        let is_orphaned = found.origin.is_recovered() && group.foreign_definition.is_some()
            || is_carved && is_unreadable && has_instance();
        if is_orphaned {
            let has_event = has_its_event(reader.scan, group, templates, record);
            if has_event {
                group.keep_paths();
            } else {
                group.keep_sections(0);
            }
            reader.add_texts(templates, group, record.binxml(), !has_event);
        }
        if is_carved && is_unreadable && !is_orphaned {
            // These bytes only looked like a record.
            records.reject(record);
            return false;
        }
        let identity = (record.id, record.written);
        if is_carved && !is_again && self.seen.contains(&identity) {
            return false;
        }
        if !is_unreadable || is_orphaned {
            self.seen.insert(identity);
        }
        !self.is_in_stray_chunk(found, location)
    }

    /// Whether a record was carved from a slot, but a stray chunk contains it.
    fn is_in_stray_chunk(&self, found: &FoundRecord, location: &ChunkLocation) -> bool {
        if found.origin != Origin::Carved || location.slot.is_none() {
            return false;
        }
        let offset = location.file_offset(found.record.offset);
        let after = self.stray_chunks.partition_point(|stray| stray.offset <= offset);
        after > 0 && self.stray_chunks[after - 1].contains(offset)
    }

    /// What is wrong with a record, which may have lost definitions.
    pub(crate) fn damage(&self, record: &Record, damage: Option<Error>) -> Option<Error> {
        let Some(restored) = self.restored.get(&record.offset) else {
            return damage;
        };
        let error = |kind| Some(Error::new(record.binxml().start, kind));
        if restored.is_missing {
            error(ErrorKind::LostDefinition)
        } else {
            damage.or(error(ErrorKind::RestoredDefinition))
        }
    }

    /// The text of the error of a record, which may have the definition of another.
    #[cold]
    pub(crate) fn describe(&self, record: &Record, error: Error, mut text: String) -> String {
        let restored = self.restored.get(&record.offset);
        if let Some(from) = restored.and_then(|restored| restored.from.as_ref()) {
            if error.kind != ErrorKind::RestoredDefinition {
                text = format!("{text}; {}", ErrorKind::RestoredDefinition);
            }
            text = format!("{text}: that of {from}");
        }
        text
    }
}

/// The record ID and the time in the event of the current record: `None` if the event has no such element, `Some(None)` if
/// the element has another value.
fn id_and_time(
    scan: &Scan,
    group: &RecordGroup<'_>,
    templates: &ChunkTemplates,
) -> (Option<Option<u64>>, Option<Option<i64>>) {
    let values = group.current().path_values(templates);
    let at = |path| scan.projection.path_id(path).and_then(|path| values.get(path));
    (
        at(EVENT_RECORD_ID).map(|id| id.number()),
        at(TIME_CREATED).map(|time| time.nanos()),
    )
}

/// Whether the event of the current record is read by its own definition: it names the definition, whose names are
/// valid, and has the ID and the time in the record's header.
#[cold]
fn has_its_event(scan: &Scan, group: &RecordGroup<'_>, templates: &ChunkTemplates, record: &Record) -> bool {
    let Some(&RecordSection {
        content: SectionContent::Instance(instance),
        ..
    }) = group.current().event()
    else {
        return false;
    };
    let event = group.current().event_template(templates);
    let is_own = event.is_some_and(|(compiled, _)| compiled.fault(&instance).is_none());
    let (id, time) = id_and_time(scan, group, templates);
    is_own && id.flatten() == Some(record.id) && time.flatten() == record.written_nanos()
}

/// Whether the event of the current record has another ID or time than the record's header.
#[cold]
fn has_other_event(scan: &Scan, group: &RecordGroup<'_>, templates: &ChunkTemplates, record: &Record) -> bool {
    let (id, time) = id_and_time(scan, group, templates);
    id.is_some_and(|id| id != Some(record.id)) || time.is_some_and(|time| time != record.written_nanos())
}
