//! The `event_data` column: a map for each record. Its keys are a dictionary.

use std::sync::Arc;

use arrow_array::{ArrayRef, MapArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::ArrowError;
use evtx_format::binxml::fields::Param;
use evtx_format::binxml::instance::{ValueDescriptors, ValueTable, value_size};
use evtx_format::value::Value;
use evtx_format::{Interrupt, MAX_TEXT};

use super::key_dictionary::Dictionary;
use super::text::TextBuilder;
use crate::arrays::{Build, Indices, MakeArrays, take};
use crate::plan::{BareEntries, Entry, Keys, MapValue, Resolved};
use crate::record::TemplateId;
use crate::schema::{entries_field, entry_fields};

/// How many bytes of text are written between two checks for an interrupt.
pub(crate) const LONG: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct MapBuilder {
    keys: Dictionary,
    values: TextBuilder,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    /// By [`TemplateId`].
    last: Vec<PreviousMap>,
    /// A number for the current chunk and batch. A previous map counts only if it is from the same epoch.
    epoch: u64,
}

/// The last map of a template's records. The next record of the template has most of the same values.
#[derive(Debug, Default)]
struct PreviousMap {
    epoch: u64,
    /// The index of its first entry.
    first: usize,
    /// Chunk offset of its first value descriptor.
    descriptors: u32,
    /// Chunk offset of its first value.
    values: u32,
    count: usize,
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

    /// Begins a new epoch, because template IDs mean other templates from here on.
    pub(crate) fn start_chunk(&mut self) {
        self.epoch += 1;
    }

    pub(crate) fn push_entries(&mut self, entries: &[Entry], values: ValueTable<'_>, interrupt: Interrupt<'_>) {
        let found = entries
            .iter()
            .filter_map(|entry| Some((None, entry, entry.source.find(values)?)));
        self.push_bounded(found, interrupt);
    }

    /// Appends a map, up to the entry that makes its text longer than [`MAX_TEXT`] bytes. A number names an entry.
    #[inline(never)]
    pub(crate) fn push_bounded<'p, 'r>(
        &mut self,
        entries: impl Iterator<Item = MapValue<'p, 'r>>,
        interrupt: Interrupt<'_>,
    ) {
        let (mut bytes, mut next_look) = (0, LONG);
        for (number, entry, found) in entries {
            if bytes > next_look {
                // After an interrupt the rows are not used.
                if bytes > MAX_TEXT || interrupt.check().is_err() {
                    break;
                }
                next_look = MAX_TEXT.min(bytes + LONG);
            }
            match number {
                Some(number) => self.keys.push_own(&Param(number).to_string()),
                None => self.keys.push(&entry.key),
            }
            bytes += self.values.push_found(&found, MAX_TEXT, |out| found.push_entry(out));
        }
        self.end_map();
    }

    /// Appends the map of a record whose entries are all bare.
    // Kept out of line, so that the loop over the columns stays small.
    #[inline(never)]
    pub(crate) fn push_bare_entries(&mut self, bare: &BareEntries, values: ValueTable<'_>, template: TemplateId) {
        self.keys.extend(&bare.keys);
        match bare.consecutive(values) {
            Some(slots) => self.push_slots(slots, values, template),
            None => {
                for &substitution in &bare.substitutions {
                    self.push_substitution(values, substitution);
                }
            }
        }
        self.end_map();
    }

    /// Appends consecutive values. Those that equal those of the template's last record share their texts.
    fn push_slots(&mut self, slots: ValueDescriptors<'_>, values: ValueTable<'_>, template: TemplateId) {
        let TemplateId(template) = template;
        if self.last.len() <= template {
            self.last.resize_with(template + 1, PreviousMap::default);
        }
        let last = &mut self.last[template];
        if last.epoch != self.epoch {
            last.count = 0;
        }
        let old = values.descriptors(last.descriptors, last.count);
        let (first, mut old_start) = (last.first, last.values as usize);
        *last = PreviousMap {
            epoch: self.epoch,
            first: self.values.len(),
            descriptors: slots.at,
            values: slots.offsets.first().copied().unwrap_or_default(),
            count: slots.len(),
        };
        // The descriptors are equal up to the index `matching_until`.
        let (mut at, mut matching_until) = (0, 0);
        while at < slots.len() {
            if at >= matching_until {
                let pairs = slots.descriptors[at..].iter().zip(old.get(at..).unwrap_or_default());
                matching_until = at + pairs.take_while(|(new, old)| new == old).count();
            }
            if at < matching_until {
                let start = slots.offsets[at] as usize;
                let len = slots.end(matching_until - 1) - start;
                let agree = values.agreement(start, old_start, len);
                let mut same = matching_until;
                if agree < len {
                    // A value ends where the next one starts.
                    let ends = slots.offsets[at + 1..matching_until].iter();
                    same = at + ends.take_while(|&&end| end as usize <= start + agree).count();
                }
                self.values.push_again(first + at..first + same);
                at = same;
                old_start += slots.offsets.get(at).map_or(0, |&next| next as usize - start);
            }
            if at < slots.len() {
                self.push_substitution(values, slots.first + at as u16);
                old_start += old.get(at).map_or(0, |&old| value_size(old));
                at += 1;
            }
        }
    }

    /// Appends the value of a substitution, as the text of an entry.
    #[inline(always)]
    fn push_substitution(&mut self, values: ValueTable<'_>, substitution: u16) {
        let value = values.get(substitution).unwrap_or(Value::null());
        let push = |out: &mut Vec<u8>| Resolved::Value(value).push_entry(out);
        self.values.push_value(value, push);
    }

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
        self.values.bytes() + self.keys.bytes()
    }

    pub(crate) fn finish(&mut self, make: MakeArrays) -> Result<MapArray, ArrowError> {
        self.epoch += 1;
        let (entries, names) = self.keys.finish();
        let keys = (make.dictionary)(Indices::new(entries.into(), names))?;
        let columns: Vec<ArrayRef> = vec![Arc::new(keys), self.values.finish(make)?];
        let entries = StructArray::try_new(entry_fields(), columns, None)?;
        let offsets = OffsetBuffer::new(take(&mut self.offsets).into());
        self.offsets.push(0);
        MapArray::try_new(entries_field(), offsets, entries, self.nulls.finish(), false)
    }
}
