//! Admission: reads a record, and decides in stages whether it becomes a row.
//!
//! 1. The header: predicates on it, before anything else is read.
//! 2. The sections of the event: predicates on `System`, and whether the finder can find something.
//! 3. The whole record: what is damaged, the other predicates, and what the finder finds.

use evtx_format::container::records::FoundRecord;
use evtx_format::{Error, ErrorKind, Interrupt, Interrupted};

use super::batch::BatchBuilder;
use super::error::DecodeError;
use super::location::ChunkLocation;
use super::predicates::{Known, Predicates};
use super::walk::ChunkWalk;
use crate::extra::RowFinder;
use crate::filter::Stage;
use crate::read::RecordReader;
use crate::record::{ChunkTemplates, ReadRecord, RecordGroup, RecordHeader, RecoveredRecord};
use crate::recovery::Decision;
use crate::scan::Scan;
use crate::schema::OnError;

#[derive(Default)]
pub(super) struct Admission {
    pub(super) location: ChunkLocation,
    pub(super) templates: ChunkTemplates,
    /// Finds what becomes a row; `None` if each record is one.
    pub(super) finder: Option<Box<dyn RowFinder>>,
    pub(super) predicates: Predicates,
}

impl Admission {
    #[inline(always)]
    pub(super) fn keeps_header(&mut self, scan: &Scan, found: &FoundRecord) -> bool {
        if self.finder.is_some() && !self.begins(found) {
            return false;
        }
        // With `recover` every record is read: only that distinguishes records from noise and from their copies.
        scan.recovers() || scan.sees_all || self.predicates.keep_header(scan, &self.location, found)
    }

    // Kept out of line, so that scans without a finder stay fast.
    #[inline(never)]
    fn begins(&mut self, found: &FoundRecord) -> bool {
        let header = RecordHeader::new(&found.record, self.location.file_offset(found.record.offset));
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
        let (scan, on_error) = (reader.scan, reader.scan.options.on_error);
        let Some(known) = self.read(reader, group, found)? else {
            return Ok(false);
        };
        if walk.recovery.is_some() && !self.recovers(reader, group, found, is_again, walk) {
            return Ok(false);
        }
        let damage = self.damage(reader, group, found, walk)?;
        // The first damage ends such a scan, even in a record that a predicate drops.
        if on_error == OnError::Fail
            && let Some(error) = damage
        {
            return Err(DecodeError::Damaged(self.location.describe_in(&found.record, error)));
        }
        let mut error = damage.filter(|_| scan.validates_all);
        if error.is_some() && on_error == OnError::Skip {
            return Ok(false);
        }
        // A predicate chooses rows, but such a finder sees every record.
        let sees_first = scan.sees_all && !is_again;
        let mut is_found = sees_first && self.finds(reader, group, found, error.is_some())?;
        let at = (&self.templates, &self.location);
        if !self.predicates.keep_record(reader, group, at, found, known) {
            return Ok(false);
        }
        if !sees_first {
            is_found = is_again || self.finds(reader, group, found, error.is_some())?;
        }
        // A match may be lost with what is damaged. So there is a row.
        if !is_found && error.is_none_or(|error| error.kind == ErrorKind::RestoredDefinition) {
            return Ok(false);
        }
        // A text that is too long is NULL, but the row stays, even with `skip`: the number of rows must not depend on
        // whether the text is read.
        if let Err(too_long) = batch.push_texts(reader, &self.templates, group) {
            error.get_or_insert(too_long);
        }
        if let Some(error) = error {
            let text = walk.describe(&found.record, error, &self.location);
            if on_error == OnError::Fail {
                return Err(DecodeError::Damaged(text));
            }
            group.report(text);
        }
        Ok(true)
    }

    /// Reads a record, as far as it is needed; `None` if its sections tell that it is not kept.
    #[inline(always)]
    fn read<'r, 'c: 'r>(
        &mut self,
        reader: &RecordReader<'r, 'c>,
        group: &mut RecordGroup<'r>,
        found: &FoundRecord,
    ) -> Result<Option<Known>, Interrupted> {
        let (scan, binxml) = (reader.scan, found.record.binxml());
        reader.read_event(&mut self.templates, group, binxml.clone());
        let known = Known::of(scan, group, &self.templates);
        let waits = known.undecided == Stage::Record;
        // The values of the streams are not read yet.
        let at = (&self.templates, &self.location);
        if waits && !scan.sees_all && !self.predicates.keep_event(reader, group, at, found, known) {
            return Ok(None);
        }
        let reads_rest = !known.has_system || scan.validates_all || scan.reads_children;
        if reads_rest && !self.read_rest(reader, group, waits && !found.is_damaged)? {
            return Ok(None);
        }
        if group.error.is_none() && group.current().sections.is_empty() {
            group.error = Some(Error::new(binxml.start, ErrorKind::NoEvent));
        }
        Ok(Some(known))
    }

    /// Whether recovery keeps the current record.
    #[inline(never)]
    fn recovers<'r>(
        &self,
        reader: &RecordReader<'r, '_>,
        group: &mut RecordGroup<'r>,
        found: &FoundRecord,
        is_again: bool,
        walk: &mut ChunkWalk,
    ) -> bool {
        let mut record = RecoveredRecord {
            group,
            templates: &self.templates,
            chunk: reader.chunk,
            found: *found,
            file_offset: self.location.file_offset(found.record.offset),
            is_again,
        };
        let decision = walk.recovery.as_mut().map(|recovery| recovery.decide(&mut record));
        match decision {
            None | Some(Decision::Keep) => {}
            Some(Decision::Drop) => return false,
            Some(Decision::Noise) => {
                walk.records.reject(&found.record);
                return false;
            }
            Some(Decision::KeepWithoutNames { system }) => {
                if system {
                    group.keep_paths();
                } else {
                    group.keep_sections(0);
                }
                reader.add_texts(&self.templates, group, found.record.binxml(), !system);
            }
        }
        true
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
        if let Some(recovery) = &walk.recovery {
            damage = recovery.damage(&found.record, damage);
        }
        if damage.is_none() && self.location.doubt(&found.record).is_some() {
            damage = Some(Error::new(0, ErrorKind::Doubted));
        }
        if damage.is_some() && !self.reports_damage(reader.chunk, reader.interrupt)? {
            damage = None;
        }
        Ok(damage)
    }

    /// Reads the rest of the current record. If `asks`, this ends at a valid record in which nothing can be found, and
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
        let header = RecordHeader::new(&found.record, self.location.file_offset(found.record.offset));
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
}
