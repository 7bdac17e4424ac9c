//! How values compare if some of them are unknown, and a sort that can be interrupted.

use evtx_format::{Interrupt, Interrupted};

/// A value that compares after all others if there is none.
pub fn last<T>(value: Option<T>) -> (bool, Option<T>) {
    (value.is_none(), value)
}

/// The lower of two values that are known.
pub fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}

/// Makes a span reach over another one.
pub(crate) fn widen<T: Ord + Copy>(span: &mut [Option<T>; 2], [low, high]: [Option<T>; 2]) {
    *span = [least(span[0], low), span[1].max(high)];
}

/// How many items are sorted between two looks for an interrupt.
const SORTED: usize = 1 << 16;

/// Sorts items by a key. Equal ones keep their order.
///
/// # Errors
/// [`Interrupted`].
pub fn sort<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K, interrupt: Interrupt<'_>) -> Result<(), Interrupted> {
    for part in items.chunks_mut(SORTED) {
        interrupt.check()?;
        part.sort_by_key(&key);
    }
    interrupt.check()?;
    // The parts are runs that it only merges.
    items.sort_by_key(key);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_neither_low_nor_first() {
        assert_eq!(least(None, least(Some(2), Some(1))), Some(1));
        assert!(last(Some(2)) < last(None));
    }
}
