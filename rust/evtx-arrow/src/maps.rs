//! The `event_data` column: a map per record, its keys a dictionary.

use std::sync::Arc;

use arrow_array::{ArrayRef, DictionaryArray, Int32Array, MapArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::ArrowError;
use evtx_format::MAX_TEXT;
use evtx_format::instance::{Slot, Values};

use crate::builders::{MakeStrings, TextBuilder, take};
use crate::keys::{Dictionary, Keys};
use crate::plan::{Entry, Found, Run};
use crate::schema::{entries_field, entry_fields};

/// A column of maps.
#[derive(Debug)]
pub(crate) struct MapBuilder {
    keys: Dictionary,
    values: TextBuilder,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    /// By the number of the template in its chunk.
    last: Vec<LastRun>,
    /// The chunk and batch at hand, which what is remembered has to be of.
    epoch: u64,
}

/// The last map of a template's records, since most of its values come again in the next.
#[derive(Debug, Default)]
struct LastRun {
    epoch: u64,
    /// The number of its first string.
    first: usize,
    /// Where its values stand in the chunk, by entry.
    slots: Vec<Slot>,
}

impl MapBuilder {
    pub(crate) fn new(keys: Arc<Keys>) -> Self {
        MapBuilder {
            keys: Dictionary::new(keys),
            values: TextBuilder::new(),
            offsets: vec![0],
            nulls: NullBufferBuilder::new(0),
            last: Vec::new(),
            epoch: 1,
        }
    }

    /// Begins a chunk. Templates have other numbers from here on.
    pub(crate) fn start_chunk(&mut self) {
        self.epoch += 1;
    }

    /// Appends the map of a record, which ends where its text becomes longer than [`MAX_TEXT`].
    pub(crate) fn push_entries(&mut self, entries: &[Entry], values: Values<'_>) {
        let mut bytes = 0;
        for entry in entries {
            if bytes > MAX_TEXT {
                break;
            }
            if let Some(found) = entry.source.find(values) {
                self.keys.push(&entry.key);
                bytes += self.values.push_found(&found, |out| found.push_entry(out));
            }
        }
        self.end_map();
    }

    /// Appends the map of a record: entries that are all there. `template` is the number of its template.
    #[inline]
    pub(crate) fn push_run(&mut self, run: &Run, values: Values<'_>, template: usize) {
        self.keys.push_run(&run.keys);
        if self.last.len() <= template {
            self.last.resize_with(template + 1, LastRun::default);
        }
        let last = &mut self.last[template];
        if last.epoch != self.epoch {
            last.epoch = self.epoch;
            last.slots.clear();
            last.slots.resize(run.holes.len(), Slot::EMPTY);
            last.first = usize::MAX;
        }
        let first = std::mem::replace(&mut last.first, self.values.len());
        for (i, (&hole, last)) in run.holes.iter().zip(&mut last.slots).enumerate() {
            let slot = values.slot(usize::from(hole)).unwrap_or(Slot::EMPTY);
            let last = std::mem::replace(last, slot);
            if values.are_equal(slot, last) && self.values.repeat(first.saturating_add(i)) {
                continue;
            }
            let value = values.value(slot);
            self.values.push_value(value, |out| Found::Value(value).push_entry(out));
        }
        self.end_map();
    }

    /// Ends the map of a record.
    #[inline]
    fn end_map(&mut self) {
        self.offsets.push(self.keys.len() as i32);
        self.nulls.append_non_null();
    }

    pub(crate) fn push_null(&mut self) {
        self.offsets.push(self.keys.len() as i32);
        self.nulls.append_null();
    }

    pub(crate) fn bytes(&self) -> usize {
        self.values.bytes()
    }

    pub(crate) fn finish(&mut self, make: MakeStrings) -> Result<MapArray, ArrowError> {
        self.epoch += 1;
        let (entries, names) = self.keys.finish();
        let keys = DictionaryArray::try_new(Int32Array::from(entries), names)?;
        let columns: Vec<ArrayRef> = vec![Arc::new(keys), Arc::new(self.values.finish(make)?)];
        let entries = StructArray::try_new(entry_fields(), columns, None)?;
        let offsets = OffsetBuffer::new(take(&mut self.offsets).into());
        self.offsets.push(0);
        MapArray::try_new(entries_field(), offsets, entries, self.nulls.finish(), false)
    }
}
