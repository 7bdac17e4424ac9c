//! The columns of `System` that tell what kind of event a record is: level, task, provider, channel, computer and the like.
//!
//! A log has few different rows of them. So each is kept once, with the number that each record has of them, and a record
//! whose values have the same bytes as those of one before takes over that one's row: none of its columns is looked at.

use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_schema::ArrowError;
use arrow_select::take::take;
use evtx_format::binxml::instance::Values;

use crate::builders::{self, ColumnBuilder, FieldBuilder, MakeArrays};
use crate::plan::{Plan, Target};
use crate::record::Fields;

/// Fewest columns that are kept so. To look for the row costs as much as to read some columns.
pub(crate) const MIN_COLUMNS: usize = 4;

/// Rows that are remembered, by a hash: a power of two.
const SEEN: usize = 4096;

/// Most rows that are kept from batch to batch, and most bytes of what they were read from and of their text.
const MAX_ROWS: u32 = 1024;
const MAX_KEPT: usize = 1 << 20;

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

    /// The descriptors and the bytes of the runs' values.
    #[inline(always)]
    fn values<'v>(&self, values: Values<'v>) -> impl Iterator<Item = Option<(&'v [u8], &'v [u8])>> {
        self.runs.iter().map(move |&(first, count)| {
            let (descriptors, bytes) = values.run(first, count)?;
            Some((descriptors.as_flattened(), bytes))
        })
    }

    /// A hash of where values differ first, and how many bytes they have with their descriptors. `None` where the table of values
    /// is too short for a run: what it has of that would not be looked at.
    // Apart from what looks at the values again, so that neither runs out of registers.
    #[inline(never)]
    fn hash(&self, values: Values<'_>) -> Option<(u64, usize)> {
        let (mut hash, mut len) = (self.template, 0);
        for run in self.values(values) {
            let (descriptors, bytes) = run?;
            len += descriptors.len() + bytes.len();
            hash = mix(hash, bytes);
        }
        Some((hash, len))
    }

    /// Whether the values and their descriptors are those that stand side by side in `known`.
    #[inline(never)]
    fn are(&self, values: Values<'_>, mut known: &[u8]) -> bool {
        let mut is_next = |part: &[u8]| {
            let Some((next, rest)) = known.split_at_checked(part.len()) else {
                return false;
            };
            known = rest;
            same(part, next)
        };
        let mut runs = self.values(values).flatten();
        runs.all(|(descriptors, bytes)| is_next(descriptors) && is_next(bytes))
    }
}

/// The columns, and the rows of a batch in them. What the columns have is kept from batch to batch.
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
    /// Its rows when the last batch ended.
    array: Option<ArrayRef>,
}

/// A row of the columns that a record was read into.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// The template, or 0.
    template: u64,
    /// Where its bytes start, and how many they are.
    start: usize,
    len: usize,
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
                        columns.push(SystemColumn {
                            number,
                            place,
                            builder,
                            array: None,
                        });
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
        let (hash, len) = holes.hash(values)?;
        let seen = self.seen.get_mut((hash >> 32) as usize % SEEN)?;
        if seen.template == holes.template
            && seen.len == len
            && let Some(known) = self.bytes.get(seen.start..seen.start + len)
            && holes.are(values, known)
        {
            return Some(seen.row);
        }
        if len <= MAX_BYTES {
            *seen = Seen {
                template: holes.template,
                start: self.bytes.len(),
                len,
                row: self.len,
            };
            for (descriptors, bytes) in holes.values(values).flatten() {
                self.bytes.extend_from_slice(descriptors);
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
        let len = self.len as usize;
        let columns = self.columns.iter_mut().map(|column| {
            let known = match column.array.take() {
                Some(array) if array.len() == len => array,
                _ => column.builder.finish_cloned(make)?,
            };
            let array = take(&known, &rows, None)?;
            column.array = Some(known);
            Ok((column.number, array))
        });
        let columns = columns.collect::<Result<_, ArrowError>>()?;
        if self.len > MAX_ROWS || self.bytes.len().max(self.text) > MAX_KEPT {
            self.forget(make)?;
        }
        Ok(columns)
    }

    /// Forgets all rows.
    #[cold]
    fn forget(&mut self, make: MakeArrays) -> Result<(), ArrowError> {
        for column in &mut self.columns {
            column.builder.finish(make)?;
            column.array = None;
        }
        self.len = 0;
        self.seen.fill(Seen::default());
        self.bytes.clear();
        self.text = 0;
        Ok(())
    }
}

/// Whether parts of the same length are the same. Most are short, so that a call would take longer.
#[inline(always)]
fn same(a: &[u8], b: &[u8]) -> bool {
    #[inline(always)]
    fn ends<const N: usize>(a: &[u8], b: &[u8]) -> bool {
        a.first_chunk::<N>() == b.first_chunk::<N>() && a.last_chunk::<N>() == b.last_chunk::<N>()
    }
    match a.len() {
        33.. => a == b,
        16.. => ends::<16>(a, b),
        8.. => ends::<8>(a, b),
        4.. => ends::<4>(a, b),
        _ => a.iter().zip(b).all(|(a, b)| a == b),
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
