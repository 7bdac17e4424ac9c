//! The columns of `System` that tell what kind of event a record is: level, task, provider, channel, computer and the like.
//!
//! A batch has few different rows of them. So it keeps each once, with the number that each record has of them, and a record
//! whose values have the same bytes as those of one before takes over that one's row: none of its columns is looked at.

use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_schema::ArrowError;
use arrow_select::take::take;
use evtx_format::instance::{Slots, Values};

use crate::builders::{self, ColumnBuilder, FieldBuilder, MakeArrays};
use crate::plan::{Plan, Target};
use crate::record::Fields;

/// Fewest columns that are kept so. To look for the row costs as much as to read some columns.
pub(crate) const MIN_COLUMNS: usize = 4;

/// Rows that are remembered in a batch, by a hash: a power of two.
const SEEN: usize = 512;

/// Most bytes of a row's values that are remembered.
const MAX_BYTES: usize = 4096;

/// The holes of a template that the columns of `System` are read from.
#[derive(Debug)]
pub(crate) struct SystemHoles {
    /// Tells the template from all others. Not 0.
    template: u64,
    /// The first of holes that follow each other, and how many they are.
    runs: Box<[(u16, usize)]>,
}

impl SystemHoles {
    /// Those of a plan for an event's own template; `None` where that has no `System`, or the columns are not asked for.
    pub(crate) fn new(target: &Target, plan: &Plan) -> Option<Self> {
        static TEMPLATES: AtomicU64 = AtomicU64::new(1);
        if !plan.system || !target.shares_system() {
            return None;
        }
        let mut holes: Vec<u16> = Vec::new();
        for (place, source) in target.places.iter().zip(&plan.fields) {
            if let (true, Some(source)) = (place.repeats(), source) {
                holes.extend(source.holes());
            }
        }
        holes.sort_unstable();
        holes.dedup();
        let runs = holes.chunk_by(|a, b| a + 1 == *b);
        Some(SystemHoles {
            template: TEMPLATES.fetch_add(1, Ordering::Relaxed),
            runs: runs.filter_map(|run| Some((*run.first()?, run.len()))).collect(),
        })
    }

    /// The values of the runs, none if the table of values is too short for one.
    fn values<'v>(&self, values: Values<'v>) -> impl Iterator<Item = Option<(Slots<'v>, &'v [u8])>> {
        self.runs.iter().map(move |&(first, count)| {
            let slots = values.slots(first, count)?;
            Some((slots, values.bytes(&slots)))
        })
    }
}

/// The columns, and the rows of a batch in them.
#[derive(Debug)]
pub(crate) struct SystemRows {
    columns: Vec<SystemColumn>,
    /// How many rows the columns have.
    len: u32,
    /// By row of the batch, the number of its row in the columns.
    rows: Vec<u32>,
    seen: Box<[Seen]>,
    /// The descriptors and values of what was seen, run by run.
    bytes: Vec<u8>,
    /// Bytes of text that the columns hold.
    text: usize,
}

#[derive(Debug)]
struct SystemColumn {
    /// Its number among all columns.
    number: usize,
    place: usize,
    builder: FieldBuilder,
}

/// A row of the columns that a record was read into.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// The template, or 0.
    template: u64,
    /// Where its bytes start.
    start: usize,
    row: u32,
}

impl SystemRows {
    /// Takes the columns that repeat out of those of a scan.
    pub(crate) fn take(target: &Target, builders: &mut Vec<ColumnBuilder>) -> Self {
        let mut columns = Vec::new();
        if target.shares_system() {
            let all = std::mem::take(builders).into_iter().enumerate();
            for (number, builder) in all {
                match builder {
                    ColumnBuilder::Field(place, builder) if target.places[place].repeats() => {
                        columns.push(SystemColumn { number, place, builder });
                    }
                    other => builders.push(other),
                }
            }
        }
        SystemRows {
            seen: vec![Seen::default(); if columns.is_empty() { 0 } else { SEEN }].into(),
            columns,
            len: 0,
            rows: Vec::new(),
            bytes: Vec::new(),
            text: 0,
        }
    }

    /// Whether there are no columns, so that there is nothing to append.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Appends the row of a record, with the values of its template's holes, if it has such.
    #[inline]
    pub(crate) fn push(
        &mut self,
        system: Option<(&SystemHoles, Values<'_>)>,
        fields: &Fields<'_, '_>,
    ) -> Result<(), ArrowError> {
        if let Some(row) = system.and_then(|(holes, values)| self.find(holes, values)) {
            self.rows.push(row);
            return Ok(());
        }
        self.push_new(Some(fields))
    }

    /// Appends a row of what a record has, or of nothing.
    #[inline(never)]
    pub(crate) fn push_new(&mut self, fields: Option<&Fields<'_, '_>>) -> Result<(), ArrowError> {
        for column in &mut self.columns {
            let found = fields.and_then(|fields| fields.get(column.place));
            column.builder.push(found.as_ref())?;
        }
        self.rows.push(self.len);
        self.len += 1;
        self.text = self.columns.iter().map(|column| column.builder.bytes()).sum();
        Ok(())
    }

    /// The row of a record with the same values. If there is none, the next row is theirs.
    #[inline]
    fn find(&mut self, holes: &SystemHoles, values: Values<'_>) -> Option<u32> {
        let mut hash = holes.template;
        for run in holes.values(values) {
            let (_, bytes) = run?;
            hash = mix(hash, bytes);
        }
        let seen = self.seen.get_mut((hash >> 32) as usize % SEEN)?;
        if seen.template == holes.template {
            let mut known = self.bytes.get(seen.start..)?;
            let same = holes.values(values).flatten().all(|(slots, bytes)| {
                let mut is_next = |part: &[u8]| {
                    let next = known.split_at_checked(part.len());
                    known = next.map_or(&[], |(_, rest)| rest);
                    next.is_some_and(|(next, _)| next == part)
                };
                is_next(slots.descriptors.as_flattened()) && is_next(bytes)
            });
            if same {
                return Some(seen.row);
            }
        }
        let len: usize = holes
            .values(values)
            .flatten()
            .map(|(slots, bytes)| 4 * slots.len() + bytes.len())
            .sum();
        if len <= MAX_BYTES {
            *seen = Seen {
                template: holes.template,
                start: self.bytes.len(),
                row: self.len,
            };
            for (slots, bytes) in holes.values(values).flatten() {
                self.bytes.extend_from_slice(slots.descriptors.as_flattened());
                self.bytes.extend_from_slice(bytes);
            }
        }
        None
    }

    /// Bytes of text that the columns hold.
    pub(crate) fn text(&self) -> usize {
        self.text
    }

    /// Ends the batch: each column with its number, in order.
    pub(crate) fn finish(&mut self, make: MakeArrays) -> Result<Vec<(usize, ArrayRef)>, ArrowError> {
        let rows = UInt32Array::from(builders::take(&mut self.rows));
        self.len = 0;
        self.seen.fill(Seen::default());
        self.bytes.clear();
        self.text = 0;
        let columns = self.columns.iter_mut().map(|column| {
            let distinct = column.builder.finish(make)?;
            // As many rows as there are different ones are those.
            let array = if distinct.len() == rows.len() {
                distinct
            } else {
                take(&distinct, &rows, None)?
            };
            Ok((column.number, array))
        });
        columns.collect()
    }
}

/// A hash of where values differ first: their first and last bytes.
#[inline]
fn mix(hash: u64, bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let (first, last) = match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => (bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)), 0),
    };
    let hash = (hash ^ first).wrapping_mul(FACTOR);
    (hash ^ last ^ hash >> 32).wrapping_mul(FACTOR)
}
