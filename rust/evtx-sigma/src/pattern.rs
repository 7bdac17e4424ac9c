//! Texts with wildcards, and which texts they match.

use std::borrow::Cow;

use crate::case::fold;
use crate::stop::Stop;

/// A part of a text with wildcards.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Piece {
    /// This text. It is not empty, and no other text stands beside it.
    Text(Box<str>),
    /// `?`: one character, whatever it is.
    One,
    /// `*`: any number of characters, also none. No other `*` stands beside it.
    Many,
    /// Any of the five dashes that `windash` takes for each other. It stands for each dash of a value that has many.
    Dash,
}

/// The characters that `windash` takes for each other: hyphen, slash, en dash, em dash, horizontal bar.
pub(crate) const DASHES: [char; 5] = ['-', '/', '\u{2013}', '\u{2014}', '\u{2015}'];

/// What a text of an event has to look like. The texts in it are **needles**.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// It is this text.
    Exact(Box<str>),
    /// It starts with this text, which is not empty.
    StartsWith(Box<str>),
    /// It ends with this text, which is not empty.
    EndsWith(Box<str>),
    /// This text is in it. If it is empty, then every text matches: this is the pattern `*`.
    Contains(Box<str>),
    /// It has these parts, one after the other. This is what no other variant can say.
    Wildcards(Box<[Piece]>),
}

impl Pattern {
    /// The pattern of some parts.
    pub(crate) fn new(parts: impl IntoIterator<Item = Piece>) -> Pattern {
        let mut pieces: Vec<Piece> = Vec::new();
        for part in parts {
            match (pieces.last_mut(), part) {
                (Some(Piece::Many), Piece::Many) => {}
                (_, Piece::Text(text)) if text.is_empty() => {}
                (Some(Piece::Text(before)), Piece::Text(text)) => *before = format!("{before}{text}").into(),
                (_, part) => pieces.push(part),
            }
        }
        match pieces.as_mut_slice() {
            [] => Pattern::Exact("".into()),
            [Piece::Many] => Pattern::Contains("".into()),
            [Piece::Text(text)] => Pattern::Exact(std::mem::take(text)),
            [Piece::Text(text), Piece::Many] => Pattern::StartsWith(std::mem::take(text)),
            [Piece::Many, Piece::Text(text)] => Pattern::EndsWith(std::mem::take(text)),
            [Piece::Many, Piece::Text(text), Piece::Many] => Pattern::Contains(std::mem::take(text)),
            _ => Pattern::Wildcards(pieces.into()),
        }
    }

    /// Whether a text is as this pattern says. Characters have to be the same: to compare without regard to case, both
    /// sides are folded before.
    pub fn matches(&self, text: &str) -> bool {
        self.matches_until(text, &Stop::never())
    }

    /// The same, or `false` if the work was stopped.
    pub(crate) fn matches_until(&self, text: &str, stop: &Stop<'_>) -> bool {
        match self {
            Pattern::Exact(needle) => text == &**needle,
            Pattern::StartsWith(needle) => text.starts_with(&**needle),
            Pattern::EndsWith(needle) => text.ends_with(&**needle),
            Pattern::Contains(needle) => text.contains(&**needle),
            Pattern::Wildcards(pieces) => matches_pieces(pieces, text, stop),
        }
    }

    /// The texts in the pattern, each of which is in every text that matches. A pattern of `?` or dashes alone has none.
    pub fn needles(&self) -> impl Iterator<Item = &str> {
        let (one, pieces) = match self {
            Pattern::Exact(text) | Pattern::StartsWith(text) | Pattern::EndsWith(text) | Pattern::Contains(text) => {
                (Some(&**text), &[][..])
            }
            Pattern::Wildcards(pieces) => (None, &pieces[..]),
        };
        one.into_iter().chain(pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(&**text),
            Piece::One | Piece::Many | Piece::Dash => None,
        }))
    }
}

/// The parts of a value of a rule.
///
/// `*` and `?` are wildcards. A backslash before a wildcard or a backslash makes that a plain character; before any
/// other character it is plain itself ("Escape Character" in the specification).
pub(crate) fn pieces(value: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = value;
    while let Some(special) = rest.find(['*', '?', '\\']) {
        text.push_str(&rest[..special]);
        let (character, after) = rest[special..].split_at(1);
        rest = after;
        let wildcard = match character {
            "*" => Piece::Many,
            "?" => Piece::One,
            _ => {
                let plain = rest.starts_with(['*', '?', '\\']);
                text.push_str(if plain { &rest[..1] } else { "\\" });
                rest = &rest[usize::from(plain)..];
                continue;
            }
        };
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text).into()));
        }
        pieces.push(wildcard);
    }
    text.push_str(rest);
    if !text.is_empty() {
        pieces.push(Piece::Text(text.into()));
    }
    pieces
}

/// The same parts, with their texts folded.
pub(crate) fn fold_pieces(pieces: &mut [Piece]) {
    for piece in pieces {
        if let Piece::Text(text) = piece
            && let Cow::Owned(folded) = fold(text)
        {
            *text = folded.into();
        }
    }
}

/// Whether a text consists of these parts. The last `*` takes more only if what follows it does not fit, so the work is
/// at most the number of pieces times the length of the text.
fn matches_pieces(pieces: &[Piece], text: &str, stop: &Stop<'_>) -> bool {
    const TRIES: usize = 1 << 14;
    let (mut piece, mut at) = (0, 0);
    let mut tries = 0;
    // The piece after the last `*`, and where the text goes on that the `*` does not take.
    let mut last: Option<(usize, usize)> = None;
    let one = |at: usize| {
        let character = text[at..].chars().next()?;
        Some((character, at + character.len_utf8()))
    };
    loop {
        let fits = match pieces.get(piece) {
            None => (at == text.len()).then_some(at),
            Some(Piece::Many) => {
                last = Some((piece + 1, at));
                Some(at)
            }
            Some(Piece::One) => one(at).map(|(_, next)| next),
            Some(Piece::Dash) => one(at)
                .filter(|(character, _)| DASHES.contains(character))
                .map(|(_, next)| next),
            Some(Piece::Text(needle)) => text[at..].starts_with(&**needle).then_some(at + needle.len()),
        };
        match (fits, last) {
            (Some(_), _) if piece == pieces.len() => return true,
            (Some(next), _) => (piece, at) = (piece + 1, next),
            (None, None) => return false,
            (None, Some((after, start))) => {
                tries += 1;
                if tries % TRIES == 0 && stop.check().is_err() {
                    return false;
                }
                let Some(character) = text[start..].chars().next() else {
                    return false;
                };
                let next = start + character.len_utf8();
                let next = match pieces.get(after) {
                    // To look for a text costs its length each time, to compare it does not.
                    Some(Piece::Text(needle)) if text[next..].starts_with(&**needle) => Some(next),
                    Some(Piece::Text(needle)) => text[next..].find(&**needle).map(|found| next + found),
                    _ => Some(next),
                };
                let Some(next) = next else { return false };
                last = Some((after, next));
                (piece, at) = (after, next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(value: &str) -> String {
        format!("{:?}", Pattern::new(pieces(value)))
    }

    /// Every example of the specification's section "Escape Character".
    #[test]
    fn reads_escapes() {
        assert_eq!(shown(r"C:\Windows\x"), r#"Exact("C:\\Windows\\x")"#);
        assert_eq!(shown(r"C:\\Windows"), r#"Exact("C:\\Windows")"#);
        assert_eq!(shown(r"\*\?"), r#"Exact("*?")"#);
        assert_eq!(shown(r"a\\*"), r#"StartsWith("a\\")"#);
        assert_eq!(shown(r"a\\\*"), r#"Exact("a\\*")"#);
        assert_eq!(shown(r"a\\\b"), r#"Exact("a\\\\b")"#);
        assert_eq!(shown(r"a\\\\b"), r#"Exact("a\\\\b")"#);
        assert_eq!(shown(r"a\"), r#"Exact("a\\")"#);
    }

    #[test]
    fn finds_the_simplest_pattern() {
        assert_eq!(shown(""), r#"Exact("")"#);
        assert_eq!(shown("**"), r#"Contains("")"#);
        assert_eq!(shown("a**"), r#"StartsWith("a")"#);
        assert_eq!(shown("*a"), r#"EndsWith("a")"#);
        assert_eq!(shown("**a*"), r#"Contains("a")"#);
        assert_eq!(shown("a*b"), r#"Wildcards([Text("a"), Many, Text("b")])"#);
        assert_eq!(shown("?"), "Wildcards([One])");
        assert_eq!(
            Pattern::new(pieces("a*?bc*")).needles().collect::<Vec<_>>(),
            ["a", "bc"]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        /// A pattern matches what the regular expression matches that is made of it by character.
        #[test]
        fn matches_as_a_regular_expression(value in r"[abä*?\\]{0,9}", text in r"[abä*\\\n]{0,9}") {
            let mut expression = String::from("(?s)^");
            let mut rest = value.as_str();
            while let Some(character) = rest.chars().next() {
                let (length, part) = match character {
                    '*' => (1, ".*".to_string()),
                    '?' => (1, ".".to_string()),
                    '\\' if [r"\*", r"\?", r"\\"].iter().any(|pair| rest.starts_with(pair)) => {
                        (2, regex::escape(&rest[1..2]))
                    }
                    other => (other.len_utf8(), regex::escape(&other.to_string())),
                };
                expression += &part;
                rest = &rest[length..];
            }
            let expected = regex::Regex::new(&(expression + "$")).expect("an expression").is_match(&text);
            prop_assert_eq!(Pattern::new(pieces(&value)).matches(&text), expected);
        }
    }
}
