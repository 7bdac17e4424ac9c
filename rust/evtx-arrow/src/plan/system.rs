//! The substitutions from which the columns of `System` are read. Records of a template with equal values of them have
//! the same row in these columns.

use std::sync::atomic::{AtomicU64, Ordering};

use evtx_format::binxml::instance::ValueTable;

use super::column_plan::Plan;
use super::target::Projection;

/// The substitutions of a template from which the columns of `System` are read.
#[derive(Debug)]
pub(crate) struct SystemSubstitutions {
    /// A number that only this template has. Not 0.
    pub(crate) template: u64,
    /// Runs of consecutive substitutions: the first, and how many there are.
    runs: Box<[(u16, usize)]>,
}

impl SystemSubstitutions {
    /// The substitutions of a plan; `None` if its template has no `System` element, or if too few of its columns are
    /// read to share their rows.
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

    /// For each run, the descriptors and the bytes of its values; `None` if the value table is too short for the run.
    #[inline(always)]
    pub(crate) fn values<'v>(&self, values: ValueTable<'v>) -> impl Iterator<Item = Option<(&'v [u8], &'v [u8])>> {
        self.runs.iter().map(move |&(first, count)| {
            let (descriptors, bytes) = values.run(first, count)?;
            Some((descriptors.as_flattened(), bytes))
        })
    }

    /// A hash of the values, and how many bytes they have with their descriptors. `None` if the value table is too
    /// short for a run: the values that it has of that run would not be compared.
    // Kept out of line, and apart from `matches`, so that neither runs out of registers.
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

    /// Whether `known` has the same descriptors and values, run by run.
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

/// Whether two slices of the same length are equal. Inlined for short slices, which most are: a call to `memcmp` would
/// take longer.
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

/// Adds some bytes to a hash: only the first and last eight of them, where values usually differ.
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
