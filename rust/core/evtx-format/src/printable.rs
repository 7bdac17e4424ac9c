//! Text that is safe to print, and starts of long texts.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with an escape, such as `\u{1b}`, for each character that a terminal would act on: control characters, line
/// breaks, and characters that change the direction of writing. Errors quote names that a stranger chose.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        if is_hidden(char) {
            let _ = write!(shown, "{}", char.escape_debug());
        } else {
            shown.push(char);
        }
    }
    shown.into()
}

/// The start of a text, of at most so many characters, and `…` if it is not the whole text.
pub fn cut(text: &str, most: usize) -> (&str, &'static str) {
    match text.char_indices().nth(most) {
        Some((end, _)) => (&text[..end], "…"),
        None => (text, ""),
    }
}

/// The last boundary of a character up to a byte.
pub fn boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn is_hidden(char: char) -> bool {
    // Marks, embeddings and isolates of a direction, and the separators of lines and paragraphs.
    let is_format =
        matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_format || char.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_on_is_escaped() {
        for (text, expected) in [
            ("a\u{1b}[2J\u{7}\r\n\t.evtx", "a\\u{1b}[2J\\u{7}\\r\\n\\t.evtx"),
            ("\0\u{7f}\u{9b}31m", "\\0\\u{7f}\\u{9b}31m"),
            (
                "b\u{202e}txve\u{2028}\u{2066}\u{200f}",
                "b\\u{202e}txve\\u{2028}\\u{2066}\\u{200f}",
            ),
            (
                "C:\\\\it's \"é\" \u{301}日本\u{a0}\u{200d}",
                "C:\\\\it's \"é\" \u{301}日本\u{a0}\u{200d}",
            ),
        ] {
            assert_eq!(printable(text), expected);
        }
        assert!(matches!(printable("plain"), Cow::Borrowed("plain")));
        let all: String = ('\0'..=char::MAX).collect();
        assert!(!printable(&all).chars().any(is_hidden));
    }

    #[test]
    fn texts_are_cut_between_characters() {
        for (most, expected) in [(0, ("", "…")), (1, ("é", "…")), (2, ("é日", "")), (9, ("é日", ""))] {
            assert_eq!(cut("é日", most), expected);
        }
        assert_eq!([0, 1, 2, 4, 5, 9].map(|at| boundary("é日", at)), [0, 0, 2, 2, 5, 5]);
    }
}
