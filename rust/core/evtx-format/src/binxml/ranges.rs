//! Ranges of substitutions, and whether two instances of a template have the same values in them.

use super::instance::ValueTable;
use crate::bytes::bytes_equal;

/// Some substitutions of a template, as ranges of consecutive values. Instances with equal values in them share
/// everything that is derived from these substitutions alone.
#[derive(Debug, Default)]
pub struct SubstitutionRanges {
    /// The first substitution of each range, and how many there are.
    ranges: Box<[(u16, usize)]>,
}

impl SubstitutionRanges {
    /// The ranges of some substitutions.
    pub fn new(mut substitutions: Vec<u16>) -> Self {
        substitutions.sort_unstable();
        substitutions.dedup();
        let ranges = substitutions.chunk_by(|a, b| a + 1 == *b);
        SubstitutionRanges {
            ranges: ranges
                .filter_map(|range| Some((*range.first()?, range.len())))
                .collect(),
        }
    }

    /// For each range, the descriptors and the bytes of its values; `None` if the value table does not have the range.
    #[inline(always)]
    pub fn values<'v>(&self, values: ValueTable<'v>) -> impl Iterator<Item = Option<(&'v [u8], &'v [u8])>> {
        self.ranges.iter().map(move |&(first, count)| {
            let (descriptors, bytes) = values.range(first, count)?;
            Some((descriptors.as_flattened(), bytes))
        })
    }

    /// A hash of the values, which begins with `seed`, and how many bytes they have with their descriptors. `None` if
    /// the value table does not have a range, because its values in that range would not be compared.
    // Kept out of line, and apart from `matches`, so that neither runs out of registers.
    #[inline(never)]
    pub fn hash(&self, seed: u64, values: ValueTable<'_>) -> Option<(u64, usize)> {
        let (mut hash, mut len) = (seed, 0);
        for range in self.values(values) {
            let (descriptors, bytes) = range?;
            len += descriptors.len() + bytes.len();
            hash = hash_step(hash, bytes);
        }
        Some((hash, len))
    }

    /// Whether `known`, which [`keep`](Self::keep) appended, has the same descriptors and values, range by range.
    #[inline(never)]
    pub fn matches(&self, values: ValueTable<'_>, mut known: &[u8]) -> bool {
        let mut is_next = |bytes: &[u8]| {
            let Some((next, rest)) = known.split_at_checked(bytes.len()) else {
                return false;
            };
            known = rest;
            bytes_equal(bytes, next)
        };
        let mut ranges = self.values(values).flatten();
        ranges.all(|(descriptors, bytes)| is_next(descriptors) && is_next(bytes))
    }

    /// Appends the descriptors and the bytes of the values.
    pub fn keep(&self, values: ValueTable<'_>, out: &mut Vec<u8>) {
        for (descriptors, bytes) in self.values(values).flatten() {
            out.extend_from_slice(descriptors);
            out.extend_from_slice(bytes);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_substitutions_are_one_range() {
        assert_eq!(*SubstitutionRanges::new(vec![5, 1, 2, 4, 2]).ranges, [(1, 2), (4, 2)]);
    }

    #[test]
    fn a_hash_depends_on_the_first_and_the_last_bytes() {
        for len in 0..=40_usize {
            let bytes: Vec<u8> = (1..=len as u8).collect();
            let hash = hash_step(1, &bytes);
            assert_ne!(hash, hash_step(2, &bytes), "what came before counts");
            let is_hashed = |at: usize| at < 8 || at + 8 >= len;
            for at in (0..len).filter(|&at| is_hashed(at)) {
                let mut other = bytes.clone();
                other[at] ^= 0x40;
                assert_ne!(hash, hash_step(1, &other), "byte {at} of {len}");
            }
        }
    }
}
