//! Runs: what has one key and follows each other.

use std::hash::Hash;

use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashMap;

pub(crate) use evtx_events::sort;

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const DAY: u64 = 86_400 * SECOND;

/// Whether the second of two times comes at most so many nanoseconds after the first.
pub(crate) fn is_within(longest: u64, before: Option<i64>, after: Option<i64>) -> bool {
    let apart = before
        .zip(after)
        .map(|(before, after)| i128::from(after) - i128::from(before));
    apart.is_some_and(|apart| apart <= i128::from(longest))
}

/// Items in the order of their logs, divided into runs of one key, in the order of their first items. `goes_on` tells whether an
/// item follows the one before it with this key.
///
/// # Errors
/// [`Interrupted`].
pub(crate) fn runs<T: Copy, K: Hash + Eq>(
    items: impl IntoIterator<Item = T>,
    key: impl Fn(T) -> K,
    goes_on: impl Fn(T, T) -> bool,
    interrupt: Interrupt<'_>,
) -> Result<Vec<Vec<T>>, Interrupted> {
    let mut found: Vec<Vec<T>> = Vec::new();
    let mut last_runs: HashMap<K, usize> = HashMap::new();
    for (step, item) in items.into_iter().enumerate() {
        interrupt.check_step(step)?;
        let next = found.len();
        let run = last_runs.entry(key(item)).or_insert(next);
        let goes_on = found
            .get(*run)
            .and_then(|run| run.last())
            .is_some_and(|&before| goes_on(before, item));
        if goes_on {
            found[*run].push(item);
        } else {
            *run = next;
            found.push(vec![item]);
        }
    }
    Ok(found)
}

/// For each value that is known, the place of the next known one that differs from it, or the end.
pub(crate) fn changes<T: PartialEq>(values: &[Option<T>]) -> Vec<usize> {
    let mut places = vec![values.len(); values.len()];
    let mut next: Option<usize> = None;
    for at in (0..values.len()).rev().filter(|&at| values[at].is_some()) {
        if let Some(next) = next {
            places[at] = if values[next] == values[at] { places[next] } else { next };
        }
        next = Some(at);
    }
    places
}

/// The value of all items, if they have the same; `None` if there is none, or more than one.
pub(crate) fn only<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_no_change() {
        assert_eq!(
            changes(&[Some('a'), None, Some('a'), Some('b'), None])[..4],
            [3, 5, 3, 5]
        );
    }

    #[test]
    fn a_run_ends_after_a_pause() {
        let times = [(1, 'a'), (2, 'b'), (3, 'a'), (6, 'b'), (9, 'a')];
        let found = runs(
            times,
            |(_, key)| key,
            |before, next| next.0 - before.0 <= 3,
            Interrupt::NEVER,
        );
        let expected = vec![vec![(1, 'a'), (3, 'a')], vec![(2, 'b')], vec![(6, 'b')], vec![(9, 'a')]];
        assert_eq!(found, Ok(expected));
        assert!(!is_within(1, None, Some(1)) && is_within(1, Some(2), Some(1)));
    }
}
