//! How texts compare without regard to case.

use std::borrow::Cow;

/// A character as it compares without regard to case.
///
/// This is the simple case folding of Unicode 16: the lines `C` and `S` of its `CaseFolding.txt`. It makes one
/// character of one, so `ß` is not `ss`, and `İ` is not `i`; but `ẞ` is `ß`, `ς` and `Σ` are `σ`, `ſ` is `s`, and the
/// sign of Kelvin is `k`. The flag `i` of regular expressions takes the same characters as equal.
pub fn fold_char(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let folded = unicode_case_mapping::case_folded(c);
    folded.and_then(|code| char::from_u32(code.get())).unwrap_or(c)
}

/// A text as it compares without regard to case: each character by [`fold_char`]. Two texts are the same without regard
/// to case if they are the same after this.
pub fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return match text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => Cow::Owned(text.to_ascii_lowercase()),
            false => Cow::Borrowed(text),
        };
    }
    match text.find(|c| fold_char(c) != c) {
        None => Cow::Borrowed(text),
        Some(first) => {
            let mut folded = String::with_capacity(text.len());
            folded.push_str(&text[..first]);
            folded.extend(text[first..].chars().map(fold_char));
            Cow::Owned(folded)
        }
    }
}

/// Whether two texts are the same after [`fold`].
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    match one.is_ascii() && other.is_ascii() {
        true => one.eq_ignore_ascii_case(other),
        false => fold(one) == fold(other),
    }
}

/// Appends a text as [`fold`] makes it.
pub(crate) fn fold_into(text: &str, out: &mut String) {
    let start = out.len();
    match text.is_ascii() {
        true => {
            out.push_str(text);
            out[start..].make_ascii_lowercase();
        }
        false => out.extend(text.chars().map(fold_char)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

    /// Regular expressions with `i` and the folding of this crate agree about every pair of characters.
    #[test]
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
        let mut out = "A".to_string();
        for text in ["aBc", "Straẞe"] {
            fold_into(text, &mut out);
        }
        assert_eq!(out, "Aabcstraße");
    }
}
