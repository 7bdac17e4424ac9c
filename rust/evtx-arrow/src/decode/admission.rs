//! Admission: reads a record, and decides in stages whether it becomes a row.
//!
//! 1. The header: predicates on it, before anything else is read.
//! 2. The parts of the event: predicates on `System`, and whether the finder can find something.
//! 3. The whole record: what is damaged, the other predicates, and what the finder finds.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use evtx_format::container::layout::Stray;
use evtx_format::container::orphans::INSTANCE;
use evtx_format::container::record::Record;
use evtx_format::container::records::{FoundRecord, Origin};
use evtx_format::render::program::Language;
use evtx_format::{Error, ErrorKind, Interrupt, Interrupted};

use super::batch::{BareRow, BatchBuilder};
use super::definitions::Lent;
use super::error::DecodeError;
use super::place::ChunkPlace;
use super::walk::ChunkWalk;
use crate::columns::Rendering;
use crate::extra::RowFinder;
use crate::filter::{PushText, Row, Scratch, Stage};
use crate::read::{RecordReader, render};
use crate::record::{ChunkTemplates, Part, PartContent, ReadRecord, RecordGroup, RecordHeader};
use crate::scan::Scan;
use crate::schema::{EVENT_RECORD_ID, OnError, TIME_CREATED};

pub(super) struct Admission {
    pub(super) place: ChunkPlace,
    /// The stray chunks of the file, by offset.
    pub(super) strays: Arc<[Stray]>,
    pub(super) templates: ChunkTemplates,
    /// Finds what becomes a row; `None` if each record is one.
    pub(super) finder: Option<Box<dyn RowFinder>>,
    pub(super) scratch: Scratch,
}

/// The current record, as far as it was read, for a predicate.
struct CurrentRecord<'g, 'r> {
    group: &'g RecordGroup<'r>,
    interrupt: Interrupt<'g>,
    /// Whether it is so damaged that its event is not known.
    is_unread: bool,
    push_text: Option<PushText<'g>>,
}

impl Admission {
    #[inline(always)]
    pub(super) fn keeps_header(&mut self, scan: &Scan, found: &FoundRecord) -> bool {
        if self.finder.is_some() && !self.begins(found) {
            return false;
        }
        // With `recover` every record is read: only that distinguishes records from noise and from their copies.
        scan.options.recover || scan.sees_all || self.keeps(scan, Stage::Header, Stage::Header, found, None)
    }

    // Kept out of line, so that scans without a finder stay fast.
    #[inline(never)]
    fn begins(&mut self, found: &FoundRecord) -> bool {
        let header = RecordHeader::new(&found.record, self.place.file_offset(found.record.offset));
        self.finder.as_mut().is_none_or(|finder| finder.begin(&header))
    }

    /// Reads a record, and returns whether it is kept. `is_again` is whether a batch was full before all its findings had rows.
    pub(super) fn admit<'r, 'c: 'r>(
        &mut self,
        reader: &RecordReader<'r, 'c>,
        group: &mut RecordGroup<'r>,
        found: &FoundRecord,
        is_again: bool,
        walk: &mut ChunkWalk,
        batch: &mut BatchBuilder,
    ) -> Result<bool, DecodeError> {
        let (scan, interrupt, record) = (reader.scan, reader.interrupt, &found.record);
        reader.read_event(&mut self.templates, group, record.binxml());
        let has_system = group.current().has_system(&self.templates);
        // A record whose event is not known may be of one of the events of the table.
        let is_unread = group.current().parts.is_empty() || group.error.is_some() && !has_system;
        let undecided = first_undecided(scan, has_system);
        if undecided == Stage::Record && !scan.sees_all {
            let current = CurrentRecord {
                group,
                interrupt,
                is_unread,
                // The values of the streams are not read yet.
                push_text: None,
            };
            if !self.keeps(scan, Stage::Event, Stage::Event, found, Some(current)) {
                return Ok(false);
            }
        }
        if (!has_system || scan.validates_all || scan.reads_children)
            && !self.read_rest(reader, group, undecided == Stage::Record && !found.is_damaged)?
        {
            return Ok(false);
        }
        if group.error.is_none() && group.current().parts.is_empty() {
            group.error = Some(Error::new(record.binxml().start, ErrorKind::NoEvent));
        }
        if scan.options.recover
            && (!recovers(reader, group, &self.templates, found, is_again, walk) || self.is_left_to_stray(found))
        {
            return Ok(false);
        }
        let damage = self.damage(reader, group, found, walk)?;
        let on_error = scan.options.on_error;
        // The first damage ends such a scan, even in a record that a predicate drops.
        if on_error == OnError::Fail
            && let Some(error) = damage
        {
            return Err(DecodeError::Damaged(self.place.describe_in(record, error)));
        }
        let mut error = damage.filter(|_| scan.validates_all);
        let is_skipped = error.is_some() && on_error == OnError::Skip;
        // A predicate chooses rows, but such a finder sees every record.
        let found_before = if scan.sees_all && !is_again && !is_skipped {
            Some(self.finds(reader, group, found, error.is_some())?)
        } else {
            None
        };
        let view = group.current();
        let current = CurrentRecord {
            group,
            interrupt,
            is_unread,
            push_text: Some(&|templates, out| {
                render(reader, templates, None, view, Rendering::Event(Language::Text), out) == Ok(true)
            }),
        };
        let from = if scan.sees_all { Stage::Header } else { undecided };
        if !self.keeps(scan, from, Stage::Record, found, Some(current)) || is_skipped {
            return Ok(false);
        }
        if !is_again {
            let is_found = match found_before {
                Some(is_found) => is_found,
                None => self.finds(reader, group, found, error.is_some())?,
            };
            // A match may be lost with what is damaged. So there is a row.
            if !is_found && error.is_none_or(|error| error.kind == ErrorKind::LentDefinition) {
                return Ok(false);
            }
        }
        // A text that is too long is NULL, but the row stays, even with `skip`: the number of rows must not depend on
        // whether the text is read.
        if let Err(too_long) = batch.push_texts(reader, &self.templates, group) {
            error.get_or_insert(too_long);
        }
        if let Some(error) = error {
            let text = self.describe(record, error, walk.lent.get(&record.offset));
            if on_error == OnError::Fail {
                return Err(DecodeError::Damaged(text));
            }
            group.report(text);
        }
        Ok(true)
    }

    /// What is wrong with the current record, as far as it is reported.
    #[inline(always)]
    fn damage(
        &mut self,
        reader: &RecordReader<'_, '_>,
        group: &RecordGroup<'_>,
        found: &FoundRecord,
        walk: &ChunkWalk,
    ) -> Result<Option<Error>, Interrupted> {
        let frame_damage = walk.records.damage().filter(|_| found.is_damaged);
        let mut damage = frame_damage.or(group.error).or_else(|| reader.unread());
        if let Some(lent) = walk.lent.get(&found.record.offset) {
            let error = |kind| Some(Error::new(found.record.binxml().start, kind));
            damage = if lent.is_missing {
                error(ErrorKind::LostDefinition)
            } else {
                damage.or(error(ErrorKind::LentDefinition))
            };
        }
        if damage.is_none() && self.place.doubt(&found.record).is_some() {
            damage = Some(Error::new(0, ErrorKind::Doubted));
        }
        if damage.is_some() && !self.reports_damage(reader.chunk, reader.interrupt)? {
            damage = None;
        }
        Ok(damage)
    }

    /// The text of the error of a record, which may have the definition of another.
    #[cold]
    fn describe(&self, record: &Record, error: Error, lent: Option<&Lent>) -> String {
        let mut text = self.place.describe_in(record, error);
        if let Some(from) = lent.and_then(|lent| lent.from.as_ref()) {
            if error.kind != ErrorKind::LentDefinition {
                text = format!("{text}; {}", ErrorKind::LentDefinition);
            }
            text = format!("{text}: that of {from}");
        }
        text
    }

    /// Whether a record was carved from a slot, but a stray chunk contains it.
    fn is_left_to_stray(&self, found: &FoundRecord) -> bool {
        if found.origin != Origin::Carved || self.place.slot.is_none() {
            return false;
        }
        let offset = self.place.file_offset(found.record.offset);
        let after = self.strays.partition_point(|stray| stray.offset <= offset);
        after > 0 && self.strays[after - 1].contains(offset)
    }

    /// Reads the rest of the current record. If `asks`, this ends at a sound record in which nothing can be found, and
    /// returns false.
    #[inline(always)]
    fn read_rest<'r, 'c: 'r>(
        &mut self,
        reader: &RecordReader<'r, 'c>,
        group: &mut RecordGroup<'r>,
        asks: bool,
    ) -> Result<bool, Interrupted> {
        let mut outcome = Ok(true);
        let finder = self.finder.as_mut().filter(|_| asks);
        let is_wanted = |templates: &ChunkTemplates, group: &RecordGroup<'r>| {
            let Some(finder) = finder else { return true };
            let record = ReadRecord::new(group.current(), templates, &reader.scan.plans.keys);
            outcome = finder.may_find(record, reader.interrupt);
            outcome == Ok(true)
        };
        reader.read_children_if(&mut self.templates, group, is_wanted);
        outcome
    }

    /// Whether something is found in the current record, or each record is a row.
    #[inline]
    fn finds(
        &mut self,
        reader: &RecordReader<'_, '_>,
        group: &RecordGroup<'_>,
        found: &FoundRecord,
        is_damaged: bool,
    ) -> Result<bool, Interrupted> {
        let Some(finder) = &mut self.finder else {
            return Ok(true);
        };
        let header = RecordHeader::new(&found.record, self.place.file_offset(found.record.offset));
        let record = ReadRecord::new(group.current(), &self.templates, &reader.scan.plans.keys);
        Ok(finder.find(record, &header, is_damaged, reader.interrupt)? > 0)
    }

    /// Whether damage to the current chunk is reported.
    pub(super) fn reports_damage(&mut self, chunk: &[u8], interrupt: Interrupt<'_>) -> Result<bool, Interrupted> {
        match &mut self.finder {
            None => Ok(true),
            Some(finder) => finder.reports_damage(chunk, interrupt),
        }
    }

    /// Whether the predicates of the stages `from` to `to` are true for a record.
    #[inline(always)]
    fn keeps(
        &mut self,
        scan: &Scan,
        from: Stage,
        to: Stage,
        found: &FoundRecord,
        current: Option<CurrentRecord<'_, '_>>,
    ) -> bool {
        scan.filter.is_empty() || self.keeps_slowly(scan, from, to, found, current)
    }

    // Kept out of line, so that scans without predicates stay fast.
    #[inline(never)]
    fn keeps_slowly(
        &mut self,
        scan: &Scan,
        from: Stage,
        to: Stage,
        found: &FoundRecord,
        current: Option<CurrentRecord<'_, '_>>,
    ) -> bool {
        let row = Row {
            header: (self.place).header(found.record.id, found.record.offset, found.origin.is_recovered()),
            written: found.record.written_nanos(),
            may_be_any_event: current.as_ref().is_some_and(|current| current.is_unread),
            interrupt: current.as_ref().map_or(Interrupt::NEVER, |current| current.interrupt),
            record: current
                .as_ref()
                .map(|current| (current.group.current(), &self.templates)),
            push_text: current.and_then(|current| current.push_text),
            entries: OnceCell::new(),
            has_text: Cell::new(None),
        };
        scan.filter.keeps(from, to, &row, &mut self.scratch)
    }

    /// Whether the predicates keep a row that says why no record could be read. The record may be of any event.
    pub(super) fn keeps_bare(&mut self, scan: &Scan, row: &BareRow<'_>) -> bool {
        let known = Row {
            header: row.header,
            written: row.written,
            may_be_any_event: true,
            ..Row::default()
        };
        scan.filter
            .keeps(Stage::Header, Stage::Record, &known, &mut self.scratch)
    }
}

/// The first stage whose predicates wait until the whole record is read. With `recover` these are all. Those on `System`
/// wait if it is not read yet, or if damage ends the scan.
#[inline]
fn first_undecided(scan: &Scan, has_system: bool) -> Stage {
    if scan.options.recover {
        Stage::Header
    } else if has_system && scan.options.on_error != OnError::Fail {
        Stage::Record
    } else {
        Stage::Event
    }
}

/// The record ID and the time in the event of the current record: `None` if the event has no such element, `Some(None)` if
/// the element has another value.
fn id_and_time(
    scan: &Scan,
    group: &RecordGroup<'_>,
    templates: &ChunkTemplates,
) -> (Option<Option<u64>>, Option<Option<i64>>) {
    let places = group.current().places(templates);
    let at = |place| scan.projection.place_id(place).and_then(|place| places.get(place));
    (
        at(EVENT_RECORD_ID).map(|id| id.number()),
        at(TIME_CREATED).map(|time| time.nanos()),
    )
}

/// Whether the event of the current record is read by its own definition: it names the definition, whose names are sound,
/// and has the ID and the time in the record's header.
#[cold]
fn has_its_event(scan: &Scan, group: &RecordGroup<'_>, templates: &ChunkTemplates, record: &Record) -> bool {
    let Some(&Part {
        content: PartContent::Instance(instance),
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

/// With `recover`: whether the bytes of the current record are a record, and not a copy of one that was read before.
fn recovers<'r>(
    reader: &RecordReader<'r, '_>,
    group: &mut RecordGroup<'r>,
    templates: &ChunkTemplates,
    found: &FoundRecord,
    is_again: bool,
    walk: &mut ChunkWalk,
) -> bool {
    let (record, is_carved) = (&found.record, found.origin == Origin::Carved);
    let has_instance = || {
        let binxml = reader.chunk.get(record.binxml());
        binxml.is_some_and(|binxml| binxml.starts_with(&INSTANCE))
    };
    // A definition or a name of a record that may not be live was overwritten. This content is lost, but it is a record: it
    // was not carved, or it is a frame whose two sizes agree, around an instance.
    if walk.is_of_orphans && group.error.is_none() && has_other_event(reader.scan, group, templates, record) {
        group.error = Some(Error::new(record.binxml().start, ErrorKind::OtherEvent));
    }
    let is_unreadable = group.error.is_some_and(|error| error.kind != ErrorKind::OtherEvent);
    let is_orphaned = found.origin.is_recovered() && group.foreign_definition.is_some()
        || is_carved && is_unreadable && has_instance();
    if is_orphaned {
        let has_event = has_its_event(reader.scan, group, templates, record);
        if has_event {
            group.keep_places();
        } else {
            group.keep_parts(0);
        }
        reader.add_texts(templates, group, record.binxml(), !has_event);
    }
    if is_carved && is_unreadable && !is_orphaned {
        // These bytes only looked like a record.
        walk.records.reject(record);
        return false;
    }
    let identity = (record.id, record.written);
    if is_carved && !is_again && walk.seen.contains(&identity) {
        return false;
    }
    if !is_unreadable || is_orphaned {
        walk.seen.insert(identity);
    }
    true
}
