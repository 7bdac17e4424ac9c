//! Sets of record IDs.

/// The most ranges of IDs that are kept: 8 MiB. Real logs have a few hundred at most.
pub(crate) const MAX_RANGES: usize = 1 << 19;

/// A set of record IDs, as ranges of consecutive ones.
#[derive(Debug, Default)]
pub(crate) struct IdRanges {
    /// The first and the last ID of each range.
    ranges: Vec<(u64, u64)>,
    /// Whether there were too many ranges. Then only the least and the greatest ID are kept.
    overflows: bool,
}

impl IdRanges {
    /// How many ranges there are.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Adds a range.
    pub(crate) fn add(&mut self, first: u64, last: u64) {
        match self.ranges.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(first) => *end = last,
            _ => self.ranges.push((first, last)),
        }
        if self.ranges.len() >= MAX_RANGES {
            self.unite();
        }
    }

    /// Adds the ranges of the records that follow.
    pub(crate) fn join(&mut self, next: IdRanges) {
        self.overflows |= next.overflows;
        next.ranges.into_iter().for_each(|(first, last)| self.add(first, last));
    }

    /// Sorts the ranges and unites adjacent and overlapping ones. If more than half of [`MAX_RANGES`] are left,
    /// replaces them with one range from the least to the greatest ID.
    #[cold]
    fn unite(&mut self) {
        self.ranges.sort_unstable();
        self.ranges.dedup_by(|(first, last), (_, end)| {
            let follows = *first <= end.saturating_add(1);
            *end = if follows { (*last).max(*end) } else { *end };
            follows
        });
        if self.ranges.len() > MAX_RANGES / 2 {
            let greatest = self.ranges.iter().map(|(_, last)| *last).max();
            self.ranges.truncate(1);
            if let (Some((_, last)), Some(greatest)) = (self.ranges.first_mut(), greatest) {
                *last = greatest;
            }
            self.overflows = true;
        }
    }

    /// The span of the IDs; `None` if there are none.
    pub(crate) fn span(&mut self) -> Option<Span> {
        self.unite();
        let (&(least, _), &(_, greatest)) = (self.ranges.first()?, self.ranges.last()?);
        let gaps = self.ranges.windows(2).map(|pair| pair[1].0 - pair[0].1 - 1);
        Some(Span {
            least,
            greatest,
            missing: (!self.overflows).then(|| gaps.sum()),
        })
    }
}

/// The span of record IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) least: u64,
    pub(crate) greatest: u64,
    /// How many IDs in between are missing. `None` if there were too many ranges.
    pub(crate) missing: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_counted_whatever_the_order() {
        let span = |ids: &[(u64, u64)]| {
            let mut ranges = IdRanges::default();
            ids.iter().for_each(|&(first, last)| ranges.add(first, last));
            ranges.span().map(|span| (span.least, span.greatest, span.missing))
        };
        let each = |ids: &[u64]| span(&ids.iter().map(|&id| (id, id)).collect::<Vec<_>>());
        assert_eq!(each(&[7, 8, 9, 1, 2, 5, 5, 8]), Some((1, 9, Some(3))));
        assert_eq!(each(&[]), None);
        assert_eq!(
            span(&[(0, u64::MAX), (u64::MAX, u64::MAX)]),
            Some((0, u64::MAX, Some(0)))
        );
    }

    #[test]
    fn ids_in_too_many_ranges_are_not_kept() {
        let mut ranges = IdRanges::default();
        (0..4 * MAX_RANGES as u64).for_each(|id| ranges.add(7 + 2 * id, 7 + 2 * id));
        assert!(ranges.ranges.len() < MAX_RANGES);
        let span = ranges.span().expect("IDs");
        assert_eq!(
            (span.least, span.greatest, span.missing),
            (7, 5 + 8 * MAX_RANGES as u64, None)
        );
    }
}
