//! Searches for the plain parts of a pattern of LIKE or ILIKE.
//!
//! A search is a hint. It looks for the plain parts of the pattern in their order. It does not check what is between
//! them, or whether the text starts and ends with them. So it holds for every text that the pattern matches, and can
//! hold for others.
//!
//! To ignore case, DuckDB maps both sides to lower case, character by character (Unicode's simple mapping). The search
//! does the same. Most texts and patterns are ASCII, which is compared in place. The only characters beyond ASCII whose
//! lower case is ASCII are `İ` (U+0130) and the Kelvin sign (U+212A).

use std::sync::Arc;

use memchr::{memchr2, memmem};

/// Parts that a text has to contain, in this order and without overlap.
#[derive(Debug, Clone)]
pub(super) struct Search {
    parts: Arc<[Part]>,
    ignores_case: bool,
}

#[derive(Debug)]
struct Part {
    /// Finds the part, which is in lower case if case is ignored.
    finder: memmem::Finder<'static>,
    /// The offset in the part of its rarest byte, by [`rarity`].
    rare: usize,
}

/// A pattern of LIKE or ILIKE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The pattern: `%` stands for any text, also an empty one, and `_` for any one character.
    pub text: Box<str>,
    /// The escape character, if there is one: `%`, `_` and itself stand for themselves behind it.
    pub escape: Option<char>,
    /// Whether case is ignored.
    pub ignores_case: bool,
}

impl Search {
    /// A search for a text as it is.
    pub(super) fn contains(text: &str, ignores_case: bool) -> Self {
        Search::new([text.to_owned()], ignores_case)
    }

    /// A search for the plain parts of a pattern; `None` if it has none, or if DuckDB may refuse it or give it another
    /// meaning.
    pub(super) fn like(pattern: &Pattern) -> Option<Self> {
        // DuckDB maps the pattern to lower case, but not the escape character, which it then does not find.
        if pattern.ignores_case && pattern.escape.is_some_and(|escape| small(escape) != escape) {
            return None;
        }
        let mut parts = vec![String::new()];
        let mut chars = pattern.text.chars();
        while let Some(c) = chars.next() {
            match c {
                c if Some(c) == pattern.escape => {
                    let next = chars.next().filter(|next| matches!(next, '%' | '_') || *next == c);
                    parts.last_mut()?.push(next?);
                }
                '%' | '_' => parts.push(String::new()),
                c => parts.last_mut()?.push(c),
            }
        }
        parts.retain(|part| !part.is_empty());
        (!parts.is_empty()).then(|| Search::new(parts, pattern.ignores_case))
    }

    fn new(parts: impl IntoIterator<Item = String>, ignores_case: bool) -> Self {
        let part = |part: String| {
            let part = match ignores_case {
                true => part.chars().map(small).collect(),
                false => part,
            };
            let rare = (0..part.len()).max_by_key(|&at| rarity(part.as_bytes()[at]));
            Part {
                finder: memmem::Finder::new(part.as_bytes()).into_owned(),
                rare: rare.unwrap_or_default(),
            }
        };
        Search {
            parts: parts.into_iter().map(part).collect(),
            ignores_case,
        }
    }

    /// Whether a text, in UTF-8, has all parts in their order.
    pub(super) fn holds(&self, text: &[u8]) -> bool {
        if !self.ignores_case {
            return self.has(text, |part, text| part.finder.find(text));
        }
        let is_ascii = self.parts.iter().all(|part| part.finder.needle().is_ascii());
        if is_ascii && self.has(text, Part::find_ascii) {
            return true;
        }
        // Beyond ASCII, only these two characters can match a character of an ASCII part. An ASCII text cannot match a
        // part that is not ASCII.
        let may_be_other = match is_ascii {
            true => ["\u{130}", "\u{212a}"]
                .iter()
                .any(|other| memmem::find(text, other.as_bytes()).is_some()),
            false => !text.is_ascii(),
        };
        may_be_other && self.holds_in_small_letters(text)
    }

    /// As [`holds`](Self::holds), with the whole text mapped to lower case.
    #[cold]
    fn holds_in_small_letters(&self, text: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(text) else {
            // Texts are always UTF-8. If one were not, DuckDB would have to decide.
            return true;
        };
        let text: String = text.chars().map(small).collect();
        self.has(text.as_bytes(), |part, text| part.finder.find(text))
    }

    /// Whether `find` finds each part, behind the one before it. It returns where the part starts in a text.
    fn has(&self, mut text: &[u8], find: impl Fn(&Part, &[u8]) -> Option<usize>) -> bool {
        self.parts.iter().all(|part| match find(part, text) {
            Some(at) => {
                text = &text[at + part.finder.needle().len()..];
                true
            }
            None => false,
        })
    }
}

impl Part {
    /// Where in a text a part of ASCII starts, without regard to the case of ASCII letters.
    fn find_ascii(&self, text: &[u8]) -> Option<usize> {
        let needle = self.finder.needle();
        let Some(&rare) = needle.get(self.rare) else {
            return Some(0);
        };
        let (mut from, mut compared) = (self.rare, 0);
        while let Some(at) = memchr2(rare, rare.to_ascii_uppercase(), text.get(from..)?) {
            let start = from + at - self.rare;
            let found = text.get(start..start + needle.len())?;
            if found.eq_ignore_ascii_case(needle) {
                return Some(start);
            }
            from += at + 1;
            compared += needle.len();
            if compared > ENOUGH + 4 * text.len() {
                // A text can be crafted to need many comparisons. `find` takes linear time.
                return self.finder.find(&text.to_ascii_lowercase());
            }
        }
        None
    }
}

/// How many bytes, beside four for each byte of the text, are compared in place before the search maps the whole text
/// to lower case.
const ENOUGH: usize = 4096;

/// The most frequent bytes in texts of events, in lower case, from the most frequent one on.
const FREQUENT: &[u8] = b" e\nat:0oinsr-l1d2c3.4u5m6p7f8g9hyb\\wv_/kxjqz";

/// How rare a byte is in texts of events: its index in [`FREQUENT`], or the greatest number for any other byte.
fn rarity(byte: u8) -> usize {
    let place = FREQUENT.iter().position(|&frequent| frequent == byte);
    place.unwrap_or(FREQUENT.len())
}

/// The lower case of a character, as DuckDB maps it: always one character, whatever is around it.
fn small(c: char) -> char {
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

    fn like(text: &str, like: &str, ignores_case: bool) -> Option<bool> {
        Search::like(&pattern(like, None, ignores_case)).map(|search| search.holds(text.as_bytes()))
    }

    #[test]
    fn the_plain_parts_of_a_pattern_come_in_order() {
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
            assert_eq!(like(text, pattern, false), expected, "{text} {pattern}");
        }
    }

    #[test]
    fn an_escaped_character_is_plain() {
        let parts = |text: &str, escape| {
            let search = Search::like(&pattern(text, Some(escape), false))?;
            let parts = search.parts.iter();
            Some(
                parts
                    .map(|part| String::from_utf8_lossy(part.finder.needle()).into_owned())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(parts("%a\\%b\\_\\\\%", '\\'), Some(vec!["a%b_\\".to_owned()]));
        assert_eq!(parts("a%%b", '%'), Some(vec!["a%b".to_owned()]));
        for error in ["a\\b", "a\\"] {
            assert_eq!(parts(error, '\\'), None, "{error}");
        }
        assert!(Search::like(&pattern("%aX%%", Some('X'), true)).is_none());
        assert!(Search::like(&pattern("%aX%%", Some('X'), false)).is_some());
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

    #[test]
    fn a_text_that_takes_many_comparisons_is_searched_all_the_same() {
        let search = Search::contains(&format!("{}b", "a".repeat(200)), true);
        let mut text = "A".repeat(100_000);
        assert!(!search.holds(text.as_bytes()));
        text.push('B');
        assert!(search.holds(text.as_bytes()));
        let behind = Search::contains("aZ", true);
        assert!(behind.holds("z".repeat(50_000).replace("zz", "za").as_bytes()));
    }

    proptest! {
        #[test]
        fn a_part_is_found_where_small_letters_have_it(
            text in "[abKkIi\u{130}\u{212a}\u{df}\u{3a3}%_ ]{0,12}",
            part in "[abKkIi\u{130}\u{212a}\u{df}\u{3a3}%_ ]{0,3}",
        ) {
            let lower = |text: &str| text.chars().map(small).collect::<String>();
            prop_assert_eq!(
                Search::contains(&part, true).holds(text.as_bytes()),
                lower(&text).contains(&lower(&part))
            );
            prop_assert_eq!(Search::contains(&part, false).holds(text.as_bytes()), text.contains(&part));
        }
    }
}
