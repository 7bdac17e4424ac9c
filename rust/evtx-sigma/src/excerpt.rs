//! Excerpts: the part of a long value around what a rule found in it.

/// The longest value that stays whole, and the longest excerpt without its marks, in characters.
pub(crate) const LONGEST: usize = 200;

/// The most characters of an excerpt before the match. They are few, so that who shortens the excerpt keeps the match.
const BEFORE: usize = 24;

/// Marks that something is left out.
const LEFT_OUT: char = '…';

/// A text whose match is at a byte offset, or an excerpt of it if it is long.
pub(crate) fn excerpt(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or_default();
    let offset_of = |number: usize| move |text: &str| text.char_indices().nth(number).map(|(offset, _)| offset);
    if offset_of(LONGEST)(text).is_none() {
        return text.to_owned();
    }
    let start = before
        .char_indices()
        .rev()
        .nth(BEFORE - 1)
        .map_or(0, |(offset, _)| offset);
    let rest = &text[start..];
    let end = offset_of(LONGEST)(rest);
    let mark = |is_cut: bool| is_cut.then_some(LEFT_OUT);
    let shown = rest[..end.unwrap_or(rest.len())].chars();
    mark(start > 0)
        .into_iter()
        .chain(shown)
        .chain(mark(end.is_some()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_match_of_a_long_value() {
        let long = |before: usize, after: usize| format!("{}match{}", "é".repeat(before), "ü".repeat(after));
        assert_eq!(excerpt(&long(100, 95), 200), long(100, 95));
        assert_eq!(excerpt(&long(0, 196), 0), long(0, 195) + "…");
        assert_eq!(excerpt(&long(24, 300), 48), long(24, 171) + "…");
        assert_eq!(excerpt(&long(25, 300), 50), format!("…{}…", long(24, 171)));
        assert_eq!(excerpt(&long(300, 0), 600), format!("…{}", long(24, 0)));
        assert_eq!(
            excerpt(&long(300, 0), 599).chars().count(),
            201,
            "no character starts there"
        );
    }
}
