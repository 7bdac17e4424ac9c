//! A record as those see it that do not know plans: its values by path, and by name.

use evtx_format::container::record::Record;
use evtx_format::value::Value;

use super::sections::{Keyed, KeyedEntries, PathValues, RecordView};
use super::templates::ChunkTemplates;
use crate::plan::{Entry, EntryId, EventData, Keys, PathId, Resolved};

/// The most items of all arrays of a record that count as values. A later array is one value, a JSON text.
const MAX_ITEMS: usize = 1 << 16;

/// The field name of unnamed values.
pub const UNNAMED: &str = "Data";

/// The header of a record.
#[derive(Debug, Clone, Copy)]
pub struct RecordHeader {
    /// Its ID.
    pub id: u64,
    /// When it was written, in nanoseconds since 1970-01-01 UTC.
    pub written: Option<i64>,
    /// Its file offset.
    pub offset: u64,
}

impl RecordHeader {
    pub(crate) fn new(record: &Record, offset: u64) -> Self {
        RecordHeader {
            id: record.id,
            written: record.written_nanos(),
            offset,
        }
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

/// Where a named value of a record is, and of all records with the same shape.
#[derive(Debug, Clone, Copy)]
pub struct FieldSlot(Slot);

#[derive(Debug, Clone, Copy)]
enum Slot {
    /// An entry of `EventData` if the flag is true, else a leaf of `UserData`.
    Entry(bool, EntryId),
    /// The item with an index among those of all arrays of the record.
    Item(usize),
    /// Another value, of the section with an index among those that have other values.
    Other(usize, EntryId),
}

/// The arrays of a record, as far as their items count as values.
#[derive(Default)]
pub struct Arrays<'a> {
    /// Whether each is in `EventData`, its entry, and how many items it has.
    all: Vec<(bool, EntryId, usize)>,
    items: Vec<Resolved<'a, 'a>>,
}

/// The values of a record.
pub struct RecordValues<'a> {
    values: PathValues<'a, 'a>,
    entries: KeyedEntries<'a, 'a>,
    arrays: Arrays<'a>,
    others: Vec<Keyed<'a, 'a>>,
}

impl<'a> ReadRecord<'a> {
    pub(crate) fn new(view: RecordView<'a, 'a>, templates: &'a ChunkTemplates, keys: &'a Keys) -> Self {
        ReadRecord { view, templates, keys }
    }

    /// The value at a path.
    pub fn value_at(self, path: PathId) -> Option<FoundValue<'a>> {
        self.view.path_values(self.templates).get(path).map(FoundValue)
    }

    /// Whether a record of the same shape can have a value at a path.
    pub fn may_have(self, path: PathId) -> bool {
        let mut plans = self.view.with_plans(self.templates);
        plans.any(|(_, plan)| plan.path(path).is_some())
    }

    /// Its arrays.
    pub fn arrays(self) -> Arrays<'a> {
        let mut arrays = Arrays::default();
        if self.view.may_have_arrays(self.templates) {
            for (in_event_data, entry, array) in self.view.keyed_entries(self.templates).arrays() {
                let before = arrays.items.len();
                arrays.items.extend(array.items().into_iter().flatten());
                arrays.all.push((in_event_data, entry, arrays.items.len() - before));
                if arrays.items.len() > MAX_ITEMS {
                    break;
                }
            }
        }
        arrays
    }

    /// Appends its shape: records of the same shape have the same [`fields`](Self::fields). Returns false if it has
    /// sections without a template.
    pub fn write_shape(self, arrays: &Arrays<'_>, out: &mut Vec<u8>) -> bool {
        out.extend(arrays.all.len().to_le_bytes());
        for &(in_event_data, EntryId(entry), count) in &arrays.all {
            out.push(in_event_data.into());
            out.extend(entry.to_le_bytes());
            out.extend(count.to_le_bytes());
        }
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

    /// Adds all values that are not in `System`: the name of each, without spaces, and where it is.
    pub fn fields(self, arrays: &Arrays<'_>, mut add: impl FnMut(String, FieldSlot)) {
        let mut arrays = arrays.all.iter().peekable();
        let mut item = 0;
        let name_of = |entry: &Entry| {
            let key = self.keys.name(&entry.key);
            let name = key.get(..entry.name_len).filter(|name| !name.is_empty());
            name.unwrap_or(UNNAMED).replace(' ', "")
        };
        let mut add_all = |entries: Option<&EventData>, in_event_data: bool| {
            let entries = entries.iter().flat_map(|entries| &entries.entries);
            for (id, entry) in (0..).map(EntryId).zip(entries) {
                let array = arrays.next_if(|(of, array, _)| (*of, *array) == (in_event_data, id));
                let name = name_of(entry);
                if let Some((.., count)) = array {
                    for item in item..item + count {
                        add(name.clone(), FieldSlot(Slot::Item(item)));
                    }
                    item += count;
                } else {
                    add(name, FieldSlot(Slot::Entry(in_event_data, id)));
                }
            }
        };
        add_all(self.view.event_data(self.templates).map(|(entries, _)| entries), true);
        add_all(
            self.view.user_entries(self.templates).map(|(entries, _)| entries),
            false,
        );
        for (section, others) in self.view.other_values(self.templates).iter().enumerate() {
            for (id, entry) in (0..).map(EntryId).zip(&others.of.entries) {
                add(name_of(entry), FieldSlot(Slot::Other(section, id)));
            }
        }
    }

    /// Its values.
    pub fn values(self) -> RecordValues<'a> {
        RecordValues {
            values: self.view.path_values(self.templates),
            arrays: self.arrays(),
            entries: self.view.keyed_entries(self.templates),
            others: self.view.other_values(self.templates),
        }
    }
}

impl<'a> RecordValues<'a> {
    /// The value at a path.
    pub fn value_at(&self, path: PathId) -> Option<FoundValue<'a>> {
        self.values.get(path).map(FoundValue)
    }

    /// The value of a field.
    pub fn field(&self, FieldSlot(slot): FieldSlot) -> Option<FoundValue<'a>> {
        let found = match slot {
            Slot::Entry(in_event_data, entry) => self.entries.leaf(in_event_data, entry),
            Slot::Item(item) => self.arrays.items.get(item).copied(),
            Slot::Other(section, entry) => self.others.get(section)?.get(entry),
        };
        found.map(FoundValue)
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
