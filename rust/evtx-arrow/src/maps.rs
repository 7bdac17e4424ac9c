//! The `event_data` column: a map per record, its keys a dictionary.

use std::sync::Arc;

use arrow_array::{ArrayRef, DictionaryArray, Int32Array, MapArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::ArrowError;
use evtx_format::MAX_TEXT;
use evtx_format::instance::{Slots, Values};
use evtx_format::value::Value;

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
    descriptors: Vec<[u8; 4]>,
    offsets: Vec<u32>,
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
    pub(crate) fn push_run(&mut self, run: &Run, values: Values<'_>, template: usize) {
        self.keys.push_run(&run.keys);
        match run.consecutive(values) {
            Some(slots) => self.push_slots(slots, values, template),
            None => {
                for &hole in &run.holes {
                    self.push_hole(values, hole);
                }
            }
        }
        self.end_map();
    }

    /// Appends the values of slots that follow each other. Those that are the same in the template's last record are copied from
    /// there, as far as they stand side by side in one go.
    fn push_slots(&mut self, slots: Slots<'_>, values: Values<'_>, template: usize) {
        if self.last.len() <= template {
            self.last.resize_with(template + 1, LastRun::default);
        }
        let mut last = std::mem::take(&mut self.last[template]);
        if last.epoch != self.epoch {
            last.epoch = self.epoch;
            last.descriptors.clear();
            last.offsets.clear();
        }
        let first = std::mem::replace(&mut last.first, self.values.len());
        let mut at = 0;
        while at < slots.len() {
            let alike = slots.descriptors[at..]
                .iter()
                .zip(last.descriptors.get(at..).unwrap_or_default())
                .take_while(|(new, old)| new == old)
                .count();
            let mut same = alike;
            if alike > 0 {
                let start = slots.offsets[at] as usize;
                let len = slots.end(at + alike - 1) - start;
                let agree = values.agreement(start, last.offsets[at] as usize, len);
                if agree < len {
                    same = (0..alike)
                        .position(|i| slots.end(at + i) > start + agree)
                        .unwrap_or(alike);
                }
                self.values.repeat(first + at..first + at + same);
                at += same;
            }
            if same == alike && at == slots.len() {
                break;
            }
            self.push_hole(values, slots.first + at as u16);
            at += 1;
        }
        last.descriptors.clear();
        last.descriptors.extend_from_slice(slots.descriptors);
        last.offsets.clear();
        last.offsets.extend_from_slice(slots.offsets);
        self.last[template] = last;
    }

    #[inline(always)]
    fn push_hole(&mut self, values: Values<'_>, hole: u16) {
        let value = values.get(hole).unwrap_or(Value::null());
        self.values.push_value(value, |out| Found::Value(value).push_entry(out));
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
