//! A record as those see it that do not know plans: its values by path, and by name.

use evtx_format::container::record::Record;
use evtx_format::value::Value;

use super::sections::RecordView;
use super::templates::ChunkTemplates;
use crate::plan::{Keys, PathId, Resolved};

/// The header of a record.
#[derive(Debug, Clone, Copy)]
pub struct RecordHeader {
    /// Its ID.
    pub id: u64,
    /// Its file offset.
    pub offset: u64,
}

impl RecordHeader {
    pub(crate) fn new(record: &Record, offset: u64) -> Self {
        RecordHeader { id: record.id, offset }
    }
}

/// A record, as far as it was read.
#[derive(Clone, Copy)]
pub struct ReadRecord<'a> {
    pub(crate) view: RecordView<'a, 'a>,
    pub(crate) templates: &'a ChunkTemplates,
    pub(crate) keys: &'a Keys,
}

/// A value of a record.
#[derive(Clone, Copy)]
pub struct FoundValue<'a>(pub(crate) Resolved<'a, 'a>);

impl<'a> ReadRecord<'a> {
    pub(crate) fn new(view: RecordView<'a, 'a>, templates: &'a ChunkTemplates, keys: &'a Keys) -> Self {
        ReadRecord { view, templates, keys }
    }

    /// The value at a path.
    pub fn value_at(self, path: PathId) -> Option<FoundValue<'a>> {
        self.view.path_values(self.templates).get(path).map(FoundValue)
    }

    /// The values at some paths.
    pub fn values_at<const COUNT: usize>(self, paths: [Option<PathId>; COUNT]) -> [Option<FoundValue<'a>>; COUNT] {
        let values = self.view.path_values(self.templates);
        paths.map(|path| values.get(path?).map(FoundValue))
    }

    /// Whether a record of the same shape can have a value at a path.
    pub fn may_have(self, path: PathId) -> bool {
        let mut plans = self.view.with_plans(self.templates);
        plans.any(|(_, plan)| plan.path(path).is_some())
    }

    /// Appends its shape: records of the same shape have the same entries and other values. Returns false if it has sections
    /// without a template.
    pub fn write_shape(self, out: &mut Vec<u8>) -> bool {
        for section in self.view.sections {
            let Some(Ok(template)) = section.template().map(|at| self.templates.get(at)) else {
                return false;
            };
            let has = [
                template.plan.event_data(section.values).is_some(),
                template.plan.user_entries(section.values).is_some(),
                section.is_damaged(),
            ];
            out.extend(template.number.to_le_bytes());
            out.extend(has.map(u8::from));
        }
        true
    }
}

impl<'a> FoundValue<'a> {
    /// The value as it is stored, if it is not a text of the template.
    pub fn value(self) -> Option<Value<'a>> {
        match self.0 {
            Resolved::Value(value) => Some(value),
            Resolved::Constant(_) | Resolved::Concat(..) => None,
        }
    }

    /// The items, if it is an array that repeats its element.
    pub fn items(self) -> Option<impl Iterator<Item = FoundValue<'a>>> {
        Some(self.0.items()?.map(FoundValue))
    }

    /// Whether all records with the same template have the value.
    pub fn is_constant(&self) -> bool {
        matches!(self.0, Resolved::Constant(_))
    }

    /// Its text.
    pub fn text(&self) -> Option<String> {
        self.0.text()
    }

    /// Appends its text.
    pub fn push_text(&self, out: &mut Vec<u8>) {
        self.0.push_text(out);
    }

    /// Appends its text as `event_data` has it.
    pub fn push_entry(&self, out: &mut Vec<u8>) {
        self.0.push_entry(out);
    }

    /// An integer that is not negative.
    pub fn number(&self) -> Option<u64> {
        self.0.number()
    }

    /// The 16 bytes of a GUID, in the order of its text.
    pub fn uuid(&self) -> Option<[u8; 16]> {
        self.0.uuid()
    }

    /// Its time in nanoseconds since 1970-01-01 UTC.
    pub fn nanos(&self) -> Option<i64> {
        self.0.nanos()
    }
}
