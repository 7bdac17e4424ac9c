//! The substitutions that the columns of `System` are read from, which tell whether records have the same row of them.

use std::sync::atomic::{AtomicU64, Ordering};

use evtx_format::binxml::instance::ValueTable;

use super::column_plan::Plan;
use super::target::Projection;

/// The substitutions of a template that the columns of `System` are read from.
#[derive(Debug)]
pub(crate) struct SystemSubstitutions {
    /// Tells the template from all others. Not 0.
    pub(crate) template: u64,
    /// The first of substitutions that follow each other, and how many they are.
    runs: Box<[(u16, usize)]>,
}

impl SystemSubstitutions {
    /// Those of a plan for an event's own template; `None` where that has no `System`, or the columns are not asked
    /// for.
    pub(crate) fn new(target: &Projection, plan: &Plan) -> Option<Self> {
        static TEMPLATES: AtomicU64 = AtomicU64::new(1);
        if !plan.system || !target.shares_system() {
            return None;
        }
        let mut substitutions: Vec<u16> = Vec::new();
        for (place, source) in target.places.iter().zip(&plan.fields) {
            if let (true, Some(source)) = (place.repeats(), source) {
                substitutions.extend(source.substitutions());
            }
        }
        substitutions.sort_unstable();
        substitutions.dedup();
        let runs = substitutions.chunk_by(|a, b| a + 1 == *b);
        Some(SystemSubstitutions {
            template: TEMPLATES.fetch_add(1, Ordering::Relaxed),
            runs: runs.filter_map(|run| Some((*run.first()?, run.len()))).collect(),
        })
    }

    /// The descriptors and the bytes of the runs' values.
    #[inline(always)]
    pub(crate) fn values<'v>(&self, values: ValueTable<'v>) -> impl Iterator<Item = Option<(&'v [u8], &'v [u8])>> {
        self.runs.iter().map(move |&(first, count)| {
            let (descriptors, bytes) = values.run(first, count)?;
            Some((descriptors.as_flattened(), bytes))
        })
    }

    /// A hash of where values differ first, and how many bytes they have with their descriptors. `None` where the table
    /// of values is too short for a run: what it has of that would not be looked at.
    // Apart from what looks at the values again, so that neither runs out of registers.
    #[inline(never)]
    pub(crate) fn hash(&self, values: ValueTable<'_>) -> Option<(u64, usize)> {
        let (mut hash, mut len) = (self.template, 0);
        for run in self.values(values) {
            let (descriptors, bytes) = run?;
            len += descriptors.len() + bytes.len();
            hash = hash_step(hash, bytes);
        }
        Some((hash, len))
    }

    /// Whether the values and their descriptors are those that stand side by side in `known`.
    #[inline(never)]
    pub(crate) fn matches(&self, values: ValueTable<'_>, mut known: &[u8]) -> bool {
        let mut is_next = |part: &[u8]| {
            let Some((next, rest)) = known.split_at_checked(part.len()) else {
                return false;
            };
            known = rest;
            bytes_equal(part, next)
        };
        let mut runs = self.values(values).flatten();
        runs.all(|(descriptors, bytes)| is_next(descriptors) && is_next(bytes))
    }
}

/// Whether parts of the same length are the same. Most are short, so that a call would take longer.
#[inline(always)]
fn bytes_equal(a: &[u8], b: &[u8]) -> bool {
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
fn hash_step(hash: u64, bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let (first, last) = match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => (bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)), 0),
    };
    let hash = (hash ^ first).wrapping_mul(FACTOR);
    (hash ^ last ^ hash >> 32).wrapping_mul(FACTOR)
}
