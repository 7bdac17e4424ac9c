//! Excerpts: the part of a long value around what a rule found in it.

use evtx_format::cut;

/// The longest value that stays whole, and the longest excerpt without its marks, in characters.
pub(crate) const LONGEST: usize = 200;

/// The most characters of an excerpt before the match. They are few, so that who shortens the excerpt keeps the match.
const BEFORE: usize = 24;

/// A text whose match is at a byte offset, or an excerpt of it if it is long.
pub(crate) fn excerpt(text: &str, at: usize) -> String {
    if cut(text, LONGEST).1.is_empty() {
        return text.to_owned();
    }
    let before = text.get(..at).unwrap_or_default().char_indices();
    let start = before.rev().nth(BEFORE - 1).map_or(0, |(offset, _)| offset);
    let (shown, dots) = cut(&text[start..], LONGEST);
    format!("{}{shown}{dots}", cut(&text[..start], 0).1)
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
