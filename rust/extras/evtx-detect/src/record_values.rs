//! The values of records by name, as rules see them.

use evtx_arrow::{Entries, FoundValue, PathId, ReadRecord};

/// The most items of all arrays of a record that count as values. A later array is one value, a JSON text.
const MAX_ITEMS: usize = 1 << 16;

/// The field name of unnamed values.
pub(crate) const UNNAMED: &str = "Data";

/// Where a named value of a record is, and of all records with the same shape.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FieldSlot {
    /// An entry of `EventData` if the flag is true, else a leaf of `UserData`.
    Entry(bool, usize),
    /// The item with an index among those of all arrays of the record.
    Item(usize),
    /// Another value, of the section with an index among those that have other values.
    Other(usize, usize),
}

/// The entries of an element, as far as they count.
struct Counted<'a> {
    entries: Entries<'a>,
    count: usize,
}

/// The arrays of a record, as far as their items count as values.
#[derive(Default)]
pub(crate) struct Arrays<'a> {
    /// Whether each is in `EventData`, its entry, and how many items it has.
    all: Vec<(bool, usize, usize)>,
    items: Vec<FoundValue<'a>>,
}

/// The values of a record.
pub(crate) struct RecordValues<'a> {
    record: ReadRecord<'a>,
    event_data: Option<Counted<'a>>,
    user_data: Option<Counted<'a>>,
    arrays: Arrays<'a>,
    others: Vec<Counted<'a>>,
}

impl<'a> From<Entries<'a>> for Counted<'a> {
    fn from(entries: Entries<'a>) -> Self {
        let count = entries.count();
        Counted { entries, count }
    }
}

impl<'a> Counted<'a> {
    fn get(&self, entry: usize) -> Option<FoundValue<'a>> {
        self.entries.get(entry).filter(|_| entry < self.count)?.value()
    }
}

impl<'a> Arrays<'a> {
    /// Those of a record.
    pub(crate) fn of(record: ReadRecord<'a>) -> Self {
        let mut arrays = Arrays::default();
        if !record.may_have_arrays() {
            return arrays;
        }
        for (element, in_event_data) in [(record.event_data(), true), (record.user_data(), false)] {
            let Some(element) = element.map(Counted::from) else {
                continue;
            };
            for (entry, of) in element.entries.iter().enumerate().take(element.count) {
                let Some(items) = of.value().and_then(FoundValue::items) else {
                    continue;
                };
                let before = arrays.items.len();
                arrays.items.extend(items);
                arrays.all.push((in_event_data, entry, arrays.items.len() - before));
                if arrays.items.len() > MAX_ITEMS {
                    return arrays;
                }
            }
        }
        arrays
    }

    /// Appends the shape of a record with these arrays: records of the same shape have the same [`fields`](Self::fields).
    /// Returns false if it has sections without a template.
    pub(crate) fn write_shape(&self, record: ReadRecord<'_>, out: &mut Vec<u8>) -> bool {
        out.extend(self.all.len().to_le_bytes());
        for &(in_event_data, entry, count) in &self.all {
            out.push(in_event_data.into());
            out.extend(entry.to_le_bytes());
            out.extend(count.to_le_bytes());
        }
        record.write_shape(out)
    }

    /// Adds all values of a record with these arrays that are not in `System`: the name of each if it has one, whether it
    /// belongs to the same array as the value before, and where it is.
    pub(crate) fn fields(&self, record: ReadRecord<'_>, mut add: impl FnMut(Option<&str>, bool, FieldSlot)) {
        let mut arrays = self.all.iter().peekable();
        let mut item = 0;
        for (element, in_event_data) in [(record.event_data(), true), (record.user_data(), false)] {
            for (id, entry) in element.into_iter().flat_map(Entries::iter).enumerate() {
                let array = arrays.next_if(|(of, array, _)| (*of, *array) == (in_event_data, id));
                let name = entry.name();
                let name = (!name.is_empty()).then_some(&*name);
                if let Some((.., count)) = array {
                    for at in 0..*count {
                        add(name, at > 0, FieldSlot::Item(item + at));
                    }
                    item += count;
                } else {
                    add(name, false, FieldSlot::Entry(in_event_data, id));
                }
            }
        }
        for (section, others) in record.other_values().enumerate() {
            for (id, entry) in others.iter().enumerate() {
                let name = entry.name();
                add(
                    (!name.is_empty()).then_some(&*name),
                    false,
                    FieldSlot::Other(section, id),
                );
            }
        }
    }
}

impl<'a> RecordValues<'a> {
    /// Those of a record.
    pub(crate) fn of(record: ReadRecord<'a>) -> Self {
        RecordValues {
            record,
            event_data: record.event_data().map(Into::into),
            user_data: record.user_data().map(Into::into),
            arrays: Arrays::of(record),
            others: record.other_values().map(Into::into).collect(),
        }
    }

    /// The value at a path.
    pub(crate) fn value_at(&self, path: PathId) -> Option<FoundValue<'a>> {
        self.record.value_at(path)
    }

    /// The value of a field.
    pub(crate) fn field(&self, slot: FieldSlot) -> Option<FoundValue<'a>> {
        match slot {
            FieldSlot::Entry(true, entry) => self.event_data.as_ref()?.get(entry),
            FieldSlot::Entry(false, entry) => self.user_data.as_ref()?.get(entry),
            FieldSlot::Item(item) => self.arrays.items.get(item).copied(),
            FieldSlot::Other(section, entry) => self.others.get(section)?.get(entry),
        }
    }
}
