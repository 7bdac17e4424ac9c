//! Values of which some are not known.

/// A value that compares after all others if there is none.
pub(crate) fn last<T>(value: Option<T>) -> (bool, Option<T>) {
    (value.is_none(), value)
}

/// The lower of two values that are known.
pub(crate) fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
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
