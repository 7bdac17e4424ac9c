//! Sets of record IDs.

/// The most runs of IDs that are kept, which take 8 MiB. Real logs have a few hundred at most.
pub(super) const MAX_RUNS: usize = 1 << 19;

/// A set of record IDs, as runs of consecutive ones.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// The first and the last ID of each run.
    runs: Vec<(u64, u64)>,
    /// Whether there were too many runs to keep. Then only the least and the greatest ID are known.
    overflows: bool,
}

impl Runs {
    /// How many runs there are.
    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Adds a run.
    pub(super) fn add(&mut self, first: u64, last: u64) {
        match self.runs.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(first) => *end = last,
            _ => self.runs.push((first, last)),
        }
        if self.runs.len() >= MAX_RUNS {
            self.unite();
        }
    }

    /// Adds the runs of what stands behind.
    pub(super) fn join(&mut self, behind: Runs) {
        self.overflows |= behind.overflows;
        behind.runs.into_iter().for_each(|(first, last)| self.add(first, last));
    }

    /// Sorts the runs, and unites those that are adjacent or overlap. If more than half of [`MAX_RUNS`] are left,
    /// replaces them by one run from the least to the greatest ID.
    #[cold]
    fn unite(&mut self) {
        self.runs.sort_unstable();
        self.runs.dedup_by(|(first, last), (_, end)| {
            let follows = *first <= end.saturating_add(1);
            *end = if follows { (*last).max(*end) } else { *end };
            follows
        });
        if self.runs.len() > MAX_RUNS / 2 {
            let greatest = self.runs.iter().map(|(_, last)| *last).max();
            self.runs.truncate(1);
            if let (Some((_, last)), Some(greatest)) = (self.runs.first_mut(), greatest) {
                *last = greatest;
            }
            self.overflows = true;
        }
    }

    /// What the IDs span; `None` if there are none.
    pub(super) fn span(&mut self) -> Option<Span> {
        self.unite();
        let (&(least, _), &(_, greatest)) = (self.runs.first()?, self.runs.last()?);
        let gaps = self.runs.windows(2).map(|pair| pair[1].0 - pair[0].1 - 1);
        Some(Span {
            least,
            greatest,
            missing: (!self.overflows).then(|| gaps.sum()),
        })
    }
}

/// What record IDs span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) least: u64,
    pub(super) greatest: u64,
    pub(super) missing: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_counted_whatever_the_order() {
        let span = |ids: &[(u64, u64)]| {
            let mut runs = Runs::default();
            ids.iter().for_each(|&(first, last)| runs.add(first, last));
            runs.span().map(|span| (span.least, span.greatest, span.missing))
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
    fn ids_in_too_many_pieces_are_not_kept() {
        let mut runs = Runs::default();
        (0..4 * MAX_RUNS as u64).for_each(|id| runs.add(7 + 2 * id, 7 + 2 * id));
        assert!(runs.runs.len() < MAX_RUNS);
        let span = runs.span().expect("IDs");
        assert_eq!(
            (span.least, span.greatest, span.missing),
            (7, 5 + 8 * MAX_RUNS as u64, None)
        );
    }
}
