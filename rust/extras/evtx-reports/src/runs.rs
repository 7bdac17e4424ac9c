//! Sets of record IDs.

/// The most runs of IDs that are kept: 8 MiB. Real logs have a few hundred at most.
pub(crate) const MAX_RUNS: usize = 1 << 19;

/// A set of record IDs, as runs of consecutive ones.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    /// The first and the last ID of each run.
    runs: Vec<(u64, u64)>,
    /// Whether there were too many runs. Then only the least and the greatest ID are kept.
    overflows: bool,
}

impl Runs {
    /// How many runs there are.
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Adds a run.
    pub(crate) fn add(&mut self, first: u64, last: u64) {
        match self.runs.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(first) => *end = last,
            _ => self.runs.push((first, last)),
        }
        if self.runs.len() >= MAX_RUNS {
            self.unite();
        }
    }

    /// Adds the runs of the records that follow.
    pub(crate) fn join(&mut self, next: Runs) {
        self.overflows |= next.overflows;
        next.runs.into_iter().for_each(|(first, last)| self.add(first, last));
    }

    /// Sorts the runs and unites adjacent and overlapping ones. If more than half of [`MAX_RUNS`] are left, replaces
    /// them with one run from the least to the greatest ID.
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

    /// The span of the IDs; `None` if there are none.
    pub(crate) fn span(&mut self) -> Option<Span> {
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

/// The span of record IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) least: u64,
    pub(crate) greatest: u64,
    /// How many IDs in between are missing. `None` if there were too many runs.
    pub(crate) missing: Option<u64>,
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
    fn ids_in_too_many_runs_are_not_kept() {
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
