//! Comparing texts without regard to case.

use std::borrow::Cow;

/// A character as it compares without regard to case.
///
/// This is the simple case folding of Unicode 16: the lines `C` and `S` of its `CaseFolding.txt`. It maps one character
/// to one, so `ß` is not `ss`, and `İ` is not `i`; but `ẞ` is `ß`, `ς` and `Σ` are `σ`, `ſ` is `s`, and the Kelvin sign
/// is `k`. The flag `i` of regular expressions treats the same characters as equal.
pub fn fold_char(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let folded = unicode_case_mapping::case_folded(c);
    folded.and_then(|code| char::from_u32(code.get())).unwrap_or(c)
}

/// A text as it compares without regard to case: each character by [`fold_char`].
pub fn fold(text: &str) -> Cow<'_, str> {
    fold_in(text).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// A text as [`fold`] changes it. `None` if it is the same.
pub fn fold_in(text: &str) -> Option<String> {
    if text.is_ascii() {
        let has_capital = text.bytes().any(|byte| byte.is_ascii_uppercase());
        return has_capital.then(|| text.to_ascii_lowercase());
    }
    let is_folded = text.chars().all(|c| fold_char(c) == c);
    (!is_folded).then(|| text.chars().map(fold_char).collect())
}

/// Whether two texts are equal after [`fold`].
pub fn is_same(one: &str, other: &str) -> bool {
    if one.is_ascii() && other.is_ascii() {
        one.eq_ignore_ascii_case(other)
    } else {
        fold(one) == fold(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

    /// Regular expressions with `i` and the folding of this crate agree about every pair of characters.
    #[test]
    #[ignore = "slow"]
    fn is_the_folding_of_regular_expressions() {
        for c in '\0'..=char::MAX {
            let mut class = ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
            class.case_fold_simple();
            let same: Vec<char> = class.iter().flat_map(|range| range.start()..=range.end()).collect();
            assert!(
                same.iter().all(|&other| fold_char(other) == fold_char(c)),
                "{c:?} {same:?}"
            );
            assert!(same.contains(&fold_char(c)), "{c:?}");
        }
    }

    #[test]
    fn folds_texts() {
        assert!(matches!(fold("c:\\windows ß"), Cow::Borrowed(_)));
        assert_eq!(fold("C:\\Straẞe Σίσυφος \u{212A}ſ"), "c:\\straße σίσυφοσ ks");
        assert_eq!(fold("İı"), "İı");
        assert!(is_same("C:\\x", "c:\\X") && is_same("K", "\u{212A}") && is_same("\u{212A}ß", "Kẞ"));
        assert!(!is_same("K", "KK") && !is_same("ss", "ß"));
    }
}
