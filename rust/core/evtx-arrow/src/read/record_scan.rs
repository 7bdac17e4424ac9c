//! Reads records one at a time, without batches.

use std::sync::Arc;

use bumpalo::Bump;
use evtx_format::binxml::names::Names;
use evtx_format::container::records::{PromisedIds, RecordWalk};
use evtx_format::{Interrupt, Interrupted};

use super::reader::RecordReader;
use crate::extra::Requirements;
use crate::filter::{Row, Scratch, Stage};
use crate::plan::PathId;
use crate::record::{ChunkTemplates, GROUP, ReadRecord, RecordGroup};
use crate::scan::Scan;
use crate::schema::{EventPath, Events, Options};
use crate::table::Table;

/// Reads the records of chunks for one thread. Its templates and arenas are used again.
pub struct RecordScan {
    scan: Scan,
    templates: ChunkTemplates,
    arenas: [Bump; 2],
    scratch: Scratch,
}

impl RecordScan {
    /// A scan that reads something of each record of some events, or of all if `events` is `None`.
    pub fn new(requirements: Requirements, events: Option<Events>) -> Self {
        let table = Table {
            events: events.map(Arc::new),
            ..Table::from(Options::default())
        };
        RecordScan {
            scan: Scan::reading(vec![requirements], table, &[], &[]),
            templates: ChunkTemplates::default(),
            arenas: Default::default(),
            scratch: Scratch::default(),
        }
    }

    /// The scan, which reads only the names and types of entries.
    pub fn of_names(mut self) -> Self {
        self.scan.projection.names_only = true;
        self
    }

    /// The scan, reading every spelled-out element as a tree, for tests.
    pub fn without_implicit_templates(mut self) -> Self {
        self.scan = self.scan.without_implicit_templates();
        self
    }

    /// A path that is read.
    pub fn path(&self, path: EventPath) -> Option<PathId> {
        self.scan.projection.path_id(path)
    }

    /// Passes each record of a chunk to `take`. Leaves out records that cannot be read.
    ///
    /// # Errors
    /// [`Interrupted`], and the errors of `take`.
    pub fn read<E: From<Interrupted>>(
        &mut self,
        chunk: &[u8],
        promised: PromisedIds,
        interrupt: Interrupt<'_>,
        mut take: impl FnMut(ReadRecord<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let RecordScan {
            scan,
            templates,
            arenas: [names, arena],
            scratch,
        } = self;
        let mut keeps = |records: &RecordGroup<'_>, templates: &ChunkTemplates| {
            let row = Row {
                record: Some((records.current(), templates)),
                interrupt,
                ..Row::default()
            };
            scan.filter.is_empty() || scan.filter.keeps(Stage::Header, Stage::Record, &row, scratch)
        };
        names.reset();
        templates.clear();
        let names = Names::new(chunk, names);
        let (mut walk, _) = RecordWalk::new(chunk, promised, false);
        let mut is_end = false;
        while !is_end {
            interrupt.check()?;
            if templates.are_many() {
                templates.clear();
            }
            arena.reset();
            let reader = RecordReader::new(scan, chunk, &names, arena, interrupt);
            let mut records = RecordGroup::new(&scan.projection, 1, arena);
            for _ in 0..GROUP {
                let Some(item) = walk.next(chunk) else {
                    is_end = true;
                    break;
                };
                if let Ok(found) = item {
                    reader.read_event(templates, &mut records, found.record.binxml());
                    let has_system = records.current().has_system(templates);
                    if !has_system || keeps(&records, templates) {
                        if !has_system || scan.reads_children {
                            reader.read_children(templates, &mut records);
                        }
                        let record = records.current();
                        if !record.is_unread() && (has_system || keeps(&records, templates)) {
                            take(ReadRecord::new(record, templates, &scan.plans.keys))?;
                        }
                    }
                }
                if reader.takes_much() {
                    break;
                }
            }
        }
        Ok(())
    }
}
