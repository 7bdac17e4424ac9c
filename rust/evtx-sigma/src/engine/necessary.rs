//! What is in every text that a regular expression matches.

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::case::{fold, fold_char};
use crate::expression::Expression;

/// How many needles stand for one expression at most.
const NEEDLES: usize = 64;

/// Folded needles, one of which is in every folded text that the expression matches. Each has two bytes at least. `None`
/// if none are found.
pub(super) fn necessary_of_regex(expression: &Expression) -> Option<Vec<String>> {
    of(&expression.parsed()?)
}

fn of(hir: &Hir) -> Option<Vec<String>> {
    let mut best = None;
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(_) | HirKind::Class(_) => choose(&mut best, text_of(hir).map(|text| vec![text])),
        HirKind::Capture(capture) => best = of(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => best = of(&repetition.sub),
        HirKind::Repetition(_) => {}
        HirKind::Concat(parts) => {
            let mut run = String::new();
            for part in parts {
                match text_of(part) {
                    Some(text) => run += &text,
                    None => {
                        choose(&mut best, Some(vec![std::mem::take(&mut run)]));
                        choose(&mut best, of(part));
                    }
                }
            }
            choose(&mut best, Some(vec![run]));
        }
        HirKind::Alternation(parts) => {
            let mut all = Vec::new();
            for part in parts {
                all.extend(of(part)?);
                if all.len() > NEEDLES {
                    return None;
                }
            }
            choose(&mut best, Some(all));
        }
    }
    best
}

/// Keeps the needles whose shortest is longest.
fn choose(best: &mut Option<Vec<String>>, other: Option<Vec<String>>) {
    let shortest = |needles: &Vec<String>| needles.iter().map(String::len).min().unwrap_or(0);
    if let Some(other) = other
        && shortest(&other) > best.as_ref().map_or(1, shortest)
    {
        *best = Some(other);
    }
}

/// The only folded text that this matches, if there is but one.
fn text_of(hir: &Hir) -> Option<String> {
    match hir.kind() {
        HirKind::Literal(literal) => Some(fold(std::str::from_utf8(&literal.0).ok()?).into_owned()),
        HirKind::Class(Class::Unicode(class)) => {
            let mut characters = class
                .iter()
                .flat_map(|range| range.start()..=range.end())
                .map(fold_char);
            let first = characters.next()?;
            // A class that has one character without regard to case is small; a large one soon has another.
            characters.all(|other| other == first).then(|| first.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::Flags;

    fn needles(text: &str, ignore_case: bool) -> Option<String> {
        let flags = Flags {
            ignore_case,
            ..Flags::default()
        };
        let expression = Expression::new(text, flags).expect(text);
        necessary_of_regex(&expression).map(|needles| needles.join(" "))
    }

    #[test]
    fn finds_what_every_match_has() {
        assert_eq!(needles("a+bcd?Efg.*", false).as_deref(), Some("efg"));
        assert_eq!(needles("^Invoke-(Mimi|Tok)", true).as_deref(), Some("invoke-"));
        assert_eq!(needles("(abc|de[fF]gh)+", false).as_deref(), Some("abc defgh"));
        assert_eq!(needles("(abc|d)", false), None);
        assert_eq!(needles("(abc)*", false), None);
        assert_eq!(needles("(abc){0,3}", false), None);
        assert_eq!(needles("[0-9]{4}k", false), None);
        assert_eq!(needles("[\u{212A}kK]x", false).as_deref(), Some("kx"));
        assert_eq!(needles("", false), None);
    }
}
