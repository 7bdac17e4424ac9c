//! What of a chunk is a record, and not noise or a copy.

use std::ops::Range;
use std::sync::Arc;

use evtx_arrow::{ChunkRecovery, Decision, RecoveredRecord};
use evtx_format::container::record::Record;
use evtx_format::container::records::{Origin, PromisedIds, RecordWalk};
use evtx_format::{Error, ErrorKind};
use hashbrown::{HashMap, HashSet};

use crate::definitions::RestoredDefinitions;
use crate::orphans::INSTANCE;
use crate::stray_search::StrayChunk;

/// The state of a chunk from which records are recovered.
#[derive(Default)]
pub(crate) struct ChunkState {
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

impl ChunkState {
    /// That of a chunk in a slot of a file with these stray chunks.
    pub(crate) fn of_slot(stray_chunks: &Arc<[StrayChunk]>) -> Self {
        ChunkState {
            stray_chunks: Arc::clone(stray_chunks),
            ..ChunkState::default()
        }
    }

    /// That of a stray chunk.
    pub(crate) fn of_stray_chunk() -> Self {
        ChunkState {
            is_stray_chunk: true,
            ..ChunkState::default()
        }
    }

    /// That of a chunk of orphans, which start in a range of chunk offsets. `restored` are those that have lost
    /// definitions, by chunk offset.
    pub(crate) fn of_orphans(starts: Range<usize>, restored: HashMap<u32, RestoredDefinitions>) -> Self {
        ChunkState {
            orphans: Some(starts),
            restored,
            ..ChunkState::default()
        }
    }

    /// Whether a record was carved from a slot, but a stray chunk contains it.
    fn is_in_stray_chunk(&self, record: &RecoveredRecord<'_, '_>) -> bool {
        let offset = record.file_offset;
        let after = self.stray_chunks.partition_point(|stray| stray.offset <= offset);
        record.found.origin == Origin::Carved && after > 0 && self.stray_chunks[after - 1].contains(offset)
    }
}

impl ChunkRecovery for ChunkState {
    fn walk(&self, chunk: &[u8], promised: PromisedIds) -> (RecordWalk, Option<Error>) {
        if let Some(starts) = &self.orphans {
            return (RecordWalk::carving(chunk, starts.clone()), None);
        }
        let (walk, damage) = RecordWalk::new(chunk, promised, true);
        (if self.is_stray_chunk { walk.without_live() } else { walk }, damage)
    }

    fn decide(&mut self, read: &mut RecoveredRecord<'_, '_>) -> Decision {
        let (record, is_carved) = (read.found.record, read.found.origin == Origin::Carved);
        // A definition or a name of a record that may not be live was overwritten. This content is lost, but it is a record: it
        // was not carved, or it is a frame whose two sizes agree, around an instance.
        if self.orphans.is_some() && read.error().is_none() && has_other_event(read) {
            read.set_error(Error::new(record.binxml().start, ErrorKind::OtherEvent));
        }
        let binxml = read.chunk.get(record.binxml()).unwrap_or_default();
        let is_unreadable = read.error().is_some_and(|error| error.kind != ErrorKind::OtherEvent);
        let is_orphaned = read.found.origin.is_recovered() && read.has_foreign_definition()
            || is_carved && is_unreadable && binxml.starts_with(&INSTANCE);
        if is_carved && is_unreadable && !is_orphaned {
            // These bytes only looked like a record.
            return Decision::Noise;
        }
        let identity = (record.id, record.written);
        if is_carved && !read.is_again && self.seen.contains(&identity) {
            return Decision::Drop;
        }
        if !is_unreadable || is_orphaned {
            self.seen.insert(identity);
        }
        if self.is_in_stray_chunk(read) {
            Decision::Drop
        } else if is_orphaned {
            let system = has_its_event(read);
            Decision::KeepWithoutNames { system }
        } else {
            Decision::Keep
        }
    }

    fn damage(&self, record: &Record, damage: Option<Error>) -> Option<Error> {
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

    /// The record may have the definition of another.
    fn describe(&self, record: &Record, error: Error, mut text: String) -> String {
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

/// Whether the event of a record is read by its own definition, and has the ID and the time in the record's header.
#[cold]
fn has_its_event(read: &RecoveredRecord<'_, '_>) -> bool {
    let (id, time) = read.id_and_time();
    let record = &read.found.record;
    read.has_own_definition() && id.flatten() == Some(record.id) && time.flatten() == record.written_nanos()
}

/// Whether the event of a record has another ID or time than the record's header.
#[cold]
fn has_other_event(read: &RecoveredRecord<'_, '_>) -> bool {
    let (id, time) = read.id_and_time();
    let record = &read.found.record;
    id.is_some_and(|id| id != Some(record.id)) || time.is_some_and(|time| time != record.written_nanos())
}
