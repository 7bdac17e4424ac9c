//! The predicates of a scan, in the stages in which a record is read.

use std::cell::{Cell, OnceCell};

use evtx_format::Interrupt;
use evtx_format::container::records::FoundRecord;
use evtx_format::render::program::Language;

use super::batch::BareRow;
use super::location::ChunkLocation;
use crate::columns::Rendering;
use crate::filter::{Row, Scratch, Stage};
use crate::read::{RecordReader, render};
use crate::record::{ChunkTemplates, RecordGroup};
use crate::scan::Scan;
use crate::schema::OnError;

/// What the sections of a record say, as far as predicates depend on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) has_system: bool,
    /// Whether its event is not known. It may be one of the events of the table.
    is_unread: bool,
    /// The first stage whose predicates wait until the whole record is read.
    pub(super) undecided: Stage,
}

impl Known {
    pub(super) fn of(scan: &Scan, group: &RecordGroup<'_>, templates: &ChunkTemplates) -> Self {
        let has_system = group.current().has_system(templates);
        Known {
            has_system,
            is_unread: group.current().sections.is_empty() || group.error.is_some() && !has_system,
            // With `recover` all wait. Those on `System` wait if it is not read yet, or if damage ends the scan.
            undecided: if scan.recovers() {
                Stage::Header
            } else if has_system && scan.options.on_error != OnError::Fail {
                Stage::Record
            } else {
                Stage::Event
            },
        }
    }
}

/// Decides predicates.
#[derive(Default)]
pub(super) struct Predicates(Scratch);

impl Predicates {
    /// Whether those on the header are true.
    #[inline(always)]
    pub(super) fn keep_header(&mut self, scan: &Scan, location: &ChunkLocation, found: &FoundRecord) -> bool {
        scan.filter.is_empty() || self.keep(scan, [Stage::Header; 2], header_row(location, found))
    }

    /// Whether those on `System` are true.
    #[inline(always)]
    pub(super) fn keep_event(
        &mut self,
        reader: &RecordReader<'_, '_>,
        group: &RecordGroup<'_>,
        (templates, location): (&ChunkTemplates, &ChunkLocation),
        found: &FoundRecord,
        known: Known,
    ) -> bool {
        reader.scan.filter.is_empty() || {
            let row = Row {
                may_be_any_event: known.is_unread,
                interrupt: reader.interrupt,
                record: Some((group.current(), templates)),
                ..header_row(location, found)
            };
            self.keep(reader.scan, [Stage::Event; 2], row)
        }
    }

    /// Whether those of a stage and the later ones are true.
    #[inline(always)]
    pub(super) fn keep_record<'r, 'c: 'r>(
        &mut self,
        reader: &RecordReader<'r, 'c>,
        group: &RecordGroup<'r>,
        (templates, location): (&ChunkTemplates, &ChunkLocation),
        found: &FoundRecord,
        known: Known,
    ) -> bool {
        let scan = reader.scan;
        scan.filter.is_empty() || {
            let view = group.current();
            let text = Rendering::Event(Language::Text);
            let row = Row {
                may_be_any_event: known.is_unread,
                interrupt: reader.interrupt,
                record: Some((view, templates)),
                push_text: Some(&|templates, out| render(reader, templates, None, view, text, out) == Ok(true)),
                ..header_row(location, found)
            };
            let from = if scan.sees_all { Stage::Header } else { known.undecided };
            self.keep(scan, [from, Stage::Record], row)
        }
    }

    /// Whether they keep a row that says why no record could be read. The record may be of any event.
    pub(super) fn keep_bare(&mut self, scan: &Scan, row: &BareRow<'_>) -> bool {
        let row = Row {
            header: row.header,
            written: row.written,
            may_be_any_event: true,
            ..Row::default()
        };
        self.keep(scan, [Stage::Header, Stage::Record], row)
    }

    // Kept out of line, so that scans without predicates stay fast.
    #[inline(never)]
    fn keep(&mut self, scan: &Scan, [from, to]: [Stage; 2], row: Row<'_, '_>) -> bool {
        scan.filter.keeps(from, to, &row, &mut self.0)
    }
}

fn header_row<'x, 'r>(location: &'x ChunkLocation, found: &FoundRecord) -> Row<'x, 'r> {
    Row {
        header: location.header(found.record.id, found.record.offset, found.origin.is_recovered()),
        written: found.record.written_nanos(),
        may_be_any_event: false,
        interrupt: Interrupt::NEVER,
        record: None,
        push_text: None,
        entries: OnceCell::new(),
        has_text: Cell::new(None),
    }
}
