//! Searches for the needles of a pattern: the plain texts between its wildcards.
//!
//! A search looks for the needles in their order, wherever they are. So it holds for every text that the pattern
//! matches, and can hold for others.
//!
//! To ignore case, both sides are mapped to lower case, character by character (Unicode's simple mapping). The only
//! other characters whose lower case is ASCII are `İ` (U+0130) and the Kelvin sign (U+212A). Characters that only Rust
//! maps, because it knows a newer Unicode, make the search hold for more texts, never for fewer.

use std::sync::Arc;

use memchr::memmem::{self, Finder};

/// Needles that a text has to contain, in this order and without overlap.
#[derive(Debug, Clone)]
pub struct Search {
    /// In lower case if case is ignored.
    needles: Arc<[Finder<'static>]>,
    ignores_case: bool,
}

/// A pattern with wildcards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The pattern: `%` matches any text, even an empty one, and `_` matches any single character.
    pub text: Box<str>,
    /// The escape character, if any: after it, `%`, `_` and the character itself match only themselves.
    pub escape: Option<char>,
    /// Whether case is ignored.
    pub ignores_case: bool,
}

impl Search {
    /// A search for one needle.
    pub fn contains(text: &str, ignores_case: bool) -> Self {
        Search::new([text.to_owned()], ignores_case)
    }

    /// A search for the needles of a pattern. `None` if it has none, or if engines may disagree about the pattern.
    pub fn of_pattern(pattern: &Pattern) -> Option<Self> {
        // An engine may map the pattern to lower case but not the escape character, and then not find it.
        if pattern.ignores_case && pattern.escape.is_some_and(|escape| lower(escape) != escape) {
            return None;
        }
        let mut needles = vec![String::new()];
        let mut chars = pattern.text.chars();
        while let Some(c) = chars.next() {
            match c {
                c if Some(c) == pattern.escape => {
                    let next = chars.next().filter(|next| matches!(next, '%' | '_') || *next == c);
                    needles.last_mut()?.push(next?);
                }
                '%' | '_' => needles.push(String::new()),
                c => needles.last_mut()?.push(c),
            }
        }
        needles.retain(|needle| !needle.is_empty());
        (!needles.is_empty()).then(|| Search::new(needles, pattern.ignores_case))
    }

    fn new(needles: impl IntoIterator<Item = String>, ignores_case: bool) -> Self {
        let finder = |needle: String| {
            let needle = if ignores_case { lower_case(&needle) } else { needle };
            Finder::new(needle.as_bytes()).into_owned()
        };
        Search {
            needles: needles.into_iter().map(finder).collect(),
            ignores_case,
        }
    }

    /// Whether a text, in UTF-8, has all needles in their order.
    pub fn holds(&self, text: &[u8]) -> bool {
        if !self.ignores_case {
            return self.has(text);
        }
        let is_ascii = self.needles.iter().all(|finder| finder.needle().is_ascii());
        if is_ascii && self.has(&text.to_ascii_lowercase()) {
            return true;
        }
        // Only these two other characters can match an ASCII character. An ASCII text cannot match any other needle.
        let has = |other: &str| memmem::find(text, other.as_bytes()).is_some();
        let may_be_other = if is_ascii {
            has("\u{130}") || has("\u{212a}")
        } else {
            !text.is_ascii()
        };
        may_be_other && self.holds_in_lower_case(text)
    }

    /// As [`holds`](Self::holds), with the lower case of all characters.
    #[cold]
    fn holds_in_lower_case(&self, text: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(text) else {
            // Texts are always UTF-8. If one were not, the engine would have to decide.
            return true;
        };
        self.has(lower_case(text).as_bytes())
    }

    /// Whether a text has each needle after the one before it.
    fn has(&self, mut text: &[u8]) -> bool {
        self.needles.iter().all(|finder| match finder.find(text) {
            Some(at) => {
                text = &text[at + finder.needle().len()..];
                true
            }
            None => false,
        })
    }
}

/// The lower case of a text, as DuckDB compares texts without regard to case: by the simple mapping.
pub fn lower_case(text: &str) -> String {
    text.chars().map(lower).collect()
}

/// The lower case of a character, by the simple mapping: always one character.
fn lower(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    // The full mapping of `İ` has two characters. The first is its simple mapping.
    c.to_lowercase().next().unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str, escape: Option<char>, ignores_case: bool) -> Pattern {
        Pattern {
            text: text.into(),
            escape,
            ignores_case,
        }
    }

    fn matches(text: &str, wildcards: &str, ignores_case: bool) -> Option<bool> {
        Search::of_pattern(&pattern(wildcards, None, ignores_case)).map(|search| search.holds(text.as_bytes()))
    }

    #[test]
    fn the_needles_of_a_pattern_come_in_order() {
        for (text, pattern, expected) in [
            ("abc", "%b%", Some(true)),
            ("abc", "%B%", Some(false)),
            ("abcab", "%a%b_a%", Some(true)),
            ("ba", "%a%b%", Some(false)),
            ("aa", "%aa%a%", Some(false)),
            ("c:\\users", "%c:\\users%", Some(true)),
            ("x", "%", None),
            ("x", "%_%", None),
            ("x", "", None),
        ] {
            assert_eq!(matches(text, pattern, false), expected, "{text} {pattern}");
        }
    }

    #[test]
    fn an_escaped_character_is_plain() {
        let needles = |text: &str, escape| {
            let search = Search::of_pattern(&pattern(text, Some(escape), false))?;
            let text = |finder: &Finder<'_>| String::from_utf8_lossy(finder.needle()).into_owned();
            Some(search.needles.iter().map(text).collect::<Vec<_>>())
        };
        assert_eq!(needles("%a\\%b\\_\\\\%", '\\'), Some(vec!["a%b_\\".to_owned()]));
        assert_eq!(needles("a%%b", '%'), Some(vec!["a%b".to_owned()]));
        for error in ["a\\b", "a\\"] {
            assert_eq!(needles(error, '\\'), None, "{error}");
        }
        assert!(Search::of_pattern(&pattern("%aX%%", Some('X'), true)).is_none());
        assert!(Search::of_pattern(&pattern("%aX%%", Some('X'), false)).is_some());
    }

    #[test]
    fn case_is_that_of_single_characters() {
        for (text, part, expected) in [
            ("C:\\USERS\\Bob", "c:\\users", true),
            ("STRASSE", "stra\u{df}e", false),
            ("STRA\u{1e9e}E", "stra\u{df}e", true),
            ("\u{130}stanbul", "ISTANBUL", true),
            ("Istanbul", "\u{130}", true),
            ("\u{131}", "I", false),
            ("5 \u{212a}", "5 K", true),
            ("k", "\u{212a}", true),
            ("\u{17f}", "S", false),
            ("\u{3a3}\u{3c2}", "\u{3c3}\u{3c2}", true),
            ("\u{3c2}", "\u{3c3}", false),
            ("\u{410}\u{411}", "\u{430}\u{431}", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(
                Search::contains(part, true).holds(text.as_bytes()),
                expected,
                "{part} in {text}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_needle_is_found_where_the_text_in_lower_case_has_it(
            text in "[abKkIi\u{130}\u{212a}\u{df}\u{3a3}%_ ]{0,12}",
            part in "[abKkIi\u{130}\u{212a}\u{df}\u{3a3}%_ ]{0,3}",
        ) {
            let in_lower_case = |text: &str| text.chars().map(lower).collect::<String>();
            prop_assert_eq!(
                Search::contains(&part, true).holds(text.as_bytes()),
                in_lower_case(&text).contains(&in_lower_case(&part))
            );
            prop_assert_eq!(Search::contains(&part, false).holds(text.as_bytes()), text.contains(&part));
        }
    }
}
