//! Decodes a chunk: walks over its records in groups, and appends the rows of those that are admitted.

use std::sync::Arc;

use bumpalo::Bump;
use evtx_format::binxml::names::Names;
use evtx_format::container::record::Record;
use evtx_format::container::records::FoundRecord;
use evtx_format::{Error, ErrorKind, Interrupt};

use super::admission::Admission;
use super::batch::{BareRow, BatchBuilder};
use super::error::DecodeError;
use super::walk::ChunkWalk;
use crate::extra::Beside;
use crate::filter::HeaderValues;
use crate::read::RecordReader;
use crate::record::{GROUP, RecordGroup};
use crate::recovery::NextChunk;
use crate::scan::Scan;
use crate::schema::OnError;

/// How many frames of records are read between two checks for an interrupt.
const FRAMES: usize = 32;

/// Arenas that are reset and not freed: one for a chunk, one for a group of records.
#[derive(Default)]
pub(super) struct Arenas {
    chunk: Bump,
    records: Bump,
}

pub(super) enum Progress {
    /// The batch is full. The next call goes on with the same chunk.
    Full,
    /// The chunk is done. Its header lists this as the ID of its last record.
    Done(Option<u64>),
}

pub(super) struct ChunkDecoder {
    pub(super) scan: Arc<Scan>,
    pub(super) batch: BatchBuilder,
    /// What extra columns read beside the file.
    pub(super) beside: Option<Beside>,
    pub(super) admission: Admission,
    pub(super) walk: Option<ChunkWalk>,
}

impl ChunkDecoder {
    /// Decodes a chunk, from where it was left when the last batch was full.
    pub(super) fn decode(
        &mut self,
        next: NextChunk<'_>,
        arenas: &mut Arenas,
        interrupt: Interrupt<'_>,
    ) -> Result<Progress, DecodeError> {
        arenas.chunk.reset();
        let location = &mut self.admission.location;
        (location.offset, location.slot, location.first) = (next.offset, next.slot, next.first);
        let chunk = &*next.bytes;
        let mut walk = match self.walk.take() {
            Some(walk) => walk,
            None if chunk.is_empty() => return Ok(Progress::Done(None)),
            None => {
                self.forget_templates();
                if let Some(finder) = &mut self.admission.finder {
                    finder.start_chunk();
                }
                // A chunk whose first bytes are lost has no header.
                let verifies = self.scan.options.verify && next.first == 0;
                ChunkWalk::new(chunk, next.promised, verifies, next.recovery)
            }
        };
        let names = Names::new(chunk, &arenas.chunk);
        let scan = Arc::clone(&self.scan);
        loop {
            interrupt.check()?;
            if self.admission.templates.are_many() {
                self.forget_templates();
            }
            arenas.records.reset();
            let reader = RecordReader::new(&scan, chunk, &names, &arenas.records, interrupt);
            if self.records(&reader, &mut walk)? {
                break;
            }
            if self.batch.is_full() {
                self.walk = Some(walk);
                return Ok(Progress::Full);
            }
        }
        for error in walk.damage {
            if self.admission.reports_damage(chunk, interrupt)? {
                self.report_in_chunk(&error, None)?;
            }
        }
        Ok(Progress::Done(walk.records.last_listed()))
    }

    /// Drops the templates. Their indices mean other templates from here on.
    fn forget_templates(&mut self) {
        self.admission.templates.clear();
        self.batch.start_chunk();
    }

    /// Decodes a group of records, and appends its rows. Returns whether the chunk has no more records.
    fn records<'r, 'c: 'r>(
        &mut self,
        reader: &RecordReader<'r, 'c>,
        walk: &mut ChunkWalk,
    ) -> Result<bool, DecodeError> {
        let scan = reader.scan;
        let mut left = self.batch.remaining_capacity();
        if scan.reads_binxml {
            left = left.min(GROUP);
        }
        let mut group = RecordGroup::new(&scan.projection, left.min(GROUP), reader.arena);
        if let Some(finder) = &mut self.admission.finder {
            finder.clear();
        }
        let mut is_end = false;
        // Even frames take long if they are damaged.
        let look = |left: usize| {
            if left.is_multiple_of(FRAMES) {
                reader.interrupt.check()
            } else {
                Ok(())
            }
        };
        while left > 0 {
            left -= 1;
            let again = walk.again.take();
            let is_again = again.is_some();
            // The record stays where the walk has built it. To move it, the processor would wait for the stores.
            let found = match again {
                Some(found) => Some(Ok(found)),
                None => walk.records.next(reader.chunk),
            };
            match &found {
                Some(Ok(found)) if !is_again && !self.admission.keeps_header(scan, found) => look(left)?,
                Some(Ok(found)) if !scan.reads_binxml => {
                    group.keep(found);
                    look(left)?;
                }
                Some(Ok(found)) => {
                    let is_kept = self
                        .admission
                        .admit(reader, &mut group, found, is_again, walk, &mut self.batch)?;
                    if !is_kept {
                    } else if self.admission.finder.is_none() {
                        group.keep(found);
                    } else {
                        let more = if self.is_heavy(&group, reader) { 0 } else { left };
                        left -= self.keep_rows(&mut group, found, more, walk);
                    }
                    if self.is_heavy(&group, reader) {
                        break;
                    }
                }
                Some(Err(error)) => {
                    self.push_rows(&group, reader)?;
                    group.clear();
                    if let Some(finder) = &mut self.admission.finder {
                        finder.clear();
                    }
                    let has_header = matches!(error.kind, ErrorKind::RecordSize { .. });
                    let record = has_header.then(|| Record::header(reader.chunk, error.offset as usize).ok());
                    if self.admission.reports_damage(reader.chunk, reader.interrupt)? {
                        self.report_in_chunk(error, record.flatten())?;
                    }
                }
                None => {
                    is_end = true;
                    break;
                }
            }
        }
        self.push_rows(&group, reader)?;
        Ok(is_end)
    }

    /// Whether the last record of a group takes much more memory than its bytes. It ends the group.
    #[inline(always)]
    fn is_heavy(&self, group: &RecordGroup<'_>, reader: &RecordReader<'_, '_>) -> bool {
        let are_many = self.admission.templates.are_many();
        group.repeat_values || are_many || reader.takes_much() || self.batch.has_long_texts()
    }

    /// Keeps the current record of a group once for each of its rows, with space for `left` rows more than one. Returns
    /// how many more there are than one. If they do not all fit, the walk returns to the record.
    fn keep_rows(
        &mut self,
        group: &mut RecordGroup<'_>,
        found: &FoundRecord,
        left: usize,
        walk: &mut ChunkWalk,
    ) -> usize {
        let Some(finder) = &mut self.admission.finder else {
            return 0;
        };
        let report = group.reported(group.kept().len()).map(str::to_owned);
        group.keep(found);
        finder.keep();
        let more = finder.left().min(left);
        for _ in 0..more {
            self.batch.push_texts_again();
            if let Some(report) = &report {
                group.report(report.clone());
            }
            group.keep_again(found);
            finder.keep();
        }
        if finder.left() > 0 {
            walk.again = Some(*found);
        }
        more
    }

    fn push_rows(&mut self, group: &RecordGroup<'_>, reader: &RecordReader<'_, '_>) -> Result<(), DecodeError> {
        let Admission {
            location,
            templates,
            finder,
            ..
        } = &self.admission;
        let beside = self.beside.as_deref();
        let found = finder.as_ref().map(|finder| finder.rows());
        Ok(self
            .batch
            .push_rows(reader, templates, group, location, beside, found)?)
    }

    /// Reports damage to the current chunk, or to the frame of a record in it.
    fn report_in_chunk(&mut self, error: &Error, record: Option<Record>) -> Result<(), DecodeError> {
        // The pass before has reported it.
        if self
            .admission
            .finder
            .as_ref()
            .is_some_and(|finder| !finder.reports_chunks())
        {
            return Ok(());
        }
        let location = self.admission.location.clone();
        self.report(BareRow {
            header: HeaderValues {
                record_id: record.map(|record| record.id),
                recovered: record.map(|_| false),
                ..location.header(0, error.offset, false)
            },
            written: record.as_ref().and_then(Record::written_nanos),
            error: location.describe(error),
        })
    }

    /// Reports damage by `on_error`, as a row without an event.
    pub(super) fn report(&mut self, row: BareRow<'_>) -> Result<(), DecodeError> {
        match self.scan.options.on_error {
            OnError::Report => {
                if self.admission.predicates.keep_bare(&self.scan, &row) {
                    self.batch.push_bare(&row)?;
                }
                Ok(())
            }
            OnError::Skip => Ok(()),
            OnError::Fail => Err(DecodeError::Damaged(row.error)),
        }
    }
}
