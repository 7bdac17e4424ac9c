//! Patterns: values of rules with their wildcards, and the texts that they match.

use std::borrow::Cow;

use evtx_format::Interrupt;
use evtx_format::case::fold;

/// A part of a value with wildcards.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Segment {
    /// This text, which is not empty. Two texts are never adjacent.
    Text(Box<str>),
    /// `?`: any one character.
    One,
    /// `*`: any number of characters, including none. Two of these are never adjacent.
    Many,
    /// Any of the five dashes of `windash`. It replaces each dash of a value that has many.
    Dash,
}

/// The characters that `windash` treats as equal: hyphen, slash, en dash, em dash, horizontal bar.
pub(crate) const DASHES: [char; 5] = ['-', '/', '\u{2013}', '\u{2014}', '\u{2015}'];

/// Where a needle must be in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Anchor {
    /// It is the whole text.
    Whole,
    /// At the start.
    Start,
    /// At the end.
    End,
    /// Anywhere.
    Anywhere,
}

impl Anchor {
    /// Whether `needle` is anchored so in `text`.
    pub(crate) fn holds(self, text: &str, needle: &str) -> bool {
        match self {
            Anchor::Whole => text == needle,
            Anchor::Start => text.starts_with(needle),
            Anchor::End => text.ends_with(needle),
            Anchor::Anywhere => text.contains(needle),
        }
    }
}

/// What a text of an event must look like. The texts in a pattern are its **needles**.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// A needle at an anchor. It is empty only for an empty text ([`Anchor::Whole`]) and for the pattern `*`, which
    /// matches every text ([`Anchor::Anywhere`]).
    Needle(Anchor, Box<str>),
    /// These segments in order, if no needle at an anchor means the same.
    Wildcards(Box<[Segment]>),
}

impl Pattern {
    /// The pattern of some segments.
    pub(crate) fn new(segments: impl IntoIterator<Item = Segment>) -> Pattern {
        let mut merged: Vec<Segment> = Vec::new();
        for segment in segments {
            match (merged.last_mut(), segment) {
                (Some(Segment::Many), Segment::Many) => {}
                (_, Segment::Text(text)) if text.is_empty() => {}
                (Some(Segment::Text(before)), Segment::Text(text)) => *before = format!("{before}{text}").into(),
                (_, segment) => merged.push(segment),
            }
        }
        let (anchor, needle) = match merged.as_mut_slice() {
            [] => (Anchor::Whole, Box::default()),
            [Segment::Many] => (Anchor::Anywhere, Box::default()),
            [Segment::Text(text)] => (Anchor::Whole, std::mem::take(text)),
            [Segment::Text(text), Segment::Many] => (Anchor::Start, std::mem::take(text)),
            [Segment::Many, Segment::Text(text)] => (Anchor::End, std::mem::take(text)),
            [Segment::Many, Segment::Text(text), Segment::Many] => (Anchor::Anywhere, std::mem::take(text)),
            _ => return Pattern::Wildcards(merged.into()),
        };
        Pattern::Needle(anchor, needle)
    }

    /// Whether a text matches, or `false` after an interrupt. Case matters: to ignore it, fold both sides first.
    pub(crate) fn matches(&self, text: &str, interrupt: Interrupt<'_>) -> bool {
        match self {
            Pattern::Needle(anchor, needle) => anchor.holds(text, needle),
            Pattern::Wildcards(segments) => matches_segments(segments, text, interrupt),
        }
    }

    /// The byte offset of the first needle in a text that matches, or 0.
    pub(crate) fn place_in(&self, text: &str) -> usize {
        let found = match self {
            Pattern::Needle(Anchor::End, needle) => text.rfind(&**needle),
            _ => self.needles().next().and_then(|needle| text.find(needle)),
        };
        found.unwrap_or(0)
    }

    /// The needles. Every text that matches contains all of them. A pattern of `?` or dashes alone has none.
    pub fn needles(&self) -> impl Iterator<Item = &str> {
        let (one, segments) = match self {
            Pattern::Needle(_, needle) => (Some(&**needle), &[][..]),
            Pattern::Wildcards(segments) => (None, &segments[..]),
        };
        one.into_iter().chain(segments.iter().filter_map(Segment::text))
    }
}

impl Segment {
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Segment::Text(text) => Some(text),
            Segment::One | Segment::Many | Segment::Dash => None,
        }
    }
}

/// The segments of a value of a rule.
///
/// `*` and `?` are wildcards. A backslash before a wildcard or a backslash makes that a plain character; before any
/// other character it is plain itself ("Escape Character" in the specification).
pub(crate) fn segments(value: &str) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut text = String::new();
    let mut rest = value;
    while let Some(special) = rest.find(['*', '?', '\\']) {
        text.push_str(&rest[..special]);
        let (character, after) = rest[special..].split_at(1);
        rest = after;
        let wildcard = match character {
            "*" => Segment::Many,
            "?" => Segment::One,
            _ => {
                let is_escape = rest.starts_with(['*', '?', '\\']);
                text.push_str(if is_escape { &rest[..1] } else { "\\" });
                rest = &rest[usize::from(is_escape)..];
                continue;
            }
        };
        segments.extend([Segment::Text(std::mem::take(&mut text).into()), wildcard]);
    }
    text.push_str(rest);
    segments.push(Segment::Text(text.into()));
    segments.retain(|segment| segment.text() != Some(""));
    segments
}

/// Whether a value is one text as it is written: it is not empty, and has no wildcards and escapes.
pub(crate) fn is_plain(value: &str) -> bool {
    !value.is_empty() && !value.contains(['*', '?']) && !value.contains(r"\\")
}

/// Folds the texts of segments.
pub(crate) fn fold_segments(segments: &mut [Segment]) {
    for segment in segments {
        if let Segment::Text(text) = segment
            && let Cow::Owned(folded) = fold(text)
        {
            *text = folded.into();
        }
    }
}

/// Whether a text consists of these segments. Only the last `*` ever takes more, so the work is at most the number of
/// segments times the length of the text.
fn matches_segments(segments: &[Segment], text: &str, interrupt: Interrupt<'_>) -> bool {
    const TRIES: usize = 1 << 14;
    let (mut segment, mut at) = (0, 0);
    let mut tries = 0;
    // The segment after the last `*`, and the offset in the text where that `*` ends.
    let mut last: Option<(usize, usize)> = None;
    let one = |at: usize, is_wanted: fn(char) -> bool| {
        let character = text[at..].chars().next().filter(|&c| is_wanted(c))?;
        Some(at + character.len_utf8())
    };
    loop {
        let fits = match segments.get(segment) {
            None => (at == text.len()).then_some(at),
            Some(Segment::Many) => {
                last = Some((segment + 1, at));
                Some(at)
            }
            Some(Segment::One) => one(at, |_| true),
            Some(Segment::Dash) => one(at, |c| DASHES.contains(&c)),
            Some(Segment::Text(needle)) => text[at..].starts_with(&**needle).then_some(at + needle.len()),
        };
        match (fits, last) {
            (Some(_), _) if segment == segments.len() => return true,
            (Some(next), _) => (segment, at) = (segment + 1, next),
            (None, None) => return false,
            (None, Some((after, start))) => {
                tries += 1;
                if tries % TRIES == 0 && interrupt.check().is_err() {
                    return false;
                }
                let next = one(start, |_| true).and_then(|next| match segments.get(after) {
                    Some(Segment::Text(needle)) => text[next..].find(&**needle).map(|found| next + found),
                    _ => Some(next),
                });
                let Some(next) = next else { return false };
                last = Some((after, next));
                (segment, at) = (after, next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Among them is every example of the specification's section "Escape Character".
    #[test]
    fn finds_the_simplest_pattern() {
        for (value, anchor, needle) in [
            (r"C:\Windows\x", Anchor::Whole, r"C:\Windows\x"),
            (r"C:\\Windows", Anchor::Whole, r"C:\Windows"),
            (r"\*\?", Anchor::Whole, "*?"),
            (r"a\\*", Anchor::Start, r"a\"),
            (r"a\\\*", Anchor::Whole, r"a\*"),
            (r"a\\\b", Anchor::Whole, r"a\\b"),
            (r"a\\\\b", Anchor::Whole, r"a\\b"),
            (r"a\", Anchor::Whole, r"a\"),
            ("", Anchor::Whole, ""),
            ("**", Anchor::Anywhere, ""),
            ("a**", Anchor::Start, "a"),
            ("*a", Anchor::End, "a"),
            ("**a*", Anchor::Anywhere, "a"),
        ] {
            let expected = Pattern::Needle(anchor, needle.into());
            assert_eq!(Pattern::new(segments(value)), expected, "{value}");
        }
        let wildcards = |value| match Pattern::new(segments(value)) {
            Pattern::Wildcards(segments) => segments,
            needle => panic!("{needle:?}"),
        };
        let text = |text: &str| Segment::Text(text.into());
        assert_eq!(*wildcards("a*b"), [text("a"), Segment::Many, text("b")]);
        assert_eq!(*wildcards("?"), [Segment::One]);
        assert!(Pattern::new(segments("a*?bc*")).needles().eq(["a", "bc"]));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000.max(ProptestConfig::default().cases), ..ProptestConfig::default() })]
        /// A pattern agrees with the regular expression that is translated from it character by character.
        #[test]
        fn matches_as_a_regular_expression(value in r"[abä*?\\]{0,9}", text in r"[abä*\\\n]{0,9}") {
            if is_plain(&value) {
                let needle = Pattern::Needle(Anchor::Whole, value.as_str().into());
                prop_assert_eq!(Pattern::new(segments(&value)), needle);
            }
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
            prop_assert_eq!(Pattern::new(segments(&value)).matches(&text, Interrupt::NEVER), expected);
        }
    }
}
