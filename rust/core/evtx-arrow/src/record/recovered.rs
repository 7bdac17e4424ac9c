//! What recovery sees and changes of a record that was read.

use evtx_format::Error;
use evtx_format::container::records::FoundRecord;

use super::group::RecordGroup;
use super::sections::{RecordSection, SectionContent};
use super::templates::ChunkTemplates;
use crate::schema::{EVENT_RECORD_ID, TIME_CREATED};

/// A record that was read, about which recovery decides.
pub struct RecoveredRecord<'a, 'r> {
    pub(crate) group: &'a mut RecordGroup<'r>,
    pub(crate) templates: &'a ChunkTemplates,
    /// The chunk.
    pub chunk: &'a [u8],
    /// The record.
    pub found: FoundRecord,
    /// Its offset in the file, in bytes.
    pub file_offset: u64,
    /// Whether it was read before, and has more rows.
    pub is_again: bool,
}

impl RecoveredRecord<'_, '_> {
    /// What is damaged in it.
    pub fn error(&self) -> Option<Error> {
        self.group.error
    }

    /// Sets what is damaged in it.
    pub fn set_error(&mut self, error: Error) {
        self.group.error = Some(error);
    }

    /// Whether it refers to a definition or a name that was overwritten.
    pub fn has_foreign_definition(&self) -> bool {
        self.group.foreign_definition.is_some()
    }

    /// Whether its event is an instance of the definition that it names, whose names are valid.
    #[cold]
    pub fn has_own_definition(&self) -> bool {
        let Some(&RecordSection {
            content: SectionContent::Instance(instance),
            ..
        }) = self.group.current().event()
        else {
            return false;
        };
        let event = self.group.current().event_template(self.templates);
        event.is_some_and(|(compiled, _)| compiled.fault(&instance).is_none())
    }

    /// The record ID and the time in its event: `None` if the event has no such element, `Some(None)` if the element has
    /// another value.
    pub fn id_and_time(&self) -> (Option<Option<u64>>, Option<Option<i64>>) {
        let record = self.group.current();
        let values = record.path_values(self.templates);
        let at = |path| record.projection.path_id(path).and_then(|path| values.get(path));
        (
            at(EVENT_RECORD_ID).map(|id| id.number()),
            at(TIME_CREATED).map(|time| time.nanos()),
        )
    }
}
